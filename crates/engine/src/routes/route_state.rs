//! State of a route: the provider that answers on it, its circuit breaker and its calls in flight.
//!
//! Breaker and count are this process's own, shared by all models that use the same provider's same
//! model, and stay across reloads as long as that provider does. A [`Permit`] is the right to one
//! call: it counts against the route's `concurrency` until it is dropped.
//!
//! Not here: which route a request takes.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use holdfast_domain::admin::offer::{RouteHealth, RouteOffer};
use holdfast_domain::debug_as;
use holdfast_domain::ports::{Provider, UnsupportedParam};
use holdfast_domain::request::Request;
use holdfast_domain::state::Origin;
use tokio::time::Instant;

use super::choice::{Candidate, Rank};
use super::circuit_breaker::{
    BreakerChange, BreakerRules, BreakerState, CallOutcome, CallToken, CircuitBreaker,
};
use super::route_series::RouteSeries;
use crate::catalogue::Route;

/// Route of a model, with its provider and its shared state.
#[derive(Debug)]
pub(crate) struct RouteState {
    pub(crate) route: Route,
    /// Name of the route in logs, attempts and metrics.
    pub(crate) name: Arc<str>,
    /// Provider that answers; `None` if no configured provider has the name.
    pub(crate) provider: Option<Arc<dyn Provider>>,
    traffic: Arc<SharedRouteState>,
}

/// State of one provider's model, shared by all models that route there and kept over reloads.
/// A std mutex: never held across an await.
#[derive(Debug)]
struct SharedRouteState {
    load: Mutex<RouteLoad>,
    series: OnceLock<RouteSeries>,
}

#[derive(Debug)]
struct RouteLoad {
    breaker: CircuitBreaker,
    calls: u32,
    /// Removed mark: no configuration has the route any more, and its metrics stay as they are.
    is_gone: bool,
}

/// Permit to call a route once; it counts as a call in flight until it is dropped.
pub(crate) struct Permit {
    pub(crate) route_state: Arc<RouteState>,
    call: Mutex<CallToken>,
    rules: BreakerRules,
}

/// Obstacle to taking a route; the order of values is the order in which they are likely to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RouteUnavailable {
    /// Limit of concurrent calls reached.
    Full,
    /// `Retry-After` of the provider until then.
    Cooling(Instant),
}

impl RouteUnavailable {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Full => "passed_over_full",
            Self::Cooling(_) => "passed_over_cooling",
        }
    }
}

