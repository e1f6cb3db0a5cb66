//! Collector of attempts on routes: counts by route, model and outcome, the newest failures, and changes of breakers.
//!
//! An attempt costs a lock and a row in memory. The rows are as many as the configuration has routes and models, and the
//! failures of a route have a bound, so that no flood of failures grows here or in the store.
//!
//! Notes of failures go from here to the store and nowhere else.

use std::collections::{HashMap, VecDeque};
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

/// Rows that are counted between two writes; the rest is dropped while the store takes nothing.
const ROWS_MAX: usize = 8_192;

/// Difference of two computations of one retry moment, which a clock makes.
const RETRY_TOLERANCE: Duration = Duration::from_secs(1);

/// One attempt on a route.
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

/// Attempts between two writes.
#[derive(Debug, Default)]
struct RouteBuffer {
    rows: HashMap<Arc<str>, Vec<RouteHour>>,
    failures: HashMap<Arc<str>, VecDeque<RouteFailure>>,
    /// First failure of each route since its last answer: kept over writes.
    failing: HashMap<Arc<str>, Timestamp>,
    breakers: Breakers,
}

/// Breakers as they were last seen, and as they were last written.
#[derive(Debug, Default)]
struct Breakers {
    seen: Vec<BreakerReport>,
    written: Option<Vec<BreakerReport>>,
    /// Answers since the last look.
    answers: HashMap<Arc<str>, u32>,
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
        add(rows, one);
        if let Some((class, error)) = failure {
            let (route, model) = (Arc::clone(route), model.clone());
            let class = class.to_owned();
            keep(failures, RouteFailure { route, at, model, class, error });
        }
    }

    /// Takes the rows that are not written.
    pub(crate) fn take_hours(&self) -> Vec<RouteHour> {
        std::mem::take(&mut self.lock().rows).into_values().flatten().collect()
    }

    /// Takes rows back that were not written.
    pub(crate) fn put_hours_back(&self, hours: Vec<RouteHour>) {
        let mut collected = self.lock();
        hours.into_iter().for_each(|row| add(&mut collected.rows, row));
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

fn add(rows: &mut HashMap<Arc<str>, Vec<RouteHour>>, one: RouteHour) {
    let count = rows.len();
    let of_route = match rows.get_mut(&one.route) {
        Some(of_route) => of_route,
        None if count >= ROWS_MAX => return,
        None => rows.entry(Arc::clone(&one.route)).or_default(),
    };
    let is_same = |row: &&mut RouteHour| {
        row.outcome == one.outcome && row.hour == one.hour && row.model == one.model
    };
    let has_room = of_route.len() < ROWS_MAX;
    match of_route.iter_mut().find(is_same) {
        Some(row) => row.add(&one),
        None if has_room => of_route.push(one),
        None => {}
    }
}

fn keep(failures: &mut HashMap<Arc<str>, VecDeque<RouteFailure>>, failure: RouteFailure) {
    let kept = failures.entry(Arc::clone(&failure.route)).or_default();
    if kept.len() >= FAILURES_KEPT {
        kept.pop_front();
    }
    kept.push_back(failure);
}
