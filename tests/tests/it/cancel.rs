//! A caller cancels its operation: the upstream call is cut, the answer is the row's, and whichever of
//! cancel and result comes first, the books balance.

use std::time::{Duration, Instant};

use holdfast_tests::upstream::error as upstream_error;
use holdfast_tests::{
    Account, Answer, Config, Gate, Gateway, Reply, Request, Site, Upstream, request_key,
};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::admin::{metrics, value, wait_for_waiters};
use crate::bodies::{acme, sim};
use crate::check::{charge, check_completion, check_json, content, error, until};

const CHARGE: i64 = 367;
const FUNDS: i64 = 10_000_000;
/// Races between a cancel and a result.
const ROUNDS: usize = 40;

fn cancelling(account: &Account, key: &str) -> Request {
    Request::post(&format!("/v1/operations/{key}/cancel"), "").bearer(&account.key)
}

fn standing(operation: &Value) -> Value {
    json!(["status", "situation", "charge_micros", "result_state"].map(|name| &operation[name]))
}

fn look(gateway: &Gateway, account: &Account, key: &str) -> Value {
    check_json(&gateway.get(account, &format!("/v1/operations/{key}")), 200)
}

/// The model never says a word: only a cancel ends it.
fn silent_world() -> (Upstream, Site, Account, Gateway) {
    let upstream = Upstream::start(Reply::Silence);
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    (upstream, site, account, gateway)
}

#[test]
fn a_running_operation_is_cut_upstream_and_costs_nothing() {
    let (upstream, site, account, gateway) = silent_world();
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let running = request.begin(gateway.address());
    upstream.wait_for(1);
    let attached = request.begin(gateway.address());
    wait_for_waiters(&gateway, 2);
    let asked = check_json(&gateway.send(&cancelling(&account, &key)), 202);
    let leased = json!(["leased", "in_progress", null, "none"]);
    assert_eq!((standing(&asked), &asked["idempotency_key"]), (leased, &json!(key)));
    upstream.wait_for_hang_ups(1);
    let told = running.answer();
    error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&told);
    let attached = attached.answer();
    error(Code::OutcomeUnknown).echo(&key).replayed(true).bound().check(&attached);

    let ended = check_json(&gateway.send(&cancelling(&account, &key)), 200);
    assert_eq!(standing(&ended), json!(["abandoned", "completed", 0, "none"]));
    assert_eq!(ended, look(&gateway, &account, &key));
    let again = gateway.send(&request);
    assert_eq!((again.status, &again.body), (told.status, &told.body));
    assert_eq!(upstream.runs(), 1);
    assert_eq!(site.balance(&account), (FUNDS, 0));
    site.verify();
    assert_eq!(
        value(&metrics(&gateway), "holdfast_operations_total", "abandoned").to_string(),
        "1"
    );
}

#[test]
fn an_operation_that_has_ended_is_shown_with_its_result() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    for (directive, status, shown) in
        [("", 200, "completed"), ("[[sim: refuse]]\n", 422, "refused")]
    {
        let key = request_key();
        let told = gateway.complete(&account, &key, &sim(&format!("{directive}Hello there")));
        assert_eq!(told.status, status);
        let seen = look(&gateway, &account, &key);
        assert_eq!(seen["status"], shown);
        // Whatever the body: there is nothing to say in it.
        let asking = Request::post(&format!("/v1/operations/{key}/cancel"), "no JSON");
        let ended = check_json(&gateway.send(&asking.bearer(&account.key)), 200);
        assert_eq!(ended, seen);
    }
    site.verify();
}

/// A person who presses stop between two automatic tries is not charged for the next one.
#[test]
fn an_open_operation_ends_at_its_cancel_and_never_runs() {
    let upstream = Upstream::start(Reply::json(429, &upstream_error("rate_limit_exceeded")));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    assert_eq!(gateway.send(&request).status, 503);
    let asked = upstream.runs();
    assert_eq!(look(&gateway, &account, &key)["status"], "open");
    let ended = check_json(&gateway.send(&cancelling(&account, &key)), 200);
    assert_eq!(standing(&ended), json!(["abandoned", "completed", 0, "none"]));
    assert_eq!(check_json(&gateway.send(&cancelling(&account, &key)), 200), ended);
    let again = gateway.send(&request);
    error(Code::OutcomeUnknown).echo(&key).replayed(true).bound().check(&again);
    let told: Value = serde_json::from_slice(&again.body).unwrap();
    let message = told["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("it did not run"), "{message}");
    assert_eq!((upstream.runs(), site.balance(&account)), (asked, (FUNDS, 0)));
    site.verify();
}

#[test]
fn only_its_own_api_key_cancels_a_bound_key_and_only_by_post() {
    let (upstream, site, account, gateway) = silent_world();
    let other = site.another_key(&account.wallet, "other");
    let key = request_key();
    error(Code::NotFound).check(&gateway.send(&cancelling(&account, &key)));
    let running = Request::completion(&account.key, &key, acme("Hi")).begin(gateway.address());
    upstream.wait_for(1);
    error(Code::NotFound).check(&gateway.send(&cancelling(&other, &key)));
    let nobody = Request::post(&format!("/v1/operations/{key}/cancel"), "");
    error(Code::InvalidApiKey).check(&gateway.send(&nobody));
    for method in ["GET", "DELETE", "PUT"] {
        let told = gateway.send(&cancelling(&account, &key).method(method));
        error(Code::MethodNotAllowed).allow("POST").check(&told);
    }
    let malformed = gateway.send(&cancelling(&account, "not-a-key"));
    error(Code::IdempotencyKeyMalformed).check(&malformed);
    assert_eq!(look(&gateway, &account, &key)["status"], "leased");
    let asked = gateway.send(&cancelling(&account, &key));
    assert_eq!(asked.status, 202);
    error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&running.answer());
    site.verify();
}

