//! Jobs: each write is a transaction of one statement, whose row is the answer.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::JobId;
use holdfast_domain::job::{Job, JobEnding, JobKind, JobStep};
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{Jobs, Unavailable};

use crate::dialect::blob;
use crate::rows::job::{JOB, JobWrite, job};
use crate::rows::{BadRow, Cells};
use crate::{Store, WriteBackend, unavailable};

/// Job that was queued and that nobody finds: somebody deleted it at once.
#[derive(Debug, thiserror::Error)]
#[error("the job is gone")]
struct JobGone;

impl Store {
    async fn write_job(&self, write: JobWrite) -> Result<Option<Job>, Unavailable> {
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.write_job(write).await,
            WriteBackend::Postgres(postgres) => postgres.write_job(write).await,
        }
    }
}

#[async_trait]
impl Jobs for Store {
    async fn start(&self, id: JobId, kind: JobKind) -> Result<Job, Unavailable> {
        // Here and not at the ends: whoever makes a row makes room for it.
        self.write_job(JobWrite::Prune).await?;
        match self.write_job(JobWrite::Start { id, kind }).await? {
            Some(job) => Ok(job),
            None => self.job(id).await?.ok_or_else(|| unavailable(JobGone)),
        }
    }

    async fn claim(&self, owner: &Node, lease: Duration) -> Result<Option<Job>, Unavailable> {
        self.write_job(JobWrite::Claim { owner: owner.clone(), lease }).await
    }

    async fn keep(
        &self,
        id: JobId,
        owner: &Node,
        step: &JobStep,
        lease: Duration,
    ) -> Result<Option<Job>, Unavailable> {
        let (owner, step) = (owner.clone(), step.clone());
        self.write_job(JobWrite::Keep { id, owner, step, lease }).await
    }

    async fn finish(
        &self,
        id: JobId,
        owner: &Node,
        step: &JobStep,
        ending: JobEnding,
    ) -> Result<Option<Job>, Unavailable> {
        let (owner, step) = (owner.clone(), step.clone());
        self.write_job(JobWrite::Finish { id, owner, step, ending }).await
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>, Unavailable> {
        let sql = format!("SELECT {JOB} FROM jobs WHERE id = $1");
        let rows = self.query(&sql, [blob(id.to_bytes())]).await?;
        rows.first().map(|row| job(&mut Cells::new(row))).transpose().map_err(unavailable)
    }

    async fn jobs(&self, limit: u32) -> Result<Vec<Job>, Unavailable> {
        let sql = format!("SELECT {JOB} FROM jobs ORDER BY seq DESC LIMIT $1");
        let rows = self.query(&sql, [i64::from(limit).into()]).await?;
        let read = rows.iter().map(|row| job(&mut Cells::new(row)));
        read.collect::<Result<_, BadRow>>().map_err(unavailable)
    }
}
