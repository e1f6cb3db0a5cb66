//! The closed table of errors and the body that carries one.

use std::collections::BTreeSet;

use holdfast_domain::OperationId;
use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::usage::Meters;
use holdfast_wire::error::{
    Code, ErrorBody, KeyPlace, context_length_exceeded, malformed_key, model_not_found, no_price,
    refused, repeated_key, two_keys,
};
use serde_json::{Value, json};

use crate::schema;

/// The table of the API's documentation: status, type, retry, codes.
const TABLE: &[(u16, &str, bool, &[&str])] = &[
    (
        400,
        "invalid_request_error",
        false,
        &[
            "idempotency_key_required",
            "idempotency_key_malformed",
            "invalid_json",
            "invalid_value",
            "unknown_parameter",
            "unsupported_parameter",
            "context_length_exceeded",
        ],
    ),
    (401, "invalid_request_error", false, &["invalid_api_key"]),
    (
        402,
        "insufficient_quota",
        false,
        &["insufficient_funds", "spend_limit_exceeded", "charge_limit_exceeded"],
    ),
    (
        403,
        "invalid_request_error",
        false,
        &["api_key_suspended", "wallet_suspended", "model_not_allowed"],
    ),
    (404, "invalid_request_error", false, &["model_not_found", "not_found"]),
    (405, "invalid_request_error", false, &["method_not_allowed"]),
    (408, "invalid_request_error", true, &["request_timeout"]),
    (413, "invalid_request_error", false, &["request_too_large"]),
    (415, "invalid_request_error", false, &["unsupported_media_type"]),
    (431, "invalid_request_error", false, &["headers_too_large"]),
    (409, "idempotency_error", false, &["idempotency_key_conflict"]),
    (409, "idempotency_error", true, &["operation_in_progress", "ledger_restored"]),
    (410, "idempotency_error", false, &["result_expired", "result_sealed"]),
    (422, "invalid_request_error", false, &["provider_refused"]),
    (429, "rate_limit_error", true, &["rate_limit_exceeded", "too_many_operations"]),
    (500, "server_error", true, &["internal_error"]),
    (502, "server_error", false, &["outcome_unknown"]),
    (
        503,
        "server_error",
        true,
        &[
            "upstream_unavailable",
            "storage_unavailable",
            "draining",
            "overloaded",
            "gateway_unreachable",
        ],
    ),
];

#[test]
fn the_table_is_the_documented_one() {
    let rows = TABLE.iter().flat_map(|(status, kind, retry, codes)| {
        codes.iter().map(move |code| (*code, *status, *kind, *retry))
    });
    let codes =
        Code::ALL.iter().map(|code| (code.label(), code.status(), code.kind(), code.retry()));
    assert_eq!(codes.clone().collect::<BTreeSet<_>>(), rows.collect());
    assert_eq!(codes.collect::<BTreeSet<_>>().len(), Code::ALL.len(), "a code stands twice");
}

#[test]
fn messages_say_something_of_their_own() {
    let messages: BTreeSet<_> = Code::ALL.iter().map(|code| code.message()).collect();
    assert_eq!(messages.len(), Code::ALL.len());
    for message in messages {
        assert!(message.starts_with(|c: char| c.is_ascii_uppercase()), "{message}");
        assert!(!message.contains("  ") && !message.contains('\\'), "{message}");
    }
}

fn body(error: &ErrorBody<'_>) -> Value {
    let body = serde_json::from_slice(&error.render()).unwrap();
    assert_eq!(schema::fault("ErrorResponse", &body), None);
    body
}

#[test]
fn a_body_has_all_keys_of_openai_and_the_charge() {
    assert_eq!(
        body(&ErrorBody::new(Code::InvalidApiKey)),
        json!({"error": {
            "message": Code::InvalidApiKey.message(),
            "type": "invalid_request_error",
            "param": null,
            "code": "invalid_api_key",
            "charged_micros": 0,
        }})
    );
    assert_eq!(
        body(&ErrorBody {
            message: "m",
            code: Code::ResultExpired,
            param: Some("p"),
            charged_micros: Some(7),
            held_micros: None,
            operation_id: Some(OperationId::from_u128(1)),
            meters: Meters::text(2, 3).ok().as_ref(),
        }),
        json!({"error": {
            "message": "m",
            "type": "idempotency_error",
            "param": "p",
            "code": "result_expired",
            "charged_micros": 7,
            "operation_id": "00000000-0000-0000-0000-000000000001",
            "meters": {
                "input": 2, "cached_input": 0, "cache_write": 0, "audio_input": 0, "output": 3,
                "reasoning": 0, "audio_output": 0, "request": 1, "image": 0,
            },
        }})
    );
}

#[test]
fn every_body_is_an_error_to_openai_s_clients() {
    for code in Code::ALL {
        assert_eq!(body(&ErrorBody::new(code))["error"]["code"], code.label());
    }
}

#[test]
fn a_refusal_says_nothing_of_the_provider() {
    for (refusal, code, param) in [
        (ProviderRefusal::Request, Code::ProviderRefused, json!(null)),
        (ProviderRefusal::ContextLength, Code::ContextLengthExceeded, json!("messages")),
    ] {
        let told = refused(refusal, OperationId::from_u128(1));
        let body: Value = serde_json::from_slice(&told.render()).unwrap();
        assert_eq!((told.code, Code::of(refusal)), (code, code));
        assert_eq!(body["error"]["code"], code.label());
        assert_eq!(body["error"]["param"], param);
        assert_eq!(body["error"]["charged_micros"], 0);
        assert_eq!(body["error"]["operation_id"], "00000000-0000-0000-0000-000000000001");
    }
}

