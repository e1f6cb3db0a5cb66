//! Jobs as rows, and the statements that write them: one each, which returns the row after it.
//!
//! Each write is one statement whose condition is the state that it expects: a job that is queued, or leased to
//! this node. Of two nodes that claim a job one gets a row, and a node whose lease was taken over gets none. So no
//! lock is held while a job runs.
//!
//! The oldest ended jobs are deleted by number (`KEPT`), and never by age: a ledger without new jobs keeps its last
//! verification, which an alert reads.

use std::time::Duration;

use holdfast_domain::admin::audit::{BadTrailHead, TrailHead};
use holdfast_domain::admin::job::{Job, JobEnding, JobKind, JobLease, JobState, JobStep};
use holdfast_domain::operation::Node;
use holdfast_domain::{Incarnation, JobId, NodeName, Timestamp};
use sea_orm::{Statement, Value};

use super::{BadRow, Cells, signed};
use crate::schema::{Dialect, blob};

/// The columns that [`job`] reads, of `jobs`.
pub(crate) const JOB: &str = "id, kind, state, step_done, step_of, step_place, report, owner, \
    incarnation, lease_ends_at, created_at, started_at, finished_at, since";

/// Place of a failed job that was taken back.
pub(crate) const CANCELLED_PLACE: &str = "cancelled";
/// Numbers of jobs back to which those are kept that have ended.
const KEPT: i64 = 1_000;

/// Write of jobs: a transaction of one statement.
#[derive(Debug, Clone)]
pub(crate) enum JobWrite {
    /// Deletes the oldest of those that have ended.
    Prune,
    Start {
        id: JobId,
        kind: JobKind,
        since: Option<TrailHead>,
    },
    /// Inserts one that was done elsewhere, and took so long.
    Record {
        id: JobId,
        kind: JobKind,
        since: Option<TrailHead>,
        step: JobStep,
        took: Duration,
    },
    Claim {
        owner: Node,
        lease: Duration,
    },
    Keep {
        id: JobId,
        owner: Node,
        step: JobStep,
        lease: Duration,
    },
    Finish {
        id: JobId,
        owner: Node,
        step: JobStep,
        ending: JobEnding,
    },
}

impl JobWrite {
    /// The statement at this moment of the database's clock.
    pub(crate) fn statement(&self, dialect: Dialect, now: Timestamp) -> Statement {
        Statement::from_sql_and_values(dialect.backend(), self.sql(dialect), self.binds(now))
    }

    fn sql(&self, dialect: Dialect) -> String {
        match self {
            Self::Prune => format!(
                "DELETE FROM jobs WHERE finished_at IS NOT NULL
                 AND seq <= (SELECT max(seq) FROM jobs) - {KEPT}"
            ),
            Self::Start { .. } => format!(
                "INSERT INTO jobs (id, kind, state, since, created_at)
                 VALUES ($1, $2, 'queued', $3, $4)
                 ON CONFLICT (id) DO NOTHING RETURNING {JOB}"
            ),
            Self::Record { .. } => format!(
                "INSERT INTO jobs (id, kind, state, since, step_done, step_of, report, created_at,
                 started_at, finished_at)
                 VALUES ($1, $2, 'done', $3, $4, $5, $6, $7, $7, $8)
                 ON CONFLICT (id) DO NOTHING RETURNING {JOB}"
            ),
            Self::Claim { .. } => {
                // Of two processes that claim at once on a server one takes the next job.
                let locked = match dialect {
                    Dialect::Sqlite => "",
                    Dialect::Postgres => "FOR UPDATE SKIP LOCKED",
                };
                format!(
                    "UPDATE jobs SET state = 'running', owner = $1, incarnation = $2,
                     lease_ends_at = $3, started_at = coalesce(started_at, $4)
                     WHERE seq = (SELECT seq FROM jobs WHERE {} ORDER BY seq LIMIT 1 {locked})
                     RETURNING {JOB}",
                    is_claimable("$4")
                )
            }
            Self::Keep { .. } => format!(
                "UPDATE jobs SET step_done = $4, step_of = $5, step_place = $6, report = $7,
                 lease_ends_at = $8
                 WHERE id = $1 AND owner = $2 AND incarnation = $3 RETURNING {JOB}"
            ),
            Self::Finish { .. } => format!(
                "UPDATE jobs SET step_done = $4, step_of = $5, step_place = $6, report = $7,
                 finished_at = $8, state = $9, owner = NULL, incarnation = NULL,
                 lease_ends_at = NULL
                 WHERE id = $1 AND owner = $2 AND incarnation = $3 RETURNING {JOB}"
            ),
        }
    }

    fn binds(&self, now: Timestamp) -> Vec<Value> {
        let at = |moment: Timestamp| Value::from(moment.as_micros());
        match self {
            Self::Prune => Vec::new(),
            Self::Start { id, kind, since } => {
                let since = since.map(|head| head.to_string());
                vec![blob(id.to_bytes()), kind.label().into(), since.into(), at(now)]
            }
            Self::Record { id, kind, since, step, took } => {
                let took = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
                let begun = Timestamp::from_micros(now.as_micros().saturating_sub(took));
                vec![
                    blob(id.to_bytes()),
                    kind.label().into(),
                    since.map(|head| head.to_string()).into(),
                    signed(step.done).into(),
                    signed(step.of).into(),
                    step.report.as_deref().map(str::to_owned).into(),
                    at(begun),
                    at(now),
                ]
            }
            Self::Claim { owner, lease } => {
                let Node { name, incarnation } = owner;
                let incarnation = blob(incarnation.to_bytes());
                vec![name.as_str().into(), incarnation, at(now.after(*lease)), at(now)]
            }
            Self::Keep { id, owner, step, lease } => {
                let mut binds = step_binds(*id, owner, step);
                binds.push(at(now.after(*lease)));
                binds
            }
            Self::Finish { id, owner, step, ending } => {
                let mut binds = step_binds(*id, owner, step);
                binds.extend([at(now), ending.state().label().into()]);
                binds
            }
        }
    }
}

