//! Roles of a PostgreSQL database: `docs/reference/postgresql-settings.md` has the grants that they need, and
//! its statements run here, statement by statement, on a schema that nobody else may use.

use std::time::Instant;

use holdfast_tests::postgres::Database;
use holdfast_tests::{Config, Site, request_key};
use serde_json::json;

use crate::bodies::sim;
use crate::check::{charge, check_completion, check_json, until};

const MANUAL: &str = include_str!("../../../docs/reference/postgresql-settings.md");
const FUNDS: i64 = 10_000_000;

/// The blocks of SQL below this heading of the manual, for these roles.
fn blocks(heading: &str, owner: &str, gateway: &str) -> Vec<String> {
    let section = MANUAL.split_once(&format!("\n## {heading}\n")).unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sql\n").skip(1).map(|block| block.split("```").next().unwrap());
    let of_roles = |sql: &str| {
        assert!(sql.contains("holdfast_gateway"), "it grants nothing to the gateway: {sql}");
        sql.replace("holdfast_owner", owner).replace("holdfast_gateway", gateway)
    };
    blocks.map(of_roles).collect()
}

#[test]
fn postgres_a_gateway_works_with_the_grants_of_the_manual_and_no_others() {
    let database = Database::make();
    let (owner, gateway) = (database.make_role(), database.make_role());
    // Everybody may use the schema `public` unless that is taken away: then only the grants count.
    drop(database.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC"));
    let blocks = blocks("Roles and grants", &owner.name, &gateway.name);
    let [before, after] = blocks.as_slice() else { panic!("two blocks: {blocks:?}") };
    let config = Config::simulated().set("retention", "results", "\"1s\"");

    drop(database.execute(before));
    let site = Site::configured(&database.configure_as(&owner, config.clone()));
    drop(site.cli(&["migrate", "up"]).ok());
    let grants = format!("SET ROLE {}; {after}", owner.name);
    drop(database.execute(&grants));
    site.configure(&database.configure_as(&gateway, config.clone()));

    let account = site.account("main", "USD", "10.00");
    let serving = site.serve();
    let key = request_key();
    let paid = charge(&check_completion(
        &serving.complete(&account, &key, &sim("Hello there")),
        &key,
        false,
    ));
    let ended = Instant::now();
    serving.stop();
    until("the result is old", || (ended.elapsed().as_millis() > 1_100).then_some(()));
    // A process purges as it starts, and a minute later again.
    let serving = site.serve();
    until("a purge has deleted the result", || {
        let operation = serving.get(&account, &format!("/v1/operations/{key}"));
        (check_json(&operation, 200)["result_state"] == "expired").then_some(())
    });
    let rotated = site.rotate(&account, "0s");
    let wallet = check_json(&serving.get(&rotated, "/v1/wallet"), 200);
    assert_eq!(wallet["available_micros"], json!(FUNDS - paid));
    site.verify();
    let report = site.json(&["usage", "report", "--by", "wallet"]);
    assert!(report.to_string().contains(&account.wallet), "{report}");

    // The gateway's role makes no tables, and takes none back.
    serving.stop();
    let refused = site.cli(&["migrate", "down", "--yes"]).failed(1);
    assert!(refused.contains("cannot be read or written"), "{refused}");
    site.configure(&database.configure_as(&owner, config));
    site.verify();
    drop(site.cli(&["migrate", "down", "--yes"]).ok());
}
