//! Routes of providers as operators see them: attempts and failures of the last 24 hours, the last error, and the
//! circuit breakers of all nodes. The statistics are a second old.
//!
//! Never for holders: a route names a provider, and an error has a provider's words.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::Timestamp;
use holdfast_domain::admin::UseCase;
use holdfast_domain::ports::FailureNote;
use holdfast_domain::statistics::{
    AttemptOutcome, Latencies, NodeBreaker, RouteFailure, RouteHour, hour_of,
};

use crate::{Accounts, AccountsError, Principal, ResourceKind, Result};

const DAY: Duration = Duration::from_secs(86_400);
/// Hours of one route that are shown.
const HISTORY: Duration = Duration::from_secs(7 * 86_400);

/// Attempts that were added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttemptSums {
    /// All attempts.
    pub attempts: u64,
    /// Failures of the route.
    pub failed: u64,
    /// Refusals of requests, which are their callers' fault.
    pub refused: u64,
    /// Latencies of answered calls.
    pub latencies: Latencies,
    /// Latencies to the first token, of streamed calls.
    pub first_token: Latencies,
}

impl AttemptSums {
    /// Sums of these rows.
    #[must_use]
    pub fn of<'r>(rows: impl Iterator<Item = &'r RouteHour>) -> Self {
        let mut sums = Self::default();
        for row in rows {
            sums.attempts = sums.attempts.saturating_add(row.attempts);
            match row.outcome {
                AttemptOutcome::NotRun | AttemptOutcome::Unknown => {
                    sums.failed = sums.failed.saturating_add(row.attempts);
                }
                AttemptOutcome::Refused => sums.refused = sums.refused.saturating_add(row.attempts),
                AttemptOutcome::Answered => sums.latencies.add(&row.latencies),
                // Ended by the gateway or its caller: neither a failure of the route nor a whole
                // latency.
                AttemptOutcome::Cut => {}
            }
            sums.first_token.add(&row.first_token);
        }
        sums
    }

    /// Failed attempts in a thousand, without refusals of requests; `None` without an attempt.
    #[must_use]
    pub fn failed_per_mille(&self) -> Option<u64> {
        // Refusals count against no route: a caller with malformed requests would make a healthy
        // one look ill.
        let judged = self.attempts.saturating_sub(self.refused);
        // Rounded down: 1,000 appears only if every judged attempt failed.
        (judged > 0).then(|| self.failed.saturating_mul(1_000) / judged)
    }
}

/// Route with its statistics of the last 24 hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteReport {
    /// Name of the route: the configured provider and its model.
    pub name: Arc<str>,
    /// True if this node serves it.
    pub is_served: bool,
    /// Attempts of the last 24 hours.
    pub sums: AttemptSums,
    /// Moment and note of the last failure.
    pub last_error: Option<(Timestamp, FailureNote)>,
    /// First failure since the last answer; `None` if the last attempt did not fail.
    pub failing_since: Option<Timestamp>,
    /// Circuit breakers, by node.
    pub breakers: Vec<NodeBreaker>,
}

/// History of one route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteHistory {
    /// The route, and its last 24 hours.
    pub report: RouteReport,
    /// Attempts of the last seven days by hour, model and outcome, oldest first.
    pub hours: Vec<RouteHour>,
    /// Failures that are kept, newest first.
    pub failures: Vec<RouteFailure>,
    /// Clock of the database.
    pub now: Timestamp,
}

impl Accounts {
    /// Routes of the served configuration, and those that were tried in the last 24 hours.
    pub async fn routes(&self, principal: &Principal) -> Result<Vec<RouteReport>> {
        principal.authorize(UseCase::RouteRead)?;
        let from = hour_of(self.clock().await?.before(DAY));
        let mut routes: BTreeMap<Arc<str>, Vec<RouteHour>> = BTreeMap::new();
        for name in self.served_routes() {
            routes.entry(name).or_default();
        }
        for row in self.book.route_hours(from, None).await? {
            routes.entry(Arc::clone(&row.route)).or_default().push(row);
        }
        let breakers = self.book.node_breakers().await?;
        let reports = routes.iter().map(|(name, rows)| self.report(name, rows, &breakers));
        Ok(reports.collect())
    }

    /// Attempts of the hours that begin at this moment or later.
    pub async fn attempts(&self, principal: &Principal, from: Timestamp) -> Result<Vec<RouteHour>> {
        principal.authorize(UseCase::RouteRead)?;
        Ok(self.book.route_hours(from, None).await?)
    }

