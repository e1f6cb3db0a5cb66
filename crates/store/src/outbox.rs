//! Work of the outbox: events become deliveries, deliveries are leased, tries are kept. Each is one
//! transaction that reads a list of rows under their locks, and writes what follows from them.
//!
//! ```text
//! fan-out   events that were not fanned out ─▶ a delivery for each webhook that wants them
//! lease     deliveries that are due ─▶ this process's, until the lease ends; dead where their webhook
//!           is disabled
//! finish    a leased delivery + the result of its try ─▶ domain::follow_up ─▶ its next state, and
//!           perhaps a disabled webhook with the event that tells it
//! ```
//!
//! On a server several processes do this at once: rows that another one has locked are passed over,
//! and never waited for. Events are found by the index of those not fanned out, and never by a number
//! that was reached: on a server a lower number may be committed after a higher one.
//!
//! Statements are the same text for both databases where they can be; each database's own part only
//! sends them ([`Exchange`]).

use std::time::Duration;

use holdfast_domain::event::{EventKind, EventKinds};
use holdfast_domain::operation::Node;
use holdfast_domain::ports::DueDelivery;
use holdfast_domain::private::Private;
use holdfast_domain::webhook::{
    DeliveryHistory, DeliveryNumber, DeliveryRoom, DisableReason, FinishedTry, FollowUp,
    WEBHOOK_DISABLED, follow_up,
};
use holdfast_domain::{EventId, Timestamp, WalletId, WebhookId};
use sea_orm::{Statement, Value};

use crate::dialect::{Dialect, blob};
use crate::rows::webhook::{WEBHOOK, webhook};
use crate::rows::{BadRow, Cells};

/// Due deliveries that one lease looks at: more than it can take, so that those of a busy webhook do
/// not hide all others.
const LOOKED_AT: u32 = 256;

/// A transaction: one statement that reads, and those that follow from its rows.
pub(crate) struct Exchange<R, T> {
    pub(crate) read: Box<dyn FnOnce(Timestamp) -> Statement + Send>,
    pub(crate) row: fn(&mut Cells<'_>) -> Result<R, BadRow>,
    pub(crate) judge: Judge<R, T>,
}

/// Judgement of the rows of an exchange at a moment.
type Judge<R, T> = Box<dyn FnOnce(Vec<R>, Timestamp) -> (Vec<Statement>, T) + Send>;

/// Statement whose row says whether there is work: an event that is not fanned out, the moment of the
/// next delivery, and the clock.
pub(crate) fn look(dialect: Dialect) -> String {
    let open = not_fanned_out(dialect);
    format!(
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM events AS e WHERE {open} LIMIT 1) AS first),
         (SELECT min(d.next_at) FROM deliveries AS d WHERE d.state = 'pending'), {}",
        dialect.clock()
    )
}

/// Statement whose rows are the kinds of webhooks in force, joined; a star for one that wants all.
pub(crate) const WANTED: &str =
    "SELECT DISTINCT coalesce(w.kinds, '*') FROM webhooks AS w WHERE w.disabled_at IS NULL";

/// The kinds that some webhook wants, by the rows of [`WANTED`].
pub(crate) fn wanted(rows: &[String]) -> EventKinds {
    if rows.iter().any(|kinds| kinds == "*") {
        return EventKinds::ALL;
    }
    rows.iter().flat_map(|kinds| kinds.split(',')).filter_map(EventKind::from_label).collect()
}

/// Condition of the index, spelled as there: no other spelling is found by it.
const fn not_fanned_out(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "e.is_fanned_out = 0",
        Dialect::Postgres => "NOT e.is_fanned_out",
    }
}

/// Lock of rows that nobody waits for: those that another process has are its own.
const fn skip_locked(dialect: Dialect, of: &'static str) -> &'static str {
    match dialect {
        Dialect::Sqlite => "",
        Dialect::Postgres => of,
    }
}

/// Place of a text in another one: not zero where it is there.
const fn found_in(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "instr",
        Dialect::Postgres => "strpos",
    }
}

