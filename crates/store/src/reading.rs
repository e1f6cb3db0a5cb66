//! Reads of several statements: all of them see the rows as they are at one moment, whatever is
//! written meanwhile, and the transaction is ended whether or not the caller waits for it.

mod report;
pub(crate) mod statement;
pub(crate) mod usage;
mod verify;

use futures_util::future::BoxFuture;
use holdfast_domain::ports::Unavailable;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult, TransactionTrait, Value};
use tokio::task::JoinError;

use crate::dialect::Dialect;
use crate::rows::BadRow;
use crate::statement::TooMuch;
use crate::usage::TooLarge;
use crate::{Store, unavailable};

/// Why such a read was not finished.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("the rows cannot be read")]
    Read(#[source] DbErr),
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
struct Read {
    dialect: Dialect,
    transaction: DatabaseTransaction,
}

impl Store {
    /// Reads in one transaction.
    async fn at_one_moment<T, W>(&self, work: W) -> Result<T, Unavailable>
    where
        T: Send + 'static,
        W: for<'t> FnOnce(&'t Read) -> BoxFuture<'t, Result<T, Failed>> + Send + 'static,
    {
        let (dialect, readers) = (self.dialect(), self.readers().clone());
        let reading = self.spawn(async move {
            let options = dialect.one_moment();
            let transaction = readers.begin_with_options(options).await.map_err(Failed::Read)?;
            let read = Read { dialect, transaction };
            let found = work(&read).await?;
            read.transaction.rollback().await.map_err(Failed::Read)?;
            Ok(found)
        });
        reading.await.map_err(Failed::Stopped).flatten().map_err(unavailable)
    }
}

impl Read {
    async fn query<const N: usize>(
        &self,
        sql: &str,
        values: [Value; N],
    ) -> Result<Vec<QueryResult>, Failed> {
        let statement = self.dialect.statement(sql, values);
        self.transaction.query_all_raw(statement).await.map_err(Failed::Read)
    }
}
