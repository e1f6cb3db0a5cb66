//! The leases of running processes: one row for each node name. A lease is written by one statement, and begins and
//! ends by the server's clock.
//!
//! The statement that renews a lease also reports the work that waits ([`PendingWork`]) and the kinds of webhooks, so
//! that a process at rest sends one statement for each heartbeat. A lease must never depend on the rows that are read
//! for that: if they are locked, or take long, the lease is renewed by a statement without them, and the next ones
//! report all work for [`REST`]. Then each task reads for itself.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdfast_domain::operation::{Lease, Node};
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode, PendingWork, Unavailable, WorkKind};
use holdfast_domain::{Incarnation, Timestamp};
use sea_orm::Statement;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row as _};

use super::administration::execute;
use super::session::{CLOCK, within};
use super::{BEAT, BEAT_STATEMENT, Postgres};
use crate::error::unavailable;
use crate::rows::is_due;
use crate::rows::job::is_claimable;
use crate::schema::Dialect;
use crate::transaction::outbox::wanted;

/// Timeout of a statement that renews a lease and reports work: longer than the server lets it run.
const REPORT: Duration = Duration::from_secs(3);
const _: () = assert!(REPORT.as_secs() > BEAT_STATEMENT.as_secs());
/// Time for which no work is read after a statement that failed.
const REST: Duration = Duration::from_secs(60);

// An address goes with its incarnation: the one of a process that is gone would lead relays astray. So
// does the digest of its settings.
static TAKE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO nodes AS n (name, incarnation, ends_at) VALUES ($1, $2, {CLOCK} + $3)
         ON CONFLICT (name)
         DO UPDATE SET incarnation = excluded.incarnation, ends_at = excluded.ends_at,
         address = CASE WHEN n.incarnation = excluded.incarnation THEN n.address END,
         settings = CASE WHEN n.incarnation = excluded.incarnation THEN n.settings END"
    )
});
/// A row that is this incarnation's own was written by an attempt whose answer was lost.
static TAKE_EXPIRED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{} WHERE n.ends_at <= excluded.ends_at - $3 OR n.incarnation = excluded.incarnation",
        *TAKE
    )
});
static RENEW: LazyLock<String> = LazyLock::new(|| {
    format!("UPDATE nodes AS b SET ends_at = {CLOCK} + $3 WHERE name = $1 AND incarnation = $2")
});
/// Columns that report work, in the order of [`WorkKind::ALL`], and the kinds of webhooks in force. `b` is the renewed
/// row: its clock is read once.
static WORK: LazyLock<String> = LazyLock::new(|| {
    let (is_due, is_claimable) = (is_due("b.ends_at - $3"), is_claimable("b.ends_at - $3"));
    // `OFFSET 0` keeps the planner to what runs: a plan that begins with the operations reads all there ever were.
    let running = "running AS r CROSS JOIN LATERAL
             (SELECT node, incarnation, phase, deadline FROM operations WHERE seq = r.op_seq OFFSET 0) AS o";
    format!(
        "EXISTS (SELECT FROM {running} LEFT JOIN nodes AS n ON n.name = o.node
             WHERE o.phase IN ('leased', 'recorded') AND {is_due}),
         EXISTS (SELECT FROM {running}
             WHERE o.phase = 'leased' AND o.node = b.name AND o.incarnation = b.incarnation),
         EXISTS (SELECT FROM events AS e WHERE NOT e.is_fanned_out)
             OR coalesce((SELECT min(d.next_at) FROM deliveries AS d WHERE d.state = 'pending') <= b.ends_at, FALSE),
         EXISTS (SELECT FROM jobs WHERE {is_claimable}),
         (SELECT string_agg(DISTINCT coalesce(w.kinds, '*'), ',') FROM webhooks AS w
             WHERE w.disabled_at IS NULL)"
    )
});
static STANDING: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {CLOCK}, n.incarnation, n.ends_at
         FROM (SELECT 1) AS once LEFT JOIN nodes AS n ON n.name = $1"
    )
});

/// Moment until which heartbeats read no work, if there is one.
#[derive(Debug, Default)]
pub(super) struct WorkReports(Mutex<Option<Instant>>);

impl WorkReports {
    fn may_read(&self) -> bool {
        let rests_until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rests_until.is_none_or(|until| until <= Instant::now())
    }

