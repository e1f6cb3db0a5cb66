//! The forms that ask an operation to end: cancel one that runs, reconcile one whose owner is gone.
//!
//! What comes of it is the operation's own rules' to say; its page shows it.

use async_trait::async_trait;
use holdfast_accounts::OperationRecord;

use crate::failure::Failure;
use crate::kit::field::{FieldKind, FormField};
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::page::Page;
use crate::kit::visit::Visit;
use crate::pages::parts::operation::opened;

/// The form that cancels.
pub(crate) struct Cancellation(OperationRecord);

/// The form that reconciles.
pub(crate) struct Reconciliation(OperationRecord);

fn page(record: &OperationRecord, what: &str) -> Page {
    let id = record.operation.id;
    Page::new(format!("{what} request {id}"))
        .below("Requests", "/operations")
        .below("Request", format!("/operations/{id}"))
}

#[async_trait]
impl FormPage for Cancellation {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self) -> FormFrame {
        let intro = "It is asked to end. What it has used until then is charged; if it has ended, \
            it stays as it is.";
        let reason = FormField::new("reason", "Reason", FieldKind::Text);
        let fields = vec![reason.hint("Recorded in the audit log.")];
        let page = page(&self.0, "Cancel").intro(intro);
        FormFrame::new(page, fields, "Cancel the request").grave()
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let id = self.0.operation.id;
        visit.accounts().cancel_operation(visit.principal(), &sent.request, id).await?;
        Ok(FormOutcome::done().next(format!("/operations/{id}")))
    }
}

#[async_trait]
impl FormPage for Reconciliation {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self) -> FormFrame {
        let intro = "It is ended if its owner is gone, and settled if its answer was recorded. If \
            it runs, it stays as it is.";
        let page = page(&self.0, "Reconcile").intro(intro);
        FormFrame::new(page, vec![FormField::reason()], "Reconcile the request")
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let id = self.0.operation.id;
        visit.accounts().reconcile_operation(visit.principal(), &sent.request, id).await?;
        Ok(FormOutcome::done().next(format!("/operations/{id}")))
    }
}
