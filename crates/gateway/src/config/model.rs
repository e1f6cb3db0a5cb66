//! `[[models]]`: what is on offer, at which prices, and who answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::Currency;
use holdfast_domain::model::{Contract, PublicModelId, Restricted};
use holdfast_domain::price::{PriceVersion, PriceVersionId, Rates};
use holdfast_domain::usage::{Kind, Meters};
use holdfast_engine::{Model, Price, Route, Timeouts};
use holdfast_providers::Simulated;

use super::document::{Field, Place, Table};

use super::process::Limits;
use super::provider::ProviderKind;

/// Fewer tokens than the largest count that is believed of a report.
const TOKENS_MAX: u64 = Meters::COUNT_MAX - 1;
const MILLION: u64 = 1_000_000;
const CONNECT: Duration = Duration::from_secs(2);
const TOTAL: Duration = Duration::from_secs(600);
/// The longest time that a call may be given.
const TIME_MAX: Duration = Duration::from_secs(24 * 3_600);

type Providers<'d> = BTreeMap<&'d str, Option<ProviderKind>>;

/// Where each price version stands.
pub(super) type PricePlaces = BTreeMap<PriceVersionId, Place>;

/// Every model without a mistake, and where their prices stand.
pub(super) fn all(
    root: &Table<'_>,
    providers: &Providers<'_>,
    limits: &Limits,
) -> (Vec<Model>, PricePlaces) {
    let tables = root.tables("models");
    if tables.is_empty() {
        root.mistake("there is no model: write a table [[models]]");
    }
    let mut ids = BTreeSet::new();
    let mut places = PricePlaces::new();
    let one = |table| one(table, providers, limits, &mut ids, &mut places);
    let models = tables.iter().filter_map(one).collect();
    (models, places)
}

fn one(
    table: &Table<'_>,
    providers: &Providers<'_>,
    limits: &Limits,
    ids: &mut BTreeSet<PublicModelId>,
    places: &mut PricePlaces,
) -> Option<Model> {
    let id = table.required("id").and_then(|field| {
        let id = field.parse(PublicModelId::try_from)?;
        if !ids.insert(id.clone()) {
            field.mistake(format_args!("{id} is used by an earlier model: each has its own"));
        }
        Some(id)
    });
    let contract = contract(table, id.clone());
    guarantee(table);
    let timeouts = timeouts(&table.table("timeout"));
    let body_bytes = table
        .field("body_bytes")
        .map_or(Some(limits.body_bytes), |field| field.size(1_024..=1 << 30));
    let prices = prices(table, id.as_ref(), places);
    let routes = routes(table, providers);
    table.refuse_unknown();
    Some(Model { contract: contract?, timeouts, body_bytes: body_bytes?, prices, routes })
}

fn contract(table: &Table<'_>, model: Option<PublicModelId>) -> Option<Contract> {
    let version = table
        .required("contract")
        .and_then(|field| u32::try_from(field.count(1..=u64::from(u32::MAX))?).ok());
    let context = table.required("context_tokens").and_then(|field| field.count(1..=TOKENS_MAX));
    let output = table.required("max_output_tokens");
    let output = output.and_then(|field| Some((field.count(1..=TOKENS_MAX)?, field)));
    if let (Some(context), Some((output, field))) = (context, &output)
        && *output > context
    {
        field.mistake(format_args!("must be at most context_tokens, which is {context}"));
    }
    let per_byte = table
        .field("prompt_tokens_per_byte")
        .map_or(Some(MILLION), |field| field.millionths(1..=MILLION.saturating_mul(1_000)));
    let overhead = table
        .field("prompt_overhead_tokens")
        .map_or(Some(None), |field| field.count(0..=TOKENS_MAX).map(Some));
    let image = table
        .field("image_tokens")
        .map_or(Some(None), |field| field.count(1..=TOKENS_MAX).map(Some));
    let accepts = table.field("accepts").map_or(Some(Vec::new()), |field| field.each(member));
    let allow = table.field("allow").map_or(Some(Vec::new()), |field| field.each(restricted));
    Some(Contract {
        prompt_tokens_per_byte_millionths: per_byte?,
        prompt_overhead_tokens: overhead?,
        image_tokens: image?,
        accepts: accepts?,
        allow: allow?.into_iter().collect(),
        ..Contract::new(model?, version?, context?, output?.0)
    })
}

/// The name of a request's member that OpenAI's schema does not have.
fn member(field: &Field<'_>) -> Option<String> {
    let name = field.text()?;
    if name.is_empty() {
        field.mistake("must not be empty");
        return None;
    }
    Some(name.to_owned())
}

/// One of the fields that are refused unless a model allows them.
fn restricted(field: &Field<'_>) -> Option<Restricted> {
    let name = field.text()?;
    let found = Restricted::ALL.into_iter().find(|restricted| restricted.label() == name);
    if found.is_none() {
        let known = Restricted::ALL.map(Restricted::label).join(", ");
        field.mistake(format_args!("names no field that needs allowing: those are {known}"));
    }
    found
}

