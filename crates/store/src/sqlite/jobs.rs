//! Writes jobs.

use holdfast_domain::job::Job;
use holdfast_domain::ports::Unavailable;
use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::Sqlite;
use crate::dialect::Dialect;
use crate::rows::Cells;
use crate::rows::job::{JobBind, JobWrite, job};
use crate::unavailable;

impl Sqlite {
    pub(crate) async fn write_job(&self, write: JobWrite) -> Result<Option<Job>, Unavailable> {
        let written = self.write(move |transaction, now| {
            let binds = write.binds(now).into_iter().map(|bind| match bind {
                JobBind::Int(int) => Value::Integer(int),
                JobBind::Text(text) => text.map_or(Value::Null, Value::Text),
                JobBind::Bytes(bytes) => Value::Blob(bytes),
            });
            let mut statement = transaction.prepare(&write.sql(Dialect::Sqlite))?;
            let mut rows = statement.query(params_from_iter(binds))?;
            let mut last = None;
            // All of them: a statement that is not read to its end has not written all that it does.
            while let Some(row) = rows.next()? {
                last = Some(job(&mut Cells::written(row))?);
            }
            Ok(last)
        });
        written.await.map_err(unavailable)
    }
}
