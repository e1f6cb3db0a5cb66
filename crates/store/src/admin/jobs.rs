//! Jobs: each write is a transaction of one statement, whose row is the answer.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::JobId;
use holdfast_domain::admin::audit::TrailHead;
use holdfast_domain::admin::job::{Job, JobEnding, JobKind, JobStep};
use holdfast_domain::admin::listing::{Order, PAGE_MAX, Page, PageCursor, PageRequest};
use holdfast_domain::admin::ports::Jobs;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::Unavailable;

use crate::audit::verify::Verification;
use crate::error::unavailable;
use crate::rows::job::{JOB, JobWrite, job};
use crate::rows::{BadRow, Cells};
use crate::schema::blob;
use crate::store::Store;
use crate::transaction::exchange::Exchange;

/// Queued job that is not found: another process deleted it at once.
#[derive(Debug, thiserror::Error)]
#[error("the job is gone")]
struct JobGone;

impl Store {
    /// Records a verification that another process has run, with its duration, as a job that is done, so that
    /// readers of the last verification see it, whichever process ran it.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the database cannot be written. The findings are not affected.
    pub async fn record_verification(
        &self,
        id: JobId,
        since: Option<TrailHead>,
        found: &Verification,
        took: Duration,
    ) -> Result<(), Unavailable> {
        self.write_job(JobWrite::Prune).await?;
        let kind = JobKind::Verification;
        let step = JobStep {
            done: found.operations,
            of: found.operations,
            place: None,
            report: Some(found.to_json().into()),
        };
        self.write_job(JobWrite::Record { id, kind, since, step, took }).await.map(drop)
    }

    async fn write_job(&self, write: JobWrite) -> Result<Option<Job>, Unavailable> {
        let dialect = self.dialect();
        let written = move |now| write.statement(dialect, now);
        let last = |mut jobs: Vec<Job>, _now| (Vec::new(), jobs.pop());
        self.exchange(Exchange::new(written, job, last)).await
    }
}

#[async_trait]
impl Jobs for Store {
    async fn start(
        &self,
        id: JobId,
        kind: JobKind,
        since: Option<TrailHead>,
    ) -> Result<Job, Unavailable> {
        // Pruned here and not at the end of a job: each new row makes room for itself.
        self.write_job(JobWrite::Prune).await?;
        match self.write_job(JobWrite::Start { id, kind, since }).await? {
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

    async fn jobs(&self, page: PageRequest) -> Result<Page<Job>, Unavailable> {
        let (is_after, order, end) = match page.order {
            Order::Newest => ("<", "DESC", i64::MAX),
            Order::Oldest => (">", "ASC", -1),
        };
        let sql = format!(
            "SELECT seq, {JOB} FROM jobs WHERE seq {is_after} $1 ORDER BY seq {order} LIMIT $2"
        );
        let after = page.after.map_or(end, |PageCursor(after)| after);
        let limit = page.limit.clamp(1, PAGE_MAX);
        // One row more shows that there is a next page.
        let rows = self.query(&sql, [after.into(), (i64::from(limit) + 1).into()]).await?;
        let read = rows.iter().map(|row| {
            let mut cells = Cells::new(row);
            Ok((PageCursor(cells.int()?), job(&mut cells)?))
        });
        let rows = read.collect::<Result<Vec<_>, BadRow>>().map_err(unavailable)?;
        Ok(Page::of(rows, usize::try_from(limit).unwrap_or(usize::MAX)))
    }
}
