//! Work of the outbox: events become deliveries, deliveries are leased, attempts are kept. Each is one transaction
//! that reads a list of rows under their locks, and writes the rows that follow from them.
//!
//! ```text
//! fan-out   events that were not fanned out ─▶ a delivery for each webhook that wants them
//! lease     deliveries that are due ─▶ this process's, until the lease ends; dead where their webhook
//!           is disabled
//! finish    leased deliveries + the results of their tries ─▶ domain::follow_up ─▶ their next state,
//!           and perhaps a disabled webhook with the event that tells it (`outbox::finish`)
//! ```
//!
//! On a server several processes do this at once: rows that another one has locked are passed over, and never
//! waited for. Events are found by the index of those not fanned out, and never by a number that was reached: on a
//! server a lower number may be committed after a higher one.
//!
//! Statements are the same text for both databases if they can be; each database's own part only sends them
//! ([`Exchange`]).

pub(crate) mod finish;

use std::time::Duration;

use holdfast_domain::admin::WebhookRecord;
use holdfast_domain::admin::event::{EventKind, EventKinds};
use holdfast_domain::admin::ports::DueDelivery;
use holdfast_domain::admin::webhook::{DeliveryNumber, DeliveryRoom, WEBHOOK_DISABLED};
use holdfast_domain::operation::Node;
use holdfast_domain::private::Private;
use holdfast_domain::{EventId, Timestamp, WalletId};
use sea_orm::{Statement, Value};

use crate::rows::{BadRow, Cells, FromCells, Row};
use crate::schema::{Dialect, blob};
use crate::transaction::exchange::Exchange;

/// Due deliveries that one lease reads: more than it can take.
const LOOKED_AT: u32 = 1_024;

/// Statement whose row shows whether there is work: an event that is not fanned out, the moment of the next
/// delivery, and the clock.
pub(crate) fn look(dialect: Dialect) -> String {
    let open = not_fanned_out(dialect);
    format!(
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM events AS e WHERE {open} LIMIT 1) AS first),
         (SELECT min(d.next_at) FROM deliveries AS d WHERE d.state = 'pending'), {}",
        dialect.clock()
    )
}

/// Statement whose rows are the kinds of webhooks in force, joined; a star for one with all kinds.
pub(crate) const WANTED: &str =
    "SELECT DISTINCT coalesce(w.kinds, '*') FROM webhooks AS w WHERE w.disabled_at IS NULL";

/// The kinds that some webhook receives, by the rows of [`WANTED`].
pub(crate) fn wanted<T: AsRef<str>>(rows: &[T]) -> EventKinds {
    if rows.iter().any(|kinds| kinds.as_ref() == "*") {
        return EventKinds::ALL;
    }
    rows.iter()
        .flat_map(|kinds| kinds.as_ref().split(','))
        .filter_map(EventKind::from_label)
        .collect()
}

/// Condition of the index, spelled as there: no other spelling is found by it.
const fn not_fanned_out(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "e.is_fanned_out = 0",
        Dialect::Postgres => "NOT e.is_fanned_out",
    }
}

/// Lock of rows by this clause; SQLite has one writer, and no such locks.
const fn row_lock(dialect: Dialect, of: &'static str) -> &'static str {
    match dialect {
        Dialect::Sqlite => "",
        Dialect::Postgres => of,
    }
}

/// Place of a text in another one: not zero if it is there.
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
            row_lock(dialect, " FOR UPDATE SKIP LOCKED")
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
    Exchange::new(read, |cells| cells.int(), judge)
}

