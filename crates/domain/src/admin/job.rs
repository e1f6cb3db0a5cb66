//! Jobs: work of an operator that takes longer than a request, done page by page by whichever
//! process has time for it.
//!
//! ```text
//!            claim              finish
//! queued ───────────▶ running ───────────▶ done | failed
//!                      │   ▲
//!    │                 ╰───╯ claim by another owner, once the lease has ended
//!    ╰─ cancel ─▶ cancelled
//! ```
//!
//! An actor has one job at most that has not ended. A job that no process has claimed can be taken back.
//!
//! A running job is leased to one process, and each step that it keeps renews the lease. A step has all that
//! the next owner needs: the place of the next page, and a report of the pages before it. A page whose step was
//! not kept is done again, so a page must change only its report.
//!
//! Leases are compared with the database's clock alone, and carry liveness only: an owner whose lease
//! was taken over keeps no step any more.
//!
//! ```
//! use holdfast_domain::admin::job::{JobEnding, JobState, JobStep};
//!
//! // Before its first page a job has neither a place to go on from nor a report.
//! let begin = JobStep::default();
//! assert_eq!((begin.done, begin.place, begin.report), (0, None, None));
//! assert_eq!(JobEnding::Failed.state(), JobState::Failed);
//! assert_eq!(JobState::Failed.label(), "failed");
//! ```

use crate::admin::audit::TrailHead;
pub use crate::admin::job_state::JobState;
use crate::operation::Node;
use crate::{JobId, Timestamp};

/// Work that a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// Audit of the book.
    Verification,
}

impl JobKind {
    /// Every kind.
    pub const ALL: [Self; 1] = [Self::Verification];

    /// The name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Verification => "verification",
        }
    }
}

/// Step of a job: how far it is, and what it has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobStep {
    /// Rows that were looked at.
    pub done: u64,
    /// Rows that there are, as far as is known.
    pub of: u64,
    /// Place of the next page, in the words of the work; none before the first one.
    pub place: Option<Box<str>>,
    /// Report so far, as JSON in the words of the work; none before the first page.
    pub report: Option<Box<str>>,
}

/// Lease of a running job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLease {
    /// Process that does it.
    pub owner: Node,
    /// Moment from which another process may take it over.
    pub ends_at: Timestamp,
}

/// A job as its row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Id of the job.
    pub id: JobId,
    /// Work that it does.
    pub kind: JobKind,
    /// Head of the audit log that was printed before: a verification requires the log to go through it.
    pub since: Option<TrailHead>,
    /// State of the job.
    pub state: JobState,
    /// Last step that was kept.
    pub step: JobStep,
    /// Lease, while it runs.
    pub lease: Option<JobLease>,
    /// Moment at which it was queued.
    pub created_at: Timestamp,
    /// Moment of the first claim.
    pub started_at: Option<Timestamp>,
    /// Moment at which it was done or failed.
    pub finished_at: Option<Timestamp>,
}

/// Ending of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnding {
    /// Done to its end.
    Done,
    /// Cannot be done.
    Failed,
}

impl JobEnding {
    /// State in which it leaves the job.
    #[must_use]
    pub const fn state(self) -> JobState {
        match self {
            Self::Done => JobState::Done,
            Self::Failed => JobState::Failed,
        }
    }
}
