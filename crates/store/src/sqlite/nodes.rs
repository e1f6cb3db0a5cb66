//! The leases of running processes: one row for each node name.

use std::time::Duration;

use holdfast_domain::operation::{Lease, Node};
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode, PendingWork, Unavailable};
use holdfast_domain::{Incarnation, Timestamp};
use rusqlite::{OptionalExtension, Row, Transaction};
use sea_orm::Statement;

use super::Sqlite;
use super::write_task::WriteError;
use crate::error::unavailable;
use crate::transaction::exchange::Exchange;

// An address goes with its incarnation: the one of a process that is gone would lead relays astray. So
// does the digest of its settings.
const TAKE: &str = "INSERT INTO nodes (name, incarnation, ends_at) VALUES (?1, ?2, ?3)
    ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, ends_at = excluded.ends_at,
    address = CASE WHEN nodes.incarnation = excluded.incarnation THEN nodes.address END,
    settings = CASE WHEN nodes.incarnation = excluded.incarnation THEN nodes.settings END";
/// A row that is this incarnation's own was written by an attempt whose answer was lost.
const TAKE_EXPIRED: &str = "INSERT INTO nodes (name, incarnation, ends_at) VALUES (?1, ?2, ?3)
    ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, ends_at = excluded.ends_at,
    address = CASE WHEN nodes.incarnation = excluded.incarnation THEN nodes.address END,
    settings = CASE WHEN nodes.incarnation = excluded.incarnation THEN nodes.settings END
    WHERE nodes.ends_at <= ?4 OR nodes.incarnation = excluded.incarnation";
const RENEW: &str = "UPDATE nodes SET ends_at = ?3 WHERE name = ?1 AND incarnation = ?2";

impl Sqlite {
    /// Runs one statement, which is a transaction of its own.
    pub(crate) async fn touch(&self, statement: Statement) -> Result<(), Unavailable> {
        Ok(self.exchange(Exchange::of(move |_now| vec![statement])).await?)
    }

    pub(crate) async fn beat(
        &self,
        node: &Node,
        lease: Duration,
        entry: LeaseMode,
    ) -> Result<HeartbeatOutcome, Unavailable> {
        let node = node.clone();
        let lock = self.file.lock.clone();
        let beat = self.write(move |transaction, now| {
            // Before the lease is renewed: a lease in a file that was replaced proves nothing.
            if let Some(lock) = lock {
                lock.check()?;
            }
            let taken = Lease { node, ends_at: now.after(lease) };
            if enter(transaction, &taken, now, entry)? {
                // Each task reads a file for itself: that costs no round trip.
                let pending = PendingWork::ALL;
                return Ok(HeartbeatOutcome::Held { lease: taken, now, pending });
            }
            Ok(HeartbeatOutcome::Lost { lease: current_lease(transaction, taken.node)?, now })
        });
        beat.await.map_err(unavailable)
    }
}

/// Writes a lease; true if the row is its own now.
fn enter(
    transaction: &Transaction<'_>,
    lease: &Lease,
    now: Timestamp,
    entry: LeaseMode,
) -> Result<bool, WriteError> {
    let Lease { node, ends_at } = lease;
    let row = (node.name.as_str(), node.incarnation.to_bytes(), ends_at.as_micros());
    let changed = match entry {
        LeaseMode::Take => transaction.execute(TAKE, row)?,
        LeaseMode::TakeExpired => {
            transaction.execute(TAKE_EXPIRED, (row.0, row.1, row.2, now.as_micros()))?
        }
        LeaseMode::Renew => transaction.execute(RENEW, row)?,
    };
    Ok(changed > 0)
}

fn current_lease(transaction: &Transaction<'_>, node: Node) -> Result<Option<Lease>, WriteError> {
    let sql = "SELECT incarnation, ends_at FROM nodes WHERE name = ?1";
    let found = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let found = transaction.query_row(sql, [node.name.as_str()], found).optional()?;
    Ok(found.map(|(incarnation, ends_at)| {
        let node = Node { incarnation: Incarnation::from_bytes(incarnation), ..node };
        Lease { node, ends_at: Timestamp::from_micros(ends_at) }
    }))
}
