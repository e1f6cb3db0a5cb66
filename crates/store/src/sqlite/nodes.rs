//! The leases of running processes: one row for each node name.

use std::time::Duration;

use holdfast_domain::operation::{Lease, Node};
use holdfast_domain::ports::{Beat, Entry, Unavailable};
use holdfast_domain::{Incarnation, Timestamp};
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::Sqlite;
use crate::unavailable;

const TAKE: &str = "INSERT INTO nodes (name, incarnation, ends_at) VALUES (?1, ?2, ?3)
    ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, ends_at = excluded.ends_at";
/// A row that is this incarnation's own was written by an attempt whose answer was lost.
const TAKE_EXPIRED: &str = "INSERT INTO nodes (name, incarnation, ends_at) VALUES (?1, ?2, ?3)
    ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, ends_at = excluded.ends_at
    WHERE nodes.ends_at <= ?4 OR nodes.incarnation = excluded.incarnation";
const RENEW: &str = "UPDATE nodes SET ends_at = ?3 WHERE name = ?1 AND incarnation = ?2";

impl Sqlite {
    pub(crate) async fn beat(
        &self,
        node: &Node,
        lease: Duration,
        entry: Entry,
    ) -> Result<Beat, Unavailable> {
        let node = node.clone();
        let beat = self.write(move |connection, now| {
            Box::pin(async move {
                let taken = Lease { node, ends_at: now.after(lease) };
                let lease = if enter(connection, &taken, now, entry).await? {
                    return Ok(Beat::Held { lease: taken, now });
                } else {
                    standing(connection, &taken.node).await?
                };
                Ok(Beat::Lost { lease, now })
            })
        });
        beat.await.map_err(unavailable)
    }

    pub(crate) async fn leave(&self, node: &Node) -> Result<(), Unavailable> {
        let node = node.clone();
        let left = self.write(move |connection, _now| {
            Box::pin(async move {
                sqlx::query("DELETE FROM nodes WHERE name = ?1 AND incarnation = ?2")
                    .bind(node.name.as_str())
                    .bind(&node.incarnation.to_bytes()[..])
                    .execute(connection)
                    .await
                    .map(drop)
            })
        });
        left.await.map_err(unavailable)
    }
}

/// Whether the row is this lease's now.
async fn enter(
    connection: &mut SqliteConnection,
    lease: &Lease,
    now: Timestamp,
    entry: Entry,
) -> Result<bool, sqlx::Error> {
    let sql = match entry {
        Entry::Take => TAKE,
        Entry::TakeExpired => TAKE_EXPIRED,
        Entry::Renew => RENEW,
    };
    let mut query = sqlx::query(sql)
        .bind(lease.node.name.as_str())
        .bind(lease.node.incarnation.to_bytes().to_vec())
        .bind(lease.ends_at.as_micros());
    if entry == Entry::TakeExpired {
        query = query.bind(now.as_micros());
    }
    Ok(query.execute(connection).await?.rows_affected() > 0)
}

async fn standing(
    connection: &mut SqliteConnection,
    node: &Node,
) -> Result<Option<Lease>, sqlx::Error> {
    let row = sqlx::query("SELECT incarnation, ends_at FROM nodes WHERE name = ?1")
        .bind(node.name.as_str())
        .fetch_optional(connection)
        .await?;
    row.map(|row| {
        let node = Node { name: node.name.clone(), incarnation: incarnation(&row)? };
        Ok(Lease { node, ends_at: Timestamp::from_micros(row.try_get(1)?) })
    })
    .transpose()
}

fn incarnation(row: &SqliteRow) -> Result<Incarnation, sqlx::Error> {
    let bytes: &[u8] = row.try_get(0)?;
    let bytes = bytes.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    Ok(Incarnation::from_bytes(bytes))
}
