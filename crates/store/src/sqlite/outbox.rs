//! Work of the outbox: a write task of the writer, between two batches.

use holdfast_domain::ports::Unavailable;

use super::Sqlite;
use super::administration::bind;
use crate::outbox::Exchange;
use crate::rows::Cells;
use crate::unavailable;

impl Sqlite {
    pub(crate) async fn exchange<R, T>(&self, exchange: Exchange<R, T>) -> Result<T, Unavailable>
    where
        R: 'static,
        T: Send + 'static,
    {
        let Exchange { read, row, judge } = exchange;
        let written = self.write(move |transaction, now| {
            let statement = read(now);
            let mut found = Vec::new();
            {
                let mut prepared = transaction.prepare_cached(&statement.sql)?;
                bind(&mut prepared, &statement)?;
                let mut rows = prepared.raw_query();
                while let Some(cells) = rows.next()? {
                    found.push(row(&mut Cells::written(cells))?);
                }
            }
            let (statements, value) = judge(found, now);
            for statement in statements {
                let mut prepared = transaction.prepare_cached(&statement.sql)?;
                bind(&mut prepared, &statement)?;
                prepared.raw_execute()?;
            }
            Ok(value)
        });
        written.await.map_err(unavailable)
    }
}
