//! What a whole answer looks like, in one place: every header by name, every member of every body.

use std::time::{Duration, Instant};

use holdfast_tests::{Answer, PATIENCE};
use holdfast_wire::error::Code;
use serde_json::{Value, json};
use uuid::Uuid;

/// The table of errors as it is promised: code, name, status, type, whether to try again.
#[rustfmt::skip]
pub(crate) const ROWS: [(Code, &str, u16, &str, bool); 36] = [
    (Code::IdempotencyKeyRequired, "idempotency_key_required", 400, "invalid_request_error", false),
    (Code::IdempotencyKeyMalformed, "idempotency_key_malformed", 400, "invalid_request_error", false),
    (Code::InvalidJson, "invalid_json", 400, "invalid_request_error", false),
    (Code::InvalidValue, "invalid_value", 400, "invalid_request_error", false),
    (Code::UnknownParameter, "unknown_parameter", 400, "invalid_request_error", false),
    (Code::UnsupportedParameter, "unsupported_parameter", 400, "invalid_request_error", false),
    (Code::ContextLengthExceeded, "context_length_exceeded", 400, "invalid_request_error", false),
    (Code::InvalidApiKey, "invalid_api_key", 401, "invalid_request_error", false),
    (Code::InsufficientFunds, "insufficient_funds", 402, "insufficient_quota", false),
    (Code::SpendLimitExceeded, "spend_limit_exceeded", 402, "insufficient_quota", false),
    (Code::ChargeLimitExceeded, "charge_limit_exceeded", 402, "insufficient_quota", false),
    (Code::ApiKeySuspended, "api_key_suspended", 403, "invalid_request_error", false),
    (Code::WalletSuspended, "wallet_suspended", 403, "invalid_request_error", false),
    (Code::ModelNotAllowed, "model_not_allowed", 403, "invalid_request_error", false),
    (Code::ModelNotFound, "model_not_found", 404, "invalid_request_error", false),
    (Code::NotFound, "not_found", 404, "invalid_request_error", false),
    (Code::MethodNotAllowed, "method_not_allowed", 405, "invalid_request_error", false),
    (Code::RequestTimeout, "request_timeout", 408, "invalid_request_error", true),
    (Code::RequestTooLarge, "request_too_large", 413, "invalid_request_error", false),
    (Code::UnsupportedMediaType, "unsupported_media_type", 415, "invalid_request_error", false),
    (Code::HeadersTooLarge, "headers_too_large", 431, "invalid_request_error", false),
    (Code::IdempotencyKeyConflict, "idempotency_key_conflict", 409, "idempotency_error", false),
    (Code::OperationInProgress, "operation_in_progress", 409, "idempotency_error", true),
    (Code::LedgerRestored, "ledger_restored", 409, "idempotency_error", true),
    (Code::ResultExpired, "result_expired", 410, "idempotency_error", false),
    (Code::ResultSealed, "result_sealed", 410, "idempotency_error", false),
    (Code::ProviderRefused, "provider_refused", 422, "invalid_request_error", false),
    (Code::RateLimitExceeded, "rate_limit_exceeded", 429, "rate_limit_error", true),
    (Code::TooManyOperations, "too_many_operations", 429, "rate_limit_error", true),
    (Code::InternalError, "internal_error", 500, "server_error", true),
    (Code::OutcomeUnknown, "outcome_unknown", 502, "server_error", false),
    (Code::UpstreamUnavailable, "upstream_unavailable", 503, "server_error", true),
    (Code::StorageUnavailable, "storage_unavailable", 503, "server_error", true),
    (Code::Draining, "draining", 503, "server_error", true),
    (Code::Overloaded, "overloaded", 503, "server_error", true),
    (Code::GatewayUnreachable, "gateway_unreachable", 503, "server_error", true),
];

/// Headers of every answer of the public API. The connection closes because the tests' client asks.
const ALWAYS: [&str; 4] = ["connection", "content-length", "content-type", "date"];

/// Names of an answer's headers. A gateway of a release before has no `x-content-type-options`.
fn header_names(answer: &Answer) -> Vec<&str> {
    let mut names = answer.header_names();
    names.retain(|name| *name != "x-content-type-options");
    names
}

