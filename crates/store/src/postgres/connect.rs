//! Connections to a PostgreSQL server: their settings, and how one is found to be of no use. It makes no
//! tables.
//!
//! A future that is dropped while it begins a transaction leaves a connection inside one that the driver
//! knows nothing of (sqlx 0.9.0): whatever was written there next would be lost though it was told
//! otherwise. So a connection is looked at before it is used again.

#[cfg(test)]
pub(super) mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sea_orm::{ConnectOptions, Database, DatabaseConnection, DbErr, RuntimeErr};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor, Row as _};

use super::batch::is_lost;
use super::pool::AUDIT_STATEMENT;
use crate::ConnectError;

/// Microseconds since the epoch by the server's clock, read as the expression is evaluated: after the
/// rows that are seen were committed, and after the locks that were waited for.
pub(crate) const CLOCK: &str = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)";

/// Before this version `MATERIALIZED` and the locks may not be what is relied on.
const VERSION_MIN: u32 = 150_000;
/// How long connecting may take.
const ACQUIRE: Duration = Duration::from_secs(5);
/// How long a statement may run that somebody waits for.
pub(super) const READ_STATEMENT: Duration = Duration::from_secs(10);
/// How long one of administration may run, or of a purge.
pub(super) const ERRAND_STATEMENT: Duration = Duration::from_secs(30);
/// How long one of a migration may run, which may rewrite or index all there is.
const MIGRATION_STATEMENT: Duration = Duration::from_secs(6 * 3_600);
/// How long one of the writer may run: it touches no row that it does not name.
pub(super) const WRITE_STATEMENT: Duration = Duration::from_secs(10);
/// How long a transaction may stand still before the server ends it and frees its locks: that of a
/// process which was stopped, or cut off. Others wait for those locks.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(5);

/// What the planner would choose for tables that were empty when it looked; kept for the life of a
/// prepared statement, it reads whole tables.
pub(super) const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off;
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;
    SET plan_cache_mode = force_generic_plan";

/// What is said on a connection before it is used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    pub(super) lock_timeout: Duration,
    pub(super) statement_timeout: Duration,
    /// [`BY_INDEX`], or nothing.
    pub(super) plans: &'static str,
}

/// What a server that follows another one is told apart by.
#[derive(Debug, thiserror::Error)]
#[error("the server is a standby")]
struct IsStandby;

/// A connection for migrations, and for looking at what is there, as a pool of one. It says at once what
/// is wrong, where a pool would try again and again.
pub(crate) async fn connect_single(
    url: &PgConnectOptions,
    lock_timeout: Duration,
) -> Result<DatabaseConnection, ConnectError> {
    let session = Session { lock_timeout, statement_timeout: MIGRATION_STATEMENT, plans: "" };
    probe(url, session).await?;
    let url = url.clone().disable_statement_logging();
    let mut options = ConnectOptions::new("postgres://");
    options
        .max_connections(1)
        .min_connections(0)
        .acquire_timeout(ACQUIRE)
        .max_lifetime(None::<Duration>)
        .test_before_acquire(false)
        .sqlx_logging(false)
        .record_stmt_in_spans(false)
        // Not written into another URL, where it would be decoded again.
        .map_sqlx_postgres_opts(move |_from_url| url.clone())
        .map_sqlx_postgres_before_acquire(|connection, _| Box::pin(is_healthy(connection)))
        .map_sqlx_postgres_pool_opts(move |options| {
            options.after_connect(move |connection, _| Box::pin(set(connection, session)))
        });
    Database::connect(options).await.map_err(ConnectError::Server)
}

