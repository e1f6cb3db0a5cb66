//! An exchange: a write task of the writer, between two batches.

use super::Sqlite;
use super::administration::{bind, execute};
use crate::exchange::{Exchange, ExchangeError};
use crate::rows::Cells;

impl Sqlite {
    pub(crate) async fn exchange<R, T>(&self, exchange: Exchange<R, T>) -> Result<T, ExchangeError>
    where
        R: 'static,
        T: Send + 'static,
    {
        let Exchange { read, row, judge } = exchange;
        let written = self.write(move |transaction, now| {
            let mut found = Vec::new();
            if let Some(read) = read {
                let statement = read(now);
                let mut prepared = transaction.prepare_cached(&statement.sql)?;
                bind(&mut prepared, &statement)?;
                let mut rows = prepared.raw_query();
                // To its end: a statement that writes and answers has not written everything before.
                while let Some(cells) = rows.next()? {
                    found.push(row(&mut Cells::written(cells))?);
                }
            }
            let (statements, value) = judge(found, now);
            statements.iter().try_for_each(|statement| execute(transaction, statement))?;
            Ok(value)
        });
        written
            .await
            .map_err(|error| ExchangeError { is_taken: error.is_taken(), cause: Box::new(error) })
    }
}