/// Leases due deliveries, as far as there is room.
///
/// Each webhook is read by itself, by the index of its due deliveries: a backlog of one tenant does not delay the
/// others, however long it is.
pub(crate) fn lease(
    dialect: Dialect,
    owner: &Node,
    span: Duration,
    room: &DeliveryRoom,
) -> Exchange<DueDelivery, Vec<DueDelivery>> {
    let (owner, mut room) = (owner.clone(), room.clone());
    let full: Vec<_> = room.full().collect();
    let full_wallets = room.full_wallets();
    let per_webhook = room.per_webhook;
    let read = move |now: Timestamp| {
        let mut others = String::new();
        if !full.is_empty() {
            others += &format!(" AND h.id NOT IN ({})", places(2, full.len()));
        }
        if !full_wallets.is_empty() {
            let first = full.len().saturating_add(2);
            let wallets = places(first, full_wallets.len());
            others += &format!(" AND (h.wallet_id IS NULL OR h.wallet_id NOT IN ({wallets}))");
        }
        let first = format!(
            "SELECT i.seq FROM deliveries AS i
             WHERE i.webhook_id = h.id AND i.state = 'pending' AND i.next_at <= $1
             ORDER BY i.next_at LIMIT {per_webhook}"
        );
        // Each database's way to read each webhook first, and then its deliveries by their numbers.
        let due = match dialect {
            Dialect::Sqlite => format!("CROSS JOIN deliveries AS d ON d.seq IN ({first})"),
            Dialect::Postgres => format!(
                "CROSS JOIN LATERAL ({first}) AS first JOIN deliveries AS d ON d.seq = first.seq"
            ),
        };
        let sql = format!(
            "SELECT d.seq, e.id, e.kind, e.wallet_id, e.created_at, e.data, {}
             FROM webhooks AS h {due} JOIN events AS e ON e.seq = d.event_seq
             WHERE d.state = 'pending' AND d.next_at <= $1{others}
             ORDER BY d.next_at LIMIT {LOOKED_AT}{}",
            WebhookRecord::COLUMNS,
            row_lock(dialect, " FOR UPDATE OF d SKIP LOCKED")
        );
        let moment = std::iter::once(Value::from(now.as_micros()));
        let full = full.iter().map(|id| blob(id.to_bytes()));
        let full_wallets = full_wallets.iter().map(|id| blob(id.to_bytes()));
        let binds = moment.chain(full).chain(full_wallets);
        Statement::from_sql_and_values(dialect.backend(), sql, binds)
    };
    let judge = move |due: Vec<DueDelivery>, now: Timestamp| {
        let (dead, due): (Vec<_>, Vec<_>) =
            due.into_iter().partition(|delivery| delivery.webhook.disabled.is_some());
        let dead: Vec<_> = dead.into_iter().map(|delivery| delivery.number).collect();
        let tenant = |delivery: &DueDelivery| (delivery.webhook.wallet, delivery.webhook.id);
        let mut leased = room.assign(due, tenant);
        leased.iter_mut().for_each(|delivery| delivery.leased_at = now);
        let numbers: Vec<_> = leased.iter().map(|delivery| delivery.number).collect();
        // Due again as the lease ends: what a dead process had leased is found like any other
        // delivery.
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
    Exchange::new(read, due, judge)
}

fn due(cells: &mut Cells<'_>) -> Result<DueDelivery, BadRow> {
    Ok(DueDelivery {
        number: DeliveryNumber(cells.int()?),
        event: EventId::from_bytes(cells.bytes()?),
        kind: cells.text()?.into(),
        wallet: cells.opt_bytes()?.map(WalletId::from_bytes),
        created_at: cells.timestamp()?,
        data: Private(cells.text()?.into()),
        webhook: FromCells::from_cells(cells)?,
        leased_at: Timestamp::from_micros(0),
    })
}

/// Gives back what an owner has leased and not finished.
pub(crate) fn give_back(dialect: Dialect, owner: &Node) -> Exchange<i64, ()> {
    let Node { name, incarnation } = owner;
    let binds = [name.as_str().into(), blob(incarnation.to_bytes())];
    let read = move |_now| {
        let sql = format!(
            "SELECT d.seq FROM deliveries AS d WHERE d.state = 'pending'
             AND d.owner = $1 AND d.incarnation = $2{}",
            row_lock(dialect, " FOR UPDATE SKIP LOCKED")
        );
        dialect.statement(&sql, binds)
    };
    let judge = move |numbers: Vec<i64>, now: Timestamp| {
        let numbers: Vec<_> = numbers.into_iter().map(DeliveryNumber).collect();
        let set = "next_at = $1, owner = NULL, incarnation = NULL";
        let given = of_numbers(dialect, set, vec![now.as_micros().into()], &numbers);
        (given.into_iter().collect(), ())
    };
    Exchange::new(read, |cells| cells.int(), judge)
}

/// Sets columns of these deliveries; `None` if there are none.
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
#[cfg(feature = "sqlite")]
mod tests {
    use std::collections::BTreeSet;

    use holdfast_domain::admin::webhook::TakenPlaces;
    use holdfast_domain::{NodeName, WebhookId};

    use super::*;
    use crate::sqlite::plans::{ledger, plan};

    /// A process with work polls twice a second, whatever has been sent before.
    #[test]
    fn what_is_done_again_and_again_finds_its_rows_by_the_index_of_those_that_wait() {
        let (connection, now) = (ledger(), Timestamp::from_micros(0));
        let owner = Node {
            name: NodeName::try_from("one").unwrap(),
            incarnation: holdfast_domain::Incarnation::from_u128(1),
        };
        for (sql, indexes) in [
            (look(Dialect::Sqlite), &["events_to_fan_out", "deliveries_due"][..]),
            (fan_out(Dialect::Sqlite, 9).read.unwrap()(now).sql, &["events_to_fan_out"][..]),
        ] {
            let plan = plan(&connection, &sql).join("\n");
            for index in indexes {
                assert!(plan.contains(index), "{index} in {plan}");
            }
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
        }
        let webhook = WebhookId::from_u128(1);
        let tenant = Some(WalletId::from_u128(1));
        let taken = vec![TakenPlaces { webhook, tenant, count: 4 }];
        let (slow, per_wallet) = (BTreeSet::new(), 4);
        let room = DeliveryRoom { free: 4, per_webhook: 4, per_wallet, taken, slow };
        let lease = lease(Dialect::Sqlite, &owner, Duration::ZERO, &room);
        // What is sorted is at most `per_webhook` rows of each webhook.
        let plan = plan(&connection, &lease.read.unwrap()(now).sql).join("\n");
        assert!(plan.contains("SCAN h") && plan.contains("deliveries_due_of_webhook"), "{plan}");
        assert!(!plan.contains("SCAN d") && !plan.contains("SCAN i"), "{plan}");
    }
}
