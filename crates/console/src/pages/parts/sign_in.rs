//! Refusals of a sign-in, as several pages show them.

use crate::failure::Failure;
use crate::kit::page::Page;
use axum::response::{IntoResponse, Response};
use holdfast_accounts::SignInError;
use holdfast_domain::admin::EmailAddress;
use http::StatusCode;
use http::header::RETRY_AFTER;
use std::time::Duration;

pub(crate) const WRONG: &str = "The e-mail address or the password is wrong.";

/// Words for a password that was not proven.
pub(crate) fn refusal(error: SignInError) -> Failure {
    match error {
        SignInError::Wrong => Failure::new(StatusCode::UNAUTHORIZED, WRONG),
        SignInError::Slow { retry_after } => {
            let seconds = seconds(retry_after);
            let message =
                format!("That was wrong too often. Wait {seconds} s, then try once more.");
            Failure::new(StatusCode::TOO_MANY_REQUESTS, message)
        }
        SignInError::Busy => {
            let message = "Many people sign in at this moment. Try again in a few seconds.";
            Failure::new(StatusCode::TOO_MANY_REQUESTS, message)
        }
        SignInError::Unavailable(error) => {
            tracing::warn!(%error, "nobody can sign in");
            let message = "Nobody can sign in at this moment. Try again.";
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, message)
        }
    }
}

/// Time after which another attempt is judged, where there is one to wait for.
pub(crate) fn retry_after(error: &SignInError) -> Option<Duration> {
    match error {
        SignInError::Slow { retry_after } => Some(*retry_after),
        SignInError::Busy => Some(Duration::from_secs(2)),
        SignInError::Wrong | SignInError::Unavailable(_) => None,
    }
}

/// The page, which says when to come again.
pub(crate) fn waiting(page: Page, retry_after: Option<Duration>) -> Response {
    let mut answer = page.into_response();
    if let Some(retry_after) = retry_after {
        answer.headers_mut().insert(RETRY_AFTER, seconds(retry_after).into());
    }
    answer
}

/// Whole seconds, the last begun one too.
fn seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0)).max(1)
}

/// The address as it is shown to its person.
pub(crate) fn shown(email: Option<&EmailAddress>) -> &str {
    email.map_or("", EmailAddress::as_str)
}
