//! Transactions that are written for both databases, on PostgreSQL: each on a connection for commands.

use holdfast_domain::Timestamp;
use sea_orm::{Statement, Values};
use sea_query_sqlx::SqlxValues;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use super::Postgres;
use super::error::{is_refusal, is_taken};
use super::pool::read;
use super::session::CLOCK;
use crate::rows::{BadRow, Cells};
use crate::transaction::command::{CommandTransaction, CommandVerdict, OfferError, Tx};
use crate::transaction::exchange::{Exchange, ExchangeError};

/// A transaction on a connection for commands.
struct ServerTx<'c>(&'c mut PgConnection);

impl Postgres {
    /// Runs a command in one transaction. An error may be of its COMMIT. None: its sums are outdated, and no row
    /// was written.
    pub(crate) async fn administer(
        &self,
        command_tx: CommandTransaction,
    ) -> Result<Option<CommandVerdict>, OfferError> {
        let done = self.commands.commit(move |connection, _begun| {
            Box::pin(async move { command_tx.run(&mut ServerTx(connection)).await })
        });
        done.await.map_err(|failure| {
            let is_undone = failure.is_undone();
            let cause = Box::new(failure.error);
            if is_undone { OfferError::Unavailable(cause) } else { OfferError::Uncertain(cause) }
        })
    }

    pub(crate) async fn exchange<R, T>(&self, exchange: Exchange<R, T>) -> Result<T, ExchangeError>
    where
        R: Send + 'static,
        T: Send + 'static,
    {
        let written = self.commands.write(move |connection, now| {
            Box::pin(async move { exchange.run(&mut ServerTx(connection), now).await })
        });
        written.await.map_err(|error| ExchangeError {
            is_taken: is_taken(&error),
            is_misfit: is_refusal(&error),
            cause: Box::new(error),
        })
    }
}

impl From<BadRow> for sqlx::Error {
    fn from(error: BadRow) -> Self {
        Self::Decode(Box::new(error))
    }
}

impl Tx for ServerTx<'_> {
    type Error = sqlx::Error;

    async fn now(&mut self) -> Result<Timestamp, sqlx::Error> {
        let clock = sqlx::query_scalar(AssertSqlSafe(format!("SELECT {CLOCK}")));
        Ok(Timestamp::from_micros(clock.fetch_one(&mut *self.0).await?))
    }

    async fn query<R>(
        &mut self,
        statement: Statement,
        row: fn(&mut Cells<'_>) -> Result<R, BadRow>,
    ) -> Result<Vec<R>, sqlx::Error> {
        let rows = read(self.0, statement).await?;
        Ok(rows.iter().map(|cells| row(&mut Cells::new(cells))).collect::<Result<_, _>>()?)
    }

    async fn execute(&mut self, statement: Statement) -> Result<(), sqlx::Error> {
        execute(self.0, statement).await
    }
}

/// Runs a statement that is written for both databases.
pub(super) async fn execute(
    connection: &mut PgConnection,
    Statement { sql, values, .. }: Statement,
) -> Result<(), sqlx::Error> {
    let values = SqlxValues(values.unwrap_or_else(|| Values(Vec::new())));
    sqlx::query_with(AssertSqlSafe(sql), values).execute(connection).await.map(drop)
}
