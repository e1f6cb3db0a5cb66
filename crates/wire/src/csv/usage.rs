//! Usage as CSV: a row for each group and currency. A group has one column, or an id beside its name.
//! What is not known is a dash, and never zero.

use holdfast_domain::admin::report::{Group, GroupBy, Grouping, KnownCost, UsageRow};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Micros, Timestamp};

use super::{chosen, record};
use crate::api::rfc3339;

/// Stands for what is not known, or is none.
const DASH: &str = "-";

/// Columns of what usage cost the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostColumns {
    /// Costs, margins, exposures, and the number of operations whose cost is known.
    Shown,
    /// None of them, for readers who may not see costs.
    Hidden,
}

/// The sums of a report, with the names of the columns above them.
#[must_use]
pub fn usage(by: Grouping, rows: &[UsageRow], costs: CostColumns) -> String {
    let has_costs = costs == CostColumns::Shown;
    let names = by.keys().flat_map(group_columns).copied().chain(["currency"]);
    let names = names.chain(["completed", "refused", "abandoned", "estimated"]);
    let names = names.chain(has_costs.then_some("costed"));
    let names = names.chain(MeterKind::ALL.map(MeterKind::label));
    let names = names.chain(["charge_micros", "shortfall_micros", "refunded_micros"]);
    let cost_names = ["provider_cost_micros", "margin_micros", "exposure_micros", "costs_excluded"];
    let mut text =
        record(names.chain(cost_names.into_iter().filter(|_name| has_costs)).chain(["incomplete"]));
    for row in rows {
        text.push_str(&record(cells(row, has_costs).iter().map(String::as_str)));
    }
    text
}

fn cells(row: &UsageRow, has_costs: bool) -> Vec<String> {
    let UsageRow { group, second, currency, totals } = row;
    let micros = |amount: Micros| amount.get().to_string();
    let mut cells: Vec<_> = std::iter::once(group).chain(second).flat_map(group_cells).collect();
    cells.push(currency.to_string());
    let ends = [totals.completed, totals.refused, totals.abandoned, totals.estimated];
    let counts = ends.into_iter().chain(has_costs.then_some(totals.costed)).chain(totals.meters);
    cells.extend(counts.map(|count| count.to_string()));
    cells.extend([totals.charge, totals.shortfall, totals.refunded].map(micros));
    if has_costs {
        let known = |amount: fn(KnownCost) -> Micros| {
            totals.known().map_or_else(|| DASH.to_owned(), |known| micros(amount(known)))
        };
        let (cost, margin) = (known(|it| it.provider_cost), known(|it| it.margin));
        cells.extend([cost, margin, micros(totals.exposure), totals.costs_excluded.to_string()]);
    }
    let is_incomplete = totals.is_saturated || (has_costs && totals.is_incomplete());
    cells.push(is_incomplete.to_string());
    cells
}

fn group_columns(by: GroupBy) -> &'static [&'static str] {
    match by {
        GroupBy::Hour => &["hour"],
        GroupBy::Day => &["day"],
        GroupBy::Month => &["month"],
        GroupBy::Model => &["model"],
        // The id beside the name, whose spelling `chosen` may change.
        GroupBy::ApiKey => &["api_key_id", "api_key_name"],
        GroupBy::Wallet => &["wallet_id", "wallet_name"],
        GroupBy::Route => &["route"],
    }
}

fn group_cells(group: &Group) -> Vec<String> {
    match group {
        Group::ApiKey { name, id } => vec![id.to_string(), chosen(name)],
        Group::Wallet { name, id } => vec![id.to_string(), chosen(name)],
        // Chosen by whoever wrote the configuration; none, which is no text of theirs, is a dash.
        Group::Model(text) | Group::Route(text) if !text.is_empty() => vec![chosen(text)],
        Group::Hour(_) | Group::Day(_) | Group::Month(_) | Group::Model(_) | Group::Route(_) => {
            vec![group_name(group)]
        }
    }
}

/// The name that people have for a group.
#[must_use]
pub fn group_name(group: &Group) -> String {
    match group {
        Group::Hour(start) => format!("{}Z", first(*start, 19)),
        Group::Day(start) => first(*start, 10),
        Group::Month(start) => first(*start, 7),
        Group::Model(id) => id.clone(),
        Group::ApiKey { name, .. } | Group::Wallet { name, .. } => name.clone(),
        Group::Route(route) if route.is_empty() => DASH.to_owned(),
        Group::Route(route) => route.clone(),
    }
}

/// The first characters of a moment.
fn first(moment: Timestamp, characters: usize) -> String {
    rfc3339(moment).chars().take(characters).collect()
}
