//! `[[models.prices]]`, and `cost` of a route: what callers pay, and what the operator pays. Both use the same
//! keys.

use std::collections::BTreeMap;

use holdfast_domain::model::PublicModelId;
use holdfast_domain::price::{
    PriceVersion, PriceVersionId, ProviderCost, Tariff, Tier, UnitPrices,
};
use holdfast_domain::usage::{MeterKind, Meters};
use holdfast_domain::{Currency, Timestamp};
use holdfast_engine::Price;
use time::OffsetDateTime;
use toml::de::DeValue;

use crate::document::{ConfigTable, Field, SourceLocation};
use crate::misplaced::refuse_misplaced;
use crate::value::spell_moment;

/// File and line of each price version.
pub(crate) type PricePlaces = BTreeMap<PriceVersionId, SourceLocation>;

/// Every price without a mistake, and the place of each in the file.
pub(crate) fn prices(
    model: &ConfigTable<'_>,
    id: Option<&PublicModelId>,
    places: &mut PricePlaces,
) -> Vec<Price> {
    let tables = model.tables("prices");
    if tables.is_empty() {
        model.mistake(
            "the model has no price: write a table [[models.prices]] with effective_from and \
             micros_per_million",
        );
    }
    // A map for this model: a version that is here twice is found before the maps are joined.
    let mut own = PricePlaces::new();
    let prices: Vec<_> = tables.iter().filter_map(|table| price(table, id, &mut own)).collect();
    places.extend(own);
    let first = prices.iter().map(|price| price.effective_from).min();
    if let (Some(table), Some(first)) = (tables.first(), first.filter(|first| *first > now()))
        // A price with a mistake may be the one that is in force: no second complaint about it.
        && prices.len() == tables.len()
    {
        let first = spell_moment(first);
        table.mistake(format!(
            "no price of the model is in force yet, the first begins at {first}: until then no \
            caller could use it; add a price with an earlier effective_from"
        ));
    }
    prices
}

/// Now by this machine's clock, in microseconds: near enough to recognise a price of the future. Charges go by
/// the clock of the database.
fn now() -> Timestamp {
    let micros = OffsetDateTime::now_utc().unix_timestamp_nanos().div_euclid(1_000);
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

fn price(
    table: &ConfigTable<'_>,
    model: Option<&PublicModelId>,
    places: &mut PricePlaces,
) -> Option<Price> {
    let from = table.required(
        "effective_from",
        "effective_from = 2026-01-01T00:00:00Z, the moment from which it holds",
    );
    let from = from.and_then(|field| field.moment());
    let currency = currency(table);
    let tariff = tariff(table);
    refuse_misplaced(table);
    table.refuse_unknown();
    let from = from?;
    let currency = currency?;
    let id = PriceVersionId::new(model?, currency, &from.text);
    if places.insert(id.clone(), table.place()).is_some() {
        table.mistake(format!(
            "price version {id} is here twice: prices differ in currency or effective_from"
        ));
    }
    Some(Price { effective_from: from.at, version: PriceVersion { id, currency, tariff: tariff? } })
}

/// Cost of a route to the operator: `Some(None)` if the file has no `cost`, `None` on a mistake.
pub(crate) fn cost(table: &ConfigTable<'_>) -> Option<Option<ProviderCost>> {
    if !table.is_present() {
        return Some(None);
    }
    let (currency, tariff) = (currency(table), tariff(table));
    refuse_misplaced(table);
    table.refuse_unknown();
    Some(Some(ProviderCost { currency: currency?, tariff: tariff? }))
}

pub(crate) fn currency(table: &ConfigTable<'_>) -> Option<Currency> {
    table.field("currency").map_or(Some(Currency::USD), |field| field.parse(str::parse))
}

fn tariff(table: &ConfigTable<'_>) -> Option<Tariff> {
    let first = rates(table, None);
    let tables = table.tables("tiers");
    let tiers: Vec<_> = tables.iter().map(|tier_of| tier(tier_of, first.as_ref())).collect();
    let tiers = tiers.into_iter().collect::<Option<Vec<_>>>()?;
    match Tariff::with_tiers(first?, tiers) {
        Ok(tariff) => Some(tariff),
        Err(error) => {
            if let Some(table) = tables.first() {
                table.mistake(format!("these tiers are none: {error}"));
            }
            None
        }
    }
}

/// The rates of longer prompts; the price of an image and of a request is that of the first tier, unless it is
/// set.
fn tier(table: &ConfigTable<'_>, first: Option<&UnitPrices>) -> Option<Tier> {
    let above = table
        .required("above_prompt_tokens", "above_prompt_tokens = 200_000, the longest before it")
        .and_then(|field| field.count(1..=Meters::COUNT_MAX));
    let rates = rates(table, first);
    refuse_misplaced(table);
    table.refuse_unknown();
    Some(Tier { above_prompt_tokens: above?, rates: rates? })
}

/// A kind without a price costs what its general kind costs.
fn rates(table: &ConfigTable<'_>, usual: Option<&UnitPrices>) -> Option<UnitPrices> {
    let tokens = table.table("micros_per_million");
    if !tokens.is_present() {
        table.mistake(
            "`micros_per_million` is missing: add micros_per_million = { input = 150_000, output = \
             600_000 }, in millionths of the currency for a million tokens",
        );
        tokens.ignore_unknown();
        return None;
    }
    let input = tokens.required("input", "input = 150_000").and_then(rate);
    let output = tokens.required("output", "output = 600_000").and_then(rate);
    let or = |key, general| tokens.field(key).map_or(general, rate);
    let (cached_input, cache_write) = (or("cached_input", input), or("cache_write", input));
    let (reasoning, audio_input) = (or("reasoning", output), or("audio_input", input));
    let audio_output = or("audio_output", output);
    tokens.refuse_unknown();
    // Only what is priced each is taken over from the first rates: a tier that left out a price of
    // tokens is a slip, for these are what a tier is there to change.
    let each = table.table("micros_each");
    let each_of = |key, kind| {
        let usual = usual.map_or(0, |usual| usual.rate(kind));
        each.field(key).map_or(Some(usual), rate)
    };
    let (request, image) =
        (each_of("request", MeterKind::Request), each_of("image", MeterKind::Image));
    each.refuse_unknown();
    let by_kind = |kind| match kind {
        MeterKind::Input => input,
        MeterKind::CachedInput => cached_input,
        MeterKind::CacheWrite => cache_write,
        MeterKind::AudioInput => audio_input,
        MeterKind::Output => output,
        MeterKind::Reasoning => reasoning,
        MeterKind::AudioOutput => audio_output,
        MeterKind::Request => request,
        MeterKind::Image => image,
    };
    // All kinds or none: a rate that could not be read must not become a price of zero.
    let is_whole = MeterKind::ALL.into_iter().all(|kind| by_kind(kind).is_some());
    is_whole.then(|| UnitPrices::from_fn(|kind| by_kind(kind).unwrap_or(0)).ok()).flatten()
}

fn rate(field: Field<'_>) -> Option<u64> {
    // The common slip is a price in dollars. The message shows the same price in micros.
    if let DeValue::Float(_) = field.value {
        field.expected(
            "a whole number of micros, millionths of the currency: 0.15 for a million tokens is 150_000",
        );
        return None;
    }
    field.count(0..=UnitPrices::RATE_MAX)
}