/// Condition: a row of `jobs` may be claimed at this moment.
pub(crate) fn is_claimable(now: &str) -> String {
    let kinds = JobKind::ALL.map(|kind| format!("'{}'", kind.label())).join(", ");
    format!(
        "finished_at IS NULL AND kind IN ({kinds})
         AND (lease_ends_at IS NULL OR lease_ends_at <= {now})"
    )
}

fn step_binds(id: JobId, Node { name, incarnation }: &Node, step: &JobStep) -> Vec<Value> {
    let JobStep { done, of, place, report } = step;
    let optional = |text: &Option<Box<str>>| Value::from(text.as_deref().map(str::to_owned));
    vec![
        blob(id.to_bytes()),
        name.as_str().into(),
        blob(incarnation.to_bytes()),
        signed(*done).into(),
        signed(*of).into(),
        optional(place),
        optional(report),
    ]
}

/// Reads [`JOB`].
pub(crate) fn job(cells: &mut Cells<'_>) -> Result<Job, BadRow> {
    let id = JobId::from_bytes(cells.bytes()?);
    let kind = cells.get()?;
    let state = cells.get()?;
    let step = JobStep {
        done: cells.small()?,
        of: cells.small()?,
        place: cells.opt_text()?.map(Into::into),
        report: cells.opt_text()?.map(Into::into),
    };
    let state = state_at(state, step.place.as_deref());
    let is_cancelled = state == JobState::Cancelled;
    Ok(Job {
        id,
        kind,
        state,
        step: if is_cancelled { JobStep::default() } else { step },
        lease: lease(cells)?,
        created_at: cells.timestamp()?,
        // No process has begun it: its row has a moment there because one that has ended has.
        started_at: cells.opt_timestamp()?.filter(|_| !is_cancelled),
        finished_at: cells.opt_timestamp()?,
        since: since(cells)?,
    })
}

/// Reads the state and the place of a job.
pub(crate) fn state(cells: &mut Cells<'_>) -> Result<JobState, BadRow> {
    let state = cells.get()?;
    Ok(state_at(state, cells.opt_text()?.as_deref()))
}

/// The rows have no state of their own for a job that was taken back: nodes of the version before could not read it.
fn state_at(stored: JobState, place: Option<&str>) -> JobState {
    if stored == JobState::Failed && place == Some(CANCELLED_PLACE) {
        JobState::Cancelled
    } else {
        stored
    }
}

fn since(cells: &mut Cells<'_>) -> Result<Option<TrailHead>, BadRow> {
    let Some(text) = cells.opt_text()? else { return Ok(None) };
    text.parse().map(Some).map_err(|_bad: BadTrailHead| BadRow::Value(cells.next))
}

fn lease(cells: &mut Cells<'_>) -> Result<Option<JobLease>, BadRow> {
    let (name, incarnation) = (cells.opt_text()?, cells.opt_bytes()?);
    let ends_at = cells.opt_timestamp()?;
    let Some(name) = name else { return Ok(None) };
    let at = cells.next;
    let lease = || {
        let name = NodeName::try_from(name.as_str()).ok()?;
        let owner = Node { name, incarnation: Incarnation::from_bytes(incarnation?) };
        Some(JobLease { owner, ends_at: ends_at? })
    };
    lease().map(Some).ok_or(BadRow::Value(at))
}
