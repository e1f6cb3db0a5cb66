//! The form that edits a webhook. It carries the number of edits that it was opened at: what somebody else changed
//! since is not overwritten.

use async_trait::async_trait;
use holdfast_accounts::{Description, Edit, Request};
use holdfast_domain::WebhookId;
use holdfast_domain::admin::{UseCase, WebhookPatch, WebhookRecord};
use holdfast_domain::private::Private;

use super::create::{fields as webhook_fields, read_kinds};
use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::FormField;
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::webhook::form_page;

/// The form of one webhook.
#[derive(Debug)]
pub(crate) struct EditWebhook {
    record: WebhookRecord,
}

#[async_trait]
impl FormPage for EditWebhook {
    const USE_CASE: UseCase = UseCase::WebhookUpdate;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let id = WebhookId::from(sheet.id()?);
        let record = sheet.desk.accounts.webhook(&sheet.visitor.principal, id).await?;
        Ok(Self { record })
    }

    fn frame(&self) -> FormFrame {
        let record = &self.record;
        let [url, kinds, description] = webhook_fields();
        let chosen = record.kinds.iter().flatten().map(|kind| kind.label());
        let chosen = chosen.collect::<Vec<_>>().join("\n");
        let fields = vec![
            url.value(&record.url.0),
            kinds.value(chosen),
            description.value(record.description.clone().unwrap_or_default()),
            FormField::hidden_value("edited", &record.edited.to_string()),
        ];
        let page = form_page("Edit the webhook", record);
        FormFrame { page, fields, submit: "Save".to_owned(), is_grave: false }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let url: String = fields.want("url")?;
        let description: Option<Description> = fields.read("description")?;
        let patch = WebhookPatch {
            // One that stays is not judged anew: its name may not be known at this moment.
            url: Some(url).filter(|url| *url != self.record.url.0).map(Private),
            kinds: Some(read_kinds(fields)?),
            description: Some(description.map(|text| text.as_str().to_owned())),
        };
        let edit = Edit { patch, expected: Some(fields.want("edited")?) };
        let id = self.record.id;
        sheet.desk.accounts.edit_webhook(&sheet.visitor.principal, request, id, edit).await?;
        Ok(FormOutcome::done().next(format!("/webhooks/{id}")))
    }
}
