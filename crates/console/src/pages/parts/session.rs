//! Entry of a person whose session has begun: by a sign-in, or by a link that set their password.
//!
//! Never: a session with a role of another listener, or the cookie of a session that was refused.

use axum::response::{IntoResponse, Redirect, Response};
use holdfast_accounts::{AccountsError, BegunSession, SignedIn};
use holdfast_domain::secret::SessionToken;

use crate::cookie;
use crate::failure::Failure;
use crate::kit::ConsoleState;
use crate::request_origin::RequestOrigin;

/// Answer that leads to `next` with the cookies of the session, which replaces the one before; `None` if the person
/// has no role that may be used at this listener.
pub(crate) async fn enter(
    shared: &ConsoleState,
    request_origin: &RequestOrigin,
    (begun, before): (&BegunSession, Option<&SignedIn>),
    next: &str,
) -> Result<Option<Response>, Failure> {
    let Some(token) = took_role(shared, request_origin, begun, before).await? else {
        // Its token reaches no browser, so that only this can end it before its time.
        shared.accounts.sign_out(&begun.signed_in).await?;
        return Ok(None);
    };
    // Last: after a failure above the browser still has the session of before.
    if let Some(before) = before {
        shared.accounts.sign_out(before).await?;
    }
    let mut answer = Redirect::to(next).into_response();
    let headers = answer.headers_mut();
    shared.begin_session(headers, request_origin, &token);
    if let Some(mark) = &begun.mark {
        cookie::put_mark(headers, request_origin.jar(), mark);
    }
    Ok(Some(answer))
}

/// Has the new session use a role that may be used here, and returns its token; `None` if the person has no such
/// role. The role of the session before is taken, if it was theirs.
async fn took_role(
    shared: &ConsoleState,
    request_origin: &RequestOrigin,
    begun: &BegunSession,
    before: Option<&SignedIn>,
) -> Result<Option<SessionToken>, AccountsError> {
    let BegunSession { token, signed_in: begun, .. } = begun;
    let admitted = || {
        begun
            .grants
            .iter()
            .map(|it| it.authority)
            .filter(|it| request_origin.audience.admits(it.role))
    };
    let used = before.filter(|before| before.person.id == begun.person.id);
    let used = used.and_then(|before| admitted().find(|it| *it == before.session.authority));
    let Some(authority) = used.or_else(|| admitted().min_by_key(|it| it.role)) else {
        return Ok(None);
    };
    if authority == begun.session.authority {
        return Ok(Some(token.clone()));
    }
    shared.accounts.choose_grant(begun, authority).await.map(Some)
}
