//! An answer that a hand damaged in the database: nobody gets half of it, the model is not called again,
//! and both doors tell what was paid. A database that forgets what it had committed is told of.

use holdfast_tests::database::execute;
use holdfast_tests::postgres::Database;
use holdfast_tests::{Config, Gate, Reply, Request, Site, Upstream, request_key};
use holdfast_wire::error::Code;

use crate::admin::{metrics, value};
use crate::bodies::{acme, sim};
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

/// The database forgets a running operation, as a failover may that was not synchronous: its caller is
/// promised nothing, the operator is told, and the process is not ready any more.
#[track_caller]
fn check_forgotten(config: impl FnOnce(Config) -> Config, forget: impl FnOnce(&Site)) {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account) = Site::funded(&config(Config::upstream(&upstream)));
    let gateway = site.serve();
    let ready = || gateway.send(&Request::get("/readyz"));
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let running = request.begin(gateway.address());
    upstream.wait_for(1);
    assert_eq!(ready().status, 200);
    assert_eq!(value(&metrics(&gateway), "holdfast_ready", ""), 1.0);
    forget(&site);
    gate.open();
    let answer = running.answer();
    let told = error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&answer);
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("the database has lost what was written"), "{message}");
    assert!(!message.contains("not run twice"), "{message}");
    let answer = ready();
    assert_eq!((answer.status, answer.json()["status"].as_str()), (503, Some("lost_commits")));
    let shown = metrics(&gateway);
    assert_eq!(value(&shown, "holdfast_lost_commits_total", ""), 1.0);
    assert_eq!(value(&shown, "holdfast_ready", ""), 0.0);
    assert!(site.logs().contains("the database has lost a claim that it had committed"));
    gateway.stop();
    assert_eq!(
        site.serve().send(&Request::get("/readyz")).status,
        200,
        "another process begins anew"
    );
}

#[test]
fn sqlite_an_operation_that_the_database_forgot_is_told_as_such() {
    let forget = |site: &Site| {
        for statement in ["DROP TRIGGER operations_stay", "DELETE FROM operations"] {
            assert_eq!(execute(&site.database(), statement), Vec::<String>::new());
        }
    };
    check_forgotten(|config| config, forget);
}

#[test]
fn postgres_an_operation_that_the_database_forgot_is_told_as_such() {
    let database = Database::migrated();
    let forget = |_: &Site| {
        let statements = "ALTER TABLE operations DISABLE TRIGGER USER; DELETE FROM operations;
            DELETE FROM running; ALTER TABLE operations ENABLE TRIGGER USER";
        assert_eq!(database.execute(statements), Vec::<String>::new());
    };
    check_forgotten(|config| database.configure(config), forget);
}
