//! Sessions: the settings of a connection before it is used, how long the server lets a statement run there, and
//! how long a caller waits for its answer.
//!
//! There are two clocks for each statement, and their order matters. The server ends a statement first
//! (`statement_timeout`) and frees its locks; only then does the caller stop waiting and drop the connection. In
//! the other order a dropped connection would leave a running statement whose answer no caller reads. So the waits
//! of the writer, of reads, commands and audits are longer than the server's limits, which the build asserts.
//! Shorter ones are for statements that may go on unread: a ping of a kept connection, a beginning that only locks
//! and reads the clock, a rollback, and a heartbeat, whose two limits are one.
//!
//! Settings of the server, the database or the role are never relied on: each required one is set.

use std::io;
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor, Row as _};

use crate::options::CREATION_DISORDER;
use crate::schema::Dialect;

/// The server's clock, in microseconds since the epoch.
pub(super) const CLOCK: &str = Dialect::Postgres.clock();

/// Limit of a statement of administration, or of a purge.
pub(super) const COMMAND_STATEMENT: Duration = Duration::from_secs(30);
/// Limit of a statement of a migration, which may rewrite or index all there is.
pub(super) const MIGRATION_STATEMENT: Duration = Duration::from_secs(6 * 3_600);
/// Limit of a statement of the writer, which touches no row that it does not name.
pub(super) const WRITE_STATEMENT: Duration = Duration::from_secs(10);
/// Timeout of a statement of the writer: longer than the server lets it run, so that a server which
/// does not answer by then is cut off.
pub(super) const ANSWER: Duration = Duration::from_secs(15);
const _: () = assert!(ANSWER.as_secs() > WRITE_STATEMENT.as_secs());
/// Timeout of a ROLLBACK. One that takes longer is left to the server, which undoes what a lost
/// connection has begun.
const UNDO: Duration = Duration::from_secs(2);
/// Limit of an idle transaction, before the server ends it and frees its locks: that of a process which was
/// stopped, or cut off. Others wait for those locks.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(5);
// From the clock of a batch to its numbers: filters by time rely on it.
const _: () =
    assert!(CREATION_DISORDER.as_secs() > IDLE_IN_TRANSACTION.as_secs() + ANSWER.as_secs());

/// Planner settings by which every row is found through an index. Without them the planner chooses for tables that
/// were empty when it planned, keeps that for the life of a prepared statement, and reads whole tables.
pub(super) const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off;
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;
    SET plan_cache_mode = force_generic_plan";

/// Settings of a connection, sent before it is used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    pub(super) lock_timeout: Duration,
    pub(super) statement_timeout: Duration,
    /// [`BY_INDEX`], or an empty text.
    pub(super) plans: &'static str,
}

/// Begin of a read of several statements, which all see one moment and have this limit each.
pub(super) fn begin_snapshot(statement: Duration) -> AssertSqlSafe<String> {
    // LOCAL: the session keeps its own limit for the next caller.
    let statement = statement.as_millis();
    AssertSqlSafe(format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
         SET LOCAL statement_timeout = {statement}"
    ))
}

/// Waits no longer than this for a server that may be cut off.
pub(super) async fn within<T>(
    wait_max: Duration,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    // An I/O error, as of a dead connection: what was sent may yet run, so it is not used again.
    let silent = |_elapsed| Err(sqlx::Error::Io(io::Error::from(io::ErrorKind::TimedOut)));
    tokio::time::timeout(wait_max, work).await.unwrap_or_else(silent)
}

fn settings(Session { lock_timeout, statement_timeout, plans }: Session) -> String {
    // Set on each connection: a pooler or a role may have set any of these to another value.
    let idle = IDLE_IN_TRANSACTION.as_millis();
    format!(
        "SET default_transaction_isolation = 'read committed';
         SET default_transaction_read_only = off;
         SET synchronous_commit = on;
         SET bytea_output = hex;
         SET statement_timeout = {};
         SET lock_timeout = {};
         SET idle_in_transaction_session_timeout = {idle};
         {plans}",
        statement_timeout.as_millis(),
        lock_timeout.as_millis().max(1)
    )
}

pub(super) async fn set(
    connection: &mut PgConnection,
    session: Session,
) -> Result<(), sqlx::Error> {
    connection.execute(AssertSqlSafe(settings(session))).await.map(drop)
}

/// Role of a server among those that replicate one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerRole {
    /// It follows another one. After a switch-over an address may lead to one, until it leads to the right one.
    Standby,
    /// It takes writes.
    Primary {
        /// True if a commit waits for a standby.
        is_replicated: bool,
    },
}

pub(super) async fn role(connection: &mut PgConnection) -> Result<ServerRole, sqlx::Error> {
    let query = format!("SELECT pg_is_in_recovery(), {}", Dialect::IS_REPLICATED);
    let row = connection.fetch_one(AssertSqlSafe(query)).await?;
    let (follows, is_replicated) = (row.try_get(0)?, row.try_get(1)?);
    Ok(if follows { ServerRole::Standby } else { ServerRole::Primary { is_replicated } })
}

/// Ends the transaction without a trace. Outside of one the server warns, without an effect.
pub(super) async fn rollback(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    within(UNDO, connection.execute("ROLLBACK")).await.map(drop)
}

/// Waits no longer than the server may take.
pub(super) async fn answered<T>(
    statement: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    within(ANSWER, statement).await
}

/// True if a kept connection can be used: a statement of its own is a transaction of its own there, and the server
/// still is not a standby.
pub(super) async fn is_healthy(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    // `now()` is when the transaction began: earlier than the statement inside of one that a
    // dropped future has left open.
    let asked = "SELECT now() = statement_timestamp() AND NOT pg_is_in_recovery()";
    connection.fetch_one(asked).await?.try_get(0)
}
