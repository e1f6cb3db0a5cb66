//! Collector of attempts on routes: counts by route, model and outcome, the newest failures, and changes of breakers.
//!
//! An attempt costs a lock and a row in memory. The rows are as many as the configuration has routes and models for each
//! hour that is not written, [`ROWS_MAX`] at most; the failures of a route have a bound, so that no flood of failures grows here or in the store.
//!
//! Notes of failures go from here to the store and nowhere else.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_domain::Timestamp;
use holdfast_domain::admin::offer::{ModelOffer, RouteHealth, RouteOffer};
use holdfast_domain::model::PublicModelId;
use holdfast_domain::ports::FailureNote;
use holdfast_domain::statistics::{
    AttemptOutcome, BreakerCondition, BreakerReport, FAILURES_KEPT, Latencies, RouteFailure,
    RouteHour, hour_of,
};

/// Rows of all routes that are counted between two writes; the rest is dropped while the store takes no row.
const ROWS_MAX: usize = 8_192;

/// Difference of two computations of one retry moment, which a clock makes.
const RETRY_TOLERANCE: Duration = Duration::from_secs(1);

/// Facts of one attempt on a route.
#[derive(Debug)]
pub(crate) struct AttemptFacts<'a> {
    pub(crate) route: &'a Arc<str>,
    pub(crate) model: &'a PublicModelId,
    pub(crate) outcome: AttemptOutcome,
    pub(crate) took: Duration,
    pub(crate) first_token: Option<Duration>,
    /// Class and note of a failure.
    pub(crate) failure: Option<(&'static str, FailureNote)>,
}

/// Attempts that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct RouteCollector(Mutex<RouteBuffer>);

/// Attempts between two writes. Few routes: comparing their names is cheaper than a keyed hash.
#[derive(Debug, Default)]
struct RouteBuffer {
    rows: RouteRows,
    failures: BTreeMap<Arc<str>, VecDeque<RouteFailure>>,
    /// First failure of each route since its last answer: kept over writes.
    failing: BTreeMap<Arc<str>, Timestamp>,
    breakers: Breakers,
}

/// Rows that are not written, by route.
#[derive(Debug, Default)]
struct RouteRows {
    by_route: BTreeMap<Arc<str>, Vec<RouteHour>>,
    /// Rows of all routes.
    count: usize,
}

/// Breakers as they were last seen, and as they were last written.
#[derive(Debug, Default)]
struct Breakers {
    seen: Vec<BreakerReport>,
    written: Option<Vec<BreakerReport>>,
    /// Answers since the last flush.
    answers: BTreeMap<Arc<str>, u32>,
}

impl RouteCollector {
    /// Notes an attempt that has ended.
    pub(crate) fn note(&self, at: Timestamp, facts: AttemptFacts<'_>) {
        let AttemptFacts { route, model, outcome, took, first_token, failure } = facts;
        let mut collected = self.lock();
        let RouteBuffer { rows, failures, failing, breakers } = &mut *collected;
        let failing_since = match outcome {
            AttemptOutcome::Answered | AttemptOutcome::Refused => {
                if !failing.is_empty() {
                    failing.remove(route);
                }
                let answers = breakers.answers.entry(Arc::clone(route)).or_insert(0);
                *answers = answers.saturating_add(1);
                None
            }
            AttemptOutcome::Cut => None,
            AttemptOutcome::NotRun | AttemptOutcome::Unknown => {
                Some(*failing.entry(Arc::clone(route)).or_insert(at))
            }
        };
        let mut one = RouteHour {
            hour: hour_of(at),
            route: Arc::clone(route),
            model: model.clone(),
            outcome,
            attempts: 1,
            ms_sum: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            latencies: Latencies::default(),
            first_token: Latencies::default(),
            failing_since,
            last_at: at,
            last_error: failure.as_ref().map(|(_, note)| note.clone()),
        };
        one.latencies.observe(took);
        first_token.into_iter().for_each(|took| one.first_token.observe(took));
        rows.add(one);
        if let Some((class, error)) = failure {
            let (route, model) = (Arc::clone(route), model.clone());
            let class = class.to_owned();
            keep(failures, RouteFailure { route, at, model, class, error });
        }
    }

