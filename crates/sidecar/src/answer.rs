//! Meaning of an answer of the gateway for its slot and for its caller: the one place that reads the
//! gateway's hints.

use holdfast_wire::error::{Code, KeyEffect};
use holdfast_wire::json;
use http::{HeaderMap, HeaderName, StatusCode};

use crate::table::CallEnd;

/// The gateway's word on whether the same request with the same key may fare better.
pub(crate) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// Beginning of the data of an error event, as the gateway renders it.
const ERROR: &[u8] = b"{\"error\":";

/// Meaning of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// An answer of the model.
    Success,
    /// The gateway requests a retry under the key. The end is that of a call for which there is no time for
    /// one.
    Retry(CallEnd),
    /// The end of the call, or an answer that is not the gateway's; passed on.
    PassOn(CallEnd),
}

/// Meaning of an answer that came whole.
pub(crate) fn meaning(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Meaning {
    if status.is_success() {
        return Meaning::Success;
    }
    match headers.get(SHOULD_RETRY).map(http::HeaderValue::as_bytes) {
        Some(b"true") => Meaning::Retry(code_of(body).map_or(CallEnd::Unsure, end_of)),
        Some(b"false") if is_bound(status, body) => Meaning::PassOn(CallEnd::Final),
        Some(b"false") => Meaning::PassOn(CallEnd::Refused),
        // Not the gateway's: somebody between, who does not know what became of the request.
        Some(_) | None => Meaning::PassOn(CallEnd::Unsure),
    }
}

/// Meaning of an error event; `None` for any other event.
pub(crate) fn event_meaning(data: &[u8]) -> Option<Meaning> {
    if !data.starts_with(ERROR) {
        return None;
    }
    Some(match code_of(data) {
        Some(code) if code.retry() => Meaning::Retry(end_of(code)),
        Some(code) => Meaning::PassOn(end_of(code)),
        None => Meaning::PassOn(CallEnd::Unsure),
    })
}

/// Code of an error, if it is one that this version knows.
fn code_of(body: &[u8]) -> Option<Code> {
    let error = json::parse_answer(body).ok()?;
    let label = error.get("error")?.get("code")?.as_str()?;
    Code::ALL.into_iter().find(|code| code.label() == label)
}

/// End of a call whose last answer this is. A bound key has one run, and one that may be bound may have: either
/// stays the call's, even if its next answer differs.
const fn end_of(code: Code) -> CallEnd {
    match code.key_effect() {
        KeyEffect::Final => CallEnd::Final,
        KeyEffect::Untouched => CallEnd::Retryable,
        KeyEffect::Unsure | KeyEffect::Bound => CallEnd::Unsure,
    }
}

/// True if an error is of an operation, which every retry under its key gets too.
fn is_bound(status: StatusCode, body: &[u8]) -> bool {
    let is_final = [StatusCode::UNPROCESSABLE_ENTITY, StatusCode::BAD_GATEWAY, StatusCode::GONE];
    is_final.contains(&status)
        || json::parse_answer(body)
            .is_ok_and(|it| it.get("error").is_some_and(|it| it.get("operation_id").is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, hint: Option<&'static str>, body: &str, meaning: Meaning) {
        let mut headers = HeaderMap::new();
        headers.extend(hint.map(|hint| (SHOULD_RETRY, http::HeaderValue::from_static(hint))));
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(super::meaning(status, &headers, body.as_bytes()), meaning, "{status} {hint:?}");
    }

    #[test]
    fn only_errors_of_the_gateway_trigger_a_retry() {
        let own = r#"{"error":{"code":"x","operation_id":"1"}}"#;
        check(200, None, "", Meaning::Success);
        for status in [409, 429, 500, 503] {
            check(status, Some("true"), own, Meaning::Retry(CallEnd::Unsure));
        }
        for status in [502, 503, 504] {
            check(status, None, "<html>", Meaning::PassOn(CallEnd::Unsure));
        }
        for status in [422, 502, 410] {
            check(status, Some("false"), "", Meaning::PassOn(CallEnd::Final));
        }
        check(400, Some("false"), own, Meaning::PassOn(CallEnd::Final));
        for status in [400, 401, 402, 403, 404, 413] {
            let error = r#"{"error":{"code":"x"}}"#;
            check(status, Some("false"), error, Meaning::PassOn(CallEnd::Refused));
        }
    }

    #[test]
    fn funds_that_runs_hold_are_waited_for() {
        let held = r#"{"error":{"code":"insufficient_funds","held_micros":40}}"#;
        check(402, Some("true"), held, Meaning::Retry(CallEnd::Retryable));
        check(402, Some("false"), held, Meaning::PassOn(CallEnd::Refused));
    }

    #[test]
    fn an_answer_that_helps_to_be_asked_again_says_whether_the_key_may_be_bound() {
        for (code, end) in [
            (Code::OperationInProgress, CallEnd::Unsure),
            (Code::InternalError, CallEnd::Unsure),
            (Code::UpstreamUnavailable, CallEnd::Unsure),
            (Code::StorageUnavailable, CallEnd::Unsure),
            (Code::RateLimitExceeded, CallEnd::Retryable),
            (Code::TooManyOperations, CallEnd::Retryable),
            (Code::Draining, CallEnd::Retryable),
            (Code::Overloaded, CallEnd::Retryable),
        ] {
            let body = format!("{{\"error\":{{\"code\":\"{}\"}}}}", code.label());
            check(code.status(), Some("true"), &body, Meaning::Retry(end));
        }
    }

    #[test]
    fn an_event_tells_of_an_error_by_its_code() {
        let of =
            |code: &str| event_meaning(format!("{{\"error\":{{\"code\":\"{code}\"}}}}").as_bytes());
        assert_eq!(of("draining"), Some(Meaning::Retry(CallEnd::Retryable)));
        assert_eq!(of("storage_unavailable"), Some(Meaning::Retry(CallEnd::Unsure)));
        assert_eq!(of("outcome_unknown"), Some(Meaning::PassOn(CallEnd::Final)));
        assert_eq!(of("nobody_knows"), Some(Meaning::PassOn(CallEnd::Unsure)));
        assert_eq!(event_meaning(b"{\"id\":\"error\"}"), None);
    }
}
