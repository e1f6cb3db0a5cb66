//! The form that makes a webhook. The secret that its deliveries are signed with is told once.

use std::collections::BTreeSet;

use async_trait::async_trait;
use holdfast_accounts::{Description, NewWebhook, Request, ToldWebhook};
use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::event::EventKind;
use holdfast_domain::private::Private;

use crate::ask::SentFields;
use crate::cell::{Cell, Tone};
use crate::failure::Failure;
use crate::field::{Choice, FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::page::Page;
use crate::pages::reference::{self, WALLET, to_wallet};
use crate::section::{Facts, Notice, Snippet};

const KINDS: &str = "kinds";

/// The form; whoever has one wallet is not asked for it.
#[derive(Debug)]
pub(crate) struct Creation {
    asks_wallet: bool,
}

#[async_trait]
impl FormPage for Creation {
    const USE_CASE: UseCase = UseCase::WebhookCreate;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        Ok(Self { asks_wallet: sheet.visitor.principal.only_wallet().is_none() })
    }

    fn frame(&self) -> FormFrame {
        let [url, kinds, description] = fields();
        let mut fields = vec![url];
        if self.asks_wallet {
            let hint = "Its name or id. Without one it is told what happens to all of them.";
            fields.push(FormField::optional(WALLET, "Wallet", FieldKind::Text).hint(hint));
        }
        fields.extend([kinds, description]);
        FormFrame {
            page: Page::new("Make a webhook").below("Webhooks", "/webhooks"),
            fields,
            submit: "Make the webhook".to_owned(),
            is_grave: false,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let wallet = if self.asks_wallet {
            reference::wallet(&sheet.desk, &sheet.visitor, fields).await?
        } else {
            None
        };
        let description: Option<Description> = fields.read("description")?;
        let new = NewWebhook {
            wallet: wallet.map(to_wallet),
            url: Private(fields.want("url")?),
            kinds: read_kinds(fields)?,
            description,
        };
        let accounts = &sheet.desk.accounts;
        let made = accounts.create_webhook(&sheet.visitor.principal, request, &new).await?;
        Ok(told(&made.thing))
    }
}

/// Address, kinds of events and description, as the form that edits has them too.
pub(super) fn fields() -> [FormField; 3] {
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
pub(super) fn read_kinds(fields: &SentFields) -> Result<Option<BTreeSet<EventKind>>, Failure> {
    let bad = || Failure::field(KINDS, "There is no such kind of events.");
    let kinds = fields.all(KINDS).map(|label| EventKind::from_label(label).ok_or_else(bad));
    let kinds = kinds.collect::<Result<BTreeSet<_>, _>>()?;
    Ok(Some(kinds).filter(|kinds| !kinds.is_empty()))
}

/// The page that tells a secret, or the form's own where it was told before.
pub(super) fn told(told: &ToldWebhook) -> FormOutcome {
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
