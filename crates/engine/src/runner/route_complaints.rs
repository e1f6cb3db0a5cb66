//! Complaints about routes that turned requests away lately, or whose usage is not as they reported it: each is
//! logged for the operator once in a while, not with every request. It decides nothing: the next request tries the
//! route again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use holdfast_domain::Operation;
use holdfast_domain::ports::{NotRunProof, UnreadableReason};
use holdfast_domain::usage::UsageReasons;
use tokio::time::Instant;

use crate::catalogue::Route;

/// Interval between two log lines about the same failure of the same route.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// Kind of a complaint; each kind of each route has an interval of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ComplaintKind {
    NotRun(NotRunProof),
    Unreadable(UnreadableReason),
    Usage(UsageReasons),
}

/// Log limiter: the time of the last line, by route and kind of complaint.
#[derive(Debug, Default)]
pub(crate) struct RouteComplaints(Mutex<HashMap<(Route, ComplaintKind), Instant>>);

impl RouteComplaints {
    /// Logs that a route did not take a request, which goes on to the next one. An account that was
    /// turned away is an error: only the operator can mend it.
    pub(crate) fn report_not_run(&self, route: &Route, why: NotRunProof, operation: &Operation) {
        if !self.is_news(route, ComplaintKind::NotRun(why), Instant::now()) {
            return;
        }
        let (provider, model, class) = (&route.provider, &route.model, why.label());
        match why {
            NotRunProof::Account => tracing::error!(
                operation.id = %operation.id,
                model = %operation.model,
                provider.name = %provider,
                provider.model = %model,
                class,
                "a provider turned its account or route away"
            ),
            NotRunProof::Connect | NotRunProof::RateLimited | NotRunProof::Overloaded => {
                tracing::warn!(
                    operation.id = %operation.id,
                    model = %operation.model,
                    provider.name = %provider,
                    provider.model = %model,
                    class,
                    "a route did not take a request: it was skipped"
                );
            }
        }
    }

    /// Logs an answer that could not be read, by its reason and never by its content.
    pub(crate) fn report_unreadable(
        &self,
        route: &Route,
        why: UnreadableReason,
        operation: &Operation,
    ) {
        if self.is_news(route, ComplaintKind::Unreadable(why), Instant::now()) {
            tracing::warn!(
                operation.id = %operation.id,
                model = %operation.model,
                provider.name = %route.provider,
                provider.model = %route.model,
                reason = %why,
                "an answer of a provider could not be read"
            );
        }
    }

    /// Logs usage that is not as its provider reported it.
    pub(crate) fn report_usage(&self, route: &Route, reasons: UsageReasons, operation: &Operation) {
        if self.is_news(route, ComplaintKind::Usage(reasons), Instant::now()) {
            tracing::warn!(
                operation.id = %operation.id,
                model = %operation.model,
                provider.name = %route.provider,
                provider.model = %route.model,
                reasons = %reasons,
                "the usage of a run is not as its provider reported it"
            );
        }
    }

    /// True if the interval is over; starts a new one then. Older entries are dropped, so that routes which a
    /// reload took away do not stay.
    fn is_news(&self, route: &Route, what: ComplaintKind, now: Instant) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Each time: there are as many entries as failures of routes within one interval, which are few.
        logged.retain(|_failure, at| now.duration_since(*at) < LOG_INTERVAL);
        let failure = (route.clone(), what);
        let is_news = !logged.contains_key(&failure);
        if is_news {
            logged.insert(failure, now);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_of_each_route_is_told_once_in_a_while() {
        let route = |provider: &str| Route {
            provider: provider.to_owned(),
            model: "m".into(),
            priority: 0,
            weight: 1,
            concurrency: None,
            cost: None,
        };
        let (turned_away, start) = (RouteComplaints::default(), Instant::now());
        for (provider, why, after, is_news) in [
            ("one", NotRunProof::Connect, 0, true),
            ("one", NotRunProof::Connect, 0, false),
            ("two", NotRunProof::Connect, 1, true),
            ("one", NotRunProof::RateLimited, 2, true),
            ("one", NotRunProof::Connect, 29, false),
            ("one", NotRunProof::Connect, 30, true),
            ("two", NotRunProof::Connect, 30, false),
            ("one", NotRunProof::Connect, 59, false),
            ("two", NotRunProof::Connect, 59, true),
        ] {
            let now = start + Duration::from_secs(after);
            let is_reported =
                turned_away.is_news(&route(provider), ComplaintKind::NotRun(why), now);
            assert_eq!(is_reported, is_news, "{provider} {why:?} after {after} s");
        }
    }
}
