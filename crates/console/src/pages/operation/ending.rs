//! The forms that ask an operation to end: cancel one that runs, reconcile one whose owner is gone.
//!
//! What comes of it is the operation's own rules' to say; its page shows it.

use async_trait::async_trait;
use holdfast_accounts::{OperationRecord, Request};
use holdfast_domain::OperationId;
use holdfast_domain::admin::UseCase;

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::page::Page;
use crate::pages::reference::short;

/// The form that cancels.
#[derive(Debug)]
pub(crate) struct Cancellation {
    record: OperationRecord,
}

/// The form that reconciles.
#[derive(Debug)]
pub(crate) struct Reconciliation {
    record: OperationRecord,
}

async fn record(sheet: &Sheet) -> Result<OperationRecord, Failure> {
    let id = OperationId::from(sheet.id()?);
    Ok(sheet.desk.accounts.operation(&sheet.visitor.principal, id).await?)
}

fn page(record: &OperationRecord, what: &str) -> Page {
    let id = record.operation.id;
    Page::new(format!("{what} operation {}", short(id)))
        .below("Operations", "/operations")
        .below(short(id), format!("/operations/{id}"))
}

#[async_trait]
impl FormPage for Cancellation {
    const USE_CASE: UseCase = UseCase::OperationCancel;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        Ok(Self { record: record(sheet).await? })
    }

    fn frame(&self) -> FormFrame {
        let intro = "It is asked to end. What it has used until then is charged; if it has ended, \
            it stays as it is.";
        FormFrame {
            page: page(&self.record, "Cancel").intro(intro),
            fields: vec![
                FormField::new("reason", "Reason", FieldKind::Text).hint("It stands in the trail."),
            ],
            submit: "Cancel the operation".to_owned(),
            is_grave: true,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        _fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let (accounts, id) = (&sheet.desk.accounts, self.record.operation.id);
        accounts.cancel_operation(&sheet.visitor.principal, request, id).await?;
        Ok(FormOutcome::done().next(format!("/operations/{id}")))
    }
}

#[async_trait]
impl FormPage for Reconciliation {
    const USE_CASE: UseCase = UseCase::OperationReconcile;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        Ok(Self { record: record(sheet).await? })
    }

    fn frame(&self) -> FormFrame {
        let intro = "It is ended if its owner is gone, and settled if its answer was recorded. If \
            it runs, it stays as \
                     it is.";
        FormFrame {
            page: page(&self.record, "Reconcile").intro(intro),
            fields: vec![FormField::optional("reason", "Reason", FieldKind::Text)],
            submit: "Reconcile the operation".to_owned(),
            is_grave: false,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        _fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let (accounts, id) = (&sheet.desk.accounts, self.record.operation.id);
        accounts.reconcile_operation(&sheet.visitor.principal, request, id).await?;
        Ok(FormOutcome::done().next(format!("/operations/{id}")))
    }
}
