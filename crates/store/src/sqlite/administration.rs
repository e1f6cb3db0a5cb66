//! Transactions that are written for both databases, on SQLite: a write task of the writer, between two batches.

use std::future::Future;

use futures_util::FutureExt as _;
use holdfast_domain::Timestamp;
use rusqlite::Transaction;
use rusqlite::types::Value as Cell;
use sea_orm::{Statement, Value};

use super::Sqlite;
use super::write_task::WriteError;
use crate::rows::{BadRow, Cells};
use crate::transaction::command::{CommandTransaction, CommandVerdict, OfferError, Tx};
use crate::transaction::exchange::{Exchange, ExchangeError};

/// A transaction of the writer, on its thread: no future of it waits.
struct FileTx<'t> {
    transaction: &'t Transaction<'t>,
    now: Timestamp,
}

impl Sqlite {
    /// Runs a command in one transaction. An error may be of its COMMIT. None: its sums are outdated, and no row
    /// was written.
    pub(crate) async fn administer(
        &self,
        command_tx: CommandTransaction,
    ) -> Result<Option<CommandVerdict>, OfferError> {
        let done = self.write(move |transaction, now| {
            at_once(command_tx.run(&mut FileTx { transaction, now }))
        });
        done.await.map_err(|error| match error {
            // The task was not begun, or a statement of it was refused.
            WriteError::NotTried | WriteError::File(_) | WriteError::Row(_) => {
                OfferError::Unavailable(Box::new(error))
            }
            WriteError::Sql(_) => OfferError::Uncertain(Box::new(error)),
        })
    }

    pub(crate) async fn exchange<R, T>(&self, exchange: Exchange<R, T>) -> Result<T, ExchangeError>
    where
        R: 'static,
        T: Send + 'static,
    {
        let written = self.write(move |transaction, now| {
            at_once(exchange.run(&mut FileTx { transaction, now }, now))
        });
        written.await.map_err(|error| ExchangeError {
            is_taken: error.is_taken(),
            is_misfit: error.is_misfit(),
            cause: Box::new(error),
        })
    }
}

fn at_once<T>(done: impl Future<Output = Result<T, WriteError>>) -> Result<T, WriteError> {
    done.now_or_never().unwrap_or(Err(WriteError::NotTried))
}

impl Tx for FileTx<'_> {
    type Error = WriteError;

    async fn now(&mut self) -> Result<Timestamp, WriteError> {
        Ok(self.now)
    }

    async fn query<R>(
        &mut self,
        statement: Statement,
        row: fn(&mut Cells<'_>) -> Result<R, BadRow>,
    ) -> Result<Vec<R>, WriteError> {
        let mut prepared = self.transaction.prepare_cached(&statement.sql)?;
        bind(&mut prepared, &statement)?;
        let (mut rows, mut found) = (prepared.raw_query(), Vec::new());
        // To its end: a statement that writes and answers has not written all rows before.
        while let Some(cells) = rows.next()? {
            found.push(row(&mut Cells::written(cells))?);
        }
        Ok(found)
    }

    async fn execute(&mut self, statement: Statement) -> Result<(), WriteError> {
        execute(self.transaction, &statement)
    }
}

/// Runs a statement that is written for both databases.
pub(super) fn execute(
    transaction: &Transaction<'_>,
    statement: &Statement,
) -> Result<(), WriteError> {
    let mut prepared = transaction.prepare_cached(&statement.sql)?;
    bind(&mut prepared, statement)?;
    prepared.raw_execute()?;
    Ok(())
}

/// Binds `$1`, `$2` and so on by their names: their places are those of their first use.
fn bind(
    prepared: &mut rusqlite::CachedStatement<'_>,
    statement: &Statement,
) -> Result<(), WriteError> {
    let values = statement.values.iter().flat_map(|values| &values.0);
    for (at, value) in values.enumerate() {
        let name = format!("${}", at.saturating_add(1));
        let Some(place) = prepared.parameter_index(&name)? else {
            return Err(rusqlite::Error::InvalidParameterName(name).into());
        };
        prepared.raw_bind_parameter(place, cell(value)?)?;
    }
    Ok(())
}

/// A bind of SeaORM's as SQLite's own: the writer's statements have these kinds and no other.
fn cell(value: &Value) -> Result<Cell, WriteError> {
    Ok(if let Value::BigInt(number) = value {
        number.map_or(Cell::Null, Cell::Integer)
    } else if let Value::String(text) = value {
        text.clone().map_or(Cell::Null, Cell::Text)
    } else if let Value::Bytes(bytes) = value {
        bytes.clone().map_or(Cell::Null, Cell::Blob)
    } else {
        let error = "a bind that is no integer, text or blob".into();
        return Err(rusqlite::Error::ToSqlConversionFailure(error).into());
    })
}