    /// Takes the rows that are not written.
    pub(crate) fn take_hours(&self) -> Vec<RouteHour> {
        std::mem::take(&mut self.lock().rows).by_route.into_values().flatten().collect()
    }

    /// Takes rows back that were not written.
    pub(crate) fn put_hours_back(&self, hours: Vec<RouteHour>) {
        let mut collected = self.lock();
        hours.into_iter().for_each(|row| collected.rows.add(row));
    }

    /// Takes the failures that are not written, the oldest of a route first.
    pub(crate) fn take_failures(&self) -> Vec<RouteFailure> {
        std::mem::take(&mut self.lock().failures).into_values().flatten().collect()
    }

    /// Takes failures back that were not written.
    pub(crate) fn put_failures_back(&self, failures: Vec<RouteFailure>) {
        let mut collected = self.lock();
        for failure in failures.into_iter().rev() {
            let kept = collected.failures.entry(Arc::clone(&failure.route)).or_default();
            if kept.len() < FAILURES_KEPT {
                kept.push_front(failure);
            }
        }
    }

    /// Looks at the breakers of the configuration; returns them if they have changed since they were written.
    pub(crate) fn breakers(
        &self,
        offers: &[ModelOffer],
        now: Timestamp,
    ) -> Option<Vec<BreakerReport>> {
        let mut collected = self.lock();
        let Breakers { seen, written, answers } = &mut collected.breakers;
        let mut reports: Vec<BreakerReport> = Vec::new();
        for offer in offers.iter().flat_map(|offer| &offer.routes) {
            if reports.iter().all(|report| *report.route != *offer.name) {
                let before = seen.iter().find(|report| *report.route == *offer.name);
                let answers = answers.get(&*offer.name).copied().unwrap_or(0);
                reports.push(report(offer, before, answers, now));
            }
        }
        answers.clear();
        seen.clone_from(&reports);
        (written.as_ref() != Some(&reports)).then_some(reports)
    }

    /// Notes that these breakers were written.
    pub(crate) fn set_written(&self, reports: Vec<BreakerReport>) {
        self.lock().breakers.written = Some(reports);
    }

