//! An answer that a hand damaged in the database: nobody gets half of it, the model is not called again,
//! and both doors tell what was paid.

use holdfast_tests::database::execute;
use holdfast_tests::{Config, Site, request_key};
use holdfast_wire::error::Code;

use crate::bodies::sim;
use crate::check::{charge, check_completion, check_json, error};

#[test]
fn sqlite_a_damaged_answer_is_told_with_its_bill() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let (key, body) = (request_key(), sim("Hello there"));
    let paid = charge(&check_completion(&gateway.complete(&account, &key, &body), &key, false));
    let path = format!("/v1/operations/{key}");
    let meters = check_json(&gateway.get(&account, &path), 200)["meters"].clone();
    gateway.stop();

    let change = |statement: &str| execute(&site.database(), statement).join("\n");
    let trigger = change("SELECT sql FROM sqlite_master WHERE name = 'results_never_change'");
    for statement in [
        "DROP TRIGGER results_never_change",
        "UPDATE results SET sealed = zeroblob(length(sealed))",
        &trigger,
    ] {
        assert_eq!(change(statement), "");
    }

    let gateway = site.serve();
    let expected = error(Code::InternalError).for_good().bound().billed(paid, meters);
    let told = gateway.complete(&account, &key, &body);
    let told = expected.clone().echo(&key).replayed(true).check(&told);
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("cannot be read any more"), "{message}");
    expected.check(&gateway.get(&account, &path));
    assert_eq!(site.balance(&account), (10_000_000 - paid, 0));
    assert!(site.logs().contains("ERROR"), "the operator is told");
}
