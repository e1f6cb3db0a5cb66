//! Webhooks as several pages show them.

use crate::failure::Failure;
use crate::kit::form::FormFrame;
use crate::kit::{Cell, Tone, Visit, Visitor};
use crate::pages::parts::reference::Names;
use holdfast_domain::WebhookId;
use holdfast_domain::admin::webhook::Origin;
use holdfast_domain::admin::{ResourceId, WebhookRecord};

pub(crate) fn origin(record: &WebhookRecord) -> String {
    Origin::of_url(&record.url).map(|origin| origin.to_string()).unwrap_or_default()
}

pub(crate) fn state(record: &WebhookRecord) -> Cell {
    match &record.disabled {
        Some((_at, reason)) => {
            let reason = reason.label().replace('_', " ");
            Cell::badge(format!("disabled: {reason}"), Tone::Bad)
        }
        None => Cell::badge("active", Tone::Good),
    }
}

pub(crate) fn wallet(record: &WebhookRecord, names: &Names<'_>, visitor: &Visitor) -> Cell {
    match record.wallet {
        Some(id) => names.link(ResourceId::Wallet(id)),
        None if visitor.principal.only_wallet().is_none() => Cell::text("all"),
        None => Cell::Nothing,
    }
}

/// The kinds of its events.
pub(crate) fn kinds(record: &WebhookRecord) -> String {
    match &record.kinds {
        None => "all".to_owned(),
        Some(kinds) => kinds.iter().map(|kind| kind.label()).collect::<Vec<_>>().join(", "),
    }
}

/// The webhook whose page or form it is.
pub(crate) async fn opened(visit: &Visit) -> Result<WebhookRecord, Failure> {
    Ok(visit.accounts().webhook(visit.principal(), WebhookId::from(visit.id()?)).await?)
}

/// A form about a webhook.
pub(crate) fn framed(form: FormFrame, record: &WebhookRecord) -> FormFrame {
    form.below("Webhooks", "/webhooks").below(origin(record), format!("/webhooks/{}", record.id))
}
