//! Error answers of the description, made from the table of codes.
//!
//! Errors are grouped by status: OpenAPI has one answer for a status, and several codes share one. Such an
//! answer lists its codes, the cause of each, and an example of each.
//!
//! Headers follow from the code: rate limits are sent with what was counted, the key's headers after the
//! key was read.

use holdfast_domain::OperationId;
use serde_json::{Map, Value, json};

use crate::error::{Code, ErrorBody, KeyEffect, Step};

/// Headers of every answer: the second one if the request has a well-formed key, the others if the
/// operator lists origins.
const EVERY: [&str; 5] = [
    "x-request-id",
    "idempotency-key",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "vary",
];
/// Headers of counted requests, if the API key has such a limit.
const RATES: [&str; 6] = [
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
];
/// Operation in examples.
const EXAMPLE_OPERATION: OperationId =
    OperationId::from_u128(0x7a1c_0c2f_5d5e_8f0f_9b3c_6d1e_2f30_4152);

/// Replaces `{"x-codes": [..], "x-keyed": true}` by the answer of these codes; `x-keyed` marks answers of
/// an endpoint whose requests carry an idempotency key and are counted by the minute.
pub(super) fn expand(answer: &mut Value) {
    let Some(labels) = answer["x-codes"].as_array() else { return };
    // In the order of the table of codes, independent of the file's.
    let codes: Vec<Code> =
        Code::ALL.into_iter().filter(|code| labels.contains(&json!(code.label()))).collect();
    *answer = of_codes(&codes, answer["x-keyed"] == true);
}

/// Adds the headers of every answer.
pub(super) fn add_common_headers(answer: &mut Value) {
    let own = answer["headers"].as_object().into_iter().flatten();
    let own = own.map(|(name, header)| (name.clone(), header.clone()));
    let all: Map<String, Value> = header_refs(&EVERY).chain(own).collect();
    if let Some(answer) = answer.as_object_mut() {
        answer.insert("headers".to_owned(), Value::Object(all));
    }
}

fn of_codes(codes: &[Code], is_keyed: bool) -> Value {
    let labels: Vec<&str> = codes.iter().map(|code| code.label()).collect();
    let causes: Vec<String> =
        codes.iter().map(|code| format!("`{}`: {}", code.label(), code.cause())).collect();
    let examples: Map<String, Value> = codes
        .iter()
        .map(|code| (code.label().to_owned(), json!({"value": example(*code)})))
        .collect();
    // `allOf` with the shape of every error: this narrows its code to those of the status.
    let narrowed = json!({"properties": {"error": {"properties": {"code": {"enum": labels}}}}});
    let mut headers = EVERY.to_vec();
    headers.push("x-should-retry");
    if codes.iter().any(|code| code.retry() || code.may_pass()) {
        headers.extend(["retry-after", "retry-after-ms"]);
    }
    if is_keyed && codes.iter().any(|code| code.step() >= Step::Key) {
        headers.push("idempotent-replayed");
    }
    if is_keyed && codes.iter().any(|code| code.step() >= Step::Limits) {
        headers.extend(RATES);
    }
    if codes.contains(&Code::MethodNotAllowed) {
        headers.push("allow");
    }
    json!({
        "description": causes.join("\n\n"),
        "headers": header_refs(&headers).collect::<Map<_, _>>(),
        "content": {"application/json": {
            "schema": {"allOf": [{"$ref": "#/components/schemas/Error"}, narrowed]},
            "examples": examples,
        }},
    })
}

fn example(code: Code) -> Value {
    let operation_id = match code.key_effect() {
        KeyEffect::Untouched | KeyEffect::Unsure => None,
        KeyEffect::Bound | KeyEffect::Final => Some(EXAMPLE_OPERATION),
    };
    let body = ErrorBody { operation_id, ..ErrorBody::new(code) }.render();
    serde_json::from_slice(&body).unwrap_or_default()
}

fn header_refs(names: &[&str]) -> impl Iterator<Item = (String, Value)> {
    let header = |name: &&str| json!({"$ref": format!("#/components/headers/{name}")});
    names.iter().map(move |name| ((*name).to_owned(), header(name)))
}
