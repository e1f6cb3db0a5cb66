//! Fills a store with many finished operations: copies of one real one, each under an id of its own,
//! with their transfers, so that the book still adds up.
//!
//! By SQL and in bulk, while no gateway runs: through commits a million would take minutes. The copies
//! are in the tables as the gateway would have left them, but for their ids, which are random, and
//! for the results, of which the share that is asked for is kept.

use std::path::Path;

use rusqlite::{Connection, params};

/// Fast, and without a thought of power cuts: the file is thrown away.
const SETTINGS: &str = "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;
PRAGMA cache_size = -2000000; PRAGMA foreign_keys = OFF;";
const ROWS: i64 = 100_000;
const TWO_DAYS_MICROS: i64 = 2 * 86_400 * 1_000_000;

/// Copies that keep their result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Results {
    /// A tenth: older ones have been purged.
    Tenth,
    /// All, and all are due to be purged.
    AllDue,
}

/// Drops the index by which the operations of an API key are found: no gateway runs.
pub(crate) fn drop_index_by_api_key(database: &Path) {
    let connection = Connection::open(database).expect("the database");
    connection.execute_batch("DROP INDEX operations_of_api_key").expect("the index");
}

/// Copies the one operation in this database until it has `stored` more.
pub(crate) fn fill(database: &Path, stored: u64, results: Results) {
    let stored = i64::try_from(stored).expect("fewer than that");
    let connection = Connection::open(database).expect("the database");
    connection.execute_batch(SETTINGS).expect("settings");
    let (seq, charge): (i64, i64) = connection
        .query_row("SELECT seq, charge FROM operations WHERE phase = 'completed'", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .expect("one finished operation");
    let every = match results {
        Results::Tenth => 10,
        Results::AllDue => 1,
    };
    let age = match results {
        Results::Tenth => "finished_at".to_owned(),
        Results::AllDue => format!("finished_at - {TWO_DAYS_MICROS}"),
    };
    let random = "randomblob(16)";
    let operation = [("seq", "n.i"), ("id", random), ("request_key", random), ("claim", random)];
    let copies = [
        copy(&connection, "operations", "seq", &operation, 1),
        copy(&connection, "transfers", "op_seq", &[("op_seq", "n.i")], 1),
        copy(&connection, "results", "op_seq", &[("op_seq", "n.i"), ("finished_at", &age)], every),
    ];
    let mut first = seq + 1;
    while first <= seq + stored {
        let last = (first + ROWS - 1).min(seq + stored);
        connection.execute_batch("BEGIN").expect("a transaction");
        for copy in &copies {
            connection.execute(copy, params![seq, first, last]).expect("copies");
        }
        connection.execute_batch("COMMIT").expect("a commit");
        first = last + 1;
    }
    let pay = "UPDATE wallets SET available = available - ?1";
    connection.execute(pay, [charge * stored]).expect("the wallet");
}

/// A statement that copies the rows of operation `?1` to the numbers from `?2` to `?3`, all of whose
/// columns stay but for these.
fn copy(
    connection: &Connection,
    table: &str,
    number: &str,
    other: &[(&str, &str)],
    every: i64,
) -> String {
    let mut columns = connection.prepare("SELECT name FROM pragma_table_info(?1)").expect("SQL");
    let columns = columns.query_map([table], |row| row.get::<_, String>(0)).expect("columns");
    let columns: Vec<String> = columns.map(|column| column.expect("a name")).collect();
    let value = |column: &String| {
        let other = other.iter().find(|(name, _)| name == column);
        other.map_or_else(|| format!("o.{column}"), |(_, value)| (*value).to_owned())
    };
    let values: Vec<String> = columns.iter().map(value).collect();
    format!(
        "WITH RECURSIVE n(i) AS (SELECT ?2 UNION ALL SELECT i + 1 FROM n WHERE i < ?3)
         INSERT INTO {table} ({}) SELECT {} FROM n CROSS JOIN {table} AS o
         WHERE o.{number} = ?1 AND n.i % {every} = 0",
        columns.join(", "),
        values.join(", "),
    )
}
