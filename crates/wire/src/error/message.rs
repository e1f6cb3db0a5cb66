//! Default message of each code: the remedy, in the caller's words. Nothing of the inside is named.
//!
//! A message says what to do next, and for keys it says most: no SDK sends an `Idempotency-Key` for
//! chat by itself, so the first error that a new caller sees is [`REQUIRED`], with a line to paste
//! for three clients. [`malformed_key`] knows the ways in which a key is usually wrong: the SDKs'
//! own generators put `stainless-python-retry-` or `stainless-node-retry-` before the UUID, and
//! clients of the RFC draft may send it in quotation marks.
//!
//! Messages are promises: "it will not run twice" and "you were not charged" must hold wherever
//! their code is given. Clients match two of the texts by their first words; these are marked.

use super::Code;

impl Code {
    /// Default message of this code.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::IdempotencyKeyRequired => REQUIRED,
            Self::IdempotencyKeyMalformed => MALFORMED,
            Self::InvalidJson => INVALID_JSON,
            Self::InvalidValue => INVALID_VALUE,
            Self::UnknownParameter => UNKNOWN_PARAMETER,
            Self::UnsupportedParameter => UNSUPPORTED_PARAMETER,
            Self::ContextLengthExceeded => CONTEXT_LENGTH_EXCEEDED,
            Self::InvalidApiKey => INVALID_API_KEY,
            Self::InsufficientFunds => INSUFFICIENT_FUNDS,
            Self::SpendLimitExceeded => SPEND_LIMIT_EXCEEDED,
            Self::ChargeLimitExceeded => CHARGE_LIMIT_EXCEEDED,
            Self::ModelNotAllowed => MODEL_NOT_ALLOWED,
            Self::ModelNotFound => MODEL_NOT_FOUND,
            Self::NotFound => NOT_FOUND,
            Self::MethodNotAllowed => METHOD_NOT_ALLOWED,
            Self::RequestTimeout => REQUEST_TIMEOUT,
            Self::RequestTooLarge => REQUEST_TOO_LARGE,
            Self::UnsupportedMediaType => UNSUPPORTED_MEDIA_TYPE,
            Self::HeadersTooLarge => HEADERS_TOO_LARGE,
            Self::IdempotencyKeyConflict => IDEMPOTENCY_KEY_CONFLICT,
            Self::OperationInProgress => OPERATION_IN_PROGRESS,
            Self::ResultExpired => RESULT_EXPIRED,
            Self::ResultSealed => RESULT_SEALED,
            Self::ProviderRefused => PROVIDER_REFUSED,
            Self::RateLimitExceeded => RATE_LIMIT_EXCEEDED,
            Self::TooManyOperations => TOO_MANY_OPERATIONS,
            Self::InternalError => INTERNAL_ERROR,
            Self::OutcomeUnknown => OUTCOME_UNKNOWN,
            Self::UpstreamUnavailable => UPSTREAM_UNAVAILABLE,
            Self::StorageUnavailable => STORAGE_UNAVAILABLE,
            Self::Draining => DRAINING,
            Self::Overloaded => OVERLOADED,
        }
    }
}

/// Place where a request key was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// In the header of a request that is to run.
    Header,
    /// In the path that names an operation.
    Path,
}

/// Explains why a request key is refused and how to send a good one. The value itself is not
/// repeated.
#[must_use]
pub fn malformed_key(value: &[u8], place: KeyPlace) -> String {
    let text = value.trim_ascii();
    // Tested before the length: the prefix is the cause, the wrong length its consequence.
    let why = if text.starts_with(b"stainless-") {
        "This one begins with `stainless-`: the SDK made it, and with that prefix it is no UUID. Send \
         one of your own, as below, or let your client class make it: override `_idempotency_key` in \
         Python, `defaultIdempotencyKey` in Node, and return the bare UUID."
    } else if text.starts_with(b"\"") || text.ends_with(b"\"") {
        "This one is in quotation marks. Send the 36 characters alone."
    } else if text.len() != 36 {
        "This one is not 36 characters long."
    } else if text.iter().any(u8::is_ascii_uppercase) {
        "This one has capital letters. Send it in lower case."
    } else {
        "This one is not a random UUID of version 4."
    };
    match place {
        KeyPlace::Header => explained(why),
        KeyPlace::Path => format!("{PATH} {why}"),
    }
}

/// Says that the header was sent more than once.
#[must_use]
pub fn repeated_key() -> String {
    explained(
        "It was sent more than once. Send it with the request alone, not also with the client's \
         default headers.",
    )
}

/// Says how long a prompt and its answer may be together, where that is known.
#[must_use]
pub fn context_length_exceeded(context_tokens: u64) -> String {
    format!(
        "This model's maximum context length is {context_tokens} tokens, and the prompt does not fit into \
         it; you were not charged. Shorten the messages and send them with a new Idempotency-Key."
    )
}

/// Says that there is no such model, and which one was probably meant of those that the caller may
/// know.
#[must_use]
pub fn model_not_found(meant: Option<&str>) -> String {
    match meant {
        None => MODEL_NOT_FOUND.to_owned(),
        Some(meant) => MODEL_NOT_FOUND.replacen(
            "There is no such model.",
            &format!("There is no such model: did you mean {meant}?"),
            1,
        ),
    }
}

/// Says that nobody has set a price for a model in a wallet's currency.
#[must_use]
pub fn no_price(currency: &str) -> String {
    format!(
        "This model has no price in {currency}, the currency of this API key's wallet. GET /v1/models lists \
         the models that it can pay for."
    )
}

