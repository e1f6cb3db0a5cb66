//! Writes jobs.

use holdfast_domain::job::Job;
use holdfast_domain::ports::Unavailable;
use sea_orm::QueryResult;
use sqlx::AssertSqlSafe;

use super::Postgres;
use crate::dialect::Dialect;
use crate::rows::Cells;
use crate::rows::job::{JobBind, JobWrite, job};
use crate::unavailable;

impl Postgres {
    pub(crate) async fn write_job(&self, write: JobWrite) -> Result<Option<Job>, Unavailable> {
        let written = self.errands.write(move |connection, now| {
            Box::pin(async move {
                let mut query = sqlx::query(AssertSqlSafe(write.sql(Dialect::Postgres)));
                for bind in write.binds(now) {
                    query = match bind {
                        JobBind::Int(int) => query.bind(int),
                        JobBind::Text(text) => query.bind(text),
                        JobBind::Bytes(bytes) => query.bind(bytes),
                    };
                }
                let rows = query.fetch_all(connection).await?;
                Ok(rows.into_iter().next_back().map(QueryResult::from))
            })
        });
        let row = written.await.map_err(unavailable)?;
        row.map(|row| job(&mut Cells::new(&row))).transpose().map_err(unavailable)
    }
}
