//! Query plans: no statement of a request reads a whole table, however SQLite's planner changes.

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, Row};

use super::journal;
use super::records::NUMS;
use super::script::Scripts;
use crate::dialect::Dialect;
use crate::ports::{LEASED_TO, STANDING, Texts};
use crate::reading::{statement, usage};
use crate::usage::By;

const UP: &str = include_str!("../../migrations/sqlite/0001_ledger.up.sql");

async fn plan(connection: &mut SqliteConnection, sql: &str) -> Vec<String> {
    let sql = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
    let rows = sqlx::query(sql).fetch_all(connection).await.unwrap();
    rows.iter().map(|row| row.get::<String, _>("detail")).collect()
}

/// Whether a line reads all rows of a table that grows. What a statement lists itself does not grow.
fn reads_a_table(line: &str) -> bool {
    let scanned = line.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
    scanned.is_some_and(|name| {
        let is_listed = name.starts_with('(') || line.ends_with("-ROW VALUES CLAUSE");
        !["n", "v", "l", "clock", "once", "CONSTANT"].contains(&name) && !is_listed
    })
}

#[tokio::test]
async fn no_statement_of_a_request_reads_a_whole_table() {
    let mut connection = SqliteConnectOptions::new().in_memory(true).connect().await.unwrap();
    connection.execute(UP).await.unwrap();
    connection.execute(NUMS).await.unwrap();
    let mut scripts = Scripts::default();
    let (reads, read_count) = scripts.read(&[true; 6]);
    let (writes, write_count) = scripts.write(&[true; 12]);
    let mut statements: Vec<&str> = reads.split(';').chain(writes.split(';')).collect();
    statements.retain(|sql| !sql.trim().is_empty());
    assert_eq!(statements.len(), read_count + write_count);
    statements.retain(|sql| !sql.contains("BEGIN") && !sql.contains("COMMIT"));
    // Would look for operations of a price that was missing; there are none, and it knows that.
    statements.retain(|sql| !sql.contains("INSERT INTO prices"));
    let texts = Texts::of(Dialect::Sqlite);
    statements.extend([texts.load.as_str(), &texts.due, LEASED_TO]);
    statements.extend([journal::PURGE, journal::SWEEP, statement::LINES, statement::SUMS]);
    statements.push(STANDING);
    for sql in statements {
        let plan = plan(&mut connection, sql).await;
        assert!(!plan.iter().any(|line| reads_a_table(line)), "{sql}\n{plan:#?}");
    }
}

#[tokio::test]
async fn a_report_reads_operations_by_their_numbers_and_sorts_no_more_than_a_page() {
    let mut connection = SqliteConnectOptions::new().in_memory(true).connect().await.unwrap();
    connection.execute(UP).await.unwrap();
    for by in [By::Day, By::Model, By::ApiKey, By::Wallet] {
        let plan = plan(&mut connection, &usage::page(by)).await;
        let operations = "SEARCH o USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)";
        assert_eq!(plan.first().map(String::as_str), Some(operations), "{plan:#?}");
        assert!(!plan.iter().any(|line| reads_a_table(line)), "{plan:#?}");
    }
}

#[tokio::test]
async fn a_statement_of_a_wallet_reads_no_row_of_an_operation_that_it_does_not_show() {
    let mut connection = SqliteConnectOptions::new().in_memory(true).connect().await.unwrap();
    connection.execute(UP).await.unwrap();
    for sql in [statement::LINES, statement::SUMS] {
        let plan = plan(&mut connection, sql).await;
        let covered = "SEARCH o USING COVERING INDEX operations_of_wallet (wallet_id=?)";
        assert!(plan.iter().any(|line| line == covered), "{plan:#?}");
    }
}

#[tokio::test]
async fn a_statement_that_changes_other_rows_than_it_was_given_stops_the_script() {
    let mut connection = SqliteConnectOptions::new().in_memory(true).connect().await.unwrap();
    connection.execute(UP).await.unwrap();
    connection.execute(NUMS).await.unwrap();
    // One record for a wallet that does not exist.
    let mut wallets = super::records::Records::default();
    wallets.row().fixed(&[7; 16]).int(1).int(0);
    let mut wanted = [false; 12];
    wanted[11] = true;
    let (script, _) = Scripts::default().write(&wanted);
    connection.execute("BEGIN IMMEDIATE").await.unwrap();
    let mut query = sqlx::query(AssertSqlSafe(script)).bind(1_i64);
    for records in std::iter::repeat_with(Default::default).take(11).chain([wallets]) {
        query = records.bind(query);
    }
    let stopped = query.execute(&mut connection).await.unwrap_err();
    assert!(stopped.to_string().contains("integer overflow"), "{stopped}");
    connection.execute("ROLLBACK").await.unwrap();
}
