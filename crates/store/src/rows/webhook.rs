//! Webhooks and deliveries as rows.

use holdfast_domain::admin::webhook::DeliveryRecord;
use holdfast_domain::{EventId, WebhookId};

use super::{BadRow, Cells};

/// The columns that [`delivery`] reads, of `deliveries AS d` and `events AS e`.
pub(crate) const DELIVERY: &str = "e.id, e.kind, d.webhook_id, d.state, d.tries, d.next_at, \
    d.last_result, d.last_status, d.created_at, d.finished_at";

/// Reads [`DELIVERY`].
pub(crate) fn delivery(cells: &mut Cells<'_>) -> Result<DeliveryRecord, BadRow> {
    let event = EventId::from_bytes(cells.bytes()?);
    let kind = cells.text()?.into();
    let webhook = WebhookId::from_bytes(cells.bytes()?);
    let state = cells.get()?;
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