/// Makes the deliveries of at most so many events.
pub(crate) fn fan_out(dialect: Dialect, events_max: u32) -> Exchange<i64, usize> {
    let read = move |_now| {
        let sql = format!(
            "SELECT e.seq FROM events AS e WHERE {} ORDER BY e.seq LIMIT $1{}",
            not_fanned_out(dialect),
            skip_locked(dialect, " FOR UPDATE SKIP LOCKED")
        );
        dialect.statement(&sql, [i64::from(events_max).into()])
    };
    let judge = move |events: Vec<i64>, now: Timestamp| {
        if events.is_empty() {
            return (Vec::new(), 0);
        }
        let moment = std::iter::once(Value::from(now.as_micros()));
        let numbers = || events.iter().map(|seq| Value::from(*seq));
        let insert = format!(
            "INSERT INTO deliveries (event_seq, webhook_id, state, next_at, created_at)
             SELECT e.seq, h.id, 'pending', $1, $1 FROM events AS e
             JOIN webhooks AS h ON h.disabled_at IS NULL AND h.created_at <= e.created_at
                AND (h.wallet_id IS NULL OR h.wallet_id = e.wallet_id)
                AND (h.kinds IS NULL OR {}(',' || h.kinds || ',', ',' || e.kind || ',') > 0)
             WHERE e.seq IN ({}) ON CONFLICT DO NOTHING",
            found_in(dialect),
            places(2, events.len())
        );
        let mark = format!(
            "UPDATE events SET is_fanned_out = TRUE WHERE seq IN ({})",
            places(1, events.len())
        );
        let statements = vec![
            Statement::from_sql_and_values(dialect.backend(), insert, moment.chain(numbers())),
            Statement::from_sql_and_values(dialect.backend(), mark, numbers()),
        ];
        (statements, events.len())
    };
    Exchange { read: Box::new(read), row: |cells| cells.int(), judge: Box::new(judge) }
}

/// Leases what is due, as far as there is room.
pub(crate) fn lease(
    dialect: Dialect,
    owner: &Node,
    span: Duration,
    room: &DeliveryRoom,
) -> Exchange<DueDelivery, Vec<DueDelivery>> {
    let (owner, mut room) = (owner.clone(), room.clone());
    let full: Vec<_> = room.full().collect();
    let read = move |now: Timestamp| {
        let others = if full.is_empty() {
            String::new()
        } else {
            format!("AND d.webhook_id NOT IN ({})", places(2, full.len()))
        };
        let sql = format!(
            "SELECT d.seq, e.id, e.kind, e.wallet_id, e.created_at, e.data, {WEBHOOK}
             FROM deliveries AS d JOIN events AS e ON e.seq = d.event_seq
             JOIN webhooks AS h ON h.id = d.webhook_id
             WHERE d.state = 'pending' AND d.next_at <= $1 {others}
             ORDER BY d.next_at LIMIT {LOOKED_AT}{}",
            skip_locked(dialect, " FOR UPDATE OF d SKIP LOCKED")
        );
        let moment = std::iter::once(Value::from(now.as_micros()));
        let full = full.iter().map(|id| blob(id.to_bytes()));
        Statement::from_sql_and_values(dialect.backend(), sql, moment.chain(full))
    };
    let judge = move |due: Vec<DueDelivery>, now: Timestamp| {
        let (mut leased, mut dead) = (Vec::new(), Vec::new());
        for delivery in due {
            if delivery.webhook.disabled.is_some() {
                dead.push(delivery.number);
            } else if room.take(delivery.webhook.id) {
                leased.push(DueDelivery { leased_at: now, ..delivery });
            }
        }
        let numbers: Vec<_> = leased.iter().map(|delivery| delivery.number).collect();
        let until = now.after(span).as_micros();
        let Node { name, incarnation } = &owner;
        let own = vec![until.into(), name.as_str().into(), blob(incarnation.to_bytes())];
        let statements = [
            of_numbers(dialect, "next_at = $1, owner = $2, incarnation = $3", own, &numbers),
            of_numbers(
                dialect,
                "state = 'dead', next_at = NULL, owner = NULL, incarnation = NULL,
                 finished_at = $1, last_result = $2, last_status = NULL",
                vec![now.as_micros().into(), WEBHOOK_DISABLED.into()],
                &dead,
            ),
        ];
        (statements.into_iter().flatten().collect(), leased)
    };
    Exchange { read: Box::new(read), row: due, judge: Box::new(judge) }
}

