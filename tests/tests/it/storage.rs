//! The database that does not answer, and results that are not kept for ever.

use holdfast_tests::database::WriteLock;
use holdfast_tests::{Config, Gateway, Reply, Request, Site, Upstream, request_key};
use holdfast_wire::error::Code;
use serde_json::json;

use crate::bodies::{acme, sim};
use crate::check::{charge, check_completion, check_json, error, meters, until};

#[test]
fn lock_that_lasts_is_told_and_the_same_key_works_later() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let lock = WriteLock::take(&site.database());
    let told = gateway.complete(&account, &key, &acme("Say hello"));
    error(Code::StorageUnavailable).echo(&key).replayed(false).check(&told);
    assert_eq!(upstream.runs(), 0, "nothing runs without a claim");
    drop(lock);
    let answer = gateway.complete(&account, &key, &acme("Say hello"));
    assert_eq!(answer.status, 200, "{answer:?}");
    let again = gateway.complete(&account, &key, &acme("Say hello"));
    check_completion(&again, &key, true);
    assert_eq!(again.body, answer.body);
    assert_eq!(upstream.runs(), 1);
    assert_eq!(site.balance(&account), (10_000_000 - 367, 0));
    site.verify();
}

#[test]
fn lock_that_fills_the_queue_is_told_and_the_same_keys_work_later() {
    let config = Config::simulated().set("limits", "commit_queue", "1");
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let keys: Vec<_> = (0..16).map(|_| request_key()).collect();
    let lock = WriteLock::take(&site.database());
    let begin = |key: &String| {
        let request = Request::completion(&account.key, key, sim("Hello there"));
        request.begin(gateway.address())
    };
    let waiting: Vec<_> = keys.iter().map(begin).collect();
    until("somebody is turned away", || gateway.said().contains("overloaded").then_some(()));
    drop(lock);
    let mut overloaded = 0;
    for (key, waiting) in keys.iter().zip(waiting) {
        let answer = waiting.answer();
        if answer.status == 200 {
            check_completion(&answer, key, false);
        } else {
            error(Code::Overloaded).echo(key).replayed(false).check(&answer);
            overloaded += 1;
        }
    }
    assert!(overloaded > 0);
    for key in &keys {
        let answer = gateway.complete(&account, key, &sim("Hello there"));
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(site.balance(&account), (10_000_000 - 16 * 37, 0));
    site.verify();
}

/// Waits until the results of earlier processes have been deleted.
fn wait_for_purge(gateway: &Gateway, account: &holdfast_tests::Account, key: &str) {
    until("the result is deleted", || {
        let operation = gateway.get(account, &format!("/v1/operations/{key}")).json();
        (operation["result_state"] == "expired").then_some(())
    });
}

#[test]
fn an_old_result_is_gone_and_its_bill_is_not() {
    let (site, account) = Site::funded(&Config::simulated().set("retention", "results", "\"1s\""));
    let gateway = site.serve();
    let key = request_key();
    let body = sim("Hello there");
    let paid = charge(&check_completion(&gateway.complete(&account, &key, &body), &key, false));
    let refusal = request_key();
    let refused = sim("[[sim: refuse]]\nHello");
    let told = gateway.complete(&account, &refusal, &refused);
    let ended = std::time::Instant::now();
    gateway.stop();

    until("the result is old", || (ended.elapsed().as_millis() > 1_100).then_some(()));
    let gateway = site.serve();
    wait_for_purge(&gateway, &account, &key);
    let expired = gateway.complete(&account, &key, &body);
    let used = meters(&[("input", 3), ("output", 6), ("request", 1)]);
    let told_expired = error(Code::ResultExpired).echo(&key).replayed(true).bound();
    told_expired.billed(paid, used).check(&expired);
    let other = gateway.complete(&account, &key, &sim("Something else"));
    error(Code::IdempotencyKeyConflict).echo(&key).replayed(false).check(&other);

    let again = gateway.complete(&account, &refusal, &refused);
    error(Code::ProviderRefused).echo(&refusal).replayed(true).bound().check(&again);
    assert_eq!(again.body, told.body, "a refusal has fixed words");
    let operation = check_json(&gateway.get(&account, &format!("/v1/operations/{key}")), 200);
    assert_eq!(operation["result"], json!(null));
    assert_eq!(operation["charge_micros"], paid);
    assert_eq!(site.balance(&account), (10_000_000 - paid, 0));
    site.verify();
}
