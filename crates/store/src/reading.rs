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
use crate::postgres::Moment;
use crate::rows::BadRow;
use crate::statement::TooMuch;
use crate::usage::TooLarge;
use crate::{Readers, Store, unavailable};

/// Why such a read was not finished.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("the rows cannot be read")]
    Read(#[source] Cause),
    #[error("a row cannot be understood")]
    Row(#[source] BadRow),
    #[error("a wallet's transfers do not add up")]
    Transfers(#[source] TooMuch),
    #[error("what was used does not add up")]
    Usage(#[source] TooLarge),
    #[error("the read stopped")]
    Stopped(#[source] JoinError),
}

/// A transaction that reads.
enum Read {
    /// It sees what its first read saw.
    Sqlite(DatabaseTransaction),
    Postgres(Moment),
}

impl Store {
    /// Reads in one transaction.
    async fn at_one_moment<T, W>(&self, work: W) -> Result<T, Unavailable>
    where
        T: Send + 'static,
        W: for<'t> FnOnce(&'t mut Read) -> BoxFuture<'t, Result<T, Failed>> + Send + 'static,
    {
        let store = self.clone();
        let reading = self.spawn(async move {
            let mut read = store.begin().await?;
            let found = work(&mut read).await;
            read.end().await?;
            found
        });
        reading.await.map_err(Failed::Stopped).flatten().map_err(unavailable)
    }

    async fn begin(&self) -> Result<Read, Failed> {
        match self.readers() {
            Readers::Sqlite(readers) => readers.begin().await.map(Read::Sqlite).map_err(read),
            Readers::Postgres(line) => line.moment().await.map(Read::Postgres).map_err(read),
        }
    }
}

impl Read {
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
    ) -> Result<Vec<QueryResult>, Failed> {
        match self {
            Self::Sqlite(transaction) => {
                let statement = Dialect::Sqlite.statement(sql, binds);
                transaction.query_all_raw(statement).await.map_err(read)
            }
            Self::Postgres(moment) => moment.query(sql, binds.into()).await.map_err(read),
        }
    }

    async fn end(self) -> Result<(), Failed> {
        match self {
            Self::Sqlite(transaction) => transaction.rollback().await.map_err(read),
            Self::Postgres(moment) => {
                moment.end().await;
                Ok(())
            }
        }
    }
}

fn read(error: impl std::error::Error + Send + Sync + 'static) -> Failed {
    Failed::Read(Box::new(error))
}
