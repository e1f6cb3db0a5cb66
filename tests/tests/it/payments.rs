//! One payment is one deposit, through the API and the command line, and across versions: request keys that a node
//! of the version before has bound are answered.

use holdfast_tests::database::execute;
use holdfast_tests::site::text;
use holdfast_tests::{Answer, Config, Gateway, Site, request_key};
use serde_json::{Value, json};

use crate::administration;
use crate::bodies::sim;

struct World {
    gateway: Gateway,
    site: Site,
    wallet: String,
    owner: String,
    operation: String,
}

impl World {
    fn start() -> Self {
        let (site, account) = Site::funded(&Config::simulated());
        let owner = site.json(&["admin-key", "issue", "--name", "me", "--role", "owner"]);
        let gateway = site.serve();
        let answer = gateway.complete(&account, &request_key(), &sim("Hello there"));
        assert_eq!(answer.status, 200, "{answer:?}");
        let listed = site.json(&["operation", "list"]);
        let operation = text(&listed[0], "id");
        let (owner, wallet) = (text(&owner, "key"), account.wallet);
        Self { gateway, site, wallet, owner, operation }
    }

    fn send(&self, path: &str, body: &Value, key: &str) -> Answer {
        let request = administration::change(&self.gateway, path, body, &self.owner);
        let request = request.without("Idempotency-Key").header("Idempotency-Key", key);
        request.send(self.gateway.admin_address())
    }

    fn deposit(&self, source: &str, reference: &str) -> Value {
        json!({
            "wallet_id": self.wallet, "amount_micros": 5, "source": source,
            "external_reference": reference,
        })
    }
}

#[track_caller]
fn check(answer: &Answer, status: u16, code: &str, param: &str) {
    let error = &answer.json()["error"];
    let expected = (status, &json!(code), &json!(param));
    assert_eq!((answer.status, &error["code"], &error["param"]), expected, "{answer:?}");
}

#[track_caller]
fn check_posted(answer: &Answer, is_replayed: bool) -> Value {
    assert_eq!(answer.status, 201, "{answer:?}");
    let replayed = answer.header("idempotent-replayed");
    assert_eq!(replayed, Some(if is_replayed { "true" } else { "false" }), "{answer:?}");
    answer.json()["id"].clone()
}

fn with(body: &Value, name: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[name] = value;
    body
}

#[test]
fn a_payment_is_booked_once_in_any_case_of_its_source() {
    let world = World::start();
    let key = request_key();
    let made =
        check_posted(&world.send("/deposits", &world.deposit("Stripe", "pi_1"), &key), false);
    let again = world.send("/deposits", &world.deposit("stripe", "pi_1"), &request_key());
    assert_eq!(check_posted(&again, true), made);
    let other = with(&world.deposit("STRIPE", "pi_1"), "amount_micros", json!(6));
    let refused = world.send("/deposits", &other, &request_key());
    check(&refused, 409, "external_reference_conflict", "external_reference");
    for (source, reference, param) in [
        ("str\u{456}pe", "pi_1", "source"),
        ("stripe", "pi 1", "external_reference"),
        ("stripe", "pi\u{a0}1", "external_reference"),
    ] {
        let body = world.deposit(source, reference);
        check(&world.send("/deposits", &body, &request_key()), 400, "invalid_value", param);
        let dry = world.send("/deposits?dry_run=true", &body, &request_key());
        check(&dry, 400, "invalid_value", param);
        // A known request key is answered before its body is judged.
        let known = world.send("/deposits", &body, &key);
        assert_eq!(known.json()["error"]["code"], "idempotency_key_conflict", "{known:?}");
    }
    let words = ["wallet", "deposit", &world.wallet, "0.000005", "--source", "STRIPE"];
    let booked = world.site.json(&[&words[..], &["--reference", "pi_1"]].concat());
    assert_eq!((&booked["id"], &booked["replayed"]), (&made, &json!(true)));
    let refused = world.site.cli(&[&words[..], &["--reference", "pi 1"]].concat());
    let refused = refused.failed(2);
    assert!(refused.contains("visible ASCII"), "{refused}");
    world.site.verify();
}

#[test]
fn a_posting_of_another_currency_than_the_wallet_is_refused() {
    let world = World::start();
    let adjustment =
        json!({ "wallet_id": world.wallet, "amount_micros": -3, "reason": "goodwill" });
    let refund = json!({ "operation_id": world.operation, "amount_micros": 1 });
    for (path, body) in [
        ("/deposits", world.deposit("stripe", "pi_1")),
        ("/adjustments", adjustment),
        ("/refunds", refund),
    ] {
        let key = request_key();
        for code in ["EUR", "usd", "DOLLAR", ""] {
            let refused = world.send(path, &with(&body, "currency", json!(code)), &key);
            check(&refused, 400, "invalid_value", "currency");
        }
        check_posted(&world.send(path, &with(&body, "currency", json!("USD")), &key), false);
        check_posted(&world.send(path, &with(&body, "currency", json!("USD")), &key), true);
        let other = world.send(path, &with(&body, "currency", json!("EUR")), &key);
        assert_eq!(other.json()["error"]["code"], "idempotency_key_conflict", "{other:?}");
    }
    let [wallet, operation] = [world.wallet.as_str(), world.operation.as_str()];
    for words in [
        &["wallet", "deposit", wallet, "1"][..],
        &["wallet", "adjust", wallet, "1", "--reason", "goodwill"],
        &["wallet", "refund", operation, "0.000001"],
    ] {
        let refused = world.site.cli(&[words, &["--currency", "EUR"]].concat());
        let refused = refused.failed(2);
        assert!(refused.contains("wallet is in USD, and not in EUR"), "{refused}");
        let made = world.site.json(&[words, &["--currency", "USD"]].concat());
        assert_eq!(
            (&made["replayed"], &made["wallet"]["currency"]),
            (&json!(false), &json!("USD"))
        );
    }
    world.site.verify();
}

#[test]
fn sqlite_a_request_is_recognized_by_versions_with_and_without_a_canonical_digest() {
    let world = World::start();
    let (key, body) = (request_key(), world.deposit("stripe", "pi_1"));
    let made = check_posted(&world.send("/deposits", &body, &key), false);
    let absent = with(&with(&body, "note", Value::Null), "currency", Value::Null);
    let spelled = [("/deposits", &absent), ("/deposits?dry_run=false", &body)];
    for (path, body) in spelled {
        assert_eq!(check_posted(&world.send(path, body, &key), true), made, "{path} {body}");
    }
    let file = world.site.database();
    let columns = "length(digest), hex(substr(canonical_digest, 1, 1))";
    let of_key = format!("hex(request_key) = upper(replace('{key}', '-', ''))");
    let select = format!("SELECT {columns} FROM admin_requests WHERE {of_key}");
    assert_eq!(execute(&file, &select), ["32|01"]);
    // As a node of the version before writes it.
    let forget = format!("UPDATE admin_requests SET canonical_digest = NULL WHERE {of_key}");
    for statement in ["DROP TRIGGER admin_requests_never_change", &forget] {
        drop(execute(&file, statement));
    }
    for body in [&body, &absent] {
        assert_eq!(check_posted(&world.send("/deposits", body, &key), true), made, "{body}");
    }
    let other = world.send("/deposits", &with(&body, "amount_micros", json!(6)), &key);
    assert_eq!(other.json()["error"]["code"], "idempotency_key_conflict", "{other:?}");
}