#[test]
fn a_charge_that_is_not_known_is_not_told() {
    for code in Code::ALL {
        let is_unknown = matches!(
            code,
            Code::OperationInProgress
                | Code::LedgerRestored
                | Code::StorageUnavailable
                | Code::GatewayUnreachable
        );
        let told = body(&ErrorBody::new(code));
        let charge = told["error"].get("charged_micros");
        assert_eq!(charge, (!is_unknown).then_some(&json!(0)), "{told}");
        let known = body(&ErrorBody { charged_micros: Some(9), ..ErrorBody::new(code) });
        assert_eq!(known["error"]["charged_micros"], 9);
    }
}

#[test]
fn funds_that_runs_hold_are_told_with_the_error() {
    let told =
        body(&ErrorBody { held_micros: Some(40), ..ErrorBody::new(Code::InsufficientFunds) });
    assert_eq!(told["error"]["held_micros"], 40);
    assert_eq!(body(&ErrorBody::new(Code::InsufficientFunds))["error"].get("held_micros"), None);
    for code in Code::ALL {
        let label = match (code, code.retry()) {
            (Code::InsufficientFunds, _) => "false; true while held",
            (_, true) => "true",
            (_, false) => "false",
        };
        assert_eq!(code.retry_label(), label, "{code:?}");
    }
}

/// What LiteLLM and others look for in messages.
#[test]
fn messages_have_the_words_that_clients_look_for() {
    assert!(Code::InvalidApiKey.message().contains("Incorrect API key provided"));
    let bounded = context_length_exceeded(8_000);
    assert!(bounded.contains("This model's maximum context length is 8000 tokens"), "{bounded}");
    for told in [Code::ContextLengthExceeded.message(), &bounded] {
        assert!(told.contains("This model's maximum context length is"), "{told}");
        assert!(told.contains("Shorten the messages"), "{told}");
    }
}

#[test]
fn a_model_that_was_meant_is_named() {
    let told = model_not_found(Some("holdfast/sim-1"));
    assert!(told.starts_with("There is no such model: did you mean holdfast/sim-1? GET"), "{told}");
    assert_eq!(model_not_found(None), Code::ModelNotFound.message());
    assert!(no_price("JPY").contains(" in JPY, the currency of this API key's wallet"));
}

const FIXES: [&str; 3] = [
    r#"extra_headers={"Idempotency-Key": str(uuid.uuid4())}"#,
    r#"{ headers: { "Idempotency-Key": crypto.randomUUID() } }"#,
    r#"-H "Idempotency-Key: $( (uuidgen || cat /proc/sys/kernel/random/uuid) 2>/dev/null | tr A-Z a-z)""#,
];

#[test]
fn key_errors_show_the_fix_for_three_clients() {
    let codes = [Code::IdempotencyKeyRequired, Code::IdempotencyKeyMalformed];
    let told = [malformed_key(b"x", KeyPlace::Header), repeated_key(), two_keys()];
    for message in codes.map(Code::message).into_iter().chain(told.iter().map(String::as_str)) {
        assert_eq!(message.lines().count(), 4, "{message}");
        for fix in FIXES {
            assert!(message.contains(fix), "{message}");
        }
    }
}

#[test]
fn a_malformed_key_is_told_why() {
    for (value, why) in [
        (&b"stainless-python-retry-a4a25904-0b1c-4f6e-8a53-9a9e2b6a1f00"[..], "`stainless-`"),
        (b"\"7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11\"", "quotation marks"),
        (b"7F2C1A9E-5B7D-4C3E-9A51-0F8E6D2B4C11", "capital letters"),
        (b"7f2c1a9e-5b7d-1c3e-9a51-0f8e6d2b4c11", "version 4"),
        (b"7f2c1a9e5b7d4c3e9a510f8e6d2b4c11", "36 characters long"),
        (b"\xff\x00", "36 characters long"),
        (b"", "36 characters long"),
    ] {
        let message = malformed_key(value, KeyPlace::Header);
        assert!(message.contains(why), "{message}");
        let in_path = malformed_key(value, KeyPlace::Path);
        assert!(in_path.contains(why) && in_path.starts_with("The path "), "{in_path}");
        for message in [&message, &in_path] {
            let mut windows = message.as_bytes().windows(value.len().max(1));
            assert!(value.is_empty() || !windows.any(|it| it == value), "{message}");
        }
    }
}

#[test]
fn the_prefix_of_an_sdk_is_told_with_the_way_around_it() {
    let message = malformed_key(
        b"stainless-node-retry-7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        KeyPlace::Header,
    );
    for part in ["no UUID", "`_idempotency_key`", "`defaultIdempotencyKey`", FIXES[0], FIXES[1]] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn what_may_be_sent_again_says_so() {
    for code in Code::ALL.into_iter().filter(|code| code.retry()) {
        let message = code.message();
        assert!(message.contains("same Idempotency-Key"), "{}: {message}", code.label());
        assert!(!message.contains("new"), "{}: {message}", code.label());
    }
}
