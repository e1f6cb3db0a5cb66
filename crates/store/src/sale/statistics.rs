//! Statistics of all processes on one database: counts of refused requests, and the newest of each API key.
//!
//! ```text
//! lock (a server's) ─▶ slots of these API keys ─▶ counts added, old slots deleted, new ones inserted: one transaction
//! ```
//!
//! The lock makes additions of several processes follow one another: two that read a ring at once would take the
//! same slots of it. No transaction of a sale takes it or waits for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{AdditionError, Unavailable};
use holdfast_domain::statistics::ring::{Slot, place};
use holdfast_domain::statistics::{
    BreakerReport, RefusalBatch, RefusalCount, RefusedRequest, RouteFailure, RouteHour,
};
use holdfast_domain::{ApiKeyId, Statistics, Timestamp};
use sea_orm::{Statement, Value};

use crate::rows::entity::refusal::SlottedRefusal;
use crate::rows::{BadRow, Cell, Cells, Row};
use crate::schema::{Dialect, blob};
use crate::store::Store;
use crate::transaction::exchange::Exchange;

/// Rows of one statement: a few thousand binds at most.
const ROWS_MAX: usize = 100;

/// Statements that delete what is older than `$1`, `$2` rows at most: a transaction each, so that none holds up others.
const PURGES: [&str; 3] = [
    "DELETE FROM refusal_hours WHERE (wallet_id, hour, api_key_id, code) IN (
    SELECT wallet_id, hour, api_key_id, code FROM refusal_hours WHERE hour < $1 ORDER BY hour LIMIT $2)
    RETURNING hour",
    "DELETE FROM route_hours WHERE (hour, route, model, outcome) IN (
    SELECT hour, route, model, outcome FROM route_hours WHERE hour < $1 ORDER BY hour LIMIT $2)
    RETURNING hour",
    "DELETE FROM route_failures WHERE (route, slot) IN (
    SELECT route, slot FROM route_failures WHERE failed_at < $1 ORDER BY failed_at LIMIT $2)
    RETURNING failed_at",
];

/// Statement whose row shows whether a purge would delete any row: one instead of three transactions, each of several
/// round trips.
fn is_old(dialect: Dialect) -> String {
    format!(
        "SELECT CASE WHEN (SELECT min(hour) FROM refusal_hours) < c.now - $1
         OR (SELECT min(hour) FROM route_hours) < c.now - $1
         OR (SELECT min(failed_at) FROM route_failures) < c.now - $1
         THEN CAST(1 AS bigint) ELSE 0 END FROM (SELECT {} AS now) AS c",
        dialect.clock()
    )
}

#[async_trait]
impl Statistics for Store {
    async fn add_refusals(&self, refusals: Arc<RefusalBatch>) -> Result<(), AdditionError> {
        let dialect = self.dialect();
        let kept = slots_statement(dialect, &refusals);
        let judge = move |kept: Vec<(ApiKeyId, Slot)>, _now| {
            let counts = refusals.counts.chunks(ROWS_MAX).map(|counts| add(dialect, counts));
            (counts.chain(list(dialect, kept, &refusals.listed)).collect(), ())
        };
        let exchange = Exchange::new(move |_now| kept, slot, judge);
        Ok(self.try_exchange(exchange.locked(dialect.statistics_lock())).await?)
    }

    async fn add_route_hours(&self, hours: Arc<Vec<RouteHour>>) -> Result<(), AdditionError> {
        self.add_attempts(hours).await
    }

    async fn add_route_failures(
        &self,
        failures: Arc<Vec<RouteFailure>>,
    ) -> Result<(), AdditionError> {
        self.add_failures(failures).await
    }

    async fn set_route_states(
        &self,
        node: &Node,
        breakers: &[BreakerReport],
    ) -> Result<(), Unavailable> {
        self.report_breakers(node, breakers).await
    }

    async fn purge_hours(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        let dialect = self.dialect();
        if dialect == Dialect::Postgres {
            let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
            let old = self.query(&is_old(dialect), [age.into()]).await?;
            let is_old = old.first().map_or(Ok(1), |row| Cells::new(row).int());
            if is_old.map_err(crate::error::unavailable)? == 0 {
                return Ok(0);
            }
        }
        let mut rows: u64 = 0;
        for purge in PURGES {
            let read = move |now: Timestamp| {
                dialect.statement(purge, [now.before(age).to_raw().into(), i64::from(limit).into()])
            };
            // The number is of the rows that it returns.
            let count = |deleted: Vec<i64>, _now| (Vec::new(), u64::try_from(deleted.len()));
            let deleted = self.exchange(Exchange::new(read, |cells| cells.int(), count)).await?;
            rows = rows.saturating_add(deleted.map_err(crate::error::unavailable)?);
        }
        Ok(rows)
    }
}

