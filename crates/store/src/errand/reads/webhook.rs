//! Reads of changes of webhooks: what these are judged by.

use holdfast_domain::admin::event::EventKind;
use holdfast_domain::admin::{WebhookAction, WebhookRecord};
use holdfast_domain::{EventId, Timestamp, WalletId, WebhookId};
use sea_orm::Statement;

use super::Read;
use crate::dialect::{Dialect, blob};
use crate::rows::{FromCells, Row};

/// Span in which tests are counted, in microseconds.
const MINUTE: i64 = 60_000_000;

/// The facts that a change is judged by.
pub(super) fn facts(dialect: Dialect, action: &WebhookAction, now: Timestamp) -> Vec<Read> {
    let id = action.webhook();
    match action {
        WebhookAction::Create(record) => vec![others_in_force(dialect, id, record.wallet)],
        WebhookAction::Edit { .. } | WebhookAction::Rotate { .. } | WebhookAction::Disable(_) => {
            vec![known(dialect, id)]
        }
        WebhookAction::Enable(_) => vec![known(dialect, id), others_of_same_owner(dialect, id)],
        WebhookAction::Test { .. } => vec![known(dialect, id), recent_tests(dialect, id, now)],
        WebhookAction::Resend { event, .. } => {
            vec![known(dialect, id), has_delivery(dialect, id, *event)]
        }
    }
}

fn known(dialect: Dialect, id: WebhookId) -> Read {
    let lock = dialect.row_lock();
    let sql = format!("SELECT {} FROM webhooks AS h WHERE h.id = $1{lock}", WebhookRecord::COLUMNS);
    Read {
        statement: dialect.statement(&sql, [blob(id.to_bytes())]),
        take: |findings, cells| {
            findings.facts.webhook.webhook = Some(FromCells::from_cells(cells)?);
            Ok(())
        },
    }
}

fn others_in_force(dialect: Dialect, id: WebhookId, wallet: Option<WalletId>) -> Read {
    let sql = "SELECT count(*) FROM webhooks AS h WHERE h.disabled_at IS NULL AND h.id <> $1";
    let statement = match wallet {
        Some(wallet) => {
            let sql = format!("{sql} AND h.wallet_id = $2");
            dialect.statement(&sql, [blob(id.to_bytes()), blob(wallet.to_bytes())])
        }
        None => {
            let sql = format!("{sql} AND h.wallet_id IS NULL");
            dialect.statement(&sql, [blob(id.to_bytes())])
        }
    };
    counted_others(statement)
}

fn others_of_same_owner(dialect: Dialect, id: WebhookId) -> Read {
    let sql = "SELECT count(*) FROM webhooks AS h JOIN webhooks AS own ON own.id = $1
        WHERE h.disabled_at IS NULL AND h.id <> own.id
        AND (h.wallet_id = own.wallet_id OR (h.wallet_id IS NULL AND own.wallet_id IS NULL))";
    counted_others(dialect.statement(sql, [blob(id.to_bytes())]))
}

fn counted_others(statement: Statement) -> Read {
    Read {
        statement,
        take: |findings, cells| {
            findings.facts.webhook.others_in_force = cells.small()?;
            Ok(())
        },
    }
}

fn recent_tests(dialect: Dialect, id: WebhookId, now: Timestamp) -> Read {
    let sql = "SELECT count(*) FROM (SELECT d.event_seq, d.created_at FROM deliveries AS d
            WHERE d.webhook_id = $1 ORDER BY d.seq DESC LIMIT 1000) AS d
        JOIN events AS e ON e.seq = d.event_seq WHERE e.kind = $2 AND d.created_at > $3";
    let since = now.as_micros().saturating_sub(MINUTE);
    let kind = EventKind::WebhookTest.label();
    Read {
        statement: dialect.statement(sql, [blob(id.to_bytes()), kind.into(), since.into()]),
        take: |findings, cells| {
            findings.facts.webhook.recent_tests = cells.small()?;
            Ok(())
        },
    }
}

fn has_delivery(dialect: Dialect, id: WebhookId, event: EventId) -> Read {
    let sql = "SELECT count(*) FROM deliveries AS d JOIN events AS e ON e.seq = d.event_seq
        WHERE d.webhook_id = $1 AND e.id = $2";
    Read {
        statement: dialect.statement(sql, [blob(id.to_bytes()), blob(event.to_bytes())]),
        take: |findings, cells| {
            findings.facts.webhook.has_delivery = cells.int()? > 0;
            Ok(())
        },
    }
}