    fn lock(&self) -> MutexGuard<'_, RouteBuffer> {
        // Counts are whole after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Report of a breaker, which goes on with the one before unless its state has changed.
fn report(
    offer: &RouteOffer,
    before: Option<&BreakerReport>,
    answers: u32,
    now: Timestamp,
) -> BreakerReport {
    let retry_at = offer.cools_for.map(|rest| now.after(rest));
    let was_open = before.is_some_and(|before| before.state == BreakerCondition::Open);
    let state = match offer.health {
        RouteHealth::Well => BreakerCondition::Healthy,
        RouteHealth::Probe | RouteHealth::LastResort | RouteHealth::LeftAlone => {
            BreakerCondition::Open
        }
    };
    let is_same = |before: &&BreakerReport| {
        // The rest of a cool-down and the clock give the same moment, but for the time between the two readings.
        let is_retry_same = match (before.retry_at, retry_at) {
            (Some(one), Some(other)) => {
                one.after(RETRY_TOLERANCE) >= other && other.after(RETRY_TOLERANCE) >= one
            }
            // Its time is over: the next attempt decides.
            (_, None) => was_open || state == BreakerCondition::Healthy,
            (None, Some(_)) => false,
        };
        before.state == state && is_retry_same
    };
    match before.filter(is_same) {
        Some(before) => {
            let successes = before.successes_since.saturating_add(answers);
            BreakerReport {
                successes_since: successes.min(BreakerReport::SUCCESSES_MAX),
                ..before.clone()
            }
        }
        None => {
            let since = before.filter(|before| before.state == state);
            BreakerReport {
                route: (*offer.name).into(),
                state,
                since: since.map_or(now, |before| before.since),
                retry_at,
                successes_since: 0,
            }
        }
    }
}

impl RouteRows {
    /// Adds a row to that of its key, or as a new one if there is room.
    fn add(&mut self, one: RouteHour) {
        let is_same = |row: &&mut RouteHour| {
            row.outcome == one.outcome && row.hour == one.hour && row.model == one.model
        };
        let of_route = self.by_route.get_mut(&one.route);
        if let Some(row) = of_route.and_then(|rows| rows.iter_mut().find(is_same)) {
            row.add(&one);
        } else if self.count < ROWS_MAX {
            self.by_route.entry(Arc::clone(&one.route)).or_default().push(one);
            self.count = self.count.saturating_add(1);
        }
    }
}

fn keep(failures: &mut BTreeMap<Arc<str>, VecDeque<RouteFailure>>, failure: RouteFailure) {
    let kept = failures.entry(Arc::clone(&failure.route)).or_default();
    if kept.len() >= FAILURES_KEPT {
        kept.pop_front();
    }
    kept.push_back(failure);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(collector: &RouteCollector, route: &str, at: i64, outcome: AttemptOutcome) {
        let route = Arc::from(route);
        let note = FailureNote::new(&format!("HTTP 503 {at}"));
        let facts = AttemptFacts {
            route: &route,
            model: &PublicModelId::try_from("acme/large").unwrap(),
            outcome,
            took: Duration::from_millis(5),
            first_token: None,
            failure: outcome.is_failure().then_some(("unknown_status", note)),
        };
        collector.note(Timestamp::from_micros(at), facts);
    }

    /// Beginning of the streak and number of the failures that are not written.
    fn streak(collector: &RouteCollector) -> Option<(i64, u64)> {
        let hours = collector.take_hours();
        let failed = hours.iter().find(|row| row.outcome == AttemptOutcome::Unknown)?;
        Some((failed.failing_since?.as_micros(), failed.attempts))
    }

    #[test]
    fn streak_goes_on_over_writes_and_ends_with_an_answer() {
        let collector = RouteCollector::default();
        let fail = |at| note(&collector, "one", at, AttemptOutcome::Unknown);
        fail(1);
        fail(2);
        assert_eq!(streak(&collector), Some((1, 2)));
        note(&collector, "one", 3, AttemptOutcome::Cut);
        note(&collector, "two", 3, AttemptOutcome::Answered);
        fail(4);
        assert_eq!(streak(&collector), Some((1, 1)));
        note(&collector, "one", 5, AttemptOutcome::Refused);
        fail(6);
        note(&collector, "one", 7, AttemptOutcome::Answered);
        fail(8);
        fail(9);
        assert_eq!(streak(&collector), Some((8, 3)));
    }

    #[test]
    fn rows_of_all_routes_have_one_bound() {
        let collector = RouteCollector::default();
        for n in 0..ROWS_MAX + 10 {
            note(&collector, &format!("route-{}", n / 2), 1, AttemptOutcome::ALL[n % 2]);
        }
        note(&collector, "route-0", 2, AttemptOutcome::ALL[0]);
        let hours = collector.take_hours();
        assert_eq!(hours.len(), ROWS_MAX);
        let attempts: u64 = hours.iter().map(|row| row.attempts).sum();
        assert_eq!(attempts, u64::try_from(ROWS_MAX).unwrap() + 1, "a row that is there counts on");
        note(&collector, "later", 3, AttemptOutcome::Answered);
        assert_eq!(collector.take_hours().len(), 1, "a write makes room");
    }

    #[test]
    fn rows_that_were_not_written_come_with_the_next_ones() {
        let collector = RouteCollector::default();
        note(&collector, "one", 1, AttemptOutcome::Unknown);
        let hours = collector.take_hours();
        note(&collector, "one", 2, AttemptOutcome::Unknown);
        collector.put_hours_back(hours);
        let hours = collector.take_hours();
        let last_error = hours[0].last_error.as_ref().map(FailureNote::as_str);
        assert_eq!((hours.len(), hours[0].attempts, last_error), (1, 2, Some("HTTP 503 2")));
        assert_eq!(hours[0].failing_since, Some(Timestamp::from_micros(1)));
    }

    #[test]
    fn newest_failures_of_a_route_are_kept_in_their_order() {
        let collector = RouteCollector::default();
        (1..=15).for_each(|at| note(&collector, "one", at, AttemptOutcome::Unknown));
        let failures = collector.take_failures();
        (16..=25).for_each(|at| note(&collector, "one", at, AttemptOutcome::NotRun));
        collector.put_failures_back(failures);
        let kept = collector.take_failures();
        let kept: Vec<_> = kept.iter().map(|failure| failure.at.as_micros()).collect();
        assert_eq!(kept, (6..=25).collect::<Vec<_>>());
    }
}