/// An error as it should be told.
#[derive(Debug, Clone)]
pub(crate) struct ExpectedError {
    code: Code,
    param: Option<&'static str>,
    echo: Option<String>,
    replayed: Option<bool>,
    is_bound: bool,
    bill: Option<(i64, Value)>,
    charged: Option<i64>,
    allow: Option<&'static str>,
    retry: Option<bool>,
}

/// An error of the public API, told before a key was looked at.
pub(crate) fn error(code: Code) -> ExpectedError {
    ExpectedError {
        code,
        param: None,
        echo: None,
        replayed: None,
        is_bound: false,
        bill: None,
        charged: None,
        allow: None,
        retry: None,
    }
}

impl ExpectedError {
    /// It is about this field.
    pub(crate) fn param(self, param: &'static str) -> Self {
        Self { param: Some(param), ..self }
    }

    /// It repeats this request key.
    pub(crate) fn echo(self, request_key: &str) -> Self {
        Self { echo: Some(request_key.to_owned()), ..self }
    }

    /// It says whether it was told before.
    pub(crate) fn replayed(self, replayed: bool) -> Self {
        Self { replayed: Some(replayed), ..self }
    }

    /// It names the operation that the key is bound to.
    pub(crate) fn bound(self) -> Self {
        Self { is_bound: true, ..self }
    }

    /// It tells a charge and what it was for.
    pub(crate) fn billed(self, charge: i64, meters: Value) -> Self {
        Self { bill: Some((charge, meters)), ..self }
    }

    /// It tells a charge that is not settled yet.
    pub(crate) fn charged(self, charge: i64) -> Self {
        Self { charged: Some(charge), ..self }
    }

    /// It names the method that would do.
    pub(crate) fn allow(self, method: &'static str) -> Self {
        Self { allow: Some(method), ..self }
    }

    /// Another try never helps, although it does where the error is usually told.
    pub(crate) fn for_good(self) -> Self {
        Self { retry: Some(false), ..self }
    }

    /// Running operations hold what is missing, so that another try may help.
    pub(crate) fn while_held(self) -> Self {
        Self { retry: Some(true), ..self }
    }

    /// Compares the whole answer, of a case of a table.
    #[track_caller]
    pub(crate) fn check_case(&self, name: &str, answer: &Answer) -> Value {
        let (_, code, status, ..) = row(self.code);
        assert_eq!(answer.status, status, "{name} is {code}: {answer:?}");
        assert_eq!(answer.json()["error"]["code"], code, "{name}");
        self.check(answer)
    }

    /// Compares the whole answer, and gives the error that it tells.
    #[track_caller]
    pub(crate) fn check(&self, answer: &Answer) -> Value {
        let (_, name, status, kind, retry) = row(self.code);
        assert_eq!(answer.status, status, "{answer:?}");
        self.check_headers(answer, self.retry.unwrap_or(retry));
        let body = answer.json();
        assert_eq!(members(&body), ["error"]);
        let error = &body["error"];
        // Where the outcome is still to be confirmed nobody knows what it will cost.
        let is_open = matches!(
            self.code,
            Code::OperationInProgress | Code::LedgerRestored | Code::StorageUnavailable
        );
        let (charge, meters) = match (&self.bill, self.charged) {
            (Some((charge, meters)), _) => (json!(charge), meters.clone()),
            (None, Some(charge)) => (json!(charge), Value::Null),
            (None, None) => (if is_open { Value::Null } else { json!(0) }, Value::Null),
        };
        let mut names = vec!["code", "message", "param", "type"];
        names.extend((!charge.is_null()).then_some("charged_micros"));
        names.extend(self.is_bound.then_some("operation_id"));
        names.extend((self.retry == Some(true)).then_some("held_micros"));
        names.extend(self.bill.as_ref().map(|_| "meters"));
        names.sort_unstable();
        assert_eq!(members(error), names, "{body}");
        assert_eq!(error["code"], name);
        assert_eq!(error["type"], kind);
        assert_eq!(error["param"], json!(self.param), "{body}");
        assert_eq!(error["charged_micros"], charge);
        assert_eq!(error["meters"], meters);
        assert!(error["message"].as_str().is_some_and(|text| text.ends_with(['.', '"'])), "{body}");
        error.clone()
    }