    fn rest(&self) {
        let until = Instant::now().checked_add(REST);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

impl Postgres {
    pub(crate) async fn beat(
        &self,
        node: &Node,
        lease: Duration,
        entry: LeaseMode,
    ) -> Result<HeartbeatOutcome, Unavailable> {
        if entry == LeaseMode::Renew && self.work_reports.may_read() {
            let sent = Instant::now();
            match self.enter(node, lease, Entry::Report).await {
                // Time for another statement, on a new connection if this one was broken.
                Err(error) if sent.elapsed() < BEAT => {
                    if error.as_database_error().is_some() {
                        self.work_reports.rest();
                        tracing::warn!(%error, "a heartbeat could not read which work waits: its lease is renewed without");
                    }
                }
                beaten @ (Ok(_) | Err(_)) => return beaten.map_err(unavailable),
            }
        }
        self.enter(node, lease, Entry::Plain(entry)).await.map_err(unavailable)
    }

    async fn enter(
        &self,
        node: &Node,
        lease: Duration,
        entry: Entry,
    ) -> Result<HeartbeatOutcome, sqlx::Error> {
        let (node, servers, interest) = (node.clone(), self.servers.clone(), self.interest.clone());
        let sent = Instant::now();
        // One statement is a transaction of its own: a heartbeat costs one round trip.
        let beat = self.beats.run(move |connection| {
            Box::pin(async move {
                let Some(row) = enter(connection, &node, lease, entry).await? else {
                    // A round trip more, but only for who has no lease to keep.
                    return lost(connection, node).await;
                };
                // Its own commit is included: a server that was left without a standby shows it here first.
                servers.note_replication(row.try_get(2)?);
                let pending = match entry {
                    Entry::Plain(_) => PendingWork::ALL,
                    Entry::Report => {
                        let kinds: Option<&str> = row.try_get(3 + WorkKind::ALL.len())?;
                        let kinds: Vec<_> = kinds.iter().flat_map(|it| it.split(',')).collect();
                        interest.renew(wanted(&kinds), sent);
                        pending(&row)?
                    }
                };
                let lease = Lease { node, ends_at: moment(&row, 0)? };
                Ok(HeartbeatOutcome::Held { lease, now: moment(&row, 1)?, pending })
            })
        });
        beat.await
    }

    /// Runs one statement on the connection of the heartbeats, which is a transaction of its own and may run twice: a
    /// connection that has broken meanwhile is found only by its use.
    pub(crate) async fn touch(&self, statement: Statement) -> Result<(), Unavailable> {
        let touched = self.touch_once(statement.clone()).await;
        let touched = match touched {
            Err(error) if error.as_database_error().is_none() => self.touch_once(statement).await,
            Ok(()) | Err(_) => touched,
        };
        touched.map_err(unavailable)
    }

    async fn touch_once(&self, statement: Statement) -> Result<(), sqlx::Error> {
        let touched = self
            .beats
            .run(move |connection| Box::pin(async move { execute(connection, statement).await }));
        touched.await
    }
}

/// Statement of a heartbeat.
#[derive(Debug, Clone, Copy)]
enum Entry {
    /// Renews the lease, and reports work.
    Report,
    Plain(LeaseMode),
}

/// The end of the lease, the clock, and whether commits are replicated, if the row is this node's now; then [`WORK`].
async fn enter(
    connection: &mut PgConnection,
    node: &Node,
    lease: Duration,
    entry: Entry,
) -> Result<Option<PgRow>, sqlx::Error> {
    let (sql, work) = match entry {
        Entry::Plain(LeaseMode::Take) => (&TAKE, String::new()),
        Entry::Plain(LeaseMode::TakeExpired) => (&TAKE_EXPIRED, String::new()),
        Entry::Plain(LeaseMode::Renew) => (&RENEW, String::new()),
        Entry::Report => (&RENEW, format!(", {}", *WORK)),
    };
    // The server's clock dates the lease: clocks of nodes are never compared.
    let sql =
        format!("{} RETURNING ends_at, ends_at - $3, {}{work}", **sql, Dialect::IS_REPLICATED);
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(node.name.as_str())
        .bind(&node.incarnation.to_bytes()[..])
        .bind(i64::try_from(lease.as_micros()).unwrap_or(i64::MAX))
        .fetch_optional(connection);
    within(REPORT, row).await
}

fn pending(row: &PgRow) -> Result<PendingWork, sqlx::Error> {
    let mut pending = PendingWork::NONE;
    for (at, kind) in (3_usize..).zip(WorkKind::ALL) {
        if row.try_get(at)? {
            pending = pending.with(kind);
        }
    }
    Ok(pending)
}

async fn lost(connection: &mut PgConnection, node: Node) -> Result<HeartbeatOutcome, sqlx::Error> {
    let row = sqlx::query(AssertSqlSafe(STANDING.as_str()))
        .bind(node.name.as_str())
        .fetch_one(connection)
        .await?;
    let incarnation: Option<&[u8]> = row.try_get(1)?;
    let lease = match incarnation {
        Some(bytes) => {
            let bytes = bytes.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
            let node = Node { name: node.name, incarnation: Incarnation::from_bytes(bytes) };
            Some(Lease { node, ends_at: moment(&row, 2)? })
        }
        None => None,
    };
    Ok(HeartbeatOutcome::Lost { lease, now: moment(&row, 0)? })
}

fn moment(row: &PgRow, at: usize) -> Result<Timestamp, sqlx::Error> {
    row.try_get(at).map(Timestamp::from_micros)
}
