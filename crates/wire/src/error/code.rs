//! Codes of errors, a row each, in the form of [`table`](super::table).
//!
//! ```text
//! codes!  Overloaded { cause, label, status, kind, retry, key, step, is_charge_known, param, message }
//!            │            │                 │                                          │
//!            │            docs/reference/errors.md    the body and the headers that callers get ─┘
//!            └ a variant of Code, its place in Code::ALL, its arm of Code::row
//! ```
//!
//! SDKs act on the status first. OpenAI's SDKs, and most that wrap them, try 408, 409, 429 and 5xx three times,
//! some frameworks up to twelve times, unless `x-should-retry` is `false`; a few clients ignore that header.
//!
//! Rows have promises to keep. A message contains the next step and names no internal part; "it will not run
//! twice" and "you were not charged" must hold wherever its code is given. Messages that are made for one
//! request are in `message`.

use KeyEffect::{Bound, Final, Unsure, Untouched};
use Step::{Head, Key, Limits};
use holdfast_domain::operation::ProviderRefusal;

use super::table::kind::{IDEMPOTENCY, INVALID_REQUEST, RATE_LIMIT, SERVER};
use crate::codes;

const QUOTA: &str = "insufficient_quota";

/// Lines to paste, one for each of three clients: no SDK sends an `Idempotency-Key` for chat by itself, so the
/// first error that a new caller sees shows how. `uuidgen` prints capitals on macOS, hence `tr`.
macro_rules! fix {
    () => {
        r#"
Python: client.chat.completions.create(..., extra_headers={"Idempotency-Key": str(uuid.uuid4())})
Node: client.chat.completions.create(body, { headers: { "Idempotency-Key": crypto.randomUUID() } })
curl: -H "Idempotency-Key: $( (uuidgen || cat /proc/sys/kernel/random/uuid) 2>/dev/null | tr A-Z a-z)""#
    };
}

/// Constants of one error.
struct Row {
    /// Cause, as one sentence of the documentation.
    cause: &'static str,
    label: &'static str,
    status: u16,
    kind: &'static str,
    retry: bool,
    key: KeyEffect,
    step: Step,
    is_charge_known: bool,
    param: Option<&'static str>,
    message: &'static str,
}

/// Effect of an error on the request key that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyEffect {
    /// The key is as free or as bound as it was before.
    Untouched,
    /// The key may be bound: free before the claim, bound after it. If it is, the error names its operation.
    Unsure,
    /// The key is bound, and the same request may get another answer later.
    Bound,
    /// The key is bound, and every retry gets this answer.
    Final,
}

/// Last step of a request that may give an error: what the request has passed by then decides its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// Before the idempotency key is read.
    Head,
    /// With the key, and before the limits of the API key count the request.
    Key,
    /// A limit refuses the request, or has counted it.
    Limits,
}

impl KeyEffect {
    /// Wording of the documentation.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Untouched => "untouched",
            Self::Unsure => "may be bound",
            Self::Bound => "bound",
            Self::Final => "bound, replays",
        }
    }
}

impl Code {
    /// The code of a provider's definitive refusal.
    #[must_use]
    pub const fn of(refusal: ProviderRefusal) -> Self {
        match refusal {
            ProviderRefusal::Request => Self::ProviderRefused,
            ProviderRefusal::ContextLength => Self::ContextLengthExceeded,
        }
    }

    /// True if a retry may help in a case that the code does not name: while running operations hold the wallet's
    /// funds, [`Code::InsufficientFunds`] has the headers of a retry.
    #[must_use]
    pub const fn may_pass(self) -> bool {
        matches!(self, Self::InsufficientFunds)
    }

    /// Wording of the documentation for a retry: `true`, `false` or its condition.
    #[must_use]
    pub const fn retry_label(self) -> &'static str {
        match (self.retry(), self.may_pass()) {
            (true, _) => "true",
            (false, true) => "false; true while held",
            (false, false) => "false",
        }
    }

    /// Last step of a request that may give this code.
    pub(crate) const fn step(self) -> Step {
        self.row().step
    }

    /// Effect on the request key.
    #[must_use]
    pub const fn key_effect(self) -> KeyEffect {
        self.row().key
    }

    /// True if the caller's charge is certain when this code is given. It is not while an outcome is still to
    /// be confirmed: a caller that books the reported charge must not book zero then.
    #[must_use]
    pub const fn is_charge_known(self) -> bool {
        self.row().is_charge_known
    }

    /// Target of `param`, in words; null if there is no field to name.
    #[must_use]
    pub const fn param(self) -> Option<&'static str> {
        self.row().param
    }
}