/// What one race came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    ResultFirst,
    CancelFirst,
}

#[test]
fn a_cancel_and_a_result_that_race_leave_one_truth() {
    let upstream = Upstream::start(Reply::Silence);
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let mut completed = 0;
    for round in 0..ROUNDS {
        let gate = Gate::new();
        upstream.next(Reply::saying("Good day").after(&gate));
        let key = request_key();
        let request = Request::completion(&account.key, &key, acme("Say hello"));
        let running = request.begin(gateway.address());
        upstream.wait_for(round + 1);
        let asked = match round % 3 {
            // In this order, for sure.
            0 => {
                let asked = gateway.send(&cancelling(&account, &key));
                let running = running.answer();
                gate.open();
                check(&gateway, &account, &key, (&asked, &running), Some(Came::CancelFirst));
                continue;
            }
            1 => {
                gate.open();
                let running = running.answer();
                let asked = gateway.send(&cancelling(&account, &key));
                completed += 1;
                check(&gateway, &account, &key, (&asked, &running), Some(Came::ResultFirst));
                continue;
            }
            // At once: nobody knows.
            _ => {
                let asking = cancelling(&account, &key).begin(gateway.address());
                gate.open();
                asking.answer()
            }
        };
        let came = check(&gateway, &account, &key, (&asked, &running.answer()), None);
        completed += usize::from(came == Came::ResultFirst);
    }
    let charged = CHARGE * i64::try_from(completed).unwrap();
    assert_eq!(site.balance(&account), (FUNDS - charged, 0));
    assert_eq!(site.verify()["operations"], ROUNDS);
    let count = |outcome| value(&metrics(&gateway), "holdfast_operations_total", outcome);
    assert_eq!(count("completed").to_string(), completed.to_string());
    assert_eq!(count("abandoned").to_string(), (ROUNDS - completed).to_string());
    assert_eq!(upstream.runs(), ROUNDS);
}

/// Whoever came first, everybody is told what the row says.
#[track_caller]
fn check(
    gateway: &Gateway,
    account: &Account,
    key: &str,
    (asked, told): (&Answer, &Answer),
    expected: Option<Came>,
) -> Came {
    let row = look(gateway, account, key);
    let came = if told.status == 200 { Came::ResultFirst } else { Came::CancelFirst };
    assert!(expected.is_none_or(|expected| expected == came), "{told:?}");
    match came {
        Came::ResultFirst => {
            let completion = check_completion(told, key, false);
            assert_eq!((content(&completion), charge(&completion)), ("Good day", CHARGE));
            assert_eq!(row["result"], completion);
            assert_eq!(standing(&row), json!(["completed", "completed", CHARGE, "kept"]));
            if asked.status == 200 {
                assert_eq!(asked.json(), row);
            }
        }
        Came::CancelFirst => {
            error(Code::OutcomeUnknown).echo(key).replayed(false).bound().check(told);
            assert_eq!(standing(&row), json!(["abandoned", "completed", 0, "none"]));
            assert_eq!(asked.status, 202);
        }
    }
    let again = gateway.complete(account, key, &acme("Say hello"));
    assert_eq!((again.status, &again.body), (told.status, &told.body));
    came
}

#[test]
fn what_is_cancelled_during_a_drain_does_not_hold_it_up() {
    let (upstream, site, account, gateway) = silent_world();
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let running = request.begin(gateway.address());
    upstream.wait_for(1);
    gateway.terminate();
    until("it drains", || (gateway.send(&Request::get("/readyz")).status == 503).then_some(()));
    let began = Instant::now();
    assert_eq!(check_json(&gateway.send(&cancelling(&account, &key)), 202)["status"], "leased");
    error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&running.answer());
    assert!(gateway.wait().success());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(site.balance(&account), (FUNDS, 0));
    site.verify();
}

#[test]
fn what_a_killed_process_left_is_resolved_by_a_cancel() {
    let upstream = Upstream::start(Reply::Silence);
    // Nobody in the background resolves it first.
    let config = Config::upstream(&upstream).set("operations", "heartbeat", "\"300s\"").set(
        "operations",
        "lease",
        "\"900s\"",
    );
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let key = request_key();
    let running = Request::completion(&account.key, &key, acme("Hi")).begin(gateway.address());
    upstream.wait_for(1);
    gateway.kill();
    assert_eq!(running.try_answer(), None);
    let gateway = site.serve();
    let ended = check_json(&gateway.send(&cancelling(&account, &key)), 200);
    assert_eq!(standing(&ended), json!(["abandoned", "completed", 0, "none"]));
    assert_eq!(site.balance(&account), (FUNDS, 0));
    site.verify();
}
