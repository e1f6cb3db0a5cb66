//! Answers without runs: `Holdfast-Replay-Only` gets what a retry would get, and nothing else.

use holdfast_tests::{Account, Answer, Config, Gate, Gateway, Reply, Request, Site, Upstream};
use holdfast_tests::{request_key, upstream::error as upstream_error};
use holdfast_wire::error::Code;
use serde_json::json;

use crate::bodies::{acme, sim};
use crate::check::{check_completion, error};

const FUNDS: i64 = 10_000_000;

fn replay(gateway: &Gateway, account: &Account, key: &str, body: &str) -> Answer {
    let request = Request::completion(&account.key, key, body);
    gateway.send(&request.header("Holdfast-Replay-Only", "true"))
}

#[test]
fn a_key_without_an_answer_is_not_found_and_stays_free() {
    let (site, account) = Site::funded(&Config::simulated());
    let poor = site.key_with(&account.wallet, &["--spend-limit", "0.000001/total"]);
    let gateway = site.serve();
    let key = request_key();
    let told = replay(&gateway, &account, &key, &sim("Hello there"));
    let told = error(Code::NotFound).echo(&key).replayed(false).check(&told);
    assert!(told["message"].as_str().unwrap().contains("Holdfast-Replay-Only"), "{told}");
    // What would keep it from running is not looked at: it is not to run.
    let unknown = sim("Hello there").replace("sim-1", "sim-9");
    for (asks, body) in [
        (&account, unknown),
        (&account, sim("Hello there").replacen('{', r#"{"nonsense":1,"#, 1)),
        (&poor, sim("Hello there")),
    ] {
        let key = request_key();
        let told = replay(&gateway, asks, &key, &body);
        error(Code::NotFound).echo(&key).replayed(false).check(&told);
    }
    let told = replay(&gateway, &account, &key, "no JSON");
    error(Code::InvalidJson).echo(&key).replayed(false).check(&told);
    assert_eq!(site.verify()["operations"], 0);
    assert_eq!(site.balance(&account), (FUNDS, 0));
    check_completion(&gateway.complete(&account, &key, &sim("Hello there")), &key, false);
}

#[test]
fn a_bound_key_answers_as_a_retry_does() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let (body, completed, refused) = (acme("Say hello"), request_key(), request_key());
    let first = gateway.complete(&account, &completed, &body);
    let again = replay(&gateway, &account, &completed, &body);
    check_completion(&again, &completed, true);
    assert_eq!(again.body, first.body);
    let streamed = body.replacen('{', r#"{"stream":true,"#, 1);
    let request = Request::completion(&account.key, &completed, streamed);
    let mut streamed = request.header("Holdfast-Replay-Only", "true").begin(gateway.address());
    assert!(streamed.rest().contains("data: [DONE]"), "a stream as well");
    let other = replay(&gateway, &account, &completed, &acme("Something else"));
    error(Code::IdempotencyKeyConflict).echo(&completed).replayed(false).check(&other);
    upstream.next(Reply::json(400, &upstream_error("invalid_value")));
    let first = gateway.complete(&account, &refused, &body);
    let again = replay(&gateway, &account, &refused, &body);
    error(Code::ProviderRefused).echo(&refused).replayed(true).bound().check(&again);
    assert_eq!(again.body, first.body);
    assert_eq!(upstream.runs(), 2);
}

#[test]
fn a_running_operation_is_waited_for_and_an_open_one_not_run_again() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let gate = Gate::new();
    upstream.next(Reply::saying("Good day").after(&gate));
    let (body, key) = (acme("Say hello"), request_key());
    let first = Request::completion(&account.key, &key, &*body).begin(gateway.address());
    upstream.wait_for(1);
    let second = Request::completion(&account.key, &key, &*body);
    let second = second.header("Holdfast-Replay-Only", "true").begin(gateway.address());
    gate.open();
    check_completion(&first.answer(), &key, false);
    check_completion(&second.answer(), &key, true);
    let open = request_key();
    upstream.next(Reply::json(429, &upstream_error("rate_limit_exceeded")));
    let told = gateway.complete(&account, &open, &body);
    assert_eq!(told.status, 503, "{told:?}");
    let told = replay(&gateway, &account, &open, &body);
    error(Code::NotFound).echo(&open).replayed(false).check(&told);
    assert_eq!(upstream.runs(), 2, "and nothing was sent");
    let look = gateway.get(&account, &format!("/v1/operations/{open}")).json();
    assert_eq!((&look["status"], &look["generation"]), (&json!("open"), &json!(1)));
}

#[test]
fn any_other_value_is_refused_before_anything_runs() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    for bad in ["false", "TRUE", "1", ""] {
        let key = request_key();
        let request = Request::completion(&account.key, &key, sim("Hello there"));
        let told = gateway.send(&request.header("Holdfast-Replay-Only", bad));
        error(Code::InvalidValue).param("Holdfast-Replay-Only").echo(&key).check(&told);
    }
    assert_eq!(site.verify()["operations"], 0);
}

#[test]
fn a_quoted_key_is_the_bare_one() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let key = request_key();
    let quoted = gateway.complete(&account, &format!("\"{key}\""), &sim("Hello there"));
    check_completion(&quoted, &key, false);
    let bare = gateway.complete(&account, &key, &sim("Hello there"));
    check_completion(&bare, &key, true);
    assert_eq!(bare.body, quoted.body);
    let look = gateway.get(&account, &format!("/v1/operations/{key}"));
    assert_eq!(look.json()["idempotency_key"], key);
    assert!(!site.logs().contains(&format!("\"{key}\"")), "the log has the bare form");
}
