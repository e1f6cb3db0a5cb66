//! Request headers, read strictly: a header that must be single and comes twice is refused, or counts as
//! absent. Proxies differ on which of two equal headers they believe, so that accepting either one would let a
//! request mean different operations at different hops.
//!
//! - `Host`: exactly one, from HTTP/1.1 on.
//! - `Authorization`: one bearer credential.
//! - `Idempotency-Key`: one, well formed, bare or in the double quotes of the IETF's draft; its bare
//!   form is echoed in every answer.
//! - `Holdfast-Max-Charge-Micros`: a whole number of micros, or absent.
//! - `Holdfast-Replay-Only`: `true`, or absent.
//! - `Content-Type`, `Content-Encoding`, `Transfer-Encoding`: plain JSON, whole or in chunks.
//! - `traceparent`: one, well formed, or none; `tracestate` and `baggage` are not read.
//! - `x-stainless-…-timeout`: a hint, and ignored if it cannot be read.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::{Micros, RequestKey};
use holdfast_engine::RunMode;
use holdfast_telemetry::traces::SpanContext;
use holdfast_wire::chat::request::BadRequest;
use holdfast_wire::error::{Code, KeyPlace, malformed_key, repeated_key, two_keys};
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Method, Uri, Version};

use crate::problem::Problem;
use crate::reply::{IDEMPOTENCY_KEY, X_IDEMPOTENCY_KEY};

const REPLAY_ONLY: HeaderName = HeaderName::from_static("holdfast-replay-only");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const MAX_CHARGE: HeaderName = HeaderName::from_static("holdfast-max-charge-micros");
/// Headers in which official SDKs announce their timeout, in seconds, perhaps with a fraction.
const ANNOUNCED: [HeaderName; 2] = [
    HeaderName::from_static("x-stainless-read-timeout"),
    HeaderName::from_static("x-stainless-timeout"),
];
/// Shortest announced timeout that is believed; a shorter one counts as this.
const ANNOUNCED_MIN: Duration = Duration::from_secs(5);
/// Margin before the announced timeout: the answer has to reach the caller while it listens.
const ANNOUNCED_MARGIN: Duration = Duration::from_secs(2);

/// Size of a head on the wire in bytes, roughly: target, names, values, and four bytes a field
/// for the colon, the space and the line's end.
pub(crate) fn head_bytes(uri: &Uri, headers: &HeaderMap) -> usize {
    let fields = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
    fields.sum::<usize>() + target
}

/// True for a head with exactly one valid `Host`, as HTTP/1.1 demands, or with none in HTTP/1.0.
/// Of several, servers on the way would choose differently.
pub(crate) fn has_host(head: &Parts) -> bool {
    let mut hosts = head.headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => head.version < Version::HTTP_11,
        (Some(_), Some(_)) => false,
        (Some(host), None) => host.to_str().is_ok_and(is_host),
    }
}

fn is_host(text: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    // Most are plain names, and an empty one is valid (RFC 9112, 3.2). The parser alone would
    // also take `me@a`, whose first part is no host.
    text.bytes().all(is_name) || (!text.contains('@') && text.parse::<Authority>().is_ok())
}

/// Refusal of a head without exactly one valid `Host`.
pub(crate) fn no_host() -> Problem {
    Problem {
        message: "Send exactly one Host header, with the name that you connect to.".into(),
        param: Some("Host".into()),
        ..Problem::new(Code::InvalidValue)
    }
}

/// Bearer token of the request; `None` for anything but exactly one bearer credential.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, text) = once(headers, AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(text.trim_matches(' '))
}

/// Span in which the caller sent the request; `None` if the header is missing, repeated or malformed.
pub(crate) fn caller_span(headers: &HeaderMap) -> Option<SpanContext> {
    SpanContext::parse(once(headers, TRACEPARENT)?.as_bytes())
}

/// Name of a method that HTTP defines; `_OTHER`, as the conventions have it, for one that a caller made up.
pub(crate) fn method_name(method: &Method) -> &'static str {
    const KNOWN: [&str; 9] =
        ["POST", "GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT"];
    KNOWN.into_iter().find(|known| method == known).unwrap_or("_OTHER")
}

