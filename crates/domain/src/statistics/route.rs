//! Statistics of routes: attempts by the hour, the newest failures, and the circuit breakers of each node.
//!
//! The note of a failure is for operators. It stays in these rows: a row of the ledger, a log, a metric, a span and an
//! answer to a caller never have it.

use std::sync::Arc;

use super::FailureNote;
use crate::model::PublicModelId;
use crate::statistics::Latencies;
use crate::{NodeName, Timestamp};

/// Failures of a route that are kept.
pub const FAILURES_KEPT: usize = 20;

/// Outcome of one attempt on a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttemptOutcome {
    /// The provider answered.
    Answered,
    /// The provider refused the request: its caller's fault, and no failure of the route.
    Refused,
    /// The gateway or its caller ended the call.
    Cut,
    /// Failed, and proven not run.
    NotRun,
    /// Failed, with an unknown outcome.
    Unknown,
}

impl AttemptOutcome {
    /// Every outcome.
    pub const ALL: [Self; 5] =
        [Self::Answered, Self::Refused, Self::Cut, Self::NotRun, Self::Unknown];

    /// Name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Cut => "cut",
            Self::NotRun => "not_run",
            Self::Unknown => "unknown",
        }
    }

    /// True for a failure of the route.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        match self {
            Self::NotRun | Self::Unknown => true,
            Self::Answered | Self::Refused | Self::Cut => false,
        }
    }
}

/// Attempts on one route for one model with one outcome, in one hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteHour {
    /// Beginning of the hour.
    pub hour: Timestamp,
    /// Name of the route: the configured provider and its model.
    pub route: Arc<str>,
    /// Public model.
    pub model: PublicModelId,
    /// Outcome of these attempts.
    pub outcome: AttemptOutcome,
    /// Number of the attempts.
    pub attempts: u64,
    /// Sum of their latencies, in milliseconds.
    pub ms_sum: u64,
    /// Latencies of whole calls.
    pub latencies: Latencies,
    /// Latencies to the first token, of streamed calls that had one.
    pub first_token: Latencies,
    /// Moment of the first failure since the last answer; only of failures.
    pub failing_since: Option<Timestamp>,
    /// Moment of the last of them.
    pub last_at: Timestamp,
    /// Note of the last failure.
    pub last_error: Option<FailureNote>,
}

/// Key of a row of attempts.
pub type RouteHourKey = (Timestamp, Arc<str>, PublicModelId, AttemptOutcome);

impl RouteHour {
    /// Key of the row.
    #[must_use]
    pub fn key(&self) -> RouteHourKey {
        (self.hour, Arc::clone(&self.route), self.model.clone(), self.outcome)
    }

    /// Adds attempts of the same key.
    pub fn add(&mut self, more: &Self) {
        self.attempts = self.attempts.saturating_add(more.attempts);
        self.ms_sum = self.ms_sum.saturating_add(more.ms_sum);
        self.latencies.add(&more.latencies);
        self.first_token.add(&more.first_token);
        // Nodes see the same streak from different failures on: it began with the earlier one. A streak that began
        // after the last attempt of the other row is a new one.
        let (old, new) = if more.last_at >= self.last_at { (&*self, more) } else { (more, &*self) };
        self.failing_since = match (old.failing_since, new.failing_since) {
            (Some(old_since), Some(new_since)) if new_since <= old.last_at => {
                Some(old_since.min(new_since))
            }
            (old_since, new_since) => new_since.or(old_since),
        };
        if more.last_at >= self.last_at {
            self.last_at = more.last_at;
            if more.last_error.is_some() {
                self.last_error.clone_from(&more.last_error);
            }
        }
    }
}

/// A failed attempt on a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteFailure {
    /// Name of the route.
    pub route: Arc<str>,
    /// Moment of the failure.
    pub at: Timestamp,
    /// Public model.
    pub model: PublicModelId,
    /// Class of the failure, as attempts have it.
    pub class: String,
    /// Note for operators.
    pub error: FailureNote,
}

/// Circuit breaker of a route on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerReport {
    /// Name of the route.
    pub route: Arc<str>,
    /// State at the last change.
    pub state: BreakerCondition,
    /// Moment of the last change that this node has seen.
    pub since: Timestamp,
    /// Moment at which the next attempt is made, if the route is left alone.
    pub retry_at: Option<Timestamp>,
    /// Answers since then, counted up to [`Self::SUCCESSES_MAX`].
    pub successes_since: u32,
}

impl BreakerReport {
    /// Answers from which on no more are counted: a route that works is not written every second.
    pub const SUCCESSES_MAX: u32 = 100;
}

/// State of a circuit breaker, as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerCondition {
    /// Takes requests.
    Healthy,
    /// Left alone until its `retry_at`, then recovering.
    Open,
}

impl BreakerCondition {
    /// Every condition.
    pub const ALL: [Self; 2] = [Self::Healthy, Self::Open];

    /// Name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Open => "open",
        }
    }
}

/// Circuit breaker of a route on one node, as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeBreaker {
    /// Name of the node.
    pub node: NodeName,
    /// True while the lease of the process that reported it is live. The breaker's state is unknown otherwise.
    pub is_known: bool,
    /// Report of the node.
    pub report: BreakerReport,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures([since, last]: [i64; 2]) -> RouteHour {
        RouteHour {
            hour: Timestamp::from_micros(0),
            route: "upstream/large".into(),
            model: PublicModelId::try_from("acme/large").unwrap(),
            outcome: AttemptOutcome::Unknown,
            attempts: 1,
            ms_sum: 1,
            latencies: Latencies::default(),
            first_token: Latencies::default(),
            failing_since: Some(Timestamp::from_micros(since)),
            last_at: Timestamp::from_micros(last),
            last_error: None,
        }
    }

    #[test]
    fn streak_begins_with_the_first_failure_of_any_node() {
        for (one, other, expected) in [
            ([10, 20], [12, 30], 10),
            ([10, 20], [5, 30], 5),
            ([10, 20], [20, 30], 10),
            ([10, 20], [21, 30], 21),
        ] {
            for [first, second] in [[one, other], [other, one]] {
                let mut sum = failures(first);
                sum.add(&failures(second));
                let found = (sum.failing_since, sum.last_at);
                assert_eq!(
                    found,
                    (Some(Timestamp::from_micros(expected)), Timestamp::from_micros(30))
                );
            }
        }
    }
}
