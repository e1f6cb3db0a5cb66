//! Writes of changes of webhooks.

use holdfast_domain::account::{WebhookRecord, WebhookWrite};
use holdfast_domain::event::EventKind;
use holdfast_domain::{EventId, Timestamp, WalletId};
use sea_orm::{Statement, Value};

use crate::dialect::{Dialect, blob};
use crate::rows::webhook::kinds_text;

const INSERT: &str = "INSERT INTO webhooks (id, wallet_id, url, kinds, description, generation,
    rotated_at, server_secret, previous_secret, edited, created_at, created_by, disabled_at,
    disabled_reason) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
/// Whoever enables a webhook begins to count its dead deliveries anew.
const UPDATE: &str = "UPDATE webhooks SET url = $2, kinds = $3, description = $4, generation = $5,
    rotated_at = $6, server_secret = $7, previous_secret = $8, edited = $9,
    dead_in_a_row = CASE WHEN disabled_at IS NOT NULL AND $10 IS NULL THEN 0
        ELSE dead_in_a_row END,
    disabled_at = $10, disabled_reason = $11 WHERE id = $1";
/// On its way to one webhook alone: nobody else fans it out.
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
        WebhookWrite::Insert(record) => vec![insert(dialect, record)],
        WebhookWrite::Update(record) => vec![update(dialect, record)],
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

/// All that people set on a webhook, in the order of both statements.
fn settings(record: &WebhookRecord) -> [Value; 8] {
    let secret = record.secret;
    [
        record.url.0.clone().into(),
        record.kinds.as_ref().map(kinds_text).into(),
        record.description.clone().into(),
        i64::from(secret.generations.current).into(),
        secret.generations.rotated_at.map(Timestamp::as_micros).into(),
        blob(secret.server_secret.to_bytes()),
        secret.previous.map(|secret| secret.to_bytes().to_vec()).into(),
        i64::from(record.edited).into(),
    ]
}

/// Moment and reason of a disabled webhook, as their two columns.
fn disabled(record: &WebhookRecord) -> [Value; 2] {
    let (at, reason) = record.disabled.unzip();
    let reason = reason.map(|reason| reason.label().to_owned());
    [at.map(Timestamp::as_micros).into(), reason.into()]
}

fn insert(dialect: Dialect, record: &WebhookRecord) -> Statement {
    let wallet = record.wallet.map(|id| id.to_bytes().to_vec());
    let made = [record.created_at.as_micros().into(), record.created_by.to_string().into()];
    let binds = [blob(record.id.to_bytes()), wallet.into()]
        .into_iter()
        .chain(settings(record))
        .chain(made)
        .chain(disabled(record));
    Statement::from_sql_and_values(dialect.backend(), INSERT, binds)
}

fn update(dialect: Dialect, record: &WebhookRecord) -> Statement {
    let id = std::iter::once(blob(record.id.to_bytes()));
    let binds = id.chain(settings(record)).chain(disabled(record));
    Statement::from_sql_and_values(dialect.backend(), UPDATE, binds)
}
