//! What longer prompts cost, and what runs cost the operator: in a report and in an operation as the
//! operator sees it, never in what a caller gets.

use holdfast_tests::config::SIM;
use holdfast_tests::database::execute;
use holdfast_tests::site::text;
use holdfast_tests::{Config, Site, request_key};
use serde_json::{Value, json};

use crate::bodies::sim;

/// 11 bytes, which are 3 tokens, and 13 tokens with `You said: ` of the answer in front.
const SHORT: &str = "Hello there";
/// 24 bytes: 6 tokens.
const LONG: &str = "Hello there, and so long";

/// 2 micros a token in and 4 out, and 7 a request; above 5 prompt tokens 20 and 40. A run costs the
/// operator 1 micro a token, above 5 prompt tokens 3.
fn config() -> Config {
    Config::simulated()
        .replace(
            "micros_each = { request = 7 }",
            "micros_each = { request = 7 }\n[[models.prices.tiers]]\nabove_prompt_tokens = 5\n\
             micros_per_million = { input = 20_000_000, output = 40_000_000 }",
        )
        .replace(
            "model = \"sim-1\"",
            "model = \"sim-1\"\n[models.routes.cost]\n\
             micros_per_million = { input = 1_000_000, output = 1_000_000 }\n\
             [[models.routes.cost.tiers]]\nabove_prompt_tokens = 5\n\
             micros_per_million = { input = 3_000_000, output = 3_000_000 }",
        )
}

#[test]
fn a_long_prompt_is_held_and_charged_by_its_tier_and_its_cost_is_the_operators_alone() {
    let (site, account) = Site::funded(&config());
    let gateway = site.serve();
    let (mut charges, mut costs) = (0, 0);
    for (words, rates, cost) in [(SHORT, (2, 4), 1), (LONG, (20, 40), 3)] {
        let key = request_key();
        let answer = gateway.complete(&account, &key, &sim(words));
        let usage = &answer.json()["usage"];
        let tokens = |name: &str| usage[name].as_i64().unwrap();
        let (prompt, completion) = (tokens("prompt_tokens"), tokens("completion_tokens"));
        assert_eq!(prompt > 5, words == LONG, "{usage}");
        let charge = prompt * rates.0 + completion * rates.1 + 7;
        assert_eq!(usage["customer_charge_micros"], charge, "{usage}");
        let told = gateway.get(&account, &format!("/v1/operations/{key}"));
        let (whole, operation) = (told.text(), told.json());
        assert!(!whole.contains("cost") && !answer.text().contains("cost"), "{whole}");
        // The bound reaches the tier, whatever the prompt then is.
        let hold = operation["hold_micros"].as_i64().unwrap();
        assert!(hold > 500 * 40, "{operation}");
        let shown = site.json(&["operation", "show", &text(&operation, "id")]);
        let provider_cost = (prompt + completion) * cost;
        assert_eq!(shown["provider_cost_micros"], provider_cost, "{shown}");
        charges += charge;
        costs += provider_cost;
    }
    let report = site.json(&["usage", "report", "--by", "model"]);
    assert_eq!(report[0]["costed"], 2, "{report}");
    assert_eq!(report[0]["provider_cost_micros"], costs, "{report}");
    assert_eq!(report[0]["margin_micros"], charges - costs, "{report}");
    let tiers = &gateway.get(&account, &format!("/v1/models/{SIM}")).json()["prices"][0]["tiers"];
    assert_eq!(tiers[0]["above_prompt_tokens"], 5, "{tiers}");
    assert_eq!(tiers[0]["micros_per_million"]["output"], 40_000_000, "{tiers}");
    assert_eq!(tiers[0]["micros_each"]["request"], 7, "{tiers}");
    site.verify();
}

#[test]
fn a_cost_in_another_currency_than_the_wallets_is_not_kept() {
    let euros =
        config().replace("[models.routes.cost]", "[models.routes.cost]\ncurrency = \"EUR\"");
    let (site, account) = Site::funded(&euros);
    let gateway = site.serve();
    let key = request_key();
    let _answer = gateway.complete(&account, &key, &sim(SHORT));
    let shown = site.json(&["operation", "show", "--api-key", &account.id, &key]);
    assert_eq!(shown["provider_cost_micros"], Value::Null, "{shown}");
    let report = site.json(&["usage", "report"]);
    let sums = ["costed", "provider_cost_micros", "margin_micros"].map(|name| &report[0][name]);
    assert_eq!(sums, [&json!(0), &Value::Null, &Value::Null], "not known is not zero: {report}");
    let csv = site.cli(&["usage", "report", "--format", "csv"]).ok();
    let [head, sums] =
        [0, 1].map(|line| csv.lines().nth(line).unwrap().split(',').collect::<Vec<_>>());
    let cell = |name| sums[head.iter().position(|it| *it == name).unwrap()];
    assert_eq!(["provider_cost_micros", "margin_micros"].map(cell), ["-", "-"], "{csv}");
}

#[test]
fn other_tiers_under_a_known_price_version_are_refused() {
    let (site, _account) = Site::funded(&config());
    drop(site.serve());
    let price =
        |above| format!("above_prompt_tokens = {above}\nmicros_per_million = {{ input = 20_");
    site.configure(&config().replace(&price(5), &price(6)));
    let said = site.cli(&["serve"]).failed(2);
    assert!(said.contains("give new prices a new effective_from"), "{said}");
}

#[test]
fn sqlite_a_cost_that_no_run_can_have_caused_is_taken_out_by_command() {
    let (site, account) = Site::funded(&config());
    let gateway = site.serve();
    assert_eq!(gateway.complete(&account, &request_key(), &sim(SHORT)).status, 200);
    gateway.stop();
    let exclude = |more: &[&str]| {
        let command = [&["usage", "exclude-costs"], more].concat();
        site.json(&command)["costs_excluded"].clone()
    };
    assert_eq!(exclude(&[]), 0);
    let change = |statement: &str| execute(&site.database(), statement).join("\n");
    let names = change(
        "SELECT group_concat(name) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'operations'",
    );
    let triggers: Vec<_> = names
        .split(',')
        .filter(|name| !name.is_empty())
        .map(|name| (name, change(&format!("SELECT sql FROM sqlite_master WHERE name = '{name}'"))))
        .collect();
    for (name, _sql) in &triggers {
        change(&format!("DROP TRIGGER {name}"));
    }
    change("UPDATE operations SET provider_cost = 9223372036854775807");
    for (_name, sql) in &triggers {
        change(sql);
    }
    assert_eq!(exclude(&["--dry-run"]), 1);
    assert_eq!(exclude(&["--reason", "the gateway behind was broken"]), 1);
    assert_eq!(exclude(&[]), 0, "a second time");
    let trail = site.json(&["audit", "list"]).to_string();
    assert_eq!(trail.matches("usage.exclude_costs").count(), 1, "{trail}");
    let report = site.json(&["usage", "report"]);
    assert_eq!((&report[0]["costs_excluded"], &report[0]["incomplete"]), (&json!(1), &json!(true)));
    site.verify();
}
