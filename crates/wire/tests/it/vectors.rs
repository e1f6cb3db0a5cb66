//! The pairs that must or must not share a fingerprint, and the bodies that must be refused.

use holdfast_wire::chat::request::parse;
use holdfast_wire::error::Code;
use serde_json::Value;

use crate::{fingerprint_of, upstream_body};

/// Pairs with a field or a value that is not known yet. Whoever makes one known takes its pairs off.
const REFUSED: [&str; 12] = [
    "09-gateway-default-explicit",
    "12-response_format-text",
    "14-assistant-null-content-with-tool_calls",
    "16-include_obfuscation-is-transport",
    "21-schema-property-order",
    "24-tool-order",
    "26-stream-flag",
    "29-safety_identifier-vs-user",
    "35-unknown-member-kept",
    "36-service_tier-auto-vs-absent",
    "37-fast-vs-priority",
    "42-functions-vs-tools",
];

/// The vectors name a model without a publisher.
fn load(text: &str) -> Vec<Value> {
    let vectors: Vec<Value> = serde_json::from_str(&text.replace("gpt-x", "test/gpt-x")).unwrap();
    assert!(!vectors.is_empty());
    vectors
}

#[test]
fn pairs_share_a_fingerprint_exactly_when_they_ask_for_the_same() {
    let mut refused = Vec::new();
    for pair in load(include_str!("../vectors/fingerprint-vectors.json")) {
        let name = pair["name"].as_str().unwrap();
        let side = |side: &str| parse(pair[side].as_str().unwrap().as_bytes());
        let (a, b) = match (side("a"), side("b")) {
            (Ok(a), Ok(b)) => (a, b),
            (a, b) => {
                for bad in [a, b].into_iter().filter_map(Result::err) {
                    let unknown = [Code::UnknownParameter, Code::UnsupportedParameter];
                    assert!(unknown.contains(&bad.code), "{name}: {bad}");
                }
                refused.push(name.to_owned());
                continue;
            }
        };
        let contract = |side: &str| {
            let version = pair[side]["version"].as_str();
            version.map_or(1, |version| version.parse().unwrap())
        };
        let same = fingerprint_of(&a, contract("contract_a"))
            == fingerprint_of(&b, contract("contract_b"));
        assert_eq!(same, pair["same"], "{name}");
        if same {
            assert_eq!(upstream_body(&a), upstream_body(&b), "{name}");
        }
    }
    assert_eq!(refused, REFUSED);
}

#[test]
fn bodies_that_must_be_refused_are_refused() {
    let fields = |name: &str| match name {
        "fractional-integer" => Some("n"),
        "both-max-differ" => Some("max_tokens"),
        "stop-empty" => Some("stop"),
        "messages-empty" => Some("messages"),
        _ => None,
    };
    for vector in load(include_str!("../vectors/fingerprint-reject.json")) {
        let name = vector["name"].as_str().unwrap();
        let bad = parse(vector["body"].as_str().unwrap().as_bytes()).unwrap_err();
        let code = if fields(name).is_some() { Code::InvalidValue } else { Code::InvalidJson };
        assert_eq!((bad.code, bad.param.as_deref()), (code, fields(name)), "{name}");
        assert_eq!(bad.code.status(), 400, "{name}");
    }
}