/// There is one so far; what a model promises is written down all the same.
fn guarantee(table: &Table<'_>) {
    let Some(field) = table.field("guarantee") else { return };
    match field.text() {
        Some("one-run") | None => {}
        Some("one-charge") => field.mistake(
            "\"one-charge\" is not available in this version: write \"one-run\", \
             which sends a request to a model at most once",
        ),
        Some(_) => field.mistake("must be \"one-run\""),
    }
}

fn timeouts(table: &Table<'_>) -> Timeouts {
    let time = |key, default| {
        let given = table.field(key).and_then(|f| f.span(Duration::from_millis(1)..=TIME_MAX));
        given.unwrap_or(default)
    };
    let timeouts = Timeouts { connect: time("connect", CONNECT), total: time("total", TOTAL) };
    if timeouts.connect > timeouts.total {
        table.mistake("`models.timeout.total` must not be shorter than `connect`");
    }
    table.refuse_unknown();
    timeouts
}

fn prices(model: &Table<'_>, id: Option<&PublicModelId>, places: &mut PricePlaces) -> Vec<Price> {
    let tables = model.tables("prices");
    if tables.is_empty() {
        model.mistake("the model has no price: write a table [[models.prices]]");
    }
    let mut own = PricePlaces::new();
    let prices = tables.iter().filter_map(|table| price(table, id, &mut own)).collect();
    places.extend(own);
    prices
}

fn price(
    table: &Table<'_>,
    model: Option<&PublicModelId>,
    places: &mut PricePlaces,
) -> Option<Price> {
    let from = table.required("effective_from").and_then(|field| field.moment());
    let usd = || "USD".parse().ok();
    let currency: Option<Currency> =
        table.field("currency").map_or_else(usd, |field| field.parse(str::parse));
    let rates = rates(table);
    table.refuse_unknown();
    let from = from?;
    let currency = currency?;
    let id = PriceVersionId::new(model?, currency, &from.text);
    if places.insert(id.clone(), table.place()).is_some() {
        table.mistake(format!(
            "price version {id} is here twice: prices differ in currency or effective_from"
        ));
    }
    Some(Price { effective_from: from.at, version: PriceVersion { id, currency, rates: rates? } })
}

/// A kind without a price costs what its general kind costs.
fn rates(table: &Table<'_>) -> Option<Rates> {
    let tokens = table.table("micros_per_million");
    if !tokens.is_present() {
        table.mistake("`micros_per_million` is missing: write { input = …, output = … }");
        tokens.ignore_unknown();
        return None;
    }
    let rate = |field: Field<'_>| field.count(0..=Rates::RATE_MAX);
    let input = tokens.required("input").and_then(rate);
    let output = tokens.required("output").and_then(rate);
    let cached_input = tokens.field("cached_input").map_or(input, rate);
    let cache_write = tokens.field("cache_write").map_or(input, rate);
    let reasoning = tokens.field("reasoning").map_or(output, rate);
    tokens.refuse_unknown();
    let each = table.table("micros_each");
    let request = each.field("request").map_or(Some(0), rate);
    each.refuse_unknown();
    let (input, output) = (input?, output?);
    let (cached_input, cache_write) = (cached_input?, cache_write?);
    let (reasoning, request) = (reasoning?, request?);
    Rates::by(|kind| match kind {
        Kind::Input | Kind::AudioInput => input,
        Kind::CachedInput => cached_input,
        Kind::CacheWrite => cache_write,
        Kind::Output | Kind::AudioOutput => output,
        Kind::Reasoning => reasoning,
        Kind::Request => request,
        Kind::Image => 0,
    })
}

/// In the order in which they are tried: by priority, and as the file lists them where that is equal.
fn routes(model: &Table<'_>, providers: &Providers<'_>) -> Vec<Route> {
    let tables = model.tables("routes");
    if tables.is_empty() {
        model.mistake("the model has no route: write a table [[models.routes]]");
    }
    let mut routes: Vec<_> = tables.iter().filter_map(|table| route(table, providers)).collect();
    routes.sort_by_key(|(priority, _)| *priority);
    routes.into_iter().map(|(_, route)| route).collect()
}

fn route(table: &Table<'_>, providers: &Providers<'_>) -> Option<(u64, Route)> {
    let provider = table.required("provider").and_then(|field| {
        let name = field.text()?;
        if !providers.contains_key(name) {
            let name = name.escape_debug();
            field.mistake(format_args!("names no provider: write a table [providers.{name}]"));
        }
        Some(name)
    });
    let model = table.required("model").and_then(|field| {
        let model = field.text()?;
        let kind = provider.and_then(|name| providers.get(name)?.as_ref());
        if model.is_empty() {
            field.mistake("is empty: write what the provider calls the model");
        } else if matches!(kind, Some(ProviderKind::Simulated)) && model != Simulated::MODEL {
            let only = Simulated::MODEL;
            field.mistake(format_args!("must be \"{only}\", the simulated provider's only model"));
        }
        Some(model)
    });
    let priority = table.field("priority").map_or(Some(0), |field| field.count(0..=1_000_000));
    table.refuse_unknown();
    Some((priority?, Route { provider: provider?.to_owned(), model: Arc::from(model?) }))
}
