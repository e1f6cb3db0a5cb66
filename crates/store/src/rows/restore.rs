//! Restores as they are declared and read, in texts for both databases.
//!
//! A declaration moves the revision of every wallet's limits, which each claim compares in its transaction: a gateway
//! that has read an API key before it reads the key again, with the window. No claim reads a row of this table.

use holdfast_domain::Timestamp;
use holdfast_domain::restore::{Restore, UnknownKeys};
use sea_orm::Statement;

use super::{BadRow, Cells};
use crate::schema::Dialect;

/// The newest declaration.
pub(crate) const NEWEST: &str =
    "SELECT restored_at, unknown_until FROM restores ORDER BY restored_at DESC LIMIT 1";
/// The window that ends last, which may have passed.
pub(crate) const LAST: &str =
    "SELECT restored_at, unknown_until FROM restores ORDER BY unknown_until DESC LIMIT 1";
/// End of the last window of the API key `k`, which may have passed.
pub(crate) const LAST_WINDOW: &str =
    "(SELECT max(r.unknown_until) FROM restores AS r WHERE r.restored_at >= k.created_at)";
/// Ends the windows that are open.
const END: &str =
    "UPDATE restores SET unknown_until = CASE WHEN restored_at > $1 THEN restored_at ELSE $1 END
    WHERE unknown_until > CASE WHEN restored_at > $1 THEN restored_at ELSE $1 END";
/// After every API key and restore of the copy, also on a machine whose clock is behind.
const INSERT: &str = "INSERT INTO restores (restored_at, unknown_until)
    SELECT m.at, m.at + $2 FROM (SELECT max(moments.at) AS at FROM
        (SELECT CAST($1 AS bigint) AS at UNION ALL SELECT created_at FROM api_keys
         UNION ALL SELECT restored_at + 1 FROM restores) AS moments) AS m";
/// In the order in which batches lock them.
const LOCK: &str = "SELECT id FROM wallets ORDER BY id FOR NO KEY UPDATE";
/// To the moment in microseconds: more than lost edits can have moved it, for a gateway that ran on during the restore
/// has read a later revision than the copy has; and another one for each restore of the same copy.
const REVISE: &str = "UPDATE wallets SET limits_revision =
    CASE WHEN limits_revision < $1 THEN $1 ELSE limits_revision + 1 END";

/// The statements of a declaration.
pub(crate) fn declaration(
    dialect: Dialect,
    unknown: UnknownKeys,
    now: Timestamp,
) -> Vec<Statement> {
    let now = now.as_micros();
    let window = i64::try_from(unknown.window().as_micros()).unwrap_or(i64::MAX);
    let lock = match dialect {
        // A transaction that writes has the whole file.
        Dialect::Sqlite => None,
        Dialect::Postgres => Some(dialect.statement(LOCK, [])),
    };
    let end = match unknown {
        UnknownKeys::Refuse(_) => None,
        UnknownKeys::Allow => Some(dialect.statement(END, [now.into()])),
    };
    let insert = dialect.statement(INSERT, [now.into(), window.into()]);
    lock.into_iter().chain(end).chain([insert, dialect.statement(REVISE, [now.into()])]).collect()
}

/// Reads a row.
pub(crate) fn restore(cells: &mut Cells<'_>) -> Result<Restore, BadRow> {
    Ok(Restore { restored_at: cells.timestamp()?, unknown_until: cells.timestamp()? })
}