/// Request key of a completion: in `Idempotency-Key`, or in `X-Idempotency-Key` if that alone is there, because
/// proxies forward headers with `x-`. A missing, a repeated and a malformed one are three errors, two keys that
/// differ are a fourth.
pub(crate) fn request_key(headers: &HeaderMap) -> Result<RequestKey, Problem> {
    let malformed = |message: String| Problem {
        message: message.into(),
        ..Problem::new(Code::IdempotencyKeyMalformed)
    };
    let read = |name| {
        // Twice is not absent: the usual advice to send a key would hide the bug.
        let value = once(headers, name).ok_or_else(|| malformed(repeated_key()))?;
        read_key(unquoted(value.as_bytes()), KeyPlace::Header)
    };
    let forwarded = headers.contains_key(X_IDEMPOTENCY_KEY);
    match (headers.contains_key(IDEMPOTENCY_KEY), forwarded) {
        (false, false) => Err(Problem::new(Code::IdempotencyKeyRequired)),
        (false, true) => read(X_IDEMPOTENCY_KEY),
        (true, false) => read(IDEMPOTENCY_KEY),
        (true, true) => {
            let key = read(IDEMPOTENCY_KEY)?;
            let is_same = read(X_IDEMPOTENCY_KEY).is_ok_and(|other| other == key);
            is_same.then_some(key).ok_or_else(|| malformed(two_keys()))
        }
    }
}

/// Text of a header without one pair of double quotes around it: the IETF's draft sends the key as a
/// string of structured fields. Escapes and parameters stay, and fail the check of the key.
fn unquoted(value: &[u8]) -> &[u8] {
    let inner = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    inner.unwrap_or(value)
}

/// Reads the request key that a path ends with.
pub(crate) fn request_key_of_path(text: &str) -> Result<RequestKey, Problem> {
    read_key(text.as_bytes(), KeyPlace::Path)
}

fn read_key(text: &[u8], place: KeyPlace) -> Result<RequestKey, Problem> {
    let parsed = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| Problem {
        message: malformed_key(text, place).into(),
        ..Problem::new(Code::IdempotencyKeyMalformed)
    })
}

/// Request key to echo in the answer: only a well-formed one, in its one bare spelling. `X-Idempotency-Key` is one of
/// completions alone.
pub(crate) fn echo(headers: &HeaderMap, is_completion: bool) -> Option<HeaderValue> {
    let is_forwarded = is_completion && !headers.contains_key(IDEMPOTENCY_KEY);
    let value = once(headers, if is_forwarded { X_IDEMPOTENCY_KEY } else { IDEMPOTENCY_KEY })?;
    let key = unquoted(value.as_bytes());
    read_key(key, KeyPlace::Header).ok()?;
    if key.len() == value.len() { Some(value.clone()) } else { HeaderValue::from_bytes(key).ok() }
}

/// Mode of the request: may it run, or only be answered from the record of its key? Every value but exactly
/// `true` is an error: a caller that forbids a run must not get one because of a misspelling.
pub(crate) fn run_mode(headers: &HeaderMap) -> Result<RunMode, Problem> {
    if !headers.contains_key(REPLAY_ONLY) {
        return Ok(RunMode::RunOrReplay);
    }
    let is_true = once(headers, REPLAY_ONLY).is_some_and(|value| value.as_bytes() == b"true");
    is_true.then_some(RunMode::ReplayOnly).ok_or_else(|| Problem {
        message: "Send Holdfast-Replay-Only once, as `true`, or leave it out.".into(),
        param: Some("Holdfast-Replay-Only".into()),
        ..Problem::new(Code::InvalidValue)
    })
}

