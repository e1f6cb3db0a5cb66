//! An exchange: an errand on a connection of its own.

use super::Postgres;
use super::administration::{execute, rows_of};
use super::error::is_taken;
use crate::exchange::{Exchange, ExchangeError};
use crate::rows::{BadRow, Cells};

impl Postgres {
    pub(crate) async fn exchange<R, T>(&self, exchange: Exchange<R, T>) -> Result<T, ExchangeError>
    where
        R: Send + 'static,
        T: Send + 'static,
    {
        let Exchange { read, row, judge } = exchange;
        let written = self.errands.write(move |connection, now| {
            Box::pin(async move {
                let rows = match read {
                    Some(read) => rows_of(connection, read(now)).await?,
                    None => Vec::new(),
                };
                let found: Result<Vec<R>, BadRow> =
                    rows.iter().map(|cells| row(&mut Cells::new(cells))).collect();
                let found = found.map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
                let (statements, value) = judge(found, now);
                for statement in statements {
                    execute(connection, statement).await?;
                }
                Ok(value)
            })
        });
        written
            .await
            .map_err(|error| ExchangeError { is_taken: is_taken(&error), cause: Box::new(error) })
    }
}