fn due(cells: &mut Cells<'_>) -> Result<DueDelivery, BadRow> {
    Ok(DueDelivery {
        number: DeliveryNumber(cells.int()?),
        event: EventId::from_bytes(cells.bytes()?),
        kind: cells.text()?.into(),
        wallet: cells.opt_bytes()?.map(WalletId::from_bytes),
        created_at: cells.timestamp()?,
        data: Private(cells.text()?.into()),
        webhook: webhook(cells)?,
        leased_at: Timestamp::from_micros(0),
    })
}

/// A leased delivery with what its end is judged by.
pub(crate) struct LeasedDelivery {
    webhook: WebhookId,
    wallet: Option<WalletId>,
    is_disabled: bool,
    is_test: bool,
    history: DeliveryHistory,
}

fn leased(cells: &mut Cells<'_>) -> Result<LeasedDelivery, BadRow> {
    let webhook = WebhookId::from_bytes(cells.bytes()?);
    let wallet = cells.opt_bytes()?.map(WalletId::from_bytes);
    let is_disabled = cells.opt_timestamp()?.is_some();
    let is_test = cells.text()? == EventKind::WebhookTest.label();
    let history = DeliveryHistory { tries_failed: cells.small()?, dead_in_a_row: cells.small()? };
    Ok(LeasedDelivery { webhook, wallet, is_disabled, is_test, history })
}

/// Keeps the result of a try.
pub(crate) fn finish(
    dialect: Dialect,
    owner: &Node,
    finished: FinishedTry,
) -> Exchange<LeasedDelivery, Option<FollowUp>> {
    let Node { name, incarnation } = owner;
    let DeliveryNumber(number) = finished.delivery;
    let binds = [number.into(), name.as_str().into(), blob(incarnation.to_bytes())];
    let read = move |_now| {
        let sql = format!(
            "SELECT h.id, h.wallet_id, h.disabled_at, e.kind, d.tries, h.dead_in_a_row
             FROM deliveries AS d JOIN events AS e ON e.seq = d.event_seq
             JOIN webhooks AS h ON h.id = d.webhook_id
             WHERE d.seq = $1 AND d.owner = $2 AND d.incarnation = $3{}",
            skip_locked(dialect, " FOR NO KEY UPDATE OF d, h")
        );
        dialect.statement(&sql, binds)
    };
    let judge = move |rows: Vec<LeasedDelivery>, now: Timestamp| match rows.into_iter().next() {
        Some(delivery) => {
            let (statements, next) = follow(dialect, finished, &delivery, now);
            (statements, Some(next))
        }
        None => (Vec::new(), None),
    };
    Exchange { read: Box::new(read), row: leased, judge: Box::new(judge) }
}

/// Statements of what follows a try.
fn follow(
    dialect: Dialect,
    FinishedTry { delivery: DeliveryNumber(number), result, random, event }: FinishedTry,
    of: &LeasedDelivery,
    now: Timestamp,
) -> (Vec<Statement>, FollowUp) {
    // A test has one try, and says nothing about the deliveries of a row.
    let history = if of.is_test {
        DeliveryHistory { tries_failed: u32::MAX, dead_in_a_row: 0 }
    } else {
        of.history
    };
    let next = follow_up(result, history, random);
    let (state, next_at) = match next {
        FollowUp::Delivered => ("delivered", None),
        FollowUp::Retry(pause) => ("pending", Some(now.after(pause).as_micros())),
        FollowUp::Dead | FollowUp::Disable(_) => ("dead", None),
    };
    let finished_at = next_at.is_none().then_some(now.as_micros());
    let ended = dialect.statement(
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
    );
    let mut statements = vec![ended];
    let webhook = || blob(of.webhook.to_bytes());
    match next {
        // Most deliveries are of webhooks without dead ones: their row is left alone.
        FollowUp::Delivered if of.history.dead_in_a_row > 0 => {
            let sql = "UPDATE webhooks SET dead_in_a_row = 0 WHERE id = $1";
            statements.push(dialect.statement(sql, [webhook()]));
        }
        FollowUp::Dead if !of.is_test => {
            let sql = "UPDATE webhooks SET dead_in_a_row = dead_in_a_row + 1 WHERE id = $1";
            statements.push(dialect.statement(sql, [webhook()]));
        }
        // Of several tries at once one disables it, and one event tells that.
        FollowUp::Disable(reason) if !of.is_disabled => {
            statements.extend(disable(dialect, of, (event, reason), now));
        }
        FollowUp::Delivered | FollowUp::Retry(_) | FollowUp::Dead | FollowUp::Disable(_) => {}
    }
    (statements, next)
}

