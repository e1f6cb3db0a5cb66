//! The forms that end a request: cancel one that runs, reconcile one whose node is gone.
//!
//! The rules of operations decide the result; the page of the request shows it.

use holdfast_accounts::OperationRecord;
use holdfast_accounts::fields::members;

use crate::failure::Failure;
use crate::kit::form::{FormFrame, FormOutcome, Submission, reason_forms};
use crate::kit::{FormField, Visit};
use crate::pages::parts::operation::opened;

reason_forms! {
    /// The form that cancels.
    Cancellation(it: OperationRecord) {
        cancel_operation(it.operation.id), "operations", FormField::text(&members::CANCEL_REASON)
    }
    /// The form that reconciles.
    Reconciliation(it: OperationRecord) {
        reconcile_operation(it.operation.id), "operations", FormField::reason()
    }
}

fn framed(form: FormFrame, record: &OperationRecord) -> FormFrame {
    let id = record.operation.id;
    let form = form.about(&id.to_string()).below("Requests", "/operations");
    form.below("Request", format!("/operations/{id}"))
}
