//! Reads for people and gauges, by SeaORM's entities, query builder and cursor, or in SQL if that is clearer.
//!
//! One statement is sent through the readers as it is. Several are sent in a [`ReadTransaction`]: all of them see
//! the rows as they are at one moment, whatever is written meanwhile, and the transaction is ended whether or not
//! the caller waits for it.
//!
//! SeaORM reads through the connections of the store and never opens one of its own; no write goes through it, and
//! a read transaction refuses one.

mod administration;
mod event;
mod export;
mod list;
mod names;
mod operation;
mod outstanding;
mod page;
mod person;
#[cfg(test)]
#[cfg(feature = "sqlite")]
mod plans;
mod refusal;
pub mod report;
mod reports;
pub(crate) mod roots;
mod route;
mod row;
mod search;
pub(crate) mod statement;
pub mod usage;

use std::time::Duration;

use futures_util::future::BoxFuture;
use holdfast_domain::Timestamp;
use holdfast_domain::admin::report::AmountOverflow;
use holdfast_domain::ports::{Cause, Unavailable};
use sea_orm::{ConnectionTrait, QueryResult, StatementBuilder, Value};
use tokio::task::JoinError;

pub(crate) use crate::backend::ReadTransaction;
use crate::backend::{Pools, Readers};
use crate::error::unavailable;
use crate::options::READ_STATEMENT;
use crate::rows::FromCells;
use crate::rows::{BadRow, Cells};
use crate::store::Store;

/// A read that was not finished.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the rows cannot be read")]
    Read(#[source] Cause),
    #[error("a row cannot be understood")]
    Row(#[source] BadRow),
    #[error("a wallet's transfers do not add up")]
    Transfers(#[source] AmountOverflow),
    #[error("the read stopped")]
    Stopped(#[source] JoinError),
}

impl Store {
    /// Reads in one transaction, for lists: pages of rows. A server ends a statement that takes too long.
    async fn read_transaction<T, W>(&self, work: W) -> Result<T, Unavailable>
    where
        T: Send + 'static,
        W: for<'t> FnOnce(&'t mut ReadTransaction) -> BoxFuture<'t, Result<T, ReadError>>
            + Send
            + 'static,
    {
        self.read_through(|pools| &pools.readers, READ_STATEMENT, work).await
    }

    /// Reads in one transaction of those that are for reports: what others read never waits for it.
    /// A server ends a statement that takes too long; a file has none that reads more than a page,
    /// but for sums of sums.
    async fn report_transaction<T, W>(&self, work: W) -> Result<T, Unavailable>
    where
        T: Send + 'static,
        W: for<'t> FnOnce(&'t mut ReadTransaction) -> BoxFuture<'t, Result<T, ReadError>>
            + Send
            + 'static,
    {
        self.read_through(|pools| &pools.reports, READ_STATEMENT, work).await
    }

    /// The same on the connection of the summing.
    async fn summing_transaction<T, W>(&self, work: W) -> Result<T, Unavailable>
    where
        T: Send + 'static,
        W: for<'t> FnOnce(&'t mut ReadTransaction) -> BoxFuture<'t, Result<T, ReadError>>
            + Send
            + 'static,
    {
        self.read_through(|pools| &pools.summing, READ_STATEMENT, work).await
    }

    pub(crate) async fn read_through<T, W>(
        &self,
        readers: fn(&Pools) -> &Readers,
        statement: Duration,
        work: W,
    ) -> Result<T, Unavailable>
    where
        T: Send + 'static,
        W: for<'t> FnOnce(&'t mut ReadTransaction) -> BoxFuture<'t, Result<T, ReadError>>
            + Send
            + 'static,
    {
        let store = self.clone();
        // A task of its own: a caller that goes away must not leave a transaction open.
        let reading = self.spawn(async move {
            let pools = &store.inner.pools;
            let cause = |Unavailable(cause)| ReadError::Read(cause);
            let mut transaction = readers(pools).moment(statement).await.map_err(cause)?;
            let found = work(&mut transaction).await;
            transaction.end().await.map_err(cause)?;
            found
        });
        reading.await.map_err(ReadError::Stopped).flatten().map_err(unavailable)
    }

    /// Reads what a built query selects, in one statement.
    async fn select<T: FromCells>(
        &self,
        query: &impl StatementBuilder,
    ) -> Result<Vec<T>, Unavailable> {
        let rows = self.inner.pools.readers.query(query.build(&self.dialect().backend())).await?;
        rows.iter().map(from_row).collect::<Result<_, _>>().map_err(unavailable)
    }
}

impl ReadTransaction {
    pub(crate) async fn query<const N: usize>(
        &self,
        sql: &str,
        binds: [Value; N],
    ) -> Result<Vec<QueryResult>, ReadError> {
        self.query_all_raw(self.dialect().statement(sql, binds)).await.map_err(read)
    }

    /// Reads what a built query selects.
    pub(crate) async fn select<T: FromCells>(
        &self,
        query: &impl StatementBuilder,
    ) -> Result<Vec<T>, ReadError> {
        let rows = self.query_all(query).await.map_err(read)?;
        rows.iter().map(from_row).collect::<Result<_, _>>().map_err(ReadError::Row)
    }

    /// The database's clock.
    pub(crate) async fn now(&self) -> Result<Timestamp, ReadError> {
        let rows = self.query(&format!("SELECT {}", self.dialect().clock()), []).await?;
        let row = rows.first().ok_or_else(|| read(sqlx::Error::RowNotFound))?;
        Cells::new(row).timestamp().map_err(ReadError::Row)
    }
}

pub(crate) fn from_row<T: FromCells>(row: &QueryResult) -> Result<T, BadRow> {
    T::from_cells(&mut Cells::new(row))
}

pub(crate) fn read(error: impl std::error::Error + Send + Sync + 'static) -> ReadError {
    ReadError::Read(Box::new(error))
}
