//! Jobs: started, listed, shown. Whichever process has time for it does one.
//!
//! A job changes no row of the ledger, and yet its start is recorded in the audit log: an audit takes half of a
//! processor, and the request is worth as much as the findings. The job is queued in the transaction of that
//! row, unless its actor has one that has not ended. An earlier version queued it afterwards: a repetition
//! queues the job if such a sender has left it out.

use holdfast_domain::JobId;
use holdfast_domain::admin::audit::TrailHead;
use holdfast_domain::admin::job::{Job, JobKind};
use holdfast_domain::admin::listing::{Page, PageRequest};
use holdfast_domain::admin::{AccountAction, JobAction, ResourceId, UseCase};
use uuid::Uuid;

use crate::{Accounts, AccountsError, Outcome, Principal, Request, ResourceKind, Result};

impl Accounts {
    /// Starts a job. `since` is a head of the trail that was printed before.
    pub async fn start_job(
        &self,
        principal: &Principal,
        request: &Request,
        kind: JobKind,
        since: Option<TrailHead>,
    ) -> Result<Outcome<Job>> {
        principal.authorize(UseCase::JobCreate)?;
        let job = JobId::from(Uuid::new_v4());
        let since_text = since.map(|head| head.to_string());
        let action =
            AccountAction::Job(JobAction::Start { job, kind: kind.label(), since: since_text });
        let done = self.change(principal, request, action).await?;
        let id =
            |thing: &ResourceId| if let ResourceId::Job(id) = thing { Some(*id) } else { None };
        let id = done.things.iter().find_map(id).unwrap_or(job);
        // A job that is queued already stays as it is.
        let thing = self.book.start(id, kind, since).await?;
        Ok(Outcome { thing, replayed: done.replayed })
    }

    /// Takes a queued job back.
    pub async fn cancel_job(
        &self,
        principal: &Principal,
        request: &Request,
        id: JobId,
    ) -> Result<Outcome<Job>> {
        principal.authorize(UseCase::JobCreate)?;
        let done =
            self.change(principal, request, AccountAction::Job(JobAction::Cancel(id))).await?;
        let job = self.book.job(id).await?.ok_or(AccountsError::NotFound(ResourceKind::Job))?;
        Ok(Outcome { thing: job, replayed: done.replayed })
    }

    /// Jobs, a page at a time.
    pub async fn jobs(&self, principal: &Principal, page: PageRequest) -> Result<Page<Job>> {
        principal.authorize(UseCase::JobRead)?;
        Ok(self.book.jobs(page).await?)
    }

    /// The job of this id.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`], for one that is not kept any more too.
    pub async fn job(&self, principal: &Principal, id: JobId) -> Result<Job> {
        principal.authorize(UseCase::JobRead)?;
        self.book.job(id).await?.ok_or(AccountsError::NotFound(ResourceKind::Job))
    }
}
