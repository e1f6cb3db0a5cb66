//! The forms that start a verification, and that take a queued one back.

use holdfast_accounts::fields::members;
use holdfast_accounts::verbs::forms::CANCEL_CHECK;
use holdfast_domain::admin::audit::TrailHead;
use holdfast_domain::admin::job::{Job, JobKind};

use super::opened;
use crate::failure::Failure;
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission, reason_forms};
use crate::kit::{FormField, Visit};

/// The form that starts one.
pub(crate) struct StartJob;

impl FormPage for StartJob {
    async fn open(_visit: &Visit) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        form.below("Ledger checks", "/jobs").fields([FormField::text(&members::CHECKSUM)])
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let since: Option<TrailHead> = sent.fields.read("since")?;
        let (accounts, kind) = (visit.accounts(), JobKind::Verification);
        let started = accounts.start_job(visit.principal(), &sent.request, kind, since).await?;
        Ok(FormOutcome::done().next(format!("/jobs/{}", started.thing.id)))
    }
}

reason_forms! {
    /// The form that takes a queued one back.
    CancelJob(it: Job) { cancel_job(it.id), "jobs", FormField::reason(), CANCEL_CHECK }
}

fn framed(form: FormFrame, job: &Job) -> FormFrame {
    form.below("Ledger checks", "/jobs").below("Ledger check", format!("/jobs/{}", job.id))
}
