//! The leases of running processes: one row for each node name. A lease is written by one
//! statement, and begins and ends by the server's clock.

use std::sync::LazyLock;
use std::time::Duration;

use holdfast_domain::operation::{Lease, Node};
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode, Unavailable};
use holdfast_domain::{Incarnation, Timestamp};
use sea_orm::Statement;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row as _};

use super::Postgres;
use super::administration::execute;
use super::session::CLOCK;
use crate::error::unavailable;
use crate::schema::Dialect;

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
    format!("UPDATE nodes SET ends_at = {CLOCK} + $3 WHERE name = $1 AND incarnation = $2")
});
static STANDING: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {CLOCK}, n.incarnation, n.ends_at
         FROM (SELECT 1) AS once LEFT JOIN nodes AS n ON n.name = $1"
    )
});

impl Postgres {
    pub(crate) async fn beat(
        &self,
        node: &Node,
        lease: Duration,
        entry: LeaseMode,
    ) -> Result<HeartbeatOutcome, Unavailable> {
        let node = node.clone();
        // One statement is a transaction of its own: a heartbeat costs one round trip.
        let servers = self.servers.clone();
        let beat = self.beats.run(move |connection| {
            Box::pin(async move {
                match enter(connection, &node, lease, entry).await? {
                    Some((ends_at, now, is_replicated)) => {
                        // Its own commit is included: a server that was left without a standby shows it here first.
                        servers.note_replication(is_replicated);
                        Ok(HeartbeatOutcome::Held { lease: Lease { node, ends_at }, now })
                    }
                    // A round trip more, but only for who has no lease to keep.
                    None => lost(connection, node).await,
                }
            })
        });
        beat.await.map_err(unavailable)
    }

    /// Runs one statement on the connection of the heartbeats, which is a transaction of its own.
    pub(crate) async fn touch(&self, statement: Statement) -> Result<(), Unavailable> {
        let touched = self
            .beats
            .run(move |connection| Box::pin(async move { execute(connection, statement).await }));
        touched.await.map_err(unavailable)
    }
}

/// The end of the lease, the clock, and whether commits are replicated, if the row is this node's now.
async fn enter(
    connection: &mut PgConnection,
    node: &Node,
    lease: Duration,
    entry: LeaseMode,
) -> Result<Option<(Timestamp, Timestamp, bool)>, sqlx::Error> {
    let sql = match entry {
        LeaseMode::Take => &TAKE,
        LeaseMode::TakeExpired => &TAKE_EXPIRED,
        LeaseMode::Renew => &RENEW,
    };
    // The server's clock dates the lease: clocks of nodes are never compared.
    let sql = format!("{} RETURNING ends_at, ends_at - $3, {}", **sql, Dialect::IS_REPLICATED);
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(node.name.as_str())
        .bind(&node.incarnation.to_bytes()[..])
        .bind(i64::try_from(lease.as_micros()).unwrap_or(i64::MAX))
        .fetch_optional(connection)
        .await?;
    row.map(|row| Ok((moment(&row, 0)?, moment(&row, 1)?, row.try_get(2)?))).transpose()
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
