//! The forms that suspend, resume and revoke an API key. A revocation is for good, and says so.

use async_trait::async_trait;
use holdfast_accounts::{Reference, Request};
use holdfast_domain::account::UseCase;
use holdfast_domain::credential::ApiKey;

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::key::form_page;

/// The form that stops new runs.
#[derive(Debug)]
pub(crate) struct SuspendKey(ApiKey);

/// The form that lets new runs in.
#[derive(Debug)]
pub(crate) struct ResumeKey(ApiKey);

/// The form that ends a key for good.
#[derive(Debug)]
pub(crate) struct RevokeKey(ApiKey);

async fn read(sheet: &Sheet) -> Result<ApiKey, Failure> {
    let id = Reference::Id(sheet.id()?);
    Ok(sheet.desk.accounts.api_key(&sheet.visitor.principal, &id, None).await?.api_key)
}

fn done(key: &ApiKey) -> FormOutcome {
    FormOutcome::done().next(format!("/keys/{}", key.id))
}

#[async_trait]
impl FormPage for SuspendKey {
    const USE_CASE: UseCase = UseCase::ApiKeySuspend;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        read(sheet).await.map(Self)
    }

    fn frame(&self) -> FormFrame {
        let page = form_page("Suspend", &self.0)
            .intro("Nothing new runs for the key until it is resumed. A stolen key is revoked.");
        let fields = vec![FormField::new("reason", "Reason", FieldKind::Text)];
        FormFrame { page, fields, submit: "Suspend the key".to_owned(), is_grave: true }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        _fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let id = Reference::Id(sheet.id()?);
        let accounts = &sheet.desk.accounts;
        accounts.suspend_api_key(&sheet.visitor.principal, request, &id).await?;
        Ok(done(&self.0))
    }
}

#[async_trait]
impl FormPage for ResumeKey {
    const USE_CASE: UseCase = UseCase::ApiKeyResume;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        read(sheet).await.map(Self)
    }

    fn frame(&self) -> FormFrame {
        let page = form_page("Resume", &self.0).intro("New runs are let in again.");
        let fields = vec![FormField::optional("reason", "Reason", FieldKind::Text)];
        FormFrame { page, fields, submit: "Resume the key".to_owned(), is_grave: false }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        _fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let id = Reference::Id(sheet.id()?);
        let accounts = &sheet.desk.accounts;
        accounts.resume_api_key(&sheet.visitor.principal, request, &id).await?;
        Ok(done(&self.0))
    }
}

#[async_trait]
impl FormPage for RevokeKey {
    const USE_CASE: UseCase = UseCase::ApiKeyRevoke;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        read(sheet).await.map(Self)
    }

    fn frame(&self) -> FormFrame {
        let page = form_page("Revoke", &self.0).intro(
            "For good: no credential of the key is accepted any more. What runs finishes, and \
             nobody can undo it.",
        );
        let fields = vec![FormField::optional("reason", "Reason", FieldKind::Text)];
        FormFrame { page, fields, submit: "Revoke the key".to_owned(), is_grave: true }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        _fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let id = Reference::Id(sheet.id()?);
        let accounts = &sheet.desk.accounts;
        accounts.revoke_api_key(&sheet.visitor.principal, request, &id).await?;
        Ok(done(&self.0))
    }
}