/// Connects once, to say what is wrong.
async fn probe(url: &PgConnectOptions, session: Session) -> Result<(), ConnectError> {
    let failed = |error| ConnectError::Server(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))));
    let mut connection = within(ACQUIRE, connected(url, session)).await.map_err(failed)?;
    let version = connection.server_version_num();
    let follows = within(ACQUIRE, follows(&mut connection)).await.map_err(failed)?;
    let other = within(ACQUIRE, connected(url, session)).await.map_err(failed)?;
    let is_shared = within(ACQUIRE, is_shared(&mut connection, other)).await.map_err(failed)?;
    connection.close().await.map_err(failed)?;
    match version {
        Some(version) if version < VERSION_MIN => Err(ConnectError::Version(version / 10_000)),
        Some(_) | None if follows => Err(ConnectError::Standby),
        Some(_) | None if is_shared => Err(ConnectError::Shared),
        // Whatever says another thing there is not what was asked for, but may do.
        Some(_) | None => Ok(()),
    }
}

/// Whether two connections at once are one to the server: a pooler gives it to whoever has a transaction,
/// and settings and prepared statements with it.
async fn is_shared(
    connection: &mut PgConnection,
    mut other: PgConnection,
) -> Result<bool, sqlx::Error> {
    let process = "SELECT pg_backend_pid()";
    let theirs: i32 = other.fetch_one(process).await?.try_get(0)?;
    let ours: i32 = connection.fetch_one(process).await?.try_get(0)?;
    other.close().await?;
    Ok(ours == theirs)
}

/// A connection for the writer.
pub(super) async fn writer(
    url: &PgConnectOptions,
    lock_timeout: Duration,
) -> Result<PgConnection, sqlx::Error> {
    let statement_timeout = WRITE_STATEMENT;
    session(url, Session { lock_timeout, statement_timeout, plans: BY_INDEX }).await
}

/// A connection that no pool knows. One to a server that follows another one is refused.
pub(super) async fn session(
    url: &PgConnectOptions,
    session: Session,
) -> Result<PgConnection, sqlx::Error> {
    let mut connection = connected(url, session).await?;
    refuse_standby(&mut connection).await?;
    Ok(connection)
}

async fn connected(url: &PgConnectOptions, session: Session) -> Result<PgConnection, sqlx::Error> {
    let mut connection = url.clone().disable_statement_logging().connect().await?;
    connection.execute(AssertSqlSafe(settings(session))).await?;
    Ok(connection)
}

/// How a read of several statements begins, which all see one moment.
pub(super) fn begin_snapshot() -> AssertSqlSafe<String> {
    let statement = AUDIT_STATEMENT.as_millis();
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
    let silent = |_elapsed| Err(sqlx::Error::Io(io::Error::from(io::ErrorKind::TimedOut)));
    tokio::time::timeout(patience, work).await.unwrap_or_else(silent)
}

/// Whatever the server, the database or the role has set: what is relied on is said.
fn settings(Session { lock_timeout, statement_timeout, plans }: Session) -> String {
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

/// A server that follows another one cannot be written, and what is read there was true a while ago.
/// After a switch-over an address may lead to such a server, until it leads to the right one.
async fn refuse_standby(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    if follows(connection).await? {
        return Err(sqlx::Error::Configuration(Box::new(IsStandby)));
    }
    Ok(())
}

async fn set(connection: &mut PgConnection, session: Session) -> Result<(), sqlx::Error> {
    connection.execute(AssertSqlSafe(settings(session))).await.map(drop)
}

async fn follows(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    connection.fetch_one("SELECT pg_is_in_recovery()").await?.try_get(0)
}

/// Whether a connection that was kept can be used: a statement of its own is a transaction of its own
/// there, and the server still is no standby.
pub(super) async fn is_healthy(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let asked = "SELECT now() = statement_timestamp() AND NOT pg_is_in_recovery()";
    connection.fetch_one(asked).await?.try_get(0)
}

/// Whether a connection is of no use any more: nobody answers there, or the server is a standby by now
/// (25), or ends what runs on it (57).
pub(super) fn is_broken(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_))
        || is_lost(error)
}

/// Whether a row was refused because another one has its name or id.
pub(super) fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.is_unique_violation())
}

/// Whether the server has no database of that name.
pub(crate) fn is_no_database(error: &DbErr) -> bool {
    let (DbErr::Conn(RuntimeErr::SqlxError(error)) | DbErr::Query(RuntimeErr::SqlxError(error))) =
        error
    else {
        return false;
    };
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "3D000")
}
