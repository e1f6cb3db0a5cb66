//! The forms that make a webhook and edit it. The secret that deliveries are signed with is told once; the form that
//! edits carries the number of edits that it was opened at.

use std::collections::BTreeSet;

use async_trait::async_trait;
use holdfast_accounts::{Description, Edit, NewWebhook, WebhookWithSecret};
use holdfast_domain::admin::event::EventKind;
use holdfast_domain::admin::{WebhookPatch, WebhookRecord};
use holdfast_domain::private::Private;

use crate::failure::Failure;
use crate::kit::cell::{Cell, Tone};
use crate::kit::field::{Choice, FieldKind, FormField};
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::page::Page;
use crate::kit::section::{Facts, Notice, Snippet};
use crate::kit::visit::Visit;
use crate::pages::parts::reference::{self, WALLET, to_wallet};
use crate::pages::parts::webhook::{form_page, opened};

const KINDS: &str = "kinds";

/// The form that makes a webhook; whoever has one wallet is not asked for it.
pub(crate) struct CreateWebhook {
    asks_wallet: bool,
}

#[async_trait]
impl FormPage for CreateWebhook {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self { asks_wallet: visit.principal().only_wallet().is_none() })
    }

    fn frame(&self) -> FormFrame {
        let hint = "Its name or id. Without one it is told what happens to all of them.";
        let wallet = FormField::optional(WALLET, "Wallet", FieldKind::Text).hint(hint);
        let mut fields = fields().to_vec();
        if self.asks_wallet {
            fields.insert(1, wallet);
        }
        let page = Page::new("Make a webhook").below("Webhooks", "/webhooks");
        FormFrame::new(page, fields, "Make the webhook")
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let wallet =
            if self.asks_wallet { reference::wallet(visit, &sent.fields).await? } else { None };
        let description: Option<Description> = sent.fields.read("description")?;
        let new = NewWebhook {
            wallet: wallet.map(to_wallet),
            url: Private(sent.fields.want("url")?),
            kinds: read_kinds(sent)?,
            description,
        };
        let made = visit.accounts().create_webhook(visit.principal(), &sent.request, &new).await?;
        Ok(told(&made.thing))
    }
}

/// The form that edits a webhook.
pub(crate) struct EditWebhook(WebhookRecord);

#[async_trait]
impl FormPage for EditWebhook {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self) -> FormFrame {
        let Self(record) = self;
        let [url, kinds, description] = fields();
        let chosen: Vec<_> = record.kinds.iter().flatten().map(|kind| kind.label()).collect();
        let fields = vec![
            url.value(&record.url.0),
            kinds.value(chosen.join("\n")),
            description.value(record.description.clone().unwrap_or_default()),
            FormField::hidden_value("edited", &record.edited.to_string()),
        ];
        FormFrame::new(form_page("Edit the webhook", record), fields, "Save")
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let url: String = sent.fields.want("url")?;
        let description: Option<Description> = sent.fields.read("description")?;
        let patch = WebhookPatch {
            // One that stays is not judged anew: its name may not be known at this moment.
            url: Some(url).filter(|url| *url != self.0.url.0).map(Private),
            kinds: Some(read_kinds(sent)?),
            description: Some(description.map(|text| text.as_str().to_owned())),
        };
        let edit = Edit { patch, expected: Some(sent.fields.want("edited")?) };
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
        FormField::new("url", "Address", FieldKind::Text)
            .hint("https, on port 443, of a host that everybody can reach."),
        FormField::optional(KINDS, "Kinds of events: none chosen is all", FieldKind::Checks(kinds)),
        FormField::optional("description", "Description", FieldKind::Text),
    ]
}

/// The kinds that were chosen; none is all.
fn read_kinds(sent: &Submission) -> Result<Option<BTreeSet<EventKind>>, Failure> {
    let bad = || Failure::field(KINDS, "There is no such kind of events.");
    let kinds = sent.fields.all(KINDS).map(|label| EventKind::from_label(label).ok_or_else(bad));
    let kinds = kinds.collect::<Result<BTreeSet<_>, _>>()?;
    Ok(Some(kinds).filter(|kinds| !kinds.is_empty()))
}

/// The page that tells a secret, or the form's own where it was told before.
pub(super) fn told(told: &WebhookWithSecret) -> FormOutcome {
    let id = told.record.id;
    let Some(secret) = &told.secret else { return FormOutcome::done() };
    let text = "This is told once. Your receiver checks by it that a delivery is ours; rotate it \
        for another one.";
    let rows = vec![("Webhook", Cell::link(id.to_string(), format!("/webhooks/{id}")))];
    FormOutcome::done()
        .section(Notice::new(Tone::Warning, text))
        .section(Snippet::new("Secret", secret.expose()))
        .section(Facts::new("", rows))
        .telling_once()
}
