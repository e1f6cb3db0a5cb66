//! Connections to a PostgreSQL server: how they are made, and which servers are refused. It creates no tables;
//! settings are [`super::session`]'s.
//!
//! A future that is dropped while it begins a transaction leaves a connection inside one that the driver does not
//! know of (sqlx 0.9.0): the next write would be lost although it was reported as done. So a connection is checked
//! before it is used again.

#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;
use std::time::Duration;

use sea_orm::{ConnectOptions, Database, DatabaseConnection, DbErr, RuntimeErr};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _, Executor, Row as _};

use super::session::{
    BY_INDEX, MIGRATION_STATEMENT, Session, WRITE_STATEMENT, is_healthy, set, within,
};
use crate::error::ConnectError;

/// Oldest version that the tests run on: the effect of the statements on an older one is unknown.
const VERSION_MIN: u32 = 150_000;
/// Timeout of each step of connecting.
const ACQUIRE: Duration = Duration::from_secs(5);
/// Refusal of a connection that leads to a standby.
#[derive(Debug, thiserror::Error)]
#[error("the server is a standby")]
struct IsStandby;

/// A connection for migrations, and for reading the schema, as a pool of one. It reports an error at once, while a
/// pool would try again and again.
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
        // A migration may take hours: its connection must not be replaced by age.
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

/// Connects once, to report the error.
async fn probe(url: &PgConnectOptions, session: Session) -> Result<(), ConnectError> {
    let failed = |error| ConnectError::Server(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))));
    let mut connection = within(ACQUIRE, connected(url, session)).await.map_err(failed)?;
    let version = connection.server_version_num();
    let follows = within(ACQUIRE, follows(&mut connection)).await.map_err(failed)?;
    // While the first is open: a pooler of transactions would serve both by one process.
    let other = within(ACQUIRE, connected(url, session)).await.map_err(failed)?;
    let is_shared = within(ACQUIRE, is_shared(&mut connection, other)).await.map_err(failed)?;
    connection.close().await.map_err(failed)?;
    match version {
        Some(version) if version < VERSION_MIN => Err(ConnectError::Version(version / 10_000)),
        Some(_) | None if follows => Err(ConnectError::Standby),
        Some(_) | None if is_shared => Err(ConnectError::Shared),
        // Another value is not the requested one, but may do.
        Some(_) | None => Ok(()),
    }
}

/// True if two connections at once reach one process of the server: a pooler gives it to the one that has a
/// transaction, and settings and prepared statements with it.
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
    set(&mut connection, session).await?;
    Ok(connection)
}

/// A server that follows another one cannot be written, and what is read there was true a while
/// ago. After a switch-over an address may lead to such a server, until it leads to the right one.
async fn refuse_standby(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    if follows(connection).await? {
        return Err(sqlx::Error::Configuration(Box::new(IsStandby)));
    }
    Ok(())
}

async fn follows(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    connection.fetch_one("SELECT pg_is_in_recovery()").await?.try_get(0)
}