/// Statement that reads the slots of the API keys of a batch, oldest request first.
fn slots_statement(dialect: Dialect, refusals: &RefusalBatch) -> Statement {
    let mut keys: Vec<ApiKeyId> = refusals.listed.iter().map(|request| request.api_key).collect();
    keys.sort_unstable();
    keys.dedup();
    let places: Vec<_> = (1..=keys.len()).map(|at| format!("${at}")).collect();
    // A list without an entry is not valid SQL of a server.
    let keys_in = if places.is_empty() { "NULL".to_owned() } else { places.join(", ") };
    let sql = format!(
        "SELECT api_key_id, slot, code FROM refusals WHERE api_key_id IN ({keys_in}) ORDER BY seq"
    );
    let binds = keys.into_iter().map(|key| blob(key.to_bytes()));
    Statement::from_sql_and_values(dialect.backend(), sql, binds)
}

fn slot(cells: &mut Cells<'_>) -> Result<(ApiKeyId, Slot), BadRow> {
    let api_key = cells.get()?;
    Ok((api_key, Slot { number: cells.get()?, code: cells.get()? }))
}

/// Adds to counts.
fn add(dialect: Dialect, counts: &[RefusalCount]) -> Statement {
    let places = (0..counts.len()).map(|row| {
        let places = (1..=5).map(|at| format!("${}", row.saturating_mul(5).saturating_add(at)));
        format!("({})", places.collect::<Vec<_>>().join(", "))
    });
    let sql = format!(
        "INSERT INTO refusal_hours (wallet_id, hour, api_key_id, code, count) VALUES {}
         ON CONFLICT (wallet_id, hour, api_key_id, code)
         DO UPDATE SET count = refusal_hours.count + excluded.count",
        places.collect::<Vec<_>>().join(", ")
    );
    let binds = counts.iter().flat_map(|RefusalCount { of, count }| {
        [
            blob(of.wallet.to_bytes()),
            of.hour.as_micros().into(),
            blob(of.api_key.to_bytes()),
            Value::from(of.code.as_ref()),
            i64::try_from(*count).unwrap_or(i64::MAX).into(),
        ]
    });
    Statement::from_sql_and_values(dialect.backend(), sql, binds)
}

/// Statements that list requests in the rings of their API keys.
fn list(
    dialect: Dialect,
    kept: Vec<(ApiKeyId, Slot)>,
    requests: &[RefusedRequest],
) -> Vec<Statement> {
    let mut rings: BTreeMap<ApiKeyId, (Vec<Slot>, Vec<&RefusedRequest>)> = BTreeMap::new();
    for (api_key, slot) in kept {
        rings.entry(api_key).or_default().0.push(slot);
    }
    for request in requests {
        rings.entry(request.api_key).or_default().1.push(request);
    }
    let (mut freed, mut placed) = (Vec::new(), Vec::new());
    for (api_key, (kept, new)) in rings {
        let codes: Vec<&str> = new.iter().map(|request| request.code.as_ref()).collect();
        let change = place(&kept, &codes);
        freed.extend(change.freed.iter().map(|number| free(dialect, api_key, *number)));
        let row = |(slot, at): (u32, usize)| {
            new.get(at).map(|request| SlottedRefusal { slot, request: (*request).clone() })
        };
        placed.extend(change.placed.into_iter().filter_map(row));
    }
    // Their numbers are the order of the list.
    placed.sort_by_key(|row: &SlottedRefusal| row.request.at);
    let inserts = placed.chunks(ROWS_MAX).map(|rows| {
        let mut insert = SlottedRefusal::insert_all(dialect, rows);
        // A batch may come again after an answer that was lost.
        insert.sql.push_str(" ON CONFLICT (request_id) DO NOTHING");
        insert
    });
    // Deleted first: new requests may take the slots that become free.
    freed.into_iter().chain(inserts).collect()
}

fn free(dialect: Dialect, api_key: ApiKeyId, number: u32) -> Statement {
    let sql = "DELETE FROM refusals WHERE api_key_id = $1 AND slot = $2";
    dialect.statement(sql, [blob(api_key.to_bytes()), i64::from(number).into()])
}
