//! A gateway at rest on PostgreSQL: its heartbeats, and few other statements.

use std::time::Duration;

use holdfast_tests::postgres::Database;
use holdfast_tests::{Config, Site};

use crate::check::until;

/// Heartbeats that the server has counted, and transactions on the database.
fn counts(database: &Database) -> [i64; 2] {
    let row = database.execute(
        "SELECT t.n_tup_upd, d.xact_commit + d.xact_rollback
         FROM pg_stat_user_tables AS t JOIN pg_stat_database AS d ON d.datname = current_database()
         WHERE t.relname = 'nodes'",
    );
    let row: Vec<i64> = row[0].split('|').map(|count| count.parse().unwrap()).collect();
    [row[0], row[1]]
}

#[test]
fn postgres_a_gateway_at_rest_sends_little_more_than_its_heartbeats() {
    const SECONDS: i64 = 40;
    let database = Database::migrated();
    let config = database.configure(Config::simulated());
    let config = config.set("operations", "lease", "\"6s\"");
    let site = Site::configured(&config.set("operations", "heartbeat", "\"1s\""));
    let gateway = site.serve();
    // Its tasks have looked once, and stop looking.
    until("a start", || Some(counts(&database)).filter(|it| it[0] >= 8));
    // The rest are facts and sums, a few a minute, the sessions of this test, and what the server counts late: its own
    // vacuum, and sessions that fall idle, which keep their counts for up to ten seconds.
    // A rate at rest has no event to wait for, and polls would be counted: the server's own clock passes.
    let begun = counts(&database);
    drop(database.execute_within(&format!("SELECT pg_sleep({SECONDS})"), Duration::from_secs(120)));
    let ended = counts(&database);
    let [heartbeats, transactions] = [0, 1].map(|at| ended[at] - begun[at]);
    assert!(heartbeats >= SECONDS / 2, "{heartbeats}");
    assert!(transactions <= 2 * heartbeats + 60, "{transactions} in {heartbeats} heartbeats");
    gateway.stop();
}
