//! The administration as its description has it: a tester that knows nothing else sends what it allows
//! and what it forbids, with an owner's key, so that nothing stops a request but what the request says.

use std::time::Duration;

use holdfast_tests::config::SIM;
use holdfast_tests::{Config, Ran, Request, Site, request_key};
use serde_json::{Value, json};

use crate::described::{script, tool};

/// Seconds of the tester's own deadline for one answer.
const PATIENCE: &str = "30";
/// Longest run of the tester, on a machine with other work: it sends some thousand requests.
const RUN: Duration = Duration::from_secs(240);

#[test]
fn python_finds_the_description_of_the_administration_valid() {
    let (site, _account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let host = format!("localhost:{}", gateway.admin_address().port());
    let request = Request::get("/admin/openapi.json").host(&host);
    let answer = request.send(gateway.admin_address());
    site.write("openapi.json", answer.text());
    let said = Ran::of(tool("openapi-spec-validator", &site).arg("openapi.json")).ok();
    assert_eq!(said.trim(), "openapi.json: OK");
}

/// Every check of the tester. It changes what it may change, so the book is verified after it.
#[test]
fn python_finds_that_the_administration_keeps_to_its_description() {
    let allowed = Config::simulated().set("webhooks", "allow", "[\"http://localhost\"]");
    let (site, account) = Site::funded_for(RUN, &allowed);
    let issue = |name, role| site.json(&["admin-key", "issue", "--name", name, "--role", role]);
    let owner = issue("tester", "owner");
    // Another key than the tester's own, which it would rotate and then be without.
    let other = issue("spare", "auditor");
    let person = site.json(&["person", "invite", "ada@example.com", "--role", "support"]);
    let gateway = site.serve();
    let body = json!({ "model": SIM, "messages": [{ "role": "user", "content": "hello" }] });
    let answer = gateway.complete(&account, &request_key(), &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let operations = site.json(&["operation", "list"]);
    let operation = operations[0]["id"].as_str().unwrap();
    let url = format!("http://localhost:{}/admin/openapi.json", gateway.admin_address().port());
    // What is whole may be refused for what the book says: an edit in between, a balance, a charge.
    let statuses = r#"["2xx", "401", "403", "404", "409", "412", "422", "429"]"#;
    // A pattern cannot say which characters are seen: a table of another test has those that are refused.
    let settings = format!(
        "[generation]\ncodec = \"ascii\"\n[checks.positive_data_acceptance]\nexpected-statuses = {statuses}\n"
    );
    site.write("schemathesis.toml", &settings);
    let mut tester = tool("schemathesis", &site);
    tester
        .args(["run", &url, "--checks", "all", "--phases", "examples,coverage,fuzzing"])
        .args(["--max-examples", "10", "--seed", "1", "--continue-on-failure", "--workers", "1"])
        .args(["--request-timeout", PATIENCE])
        .env("NO_PROXY", "localhost")
        .env("SCHEMATHESIS_HOOKS", script("admin_hooks"))
        .env("HOLDFAST_ADMIN_KEY", owner["key"].as_str().unwrap())
        .env("HOLDFAST_WALLET_ID", &account.wallet)
        .env("HOLDFAST_API_KEY_ID", &account.id)
        .env("HOLDFAST_ADMIN_KEY_ID", other["id"].as_str().unwrap())
        .env("HOLDFAST_PERSON_ID", person["id"].as_str().unwrap())
        .env("HOLDFAST_OPERATION_ID", operation)
        .env("HOLDFAST_MODEL", SIM)
        .env("HOLDFAST_RECEIVER", "http://localhost/");
    let said = Ran::within(&mut tester, RUN).ok();
    assert!(!said.contains("Authentication failed"), "it keeps its key: {said}");
    let log = site.logs();
    let n_answered = |status: &str| log.matches(&format!("status={status} ")).count();
    assert!(n_answered("201") > 50 && n_answered("400") > 500, "it changes, and it is refused");
    assert_eq!(n_answered("500") + n_answered("503"), 0);
    let shown = site.json(&["wallet", "show", &account.wallet]);
    assert_eq!(shown["held_micros"], Value::from(0));
    site.verify();
}