/// Upper bound of the request's hold in micros, `None` if the caller sets none. An error refuses a new request
/// only: if the key is bound already, the replay is free of charge.
pub(crate) fn max_charge(headers: &HeaderMap) -> Result<Option<Micros>, Arc<BadRequest>> {
    if !headers.contains_key(MAX_CHARGE) {
        return Ok(None);
    }
    let value = once(headers, MAX_CHARGE).and_then(|value| value.to_str().ok());
    let micros = value
        // Rust's parser takes signs, `-5` and `+5`, that this header does not.
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse::<i64>().ok());
    micros.map(|micros| Some(Micros::new(micros))).ok_or_else(|| {
        Arc::new(BadRequest {
            code: Code::InvalidValue,
            param: Some("Holdfast-Max-Charge-Micros".into()),
            message: "Send Holdfast-Max-Charge-Micros once, as a whole number of micros."
                .to_owned(),
        })
    })
}

/// True for a body announced as JSON without compression.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    let is_plain = encodings.all(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"));
    is_plain && is_sent_plainly(headers) && is_json_type(headers)
}

/// True for a body without transfer coding, or with `chunked` alone.
fn is_sent_plainly(headers: &HeaderMap) -> bool {
    !headers.contains_key(TRANSFER_ENCODING)
        || once(headers, TRANSFER_ENCODING)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"chunked"))
}

