//! The forms of a webhook's test, of another secret, and of a delivery that is sent again.

use holdfast_domain::EventId;
use holdfast_domain::admin::WebhookRecord;
use uuid::Uuid;

use super::settings::shown_once;
use crate::failure::Failure;
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission, reason_forms};
use crate::kit::{FormField, Visit};
use crate::pages::parts::webhook::{framed, opened};

reason_forms! {
    /// A delivery of a test event.
    TestWebhook(it: WebhookRecord) { test_webhook(it.id), "webhooks", FormField::reason() }
}

/// Another secret.
pub(crate) struct RotateWebhook(WebhookRecord);

impl FormPage for RotateWebhook {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        framed(form, &self.0).fields([FormField::reason()])
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let (accounts, id) = (visit.accounts(), self.0.id);
        let rotated = accounts.rotate_webhook(visit.principal(), &sent.request, id).await?;
        Ok(shown_once(&rotated.thing))
    }
}

/// A delivery that is sent again.
pub(crate) struct ResendDelivery(WebhookRecord, EventId);

impl FormPage for ResendDelivery {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        let record = opened(visit).await?;
        // /webhooks/{id}/deliveries/{event}/resend
        let event = visit.path.split('/').nth(4).and_then(|text| Uuid::try_parse(text).ok());
        Ok(Self(record, event.map(EventId::from).ok_or_else(Failure::not_found)?))
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        framed(form, &self.0)
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let (accounts, id) = (visit.accounts(), self.0.id);
        accounts.resend_delivery(visit.principal(), &sent.request, id, self.1).await?;
        Ok(FormOutcome::done().next(format!("/webhooks/{id}")))
    }
}
