//! Webhooks and deliveries as rows.

use std::collections::BTreeSet;

use holdfast_domain::account::{WebhookRecord, WebhookSecret};
use holdfast_domain::event::EventKind;
use holdfast_domain::private::Private;
use holdfast_domain::secret::ServerSecretId;
use holdfast_domain::webhook::{DeliveryRecord, DeliveryState, DisableReason, SecretGenerations};
use holdfast_domain::{EventId, WalletId, WebhookId};

use super::{BadRow, Cells};

/// The columns that [`webhook`] reads, of `webhooks AS h`.
pub(crate) const WEBHOOK: &str = "h.id, h.wallet_id, h.url, h.kinds, h.description, h.generation, \
    h.rotated_at, h.server_secret, h.previous_secret, h.edited, h.created_at, h.created_by, \
    h.disabled_at, h.disabled_reason";

/// The columns that [`delivery`] reads, of `deliveries AS d` and `events AS e`.
pub(crate) const DELIVERY: &str = "e.id, e.kind, d.webhook_id, d.state, d.tries, d.next_at, \
    d.last_result, d.last_status, d.created_at, d.finished_at";

/// Reads [`WEBHOOK`].
pub(crate) fn webhook(cells: &mut Cells<'_>) -> Result<WebhookRecord, BadRow> {
    let id = WebhookId::from_bytes(cells.bytes()?);
    let wallet = cells.opt_bytes()?.map(WalletId::from_bytes);
    let url = Private(cells.text()?);
    let kinds = cells.opt_text()?.map(|text| kinds(&text));
    let description = cells.opt_text()?;
    let generations =
        SecretGenerations { current: cells.small()?, rotated_at: cells.opt_timestamp()? };
    let server_secret = ServerSecretId::from_bytes(cells.bytes()?);
    let previous = cells.opt_bytes()?.map(ServerSecretId::from_bytes);
    let (edited, created_at) = (cells.small()?, cells.timestamp()?);
    let created_by = cells.parse(|text: String| text.parse().ok())?;
    let disabled_at = cells.opt_timestamp()?;
    let reason = cells.parse(|label: Option<String>| match label {
        Some(label) => {
            DisableReason::ALL.into_iter().find(|reason| reason.label() == label).map(Some)
        }
        None => Some(None),
    })?;
    Ok(WebhookRecord {
        id,
        wallet,
        url,
        kinds,
        description,
        secret: WebhookSecret { generations, server_secret, previous },
        edited,
        created_at,
        created_by,
        disabled: disabled_at.zip(reason),
    })
}

/// Kinds as a row holds them: names have no commas.
pub(crate) fn kinds_text(kinds: &BTreeSet<EventKind>) -> String {
    kinds.iter().map(|kind| kind.label()).collect::<Vec<_>>().join(",")
}

/// Reads what [`kinds_text`] wrote. A kind that only a later version knows is passed over: it must not
/// keep this process from all that it can deliver.
fn kinds(text: &str) -> BTreeSet<EventKind> {
    text.split(',').filter_map(EventKind::from_label).collect()
}

/// Reads [`DELIVERY`].
pub(crate) fn delivery(cells: &mut Cells<'_>) -> Result<DeliveryRecord, BadRow> {
    let event = EventId::from_bytes(cells.bytes()?);
    let kind = cells.text()?.into();
    let webhook = WebhookId::from_bytes(cells.bytes()?);
    let state = cells
        .parse(|label: String| DeliveryState::ALL.into_iter().find(|it| it.label() == label))?;
    let (tries, next_at) = (cells.small()?, cells.opt_timestamp()?);
    let last_result = cells.opt_text()?.map(Into::into);
    let last_status =
        cells.parse(|status: Option<i64>| status.map(u16::try_from).transpose().ok())?;
    let (created_at, finished_at) = (cells.timestamp()?, cells.opt_timestamp()?);
    Ok(DeliveryRecord {
        event,
        kind,
        webhook,
        state,
        tries,
        next_at,
        last_result,
        last_status,
        created_at,
        finished_at,
    })
}
