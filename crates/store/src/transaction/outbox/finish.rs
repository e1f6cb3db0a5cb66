//! Results of delivery attempts: each delivery's next state, and its webhook's.
//!
//! All results of a process are kept in one transaction, so that many attempts that end at once are one write and
//! not as many. The rows are locked in the order of webhooks and deliveries: two processes that keep results of the
//! same webhooks wait for each other, and never in a circle.
//!
//! Several attempts of one webhook may be among them. The effect of one on the webhook (its count of failed
//! deliveries in a row, its end) is the state by which the next one is judged, as if each had a transaction of its
//! own: one of them disables it, and one event reports that.

use std::collections::HashMap;

use holdfast_domain::admin::event::{EventKind, EventValue, NewEvent};
use holdfast_domain::admin::webhook::{
    DeliveryHistory, DeliveryNumber, DisableReason, FinishedTry, FollowUp, follow_up,
};
use holdfast_domain::operation::Node;
use holdfast_domain::{EventId, Timestamp, WalletId, WebhookId};
use sea_orm::{Statement, Value};

use super::{places, row_lock};
use crate::rows::{BadRow, Cells};
use crate::schema::{Dialect, blob};
use crate::transaction::event;
use crate::transaction::exchange::Exchange;

/// A leased delivery with what its end is judged by.
#[derive(Debug)]
pub(crate) struct LeasedDelivery {
    number: i64,
    tries_failed: u32,
    is_test: bool,
    webhook: WebhookState,
}

/// A webhook as the tries before have left it.
#[derive(Debug, Clone, Copy)]
struct WebhookState {
    id: WebhookId,
    wallet: Option<WalletId>,
    is_disabled: bool,
    dead_in_a_row: u32,
}

fn leased(cells: &mut Cells<'_>) -> Result<LeasedDelivery, BadRow> {
    let number = cells.int()?;
    let id = WebhookId::from_bytes(cells.bytes()?);
    let wallet = cells.opt_bytes()?.map(WalletId::from_bytes);
    let is_disabled = cells.opt_timestamp()?.is_some();
    let is_test = cells.text()? == EventKind::WebhookTest.label();
    let tries_failed = cells.small()?;
    let webhook = WebhookState { id, wallet, is_disabled, dead_in_a_row: cells.small()? };
    Ok(LeasedDelivery { number, tries_failed, is_test, webhook })
}

/// Keeps the results of tries, at least one.
pub(crate) fn finish(
    dialect: Dialect,
    owner: &Node,
    finished: &[FinishedTry],
) -> Exchange<LeasedDelivery, Vec<Option<FollowUp>>> {
    let Node { name, incarnation } = owner;
    let finished = finished.to_vec();
    let mut binds = vec![name.as_str().into(), blob(incarnation.to_bytes())];
    binds.extend(finished.iter().map(|it| Value::from(it.delivery.0)));
    let sql = format!(
        "SELECT d.seq, h.id, h.wallet_id, h.disabled_at, e.kind, d.tries, h.dead_in_a_row
         FROM deliveries AS d JOIN events AS e ON e.seq = d.event_seq
         JOIN webhooks AS h ON h.id = d.webhook_id
         WHERE d.owner = $1 AND d.incarnation = $2 AND d.seq IN ({})
         ORDER BY h.id, d.seq{}",
        places(3, finished.len()),
        row_lock(dialect, " FOR NO KEY UPDATE OF d, h")
    );
    let read = move |_now| Statement::from_sql_and_values(dialect.backend(), sql, binds);
    let judge = move |rows: Vec<LeasedDelivery>, now: Timestamp| {
        let mut webhooks: HashMap<_, _> =
            rows.iter().map(|row| (row.webhook.id, row.webhook)).collect();
        let mut leased: HashMap<_, _> = rows.into_iter().map(|row| (row.number, row)).collect();
        let mut statements = Vec::new();
        let mut followed = Vec::with_capacity(finished.len());
        for finished in finished {
            // Taken out: a second result of one delivery is of a lease that has ended.
            let next = leased.remove(&finished.delivery.0).map(|mut delivery| {
                if let Some(webhook) = webhooks.get(&delivery.webhook.id) {
                    delivery.webhook = *webhook;
                }
                let next = delivery.follow_up(&finished);
                let after = delivery.after(next);
                statements.push(end(dialect, &finished, next, now));
                statements.extend(count_dead(dialect, delivery.webhook, after));
                // Of several attempts at once one disables it, and one event reports that.
                if let FollowUp::Disable(reason) = next
                    && !delivery.webhook.is_disabled
                {
                    statements.extend(disable(dialect, after, (finished.event, reason), now));
                }
                webhooks.insert(after.id, after);
                next
            });
            followed.push(next);
        }
        (statements, followed)
    };
    Exchange::new(read, leased, judge)
}

