//! Connections to a PostgreSQL server: their settings, the pool that reads and administers, the one
//! that the writer keeps. It makes no tables.
//!
//! A future that is dropped while it begins a transaction leaves a connection of the pool inside one
//! that the driver knows nothing of (sqlx 0.9.0): whatever the next borrower wrote would be lost
//! though it was told otherwise. So a connection is looked at before it is given out.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sea_orm::{ConnectOptions, Database, DatabaseConnection, DbErr, RuntimeErr};
use sqlx::pool::PoolConnectionMetadata;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor, Row as _};

use crate::ConnectError;

/// Microseconds since the epoch by the server's clock, read as the expression is evaluated: after the
/// rows that are seen were committed, and after the locks that were waited for.
pub(crate) const CLOCK: &str = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)";

/// Before this version `MATERIALIZED` and the locks may not be what is relied on.
const VERSION_MIN: u32 = 150_000;
/// How long a caller waits for a connection of the pool.
const ACQUIRE: Duration = Duration::from_secs(5);
/// How long a statement may run: a report reads a page in far less.
const STATEMENT: Duration = Duration::from_secs(30);
/// How long one of the writer may run: it touches no row that it does not name.
pub(super) const WRITE_STATEMENT: Duration = Duration::from_secs(10);
/// How long a transaction may stand still before the server ends it and frees its locks: that of a
/// process which was stopped, or cut off.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(15);
/// Connections that nobody has used for so long are closed, down to none.
const IDLE: Duration = Duration::from_secs(300);

/// What the planner would choose for tables that were empty when it looked; kept for the life of a
/// prepared statement, it reads whole tables.
const WRITER_PLANS: &str = "SET enable_seqscan = off; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = force_generic_plan";

/// Connections that read and administer.
pub(crate) async fn pool(
    url: &PgConnectOptions,
    lock_timeout: Duration,
    connections: u32,
) -> Result<DatabaseConnection, ConnectError> {
    probe(url).await?;
    let (url, settings) =
        (url.clone().disable_statement_logging(), settings(lock_timeout, STATEMENT));
    let mut options = ConnectOptions::new("postgres://");
    options
        .max_connections(connections)
        .min_connections(0)
        .acquire_timeout(ACQUIRE)
        .idle_timeout(IDLE)
        .max_lifetime(None::<Duration>)
        .test_before_acquire(false)
        .sqlx_logging(false)
        .record_stmt_in_spans(false)
        // Not written into another URL, where it would be decoded again.
        .map_sqlx_postgres_opts(move |_from_url| url.clone())
        .map_sqlx_postgres_before_acquire(is_outside_of_transactions)
        .map_sqlx_postgres_pool_opts(move |options| {
            let settings = settings.clone();
            options.after_connect(move |connection, _| Box::pin(set(connection, settings.clone())))
        });
    Database::connect(options).await.map_err(ConnectError::Server)
}

/// Connects once, to say at once what is wrong where a pool would try again and again.
async fn probe(url: &PgConnectOptions) -> Result<(), ConnectError> {
    let failed = |error| ConnectError::Server(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))));
    let connected = tokio::time::timeout(ACQUIRE, url.connect()).await;
    let connected = connected.unwrap_or_else(|_elapsed| Err(sqlx::Error::PoolTimedOut));
    let connection = connected.map_err(failed)?;
    let version = connection.server_version_num();
    connection.close().await.map_err(failed)?;
    match version {
        Some(version) if version < VERSION_MIN => Err(ConnectError::Version(version / 10_000)),
        // Whatever says another thing there is not what was asked for, but may do.
        Some(_) | None => Ok(()),
    }
}

/// A connection that no pool knows, for the writer.
pub(super) async fn writer(
    url: &PgConnectOptions,
    lock_timeout: Duration,
) -> Result<PgConnection, sqlx::Error> {
    let mut connection = url.clone().disable_statement_logging().connect().await?;
    connection.execute(AssertSqlSafe(settings(lock_timeout, WRITE_STATEMENT))).await?;
    connection.execute(WRITER_PLANS).await?;
    Ok(connection)
}

/// Whatever the server, the database or the role has set: what is relied on is said.
fn settings(lock_timeout: Duration, statement_timeout: Duration) -> String {
    let idle = IDLE_IN_TRANSACTION.as_millis();
    format!(
        "SET default_transaction_isolation = 'read committed';
         SET default_transaction_read_only = off;
         SET synchronous_commit = on;
         SET statement_timeout = {};
         SET lock_timeout = {};
         SET idle_in_transaction_session_timeout = {idle}",
        statement_timeout.as_millis(),
        lock_timeout.as_millis().max(1)
    )
}

async fn set(connection: &mut PgConnection, settings: String) -> Result<(), sqlx::Error> {
    connection.execute(AssertSqlSafe(settings)).await.map(drop)
}

/// Whether a statement of its own is a transaction of its own there.
fn is_outside_of_transactions(
    connection: &mut PgConnection,
    _: PoolConnectionMetadata,
) -> BoxFuture<'_, Result<bool, sqlx::Error>> {
    Box::pin(async move {
        let row = connection.fetch_one("SELECT now() = statement_timestamp()").await?;
        row.try_get(0)
    })
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
