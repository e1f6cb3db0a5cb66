//! Models: their bounds and prices, those to come too; for operators the routes that answer for them.
//!
//! - The health of a route is what this node has seen. Holders see no route.
//! - A cost is shown to roles that see costs, and a margin only against a price of the same currency: amounts of two
//!   currencies have no difference.
//! - Of the versions of a price the latest that has begun is in force. One that is to come is shown as such, so that a
//!   price change can be checked before it takes effect.

use std::cmp::Ordering;

use holdfast_accounts::{OfferedModels, UsageReport};
use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::offer::{ModelOffer, RouteHealth, RouteOffer};
use holdfast_domain::admin::report::{Group, GroupBy, Grouping, Totals, UsageFilter, UsageRow};
use holdfast_domain::model::Contract;
use holdfast_domain::price::{PriceVersion, UnitPrices};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Currency, Micros, Timestamp};

use crate::failure::Failure;
use crate::kit::moment::{day_of, days_before, second};
use crate::kit::{
    Cards, Cell, Facts, Link, Page, Table, Tone, Visit, cents, grouped, money, with_query,
};
use crate::pages::parts::route::{HEALTH_HEAD, health_row};
use crate::pages::parts::usage::{self, ReportOrNotice};

texts! { #[template(path = "pages/models.txt")] ModelsText {
    NoModel = "no_model",
    NoPrice = "no_price",
} }

texts! { #[template(path = "pages/models.txt")] PriceText {
    Now { input: String, output: String } = "price",
    Later { input: String, output: String, from: String } = "price_to_come",
} }

/// Columns of routes for roles that see costs.
const COST_HEAD: [&str; 3] = ["Input cost / 1M", "Output cost / 1M", "Margin"];
/// Most rows of prices: those in force and to come first.
const PRICES: usize = 100;
/// Days of the volume, today among them.
const DAYS: u32 = 30;

/// Prices of all models with the time at which each holds, those in force first; none for a role without prices.
type JudgedPrices<'p> = [(Force, &'p PriceVersion)];

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let offered = visit.accounts().models(visit.principal())?;
    let now = visit.accounts().clock().await?;
    let shows_prices = visit.may(UseCase::PriceRead);
    let all = match shows_prices || offered.shows_costs {
        true => visit.accounts().prices(visit.principal(), None, None).await?,
        false => Vec::new(),
    };
    let mut judged: Vec<_> = all.iter().map(|price| (force(price, &all, now), price)).collect();
    judged.sort_by(|(force, price), (other_force, other)| {
        let names = price.id.model().cmp(&other.id.model());
        let begins = begin(price).cmp(&begin(other)).reverse();
        force.cmp(other_force).then(names).then(begins)
    });
    let volume = match visit.may(UseCase::UsageRead) {
        true => Some(volume(&visit, now).await?),
        false => None,
    };
    let report = volume.as_ref().and_then(|volume| volume.as_ref().ok());
    let shown = if shows_prices { judged.as_slice() } else { &[] };
    let card = |model: &ModelOffer| card(&visit, model, (&offered, shown), report.map(|it| &**it));
    let cards = offered.models.iter().map(card).collect();
    let title = visit.visitor.word("Catalogue", "Models");
    let empty = ModelsText::NoModel.to_string();
    let mut page = Page::new(title).section(Cards { title: "Models".to_owned(), cards, empty });
    page = volume.and_then(Result::err).into_iter().fold(page, Page::section);
    if offered.shows_routes {
        page = page.section(routes(&offered, &judged));
    }
    if shows_prices {
        page = page.section(prices(&judged));
    }
    Ok(page)
}

/// Usage of the last days by model, or the notice in its place.
async fn volume(visit: &Visit, now: Timestamp) -> Result<ReportOrNotice, Failure> {
    let (first, until) = (days_before(day_of(now), DAYS - 1), visit.shared.deadline());
    let by = [Grouping::by(GroupBy::Model)];
    usage::report(visit, ("Volume", "/models"), (&by, UsageFilter::default()), (first, until)).await
}

