//! The models on offer: their contracts, prices and routes. A catalogue never changes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::model::{Contract, ModelAlias, ModelPattern, PublicModelId};
use holdfast_domain::price::{PriceVersion, ProviderCost};
use holdfast_domain::{Currency, Timestamp};

/// Every model by its public id, and the ids of the aliases.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    models: BTreeMap<PublicModelId, Arc<Model>>,
    aliases: BTreeMap<ModelAlias, PublicModelId>,
}

/// A model on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Contract of the model: its version and its bounds of length.
    pub contract: Contract,
    /// Other names by which requests may name it; each of one model only.
    pub aliases: Vec<ModelAlias>,
    /// Timeouts of its calls.
    pub timeouts: Timeouts,
    /// The largest body of a request for it.
    pub body_bytes: usize,
    /// In any order.
    pub prices: Vec<Price>,
    /// Guarantee for a key whose run may have happened.
    pub guarantee: Guarantee,
    /// In any order.
    pub routes: Vec<Route>,
}

/// Guarantee on the runs of one key. The caller pays at most once under either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarantee {
    /// At most one: a call whose outcome is unknown is the last.
    OneRun,
    /// A call whose outcome is unknown goes to the next route as well, unless a part of its answer was sent, or its
    /// provider repeats the call by itself. The operator bears its cost.
    OneCharge,
}

/// Timeouts of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To a connection that the request can be written to.
    pub connect: Duration,
    /// From the sending of a request to the first piece of an answer that streams.
    pub first_token: Duration,
    /// Between two pieces of an answer that streams.
    pub between_tokens: Duration,
    /// From before the claim to the answer, over all routes.
    pub total: Duration,
}

/// A price version and when it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// Begin of its validity, which lasts until a later price begins.
    pub effective_from: Timestamp,
    /// Price version, which claims copy.
    pub version: PriceVersion,
}

/// Route: a provider's model that may answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Route {
    /// A configured provider.
    pub provider: String,
    /// Name of the model at that provider.
    pub model: Arc<str>,
    /// Prices that the operator pays there, if they are configured.
    pub cost: Option<Arc<ProviderCost>>,
    /// Lower is tried first.
    pub priority: u32,
    /// Share of the requests among routes of its priority; never zero.
    pub weight: u32,
    /// Limit of concurrent calls of that provider's model, over all models that route there.
    pub concurrency: Option<u32>,
}

impl Route {
    /// Name in logs and metrics: `provider/model`.
    #[must_use]
    pub fn name(&self) -> String {
        [&*self.provider, "/", &*self.model].concat()
    }

    /// True if both lead to the same provider's same model.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.provider == other.provider && self.model == other.model
    }
}

impl Catalogue {
    /// The catalogue of these models; a later one replaces an earlier one of the same id.
    #[must_use]
    pub fn new(models: impl IntoIterator<Item = Model>) -> Self {
        let by_id = |model: Model| (model.contract.model.clone(), Arc::new(model));
        let models: BTreeMap<_, _> = models.into_iter().map(by_id).collect();
        let of_model = |model: &Arc<Model>| {
            let id = model.contract.model.clone();
            model.aliases.clone().into_iter().map(move |alias| (alias, id.clone()))
        };
        let aliases = models.values().flat_map(of_model).collect();
        Self { models, aliases }
    }

    /// Every model.
    pub(crate) fn models(&self) -> impl Iterator<Item = &Model> {
        self.models.values().map(|model| &**model)
    }

    /// The id that an alias leads to.
    #[must_use]
    pub fn resolve(&self, alias: &ModelAlias) -> Option<PublicModelId> {
        self.aliases.get(alias).cloned()
    }

    /// The id of a name: the name itself, or the model of an alias.
    #[must_use]
    pub fn id_of(&self, name: &str) -> Option<PublicModelId> {
        let id = PublicModelId::try_from(name).ok();
        id.or_else(|| self.resolve(&ModelAlias::try_from(name).ok()?))
    }

    /// The model of this id.
    #[must_use]
    pub fn find(&self, id: &PublicModelId) -> Option<&Arc<Model>> {
        self.models.get(id)
    }

    /// The models that an entry of an allow-list allows.
    pub(crate) fn matching(&self, entry: &ModelPattern) -> impl Iterator<Item = &Model> {
        // Ids are in order, so those of a publisher are together.
        let first = entry.as_str().trim_end_matches('*');
        let from_first = self.models.range::<str, _>((Bound::Included(first), Bound::Unbounded));
        let matching = from_first.take_while(move |(id, _model)| entry.allows(id));
        matching.map(|(_id, model)| &**model)
    }

    /// Every model that a wallet of this currency can pay for now, with its price.
    pub fn payable(
        &self,
        currency: Currency,
        now: Timestamp,
    ) -> impl Iterator<Item = (&Model, &Price)> {
        self.models.values().filter_map(move |model| Some((&**model, model.price(currency, now)?)))
    }

    /// The largest body that any of its models takes.
    #[must_use]
    pub fn body_bytes_max(&self) -> usize {
        self.models.values().map(|model| model.body_bytes).max().unwrap_or(0)
    }
}

impl Model {
    /// The newest price in a currency that is in force.
    #[must_use]
    pub fn price(&self, currency: Currency, now: Timestamp) -> Option<&Price> {
        let in_force =
            |price: &&Price| price.version.currency == currency && price.effective_from <= now;
        self.prices.iter().filter(in_force).max_by_key(|price| price.effective_from)
    }
}
