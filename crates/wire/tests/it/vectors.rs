//! The pairs that must or must not share a fingerprint, and the bodies that must be refused.

use std::collections::BTreeSet;

use holdfast_domain::model::{Contract, PublicModelId, RestrictedField};
use holdfast_domain::request::Request;
use holdfast_wire::chat::request::{check, parse};
use holdfast_wire::error::Code;
use serde_json::Value;

use crate::{fingerprint_of, upstream_body};

/// The vectors name a model without a publisher.
fn load(text: &str) -> Vec<Value> {
    let vectors: Vec<Value> = serde_json::from_str(&text.replace("gpt-x", "test/gpt-x")).unwrap();
    assert!(!vectors.is_empty());
    vectors
}

/// A contract that takes what the pairs ask for.
fn contract() -> Contract {
    let model = PublicModelId::try_from("test/gpt-x").unwrap();
    Contract {
        accepts: vec!["top_k".to_owned()],
        allow: BTreeSet::from([RestrictedField::ServiceTier]),
        ..Contract::new(model, 1, 8_192, 1_024)
    }
}

#[track_caller]
fn taken(body: &Value) -> Request {
    let body = body.as_str().unwrap().as_bytes();
    let request = parse(body).unwrap().request;
    assert_eq!(check(&request, body, &contract()), Ok(()));
    request
}

#[test]
fn pairs_share_a_fingerprint_exactly_when_they_ask_for_the_same() {
    for pair in load(include_str!("../vectors/fingerprint-vectors.json")) {
        let name = pair["name"].as_str().unwrap();
        let (a, b) = (taken(&pair["a"]), taken(&pair["b"]));
        let contract = |side: &str| {
            let version = pair[side]["version"].as_str();
            version.map_or(1, |version| version.parse().unwrap())
        };
        let same = fingerprint_of(&a, contract("contract_a"))
            == fingerprint_of(&b, contract("contract_b"));
        assert_eq!(same, pair["same"], "{name}");
        assert_eq!(a == b, same || pair.get("contract_b").is_some(), "{name}");
        assert_eq!(upstream_body(&a) == upstream_body(&b), a == b, "{name}");
    }
}

#[test]
fn bodies_that_must_be_refused_are_refused() {
    let fields = |name: &str| match name {
        "fractional-integer" => Some("n"),
        "both-max-differ" => Some("max_tokens"),
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