    /// The history of one route: its hours and its last failures.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`] for a route that is not served and was not tried in seven days.
    pub async fn route(&self, principal: &Principal, name: &str) -> Result<RouteHistory> {
        principal.authorize(UseCase::RouteRead)?;
        let now = self.clock().await?;
        let hours = self.book.route_hours(hour_of(now.before(HISTORY)), Some(name)).await?;
        let name: Arc<str> = name.into();
        if hours.is_empty() && !self.served_routes().contains(&name) {
            return Err(AccountsError::NotFound(ResourceKind::Route));
        }
        let failures = self.book.route_failures(&name).await?;
        let breakers = self.book.node_breakers().await?;
        let from = hour_of(now.before(DAY));
        let last_day: Vec<_> = hours.iter().filter(|row| row.hour >= from).cloned().collect();
        let report = self.report(&name, &last_day, &breakers);
        Ok(RouteHistory { report, hours, failures, now })
    }

    fn served_routes(&self) -> Vec<Arc<str>> {
        let models = self.offers.as_ref().map(|offers| offers.models());
        let routes = models.into_iter().flatten().flat_map(|model| model.routes);
        routes.map(|route| route.name.into()).collect()
    }

    fn report(&self, name: &Arc<str>, rows: &[RouteHour], breakers: &[NodeBreaker]) -> RouteReport {
        let of_route = breakers.iter().filter(|breaker| breaker.report.route == *name);
        let last = rows.iter().filter(|row| row.last_error.is_some()).max_by_key(|row| row.last_at);
        RouteReport {
            name: Arc::clone(name),
            is_served: self.served_routes().contains(name),
            sums: AttemptSums::of(rows.iter()),
            last_error: last.and_then(|row| Some((row.last_at, row.last_error.clone()?))),
            failing_since: failing_since(rows),
            breakers: of_route.cloned().collect(),
        }
    }
}

/// First failure after the last answer. A refusal of a request is an answer of the route.
fn failing_since(rows: &[RouteHour]) -> Option<Timestamp> {
    let works = |row: &&RouteHour| {
        matches!(row.outcome, AttemptOutcome::Answered | AttemptOutcome::Refused)
    };
    let answered = rows.iter().filter(works).map(|row| row.last_at).max();
    let is_later = |at: Timestamp| answered.is_none_or(|answered| at > answered);
    let failing = rows.iter().filter(|row| row.outcome.is_failure() && is_later(row.last_at));
    // A node that failed before another one had an answer goes on failing from that answer on.
    let since = failing.filter_map(|row| row.failing_since);
    since.map(|since| answered.map_or(since, |answered| since.max(answered))).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::model::PublicModelId;

    fn row(outcome: AttemptOutcome, attempts: u64, since: Option<i64>, last_at: i64) -> RouteHour {
        RouteHour {
            hour: Timestamp::from_micros(0),
            route: "upstream/large".into(),
            model: PublicModelId::try_from("a/b").unwrap(),
            outcome,
            attempts,
            ms_sum: 0,
            latencies: Latencies::default(),
            first_token: Latencies::default(),
            failing_since: since.map(Timestamp::from_micros),
            last_at: Timestamp::from_micros(last_at),
            last_error: None,
        }
    }

    #[test]
    fn a_route_fails_since_the_first_failure_after_its_last_answer() {
        use AttemptOutcome::{Answered, Cut, NotRun, Refused, Unknown};
        for (rows, since) in [
            (vec![], None),
            (vec![row(Answered, 1, None, 9)], None),
            (vec![row(Answered, 1, None, 9), row(NotRun, 1, Some(5), 8)], None),
            (vec![row(Refused, 1, None, 9), row(NotRun, 1, Some(5), 8)], None),
            (vec![row(Answered, 1, None, 4), row(NotRun, 3, Some(5), 8)], Some(5)),
            (vec![row(Cut, 1, None, 9), row(Unknown, 3, Some(5), 8)], Some(5)),
            (vec![row(NotRun, 3, Some(5), 8), row(Unknown, 3, Some(2), 8)], Some(2)),
            (vec![row(Answered, 1, None, 6), row(NotRun, 3, Some(5), 8)], Some(6)),
        ] {
            assert_eq!(failing_since(&rows), since.map(Timestamp::from_micros), "{rows:?}");
        }
    }

    #[test]
    fn the_error_rate_leaves_refused_requests_out() {
        use AttemptOutcome::{Answered, NotRun, Refused};
        let rows = [row(Answered, 3, None, 1), row(NotRun, 1, None, 1), row(Refused, 96, None, 1)];
        assert_eq!(AttemptSums::of(rows.iter()).failed_per_mille(), Some(250));
        assert_eq!(AttemptSums::default().failed_per_mille(), None);
    }
}
