//! Purges: results and events that are past their time, counters of minutes long gone, and rows of
//! nodes that never left.

use std::sync::LazyLock;
use std::time::Duration;

use holdfast_domain::admin::event::EventKinds;
use holdfast_domain::ports::Unavailable;
use sqlx::{AssertSqlSafe, Row as _};

use super::Postgres;
use super::session::CLOCK;
use crate::error::unavailable;
use crate::schema::Dialect;
use crate::transaction::command::trail::BESIDE_TRAIL;
use crate::transaction::event::may_go;

/// Counters of minutes are kept so long. An operation that ends later than that corrects a minute that is not read
/// any more. Days and months are few, and stay. So are the rows of nodes that are gone and never left: a name that
/// is made at each start comes back no more.
const KEPT: Duration = Duration::from_secs(2 * 86_400);

/// Two processes that purge at once do not wait for each other.
static PURGE_RESULTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH gone AS (DELETE FROM results WHERE op_seq IN (SELECT op_seq FROM results
         WHERE finished_at < (SELECT {CLOCK} - $1) ORDER BY finished_at LIMIT $2
         FOR UPDATE SKIP LOCKED) RETURNING finished_at),
         noted AS (INSERT INTO results_purged AS p (one, youngest)
         SELECT 1, max(finished_at) FROM gone HAVING count(*) > 0
         ON CONFLICT (one) DO UPDATE SET youngest = greatest(p.youngest, excluded.youngest))
         SELECT finished_at FROM gone"
    )
});

static PURGE_COUNTERS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "DELETE FROM counters WHERE (api_key_id, counter, window_start) IN
         (SELECT api_key_id, counter, window_start FROM counters
          WHERE counter IN (0, 1) AND window_start < (SELECT {CLOCK} - $1) LIMIT $2
          FOR UPDATE SKIP LOCKED)"
    )
});

static PURGE_NODES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "DELETE FROM nodes WHERE name IN (SELECT name FROM nodes
         WHERE ends_at < (SELECT {CLOCK} - $1) LIMIT $2 FOR UPDATE SKIP LOCKED)"
    )
});

/// Addresses of the audit log's actors. The first ones are the oldest: no more than those are looked at.
static PURGE_AUDIT_ADDRESSES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "DELETE FROM audit_addresses WHERE audit_seq IN (SELECT d.audit_seq FROM
             (SELECT audit_seq FROM audit_addresses ORDER BY audit_seq LIMIT $2) AS d
         JOIN audit AS a ON a.seq = d.audit_seq WHERE a.created_at < (SELECT {CLOCK} - $1))"
    )
});

static PURGE_REFUSED_ATTEMPTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "DELETE FROM refused_attempts WHERE (hour, actor, use_case) IN
         (SELECT hour, actor, use_case FROM refused_attempts
          WHERE hour < (SELECT {CLOCK} - $1) LIMIT $2 FOR UPDATE SKIP LOCKED)"
    )
});

/// Statement whose row shows which of the purges would delete a row, each by its age: one statement instead of six
/// for a database without old rows. Addresses lie with the audit log, whose oldest rows have none any more: the first
/// that has one is the oldest.
fn is_old(webhooks: EventKinds) -> String {
    format!(
        "SELECT EXISTS (SELECT FROM results WHERE finished_at < c.now - $1),
         EXISTS (SELECT FROM counters WHERE counter IN (0, 1) AND window_start < c.now - $2),
         EXISTS (SELECT FROM nodes WHERE ends_at < c.now - $3),
         EXISTS (SELECT FROM audit WHERE created_at < c.now - $4
             AND seq = (SELECT min(audit_seq) FROM audit_addresses)),
         EXISTS (SELECT FROM refused_attempts WHERE hour < c.now - $5),
         EXISTS (SELECT FROM events WHERE created_at < c.now - $6 AND {})
         FROM (SELECT {CLOCK} AS now OFFSET 0) AS c",
        may_go(Dialect::Postgres, webhooks)
    )
}

/// Events of this age, by the index over it.
fn expire(webhooks: EventKinds) -> String {
    format!(
        "DELETE FROM events WHERE seq IN (SELECT seq FROM events
         WHERE created_at < (SELECT {CLOCK} - $1) AND {} ORDER BY created_at LIMIT $2
         FOR UPDATE SKIP LOCKED)",
        may_go(Dialect::Postgres, webhooks)
    )
}

impl Postgres {
    pub(crate) async fn purge(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        let micros = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        let interest = self.interest.get();
        let purged = self.commands.run(move |connection| {
            Box::pin(async move {
                let expire = expire(interest.webhooks);
                let purges = [
                    (PURGE_RESULTS.as_str(), age),
                    (PURGE_COUNTERS.as_str(), KEPT),
                    (PURGE_NODES.as_str(), KEPT),
                    (PURGE_AUDIT_ADDRESSES.as_str(), BESIDE_TRAIL),
                    (PURGE_REFUSED_ATTEMPTS.as_str(), BESIDE_TRAIL),
                    (expire.as_str(), interest.kept()),
                ];
                let old = sqlx::query(AssertSqlSafe(is_old(interest.webhooks)));
                let old = purges.iter().fold(old, |old, (_sql, age)| old.bind(micros(*age)));
                let old = old.fetch_one(&mut *connection).await?;
                let mut deleted = Vec::new();
                // Each statement is a transaction of its own: none keeps the locks of the one before.
                for (at, (sql, age)) in purges.into_iter().enumerate() {
                    if !old.try_get::<bool, _>(at)? {
                        deleted.push(0);
                        continue;
                    }
                    let purge = sqlx::query(AssertSqlSafe(sql.to_owned()));
                    let purge = purge.bind(micros(age)).bind(i64::from(limit));
                    // Of the results the statement returns one row each, and affects as many.
                    deleted.push(purge.execute(&mut *connection).await?.rows_affected());
                }
                Ok(deleted.first().copied().unwrap_or(0))
            })
        });
        purged.await.map_err(unavailable)
    }
}
