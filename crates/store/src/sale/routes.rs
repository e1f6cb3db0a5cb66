//! Statistics of routes: attempts by the hour, the newest failures, and the breakers of each node.
//!
//! Latencies are texts of bucket counts, which no statement adds. So rows are read, added here and written back, under
//! the lock of all statistics: two processes that read at once would lose the counts of one.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_domain::Timestamp;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{AdditionError, Unavailable};
use holdfast_domain::statistics::{
    BreakerReport, FAILURES_KEPT, RouteFailure, RouteHour, RouteHourKey,
};
use sea_orm::{Statement, Value};

use crate::rows::entity::route_failure::SlottedFailure;
use crate::rows::{Cell, FromCells, Row};
use crate::schema::{Dialect, blob};
use crate::store::Store;
use crate::transaction::exchange::Exchange;

/// Rows of one statement: some thousand binds at most.
const ROWS_MAX: usize = 80;

/// Takes the place of a row of attempts with the sums of both.
const REPLACE_HOUR: &str = " ON CONFLICT (hour, route, model, outcome) DO UPDATE SET
    attempts = excluded.attempts, ms_sum = excluded.ms_sum, buckets = excluded.buckets,
    first_token_buckets = excluded.first_token_buckets, failing_since = excluded.failing_since,
    last_at = excluded.last_at, last_error = excluded.last_error";

/// Takes the place of the oldest failure.
const REPLACE_FAILURE: &str =
    " ON CONFLICT (route, slot) DO UPDATE SET failed_at = excluded.failed_at,
    model = excluded.model, class = excluded.class, error = excluded.error";

/// Only under the lease of the process that reports it.
const REPORT: &str = "INSERT INTO route_states
    (node, incarnation, route, state, since, retry_at, successes_since)
    SELECT name, incarnation, $3, $4, $5, $6, $7 FROM nodes WHERE name = $1 AND incarnation = $2";

impl Store {
    pub(crate) async fn add_attempts(
        &self,
        rows: Arc<Vec<RouteHour>>,
    ) -> Result<(), AdditionError> {
        let dialect = self.dialect();
        let Some(first) = rows.iter().map(|row| row.hour).min() else { return Ok(()) };
        let sql = format!("SELECT {} FROM route_hours AS h WHERE h.hour >= $1", RouteHour::COLUMNS);
        let read = move |_now| dialect.statement(&sql, [first.to_raw().into()]);
        let judge = move |kept: Vec<RouteHour>, _now| {
            let mut sums: BTreeMap<RouteHourKey, RouteHour> = BTreeMap::new();
            let kept: BTreeMap<RouteHourKey, RouteHour> =
                kept.into_iter().map(|row| (row.key(), row)).collect();
            for row in rows.iter() {
                let key = row.key();
                let before = sums.get(&key).or_else(|| kept.get(&key)).cloned();
                let sum = before.map_or_else(
                    || row.clone(),
                    |mut sum| {
                        sum.add(row);
                        sum
                    },
                );
                sums.insert(key, sum);
            }
            let sums: Vec<RouteHour> = sums.into_values().collect();
            (written(dialect, &sums, REPLACE_HOUR), ())
        };
        let exchange = Exchange::new(read, RouteHour::from_cells, judge);
        Ok(self.try_exchange(exchange.locked(dialect.statistics_lock())).await?)
    }

    pub(crate) async fn add_failures(
        &self,
        failures: Arc<Vec<RouteFailure>>,
    ) -> Result<(), AdditionError> {
        if failures.is_empty() {
            return Ok(());
        }
        let dialect = self.dialect();
        let mut routes: Vec<Arc<str>> =
            failures.iter().map(|failure| Arc::clone(&failure.route)).collect();
        routes.sort_unstable();
        routes.dedup();
        let places: Vec<_> = (1..=routes.len()).map(|at| format!("${at}")).collect();
        let sql = format!(
            "SELECT {} FROM route_failures AS f WHERE f.route IN ({})",
            SlottedFailure::COLUMNS,
            places.join(", ")
        );
        let binds: Vec<Value> = routes.iter().map(|route| Value::from(&**route)).collect();
        let read = move |_now| Statement::from_sql_and_values(dialect.backend(), sql, binds);
        let judge = move |kept: Vec<SlottedFailure>, _now| {
            let placed: Vec<SlottedFailure> =
                routes.iter().flat_map(|route| placed(route, &kept, &failures)).collect();
            (written(dialect, &placed, REPLACE_FAILURE), ())
        };
        let exchange = Exchange::new(read, SlottedFailure::from_cells, judge);
        Ok(self.try_exchange(exchange.locked(dialect.statistics_lock())).await?)
    }

    pub(crate) async fn report_breakers(
        &self,
        node: &Node,
        reports: &[BreakerReport],
    ) -> Result<(), Unavailable> {
        let dialect = self.dialect();
        let own = [node.name.as_str().into(), blob(node.incarnation.to_bytes())];
        let clear = "DELETE FROM route_states WHERE node = $1
            AND EXISTS (SELECT 1 FROM nodes WHERE name = $1 AND incarnation = $2)";
        let clear = dialect.statement(clear, own.clone());
        let report = |report: &BreakerReport| {
            let [name, incarnation] = own.clone();
            let BreakerReport { route, state, since, retry_at, successes_since } = report;
            let binds = [
                name,
                incarnation,
                Value::from(&**route),
                state.label().into(),
                since.to_raw().into(),
                retry_at.to_raw().into(),
                successes_since.to_raw().into(),
            ];
            dialect.statement(REPORT, binds)
        };
        let reports = reports.iter().map(report);
        let statements: Vec<Statement> = std::iter::once(clear).chain(reports).collect();
        self.run(move |_now| statements).await
    }
}

/// New failures of a route with the slots that they take: free ones first, then those of the oldest.
fn placed(route: &str, kept: &[SlottedFailure], new: &[RouteFailure]) -> Vec<SlottedFailure> {
    let mut new: Vec<&RouteFailure> = new.iter().filter(|it| &*it.route == route).collect();
    new.sort_by_key(|failure| failure.at);
    let new = new.split_off(new.len().saturating_sub(FAILURES_KEPT));
    let of_route = || kept.iter().filter(|it| &*it.failure.route == route);
    let slots = (0..).take(FAILURES_KEPT);
    let mut by_age: Vec<(Option<Timestamp>, u32)> = slots
        .map(|slot| (of_route().find(|it| it.slot == slot).map(|it| it.failure.at), slot))
        .collect();
    // A slot without a failure is the oldest.
    by_age.sort_unstable();
    let placed = |((_, slot), failure): ((_, u32), &RouteFailure)| SlottedFailure {
        slot,
        failure: failure.clone(),
    };
    by_age.into_iter().zip(new).map(placed).collect()
}

fn written<R: Row>(dialect: Dialect, rows: &[R], replace: &str) -> Vec<Statement> {
    let insert = |rows: &[R]| {
        let mut insert = R::insert_all(dialect, rows);
        insert.sql.push_str(replace);
        insert
    };
    rows.chunks(ROWS_MAX).map(insert).collect()
}