fn is_json_type(headers: &HeaderMap) -> bool {
    once(headers, CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// Longest wait of this caller for a running operation: two seconds less than its announced
/// timeout, and never longer than `longest`.
pub(crate) fn retry_wait(headers: &HeaderMap, longest: Duration) -> Duration {
    let announced = ANNOUNCED.into_iter().filter_map(|name| {
        let text = once(headers, name)?.to_str().ok()?;
        let seconds = text.split('.').next()?.parse().ok()?;
        Some(Duration::from_secs(seconds).max(ANNOUNCED_MIN).saturating_sub(ANNOUNCED_MARGIN))
    });
    announced.fold(longest, Duration::min)
}

fn once(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_first| values.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn only_one_bearer_credential_is_one() {
        assert_eq!(bearer(&headers(&[("authorization", "Bearer abc")])), Some("abc"));
        assert_eq!(bearer(&headers(&[("authorization", "bearer abc")])), Some("abc"));
        for bad in [&[][..], &[("authorization", "Basic abc")], &[("authorization", "abc")]] {
            assert_eq!(bearer(&headers(bad)), None, "{bad:?}");
        }
        let twice = [("authorization", "Bearer a"), ("authorization", "Bearer a")];
        assert_eq!(bearer(&headers(&twice)), None);
    }

    #[test]
    fn a_key_may_stand_in_one_pair_of_quotes() {
        const KEY: &str = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
        let bare = headers(&[("idempotency-key", KEY)]);
        let quoted = headers(&[("idempotency-key", "\"7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11\"")]);
        for head in [&bare, &quoted] {
            assert_eq!(request_key(head).unwrap(), KEY.parse().unwrap());
            assert_eq!(echo(head, true).unwrap(), KEY);
        }
        for bad in [
            "\"\"7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11\"\"",
            "\"7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
            "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11\"",
            "\"7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11\";a=1",
            "\" 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11\"",
            "'7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11'",
            "\"7F2C1A9E-5B7D-4C3E-9A51-0F8E6D2B4C11\"",
            "\"\"",
            "\"",
        ] {
            let head = headers(&[("idempotency-key", bad)]);
            assert!(request_key(&head).is_err(), "{bad}");
            assert_eq!(echo(&head, true), None, "{bad}");
        }
        assert!(request_key_of_path("\"7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11\"").is_err());
    }

    #[test]
    fn a_key_that_a_proxy_forwards_serves_where_it_is_alone_or_the_same() {
        const KEY: &str = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
        const OTHER: &str = "0b4d5c1e-2a3f-4e6d-8c7b-9a0b1c2d3e4f";
        let [own, forwarded] = ["idempotency-key", "x-idempotency-key"];
        for pairs in [&[(forwarded, KEY)][..], &[(own, KEY), (forwarded, KEY)]] {
            let head = headers(pairs);
            assert_eq!(request_key(&head).unwrap(), KEY.parse().unwrap());
            assert_eq!(echo(&head, true).unwrap(), KEY);
        }
        assert_eq!(echo(&headers(&[(forwarded, KEY)]), false), None, "of completions alone");
        for pairs in [
            &[(own, KEY), (forwarded, OTHER)][..],
            &[(own, KEY), (forwarded, "")],
            &[(own, KEY), (forwarded, KEY), (forwarded, KEY)],
            // What is empty or malformed is there.
            &[(own, ""), (forwarded, KEY)],
            &[(own, "7f2c"), (forwarded, KEY)],
            &[(forwarded, KEY), (forwarded, KEY)],
            &[(forwarded, "7f2c")],
            &[(forwarded, "")],
        ] {
            let refused = request_key(&headers(pairs)).unwrap_err();
            assert_eq!(refused.code, Code::IdempotencyKeyMalformed, "{pairs:?}");
        }
        let told = request_key(&headers(&[(own, KEY), (forwarded, OTHER)])).unwrap_err();
        assert!(told.message.contains("Idempotency-Key and X-Idempotency-Key"), "{}", told.message);
    }

    #[test]
    fn only_true_asks_for_a_replay_alone() {
        let mode = |pairs: &[_]| run_mode(&headers(pairs)).ok();
        assert_eq!(mode(&[]), Some(RunMode::RunOrReplay));
        let right = ("holdfast-replay-only", "true");
        assert_eq!(mode(&[right]), Some(RunMode::ReplayOnly));
        for bad in ["false", "True", "1", "", "true, true"] {
            assert_eq!(mode(&[("holdfast-replay-only", bad)]), None, "{bad}");
        }
        assert_eq!(mode(&[right, right]), None);
    }

    #[test]
    fn only_plain_json_is_json() {
        let is = |pairs: &[_]| is_json(&headers(pairs));
        let json = ("content-type", "application/json");
        assert!(is(&[json]));
        assert!(is(&[("content-type", "Application/JSON; charset=utf-8")]));
        assert!(is(&[json, ("content-encoding", "identity")]));
        assert!(!is(&[json, ("content-encoding", "gzip")]));
        assert!(is(&[json, ("transfer-encoding", "Chunked")]));
        assert!(!is(&[json, ("transfer-encoding", "gzip, chunked")]));
        assert!(!is(&[json, ("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")]));
        assert!(!is(&[json, json]));
        assert!(!is(&[("content-type", "application/json-seq")]));
        assert!(!is(&[]));
    }

    #[test]
    fn a_head_names_one_host() {
        let is = |version, pairs: &[_]| {
            let (mut head, ()) = http::Request::new(()).into_parts();
            (head.version, head.headers) = (version, headers(pairs));
            has_host(&head)
        };
        for good in ["a", "a:1", "[::1]:8080", "127.0.0.1", ""] {
            assert!(is(Version::HTTP_11, &[("host", good)]), "{good}");
        }
        for bad in ["a b", "a, b", "a/b", "http://a", "me@a"] {
            assert!(!is(Version::HTTP_11, &[("host", bad)]), "{bad}");
        }
        assert!(!is(Version::HTTP_11, &[]));
        assert!(is(Version::HTTP_10, &[]));
        assert!(!is(Version::HTTP_10, &[("host", "a"), ("host", "a")]));
    }

    #[test]
    fn a_head_counts_with_its_query() {
        let head = headers(&[("host", "a")]);
        let bytes = |uri: &'static str| head_bytes(&Uri::from_static(uri), &head);
        assert_eq!(bytes("/v1/wallet?abc") - bytes("/v1/wallet"), 4);
    }

    #[test]
    fn retry_wait_ends_before_the_announced_timeout() {
        let longest = Duration::from_secs(600);
        let wait = |pairs: &[_]| retry_wait(&headers(pairs), longest).as_secs();
        assert_eq!(wait(&[]), 600);
        assert_eq!(wait(&[("x-stainless-read-timeout", "60")]), 58);
        assert_eq!(wait(&[("x-stainless-timeout", "60.5")]), 58);
        assert_eq!(wait(&[("x-stainless-timeout", "1")]), 3);
        assert_eq!(wait(&[("x-stainless-timeout", "soon")]), 600);
        assert_eq!(wait(&[("x-stainless-timeout", "99999")]), 600);
        let both = [("x-stainless-read-timeout", "30"), ("x-stainless-timeout", "20")];
        assert_eq!(wait(&both), 18);
    }
}
