//! Responses: bodies, and the headers that every answer of a kind carries.
//!
//! | answer | headers |
//! |---|---|
//! | any | `x-request-id` |
//! | JSON | `x-content-type-options` |
//! | error | `x-should-retry`; `retry-after` and `retry-after-ms` if a retry may help |
//! | error after which the body is not read | `connection: close` |
//! | stream | `cache-control` and `x-accel-buffering`: no proxy on the way keeps an event back |
//!
//! The choice of an answer is not made here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_engine::{CompletionStream, InFlight};
use holdfast_wire::error::Code;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use uuid::Uuid;

use crate::problem::{Problem, RetryAdvice};
use crate::response_body::{ResponseBody, StreamedBody};

pub(crate) type HttpResponse = Response<ResponseBody>;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const X_IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("x-idempotency-key");
pub(crate) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// No browser takes an answer for another type than it has: errors repeat what their caller has sent.
pub(crate) const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// The shortest hint for a retry if the time at which it helps is unknown.
const RETRY_SOON: Duration = Duration::from_secs(1);
/// The longest hint for a retry.
const RETRY_MS_MAX: u64 = 60_000;

/// A JSON body.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> HttpResponse {
    let mut answer = Response::new(ResponseBody::from(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
    answer
}

/// The same answer, which holds an API key's place until it is written. A small answer is handed to the kernel
/// at once, and holds no place.
pub(crate) fn with_guard(mut answer: HttpResponse, place: Arc<InFlight>) -> HttpResponse {
    answer.body_mut().hold(place);
    answer
}

/// A stream of events. No cache and no proxy may keep any of it back.
pub(crate) fn event_stream(stream: Box<CompletionStream>) -> HttpResponse {
    let mut answer = Response::new(ResponseBody::Streamed(Box::new(StreamedBody::new(stream))));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // nginx collects an answer before it passes it on, unless this header forbids it.
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    answer
}

/// An error with its status and headers.
pub(crate) fn problem(problem: &Problem) -> HttpResponse {
    let answer = json(status(problem.code), problem.render());
    with_error_headers(answer, problem.code, problem.retry)
}

/// The headers that every error carries.
pub(crate) fn with_error_headers(
    mut answer: HttpResponse,
    code: Code,
    retry: RetryAdvice,
) -> HttpResponse {
    let headers = answer.headers_mut();
    let wait = match retry {
        RetryAdvice::Never => None,
        RetryAdvice::Soon => Some(RETRY_SOON),
        RetryAdvice::After(wait) => Some(wait),
        RetryAdvice::WhileHeld(_) => Some(held_wait()),
    };
    headers.insert(X_SHOULD_RETRY, flag(wait.is_some()));
    let jittered = |wait| match retry {
        // Spread already: a second more would be beyond its end.
        RetryAdvice::WhileHeld(_) => whole_ms(wait),
        RetryAdvice::Never | RetryAdvice::Soon | RetryAdvice::After(_) => jittered_ms(wait),
    };
    if let Some(wait_ms) = wait.map(jittered) {
        // Official SDKs read the milliseconds. Seconds are rounded up: too early is refused again.
        headers.insert(RETRY_AFTER, HeaderValue::from(wait_ms.div_ceil(1_000)));
        headers.insert(RETRY_AFTER_MS, HeaderValue::from(wait_ms));
    }
    if code == Code::InvalidApiKey {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    // What is left of such a request is not read: the connection cannot be used again.
    if matches!(code, Code::RequestTooLarge | Code::RequestTimeout | Code::HeadersTooLarge) {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// Names the request that is answered.
pub(crate) fn with_request_id(mut answer: HttpResponse, id: Uuid) -> HttpResponse {
    let mut spelled = Uuid::encode_buffer();
    if let Ok(id) = HeaderValue::from_str(id.as_hyphenated().encode_lower(&mut spelled)) {
        answer.headers_mut().insert(X_REQUEST_ID, id);
    }
    answer
}

/// The status of a code.
pub(crate) fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The refusal of a method.
pub(crate) fn not_allowed(allowed: &'static str) -> HttpResponse {
    let message = format!(
        "Send the request with {}: this path accepts no other method.",
        allowed.replace(", ", " or ")
    );
    let refused = Problem { message: message.into(), ..Problem::new(Code::MethodNotAllowed) };
    let mut answer = problem(&refused);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

pub(crate) fn flag(value: bool) -> HeaderValue {
    HeaderValue::from_static(if value { "true" } else { "false" })
}

/// Up to a second more than this, so that many clients that were turned away together do not come back
/// together.
fn jittered_ms(wait: Duration) -> u64 {
    // A byte is enough: 256 steps of 4 ms.
    let [random, ..] = *Uuid::new_v4().as_bytes();
    whole_ms(wait).saturating_add(u64::from(random) * 4).clamp(1, RETRY_MS_MAX)
}

/// Wait of a request whose funds running operations hold, 2 to 10 s in 256 steps: most of them end within seconds.
fn held_wait() -> Duration {
    let (from, to) = (Duration::from_secs(2), Duration::from_secs(10));
    let [random, ..] = *Uuid::new_v4().as_bytes();
    from + to.saturating_sub(from) * u32::from(random) / u32::from(u8::MAX)
}

/// Whole milliseconds, rounded up.
fn whole_ms(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros().div_ceil(1_000)).unwrap_or(RETRY_MS_MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_wait_between_two_times_is_spread_over_all_of_it() {
        let told = |_| {
            let advice = RetryAdvice::WhileHeld(None);
            let answer = json(StatusCode::PAYMENT_REQUIRED, "{}");
            let answer = with_error_headers(answer, Code::InsufficientFunds, advice);
            assert_eq!(answer.headers()[X_SHOULD_RETRY], "true");
            answer.headers()[RETRY_AFTER_MS].to_str().unwrap().parse::<u64>().unwrap()
        };
        let waits: BTreeSet<u64> = (0..2_000).map(told).collect();
        assert!(waits.iter().all(|wait| (2_000..=10_000).contains(wait)), "{waits:?}");
        assert!(waits.len() > 100, "clients that were turned away together come back apart");
        assert!(waits.first() < Some(&2_200) && waits.last() > Some(&9_800), "{waits:?}");
    }
}
