//! The description compared with the table of interfaces, and the guarantees that it states.

use std::collections::BTreeSet;

use holdfast_accounts::INTERFACES;
use holdfast_accounts::fields::{AMOUNT, GRACE_SECONDS, LIMIT, SPAN_SECONDS, THRESHOLD};
use serde_json::Value;

use super::*;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

fn document() -> Value {
    serde_json::from_slice(&crate::endpoints::DOCUMENT).unwrap()
}

/// Method, path and description of each operation.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &Value)| {
        let path = path.strip_prefix(PREFIX).unwrap().to_owned();
        let item = item.as_object().unwrap().clone();
        let known = item.into_iter().filter(|(method, _)| METHODS.contains(&method.as_str()));
        known.map(move |(method, it)| (method.to_uppercase(), path.clone(), it)).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

#[test]
fn the_description_has_the_endpoints_of_the_interfaces() {
    let described: BTreeSet<_> =
        operations(&document()).into_iter().map(|(method, path, _)| (method, path)).collect();
    let interfaces = INTERFACES.iter().flat_map(|row| &row.endpoints);
    let interfaces: BTreeSet<_> = interfaces.map(|(m, p)| ((*m).to_owned(), p.clone())).collect();
    assert_eq!(described, interfaces);
}

#[test]
fn operation_ids_are_unique() {
    let operations = operations(&document());
    let ids: BTreeSet<_> = operations.iter().map(|(_, _, it)| it["operationId"].as_str()).collect();
    assert!(!ids.contains(&None));
    assert_eq!(ids.len(), operations.len());
}

#[test]
fn every_operation_has_every_error_and_changes_have_their_key() {
    for (method, path, operation) in operations(&document()) {
        for code in Code::ALL {
            let response = &operation["responses"][code.status().to_string()];
            let described = response["description"].as_str().unwrap_or_default();
            assert!(described.contains(code.label()), "{method} {path} {code:?}: {response}");
        }
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let has_key = parameters.iter().any(|it| it["name"] == "Idempotency-Key");
        assert_eq!(has_key, method != "GET", "{method} {path}");
        let has_id = parameters.iter().any(|it| it["name"] == "id" && it["in"] == "path");
        assert_eq!(has_id, path.contains("{id}"), "{method} {path}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document();
    let text = document.to_string();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut references = 0;
    for part in text.split("\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
        references += 1;
    }
    assert!(references > 0);
    assert_eq!(document["openapi"], "3.1.0");
}

#[test]
fn bodies_refuse_what_they_do_not_know() {
    let document = document();
    for (method, path, operation) in operations(&document) {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let text = schema.to_string();
        let Some(name) = text.split("#/components/schemas/").nth(1) else { continue };
        let name = name.split('"').next().unwrap();
        let body = &document["components"]["schemas"][name];
        assert_eq!(body["additionalProperties"], false, "{method} {path} {name}");
    }
}

#[test]
fn the_body_of_every_change_has_a_reason() {
    let document = document();
    let changes = operations(&document).into_iter().filter(|(method, ..)| method != "GET");
    for (method, path, operation) in changes {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let text = schema.to_string();
        let name = text.split("#/components/schemas/").nth(1).and_then(|it| it.split('"').next());
        let body = &document["components"]["schemas"][name.unwrap_or(&path)];
        assert!(body["properties"]["reason"].is_object(), "{method} {path}: {schema}");
    }
}

#[test]
fn members_of_bodies_have_the_bounds_of_their_fields() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    let of_counts = |bounds: &std::ops::RangeInclusive<u64>| {
        [bounds.start(), bounds.end()].map(|bound| i64::try_from(*bound).unwrap())
    };
    let of_amounts = |bounds: &std::ops::RangeInclusive<i64>| [*bounds.start(), *bounds.end()];
    let keys = ["ApiKeyOrder", "ApiKeyDraft", "ApiKeyEdit"];
    let limits = ["requests_per_minute", "tokens_per_minute", "concurrency"];
    for (bodies, members, bounds) in [
        (&keys[..], &limits[..], of_counts(&LIMIT)),
        (&keys, &["spend_micros"], of_amounts(&AMOUNT)),
        (&["WalletDraft", "WalletEdit"], &["key_spend_micros"], of_amounts(&AMOUNT)),
        (&["WalletDraft", "WalletEdit"], &["low_balance_micros"], of_amounts(&THRESHOLD)),
        (&["DepositDraft", "RefundDraft"], &["amount_micros"], of_amounts(&AMOUNT)),
        (&keys, &["ends_in_seconds"], of_counts(&SPAN_SECONDS)),
        (&["AdminKeyDraft"], &["ends_in_seconds"], of_counts(&SPAN_SECONDS)),
        (&["RotationBody"], &["grace_seconds"], of_counts(&GRACE_SECONDS)),
    ] {
        for (body, member) in
            bodies.iter().flat_map(|body| members.iter().map(move |it| (body, it)))
        {
            let schema = &schemas[*body]["properties"][*member];
            let described = ["minimum", "maximum"].map(|bound| schema[bound].as_i64());
            assert_eq!(described, bounds.map(Some), "{body} {member}");
        }
    }
}
