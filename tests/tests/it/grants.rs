//! What an API key is issued with: shown to its operator, met at the socket.

use holdfast_tests::config::SIM;
use holdfast_tests::site::text;
use holdfast_tests::{Account, Config, Gateway, Site, database, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::bodies::sim;
use crate::check::{check_completion, check_json, error, until};

const OTHER: &str = "holdfast/other-1";

/// The simulated model under two names.
fn two_models() -> Config {
    Config::simulated().model(OTHER, "sim", "sim-1", "input = 2_000_000, output = 4_000_000")
}

#[test]
fn an_api_key_shows_everything_that_it_was_issued_with() {
    let (site, account) = Site::funded(&two_models());
    let models = format!("{SIM},{OTHER}");
    let issued = site.json(&[
        "key",
        "issue",
        "--wallet",
        "main",
        "--name",
        "ci",
        "--expires",
        "2100-01-01T01:00:00+01:00",
        "--models",
        &models,
        "--spend-limit",
        "25.00/month",
        "--rpm",
        "60",
        "--tpm",
        "90000",
        "--concurrency",
        "3",
        "--hide-balance",
    ]);
    let mut expected = json!({
        "id": issued["id"], "key": issued["key"], "wallet_id": account.wallet, "name": "ci",
        "models": [OTHER, SIM],
        "limits": {
            "requests_per_minute": 60, "tokens_per_minute": 90_000, "concurrency": 3,
            "spend_micros": 25_000_000, "spend_window": "month",
        },
        "requests_per_minute": 60, "tokens_per_minute": 90_000, "concurrency": 3,
        "spend_micros": 25_000_000, "spend_window": "month", "balance": "hidden",
        "hide_balance": true, "created_at": issued["created_at"],
        "ends_at": "2100-01-01T00:00:00.000000Z",
        "expires_at": "2100-01-01T00:00:00.000000Z", "revoked_at": null,
        "external_id": null, "usage": "key", "edited": 0, "suspended_at": null,
    });
    assert_eq!(issued, expected);
    drop(expected.as_object_mut().unwrap().remove("key"));
    let mut listed = site.json(&["key", "list"])[1].clone();
    drop(listed.as_object_mut().unwrap().remove("credentials"));
    assert_eq!(listed, expected);
    let rotated = site.json(&["key", "rotate", "ci"]);
    assert_eq!(rotated["expires_at"], expected["expires_at"], "a rotation does not move the end");
    let shown = site.cli(&["key", "list"]).ok();
    for part in ["60 rpm, 90000 tpm, 3 at once, 25.00/month", "hidden", &format!("{OTHER},{SIM}")] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let spanned = site.json(&["key", "issue", "--wallet", "main", "--expires", "24h"]);
    let day = |name| text(&spanned, name)[..10].to_owned();
    assert!(day("expires_at") > day("created_at"), "{spanned}");
}

#[test]
fn what_cannot_be_granted_is_refused_and_nothing_is_issued() {
    let (site, _account) = Site::funded(&two_models());
    for (option, value, why) in [
        ("--expires", "yesterday", "write a date"),
        ("--expires", "0d", "write a date"),
        ("--expires", "2020-01-01T00:00:00Z", "has passed"),
        ("--models", "", "public id"),
        ("--models", "Sim-1", "public id"),
        ("--models", "holdfast/sim-1,", "public id"),
        ("--models", "holdfast/typo", "there is no model holdfast/typo"),
        ("--spend-limit", "25.00", "AMOUNT/month"),
        ("--spend-limit", "25.00/year", "AMOUNT/month"),
        ("--spend-limit", "0/day", "more than zero"),
        ("--spend-limit", "-1/day", ""),
        ("--spend-limit", "0.0000001/day", "six decimals"),
        ("--rpm", "0", "write a whole number from 1"),
        ("--tpm", "5k", "write a whole number from 1"),
        ("--concurrency", "many", "write a whole number from 1"),
    ] {
        let option = format!("{option}={value}");
        let said = site.cli(&["key", "issue", "--wallet", "main", &option]).failed(2);
        assert!(said.contains(why), "{option}: {said}");
    }
    let said = site.cli(&["key", "issue", "--wallet", "main", "--rpm", "-1"]).failed(2);
    assert!(said.contains("write a whole number from 1"), "{said}");
    assert_eq!(site.json(&["key", "list"]).as_array().unwrap().len(), 1);
}

fn ids(gateway: &Gateway, account: &Account) -> Vec<Value> {
    let models = check_json(&gateway.get(account, "/v1/models"), 200);
    models["data"].as_array().unwrap().iter().map(|model| model["id"].clone()).collect()
}

fn other(text: &str) -> String {
    sim(text).replace(SIM, OTHER)
}

#[test]
fn an_api_key_uses_the_models_that_it_may_use() {
    let (site, all) = Site::funded(&two_models());
    let gateway = site.serve();
    let one = site.key_with(&all.wallet, &["--models", SIM]);
    assert_eq!(ids(&gateway, &all), [OTHER, SIM]);
    assert_eq!(ids(&gateway, &one), [SIM]);
    let look = |account, id: &str| gateway.get(account, &format!("/v1/models/{id}"));
    assert_eq!((look(&one, SIM).status, look(&all, OTHER).status), (200, 200));
    error(Code::ModelNotFound).check(&look(&one, OTHER));

    let key = request_key();
    let not_allowed = error(Code::ModelNotAllowed).param("model").echo(&key).replayed(false);
    not_allowed.check(&gateway.complete(&one, &key, &other("Hello there")));
    let unknown = sim("Hello there").replace(SIM, "holdfast/typo");
    let told = gateway.complete(&one, &key, &unknown);
    error(Code::ModelNotFound).param("model").echo(&key).replayed(false).check(&told);
    check_completion(&gateway.complete(&one, &key, &sim("Hello there")), &key, false);
    check_completion(&gateway.complete(&all, &key, &other("Hello there")), &key, false);
    site.verify();
}

#[test]
fn sqlite_a_bound_key_gets_its_answer_whatever_may_be_used_today() {
    let (site, all) = Site::funded(&two_models());
    let gateway = site.serve();
    let one = site.key_with(&all.wallet, &["--models", SIM]);
    let key = request_key();
    let first = gateway.complete(&one, &key, &sim("Hello there"));
    check_completion(&first, &key, false);
    let narrowed = format!("UPDATE api_keys SET models = '{OTHER}' WHERE models = '{SIM}'");
    drop(database::execute(&site.database(), &narrowed));
    until("the allow-list is another", || (ids(&gateway, &one) == [OTHER]).then_some(()));
    let again = gateway.complete(&one, &key, &sim("Hello there"));
    check_completion(&again, &key, true);
    assert_eq!(again.body, first.body);
    let fresh = request_key();
    let told = gateway.complete(&one, &fresh, &sim("Hello there"));
    error(Code::ModelNotAllowed).param("model").echo(&fresh).replayed(false).check(&told);
}

#[test]
fn an_api_key_that_may_not_see_the_balance_sees_its_own_limits() {
    let (site, all) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let options = ["--hide-balance", "--spend-limit", "1.00/total"];
    let hidden = site.key_with(&all.wallet, &options);
    let key = request_key();
    let completion =
        check_completion(&gateway.complete(&hidden, &key, &sim("Hello there")), &key, false);
    let paid = crate::check::charge(&completion);
    let wallet = check_json(&gateway.get(&hidden, "/v1/wallet"), 200);
    assert_eq!(
        wallet,
        json!({
            "id": all.wallet, "currency": "USD", "available_micros": null, "held_micros": null,
            "api_key": {
                "id": hidden.id, "models": null, "expires_at": null,
                "limits": {
                    "requests_per_minute": null, "tokens_per_minute": null, "concurrency": null,
                    "spend": {
                        "window": "total", "limit_micros": 1_000_000, "used_micros": paid,
                        "remaining_micros": 1_000_000 - paid,
                        "window_start": null, "resets_at": null,
                    },
                },
            },
        })
    );
    let wallet = check_json(&gateway.get(&all, "/v1/wallet"), 200);
    assert_eq!(wallet["available_micros"], 10_000_000 - paid);
    let spend = &wallet["api_key"]["limits"]["spend"];
    assert_eq!(*spend, Value::Null, "another key's limits are not this one's");
}

#[test]
fn an_api_key_ends_when_it_was_said_and_is_not_prolonged() {
    let (site, all) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let short = site.key_with(&all.wallet, &["--name", "short", "--expires", "12s"]);
    assert_eq!(gateway.get(&short, "/v1/wallet").status, 200);
    let rotated = site.rotate(&short, "24h");
    assert_eq!(gateway.get(&rotated, "/v1/wallet").status, 200);
    for account in [&short, &rotated] {
        let ended = until("the key has ended", || {
            let answer = gateway.get(account, "/v1/wallet");
            (answer.status == 401).then_some(answer)
        });
        error(Code::InvalidApiKey).check(&ended);
    }
    let said = site.cli(&["key", "rotate", "short"]).failed(1);
    assert!(said.contains("past its end"), "{said}");
    assert_eq!(gateway.get(&all, "/v1/wallet").status, 200, "another key goes on");
}
