//! The forms of a webhook's test and of another secret.

use std::fmt;
use std::marker::PhantomData;

use async_trait::async_trait;
use holdfast_accounts::Request;
use holdfast_domain::WebhookId;
use holdfast_domain::admin::{UseCase, WebhookRecord};

use super::create::told;
use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::webhook::form_page;

/// A change of a webhook: its words, and its use case.
#[async_trait]
pub(crate) trait WebhookChange: Send + Sync + 'static {
    const USE_CASE: UseCase;
    const TITLE: &'static str;
    const INTRO: &'static str;

    async fn make(sheet: &Sheet, request: &Request, id: WebhookId) -> Result<FormOutcome, Failure>;
}

/// The form of a change.
pub(crate) struct ChangeForm<C> {
    record: WebhookRecord,
    change: PhantomData<C>,
}

impl<C> fmt::Debug for ChangeForm<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChangeForm({})", self.record.id)
    }
}

#[async_trait]
impl<C: WebhookChange> FormPage for ChangeForm<C> {
    const USE_CASE: UseCase = C::USE_CASE;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let id = WebhookId::from(sheet.id()?);
        let record = sheet.desk.accounts.webhook(&sheet.visitor.principal, id).await?;
        Ok(Self { record, change: PhantomData })
    }

    fn frame(&self) -> FormFrame {
        FormFrame {
            page: form_page(C::TITLE, &self.record).intro(C::INTRO),
            fields: vec![FormField::optional("reason", "Reason", FieldKind::Text)],
            submit: C::TITLE.to_owned(),
            is_grave: false,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        _fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        C::make(sheet, request, self.record.id).await
    }
}

fn back(id: WebhookId) -> FormOutcome {
    FormOutcome::done().next(format!("/webhooks/{id}"))
}

/// A delivery of nothing, to see whether it arrives.
#[derive(Debug)]
pub(crate) struct Test;

#[async_trait]
impl WebhookChange for Test {
    const USE_CASE: UseCase = UseCase::WebhookTest;
    const TITLE: &'static str = "Send a test";
    const INTRO: &'static str =
        "It is sent an event of the kind webhook.test, at most six a minute.";

    async fn make(sheet: &Sheet, request: &Request, id: WebhookId) -> Result<FormOutcome, Failure> {
        sheet.desk.accounts.test_webhook(&sheet.visitor.principal, request, id).await?;
        Ok(back(id))
    }
}

/// Another secret.
#[derive(Debug)]
pub(crate) struct SecretRotation;

#[async_trait]
impl WebhookChange for SecretRotation {
    const USE_CASE: UseCase = UseCase::WebhookRotate;
    const TITLE: &'static str = "Rotate the secret";
    const INTRO: &'static str = "It gets a new secret, which is told once. Both sign for a day.";

    async fn make(sheet: &Sheet, request: &Request, id: WebhookId) -> Result<FormOutcome, Failure> {
        let accounts = &sheet.desk.accounts;
        let rotated = accounts.rotate_webhook(&sheet.visitor.principal, request, id).await?;
        Ok(told(&rotated.thing))
    }
}
