//! One route with who answers on it, how it fares and how many calls it has. The last two are this
//! process's own, shared by all models that use the same provider's same model, and stay across reloads as
//! long as that provider does. Not which route a request takes.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use holdfast_domain::ports::{Provider, UnsupportedParam};
use holdfast_domain::request::Request;
use holdfast_domain::state::Origin;
use tokio::time::Instant;

use super::breaker::{
    BreakerChange, BreakerState, CallOutcome, CallToken, CircuitBreaker, CoolDown,
};
use super::choice::{Candidate, Rank};
use super::route_series::RouteSeries;
use crate::catalogue::Route;

/// A route of a model.
#[derive(Debug)]
pub(crate) struct RouteState {
    pub(crate) route: Route,
    /// What operators call the route.
    pub(crate) name: Arc<str>,
    /// `None`: no provider has the name.
    pub(crate) provider: Option<Arc<dyn Provider>>,
    traffic: Arc<SharedRouteState>,
}

/// What goes on on a route. A std mutex: never held across an await.
#[derive(Debug)]
struct SharedRouteState {
    now: Mutex<RouteLoad>,
    series: OnceLock<RouteSeries>,
}

#[derive(Debug)]
struct RouteLoad {
    health: CircuitBreaker,
    calls: u32,
    /// No configuration has it any more: nobody is told of it.
    is_gone: bool,
}

/// Leave to call a route once. It is a call of it until it is dropped.
pub(crate) struct Permit {
    pub(crate) lane: Arc<RouteState>,
    call: Mutex<CallToken>,
    rules: CoolDown,
}

/// Why a route may not be taken now: the sooner that ends the less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RouteUnavailable {
    /// It has as many calls as it may have.
    Full,
    /// Its provider wants to be left alone until then.
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
    /// A lane beside older ones: the same provider's same model has the same traffic.
    pub(crate) fn new<'a>(
        route: &Route,
        provider: Option<&Arc<dyn Provider>>,
        mut others: impl Iterator<Item = &'a Arc<Self>>,
    ) -> Self {
        let same = others.find(|lane| lane.route.is_same(route) && lane.has_provider(provider));
        let fresh = || {
            let now = RouteLoad { health: CircuitBreaker::new(), calls: 0, is_gone: false };
            Arc::new(SharedRouteState { now: Mutex::new(now), series: OnceLock::new() })
        };
        let traffic = same.map_or_else(fresh, |lane| Arc::clone(&lane.traffic));
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

    /// Where what its model wants back comes from and goes to; `None` where it wants nothing.
    pub(crate) fn origin(&self) -> Option<Origin> {
        let shape = self.provider.as_ref()?.state_shape()?;
        Some(Origin::of(shape, &self.route.provider, &self.route.model))
    }

    /// Shows how it fares, from now on.
    pub(crate) fn begin_metrics(&self) {
        self.traffic.lock().is_gone = false;
        let Route { provider, model, .. } = &self.route;
        self.traffic.series.get_or_init(|| RouteSeries::begin(provider, model));
    }

    /// Others take its place: where none of them has its traffic, nobody waits for it to cool.
    pub(crate) fn end_metrics<'a>(&self, mut others: impl Iterator<Item = &'a Arc<Self>>) {
        if !others.any(|lane| Arc::ptr_eq(&lane.traffic, &self.traffic)) {
            self.traffic.lock().is_gone = true;
            self.traffic.series.get().into_iter().for_each(RouteSeries::well);
        }
    }

    pub(super) fn candidate(&self, at: Instant) -> Candidate {
        let now = self.traffic.lock();
        let (is_full, standing) = (self.is_full(&now), now.health.state_at(at));
        drop(now);
        if is_full {
            self.traffic.series.get().into_iter().for_each(RouteSeries::full);
        }
        let rank = match standing {
            BreakerState::Open | BreakerState::Probe if !is_full => Rank::Open,
            BreakerState::Resort(until) if !is_full => Rank::Resort(until),
            BreakerState::Open
            | BreakerState::Probe
            | BreakerState::Resort(_)
            | BreakerState::Closed(_) => Rank::Never,
        };
        Candidate { priority: self.route.priority, weight: self.route.weight, rank }
    }

    /// Takes it; `None` where it is no longer what it was chosen as.
    pub(super) fn try_acquire(lane: &Arc<Self>, chosen: Rank, rules: CoolDown) -> Option<Permit> {
        // Looked at anew under the lock: what was chosen may have been taken, or have failed, since.
        let at = Instant::now();
        let mut now = lane.traffic.lock();
        let is_as_chosen = match now.health.state_at(at) {
            BreakerState::Open | BreakerState::Probe => chosen == Rank::Open,
            BreakerState::Resort(_) => matches!(chosen, Rank::Resort(_)),
            BreakerState::Closed(_) => false,
        };
        if !is_as_chosen || lane.is_full(&now) {
            return None;
        }
        now.calls = now.calls.saturating_add(1);
        let call = Mutex::new(now.health.begin_call(at));
        drop(now);
        Some(Permit { lane: Arc::clone(lane), call, rules })
    }

    /// What keeps it from being taken now.
    pub(super) fn unavailability(&self, at: Instant) -> Option<RouteUnavailable> {
        let now = self.traffic.lock();
        if self.is_full(&now) {
            return Some(RouteUnavailable::Full);
        }
        match now.health.state_at(at) {
            BreakerState::Closed(until) => Some(RouteUnavailable::Cooling(until)),
            BreakerState::Open | BreakerState::Probe | BreakerState::Resort(_) => None,
        }
    }

    fn is_full(&self, now: &RouteLoad) -> bool {
        self.route.concurrency.is_some_and(|most| now.calls >= most)
    }

    fn log_change(&self, changed: BreakerChange) {
        let Route { provider, model, .. } = &self.route;
        match changed {
            BreakerChange::Cooling(reason, time) => tracing::warn!(
                provider.name = %provider,
                provider.model = %model,
                reason = reason.label(),
                cool_down_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
                "a route is left alone to cool down"
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
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_result(
        &self,
        call: &mut CallToken,
        told: CallOutcome,
        rules: &CoolDown,
    ) -> Option<BreakerChange> {
        let mut now = self.lock();
        let changed = now.health.on_result(call, told, Instant::now(), rules);
        match (changed, self.series.get().filter(|_series| !now.is_gone)) {
            (Some(BreakerChange::Cooling(reason, _time)), Some(series)) => series.cooling(reason),
            (Some(BreakerChange::Well), Some(series)) => series.well(),
            (Some(_), None) | (None, _) => {}
        }
        changed
    }
}

impl Permit {
    /// The call tells how its route fares. It may do so more than once.
    pub(crate) fn report(&self, told: CallOutcome) {
        let mut call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.lane.traffic.on_result(&mut call, told, &self.rules);
        drop(call);
        if let Some(changed) = changed {
            self.lane.log_change(changed);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // A call that was dropped tells nothing, and gives its probe back: without that a route whose probe was
        // cancelled would be a last resort for good.
        self.report(CallOutcome::Nothing);
        let mut now = self.lane.traffic.lock();
        now.calls = now.calls.saturating_sub(1);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({})", self.lane.name)
    }
}
