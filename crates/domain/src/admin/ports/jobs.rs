//! Port of jobs: their rows, and the lease by which one process at a time does one.

use std::time::Duration;

use async_trait::async_trait;

use crate::JobId;
use crate::admin::audit::TrailHead;
use crate::admin::job::{Job, JobEnding, JobKind, JobStep};
use crate::admin::listing::{Page, PageRequest};
use crate::operation::Node;
use crate::ports::Unavailable;

/// Keeps jobs. A write returns the row after it; `None` if the job is not this owner's (any more), and no row
/// was written.
#[async_trait]
pub trait Jobs: Send + Sync {
    /// Queues a job. A known id has no effect, and answers with the current job.
    async fn start(
        &self,
        id: JobId,
        kind: JobKind,
        since: Option<TrailHead>,
    ) -> Result<Job, Unavailable>;

    /// Leases the oldest job that is queued, or whose lease has ended, for `lease` from now; `None` if there is
    /// none.
    async fn claim(&self, owner: &Node, lease: Duration) -> Result<Option<Job>, Unavailable>;

    /// Keeps a step and renews the lease. A lease that has ended is renewed as well, unless another
    /// process has claimed the job.
    async fn keep(
        &self,
        job: JobId,
        owner: &Node,
        step: &JobStep,
        lease: Duration,
    ) -> Result<Option<Job>, Unavailable>;

    /// Ends a job with its last step.
    async fn finish(
        &self,
        job: JobId,
        owner: &Node,
        step: &JobStep,
        ending: JobEnding,
    ) -> Result<Option<Job>, Unavailable>;

    /// Reads one job.
    async fn job(&self, id: JobId) -> Result<Option<Job>, Unavailable>;

    /// Lists jobs. Of those that have ended the oldest are not kept.
    async fn jobs(&self, page: PageRequest) -> Result<Page<Job>, Unavailable>;
}
