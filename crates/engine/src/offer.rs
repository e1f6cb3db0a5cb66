//! What is on offer: the models, who answers for them, and how much a caller may ask at once. An offer
//! never changes: another one takes its place, and whatever began under an offer ends under it.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_domain::Timestamp;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::ports::{Provider, Unsupported};
use holdfast_domain::request::Request;
use holdfast_domain::state::Origin;

use crate::callers::Caller;
use crate::catalogue::{Catalogue, Model, Price, Route};
use crate::metrics;

/// What a request is served by, from its first byte to the end of its operation.
#[derive(Clone)]
pub struct Offer {
    /// The models.
    pub catalogue: Catalogue,
    /// Who answers, by the names that routes have for them.
    pub providers: BTreeMap<String, Arc<dyn Provider>>,
    /// Requests of one API key that this process has in hand at once.
    pub operations_per_key: usize,
    /// Callers that wait for one operation at once.
    pub waiters_per_operation: usize,
}

impl std::fmt::Debug for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offer").field("catalogue", &self.catalogue).finish_non_exhaustive()
    }
}

impl Offer {
    /// Shows what may be alarmed on of these providers from now on, before their first call.
    pub fn begin_metrics(&self) {
        for provider in self.providers.keys() {
            metrics::begin_provider(provider);
        }
    }

    /// Whether a route's provider can do what a request asks for. One that is not there is found out
    /// when it is called.
    pub(crate) fn can(&self, route: &Route, request: &Request) -> Result<(), Unsupported> {
        self.providers.get(&route.provider).map_or(Ok(()), |provider| provider.can(request))
    }

    /// Where what a route's model wants back comes from and goes to; `None` where it wants nothing.
    pub(crate) fn origin(&self, route: &Route) -> Option<Origin> {
        let shape = self.providers.get(&route.provider)?.state_shape()?;
        Some(Origin::of(shape, &route.provider, &route.model))
    }

    /// Whether any of the routes can; if not, what the first of them cannot do. Those that cannot are
    /// passed over.
    pub(crate) fn takes(&self, routes: &[Route], request: &Request) -> Result<(), Unsupported> {
        let mut first = Ok(());
        for route in routes {
            match self.can(route, request) {
                Ok(()) => return Ok(()),
                Err(unsupported) => first = first.and(Err(unsupported)),
            }
        }
        first
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
