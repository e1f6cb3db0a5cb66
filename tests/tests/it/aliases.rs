//! Aliases of models, from the configuration to the answers, over a restart and over a change of where they lead.

use holdfast_tests::config::SIM;
use holdfast_tests::{Config, Site, request_key};
use serde_json::json;

use crate::bodies::sim;

fn aliased() -> String {
    sim("Hello").replace(SIM, "smart")
}

fn with_aliases(aliases: &str) -> Config {
    Config::simulated().replace("contract = 1", &format!("aliases = [{aliases}]\ncontract = 1"))
}

#[test]
fn an_alias_is_one_name_of_its_model_in_requests_and_answers() {
    let (site, account) = Site::funded(&with_aliases("\"smart\", \"quick\""));
    let narrow = site.key_with("main", &["--name", "narrow", "--models", SIM]);
    let gateway = site.serve();
    let key = request_key();
    let first = gateway.complete(&account, &key, &aliased());
    assert_eq!(first.json()["model"], "smart", "{first:?}");
    // The id and the other alias are the same request.
    for body in [sim("Hello"), aliased(), sim("Hello").replace(SIM, "quick")] {
        let again = gateway.complete(&account, &key, &body);
        assert_eq!((again.status, again.header("idempotent-replayed")), (200, Some("true")));
        assert_eq!(again.json(), first.json());
    }
    let operation = gateway.get(&account, &format!("/v1/operations/{key}")).json();
    assert_eq!(
        (&operation["model"], &operation["result"]["model"]),
        (&json!(SIM), &json!("smart"))
    );
    // An allow-list has the id.
    assert_eq!(gateway.complete(&narrow, &request_key(), &aliased()).json()["model"], "smart");
    let listed = gateway.get(&account, "/v1/models").json();
    assert_eq!(listed["data"][0]["id"], SIM);
    assert_eq!(listed["data"][0]["aliases"], json!(["smart", "quick"]));
    assert_eq!(gateway.get(&account, "/v1/models/quick").json()["id"], SIM);
    let mistyped = gateway.complete(&account, &request_key(), &aliased().replace("smart", "smrat"));
    let message = mistyped.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("did you mean smart?"), "{message}");
    let checked = site.cli(&["check-config"]).stdout;
    assert!(checked.contains("smart") && checked.contains("quick"), "{checked}");
    drop(gateway);
    // Without its alias the key keeps its answer, however the body is written.
    site.configure(&Config::simulated());
    let gateway = site.serve();
    let respelled = format!(" {}", aliased());
    for body in [aliased(), respelled, sim("Hello")] {
        let again = gateway.complete(&account, &key, &body);
        assert_eq!(again.json(), first.json(), "{body}");
    }
    let unbound = gateway.complete(&account, &request_key(), &aliased());
    assert_eq!(unbound.json()["error"]["code"], "model_not_found");
    drop(gateway);
    site.verify();
}
