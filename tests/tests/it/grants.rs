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
        ("--models", "hold/*", "there is no model hold/* in the configuration"),
        ("--models", "holdfast/sim*", "public id"),
        ("--models", "*", "public id"),
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

#[test]
fn an_allow_list_is_edited_to_configured_models_only() {
    let (site, account) = Site::funded(&two_models());
    let key = &account.id;
    let said = site.cli(&["key", "update", key, "--models", "holdfast/typo"]).failed(2);
    assert!(said.contains("there is no model holdfast/typo"), "{said}");
    assert!(said.contains("holdfast model list"), "{said}");
    assert_eq!(site.json(&["key", "update", key, "--models", OTHER])["models"], json!([OTHER]));
    let many: Vec<_> = (0..257).map(|number| format!("holdfast/{number}")).collect();
    let said = site.cli(&["key", "update", key, "--models", &many.join(",")]).failed(2);
    assert!(said.contains("there is no model holdfast/0"), "{said}");
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
fn an_api_key_uses_each_model_of_a_publisher_also_those_configured_later() {
    let acme = "acme/other-1";
    let with_acme = Config::simulated().model(acme, "sim", "sim-1", "input = 1, output = 1");
    let (site, all) = Site::funded(&with_acme);
    let gateway = site.serve();
    let of_publisher = site.key_with(&all.wallet, &["--models", "holdfast/*"]);
    let shown = site.json(&["key", "show", &of_publisher.id]);
    assert_eq!(shown["models"], json!(["holdfast/*"]));
    assert_eq!(ids(&gateway, &of_publisher), [SIM]);
    let key = request_key();
    let not_allowed = sim("Hello").replace(SIM, acme);
    let refusal = error(Code::ModelNotAllowed).param("model").echo(&key).replayed(false);
    refusal.check(&gateway.complete(&of_publisher, &key, &not_allowed));
    check_completion(&gateway.complete(&of_publisher, &key, &sim("Hello")), &key, false);
    drop(gateway);
    site.configure(&two_models());
    let gateway = site.serve();
    assert_eq!(ids(&gateway, &of_publisher), [OTHER, SIM]);
    let key = request_key();
    check_completion(&gateway.complete(&of_publisher, &key, &other("Hello")), &key, false);
    drop(gateway);
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
    let short = site.key_with(&all.wallet, &["--name", "short", "--expires", "1h"]);
    assert_eq!(gateway.get(&short, "/v1/wallet").status, 200);
    let rotated = site.rotate(&short, "24h");
    assert_eq!(gateway.get(&rotated, "/v1/wallet").status, 200);
    // The rotation has not moved the end; and now the hour has gone by.
    let lasts = "SELECT abs(ends_at - created_at - 3600000000) < 60000000 FROM api_keys
        WHERE name = 'short'";
    assert_eq!(database::execute(&site.database(), lasts), ["1"]);
    let over = "UPDATE api_keys SET ends_at = created_at + 1 WHERE name = 'short'";
    assert_eq!(database::execute(&site.database(), over), Vec::<String>::new());
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

#[test]
fn whatever_an_edit_may_set_a_command_sets_and_says_why() {
    let site = Site::configured(&Config::simulated());
    drop(site.cli(&["migrate", "up"]).ok());
    let new = ["wallet", "create", "acme", "--key-spend", "25.00/month", "--reason", "a customer"];
    let wallet = site.json(&new);
    assert_eq!(wallet["key_spend_micros"], 25_000_000);
    assert_eq!(wallet["key_spend_window"], "month");
    let key = site.json(&["key", "issue", "--wallet", "acme", "--name", "laptop"]);
    let edit = ["--external-id", "c-17", "--balance", "hidden", "--reason", "moved"];
    let edited = site.json(&[&["key", "update", "laptop"], &edit[..]].concat());
    assert_eq!((&edited["external_id"], &edited["balance"]), (&json!("c-17"), &json!("hidden")));
    let edit = ["--no-external-id", "--balance", "shown"];
    let edited = site.json(&[&["key", "update", "laptop"], &edit[..]].concat());
    assert_eq!((&edited["external_id"], &edited["balance"]), (&json!(null), &json!("shown")));
    drop(site.cli(&["key", "revoke", "laptop", "--reason", "was stolen", "--yes"]).ok());
    drop(site.cli(&["wallet", "update", "acme", "--name", "a", "--reason", "a new name"]).ok());
    let trail = site.json(&["audit", "list"]);
    let reasons = trail.as_array().unwrap().iter().filter_map(|row| row["reason"].as_str());
    assert_eq!(reasons.collect::<Vec<_>>(), ["a new name", "was stolen", "moved", "a customer"]);
    let listed = |filter: &[&str]| {
        let keys = site.json(&[&["key", "list"], filter].concat());
        keys.as_array().unwrap().iter().map(|it| it["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&["--name", "laptop"]), [key["id"].clone()]);
    assert_eq!(listed(&["--model", "a/b", "--state", "revoked"]), [key["id"].clone()]);
    assert_eq!(listed(&["--name", "desktop"]), Vec::<Value>::new());
}

#[test]
fn a_dry_run_is_judged_and_changes_nothing() {
    let (site, account) = Site::funded(&Config::simulated());
    let before = site.balance(&account);
    let rehearsed = site.json(&["wallet", "deposit", &account.wallet, "5.00", "--dry-run"]);
    assert_eq!(
        (&rehearsed["amount_micros"], &rehearsed["actor"]),
        (&json!(5_000_000), &json!("local"))
    );
    let adjust = |amount: &'static str| {
        let reason = ["--reason", "drift", "--dry-run"];
        site.cli(&[&["wallet", "adjust", &account.wallet, amount], &reason[..]].concat())
    };
    drop(adjust("1.00").ok());
    let refused = adjust("-1000000.00").failed(1);
    assert!(refused.contains("available. Take less."), "{refused}");
    assert_eq!(site.balance(&account), before);
    site.write("names.tsv", "one\ntwo\n");
    let issue = ["key", "issue", "--wallet", &account.wallet, "--from", "names.tsv"];
    let issue = [&issue[..], &["--secrets", "out.tsv"]].concat();
    let rehearsed = site.json(&[&issue[..], &["--dry-run"]].concat());
    assert_eq!((&rehearsed["issued"], &rehearsed["would_issue"]), (&json!(0), &json!(2)));
    assert!(!site.path("out.tsv").exists());
    assert_eq!(site.json(&["key", "list"]).as_array().unwrap().len(), 1);
    drop(site.cli(&issue).ok());
    let taken = site.cli(&[&issue[..], &["--dry-run"]].concat()).failed(1);
    assert!(taken.contains("name"), "{taken}");
}
