//! The form that takes a queued job back.

use async_trait::async_trait;
use holdfast_accounts::Request;
use holdfast_domain::JobId;
use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::job::Job;

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::page::Page;

/// The form of one job.
#[derive(Debug)]
pub(crate) struct CancelJob {
    job: Job,
}

#[async_trait]
impl FormPage for CancelJob {
    const USE_CASE: UseCase = UseCase::JobCreate;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let id = JobId::from(sheet.id()?);
        Ok(Self { job: sheet.desk.accounts.job(&sheet.visitor.principal, id).await? })
    }

    fn frame(&self) -> FormFrame {
        FormFrame {
            page: Page::new("Cancel the verification")
                .below("Jobs", "/jobs")
                .below("Verification", format!("/jobs/{}", self.job.id))
                .intro("A job is cancelled while it is queued. One that a node has begun goes on."),
            fields: vec![FormField::optional("reason", "Reason", FieldKind::Text)],
            submit: "Cancel the verification".to_owned(),
            is_grave: true,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        _fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let (accounts, id) = (&sheet.desk.accounts, self.job.id);
        accounts.cancel_job(&sheet.visitor.principal, request, id).await?;
        Ok(FormOutcome::done().next(format!("/jobs/{id}")))
    }
}
