//! Purges: results and events that are past their time, counters of minutes long gone, and rows of
//! nodes that never left.

use std::time::Duration;

use holdfast_domain::admin::event::EventKinds;
use holdfast_domain::ports::Unavailable;

use super::Sqlite;
use crate::error::unavailable;
use crate::schema::Dialect;
use crate::transaction::command::trail::BESIDE_TRAIL;
use crate::transaction::event::may_go;

/// Time for which counters of minutes, and nodes that have ended, are kept. An operation that ends later than that
/// corrects a minute that is not read any more. Days and months are few, and stay.
const KEPT: Duration = Duration::from_secs(2 * 86_400);

/// Sealed bytes that one purge deletes, besides those of its last result: SQLite reads every page that it frees,
/// and all writes wait meanwhile.
const BYTES: i64 = 4 << 20;

/// The oldest, up to a number of rows and of bytes. A length is read without the bytes.
pub(super) const PURGE_RESULTS: &str = "DELETE FROM results WHERE op_seq IN
    (SELECT op_seq FROM
        (SELECT op_seq, sum(bytes) OVER (ORDER BY finished_at, op_seq
            ROWS UNBOUNDED PRECEDING) - bytes AS before FROM
            (SELECT op_seq, finished_at, length(sealed) AS bytes FROM results
             WHERE finished_at < ?1 ORDER BY finished_at, op_seq LIMIT ?2))
     WHERE before < ?3)
    RETURNING finished_at";

/// The youngest moment of a result that a purge has deleted: an audit finds those that went otherwise.
const NOTE: &str = "INSERT INTO results_purged (one, youngest) VALUES (1, ?1)
    ON CONFLICT (one) DO UPDATE SET youngest = max(youngest, excluded.youngest)";

pub(super) const PURGE_COUNTERS: &str =
    "DELETE FROM counters WHERE (api_key_id, counter, window_start) IN
    (SELECT api_key_id, counter, window_start FROM counters
     WHERE counter IN (0, 1) AND window_start < ?1 LIMIT ?2)";

/// Nodes of other names, which no process will renew: a database has served under another one, or was edited by
/// hand.
pub(super) const PURGE_NODES: &str = "DELETE FROM nodes WHERE name IN
    (SELECT name FROM nodes WHERE ends_at < ?1 LIMIT ?2)";

/// Addresses of the audit log's actors. The first ones are the oldest: no more than those are looked at.
pub(super) const PURGE_AUDIT_ADDRESSES: &str = "DELETE FROM audit_addresses WHERE audit_seq IN
    (SELECT d.audit_seq FROM
        (SELECT audit_seq FROM audit_addresses ORDER BY audit_seq LIMIT ?2) AS d
     JOIN audit AS a ON a.seq = d.audit_seq WHERE a.created_at < ?1)";

pub(super) const PURGE_REFUSED_ATTEMPTS: &str =
    "DELETE FROM refused_attempts WHERE (hour, actor, use_case) IN
    (SELECT hour, actor, use_case FROM refused_attempts WHERE hour < ?1 LIMIT ?2)";
/// Events of this age, by the index over it.
fn expire(webhooks: EventKinds) -> String {
    format!(
        "DELETE FROM events WHERE seq IN (SELECT seq FROM events
         WHERE created_at < ?1 AND {} ORDER BY created_at LIMIT ?2)",
        may_go(Dialect::Sqlite, webhooks)
    )
}

impl Sqlite {
    pub(crate) async fn purge(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        let before = |now: i64, age: Duration| {
            now.saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX))
        };
        let interest = self.interest.get();
        let purged = self.write(move |transaction, now| {
            // One transaction for all of them: each would wait for a flush of its own.
            let now = now.as_micros();
            let mut purge = transaction.prepare(PURGE_RESULTS)?;
            let gone = purge.query_map((before(now, age), limit, BYTES), |row| row.get(0))?;
            let gone: Vec<i64> = gone.collect::<Result<_, _>>()?;
            if let Some(youngest) = gone.iter().max() {
                transaction.execute(NOTE, [youngest])?;
            }
            transaction.execute(PURGE_COUNTERS, (before(now, KEPT), limit))?;
            transaction.execute(PURGE_NODES, (before(now, KEPT), limit))?;
            transaction.execute(PURGE_AUDIT_ADDRESSES, (before(now, BESIDE_TRAIL), limit))?;
            transaction.execute(PURGE_REFUSED_ATTEMPTS, (before(now, BESIDE_TRAIL), limit))?;
            let expired = before(now, interest.kept());
            transaction.execute(&expire(interest.webhooks), (expired, limit))?;
            Ok(u64::try_from(gone.len()).unwrap_or(u64::MAX))
        });
        purged.await.map_err(unavailable)
    }
}
