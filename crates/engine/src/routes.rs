//! Routes: the provider's model that a request is sent to, and the order in which it tries others.
//!
//! | part | decision |
//! |---|---|
//! | [`circuit_breaker`] | whether a route takes calls, by the outcomes of its last calls |
//! | [`choice`] | the route among the open ones: lowest priority, then by weight |
//! | [`route_state`] | calls in flight and the breaker, shared by all models with the same provider's same model |
//! | [`RoutePlan`] | the routes that one request has left, none of them twice |
//!
//! Choosing and taking are two steps: the choice reads all routes under no common lock, and a route may be full by
//! the time it is taken. Then the request chooses again, at most [`RACES_MAX`] times more than it has routes. The
//! first permit is taken before the claim: a request that no route can take is not bound, and holds no money.
//!
//! A plan never decides that a next route may be tried: that needs proof that the last one did not run, which is
//! judged at the call.

mod choice;
mod circuit_breaker;
mod route_series;
mod route_state;

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::ClaimId;
use holdfast_domain::operation::Attempt;
use holdfast_domain::request::Request;
use tokio::time::Instant;

use self::choice::{choose, draw};
pub use self::circuit_breaker::BreakerRules;
pub(crate) use self::circuit_breaker::CallOutcome;
use self::route_state::RouteUnavailable;
pub(crate) use self::route_state::{Permit, RouteState};

/// Races for a chosen route that one request may lose, beyond one try of each route.
const RACES_MAX: usize = 16;

/// Time until a request can try one of these routes. Zero if it can try one now, also as the last
/// resort, or if one is only full: its calls may end at any time.
pub(crate) fn time_to_next(routes: &[Arc<RouteState>], request: &Request) -> Duration {
    let now = Instant::now();
    let able = routes.iter().filter(|route_state| route_state.can(request).is_ok());
    let times = able.map(|route_state| match route_state.unavailability(now) {
        Some(RouteUnavailable::Cooling(until)) => until.saturating_duration_since(now),
        Some(RouteUnavailable::Full) | None => Duration::ZERO,
    });
    times.min().unwrap_or(Duration::ZERO)
}

/// Plan of one request over the routes of its model; no route is taken twice.
#[derive(Debug)]
pub(crate) struct RoutePlan {
    /// Candidates that are left, in the order of the configuration.
    left: Vec<Arc<RouteState>>,
    rules: BreakerRules,
    random: u64,
    draws: u64,
    /// Permit that was taken before the claim, until the run takes it over.
    first: Option<Permit>,
}

/// Route that a request could not get, if no other route took it either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedRoute {
    /// Name of the route: the configured provider and its model.
    pub route: Arc<str>,
    /// Class of the obstacle, as attempts and logs have it.
    pub class: &'static str,
    /// Time until the obstacle is gone, if known: the rest of a cool-down.
    pub after: Option<Duration>,
}

impl RoutePlan {
    /// Takes the first permit, before the key is bound: a request that gets none holds no money.
    /// The random claim id is the seed that decides among equals.
    pub(crate) fn reserve_first(
        lanes: &[Arc<RouteState>],
        rules: BreakerRules,
        claim: ClaimId,
        request: &Request,
    ) -> Result<Self, SkippedRoute> {
        let [.., a, b, c, d, e, f, g, h] = claim.to_bytes();
        let random = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let mut route_plan = Self { left: lanes.to_vec(), rules, random, draws: 0, first: None };
        route_plan.first = route_plan.take(request);
        let passed_over =
            if route_plan.first.is_none() { route_plan.first_available() } else { None };
        passed_over.map_or(Ok(route_plan), Err)
    }

    /// Takes the next permit; `None` if no route is left that can and may take this request.
    pub(crate) fn next(&mut self, request: &Request) -> Option<Permit> {
        self.first.take().or_else(|| self.take(request))
    }

    /// Lists the routes that were full or cooling as attempts that never ran, for the row.
    pub(crate) fn skipped_attempts(&self) -> Vec<Attempt> {
        let now = Instant::now();
        let untried = |route_state: &Arc<RouteState>| {
            let class = route_state.unavailability(now)?.label().into();
            let route = Arc::clone(&route_state.name);
            let latency = Duration::ZERO;
            Some(Attempt { route, class, latency, may_be_billed: false, reason: None })
        };
        self.left.iter().filter_map(untried).collect()
    }

    fn take(&mut self, request: &Request) -> Option<Permit> {
        // Bounded: each turn removes a route that cannot do it, or loses a race; a route is never
        // waited for.
        for _look in 0..self.left.len().saturating_add(RACES_MAX) {
            let now = Instant::now();
            let candidates: Vec<_> =
                self.left.iter().map(|route_state| route_state.candidate(now)).collect();
            self.draws = self.draws.wrapping_add(1);
            let at = choose(&candidates, draw(self.random, self.draws))?;
            let (route_state, chosen) = (self.left.get(at)?, candidates.get(at)?);
            if route_state.can(request).is_err() {
                self.left.remove(at);
            } else if let Some(permit) =
                RouteState::try_acquire(route_state, chosen.rank, self.rules)
            {
                self.left.remove(at);
                return Some(permit);
            }
        }
        None
    }

    /// Route that is likely to be free first: a full one goes before any that cools.
    fn first_available(&self) -> Option<SkippedRoute> {
        let now = Instant::now();
        let shut = self
            .left
            .iter()
            .filter_map(|route_state| Some((route_state, route_state.unavailability(now)?)));
        let (route_state, shut) = shut.min_by_key(|(_lane, shut)| *shut)?;
        let after = match shut {
            RouteUnavailable::Full => None,
            RouteUnavailable::Cooling(until) => Some(until.saturating_duration_since(now)),
        };
        Some(SkippedRoute { route: Arc::clone(&route_state.name), class: shut.label(), after })
    }
}