impl RouteState {
    /// Creates a route, and shares the state of an older one with the same provider's same model: a
    /// reload must not forget a cool-down, nor the calls in flight.
    pub(crate) fn new<'a>(
        route: &Route,
        provider: Option<&Arc<dyn Provider>>,
        mut others: impl Iterator<Item = &'a Arc<Self>>,
    ) -> Self {
        // The provider by identity: one that was configured anew begins without a history.
        let same = others.find(|route_state| {
            route_state.route.is_same(route) && route_state.has_provider(provider)
        });
        let fresh = || {
            let load = RouteLoad { breaker: CircuitBreaker::new(), calls: 0, is_gone: false };
            Arc::new(SharedRouteState { load: Mutex::new(load), series: OnceLock::new() })
        };
        let traffic = same.map_or_else(fresh, |route_state| Arc::clone(&route_state.traffic));
        let (name, provider) = (route.name().into(), provider.map(Arc::clone));
        Self { route: route.clone(), name, provider, traffic }
    }

    fn has_provider(&self, provider: Option<&Arc<dyn Provider>>) -> bool {
        match (&self.provider, provider) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    pub(crate) fn can(&self, request: &Request) -> Result<(), UnsupportedParam> {
        self.provider.as_ref().map_or(Ok(()), |provider| provider.check_supported(request))
    }

    /// Bytes of prompt that its provider adds to a request's own.
    pub(crate) fn added_prompt_bytes(&self, request: &Request) -> u64 {
        self.provider.as_ref().map_or(0, |provider| provider.added_prompt_bytes(request))
    }

    /// True if its provider repeats a call under its key after an unknown outcome.
    pub(crate) fn repeats_calls(&self) -> bool {
        self.provider.as_ref().is_some_and(|provider| provider.repeats_calls())
    }

    /// Origin of provider states that its model makes and takes; `None` if it has none.
    pub(crate) fn origin(&self) -> Option<Origin> {
        let shape = self.provider.as_ref()?.state_shape()?;
        Some(Origin::of(shape, &self.route.provider, &self.route.model))
    }

    /// Begins its metrics, or goes on with those that the shared state has already.
    pub(crate) fn begin_metrics(&self) {
        self.traffic.lock().is_gone = false;
        let Route { provider, model, .. } = &self.route;
        self.traffic.series.get_or_init(|| RouteSeries::begin(provider, model));
    }

    /// Ends its metrics after a reload, unless one of the new routes shares its state: the gauge of
    /// a route that is gone must not stay at cooling.
    pub(crate) fn end_metrics<'a>(&self, mut others: impl Iterator<Item = &'a Arc<Self>>) {
        if !others.any(|route_state| Arc::ptr_eq(&route_state.traffic, &self.traffic)) {
            self.traffic.lock().is_gone = true;
            self.traffic.series.get().into_iter().for_each(RouteSeries::well);
        }
    }

    pub(super) fn candidate(&self, at: Instant) -> Candidate {
        let load = self.traffic.lock();
        let (is_full, standing) = (self.is_full(&load), load.breaker.state_at(at));
        drop(load);
        if is_full {
            self.traffic.series.get().into_iter().for_each(RouteSeries::full);
        }
        let rank = match standing {
            BreakerState::Well | BreakerState::Probe if !is_full => Rank::Ready,
            BreakerState::LastResort(until) if !is_full => Rank::LastResort(until),
            BreakerState::Well
            | BreakerState::Probe
            | BreakerState::LastResort(_)
            | BreakerState::LeftAlone(_) => Rank::Never,
        };
        Candidate { priority: self.route.priority, weight: self.route.weight, rank }
    }

    /// Takes a permit; `None` if the route is no longer as it was when it was chosen.
    pub(super) fn try_acquire(
        route_state: &Arc<Self>,
        chosen: Rank,
        rules: BreakerRules,
    ) -> Option<Permit> {
        // Looked at anew under the lock: what was chosen may have been taken, or have failed, since.
        let at = Instant::now();
        let mut load = route_state.traffic.lock();
        let is_as_chosen = match load.breaker.state_at(at) {
            BreakerState::Well | BreakerState::Probe => chosen == Rank::Ready,
            BreakerState::LastResort(_) => matches!(chosen, Rank::LastResort(_)),
            BreakerState::LeftAlone(_) => false,
        };
        if !is_as_chosen || route_state.is_full(&load) {
            return None;
        }
        // Count and token under one lock: of two that race for the last place, or for the probe,
        // one gets it.
        load.calls = load.calls.saturating_add(1);
        let call = Mutex::new(load.breaker.begin_call(at));
        drop(load);
        Some(Permit { route_state: Arc::clone(route_state), call, rules })
    }

    /// Obstacle to taking it now, if there is one.
    pub(super) fn unavailability(&self, at: Instant) -> Option<RouteUnavailable> {
        let load = self.traffic.lock();
        if self.is_full(&load) {
            return Some(RouteUnavailable::Full);
        }
        match load.breaker.state_at(at) {
            BreakerState::LeftAlone(until) => Some(RouteUnavailable::Cooling(until)),
            BreakerState::Well | BreakerState::Probe | BreakerState::LastResort(_) => None,
        }
    }

    /// The route as an operator sees it.
    pub(crate) fn offer(&self, at: Instant) -> RouteOffer {
        let load = self.traffic.lock();
        let (in_flight, state) = (load.calls, load.breaker.state_at(at));
        drop(load);
        let (health, until) = match state {
            BreakerState::Well => (RouteHealth::Well, None),
            BreakerState::Probe => (RouteHealth::Probe, None),
            BreakerState::LastResort(until) => (RouteHealth::LastResort, Some(until)),
            BreakerState::LeftAlone(until) => (RouteHealth::LeftAlone, Some(until)),
        };
        let Route { priority, weight, concurrency, .. } = self.route;
        RouteOffer {
            name: self.name.to_string(),
            priority,
            weight,
            concurrency,
            in_flight,
            health,
            cost: self.route.cost.clone(),
            cools_for: until.map(|until| until.saturating_duration_since(at)),
        }
    }

    fn is_full(&self, load: &RouteLoad) -> bool {
        self.route.concurrency.is_some_and(|most| load.calls >= most)
    }

    fn log_change(&self, changed: BreakerChange) {
        let Route { provider, model, .. } = &self.route;
        match changed {
            BreakerChange::Cooling(reason, time) => tracing::warn!(
                provider.name = %provider,
                provider.model = %model,
                reason = reason.label(),
                cool_down_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
                "a route is cooling down"
            ),
            BreakerChange::Well => tracing::info!(
                provider.name = %provider,
                provider.model = %model,
                "a route takes requests again"
            ),
        }
    }
}

impl SharedRouteState {
    fn lock(&self) -> MutexGuard<'_, RouteLoad> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_result(
        &self,
        call: &mut CallToken,
        outcome: CallOutcome,
        rules: &BreakerRules,
    ) -> Option<BreakerChange> {
        let mut load = self.lock();
        let changed = load.breaker.on_result(call, outcome, Instant::now(), rules);
        match (changed, self.series.get().filter(|_series| !load.is_gone)) {
            (Some(BreakerChange::Cooling(reason, _time)), Some(series)) => series.cooling(reason),
            (Some(BreakerChange::Well), Some(series)) => series.well(),
            (Some(_), None) | (None, _) => {}
        }
        changed
    }
}

impl Permit {
    /// Reports an outcome to the breaker, at any time of the call and more than once.
    pub(crate) fn report(&self, outcome: CallOutcome) {
        let mut call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.route_state.traffic.on_result(&mut call, outcome, &self.rules);
        drop(call);
        if let Some(changed) = changed {
            self.route_state.log_change(changed);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // A dropped call proves nothing, and gives its probe back: without that a route whose probe was cancelled
        // would be a last resort for good.
        self.report(CallOutcome::Nothing);
        let mut load = self.route_state.traffic.lock();
        load.calls = load.calls.saturating_sub(1);
    }
}

debug_as!(Permit as it: "Permit({})", it.route_state.name);