fn explained(why: &str) -> String {
    let (rule, fix) = MALFORMED.split_once('\n').unwrap_or((MALFORMED, ""));
    format!("{rule} {why}\n{fix}")
}

const INVALID_JSON: &str = "The body is not JSON. Send one JSON object in UTF-8.";
const INVALID_VALUE: &str =
    "A field has a value that it cannot have. Correct the field in `param`.";
const UNKNOWN_PARAMETER: &str = "The field in `param` is not known here. Remove it.";
const UNSUPPORTED_PARAMETER: &str = "The field in `param` is not supported here. Remove it.";
/// Clients match the first words, and tell by them what is wrong.
const CONTEXT_LENGTH_EXCEEDED: &str = "This model's maximum context length is less than the prompt needs; you were not charged. \
     Shorten the messages and send them with a new Idempotency-Key.";
/// Clients match the first words here too.
const INVALID_API_KEY: &str = "Incorrect API key provided. Send `Authorization: Bearer <API key>` with a key that is in \
     force.";
const INSUFFICIENT_FUNDS: &str = "The wallet has less available than this request may cost. Deposit funds, lower \
     max_completion_tokens, or wait for running requests to end.";
const SPEND_LIMIT_EXCEEDED: &str = "This request may pass the API key's spend limit. Lower max_completion_tokens, or use \
     another API key.";
const CHARGE_LIMIT_EXCEEDED: &str = "This request may cost more than Holdfast-Max-Charge-Micros allows. Raise that header, or \
     lower max_completion_tokens.";
const MODEL_NOT_ALLOWED: &str =
    "This API key may not use the model. GET /v1/models lists the models that it may use.";
const MODEL_NOT_FOUND: &str =
    "There is no such model. GET /v1/models lists the models that this API key may use.";
const NOT_FOUND: &str = "There is nothing here. Check the path and the identifier in it.";
const METHOD_NOT_ALLOWED: &str =
    "This path does not take this method. Send the request with one that the `allow` header names.";
const REQUEST_TIMEOUT: &str = "The body did not arrive in time. Send the same request with the same Idempotency-Key again, in \
     one go.";
const REQUEST_TOO_LARGE: &str = "The body is too large. Send a smaller one.";
const UNSUPPORTED_MEDIA_TYPE: &str =
    "The body must be JSON. Send `Content-Type: application/json`, and no content encoding.";
const HEADERS_TOO_LARGE: &str =
    "The head of the request is too large. Send fewer or shorter headers.";
const IDEMPOTENCY_KEY_CONFLICT: &str = "This Idempotency-Key belongs to another request. Use a new key for every request body, and \
     the same one only to retry that body: not one for a whole client, as a default header of it would be.";
const OPERATION_IN_PROGRESS: &str = "This operation still runs. Send the same request with the same Idempotency-Key again later: \
     it will not run twice.";
const RESULT_EXPIRED: &str = "This operation has ended and its answer is no longer kept. A new Idempotency-Key starts a \
     new, paid run.";
const RESULT_SEALED: &str = "This operation has ended and its answer opens only with the credential that asked for it. \
     Retry with that credential; a new Idempotency-Key starts a new, paid run.";
const PROVIDER_REFUSED: &str = "The model's provider refused this request; you were not charged. Change the request and \
     send it with a new Idempotency-Key.";
const RATE_LIMIT_EXCEEDED: &str = "A limit of this API key is reached. Send the same request with the same Idempotency-Key again \
     after `retry-after`.";
const TOO_MANY_OPERATIONS: &str = "Too many requests of this API key, or for this operation, are in hand. Send this one again, \
     with the same Idempotency-Key, when others have ended.";
const INTERNAL_ERROR: &str = "Something failed on our side. Send the same request with the same Idempotency-Key again: it \
     will not run twice.";
const OUTCOME_UNKNOWN: &str = "The request may have run once; you were not charged. A new Idempotency-Key starts a new, \
     paid run.";
const UPSTREAM_UNAVAILABLE: &str = "No provider took the request; it did not run. Send it again with the same Idempotency-Key, \
     after `retry-after`.";
const STORAGE_UNAVAILABLE: &str = "The outcome cannot be confirmed now. Send the same request with the same Idempotency-Key \
     again: it will not run twice.";
const DRAINING: &str =
    "This server is about to stop. Send the same request with the same Idempotency-Key again.";
const OVERLOADED: &str = "This server has too much in hand. Send the same request with the same Idempotency-Key again \
     later.";

/// Lines to paste, one for each of three clients. `uuidgen` prints capitals on macOS, hence `tr`.
macro_rules! fix {
    () => {
        r#"
Python: client.chat.completions.create(..., extra_headers={"Idempotency-Key": str(uuid.uuid4())})
Node: client.chat.completions.create(body, { headers: { "Idempotency-Key": crypto.randomUUID() } })
curl: -H "Idempotency-Key: $( (uuidgen || cat /proc/sys/kernel/random/uuid) 2>/dev/null | tr A-Z a-z)""#
    };
}

const PATH: &str = "The path must end with the Idempotency-Key of a request of yours, in its canonical spelling, like \
     7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11.";

const REQUIRED: &str = concat!(
    "Send the header Idempotency-Key, exactly once: a new UUIDv4 for every request body, and the same \
     one when you retry that body.",
    fix!()
);

const MALFORMED: &str = concat!(
    "The header Idempotency-Key must be one UUIDv4 in its canonical spelling, like \
     7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11: 36 lower-case hexadecimal digits and hyphens.",
    fix!()
);
