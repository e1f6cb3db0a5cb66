//! What is on offer and who serves it, as an operator reads it at the command line and over the API: nodes
//! whose files differ, routes as the running configuration has them, prices, API keys by their state.

use holdfast_tests::config::ACME;
use holdfast_tests::postgres::Database;
use holdfast_tests::{Config, Reply, Site, Upstream};
use serde_json::{Value, json};

use crate::check::until;
use crate::webhooks_delivered::Owner;

/// The nodes' members of this name, once all of them have told their settings and differ or not.
#[track_caller]
fn wait_for_nodes(site: &Site, differ: bool) -> Vec<Value> {
    until("the nodes have told their settings", || {
        let nodes = site.json(&["node", "list"]);
        let nodes = nodes.as_array().unwrap();
        let is_so = nodes.iter().all(|node| node["settings_differ"] == differ);
        (nodes.len() == 2 && is_so).then(|| nodes.clone())
    })
}

#[test]
fn postgres_nodes_whose_files_differ_are_told_apart_until_they_agree_again() {
    let (upstream, database) = (Upstream::start(Reply::saying("Good day")), Database::migrated());
    let config = database.configure(Config::upstream(&upstream));
    let own = |name: &str| config.clone().set("server", "node", &format!("\"{name}\""));
    let (first, _account) = Site::funded(&own("one"));
    let second = Site::configured(&own("two").set("log", "level", "\"info\""));
    let nodes = [first.serve(), second.serve()];
    let agreed = wait_for_nodes(&first, false);
    assert_eq!(agreed[0]["settings"], agreed[1]["settings"], "what is a node's own is left out");
    let told = first.cli(&["node", "list"]);
    assert!(!told.stderr.contains("differ"), "{told:?}");

    second.configure(
        &own("two")
            .replace("output = 10_000_000", "output = 20_000_000")
            .replace("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
    );
    nodes[1].hang_up();
    let differ = wait_for_nodes(&first, true);
    assert_eq!(differ[0]["settings"], agreed[0]["settings"], "the first one has not changed");
    assert_ne!(differ[1]["settings"], agreed[1]["settings"]);
    let warned = "warning: the settings of one, two differ";
    assert!(first.cli(&["node", "list"]).stderr.contains(warned));
    let owner = Owner::new(&first);
    let listed = owner.show(&nodes[0], "/nodes");
    assert_eq!(listed["data"][1]["settings"], differ[1]["settings"], "{listed}");

    second.configure(&own("two"));
    nodes[1].hang_up();
    assert_eq!(wait_for_nodes(&first, false)[1]["settings"], agreed[1]["settings"]);
    let [one, two] = nodes;
    two.stop();
    one.stop();
    assert_eq!(first.json(&["node", "list"]), json!([]));
}

#[test]
fn models_are_told_with_the_routes_of_the_configuration_that_runs() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let config = Config::upstream(&upstream);
    let (site, _account) = Site::funded(&config);
    let owner = Owner::new(&site);
    let gateway = site.serve();
    let routes = || {
        let told = owner.show(&gateway, "/models");
        assert_eq!(told["data"][0]["id"], ACME, "{told}");
        told["data"][0]["routes"].clone()
    };
    let route = json!({ "name": "acme/upstream-model-mark", "priority": 0, "weight": 1,
        "concurrency": null, "in_flight": 0, "health": "well", "cools_for_ms": null });
    assert_eq!(routes(), json!([route]));
    let name = "model = \"upstream-model-mark\"";
    let more = "\nweight = 3\nconcurrency = 5\npriority = 2";
    site.configure(&config.replace(name, &format!("{name}{more}")));
    gateway.hang_up();
    until("the routes are those of the file", || (routes()[0]["weight"] == 3).then_some(()));
    assert_eq!((&routes()[0]["concurrency"], &routes()[0]["priority"]), (&json!(5), &json!(2)));
    gateway.stop();
}

#[test]
fn prices_are_columns_that_people_read() {
    let tier = "effective_from = 2026-01-01T00:00:00Z\ntiers = [{ above_prompt_tokens = 4_000, \
        micros_per_million = { input = 5_000_000, output = 20_000_000 } }]";
    let upstream = Upstream::start(Reply::saying("Good day"));
    let config = Config::upstream(&upstream).replace("effective_from = 2026-01-01T00:00:00Z", tier);
    let site = Site::configured(&config);
    drop(site.cli(&["migrate", "up"]).ok());
    site.serve().stop();
    let told = site.cli(&["price", "list"]).ok();
    let version = format!("{ACME}/USD/2026-01-01T00:00:00Z");
    let row = told.lines().find(|line| line.starts_with(&version)).unwrap();
    let cells: Vec<_> = row.split('\t').collect();
    let [_version, model, currency, since, tokens, each, tiers] = cells[..] else {
        panic!("{row}")
    };
    assert_eq!((model, currency, since), (ACME, "USD", "2026-01-01T00:00:00Z"));
    // A kind without a rate of its own has that of its text.
    let audio = "audio_input 2.50, audio_output 10.00, cache_write 2.50";
    assert_eq!(
        tokens,
        format!("{audio}, cached_input 0.25, input 2.50, output 10.00, reasoning 10.00")
    );
    assert_eq!(each, "request 0.000007", "what costs nothing is left out");
    assert!(tiers.starts_with("above 4000: audio_input 5.00 "), "{tiers}");
    assert!(tiers.contains(" output 20.00 "), "{tiers}");
    assert!(!told.contains('{'), "{told}");
}

#[test]
fn api_keys_are_listed_by_their_state() {
    let (site, account) = Site::funded(&Config::simulated());
    let suspended = site.key_with(&account.wallet, &["--name", "slow"]);
    let revoked = site.key_with(&account.wallet, &["--name", "gone"]);
    drop(site.cli(&["key", "suspend", "slow", "--reason", "too much"]).ok());
    drop(site.cli(&["key", "revoke", "gone", "--yes"]).ok());
    for (state, expected) in [
        ("in_force", vec![&account.id, &suspended.id]),
        ("suspended", vec![&suspended.id]),
        ("ended", vec![]),
        ("revoked", vec![&revoked.id]),
    ] {
        let listed = site.json(&["key", "list", "--state", state]);
        let ids: Vec<_> = listed.as_array().unwrap().iter().map(|it| it["id"].as_str()).collect();
        assert_eq!(ids, expected.iter().map(|id| Some(id.as_str())).collect::<Vec<_>>(), "{state}");
    }
    let told = site.cli(&["key", "list", "--state", "active"]).failed(2);
    assert!(told.contains("in_force"), "{told}");
}

#[test]
fn check_config_says_what_support_may_refund() {
    let config = Config::simulated();
    let site = Site::configured(&config);
    assert!(!site.cli(&["check-config"]).ok().contains("refund"), "nothing");
    let refunds = "{ USD = 5_000_000, EUR = 250_000 }";
    site.configure(&config.set("roles", "support_refunds", refunds));
    let told = site.cli(&["check-config"]).ok();
    for allowed in ["support refunds a day\t5.00 USD", "support refunds a day\t0.25 EUR"] {
        assert!(told.contains(allowed), "{told}");
    }
    let checked = site.json(&["check-config"]);
    assert_eq!(checked["support_refunds"], json!({ "EUR": 250_000, "USD": 5_000_000 }));
}
