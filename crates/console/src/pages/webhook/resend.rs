//! The form that sends a delivery again.

use async_trait::async_trait;
use holdfast_accounts::Request;
use holdfast_domain::admin::{UseCase, WebhookRecord};
use holdfast_domain::{EventId, WebhookId};
use uuid::Uuid;

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::webhook::form_page;

/// The form of one delivery.
#[derive(Debug)]
pub(crate) struct Resend {
    record: WebhookRecord,
    event: EventId,
}

#[async_trait]
impl FormPage for Resend {
    const USE_CASE: UseCase = UseCase::WebhookResend;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let id = WebhookId::from(sheet.id()?);
        let record = sheet.desk.accounts.webhook(&sheet.visitor.principal, id).await?;
        // /webhooks/{id}/deliveries/{event}/resend
        let event = sheet.path.split('/').nth(4).and_then(|text| Uuid::try_parse(text).ok());
        let event = event.map(EventId::from).ok_or_else(Failure::not_found)?;
        Ok(Self { record, event })
    }

    fn frame(&self) -> FormFrame {
        FormFrame {
            page: form_page("Send the delivery again", &self.record).intro(
                "The same event is sent once more, under the same id, by which a receiver knows it.",
            ),
            fields: Vec::new(),
            submit: "Send it again".to_owned(),
            is_grave: false,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        _fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let (accounts, principal) = (&sheet.desk.accounts, &sheet.visitor.principal);
        accounts.resend_delivery(principal, request, self.record.id, self.event).await?;
        Ok(FormOutcome::done().next(format!("/webhooks/{}", self.record.id)))
    }
}
