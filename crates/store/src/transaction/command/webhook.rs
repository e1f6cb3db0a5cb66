//! Writes of changes of webhooks.

use holdfast_domain::admin::WebhookWrite;
use holdfast_domain::admin::event::EventKind;
use holdfast_domain::{EventId, Timestamp, WalletId};
use sea_orm::Statement;

use crate::rows::Row;
use crate::schema::{Dialect, blob};

/// Before the update: the dead deliveries of a webhook that is enabled are counted anew.
const COUNT_ANEW: &str =
    "UPDATE webhooks SET dead_in_a_row = 0 WHERE id = $1 AND disabled_at IS NOT NULL";
/// Already addressed to one webhook: no fan-out takes it.
const INSERT_EVENT: &str =
    "INSERT INTO events (id, kind, wallet_id, created_at, data, is_fanned_out)
    VALUES ($1, $2, $3, $4, $5, TRUE)";
const INSERT_DELIVERY: &str = "INSERT INTO deliveries (event_seq, webhook_id, state, next_at,
    created_at) SELECT e.seq, $2, 'pending', $3, $3 FROM events AS e WHERE e.id = $1";
const RESEND: &str = "UPDATE deliveries SET state = 'pending', tries = 0, next_at = $3,
    finished_at = NULL WHERE webhook_id = $2 AND owner IS NULL
    AND event_seq = (SELECT e.seq FROM events AS e WHERE e.id = $1)";

/// The statements of a write, in order.
pub(super) fn statements(dialect: Dialect, write: &WebhookWrite) -> Vec<Statement> {
    match write {
        WebhookWrite::Insert(record) => vec![record.insert(dialect)],
        WebhookWrite::Update(record) => {
            let anew = record
                .disabled
                .is_none()
                .then(|| dialect.statement(COUNT_ANEW, [blob(record.id.to_bytes())]));
            anew.into_iter().chain([record.update(dialect)]).collect()
        }
        WebhookWrite::InsertTest { event, webhook, wallet, at } => {
            let data = format!(r#"{{"webhook_id":"{webhook}"}}"#);
            let event_row =
                insert_event(dialect, *event, *wallet, (EventKind::WebhookTest, data), *at);
            let binds = [blob(event.to_bytes()), blob(webhook.to_bytes()), at.as_micros().into()];
            vec![event_row, dialect.statement(INSERT_DELIVERY, binds)]
        }
        WebhookWrite::Resend { event, webhook, at } => {
            let binds = [blob(event.to_bytes()), blob(webhook.to_bytes()), at.as_micros().into()];
            vec![dialect.statement(RESEND, binds)]
        }
    }
}

fn insert_event(
    dialect: Dialect,
    id: EventId,
    wallet: Option<WalletId>,
    (kind, data): (EventKind, String),
    at: Timestamp,
) -> Statement {
    let wallet = wallet.map(|id| id.to_bytes().to_vec());
    let binds = [
        blob(id.to_bytes()),
        kind.label().into(),
        wallet.into(),
        at.as_micros().into(),
        data.into(),
    ];
    dialect.statement(INSERT_EVENT, binds)
}
