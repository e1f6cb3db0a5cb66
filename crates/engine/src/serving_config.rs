//! Serving configuration: the models, the providers that answer for them, and the limits of a caller's request. It
//! never changes: another one takes its place ([`live_config`](crate::live_config)), and a request that began under
//! one ends under it.
//!
//! The state of a route (its breaker, its calls under way) is not part of it: configurations that follow one
//! another share that, as long as the route's provider is the same one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_domain::Timestamp;
use holdfast_domain::admin::offer::ModelOffer;
use holdfast_domain::model::{ModelAlias, PublicModelId};
use holdfast_domain::ports::{Provider, UnsupportedParam};
use holdfast_domain::request::Request;
use holdfast_wire::chat::request::model_name;
use holdfast_wire::nearest::nearest;
use tokio::time::Instant;

use crate::authentication::Caller;
use crate::catalogue::{Catalogue, Model, Price};
use crate::metrics::{self, Metrics};
use crate::routes::{BreakerRules, RouteState};

/// Longest body that a worker of the runtime parses itself: some milliseconds, for any content.
pub(crate) const PARSED_INLINE_MAX: usize = 256 << 10;

/// Serving configuration of a request, from its first byte to the end of its operation.
#[derive(Debug, Clone)]
pub struct ServingConfig {
    /// The models.
    pub catalogue: Catalogue,
    /// Providers, by the names that routes have for them.
    pub providers: BTreeMap<String, Arc<dyn Provider>>,
    /// Limits on the use of it.
    pub rules: ServingRules,
    routes: BTreeMap<PublicModelId, Vec<Arc<RouteState>>>,
}

/// Limits on the use of a serving configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServingRules {
    /// Requests of one API key that may be in flight in this process at once.
    pub operations_per_key: usize,
    /// Callers that wait for one operation at once.
    pub waiters_per_operation: usize,
    /// Bytes of answers that the runs of this process hold at once.
    pub answer_bytes: usize,
    /// Rules of the circuit breakers of all routes.
    pub cool_down: BreakerRules,
}

impl ServingConfig {
    /// Configuration in the place of another one: routes whose providers stay keep what is known of them.
    #[must_use]
    pub fn new(
        catalogue: Catalogue,
        providers: BTreeMap<String, Arc<dyn Provider>>,
        rules: ServingRules,
        before: Option<&Self>,
    ) -> Self {
        let mut lanes = BTreeMap::<PublicModelId, Vec<Arc<RouteState>>>::new();
        for model in catalogue.models() {
            for route in &model.routes {
                // Of this configuration, too: two models may have one route, which then has one breaker.
                let others = before.into_iter().flat_map(Self::routes);
                let others = others.chain(lanes.values().flatten());
                let route_state = RouteState::new(route, providers.get(&route.provider), others);
                lanes.entry(model.contract.model.clone()).or_default().push(Arc::new(route_state));
            }
        }
        Self { catalogue, providers, rules, routes: lanes }
    }

    /// Shows the alarmed series of these providers, routes and models from now on, before their first call, and no
    /// longer those of routes that only the configuration before had.
    pub(crate) fn begin_metrics(&self, metrics: &Metrics, before: Option<&Self>) {
        for provider in self.providers.keys() {
            metrics::begin_provider(provider);
        }
        metrics.begin_models(self.catalogue.models().map(|model| {
            let currencies = model.prices.iter().map(|price| price.version.currency);
            (model.contract.model.as_str(), currencies.collect::<BTreeSet<_>>())
        }));
        // Ended first: a route of a provider that was made anew has the same labels, and the last word.
        for route_state in before.into_iter().flat_map(Self::routes) {
            route_state.end_metrics(self.routes());
        }
        self.routes().for_each(|route_state| route_state.begin_metrics());
    }

    /// The largest body of the models that a caller may use.
    #[must_use]
    pub fn body_bytes_max(&self, caller: &Caller) -> usize {
        let Some(models) = &caller.api_key.grant.models else {
            // No list of models: all of them.
            return self.catalogue.body_bytes_max();
        };
        let found = models.iter().flat_map(|entry| self.catalogue.matching(entry));
        found.map(|model| model.body_bytes).max().unwrap_or(0)
    }

    /// The models with their routes, and how each fares at this moment.
    #[must_use]
    pub fn offers(&self) -> Vec<ModelOffer> {
        let now = Instant::now();
        let offer = |model: &Model| {
            let routes = self.routes_of(&model.contract.model).iter();
            let routes = routes.map(|route_state| route_state.offer(now)).collect();
            ModelOffer { contract: model.contract.clone(), routes }
        };
        self.catalogue.models().map(offer).collect()
    }

    /// The model that a body names, also a body that is refused; `None` for a large one, which is not read for that.
    #[must_use]
    pub fn model_in(&self, body: &[u8]) -> Option<PublicModelId> {
        let name = (body.len() <= PARSED_INLINE_MAX).then(|| model_name(body)).flatten()?;
        self.catalogue.id_of(&name)
    }

    fn routes(&self) -> impl Iterator<Item = &Arc<RouteState>> {
        self.routes.values().flatten()
    }

    /// The routes of a model.
    pub(crate) fn routes_of(&self, model: &PublicModelId) -> &[Arc<RouteState>] {
        self.routes.get(model).map_or(&[], Vec::as_slice)
    }

    /// Checks that any route of a model supports a request; the error is the first route's. Routes
    /// that cannot are passed over later. A provider that is missing is found out by the call.
    pub(crate) fn check_support(
        &self,
        model: &PublicModelId,
        request: &Request,
    ) -> Result<(), UnsupportedParam> {
        let mut first = Ok(());
        for route_state in self.routes_of(model) {
            match route_state.can(request) {
                Ok(()) => return Ok(()),
                Err(unsupported) => first = first.and(Err(unsupported)),
            }
        }
        first
    }

    /// Bytes of prompt that a route of a model adds to a request's own, at most.
    pub(crate) fn added_prompt_bytes(&self, model: &PublicModelId, request: &Request) -> u64 {
        let routes = self.routes_of(model).iter();
        routes.map(|route_state| route_state.added_prompt_bytes(request)).max().unwrap_or(0)
    }

    /// The model of this id, if the caller may use it and can pay for it at this moment, with its price then.
    #[must_use]
    pub fn model(
        &self,
        caller: &Caller,
        id: &PublicModelId,
        now: Timestamp,
    ) -> Option<(&Model, &Price)> {
        let model = self.catalogue.find(id).filter(|_model| caller.api_key.grant.allows(id))?;
        Some((model, model.price(caller.currency, now)?))
    }

    /// Id or alias of the model that was probably meant, of those that a caller may use and can pay for: others are
    /// not revealed.
    #[must_use]
    pub fn suggest_model(
        &self,
        caller: &Caller,
        written: &str,
        now: Timestamp,
    ) -> Option<Arc<str>> {
        // Only of those: a suggestion must not reveal a model that the caller may not use.
        let names = self.models(caller, now).flat_map(|(model, _price)| {
            let aliases = model.aliases.iter().map(ModelAlias::as_str);
            std::iter::once(model.contract.model.as_str()).chain(aliases)
        });
        let names: Vec<_> = names.collect();
        nearest(written, names).map(Arc::from)
    }

    /// The models that a caller may use and can pay for at this moment, with their prices then.
    pub fn models(
        &self,
        caller: &Caller,
        now: Timestamp,
    ) -> impl Iterator<Item = (&Model, &Price)> {
        let payable = self.catalogue.payable(caller.currency, now);
        payable.filter(|(model, _price)| caller.api_key.grant.allows(&model.contract.model))
    }
}
