//! A verification whose node is killed in the middle: another process goes on with it from the last page that
//! was kept, to the result that it would have had. How far it is, is told meanwhile.
//!
//! The book has so many postings that a verification takes seconds: the kill finds it in the middle without
//! anything that stops it there.

use holdfast_tests::postgres::Database;
use holdfast_tests::site::text;
use holdfast_tests::{Config, Gateway, Site, database, request_key};
use serde_json::{Value, json};

use crate::bodies::sim;
use crate::check::{check_completion, until};
use crate::webhooks_delivered::Owner;

/// Postings of a book: a verification reads a thousand of them at once, and rests between two pages.
const POSTINGS: u64 = 60_000;

/// A wallet that administration has not made, so that its postings need no trail, and many of them, which
/// its balance does not follow.
const ON_A_FILE: [&str; 2] = [
    "INSERT INTO wallets (id, name, currency, available, held, created_at)
     SELECT randomblob(16), 'filled', currency, 0, 0, created_at FROM wallets",
    "INSERT INTO postings (id, wallet_id, kind, amount, created_at)
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
     SELECT randomblob(16), w.id, 'deposit', 1, w.created_at
     FROM n JOIN wallets AS w ON w.name = 'filled'",
];
const ON_A_SERVER: [&str; 2] = [
    "INSERT INTO wallets (id, name, currency, available, held, created_at)
     SELECT decode(md5('filled'), 'hex'), 'filled', currency, 0, 0, created_at FROM wallets",
    "INSERT INTO postings (id, wallet_id, kind, amount, created_at)
     SELECT decode(md5(i::text), 'hex'), w.id, 'deposit', 1, w.created_at
     FROM generate_series(1, 60000) AS i JOIN wallets AS w ON w.name = 'filled'",
];
/// A charge that its meters do not make: operations are looked at before postings.
const OVERCHARGED: &str = "UPDATE operations SET charge = charge - 1";
/// The end of every lease, as if its minute had gone by.
const LEASES_END: &str = "UPDATE jobs SET lease_ends_at = 0 WHERE state = 'running'";

/// A running verification with the postings behind it, in part.
fn half_done(owner: &Owner, gateway: &Gateway, id: &str) -> Value {
    until("some postings are looked at", || {
        let job = owner.show(gateway, &format!("/jobs/{id}"));
        assert!(matches!(&*text(&job, "state"), "queued" | "running"), "it takes longer: {job}");
        // Of operations there is one: what is beyond a thousand is postings.
        let (done, of) = (job["done"].as_u64().unwrap(), job["of"].as_u64().unwrap());
        (done > 1_000 && of > POSTINGS).then_some(job)
    })
}

/// Kills the node that verifies, and has the one that `next` names go on with the job.
fn check_taken_over(
    site: &Site,
    run: &dyn Fn(&str) -> Vec<String>,
    nodes: Vec<Gateway>,
    next: impl FnOnce(Vec<Gateway>) -> Gateway,
) {
    let owner = Owner::new(site);
    // Without a kill: two mismatches, one on either side of it.
    let whole = site.cli(&["ledger", "verify", "--json"]);
    assert_eq!(whole.code, Some(1), "{whole:?}");
    let whole: Value = serde_json::from_str(&whole.stdout).unwrap();
    assert!(whole["transfers"].as_u64().unwrap() > POSTINGS, "{whole}");

    let started = owner.post(&nodes[0], "/jobs", &json!({ "kind": "verification" }));
    assert_eq!(started.status, 201, "{started:?}");
    let id = text(&started.json(), "id");
    let job = half_done(&owner, &nodes[0], &id);
    assert!(job["done"].as_u64() < job["of"].as_u64() && job["ok"].is_null(), "{job}");
    assert!(!job["report"]["mismatches"].as_array().unwrap().is_empty(), "found so far: {job}");
    let is_on_it = |node: &Gateway| node.said().contains("a job goes on");
    let (killed, rest): (Vec<_>, Vec<_>) = nodes.into_iter().partition(is_on_it);
    let [killed] = <[Gateway; 1]>::try_from(killed).unwrap();
    killed.kill();
    let kept = run("SELECT step_place FROM jobs WHERE state = 'running'");
    assert!(kept[0].starts_with("postings:"), "it was killed in the middle: {kept:?}");
    drop(run(LEASES_END));

    let next = next(rest);
    let done = until("another process has done it", || {
        let job = owner.show(&next, &format!("/jobs/{id}"));
        (job["state"] == "done").then_some(job)
    });
    assert!(is_on_it(&next), "{}", next.said());
    let report = &done["report"];
    for count in ["wallets", "operations", "transfers"] {
        assert_eq!(report[count], whole[count], "each page is counted once: {done}");
    }
    let [expected, found] = [&whole, report].map(|it| it["mismatches"].as_array().unwrap());
    assert_eq!((found.len(), &done["ok"]), (expected.len(), &json!(false)), "{done}");
    for (mismatch, found) in expected.iter().zip(found) {
        assert!(text(mismatch, "text").ends_with(&text(found, "sentence")), "{mismatch} {found}");
    }
    next.stop();
}

/// A book with one operation and many postings, all of them in order but for the two mismatches.
fn site(config: &Config, fill: [&str; 2], run: &dyn Fn(&Site, &str) -> Vec<String>) -> Site {
    let (site, account) = Site::funded(config);
    let gateway = site.serve();
    let key = request_key();
    check_completion(&gateway.complete(&account, &key, &sim("Hello there")), &key, false);
    gateway.stop();
    for sql in fill.into_iter().chain([OVERCHARGED]) {
        drop(run(&site, sql));
    }
    site
}

#[test]
fn sqlite_a_node_that_is_started_again_goes_on_with_the_verification_it_was_killed_in() {
    let run = |site: &Site, sql: &str| database::execute(&site.database(), sql);
    let site = site(&Config::simulated(), ON_A_FILE, &run);
    let nodes = vec![site.serve()];
    check_taken_over(&site, &|sql| run(&site, sql), nodes, |_none| site.serve());
}

#[test]
fn postgres_another_node_goes_on_with_a_verification_whose_node_was_killed() {
    let database = Database::migrated();
    let run = |_site: &Site, sql: &str| database.execute(sql);
    let site = site(&database.configure(Config::simulated()), ON_A_SERVER, &run);
    let nodes = vec![site.serve(), site.serve()];
    let next = |mut rest: Vec<Gateway>| rest.pop().expect("the other node");
    check_taken_over(&site, &|sql| run(&site, sql), nodes, next);
}
