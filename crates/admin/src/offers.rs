//! `/models`, `/prices`, `/nodes`: models on sale, their prices, and the nodes that serve them.
//!
//! The health of a route is this node's view: another node may differ. Holders see models and prices as callers do,
//! without a route.
//!
//! Prices are read from the ledger, which keeps every pinned version with its beginning, future ones too. No code
//! here calls a provider or changes what is served.

use std::collections::BTreeMap;

use holdfast_domain::admin::listing::NodeListing;
use holdfast_domain::admin::offer::{ModelOffer, RouteOffer};
use holdfast_domain::price::{PriceVersion, Tier, UnitPrices};
use holdfast_domain::usage::MeterKind;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, Reply};
use crate::description::Errors;
use crate::page::List;
use crate::request::{Caller, Params};
use crate::value::{Moment, RouteHealthLabel, model, parse_some};

/// Model on offer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Model)]
pub(crate) struct ModelView {
    /// Public id.
    id: String,
    /// Version of its contract.
    contract: u32,
    /// Tokens of prompt and completion together, at most.
    context_tokens: u64,
    max_output_tokens: u64,
    /// Routes that may answer, in the order of the configuration. Not for holders.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    routes: Option<Vec<RouteView>>,
}

/// Route of a model, and how it fares as this node has seen it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Route)]
struct RouteView {
    /// The configured provider and its model.
    name: String,
    /// Lower is tried first.
    priority: u32,
    /// Share of the requests among routes of its priority.
    weight: u32,
    /// Limit of concurrent calls.
    concurrency: Option<u32>,
    /// Calls that are under way.
    in_flight: u32,
    health: RouteHealthLabel,
    /// Rest of its cool-down, if it cools down.
    cools_for_ms: Option<u64>,
}

impl From<RouteOffer> for RouteView {
    fn from(route: RouteOffer) -> Self {
        // `as_millis` is a u128, and no cool-down reaches the end of a u64.
        let millis =
            |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            name: route.name,
            priority: route.priority,
            weight: route.weight,
            concurrency: route.concurrency,
            in_flight: route.in_flight,
            health: route.health.into(),
            cools_for_ms: route.cools_for.map(millis),
        }
    }
}

impl ModelView {
    fn new(ModelOffer { contract, routes }: ModelOffer, shows_routes: bool) -> Self {
        Self {
            id: contract.model.to_string(),
            contract: contract.version,
            context_tokens: contract.context_tokens,
            max_output_tokens: contract.max_output_tokens,
            routes: shows_routes.then(|| routes.into_iter().map(RouteView::from).collect()),
        }
    }
}

/// Version of the prices of a model in a currency. It never changes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PriceVersion)]
pub(crate) struct PriceView {
    price_version: String,
    model: Option<String>,
    currency: String,
    /// Moment from which it is in force, until a later one begins; it may be in the future.
    effective_from: Option<String>,
    #[serde(flatten)]
    rates: RatesView,
    /// Rates of longer prompts, the lowest threshold first.
    tiers: Vec<TierView>,
}

/// Rates by kind of unit.
#[derive(Debug, Serialize, ToSchema)]
struct RatesView {
    /// Micros for a million units of a kind of token.
    micros_per_million: BTreeMap<&'static str, u64>,
    /// Micros for each of another kind.
    micros_each: BTreeMap<&'static str, u64>,
}

/// Rates of requests whose prompts are longer than a threshold.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PriceTier)]
struct TierView {
    above_prompt_tokens: u64,
    #[serde(flatten)]
    rates: RatesView,
}

impl From<&UnitPrices> for RatesView {
    fn from(rates: &UnitPrices) -> Self {
        let (per_million, each): (Vec<_>, Vec<_>) =
            MeterKind::ALL.into_iter().partition(|kind| kind.per_million());
        let by_label = |kinds: Vec<MeterKind>| {
            kinds.into_iter().map(|kind| (kind.label(), rates.rate(kind))).collect()
        };
        Self { micros_per_million: by_label(per_million), micros_each: by_label(each) }
    }
}

