//! The forms that end a request: cancel one that runs, reconcile one whose node is gone.
//!
//! The rules of operations decide the result; the page of the request shows it.

use async_trait::async_trait;
use holdfast_accounts::OperationRecord;
use holdfast_accounts::fields::members;

use crate::failure::Failure;
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::{FormField, Visit};
use crate::pages::parts::operation::opened;

/// The form that cancels.
pub(crate) struct Cancellation(OperationRecord);

/// The form that reconciles.
pub(crate) struct Reconciliation(OperationRecord);

fn framed(form: FormFrame, record: &OperationRecord) -> FormFrame {
    let id = record.operation.id;
    let form = form.about(&id.to_string()).below("Requests", "/operations");
    form.below("Request", format!("/operations/{id}"))
}

#[async_trait]
impl FormPage for Cancellation {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        framed(form, &self.0).fields([FormField::text(&members::CANCEL_REASON)])
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

    fn frame(&self, form: FormFrame) -> FormFrame {
        framed(form, &self.0).fields([FormField::reason()])
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let id = self.0.operation.id;
        visit.accounts().reconcile_operation(visit.principal(), &sent.request, id).await?;
        Ok(FormOutcome::done().next(format!("/operations/{id}")))
    }
}
