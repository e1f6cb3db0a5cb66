//! Limits that are edited while their API key is in use: what was used before the edit counts, also at a gateway that
//! remembers the key as it was.

use holdfast_tests::postgres::Database;
use holdfast_tests::{Account, Config, Gateway, Site, request_key};
use holdfast_wire::error::Code;
use serde_json::Value;

use crate::bodies::sim;
use crate::check::{charge, check_completion, check_json, error};
use crate::remote::Remote;

/// Runs once; its charge.
fn run(gateway: &Gateway, account: &Account) -> i64 {
    let key = request_key();
    charge(&check_completion(&gateway.complete(account, &key, &sim("Hello there")), &key, false))
}

/// Spend as the API key's holder sees it.
fn spend(gateway: &Gateway, account: &Account) -> Value {
    check_json(&gateway.get(account, "/v1/wallet"), 200)["api_key"]["limits"]["spend"].clone()
}

/// What the counter of a window stands at, as an operator sees it.
fn shown(json: &dyn Fn(&[&str]) -> Value, account: &Account, window: &str) -> Value {
    let shown = json(&["key", "show", &account.id]);
    let counters = shown["counters"].as_array().unwrap();
    let of_window = counters.iter().find(|it| it["counter"] == format!("spend_{window}"));
    of_window.unwrap_or_else(|| panic!("{shown}"))["used"].clone()
}

/// Edits by `json` on one side; runs and looks at this gateway, which knows the key by limits of before.
fn check(json: &dyn Fn(&[&str]) -> Value, gateway: &Gateway, account: &Account) {
    let mut paid = run(gateway, account);
    for window in ["month", "day", "total", "month"] {
        drop(json(&["key", "update", &account.id, "--spend-limit", &format!("5.00/{window}")]));
        // At once: the gateway remembers the key for five seconds.
        paid += run(gateway, account);
        let spend = spend(gateway, account);
        assert_eq!((&spend["window"], &spend["used_micros"]), (&window.into(), &paid.into()));
        assert_eq!(shown(json, account, window), paid);
    }
    // Below what was spent: the counter stands above the limit, and lets nothing in.
    drop(json(&["key", "update", &account.id, "--spend-limit", "0.000001/day"]));
    let key = request_key();
    let refused = gateway.complete(account, &key, &sim("Hello there"));
    error(Code::SpendLimitExceeded).echo(&key).replayed(false).check(&refused);
    let spend = spend(gateway, account);
    assert_eq!((&spend["used_micros"], &spend["remaining_micros"]), (&paid.into(), &0.into()));
    assert_eq!(shown(json, account, "day"), paid);
}

#[test]
fn a_limit_that_is_set_beside_a_server_counts_what_the_key_has_spent() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    check(&|arguments| site.json(arguments), &gateway, &account);
    site.verify();
}

#[test]
fn postgres_a_limit_that_is_set_at_one_gateway_counts_what_was_spent_at_another() {
    let database = Database::migrated();
    let (site, account) = Site::funded(&database.configure(Config::simulated()));
    let (edits, runs) = (site.serve(), site.serve());
    let remote = Remote::owner(&site, &edits);
    check(&|arguments| remote.json(arguments), &runs, &account);
    site.verify();
}