/// Card of a model: prices, bounds, health of its routes and recent volume, as far as the role may see them.
fn card(
    visit: &Visit,
    model: &ModelOffer,
    (offered, prices): (&OfferedModels, &JudgedPrices<'_>),
    report: Option<&UsageReport>,
) -> Facts {
    let contract = &model.contract;
    let name = contract.model.as_str();
    let mut rows = Vec::new();
    for (force, price) in prices.iter().filter(|(_, price)| price.id.model() == Some(name)) {
        let rate = |kind| money(amount(price.tariff.rates(), kind), price.currency);
        let (input, output) = (rate(MeterKind::Input), rate(MeterKind::Output));
        match force {
            Force::Now => rows
                .push(("Price per 1M", Cell::text(PriceText::Now { input, output }.to_string()))),
            Force::Later => {
                // Never without it: only a moment makes a price one to come.
                let Some(from) = begin(price).map(second) else { continue };
                let text = PriceText::Later { input, output, from }.to_string();
                rows.push(("Price to come", Cell::text(text)));
            }
            Force::Past => {}
        }
    }
    rows.push(("Context tokens", Cell::count(contract.context_tokens)));
    rows.push(("Max output tokens", Cell::count(contract.max_output_tokens)));
    if offered.shows_routes {
        rows.push(("Routes healthy", healthy(model)));
    }
    let of_model = |row: &&UsageRow| matches!(&row.group, Group::Model(id) if id == name);
    for UsageRow { currency, totals, .. } in report.iter().flat_map(|it| &it.rows).filter(of_model)
    {
        let href =
            with_query("/usage", &[("model", Some(name)), ("currency", Some(currency.as_str()))]);
        let count = grouped(&usage::requests(totals).to_string());
        rows.push(("Requests, 30 days", Cell::link(count, href)));
        let earned = cents(usage::revenue(totals), *currency);
        rows.push((usage::revenue_name(visit), Cell::Money(earned)));
        if report.is_some_and(|it| it.shows_costs) {
            rows.push(("Margin", margin_cell(totals, *currency)));
        }
    }
    rows.push(("Contract", Cell::count(contract.version)));
    rows.push(("Other fields", capabilities(contract)));
    Facts::new(name, rows)
}

/// Routes that take requests, of all.
fn healthy(model: &ModelOffer) -> Cell {
    let all = model.routes.len();
    let well = model.routes.iter().filter(|it| it.health == RouteHealth::Well).count();
    let tone = match well {
        _ if well == all && all > 0 => Tone::Good,
        0 => Tone::Bad,
        _some => Tone::Warning,
    };
    Cell::badge(format!("{well} of {all}"), tone)
}

/// Margin of the requests whose cost is known, red if it is a loss.
fn margin_cell(totals: &Totals, currency: Currency) -> Cell {
    let Some(share) = usage::margin_share(totals, currency) else { return Cell::text("not known") };
    let is_loss = totals.known().is_some_and(|known| known.margin < Micros::ZERO);
    if is_loss { Cell::badge(share, Tone::Bad) } else { Cell::Number(share) }
}

/// Fields that the model takes beside those that every model takes.
fn capabilities(contract: &Contract) -> Cell {
    let allowed = contract.allow.iter().map(|field| field.label().to_owned());
    let all = contract.accepts.iter().cloned().chain(allowed).collect::<Vec<_>>().join(", ");
    Cell::some_text(Some(all.as_str()).filter(|all| !all.is_empty()))
}

/// The routes with their health; with their cost and what the price in force leaves, for roles that see costs.
fn routes(offered: &OfferedModels, prices: &JudgedPrices<'_>) -> Table {
    let shows_costs = offered.shows_costs;
    let of_model = |model| move |route| (model, route);
    let all = offered.models.iter().flat_map(|model| model.routes.iter().map(of_model(model)));
    let row = |(model, route): (&ModelOffer, &RouteOffer)| {
        let mut row = health_row(model, route);
        if shows_costs {
            row.extend(cost_cells(model, route, prices));
        }
        row
    };
    let costs: &[&str] = if shows_costs { &COST_HEAD } else { &[] };
    let head = [&HEALTH_HEAD, costs].concat();
    let table = Table::new("Routes", &head, all.map(row).collect(), "No routes.");
    let usage = shows_costs.then(|| Link::new("Usage by route", "/usage?first=route"));
    usage.into_iter().fold(table, Table::link)
}

/// Cost of a route, and the margin of the price in force in its currency.
fn cost_cells(model: &ModelOffer, route: &RouteOffer, prices: &JudgedPrices<'_>) -> [Cell; 3] {
    // Not zero: the whole price would pass for margin.
    let Some(cost) = &route.cost else {
        return [Cell::Nothing, Cell::Nothing, Cell::text("not known")];
    };
    let (costs, currency) = (cost.tariff.rates(), cost.currency);
    let money = |kind| Cell::money(amount(costs, kind), currency);
    let is_own = |(force, price): &&(Force, &PriceVersion)| {
        price.id.model() == Some(model.contract.model.as_str())
            && price.currency == currency
            && *force == Force::Now
    };
    let own = prices.iter().find(is_own);
    let margin = own.map(|(_, price)| margin(price.tariff.rates(), costs));
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

fn prices(judged: &JudgedPrices<'_>) -> Table {
    let title = if judged.len() > PRICES { "First hundred prices" } else { "Prices" };
    let mut rows = Vec::new();
    for (force, price) in judged.iter().copied().take(PRICES) {
        let rates = price.tariff.rates();
        rows.push(price_row(price, force, "any", rates));
        for tier in price.tariff.tiers() {
            let prompt = format!("above {}", tier.above_prompt_tokens);
            rows.push(price_row(price, force, &prompt, &tier.rates));
        }
    }
    let head =
        ["Model", "From", "State", "Prompt tokens", "Input per 1M", "Output per 1M", "Others"];
    Table::new(title, &head, rows, ModelsText::NoPrice)
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
        format!("{name} {}", money(amount(rates, kind), currency))
    });
    let listed = listed.collect::<Vec<_>>().join(", ");
    Cell::some_text(Some(listed.as_str()).filter(|listed| !listed.is_empty()))
}

#[cfg(test)]
mod tests {
    use holdfast_domain::admin::report::Totals;
    use holdfast_domain::{Currency, Micros};

    use crate::kit::{Cell, Tone};
    use crate::pages::models::margin_cell;

    #[test]
    fn a_loss_is_red_and_an_unknown_cost_is_no_margin() {
        let sold = |cost: i64| {
            let [charge, cost] = [100, cost].map(Micros::new);
            let margin = charge.minus(cost).unwrap();
            let known = Totals { costed: 1, provider_cost: cost, margin, ..Totals::NOTHING };
            margin_cell(&Totals { completed: 1, charge, ..known }, Currency::USD)
        };
        assert_eq!(sold(80), Cell::Number("20.0 %".to_owned()));
        assert_eq!(sold(150), Cell::badge("-50.0 %", Tone::Bad));
        assert_eq!(margin_cell(&Totals::NOTHING, Currency::USD), Cell::text("not known"));
    }
}
