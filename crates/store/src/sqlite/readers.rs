//! Pools of connections that only read a database file. A pool is opened at the start or by its first read, and in
//! both cases by [`connect::readers`], which compares the file with the one that is served and waits for a locked
//! one.
//!
//! Never: a pool that opens its first connection without that comparison, because a missing log would be created anew
//! and the rows read from it be false.

use std::future::ready;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_domain::ports::Unavailable;
use sea_orm::{
    DatabaseConnection, DatabaseTransaction, QueryResult, Statement, TransactionTrait, Values,
};
use sea_query_sqlx::SqlxValues;
use sqlx::AssertSqlSafe;
use tokio::sync::OnceCell;

use super::connect;
use crate::error::{ConnectError, unavailable};

/// A pool of connections that cannot write.
#[derive(Debug)]
pub(crate) struct FileReaders {
    path: PathBuf,
    /// Time that an opening waits for a locked file.
    busy_timeout: Duration,
    /// Connections that are opened together, and those that the pool may have.
    connections: (u32, u32),
    /// `None` within: closed before it was opened.
    opened: OnceCell<Option<DatabaseConnection>>,
}

impl FileReaders {
    /// A pool without a connection. The first read opens the first number of them; the second number is the most.
    pub(super) fn new(path: &Path, busy_timeout: Duration, (first, most): (u32, u32)) -> Self {
        let connections = (first.max(1), most.max(1));
        Self { path: path.to_owned(), busy_timeout, connections, opened: OnceCell::new() }
    }

    /// Opens the pool now.
    pub(super) async fn open(&self) -> Result<(), ConnectError> {
        self.opened.get_or_try_init(|| self.connect()).await.map(|_opened| ())
    }

    async fn connect(&self) -> Result<Option<DatabaseConnection>, ConnectError> {
        connect::readers(&self.path, self.busy_timeout, self.connections).await.map(Some)
    }

    async fn pool(&self) -> Result<&DatabaseConnection, Unavailable> {
        if !self.opened.initialized() {
            // In a box: the future of an opening is large, and every read would have room for it.
            Box::pin(self.open()).await.map_err(unavailable)?;
        }
        self.opened.get().and_then(Option::as_ref).ok_or_else(closed)
    }

    /// Reads with one statement, by the driver itself: SeaORM's future has room for every database and moves it
    /// twice, which is more than half of what a short read costs.
    pub(crate) async fn query(
        &self,
        Statement { sql, values, .. }: Statement,
    ) -> Result<Vec<QueryResult>, Unavailable> {
        let pool = self.pool().await?.get_sqlite_connection_pool();
        let values = SqlxValues(values.unwrap_or_else(|| Values(Vec::new())));
        let query = sqlx::query_with(AssertSqlSafe(sql), values);
        let rows = query.fetch_all(pool).await.map_err(unavailable)?;
        Ok(rows.into_iter().map(QueryResult::from).collect())
    }

    /// Begins a read of several statements. A file has no limit of a statement.
    pub(crate) async fn begin(&self, _limit: Duration) -> Result<DatabaseTransaction, Unavailable> {
        self.pool().await?.begin().await.map_err(unavailable)
    }

    /// Connections that are open and not in use, and those in use.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let Some(Some(opened)) = self.opened.get() else { return (0, 0) };
        let pool = opened.get_sqlite_connection_pool();
        let idle = pool.num_idle();
        (idle, usize::try_from(pool.size()).unwrap_or(0).saturating_sub(idle))
    }

    /// Closes the pool. A later read opens no connection.
    pub(crate) async fn close(&self) -> Result<(), Unavailable> {
        match self.opened.get_or_init(|| ready(None)).await {
            Some(opened) => opened.close_by_ref().await.map_err(unavailable),
            None => Ok(()),
        }
    }
}

fn closed() -> Unavailable {
    unavailable(sqlx::Error::PoolClosed)
}
