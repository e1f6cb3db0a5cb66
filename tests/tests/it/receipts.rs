//! Signed receipts: made by the gateway, verified by the command and by a program that shares no code with it.

use std::process::Command;

use holdfast_tests::{
    Account, Config, Gate, Gateway, Ran, Reply, Request, Site, Upstream, request_key,
};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::bodies::{acme, sim};
use crate::check::{charge, check_completion, check_json, error};
use crate::clients::given;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/python/receipt_verify.py");

fn receipt(gateway: &Gateway, account: &Account, key: &str) -> Value {
    check_json(&gateway.get(account, &format!("/v1/operations/{key}/receipt")), 200)
}

/// Public keys, read without an API key.
fn keys(gateway: &Gateway) -> Value {
    check_json(&gateway.send(&Request::get("/v1/receipts/keys")), 200)
}

/// Verification by the command, which has neither a configuration nor a database.
fn verified(site: &Site, receipt: &Value, keys: &Value) -> Ran {
    site.write("receipt.json", &receipt.to_string());
    site.write("keys.json", &keys.to_string());
    // A configuration that is read would be missing.
    let arguments = ["--config", "missing.toml", "receipt", "verify", "receipt.json", "--keys"];
    site.cli(&[&arguments[..], &["keys.json", "--json"]].concat())
}

/// Verification by Python's standard library, of the files that [`verified`] wrote.
fn verified_by_python(site: &Site) -> Ran {
    let mut command = Command::new(given("HOLDFAST_TEST_PYTHON"));
    Ran::of(command.args([SCRIPT, "receipt.json", "keys.json"]).current_dir(site.folder()))
}

#[test]
fn a_receipt_is_verified_by_the_command_and_by_sixty_lines_of_python() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let key = request_key();
    let answer = gateway.complete(&account, &key, &sim("Hello there"));
    let paid = charge(&check_completion(&answer, &key, false));
    let (signed, keys) = (receipt(&gateway, &account, &key), keys(&gateway));
    let operation = check_json(&gateway.get(&account, &format!("/v1/operations/{key}")), 200);
    let document = &signed["receipt"]["charge"];
    for name in ["model", "price_version", "status", "created_at", "finished_at", "api_key_id"] {
        assert_eq!(document[name], operation[name], "{name}");
    }
    for name in ["hold_micros", "charge_micros", "shortfall_micros", "generation", "contract"] {
        assert_eq!(document[name], operation[name].to_string(), "{name}");
    }
    assert_eq!(document["operation_id"], operation["id"]);
    let text = signed.to_string();
    for hidden in [key.as_str(), "Hello there", "simulated", "You said"] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    assert!(std::fs::read_to_string(SCRIPT).unwrap().lines().count() <= 60);

    let verdict = verified(&site, &signed, &keys).json();
    assert_eq!((&verdict["genuine"], &verdict["receipt"]), (&json!(true), &signed["receipt"]));
    let expected = json!({"charge_micros": paid, "refunded_micros": 0});
    assert_eq!(verified_by_python(&site).json(), expected);

    let mut changed = signed.clone();
    changed["receipt"]["charge"]["charge_micros"] = json!("1");
    let told = verified(&site, &changed, &keys).failed(1);
    assert!(told.contains("not_genuine"), "{told}");
    assert!(verified_by_python(&site).failed(1).contains("the signature does not fit"));
    // Another file is a mistake of its user, and not a receipt that is not genuine.
    drop(verified(&site, &keys, &keys).failed(2));
    drop(verified(&site, &signed, &signed).failed(2));
    let mut both = signed.clone();
    both["root"] = json!({});
    drop(verified(&site, &both, &keys).failed(2));

    // Without the stored answer, for another credential, and once more.
    let rotated = site.rotate(&account, "24h");
    let again = receipt(&gateway, &rotated, &key);
    assert_eq!(again["receipt"]["charge"], *document);
    let id = operation["id"].as_str().unwrap();
    drop(site.cli(&["wallet", "refund", id, "0.000005"]).ok());
    let refunded = receipt(&gateway, &account, &key);
    assert_eq!(refunded["receipt"]["charge"], *document, "a refund changes no charge");
    drop(verified(&site, &refunded, &keys).json());
    let expected = json!({"charge_micros": paid, "refunded_micros": 5});
    assert_eq!(verified_by_python(&site).json(), expected);
}

#[test]
fn an_operation_has_a_receipt_once_it_has_ended_and_for_its_own_api_key() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let other = site.another_key(&account.wallet, "other");
    let gateway = site.serve();
    let key = request_key();
    let path = format!("/v1/operations/{key}/receipt");
    error(Code::NotFound).check(&gateway.get(&account, &path));
    let running =
        Request::completion(&account.key, &key, acme("Say hello")).begin(gateway.address());
    upstream.wait_for(1);
    error(Code::OperationInProgress).bound().check(&gateway.get(&account, &path));
    gate.open();
    check_completion(&running.answer(), &key, false);
    assert_eq!(receipt(&gateway, &account, &key)["receipt"]["charge"]["status"], "completed");
    error(Code::NotFound).check(&gateway.get(&other, &path));
    error(Code::InvalidApiKey).check(&gateway.send(&Request::get(&path)));
    let malformed = gateway.get(&account, "/v1/operations/seven/receipt");
    error(Code::IdempotencyKeyMalformed).check(&malformed);
}

#[test]
fn an_operation_without_a_charge_has_a_receipt_of_zero_and_one_that_may_run_again_has_none() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let keys = keys(&gateway);
    for (directive, status) in [("refuse", "refused"), ("fail-after", "abandoned")] {
        let key = request_key();
        drop(gateway.complete(&account, &key, &sim(&format!("[[sim: {directive}]]\nHello"))));
        let signed = receipt(&gateway, &account, &key);
        let charge = &signed["receipt"]["charge"];
        assert_eq!((&charge["status"], &charge["charge_micros"]), (&json!(status), &json!("0")));
        drop(verified(&site, &signed, &keys).json());
        assert_eq!(verified_by_python(&site).json()["charge_micros"], 0);
    }
    let key = request_key();
    drop(gateway.complete(&account, &key, &sim("[[sim: fail-before]]\nHello")));
    let told = gateway.get(&account, &format!("/v1/operations/{key}/receipt"));
    error(Code::NotFound).check(&told);
    assert!(told.text().contains("no receipt before it ends"), "{told:?}");
}

#[test]
fn keys_rotate_with_the_server_secret_and_old_ones_verify() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let key = request_key();
    check_completion(&gateway.complete(&account, &key, &sim("Hello there")), &key, false);
    let (old, old_keys) = (receipt(&gateway, &account, &key), keys(&gateway));
    gateway.stop();
    let secret = std::fs::read_to_string(site.database().with_file_name("server.secret")).unwrap();
    let secrets = format!("[\"a newer server secret\", \"{}\"]", secret.trim());
    site.configure(&Config::simulated().set("server", "secrets", &secrets));
    let gateway = site.serve();
    let (new, new_keys) = (receipt(&gateway, &account, &key), keys(&gateway));
    assert_eq!(new["receipt"]["charge"], old["receipt"]["charge"]);
    assert_ne!(new["signature"]["key_id"], old["signature"]["key_id"]);
    drop(verified(&site, &old, &new_keys).json());
    drop(verified(&site, &new, &new_keys).json());
    let told = verified(&site, &new, &old_keys).failed(1);
    assert!(told.contains("not_genuine"), "{told}");
}
