//! Changes of jobs.

use super::Creation;
use crate::JobId;
use crate::admin::field_change::{FieldChange, differences};
use crate::admin::job_state::JobState;
use crate::admin::{AccountEffect, AccountRefusal, AccountWrite, Facts, ResourceId, UseCase};

/// Change of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobAction {
    /// Queue one.
    Start {
        /// The job.
        job: JobId,
        /// Name of its kind.
        kind: &'static str,
        /// Starting point, as the actor wrote it.
        since: Option<String>,
    },
    /// Take a queued one back.
    Cancel(JobId),
}

impl JobAction {
    pub(super) const fn row(&self) -> (UseCase, Creation) {
        match self {
            Self::Start { job, .. } => {
                (UseCase::JobCreate, Creation::Resource(ResourceId::Job(*job)))
            }
            Self::Cancel(_) => (UseCase::JobCreate, Creation::Nothing),
        }
    }

    pub(super) async fn decide<F: Facts>(&self, facts: &mut F) -> Result<AccountEffect, F::Error> {
        match self {
            Self::Start { job, kind, since } => {
                if let Some(pending) = facts.pending_job().await? {
                    return Err(AccountRefusal::JobPending(pending).into());
                }
                let fields = vec![("kind", Some((*kind).to_owned())), ("since", since.clone())];
                let queued = AccountWrite::QueueJob(*job, kind, since.clone(), facts.now());
                let changes = differences(None, fields);
                Ok(AccountEffect::done(vec![queued], ResourceId::Job(*job), changes))
            }
            Self::Cancel(id) => {
                let (writes, changes) = match facts.job(*id).await?.ok_or(AccountRefusal::NoJob)? {
                    JobState::Queued => {
                        let [before, after] = [JobState::Queued, JobState::Cancelled]
                            .map(|state| Some(state.label().to_owned()));
                        let change = FieldChange { field: "state".to_owned(), before, after };
                        (vec![AccountWrite::CancelJob(*id, facts.now())], vec![change])
                    }
                    JobState::Cancelled => (Vec::new(), Vec::new()),
                    JobState::Running | JobState::Done | JobState::Failed => {
                        return Err(AccountRefusal::JobStarted.into());
                    }
                };
                Ok(AccountEffect::done(writes, ResourceId::Job(*id), changes))
            }
        }
    }
}
