//! Work of the outbox: an errand on a connection of its own.

use holdfast_domain::ports::Unavailable;
use sea_orm::{QueryResult, Statement, Values};
use sea_query_sqlx::SqlxValues;
use sqlx::AssertSqlSafe;

use super::Postgres;
use crate::outbox::Exchange;
use crate::rows::{BadRow, Cells};
use crate::unavailable;

impl Postgres {
    pub(crate) async fn exchange<R, T>(&self, exchange: Exchange<R, T>) -> Result<T, Unavailable>
    where
        R: Send + 'static,
        T: Send + 'static,
    {
        let Exchange { read, row, judge } = exchange;
        let written = self.errands.write(move |connection, now| {
            Box::pin(async move {
                let (sql, values) = parts(read(now));
                let rows = sqlx::query_with(AssertSqlSafe(sql), values)
                    .fetch_all(&mut *connection)
                    .await?;
                let found: Result<Vec<R>, BadRow> = rows
                    .into_iter()
                    .map(|cells| row(&mut Cells::new(&QueryResult::from(cells))))
                    .collect();
                let found = found.map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
                let (statements, value) = judge(found, now);
                for statement in statements {
                    let (sql, values) = parts(statement);
                    let write = sqlx::query_with(AssertSqlSafe(sql), values);
                    write.execute(&mut *connection).await?;
                }
                Ok(value)
            })
        });
        written.await.map_err(unavailable)
    }
}

fn parts(Statement { sql, values, .. }: Statement) -> (String, SqlxValues) {
    (sql, SqlxValues(values.unwrap_or_else(|| Values(Vec::new()))))
}