impl From<PriceVersion> for PriceView {
    fn from(price: PriceVersion) -> Self {
        let tier = |tier: &Tier| TierView {
            above_prompt_tokens: tier.above_prompt_tokens,
            rates: (&tier.rates).into(),
        };
        Self {
            price_version: price.id.to_string(),
            model: price.id.model().map(str::to_owned),
            currency: price.currency.to_string(),
            effective_from: price.id.effective_from().map(str::to_owned),
            rates: price.tariff.rates().into(),
            tiers: price.tariff.tiers().iter().map(tier).collect(),
        }
    }
}

/// Node that is registered in the ledger.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Node)]
pub(crate) struct NodeView {
    name: String,
    /// Id of the process that took the name last.
    #[schema(format = "uuid")]
    incarnation: String,
    /// True as long as its lease lasts.
    is_alive: bool,
    /// End of its lease, which each heartbeat moves: a node that is gone was seen before it.
    lease_ends_at: Moment,
    /// Address at which other nodes query it for running answers, if it has one.
    address: Option<String>,
    /// Digest of its settings, without its own addresses and without secrets. Nodes with the same settings have the
    /// same digest. It is null until the node has reported it.
    #[schema(pattern = "^[0-9a-f]{16}$")]
    settings: Option<String>,
    /// True if another live node has other settings. It is null for a node that is gone or has not reported its
    /// own.
    settings_differ: Option<bool>,
    /// Reach of a commit to the ledger now: `local`, on one machine, or `replicated`, on a synchronous standby too. The
    /// same for all nodes.
    #[schema(pattern = "^(local|replicated)$")]
    durability: &'static str,
}

impl NodeView {
    fn new(node: &NodeListing, all: &[NodeListing]) -> Self {
        let lease = &node.lease;
        Self {
            name: lease.node.name.to_string(),
            incarnation: lease.node.incarnation.to_string(),
            is_alive: node.is_alive(),
            lease_ends_at: Moment(lease.ends_at),
            address: node.address.clone(),
            settings: node.settings.map(|settings| settings.to_string()),
            settings_differ: node.settings_differ(all),
            durability: node.durability.label(),
        }
    }
}

/// Filters of the list of price versions. All filters apply.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PriceQuery {
    /// Versions of the model of this public id.
    #[param(pattern = "^[a-z0-9][a-z0-9._-]{0,62}/[A-Za-z0-9][A-Za-z0-9._:-]{0,62}$")]
    model: Option<String>,
    /// Versions in this currency.
    #[param(pattern = "^[A-Z]{3}$")]
    currency: Option<String>,
}

/// No parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParams {}

#[utoipa::path(
    get, path = "/models", operation_id = "list_models", tag = "offers",
    responses((status = 200, description = "All of them.", body = List<ModelView>), Errors)
)]
/// Lists the models that this node serves, each with its routes and their health.
pub(crate) async fn models(
    caller: Caller,
    Params(NoParams {}): Params<NoParams>,
) -> Reply<List<ModelView>> {
    let offered = caller.accounts().models(&caller.principal)?;
    Answer::large(move || {
        let models = offered.models.into_iter();
        List::whole(models.map(|model| ModelView::new(model, offered.shows_routes)).collect())
    })
    .await
}

#[utoipa::path(
    get, path = "/prices", operation_id = "list_prices", tag = "offers", params(PriceQuery),
    responses((status = 200, description = "All of them.", body = List<PriceView>), Errors)
)]
/// Lists price versions by model and currency, the latest first: those to come, in force and past.
pub(crate) async fn prices(
    caller: Caller,
    Params(query): Params<PriceQuery>,
) -> Reply<List<PriceView>> {
    let model = model(query.model.as_deref())?;
    let currency = parse_some("currency", query.currency.as_deref())?;
    let found = caller.accounts().prices(&caller.principal, model.as_ref(), currency).await?;
    Answer::large(move || List::whole(found.into_iter().map(PriceView::from).collect())).await
}

#[utoipa::path(
    get, path = "/nodes", operation_id = "list_nodes", tag = "offers",
    responses((status = 200, description = "All of them.", body = List<NodeView>), Errors)
)]
/// Lists the nodes that are registered in the ledger, those that are gone too, and marks live ones whose settings
/// differ.
pub(crate) async fn nodes(
    caller: Caller,
    Params(NoParams {}): Params<NoParams>,
) -> Reply<List<NodeView>> {
    let found = caller.accounts().nodes(&caller.principal).await?;
    Answer::large(move || {
        List::whole(found.iter().map(|node| NodeView::new(node, &found)).collect())
    })
    .await
}
