//! Reads of several statements: all of them see the rows as they are at one moment, whatever is
//! written meanwhile, and the transaction is ended whether or not the caller waits for it.

mod report;
pub(crate) mod statement;
pub(crate) mod usage;
mod verify;

use futures_util::future::BoxFuture;
use holdfast_domain::ports::{Cause, Unavailable};
use sea_orm::{ConnectionTrait, DatabaseTransaction, QueryResult, TransactionTrait};
use tokio::task::JoinError;

use crate::dialect::{Bind, Dialect};
use crate::postgres::PgReadTransaction;
use crate::rows::BadRow;
use crate::statement::AmountOverflow;
use crate::usage::SumOverflow;
use crate::{Readers, Store, unavailable};

/// A read that was not finished.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("the rows cannot be read")]
    Read(#[source] Cause),
    #[error("a row cannot be understood")]
    Row(#[source] BadRow),
    #[error("a wallet's transfers do not add up")]
    Transfers(#[source] AmountOverflow),
    #[error("what was used does not add up")]
    Usage(#[source] SumOverflow),
    #[error("the read stopped")]
    Stopped(#[source] JoinError),
}

/// A transaction that reads.
enum ReadTransaction {
    /// A deferred transaction, which sees the rows as its first read saw them.
    Sqlite(DatabaseTransaction),
    Postgres(PgReadTransaction),
}

impl Store {
    /// Reads in one transaction.
    async fn read_transaction<T, W>(&self, work: W) -> Result<T, Unavailable>
    where
        T: Send + 'static,
        W: for<'t> FnOnce(&'t mut ReadTransaction) -> BoxFuture<'t, Result<T, ReadError>>
            + Send
            + 'static,
    {
        let store = self.clone();
        // A task of its own: a caller that goes away must not leave a transaction open.
        let reading = self.spawn(async move {
            let mut read = store.begin().await?;
            let found = work(&mut read).await;
            read.end().await?;
            found
        });
        reading.await.map_err(ReadError::Stopped).flatten().map_err(unavailable)
    }

    async fn begin(&self) -> Result<ReadTransaction, ReadError> {
        match self.readers() {
            Readers::Sqlite(readers) => {
                readers.begin().await.map(ReadTransaction::Sqlite).map_err(read)
            }
            Readers::Postgres(line) => {
                line.moment().await.map(ReadTransaction::Postgres).map_err(read)
            }
        }
    }
}

impl ReadTransaction {
    const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    async fn query<const N: usize>(
        &mut self,
        sql: &str,
        binds: [Bind; N],
    ) -> Result<Vec<QueryResult>, ReadError> {
        match self {
            Self::Sqlite(transaction) => {
                let statement = Dialect::Sqlite.statement(sql, binds);
                transaction.query_all_raw(statement).await.map_err(read)
            }
            Self::Postgres(moment) => moment.query(sql, binds.into()).await.map_err(read),
        }
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

fn read(error: impl std::error::Error + Send + Sync + 'static) -> ReadError {
    ReadError::Read(Box::new(error))
}
