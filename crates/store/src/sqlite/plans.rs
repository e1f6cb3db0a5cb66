//! Query plans: no statement of a request reads a whole table, however SQLite's planner changes.

use std::cell::RefCell;

use holdfast_domain::ledger::BalanceChange;
use holdfast_domain::{Micros, WalletId};
use rusqlite::Connection;
use sea_orm::DbBackend;

use super::purges;
use super::statements::Statements;
use crate::reading::statement;
use crate::reading::usage::facts::{Scope, Selection};
use crate::sale::keys::STANDING;
use crate::schema::Dialect;
use crate::schema::steps;
use crate::store::JournalStatements;
use crate::transaction::command::reads;
use holdfast_domain::admin::report::{GroupBy, UsageFilter};

pub(crate) fn ledger() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(&steps::schema(Dialect::Sqlite)).unwrap();
    connection
}

pub(crate) fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    // No value is bound: a plan does not depend on it.
    explain.raw_query().mapped(|row| row.get("detail")).collect::<Result<_, _>>().unwrap()
}

/// True if a line reads all rows of a table that grows. Rows that a statement lists itself do
/// not grow, nor do those that run.
fn reads_a_table(line: &str) -> bool {
    let scanned = line.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
    scanned.is_some_and(|name| {
        let is_running = line == "SCAN o USING INDEX operations_active";
        let is_listed = name.starts_with('(') || line.ends_with("-ROW VALUES CLAUSE");
        !["l", "moved", "clock", "once", "CONSTANT"].contains(&name) && !is_listed && !is_running
    })
}

#[test]
fn no_statement_of_a_request_reads_a_whole_table() {
    let connection = ledger();
    let texts = RefCell::new(Vec::new());
    let prepare = |sql: &str| {
        texts.borrow_mut().push(sql.to_owned());
        connection.prepare(sql)
    };
    drop(Statements::prepared(&connection, prepare).unwrap());
    let mut statements = texts.into_inner();
    assert_eq!(statements.len(), 26);
    statements.retain(|sql| !["BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"].contains(&sql.as_str()));
    // Would look for operations of a price that was missing; there are none, and it knows that.
    statements.retain(|sql| !sql.starts_with("INSERT INTO prices"));
    let texts = JournalStatements::of(Dialect::Sqlite);
    let others = [texts.load.as_str(), &texts.due, &texts.leased_to, STANDING.as_str()];
    statements.extend(others.map(str::to_owned));
    let others = [
        purges::PURGE_RESULTS,
        purges::PURGE_COUNTERS,
        statement::LINES,
        statement::SUMS,
        statement::BOUNDS,
        statement::DAYS,
        reads::REFUNDED_SINCE,
    ];
    statements.extend(others.map(str::to_owned));
    for sql in statements {
        let plan = plan(&connection, &sql);
        assert!(!plan.iter().any(|line| reads_a_table(line)), "{sql}\n{plan:#?}");
    }
}

#[test]
fn a_report_reads_rows_by_an_index_and_sorts_no_more_than_a_page() {
    let connection = ledger();
    let (everybody, wallet) = (UsageFilter::default(), Some(WalletId::from_u128(1)));
    let customer = UsageFilter { wallet, ..UsageFilter::default() };
    let numbers = Selection::Numbers(0..1);
    for by in GroupBy::ALL {
        for (filter, selection, expected) in [
            (
                &everybody,
                &numbers,
                "SEARCH operations USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
            ),
            (
                &customer,
                &numbers,
                "SEARCH operations USING INDEX operations_of_wallet (wallet_id=? AND rowid>? AND rowid<?)",
            ),
            (&everybody, &Selection::Late, "SEARCH operations USING INTEGER PRIMARY KEY (rowid=?)"),
        ] {
            let scope = Scope {
                dialect: Dialect::Sqlite,
                keys: &[by],
                filter,
                wallets: None,
                summed_to: 0,
            };
            let page = DbBackend::Sqlite.build(&scope.operations(selection, &(0..1)));
            let mut plan = plan(&connection, &page.sql);
            assert_eq!(plan.first().map(String::as_str), Some(expected), "{plan:#?}");
            // Those that are noted are few.
            plan.retain(|line| line != "SCAN late_ends");
            assert!(!plan.iter().any(|line| reads_a_table(line)), "{plan:#?}");
        }
        let scope = Scope {
            dialect: Dialect::Sqlite,
            keys: &[by],
            filter: &customer,
            wallets: None,
            summed_to: 0,
        };
        let hours = DbBackend::Sqlite.build(&scope.hours(&(0..1)));
        let plan = plan(&connection, &hours.sql);
        let expected = "SEARCH usage_hours USING PRIMARY KEY (wallet_id=? AND hour>? AND hour<?)";
        assert_eq!(plan.first().map(String::as_str), Some(expected), "{plan:#?}");
    }
}

#[test]
fn a_statement_of_a_wallet_reads_no_row_of_an_operation_that_it_does_not_show() {
    let connection = ledger();
    for sql in [statement::LINES, statement::SUMS, statement::BOUNDS, statement::DAYS] {
        let plan = plan(&connection, sql);
        let covered = "SEARCH o USING COVERING INDEX operations_of_wallet (wallet_id=?)";
        assert!(plan.iter().any(|line| line == covered), "{plan:#?}");
    }
}

#[test]
fn a_statement_that_changes_another_number_of_rows_than_one_has_failed() {
    let connection = ledger();
    let mut statements = Statements::prepare(&connection).unwrap();
    let moves = BalanceChange { available: Micros::new(1), held: Micros::ZERO };
    let stopped = statements.move_wallet(WalletId::from_u128(7), moves, 1).unwrap_err();
    assert!(matches!(stopped, rusqlite::Error::StatementChangedRows(0)), "{stopped:?}");
}
