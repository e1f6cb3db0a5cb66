//! The form that starts a verification.

use async_trait::async_trait;
use holdfast_accounts::Request;
use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::audit::TrailHead;
use holdfast_domain::admin::job::JobKind;

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::page::Page;

/// The form.
#[derive(Debug)]
pub(crate) struct Start;

#[async_trait]
impl FormPage for Start {
    const USE_CASE: UseCase = UseCase::JobCreate;

    async fn open(_sheet: &Sheet) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn frame(&self) -> FormFrame {
        let intro = "A verification reads all of the book, beside what runs, and adds it up. Its \
                     page shows how far it is.";
        FormFrame {
            page: Page::new("Verify the book").below("Jobs", "/jobs").intro(intro),
            fields: vec![
                FormField::optional("since", "Head of the trail that you kept", FieldKind::Text)
                    .hint("A number, a colon, 64 digits: the trail must still go through it."),
            ],
            submit: "Start the verification".to_owned(),
            is_grave: false,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let since: Option<TrailHead> = fields.read("since")?;
        let (accounts, principal) = (&sheet.desk.accounts, &sheet.visitor.principal);
        let started = accounts.start_job(principal, request, JobKind::Verification, since).await?;
        Ok(FormOutcome::done().next(format!("/jobs/{}", started.thing.id)))
    }
}