    #[track_caller]
    fn check_headers(&self, answer: &Answer, retry: bool) {
        let mut names = ALWAYS.to_vec();
        names.push("x-should-retry");
        names.push("x-request-id");
        names.extend(retry.then_some(["retry-after", "retry-after-ms"]).into_iter().flatten());
        names.extend(self.echo.as_ref().map(|_| "idempotency-key"));
        names.extend(self.replayed.map(|_| "idempotent-replayed"));
        names.extend(self.allow.map(|_| "allow"));
        names.extend((self.code == Code::InvalidApiKey).then_some("www-authenticate"));
        names.sort_unstable();
        assert_eq!(header_names(answer), names, "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("x-should-retry"), Some(if retry { "true" } else { "false" }));
        assert_eq!(answer.header("idempotency-key"), self.echo.as_deref());
        assert_eq!(answer.header("idempotent-replayed"), self.replayed.map(spelled));
        assert_eq!(answer.header("allow"), self.allow);
        check_request_id(answer);
        if retry {
            let number = |name| answer.header(name).unwrap().parse::<u64>().unwrap();
            let (seconds, millis) = (number("retry-after"), number("retry-after-ms"));
            assert!((1..=60).contains(&seconds) && (1..=60_000).contains(&millis), "{answer:?}");
            assert_eq!(seconds, millis.div_ceil(1_000), "both say the same");
        }
    }
}

/// The row of a code.
fn row(code: Code) -> (Code, &'static str, u16, &'static str, bool) {
    ROWS.into_iter().find(|row| row.0 == code).unwrap_or_else(|| panic!("no row for {code:?}"))
}

pub(crate) fn spelled(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}

#[track_caller]
pub(crate) fn check_request_id(answer: &Answer) {
    let id = answer.header("x-request-id").unwrap_or_else(|| panic!("no id: {answer:?}"));
    assert_eq!(Uuid::parse_str(id).unwrap().to_string(), id);
}

/// A whole answer that is JSON and no completion, and its body.
#[track_caller]
pub(crate) fn check_json(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    let mut names = ALWAYS.to_vec();
    names.push("x-request-id");
    assert_eq!(header_names(answer), names, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    check_request_id(answer);
    answer.json()
}

/// A whole completion, and its body.
#[track_caller]
pub(crate) fn check_completion(answer: &Answer, request_key: &str, replayed: bool) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut names = ALWAYS.to_vec();
    names.extend(["idempotency-key", "idempotent-replayed"]);
    names.push("x-request-id");
    assert_eq!(header_names(answer), names, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("idempotency-key"), Some(request_key));
    assert_eq!(answer.header("idempotent-replayed"), Some(spelled(replayed)));
    check_request_id(answer);
    let body = answer.json();
    assert_eq!(members(&body), ["choices", "created", "id", "model", "object", "usage"]);
    assert_eq!(body["object"], "chat.completion");
    let id = body["id"].as_str().unwrap();
    let digits = id.strip_prefix("chatcmpl_").unwrap();
    assert!(digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
    assert!(body["created"].as_i64().unwrap() > 1_700_000_000);
    body
}

/// What the first choice says.
#[track_caller]
pub(crate) fn content(completion: &Value) -> &str {
    completion["choices"][0]["message"]["content"].as_str().unwrap()
}

/// What a completion says that its caller pays.
#[track_caller]
pub(crate) fn charge(completion: &Value) -> i64 {
    completion["usage"]["customer_charge_micros"].as_i64().unwrap()
}

/// The names of an object's members, sorted.
#[track_caller]
pub(crate) fn members(object: &Value) -> Vec<&str> {
    let object = object.as_object().unwrap_or_else(|| panic!("no object: {object}"));
    let mut names: Vec<_> = object.keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Meters with these counts and no others.
pub(crate) fn meters(counts: &[(&str, u64)]) -> Value {
    let kinds = [
        "input",
        "cached_input",
        "cache_write",
        "audio_input",
        "output",
        "reasoning",
        "audio_output",
        "request",
        "image",
    ];
    let count = |kind| counts.iter().find(|(name, _)| *name == kind).map_or(0, |(_, count)| *count);
    kinds.into_iter().map(|kind| (kind.to_owned(), json!(count(kind)))).collect()
}

/// Looks again and again at what tells no one when it changes.
#[track_caller]
pub(crate) fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
