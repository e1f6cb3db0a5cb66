//! `check-config --database`: what a reload or a start would refuse, found before either, and nothing changed.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

use holdfast_tests::{Config, Site};
use serde_json::{Value, json};

const CHECK: [&str; 2] = ["check-config", "--database"];

#[test]
fn a_price_that_the_database_knows_otherwise_is_a_mistake_of_its_line() {
    let config = Config::simulated();
    let (site, _account) = Site::funded(&config);
    site.serve().stop();
    assert!(site.cli(&CHECK).ok().contains("accepts it: 1 prices known, 0 new"));
    let rates = "input = 1_000_000, output = 1_000_000";
    let cheaper = config.clone().replace("output = 4_000_000", "output = 1");
    let cheaper = cheaper.model("holdfast/more-1", "sim", "sim-1", rates);
    site.configure(&cheaper);
    assert!(site.cli(&["check-config"]).ok().contains("none"), "the file alone is right");
    let text = cheaper.render();
    let at = text.lines().position(|line| line == "[[models.prices]]").unwrap() + 1;
    let said = site.cli(&CHECK).failed(2);
    let mistake = format!(
        "holdfast.toml:{at}: price version holdfast/sim-1/USD/2026-01-01T00:00:00Z is known with other numbers: \
         give new prices a new effective_from"
    );
    assert!(said.contains(&mistake), "{said}");
    let ran = site.cli(&["check-config", "--database", "--json"]);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (ran.code, &told["ok"], &told["mistakes"]),
        (Some(2), &json!(false), &json!([mistake]))
    );
    // Mended, the new model's price is new as often as it is looked at.
    site.configure(&config.model("holdfast/more-1", "sim", "sim-1", rates));
    for _again in 0..2 {
        let told = site.json(&CHECK);
        let prices = json!({ "prices_known": 1, "prices_new": 1, "warnings": [] });
        assert_eq!((&told["ok"], &told["database"]), (&json!(true), &prices), "{told}");
    }
}

#[test]
fn a_secret_that_no_key_was_made_with_is_found_before_a_start() {
    let config = Config::simulated();
    let (site, _account) = Site::funded(&config);
    let other = "[\"a server secret that nobody has used yet\"]";
    site.configure(&config.clone().set("server", "secrets", other));
    let said = site.cli(&CHECK).failed(2);
    assert!(said.contains("has no secret that the API keys in force"), "{said}");
    assert!(!said.contains("nobody has used"), "{said}");
    site.configure(&config);
    let secret = site.path("holdfast-data/server.secret");
    set_permissions(&secret, Permissions::from_mode(0o644)).unwrap();
    let told = site.json(&CHECK);
    let warning = told["database"]["warnings"][0].as_str().unwrap();
    assert!(warning.contains("others may read: run `chmod 600"), "{told}");
    set_permissions(&secret, Permissions::from_mode(0o620)).unwrap();
    let said = site.cli(&CHECK).failed(2);
    assert!(said.contains("others may write: run `chmod 600"), "{said}");
    assert!(site.cli(&["serve"]).failed(1).contains("others may write"));
}

#[test]
fn a_database_that_is_not_there_is_no_mistake_of_the_file() {
    let site = Site::configured(&Config::simulated());
    let said = site.cli(&CHECK).failed(1);
    assert!(said.contains("there is no database at"), "{said}");
    assert!(!site.path("holdfast-data").exists());
}
