//! The forms that start a verification, and that take a queued one back.

use async_trait::async_trait;
use holdfast_domain::admin::audit::TrailHead;
use holdfast_domain::admin::job::{Job, JobKind};

use super::opened;
use crate::failure::Failure;
use crate::kit::field::{FieldKind, FormField};
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::outcome::{CHECK_CANCELLED, Outcome};
use crate::kit::page::Page;
use crate::kit::visit::Visit;

/// The form that starts one.
pub(crate) struct StartJob;

#[async_trait]
impl FormPage for StartJob {
    async fn open(_visit: &Visit) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn frame(&self) -> FormFrame {
        let intro = "A ledger check reads the whole ledger, beside what runs, and adds it up. Its \
                     page shows how far it is.";
        let since = FormField::optional("since", "Audit checksum that you kept", FieldKind::Text)
            .hint("A number, a colon, 64 digits: the audit log must still go through it.");
        let page = Page::new("Verify the ledger").below("Ledger checks", "/jobs").intro(intro);
        FormFrame::new(page, vec![since], "Start the ledger check")
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let since: Option<TrailHead> = sent.fields.read("since")?;
        let (accounts, kind) = (visit.accounts(), JobKind::Verification);
        let started = accounts.start_job(visit.principal(), &sent.request, kind, since).await?;
        Ok(FormOutcome::done().next(format!("/jobs/{}", started.thing.id)))
    }
}

/// The form that takes a queued one back.
pub(crate) struct CancelJob(Job);

#[async_trait]
impl FormPage for CancelJob {
    const DONE: Option<Outcome> = Some(CHECK_CANCELLED);

    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self) -> FormFrame {
        let page = Page::new("Cancel the ledger check")
            .below("Ledger checks", "/jobs")
            .below("Ledger check", format!("/jobs/{}", self.0.id))
            .intro("A ledger check is cancelled while it is queued. One that a node has begun goes on.");
        FormFrame::new(page, vec![FormField::reason()], "Cancel the ledger check").grave()
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let id = self.0.id;
        visit.accounts().cancel_job(visit.principal(), &sent.request, id).await?;
        Ok(FormOutcome::done().next(format!("/jobs/{id}")))
    }
}
