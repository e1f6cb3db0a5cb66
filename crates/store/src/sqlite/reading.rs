//! Reads of several statements: all of them see the rows as they are at one moment, whatever is
//! written meanwhile, and the transaction is ended whether or not the caller waits for it.

use futures_util::future::BoxFuture;
use holdfast_domain::ports::Unavailable;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult, TransactionTrait, Value};
use tokio::task::JoinError;

use super::statement;
use crate::rows::BadRow;
use crate::statement::TooMuch;
use crate::usage::TooLarge;
use crate::{Store, unavailable};

/// Why such a read was not finished.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
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

impl Store {
    /// Reads in one transaction.
    pub(super) async fn at_one_moment<T, W>(&self, work: W) -> Result<T, Unavailable>
    where
        T: Send + 'static,
        W: for<'t> FnOnce(&'t DatabaseTransaction) -> BoxFuture<'t, Result<T, Failed>>
            + Send
            + 'static,
    {
        let readers = self.readers().clone();
        let reading = self.spawn(async move {
            let transaction = readers.begin().await.map_err(Failed::Read)?;
            let found = work(&transaction).await?;
            transaction.rollback().await.map_err(Failed::Read)?;
            Ok(found)
        });
        reading.await.map_err(Failed::Stopped).flatten().map_err(unavailable)
    }
}

pub(super) async fn query<const N: usize>(
    db: &DatabaseTransaction,
    sql: &str,
    values: [Value; N],
) -> Result<Vec<QueryResult>, Failed> {
    db.query_all_raw(statement(sql, values)).await.map_err(Failed::Read)
}
