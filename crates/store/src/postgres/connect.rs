//! Connections to a PostgreSQL server: how they are made, and which servers are refused at a start. It creates no
//! tables; settings are [`super::session`]'s, and the choice among several servers is [`super::servers`]'.
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

use super::servers::{Primary, Servers};
use super::session::{
    BY_INDEX, MIGRATION_STATEMENT, Session, WRITE_STATEMENT, is_healthy, set, within,
};
use crate::error::ConnectError;

/// Oldest version that the tests run on: the effect of the statements on an older one is unknown.
const VERSION_MIN: u32 = 150_000;
/// Timeout of each step of connecting.
const ACQUIRE: Duration = Duration::from_secs(5);

/// A connection for migrations, and for reading the schema, as a pool of one. It reports an error at once, while a
/// pool would try again and again.
pub(crate) async fn connect_single(
    servers: &Servers,
    lock_timeout: Duration,
) -> Result<DatabaseConnection, ConnectError> {
    let session = Session { lock_timeout, statement_timeout: MIGRATION_STATEMENT, plans: "" };
    let url = probe(servers, session).await?.disable_statement_logging();
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

/// Connects once, to report the error; returns the options of the primary.
async fn probe(servers: &Servers, session: Session) -> Result<PgConnectOptions, ConnectError> {
    let failed = |error| ConnectError::Server(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))));
    let mut primary = servers.connect(session).await?;
    if let Some(version) = primary.connection.server_version_num()
        && version < VERSION_MIN
    {
        return Err(ConnectError::Version(version / 10_000));
    }
    // While the first is open: a pooler of transactions would serve both by one process.
    let other = within(ACQUIRE, primary.connect_again(session)).await.map_err(failed)?;
    let is_shared = within(ACQUIRE, is_shared(&mut primary.connection, other)).await;
    let is_shared = is_shared.map_err(failed)?;
    primary.connection.close().await.map_err(failed)?;
    if is_shared { Err(ConnectError::Shared) } else { Ok(primary.options) }
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
    servers: &Servers,
    lock_timeout: Duration,
) -> Result<Primary, sqlx::Error> {
    let statement_timeout = WRITE_STATEMENT;
    Ok(servers.connect(Session { lock_timeout, statement_timeout, plans: BY_INDEX }).await?)
}