impl LeasedDelivery {
    /// Next step after the result of an attempt.
    fn follow_up(&self, FinishedTry { result, random, .. }: &FinishedTry) -> FollowUp {
        // A test has one attempt, and does not count among the deliveries in a row.
        let history = if self.is_test {
            DeliveryHistory { tries_failed: u32::MAX, dead_in_a_row: 0 }
        } else {
            let dead_in_a_row = self.webhook.dead_in_a_row;
            DeliveryHistory { tries_failed: self.tries_failed, dead_in_a_row }
        };
        follow_up(*result, history, *random)
    }

    /// The webhook as this delivery leaves it.
    fn after(&self, next: FollowUp) -> WebhookState {
        let state = self.webhook;
        let one_more = state.dead_in_a_row.saturating_add(1);
        match next {
            FollowUp::Delivered => WebhookState { dead_in_a_row: 0, ..state },
            FollowUp::Dead if !self.is_test => WebhookState { dead_in_a_row: one_more, ..state },
            FollowUp::Disable(_) if !state.is_disabled => {
                WebhookState { dead_in_a_row: one_more, is_disabled: true, ..state }
            }
            FollowUp::Retry(_) | FollowUp::Dead | FollowUp::Disable(_) => state,
        }
    }
}

/// Statement that ends a try.
fn end(dialect: Dialect, finished: &FinishedTry, next: FollowUp, now: Timestamp) -> Statement {
    let FinishedTry { delivery: DeliveryNumber(number), result, .. } = *finished;
    let (state, next_at) = match next {
        FollowUp::Delivered => ("delivered", None),
        FollowUp::Retry(pause) => ("pending", Some(now.after(pause).as_micros())),
        FollowUp::Dead | FollowUp::Disable(_) => ("dead", None),
    };
    let finished_at = next_at.is_none().then_some(now.as_micros());
    dialect.statement(
        "UPDATE deliveries SET state = $2, tries = tries + 1, next_at = $3, owner = NULL,
         incarnation = NULL, last_result = $4, last_status = $5, finished_at = $6 WHERE seq = $1",
        [
            number.into(),
            state.into(),
            next_at.into(),
            result.label().into(),
            result.status().map(i64::from).into(),
            finished_at.into(),
        ],
    )
}

/// Statement that counts a webhook's failed deliveries, if their number has changed: most deliveries are of
/// webhooks without failed ones, whose row stays as it is. The row is locked.
fn count_dead(dialect: Dialect, before: WebhookState, after: WebhookState) -> Option<Statement> {
    let sql = "UPDATE webhooks SET dead_in_a_row = $2 WHERE id = $1";
    let binds = [blob(after.id.to_bytes()), i64::from(after.dead_in_a_row).into()];
    (before.dead_in_a_row != after.dead_in_a_row).then(|| dialect.statement(sql, binds))
}

fn disable(
    dialect: Dialect,
    of: WebhookState,
    (event_id, reason): (EventId, DisableReason),
    now: Timestamp,
) -> [Statement; 2] {
    let update = "UPDATE webhooks SET disabled_at = $2, disabled_reason = $3, edited = edited + 1
        WHERE id = $1";
    let (id, reason) = (of.id, reason.label());
    let members = [("webhook_id", EventValue::text(id)), ("reason", EventValue::text(reason))];
    let data = members.map(|(name, value)| (name, Some(value))).to_vec();
    let disabling =
        NewEvent { id: event_id, kind: EventKind::WebhookDisabled, wallet: of.wallet, data };
    let disabled = [blob(id.to_bytes()), now.as_micros().into(), reason.into()];
    [dialect.statement(update, disabled), event::insert(dialect, &disabling, now)]
}