fn disable(
    dialect: Dialect,
    of: &LeasedDelivery,
    (event, reason): (EventId, DisableReason),
    now: Timestamp,
) -> [Statement; 2] {
    let update = "UPDATE webhooks SET disabled_at = $2, disabled_reason = $3, edited = edited + 1,
        dead_in_a_row = dead_in_a_row + 1 WHERE id = $1";
    let insert = "INSERT INTO events (id, kind, wallet_id, created_at, data)
        VALUES ($1, $2, $3, $4, $5)";
    let (id, reason) = (of.webhook, reason.label());
    let data = format!(r#"{{"webhook_id":"{id}","reason":"{reason}"}}"#);
    let told = [
        blob(event.to_bytes()),
        EventKind::WebhookDisabled.label().into(),
        of.wallet.map(|id| id.to_bytes().to_vec()).into(),
        now.as_micros().into(),
        data.into(),
    ];
    let disabled = [blob(id.to_bytes()), now.as_micros().into(), reason.into()];
    [dialect.statement(update, disabled), dialect.statement(insert, told)]
}

/// Gives back what an owner has leased and not finished.
pub(crate) fn give_back(dialect: Dialect, owner: &Node) -> Exchange<i64, ()> {
    let Node { name, incarnation } = owner;
    let binds = [name.as_str().into(), blob(incarnation.to_bytes())];
    let read = move |_now| {
        let sql = format!(
            "SELECT d.seq FROM deliveries AS d WHERE d.state = 'pending'
             AND d.owner = $1 AND d.incarnation = $2{}",
            skip_locked(dialect, " FOR UPDATE SKIP LOCKED")
        );
        dialect.statement(&sql, binds)
    };
    let judge = move |numbers: Vec<i64>, now: Timestamp| {
        let numbers: Vec<_> = numbers.into_iter().map(DeliveryNumber).collect();
        let set = "next_at = $1, owner = NULL, incarnation = NULL";
        let given = of_numbers(dialect, set, vec![now.as_micros().into()], &numbers);
        (given.into_iter().collect(), ())
    };
    Exchange { read: Box::new(read), row: |cells| cells.int(), judge: Box::new(judge) }
}

/// Sets columns of these deliveries; nothing where there are none.
fn of_numbers(
    dialect: Dialect,
    set: &str,
    mut binds: Vec<Value>,
    numbers: &[DeliveryNumber],
) -> Option<Statement> {
    if numbers.is_empty() {
        return None;
    }
    let places = places(binds.len().saturating_add(1), numbers.len());
    binds.extend(numbers.iter().map(|DeliveryNumber(number)| Value::from(*number)));
    let sql = format!("UPDATE deliveries SET {set} WHERE seq IN ({places})");
    Some(Statement::from_sql_and_values(dialect.backend(), sql, binds))
}

/// Binds from this one on, as a list: `$2, $3`.
fn places(from: usize, count: usize) -> String {
    let numbers = (from..from.saturating_add(count)).map(|number| format!("${number}"));
    numbers.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use holdfast_domain::NodeName;

    use super::*;
    use crate::sqlite::plans::{ledger, plan};

    /// A process looks twice a second, whatever has been sent before.
    #[test]
    fn what_is_done_again_and_again_finds_its_rows_by_the_index_of_those_that_wait() {
        let (connection, now) = (ledger(), Timestamp::from_micros(0));
        let owner = Node {
            name: NodeName::try_from("one").unwrap(),
            incarnation: holdfast_domain::Incarnation::from_u128(1),
        };
        let taken = vec![(WebhookId::from_u128(1), 4)];
        let room = DeliveryRoom { free: 4, per_webhook: 4, taken };
        let lease = lease(Dialect::Sqlite, &owner, Duration::ZERO, &room);
        for (sql, indexes) in [
            (look(Dialect::Sqlite), &["events_to_fan_out", "deliveries_due"][..]),
            ((fan_out(Dialect::Sqlite, 9).read)(now).sql, &["events_to_fan_out"][..]),
            ((lease.read)(now).sql, &["deliveries_due"][..]),
        ] {
            let plan = plan(&connection, &sql).join("\n");
            for index in indexes {
                assert!(plan.contains(index), "{index} in {plan}");
            }
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
