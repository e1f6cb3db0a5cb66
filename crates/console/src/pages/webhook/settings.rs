//! The forms that create a webhook and edit it. The secret that deliveries are signed with is shown once; the form that
//! edits carries the number of edits that it was opened at.

use std::collections::BTreeSet;

use holdfast_accounts::fields::members;
use holdfast_accounts::{Description, Edit, NewWebhook, WebhookWithSecret};
use holdfast_domain::admin::event::EventKind;
use holdfast_domain::admin::{WebhookPatch, WebhookRecord};
use holdfast_domain::private::Private;

use crate::failure::{Failure, FieldRefusal};
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::{Cell, Choice, Facts, FieldKind, FormField, Visit};
use crate::pages::parts::reference::{self, to_wallet};
use crate::pages::parts::webhook::{framed, opened};

texts! { #[template(path = "pages/webhooks.txt")] WebhookSettingsText { Secret = "secret" } }

const KINDS: &str = "kinds";

/// The form that creates a webhook; a user of one wallet does not name it.
pub(crate) struct CreateWebhook {
    asks_wallet: bool,
}

impl FormPage for CreateWebhook {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self { asks_wallet: visit.principal().only_wallet().is_none() })
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let [url, kinds, description] = fields();
        let wallet = self.asks_wallet.then(|| FormField::text(&members::WEBHOOK_WALLET));
        let form = form.below("Webhooks", "/webhooks").fields([url]);
        form.fields(wallet).fields([kinds, description])
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let wallet =
            if self.asks_wallet { reference::wallet(visit, &sent.fields).await? } else { None };
        let description: Option<Description> = sent.fields.read("description")?;
        let new = NewWebhook {
            wallet: wallet.map(to_wallet),
            url: Private(sent.fields.require("url")?),
            kinds: read_kinds(sent)?,
            description,
        };
        let made = visit.accounts().create_webhook(visit.principal(), &sent.request, &new).await?;
        Ok(shown_once(&made.thing))
    }
}

/// The form that edits a webhook.
pub(crate) struct EditWebhook(WebhookRecord);

impl FormPage for EditWebhook {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let Self(record) = self;
        let [url, kinds, description] = fields();
        let chosen: Vec<_> = record.kinds.iter().flatten().map(|kind| kind.label()).collect();
        framed(form, record).fields([
            url.value(&record.url.0),
            kinds.value(chosen.join("\n")),
            description.value(record.description.clone().unwrap_or_default()),
            FormField::hidden_value("edited", &record.edited.to_string()),
        ])
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let url: String = sent.fields.require("url")?;
        let description: Option<Description> = sent.fields.read("description")?;
        let patch = WebhookPatch {
            // One that stays is not judged anew: its name may not be known at this moment.
            url: Some(url).filter(|url| *url != self.0.url.0).map(Private),
            kinds: Some(read_kinds(sent)?),
            description: Some(description.map(|text| text.as_str().to_owned())),
        };
        let edit = Edit { patch, expected: Some(sent.fields.require("edited")?) };
        let id = self.0.id;
        visit.accounts().edit_webhook(visit.principal(), &sent.request, id, edit).await?;
        Ok(FormOutcome::done().next(format!("/webhooks/{id}")))
    }
}

/// Address, kinds of events and description.
fn fields() -> [FormField; 3] {
    let kinds = EventKind::ALL.iter().filter(|kind| **kind != EventKind::WebhookTest);
    let kinds = kinds.map(|kind| Choice::new(kind.label(), kind.label())).collect();
    [
        FormField::text(&members::WEBHOOK_URL),
        FormField::of(&members::WEBHOOK_KINDS, FieldKind::Checks(kinds)),
        FormField::text(&members::WEBHOOK_DESCRIPTION),
    ]
}

/// The kinds that were chosen; none is all.
fn read_kinds(sent: &Submission) -> Result<Option<BTreeSet<EventKind>>, Failure> {
    let bad = || Failure::field(KINDS, FieldRefusal::NotAChoice);
    let kinds = sent.fields.all(KINDS).map(|label| EventKind::from_label(label).ok_or_else(bad));
    let kinds = kinds.collect::<Result<BTreeSet<_>, _>>()?;
    Ok(Some(kinds).filter(|kinds| !kinds.is_empty()))
}

/// The page with the secret, or the form's own if it was shown before.
pub(super) fn shown_once(created: &WebhookWithSecret) -> FormOutcome {
    let id = created.record.id;
    let Some(secret) = &created.secret else { return FormOutcome::done() };
    let rows = vec![("Webhook", Cell::link(id.to_string(), format!("/webhooks/{id}")))];
    let text = WebhookSettingsText::Secret.to_string();
    FormOutcome::secret(text, "Secret", secret.expose()).section(Facts::new("", rows))
}
