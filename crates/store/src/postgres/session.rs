//! Sessions: what is said on a connection before it is used, how long the server lets a statement
//! run there, and how long a caller waits for its answer.
//!
//! There are two clocks for each statement, and their order matters. The server ends a statement
//! first (`statement_timeout`) and frees its locks; only then does the caller stop waiting and drop
//! the connection. The other way round a dropped connection would leave a statement that goes on
//! with nobody to hear of it. So the waits of the writer, of reads, errands and audits are longer
//! than the server's limits, which the build asserts. Shorter ones are for what may go on unheard:
//! a look at a kept connection, a beginning that only locks and reads the clock, a rollback, and a
//! heartbeat, whose two limits are one.
//!
//! Whatever the server, the database or the role has set is never relied on: what is needed is
//! said.

use std::io;
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor, Row as _};

use crate::options::CREATION_DISORDER;
use crate::schema::Dialect;

/// The server's clock, in microseconds since the epoch.
pub(super) const CLOCK: &str = Dialect::Postgres.clock();

/// Limit of a statement of administration, or of a purge.
pub(super) const ERRAND_STATEMENT: Duration = Duration::from_secs(30);
/// Limit of a statement of a migration, which may rewrite or index all there is.
pub(super) const MIGRATION_STATEMENT: Duration = Duration::from_secs(6 * 3_600);
/// Limit of a statement of the writer, which touches no row that it does not name.
pub(super) const WRITE_STATEMENT: Duration = Duration::from_secs(10);
/// Time-out of a statement of the writer: longer than the server lets it run, so that a server which
/// does not answer by then is cut off.
pub(super) const ANSWER: Duration = Duration::from_secs(15);
const _: () = assert!(ANSWER.as_secs() > WRITE_STATEMENT.as_secs());
/// Time-out of a ROLLBACK. One that takes longer is left to the server, which undoes what a lost
/// connection has begun.
const UNDO: Duration = Duration::from_secs(2);
/// Limit of a transaction that stands still, before the server ends it and frees its locks: that of
/// a process which was stopped, or cut off. Others wait for those locks.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(5);
// From the clock of a batch to its numbers: filters by time rely on it.
const _: () =
    assert!(CREATION_DISORDER.as_secs() > IDLE_IN_TRANSACTION.as_secs() + ANSWER.as_secs());

/// Planner settings by which every row is found through an index. Left alone, the planner chooses
/// for tables that were empty when it looked, keeps that for the life of a prepared statement, and
/// reads whole tables.
pub(super) const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off;
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;
    SET plan_cache_mode = force_generic_plan";

/// Settings of a connection, sent before it is used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    pub(super) lock_timeout: Duration,
    pub(super) statement_timeout: Duration,
    /// [`BY_INDEX`], or nothing.
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
    patience: Duration,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    // An I/O error, as of a dead connection: what was sent may yet run, so it is not used again.
    let silent = |_elapsed| Err(sqlx::Error::Io(io::Error::from(io::ErrorKind::TimedOut)));
    tokio::time::timeout(patience, work).await.unwrap_or_else(silent)
}

fn settings(Session { lock_timeout, statement_timeout, plans }: Session) -> String {
    // Said on each connection: a pooler or a role may have set any of these to something else.
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

/// Ends the transaction without a trace. Outside of one the server says so, and nothing happens.
pub(super) async fn rollback(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    within(UNDO, connection.execute("ROLLBACK")).await.map(drop)
}

/// Waits no longer than the server may take.
pub(super) async fn answered<T>(
    statement: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    within(ANSWER, statement).await
}

/// True where a kept connection can be used: a statement of its own is a transaction of its own
/// there, and the server still is no standby.
pub(super) async fn is_healthy(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    // `now()` is when the transaction began: earlier than the statement inside of one that a
    // dropped future has left open.
    let asked = "SELECT now() = statement_timestamp() AND NOT pg_is_in_recovery()";
    connection.fetch_one(asked).await?.try_get(0)
}
