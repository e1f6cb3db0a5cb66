//! Models: their bounds and prices, those to come too; for operators the routes that answer for them.
//!
//! The health of a route is what this node has seen. Holders see no route.

use std::cmp::Ordering;

use axum::extract::State;
use holdfast_domain::account::UseCase;
use holdfast_domain::offer::{ModelOffer, RouteHealth, RouteOffer};
use holdfast_domain::price::{PriceVersion, UnitPrices};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Currency, Micros, Timestamp};

use crate::cell::{Cell, Tone};
use crate::desk::Desk;
use crate::failure::Failure;
use crate::page::Page;
use crate::section::Table;
use crate::visitor::Visitor;

/// Head of a table of routes.
pub(crate) const ROUTE_HEAD: [&str; 7] =
    ["Model", "Route", "Health", "Cools for", "Runs", "Priority", "Weight"];
/// Most rows of prices: those in force and to come first.
const PRICES: usize = 100;

pub(crate) async fn list(State(desk): State<Desk>, visitor: Visitor) -> Result<Page, Failure> {
    let offered = desk.accounts.models(&visitor.principal)?;
    let row = |model: &ModelOffer| {
        let contract = &model.contract;
        vec![
            Cell::text(contract.model.as_str()),
            Cell::count(contract.context_tokens),
            Cell::count(contract.max_output_tokens),
            Cell::count(contract.version),
        ]
    };
    let rows = offered.models.iter().map(row).collect();
    let head = ["Model", "Context tokens", "Output tokens at most", "Contract"];
    let empty = "This node serves no model. Models are written in its configuration.";
    let mut page = Page::new("Models").section(Table::new("Models", &head, rows, empty));
    if offered.shows_routes {
        let routes = offered.models.iter().flat_map(|model| {
            let routes = model.routes.iter();
            routes.map(move |route| route_row(model, route))
        });
        let empty = "No route answers for a model.";
        page = page.section(Table::new("Routes", &ROUTE_HEAD, routes.collect(), empty));
    }
    if visitor.may(UseCase::PriceRead) {
        page = page.section(prices(&desk, &visitor).await?);
    }
    Ok(page)
}

/// Row of a route.
pub(crate) fn route_row(model: &ModelOffer, route: &RouteOffer) -> Vec<Cell> {
    let health = match route.health {
        RouteHealth::Well => Cell::badge("well", Tone::Good),
        RouteHealth::Probe => Cell::badge("being tried", Tone::Warning),
        RouteHealth::LastResort => Cell::badge("last resort", Tone::Warning),
        RouteHealth::LeftAlone => Cell::badge("left alone", Tone::Bad),
    };
    let cools = route.cools_for.map_or(Cell::Nothing, |left| {
        Cell::Number(format!("{}.{} s", left.as_secs(), left.subsec_millis() / 100))
    });
    let runs = match route.concurrency {
        Some(most) => format!("{} of {most}", route.in_flight),
        None => route.in_flight.to_string(),
    };
    vec![
        Cell::text(model.contract.model.as_str()),
        Cell::text(&route.name),
        health,
        cools,
        Cell::Number(runs),
        Cell::count(route.priority),
        Cell::count(route.weight),
    ]
}

/// When a price holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Force {
    Now,
    Later,
    Past,
}

async fn prices(desk: &Desk, visitor: &Visitor) -> Result<Table, Failure> {
    let now = desk.accounts.clock().await?;
    let prices = desk.accounts.prices(&visitor.principal, None, None).await?;
    let mut judged: Vec<_> =
        prices.iter().map(|price| (force(price, &prices, now), price)).collect();
    judged.sort_by(|(force, price), (other_force, other)| {
        let names = price.id.model().cmp(&other.id.model());
        let begins = begin(price).cmp(&begin(other)).reverse();
        force.cmp(other_force).then(names).then(begins)
    });
    let title = if judged.len() > PRICES { "Prices, the first hundred" } else { "Prices" };
    let mut rows = Vec::new();
    for (force, price) in judged.into_iter().take(PRICES) {
        let rates = price.tariff.rates();
        rows.push(price_row(price, force, "any", rates));
        for tier in price.tariff.tiers() {
            let prompt = format!("above {}", tier.above_prompt_tokens);
            rows.push(price_row(price, force, &prompt, &tier.rates));
        }
    }
    let head = [
        "Model",
        "From",
        "State",
        "Prompt tokens",
        "Input, a million",
        "Output, a million",
        "Others",
    ];
    let empty = "No price is known yet. Prices are written in the configuration of a node.";
    Ok(Table::new(title, &head, rows, empty))
}

fn begin(price: &PriceVersion) -> Option<Timestamp> {
    price.id.effective_from().and_then(holdfast_wire::api::moment)
}

/// True where two versions are of one model in one currency.
fn is_same(one: &PriceVersion, other: &PriceVersion) -> bool {
    one.id.model() == other.id.model() && one.currency == other.currency
}

fn force(price: &PriceVersion, all: &[PriceVersion], now: Timestamp) -> Force {
    let own = begin(price);
    if own.is_some_and(|own| own > now) {
        return Force::Later;
    }
    let is_replaced = all.iter().filter(|other| is_same(price, other)).any(|other| {
        let begin = begin(other);
        begin.is_none_or(|begin| begin <= now) && begin.cmp(&own) == Ordering::Greater
    });
    if is_replaced { Force::Past } else { Force::Now }
}

fn price_row(price: &PriceVersion, force: Force, prompt: &str, rates: &UnitPrices) -> Vec<Cell> {
    let currency = price.currency;
    let state = match force {
        Force::Now => Cell::badge("in force", Tone::Good),
        Force::Later => Cell::badge("to come", Tone::Warning),
        Force::Past => Cell::badge("past", Tone::Plain),
    };
    let money = |kind| Cell::money(amount(rates, kind), currency);
    vec![
        Cell::some_text(price.id.model()),
        begin(price).map_or_else(|| Cell::some_text(price.id.effective_from()), Cell::moment),
        state,
        Cell::text(prompt),
        money(MeterKind::Input),
        money(MeterKind::Output),
        others(rates, currency),
    ]
}

fn amount(rates: &UnitPrices, kind: MeterKind) -> Micros {
    Micros::saturating_from(u128::from(rates.rate(kind)))
}

/// The rates that have no column of their own, where they cost anything.
fn others(rates: &UnitPrices, currency: Currency) -> Cell {
    let has_column = |kind: &MeterKind| matches!(kind, MeterKind::Input | MeterKind::Output);
    let kinds = MeterKind::ALL.into_iter().filter(|kind| !has_column(kind));
    let told = kinds.filter(|kind| rates.rate(*kind) > 0).map(|kind| {
        let name = kind.label().replace('_', " ");
        format!("{name} {}", crate::cell::money(amount(rates, kind), currency))
    });
    let told = told.collect::<Vec<_>>().join(", ");
    Cell::some_text(Some(told.as_str()).filter(|told| !told.is_empty()))
}
