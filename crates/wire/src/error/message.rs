//! Messages that are made for one request: the remedy, in the caller's words.
//!
//! [`malformed_key`] knows the ways in which a request key is usually wrong: the SDKs' own generators put
//! `stainless-python-retry-` or `stainless-node-retry-` before the UUID. One pair of quotation marks, which the
//! IETF's draft requires, is taken off before; any other is a mistake.

use super::Code;

/// Place of a request key in a request.
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
        "This one is in quotation marks. Send only the 36 characters."
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

/// Message for a header that was sent more than once.
#[must_use]
pub fn repeated_key() -> String {
    explained(
        "It was sent more than once. Send it only with the request, not also with the client's \
         default headers.",
    )
}

/// Message for two headers with different keys.
#[must_use]
pub fn two_keys() -> String {
    explained(
        "Idempotency-Key and X-Idempotency-Key have different values. Send one of them, or the same key in both.",
    )
}

/// Message with the longest total of a prompt and its answer, if that is known.
#[must_use]
pub fn context_length_exceeded(context_tokens: u64) -> String {
    format!(
        "This model's maximum context length is {context_tokens} tokens, and the prompt does not fit into \
         it; you were not charged. Shorten the messages and send them with a new Idempotency-Key."
    )
}

/// Message for an unknown model, with the most similar one of those that the caller may know.
#[must_use]
pub fn model_not_found(meant: Option<&str>) -> String {
    let usual = Code::ModelNotFound.message();
    match meant {
        None => usual.to_owned(),
        Some(meant) => usual.replacen(
            "There is no such model.",
            &format!("There is no such model: did you mean {meant}?"),
            1,
        ),
    }
}

/// Message for a model without a price in a wallet's currency.
#[must_use]
pub fn no_price(currency: &str) -> String {
    format!(
        "This model has no price in {currency}, the currency of this API key's wallet. GET /v1/models lists \
         the models that it can pay for."
    )
}

fn explained(why: &str) -> String {
    let usual = Code::IdempotencyKeyMalformed.message();
    let (rule, fix) = usual.split_once('\n').unwrap_or((usual, ""));
    format!("{rule} {why}\n{fix}")
}

const PATH: &str = "The path must end with the Idempotency-Key of a request of yours, in its canonical spelling, like \
     7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11.";
