//! Usage as a file: a row for each group and currency, then the closing row. A group has one column, or an id beside
//! its name.
//!
//! Never: a zero for a sum that is not known, which is a dash in CSV and null in JSON lines.

use std::iter;

use holdfast_domain::admin::report::{Group, GroupBy, Grouping, KnownCost, UsageRow};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Micros, Timestamp};

use super::{CLOSING, FileCell, FileFormat};
use crate::api::rfc3339;
use crate::csv::DASH;

/// Columns of what usage cost the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostColumns {
    /// Costs, margins, exposures, and the number of operations whose cost is known.
    Shown,
    /// None of them, for whoever may not see costs.
    Hidden,
}

/// Rows of usage in one format.
#[derive(Debug, Clone)]
pub struct UsageFileRows {
    format: FileFormat,
    has_costs: bool,
    columns: Vec<&'static str>,
}

impl UsageFileRows {
    /// Rows of a report by these groups.
    #[must_use]
    pub fn new(format: FileFormat, by: Grouping, costs: CostColumns) -> Self {
        let has_costs = costs == CostColumns::Shown;
        let names = iter::once("kind").chain(by.keys().flat_map(group_columns).copied());
        let names = names.chain(["currency", "completed", "refused", "abandoned", "estimated"]);
        let names = names.chain(has_costs.then_some("costed"));
        let names = names.chain(MeterKind::ALL.map(MeterKind::label));
        let names = names.chain(["charge_micros", "shortfall_micros", "refunded_micros"]);
        let cost_names =
            ["provider_cost_micros", "margin_micros", "exposure_micros", "costs_excluded"];
        let names = names.chain(cost_names.into_iter().filter(|_name| has_costs));
        Self { format, has_costs, columns: names.chain(["incomplete", "rows"]).collect() }
    }

    /// The columns.
    #[must_use]
    pub fn head(&self) -> String {
        self.format.head(&self.columns)
    }

    /// Sums of one group in one currency.
    #[must_use]
    pub fn row(&self, UsageRow { group, second, currency, totals }: &UsageRow) -> String {
        let micros = |amount: Micros| FileCell::Number(amount.get());
        let mut cells = vec![FileCell::text("usage")];
        cells.extend(iter::once(group).chain(second).flat_map(group_cells));
        cells.push(FileCell::text(currency));
        let ends = [totals.completed, totals.refused, totals.abandoned, totals.estimated];
        let costed = self.has_costs.then_some(totals.costed);
        cells.extend(ends.into_iter().chain(costed).chain(totals.meters).map(FileCell::Count));
        cells.extend([totals.charge, totals.shortfall, totals.refunded].map(micros));
        if self.has_costs {
            let known = |amount: fn(KnownCost) -> Micros| {
                totals.known().map_or(FileCell::Unknown, |known| micros(amount(known)))
            };
            cells.extend([known(|it| it.provider_cost), known(|it| it.margin)]);
            cells.extend([micros(totals.exposure), FileCell::Count(totals.costs_excluded)]);
        }
        let is_incomplete = totals.is_saturated || (self.has_costs && totals.is_incomplete());
        cells.extend([FileCell::Truth(is_incomplete), FileCell::Nothing]);
        self.format.line(&self.columns, cells)
    }

    /// The number of rows.
    #[must_use]
    pub fn closing(&self, rows: u64) -> String {
        let nothing = iter::repeat_n(FileCell::Nothing, self.columns.len().saturating_sub(2));
        let cells = iter::once(FileCell::text(CLOSING)).chain(nothing);
        self.format.line(&self.columns, cells.chain([FileCell::Count(rows)]))
    }
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

fn group_cells(group: &Group) -> Vec<FileCell> {
    match group {
        Group::ApiKey { name, id } => vec![FileCell::text(id), FileCell::chosen(Some(name))],
        Group::Wallet { name, id } => vec![FileCell::text(id), FileCell::chosen(Some(name))],
        // Chosen by whoever wrote the configuration; none, which is no text of theirs, is a dash.
        Group::Model(text) | Group::Route(text) if !text.is_empty() => {
            vec![FileCell::chosen(Some(text))]
        }
        Group::Route(_) => vec![FileCell::Unknown],
        Group::Hour(_) | Group::Day(_) | Group::Month(_) | Group::Model(_) => {
            vec![FileCell::text(group_name(group))]
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