codes! {
    IdempotencyKeyRequired {
        cause: "The request has no `Idempotency-Key`.",
        label: "idempotency_key_required", status: 400, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Head, is_charge_known: true, param: None,
        message: concat!(
            "Send the header Idempotency-Key, exactly once: a new UUIDv4 for every request body, and \
             the same one when you retry that body.",
            fix!()
        ),
    }
    IdempotencyKeyMalformed {
        cause: "The `Idempotency-Key`, or the identifier in the path, is not one canonical UUIDv4, \
            or was sent more than once.",
        label: "idempotency_key_malformed", status: 400, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Head, is_charge_known: true, param: None,
        message: concat!(
            "The header Idempotency-Key must be one UUIDv4 in its canonical spelling, like \
             7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11: 36 lower-case hexadecimal digits and hyphens.",
            fix!()
        ),
    }
    InvalidJson {
        cause: "The body is not one JSON object in UTF-8, a member name stands twice in an object, \
            it is nested deeper than 64, it has more than 131,072 values, or its chunks are \
            garbled.",
        label: "invalid_json", status: 400, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Key, is_charge_known: true, param: None,
        message: "The body is not JSON. Send one JSON object in UTF-8.",
    }
    InvalidValue {
        cause: "A field is missing or has a value that it cannot have.",
        label: "invalid_value", status: 400, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Key, is_charge_known: true,
        param: Some("the field, `Host`, `Holdfast-Max-Charge-Micros` or `Holdfast-Replay-Only`"),
        message: "A field has a value that it cannot have. Correct the field in `param`.",
    }
    UnknownParameter {
        cause: "A field is not known and the model does not accept it by name.",
        label: "unknown_parameter", status: 400, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Key, is_charge_known: true, param: Some("the field"),
        message: "The field in `param` is not known here. Remove it.",
    }
    UnsupportedParameter {
        cause: "A known field needs a feature that the gateway does not support, or that the \
            model does not allow.",
        label: "unsupported_parameter", status: 400, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Key, is_charge_known: true, param: Some("the field"),
        message: "The field in `param` is not supported here. Remove it.",
    }
    ContextLengthExceeded {
        cause: "The provider refused the prompt as too long.",
        // Clients match the first words of the message, and tell by them what is wrong.
        label: "context_length_exceeded", status: 400, kind: INVALID_REQUEST, retry: false,
        key: Final, step: Limits, is_charge_known: true, param: Some("`messages`"),
        message: "This model's maximum context length is less than the prompt needs; you were not \
            charged. Shorten the messages and send them with a new Idempotency-Key.",
    }
    InvalidApiKey {
        cause: "The API key is missing, malformed, unknown, revoked or expired: the same answer \
            for all.",
        // Clients match the first words here too.
        label: "invalid_api_key", status: 401, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Head, is_charge_known: true, param: None,
        message: "Incorrect API key provided. Send `Authorization: Bearer <API key>` with a key \
            that is in force.",
    }
    InsufficientFunds {
        cause: "The wallet has less available than the hold. While running requests hold enough to make up for it, \
            `x-should-retry` is true, and `held_micros` has the amount that they hold if the API \
            key may see the balance.",
        label: "insufficient_funds", status: 402, kind: QUOTA, retry: false,
        key: Untouched, step: Key, is_charge_known: true, param: None,
        // Never sent: `holdfast-http` writes the text, with amounts.
        message: "The wallet has less available than this request may cost. Deposit funds, lower \
            max_completion_tokens, or wait for running requests to end.",
    }
    SpendLimitExceeded {
        cause: "The hold would pass the API key's spend limit.",
        label: "spend_limit_exceeded", status: 402, kind: QUOTA, retry: false,
        key: Untouched, step: Limits, is_charge_known: true, param: None,
        message: "This request may pass the API key's spend limit. Lower max_completion_tokens, or \
            use another API key.",
    }
    ChargeLimitExceeded {
        cause: "The hold would pass `Holdfast-Max-Charge-Micros`.",
        label: "charge_limit_exceeded", status: 402, kind: QUOTA, retry: false,
        key: Untouched, step: Key, is_charge_known: true, param: None,
        message: "This request may cost more than Holdfast-Max-Charge-Micros allows. Raise that \
            header, or lower max_completion_tokens.",
    }
    ApiKeySuspended {
        cause: "The API key is suspended: new requests do not run, and bound keys still answer.",
        label: "api_key_suspended", status: 403, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Key, is_charge_known: true, param: None,
        message: "This API key is suspended. Contact its issuer; earlier requests still answer \
            under their Idempotency-Keys.",
    }
    WalletSuspended {
        cause: "The wallet is suspended: new requests do not run, and bound keys still answer.",
        label: "wallet_suspended", status: 403, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Key, is_charge_known: true, param: None,
        message: "This wallet is suspended. Contact its operator; earlier requests still answer \
            under their Idempotency-Keys.",
    }
    ModelNotAllowed {
        cause: "The API key may not use the model, or the model has no price in the wallet's \
            currency.",
        label: "model_not_allowed", status: 403, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Key, is_charge_known: true, param: Some("`model`"),
        message: "This API key may not use the model. GET /v1/models lists the models that it may \
            use.",
    }
    ModelNotFound {
        cause: "There is no such model, or none that this API key may use and can pay for.",
        label: "model_not_found", status: 404, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Key, is_charge_known: true, param: Some("`model`, if the body has it"),
        message: "There is no such model. GET /v1/models lists the models that this API key may \
            use.",
    }
    NotFound {
        cause: "The path does not exist, the key has no operation, or a request with \
            `Holdfast-Replay-Only` has no answer.",
        label: "not_found", status: 404, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Key, is_charge_known: true, param: None,
        message: "There is no such path or operation. Check the path and the identifier in it.",
    }
    MethodNotAllowed {
        cause: "The path does not accept this method; `allow` lists those that it accepts.",
        label: "method_not_allowed", status: 405, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Head, is_charge_known: true, param: None,
        message: "This path does not take this method. Send the request with one that the `allow` \
            header names.",
    }
    RequestTimeout {
        cause: "The body did not arrive in time.",
        label: "request_timeout", status: 408, kind: INVALID_REQUEST, retry: true,
        key: Untouched, step: Head, is_charge_known: true, param: None,
        message: "The body did not arrive in time. Send the same request with the same \
            Idempotency-Key again, in one go.",
    }
    RequestTooLarge {
        cause: "The body is larger than the model takes.",
        label: "request_too_large", status: 413, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Head, is_charge_known: true, param: None,
        message: "The body is too large. Send a smaller one.",
    }
    UnsupportedMediaType {
        cause: "The body is not announced as plain JSON.",
        label: "unsupported_media_type", status: 415, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Head, is_charge_known: true, param: None,
        message: "The body must be JSON. Send `Content-Type: application/json`, and no content \
            encoding.",
    }
    HeadersTooLarge {
        cause: "The request line and the headers are too large together.",
        label: "headers_too_large", status: 431, kind: INVALID_REQUEST, retry: false,
        key: Untouched, step: Head, is_charge_known: true, param: None,
        message: "The head of the request is too large. Send fewer or shorter headers.",
    }
    IdempotencyKeyConflict {
        cause: "The key is bound to another request. The error has no detail of that request.",
        // Most SDKs retry a 409 unless `retry` says no. No retry helps here; an operation that still
        // runs, the next row, has an answer later.
        label: "idempotency_key_conflict", status: 409, kind: IDEMPOTENCY, retry: false,
        key: Untouched, step: Key, is_charge_known: true, param: None,
        message: "This Idempotency-Key belongs to another request. Use a new key for every request \
            body, and the same one only to retry that body: not one for a whole client, as a \
            default header of it would be.",
    }
    OperationInProgress {
        cause: "The key's operation still runs and this request cannot wait any longer.",
        // What it will cost is not settled yet.
        label: "operation_in_progress", status: 409, kind: IDEMPOTENCY, retry: true,
        key: Bound, step: Key, is_charge_known: false, param: None,
        message: "This operation still runs. Send the same request with the same Idempotency-Key \
            again later: it will not run twice.",
    }
    LedgerRestored {
        cause: "The ledger was restored from a backup that does not know the key, or has it as not run, and the API \
            key is older than the restore: the key may have run before. Nothing ran now and nothing is bound.",
        // The copy has forgotten what the key may have cost.
        label: "ledger_restored", status: 409, kind: IDEMPOTENCY, retry: true,
        key: Unsure, step: Key, is_charge_known: false, param: None,
        message: "The ledger was restored from a backup that does not know this Idempotency-Key: the request may \
            have run and been charged before. Nothing ran now. Send the same request again later with the same \
            Idempotency-Key. Under an API key that the operator issues after the restore it runs at once, and may \
            be charged a second time.",
    }
    ResultExpired {
        cause: "The operation completed and its answer is no longer kept.",
        label: "result_expired", status: 410, kind: IDEMPOTENCY, retry: false,
        key: Final, step: Key, is_charge_known: true, param: None,
        message: "This operation has ended and its answer is no longer kept. A new Idempotency-Key \
            starts a new, paid run.",
    }
    ResultSealed {
        cause: "The operation completed and its answer opens only with the credential of its \
            request.",
        label: "result_sealed", status: 410, kind: IDEMPOTENCY, retry: false,
        key: Final, step: Key, is_charge_known: true, param: None,
        message: "This operation has ended and its answer opens only with the credential that \
            asked for it. Retry with that credential; a new Idempotency-Key starts a new, paid \
            run.",
    }
    ProviderRefused {
        cause: "The provider refused the request for good.",
        // Most clients do not retry a 422, also those that ignore `x-should-retry`.
        label: "provider_refused", status: 422, kind: INVALID_REQUEST, retry: false,
        key: Final, step: Limits, is_charge_known: true, param: None,
        message: "The model's provider refused this request; you were not charged. Change the \
            request and send it with a new Idempotency-Key.",
    }
    RateLimitExceeded {
        cause: "A limit of the API key is reached.",
        label: "rate_limit_exceeded", status: 429, kind: RATE_LIMIT, retry: true,
        key: Untouched, step: Limits, is_charge_known: true, param: None,
        message: "A limit of this API key is reached. Send the same request with the same \
            Idempotency-Key again after `retry-after`.",
    }
    TooManyOperations {
        cause: "Too many requests of the API key, or for one operation, are in flight.",
        label: "too_many_operations", status: 429, kind: RATE_LIMIT, retry: true,
        key: Untouched, step: Key, is_charge_known: true, param: None,
        message: "Too many requests of this API key, or for this operation, are in hand. Send this \
            one again, with the same Idempotency-Key, when others have ended.",
    }
    InternalError {
        cause: "A defect of the gateway; the log has its cause.",
        // Of an operation that has ended `http` says false instead: a retry would find the same.
        label: "internal_error", status: 500, kind: SERVER, retry: true,
        key: Unsure, step: Limits, is_charge_known: true, param: None,
        message: "The gateway failed. Send the same request with the same \
            Idempotency-Key again: it will not run twice.",
    }
    OutcomeUnknown {
        cause: "The request was sent, may have run once, and no answer can come any more; or it \
            was cancelled before one came.",
        // No retry by itself: only a new key runs it again, and that may be a second run.
        label: "outcome_unknown", status: 502, kind: SERVER, retry: false,
        key: Final, step: Limits, is_charge_known: true, param: None,
        message: "The request may have run once; you were not charged. A new Idempotency-Key \
            starts a new, paid run.",
    }
    UpstreamUnavailable {
        cause: "No provider took the request, or all routes are pausing: proven not run.",
        label: "upstream_unavailable", status: 503, kind: SERVER, retry: true,
        key: Unsure, step: Limits, is_charge_known: true, param: None,
        message: "No provider took the request; it did not run. Send it again with the same \
            Idempotency-Key, after `retry-after`.",
    }
    StorageUnavailable {
        cause: "The database does not answer, or refuses to settle.",
        // The run may be over and paid while its settlement waits: nobody may book a zero.
        label: "storage_unavailable", status: 503, kind: SERVER, retry: true,
        key: Unsure, step: Limits, is_charge_known: false, param: None,
        message: "The outcome cannot be confirmed now. Send the same request with the same \
            Idempotency-Key again: it will not run twice.",
    }
    Draining {
        cause: "The process is about to end and takes no new work.",
        label: "draining", status: 503, kind: SERVER, retry: true,
        key: Untouched, step: Key, is_charge_known: true, param: None,
        message: "This server is about to stop. Send the same request with the same \
            Idempotency-Key again.",
    }
    Overloaded {
        cause: "A limit of the process is reached: connections, waiting commits, calls of every route, \
            bytes of request bodies (`body_bytes_in_memory`), of answers that arrive (`answer_bytes`) \
            or of stored answers on the way (`result_bytes`). Or too many requests with unknown API \
            keys came from the caller's address.",
        label: "overloaded", status: 503, kind: SERVER, retry: true,
        key: Untouched, step: Key, is_charge_known: true, param: None,
        message: "This server has too much in hand. Send the same request with the same \
            Idempotency-Key again later.",
    }
    GatewayUnreachable {
        cause: "The sidecar of a client does not reach its gateway: only `holdfast sidecar` sends it.",
        // An ask may have arrived, and its answer may have been lost.
        label: "gateway_unreachable", status: 503, kind: SERVER, retry: true,
        key: Unsure, step: Key, is_charge_known: false, param: None,
        message: "The gateway cannot be reached from here. Send the same request again later, with \
            the same Idempotency-Key if you set one: it will not run twice.",
    }
}
