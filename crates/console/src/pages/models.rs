//! Models: their bounds and prices, those to come too; for operators the routes that answer for them.
//!
//! - The health of a route is what this node has seen. Holders see no route.
//! - A cost is shown to roles that see costs, and a margin only against a price of the same currency: amounts of two
//!   currencies have no difference.
//! - Of the versions of a price the latest that has begun is in force. One that is to come is shown as such, so that a
//!   price change can be checked before it takes effect.

use std::cmp::Ordering;

use holdfast_accounts::OfferedModels;
use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::offer::{ModelOffer, RouteOffer};
use holdfast_domain::model::Contract;
use holdfast_domain::price::{PriceVersion, UnitPrices};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Currency, Micros, Timestamp};

use crate::failure::Failure;
use crate::kit::{Cell, Link, Page, Table, Tone, Visit};
use crate::pages::parts::route::{HEALTH_HEAD, health_row};

texts! { #[template(path = "pages/models.txt")] ModelsText {
    NoModel = "no_model",
    NoPrice = "no_price",
} }

/// Columns of the same for roles that see costs.
const COST_HEAD: [&str; 3] = ["Input cost / 1M", "Output cost / 1M", "Margin"];
/// Most rows of prices: those in force and to come first.
const PRICES: usize = 100;

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let offered = visit.accounts().models(visit.principal())?;
    let row = |model: &ModelOffer| {
        let contract = &model.contract;
        vec![
            Cell::text(contract.model.as_str()),
            Cell::count(contract.context_tokens),
            Cell::count(contract.max_output_tokens),
            Cell::count(contract.version),
            capabilities(contract),
        ]
    };
    let rows = offered.models.iter().map(row).collect();
    let head = ["Model", "Context tokens", "Max output tokens", "Contract", "Other fields"];
    let empty = &ModelsText::NoModel.to_string();
    let title = visit.visitor.word("Catalogue", "Models");
    let mut page = Page::new(title).section(Table::new("Models", &head, rows, empty));
    if offered.shows_routes {
        page = page.section(routes(&visit, &offered).await?);
    }
    if visit.may(UseCase::PriceRead) {
        page = page.section(prices(&visit).await?);
    }
    Ok(page)
}

/// Fields that the model takes beside those that every model takes.
fn capabilities(contract: &Contract) -> Cell {
    let allowed = contract.allow.iter().map(|field| field.label().to_owned());
    let all = contract.accepts.iter().cloned().chain(allowed).collect::<Vec<_>>().join(", ");
    Cell::some_text(Some(all.as_str()).filter(|all| !all.is_empty()))
}

/// The routes with their health; with their cost and what the price in force leaves, for roles that see costs.
async fn routes(visit: &Visit, offered: &OfferedModels) -> Result<Table, Failure> {
    let now = visit.accounts().clock().await?;
    let prices = if offered.shows_costs {
        visit.accounts().prices(visit.principal(), None, None).await?
    } else {
        Vec::new()
    };
    let mut rows = Vec::new();
    for model in &offered.models {
        for route in &model.routes {
            let mut row = health_row(model, route);
            if offered.shows_costs {
                row.extend(cost_cells(model, route, (&prices, now)));
            }
            rows.push(row);
        }
    }
    let costs: &[&str] = if offered.shows_costs { &COST_HEAD } else { &[] };
    let head = [&HEALTH_HEAD, costs].concat();
    let table = Table::new("Routes", &head, rows, "No routes.");
    Ok(if offered.shows_costs {
        table.link(Link::new("Usage by route", "/usage?first=route"))
    } else {
        table
    })
}

/// Cost of a route, and the margin of the price in force in its currency.
fn cost_cells(
    model: &ModelOffer,
    route: &RouteOffer,
    (prices, now): (&[PriceVersion], Timestamp),
) -> [Cell; 3] {
    // Not zero: the whole price would pass for margin.
    let Some(cost) = &route.cost else {
        return [Cell::Nothing, Cell::Nothing, Cell::text("not known")];
    };
    let (costs, currency) = (cost.tariff.rates(), cost.currency);
    let money = |kind| Cell::money(amount(costs, kind), currency);
    let is_own = |price: &&PriceVersion| {
        price.id.model() == Some(model.contract.model.as_str())
            && price.currency == currency
            && force(price, prices, now) == Force::Now
    };
    let margin = prices.iter().find(is_own).map(|price| margin(price.tariff.rates(), costs));
    let margin = margin.map_or_else(|| Cell::text("no such price"), Cell::text);
    [money(MeterKind::Input), money(MeterKind::Output), margin]
}

/// Share of the price that is left, of input and of output.
fn margin(prices: &UnitPrices, costs: &UnitPrices) -> String {
    let share = |kind| {
        let (price, cost) = (i128::from(prices.rate(kind)), i128::from(costs.rate(kind)));
        // Nothing is left of nothing: a run that is given away has no share.
        (price > 0).then(|| (price - cost) * 100 / price)
    };
    let text = |share: Option<i128>| share.map_or_else(|| "–".to_owned(), |it| format!("{it} %"));
    format!("{} in, {} out", text(share(MeterKind::Input)), text(share(MeterKind::Output)))
}

/// Time at which a price holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Force {
    Now,
    Later,
    Past,
}

async fn prices(visit: &Visit) -> Result<Table, Failure> {
    let now = visit.accounts().clock().await?;
    let prices = visit.accounts().prices(visit.principal(), None, None).await?;
    let mut judged: Vec<_> =
        prices.iter().map(|price| (force(price, &prices, now), price)).collect();
    judged.sort_by(|(force, price), (other_force, other)| {
        let names = price.id.model().cmp(&other.id.model());
        let begins = begin(price).cmp(&begin(other)).reverse();
        force.cmp(other_force).then(names).then(begins)
    });
    let title = if judged.len() > PRICES { "First hundred prices" } else { "Prices" };
    let mut rows = Vec::new();
    for (force, price) in judged.into_iter().take(PRICES) {
        let rates = price.tariff.rates();
        rows.push(price_row(price, force, "any", rates));
        for tier in price.tariff.tiers() {
            let prompt = format!("above {}", tier.above_prompt_tokens);
            rows.push(price_row(price, force, &prompt, &tier.rates));
        }
    }
    let head =
        ["Model", "From", "State", "Prompt tokens", "Input per 1M", "Output per 1M", "Others"];
    let empty = &ModelsText::NoPrice.to_string();
    Ok(Table::new(title, &head, rows, empty))
}

fn begin(price: &PriceVersion) -> Option<Timestamp> {
    price.id.effective_from().and_then(holdfast_wire::api::moment)
}

/// True if two versions are of one model in one currency.
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

/// The rates that have no column of their own, if they are above zero.
fn others(rates: &UnitPrices, currency: Currency) -> Cell {
    let has_column = |kind: &MeterKind| matches!(kind, MeterKind::Input | MeterKind::Output);
    let kinds = MeterKind::ALL.into_iter().filter(|kind| !has_column(kind));
    let listed = kinds.filter(|kind| rates.rate(*kind) > 0).map(|kind| {
        let name = kind.label().replace('_', " ");
        format!("{name} {}", crate::kit::money(amount(rates, kind), currency))
    });
    let listed = listed.collect::<Vec<_>>().join(", ");
    Cell::some_text(Some(listed.as_str()).filter(|listed| !listed.is_empty()))
}
