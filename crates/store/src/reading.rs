//! Reads for people and gauges, by SeaORM's entities, query builder and cursor, or in SQL where that
//! says it better.
//!
//! One statement is sent through the readers as it is. Several are sent in a [`ReadTransaction`]:
//! all of them see the rows as they are at one moment, whatever is written meanwhile, and the
//! transaction is ended whether or not the caller waits for it.
//!
//! SeaORM reads through the connections of the store and never opens one of its own; nothing is
//! written through it, and a read transaction refuses to.

mod administration;
mod event;
mod list;
mod operation;
mod outstanding;
mod page;
mod person;
#[cfg(test)]
mod plans;
pub mod report;
mod reports;
mod row;
pub(crate) mod statement;
pub mod usage;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use holdfast_domain::Timestamp;
use holdfast_domain::admin::report::AmountOverflow;
use holdfast_domain::ports::{Cause, Unavailable};
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, ExecResult, QueryResult, RuntimeErr,
    Statement, StatementBuilder, TransactionTrait, Value,
};
use tokio::task::JoinError;

use crate::postgres::PgReadTransaction;
use crate::postgres::session::READ_STATEMENT;
use crate::rows::FromCells;
use crate::rows::{BadRow, Cells};
use crate::schema::Dialect;
use crate::{Readers, Store, unavailable};

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

/// A transaction that reads.
pub(crate) enum ReadTransaction {
    /// A deferred transaction, which sees the rows as its first read saw them.
    Sqlite(DatabaseTransaction),
    Postgres(PgReadTransaction),
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
        self.read_through(Self::readers, READ_STATEMENT, work).await
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
        self.read_through(Self::reports, READ_STATEMENT, work).await
    }

    /// The same on the connection of the summing.
    async fn summing_transaction<T, W>(&self, work: W) -> Result<T, Unavailable>
    where
        T: Send + 'static,
        W: for<'t> FnOnce(&'t mut ReadTransaction) -> BoxFuture<'t, Result<T, ReadError>>
            + Send
            + 'static,
    {
        self.read_through(Self::summing, READ_STATEMENT, work).await
    }

    pub(crate) async fn read_through<T, W>(
        &self,
        readers: fn(&Self) -> &Readers,
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
            let mut read = begin(readers(&store), statement).await?;
            let found = work(&mut read).await;
            read.end().await?;
            found
        });
        reading.await.map_err(ReadError::Stopped).flatten().map_err(unavailable)
    }

    /// Reads what a built query selects, in one statement.
    async fn select<T: FromCells>(
        &self,
        query: &impl StatementBuilder,
    ) -> Result<Vec<T>, Unavailable> {
        let rows = self.readers().query(query.build(&self.dialect().backend())).await?;
        rows.iter().map(from_row).collect::<Result<_, _>>().map_err(unavailable)
    }
}

/// Begins a transaction that reads, of which a server lets each statement run for so long.
async fn begin(readers: &Readers, statement: Duration) -> Result<ReadTransaction, ReadError> {
    match readers {
        Readers::Sqlite(readers) => {
            readers.begin().await.map(ReadTransaction::Sqlite).map_err(read)
        }
        Readers::Postgres(line) => {
            line.moment(statement).await.map(ReadTransaction::Postgres).map_err(read)
        }
    }
}

impl ReadTransaction {
    pub(crate) const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

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

    async fn end(self) -> Result<(), ReadError> {
        match self {
            Self::Sqlite(transaction) => transaction.rollback().await.map_err(read),
            Self::Postgres(moment) => {
                moment.end().await;
                Ok(())
            }
        }
    }
}

#[async_trait]
impl ConnectionTrait for ReadTransaction {
    fn get_database_backend(&self) -> DbBackend {
        self.dialect().backend()
    }

    async fn execute_raw(&self, _statement: Statement) -> Result<ExecResult, DbErr> {
        Err(writes_nothing())
    }

    async fn execute_unprepared(&self, _sql: &str) -> Result<ExecResult, DbErr> {
        Err(writes_nothing())
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        Ok(self.query_all_raw(statement).await?.into_iter().next())
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        match self {
            Self::Sqlite(transaction) => transaction.query_all_raw(statement).await,
            Self::Postgres(moment) => {
                let failed = |error| DbErr::Query(RuntimeErr::SqlxError(Arc::new(error)));
                moment.query(statement).await.map_err(failed)
            }
        }
    }
}

fn writes_nothing() -> DbErr {
    DbErr::Exec(RuntimeErr::Internal("a read transaction writes nothing".to_owned()))
}

pub(crate) fn from_row<T: FromCells>(row: &QueryResult) -> Result<T, BadRow> {
    T::from_cells(&mut Cells::new(row))
}

pub(crate) fn read(error: impl std::error::Error + Send + Sync + 'static) -> ReadError {
    ReadError::Read(Box::new(error))
}
