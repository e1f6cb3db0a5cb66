//! Sums of usage as sections: bars of charges, sums over all rows, and a table of some.

use holdfast_domain::admin::report::{Group, Grouping, Totals, UsageRow};
use holdfast_domain::limits::Counter;
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Currency, Micros, Timestamp};
use holdfast_wire::csv::group_name;

use super::label;
use crate::kit::address::with_query;
use crate::kit::ask::SentFields;
use crate::kit::cell::{Cell, money};
use crate::kit::moment::{day_after, hour_after, written};
use crate::kit::section::{Chart, Table};

/// Most bars of a chart.
const BARS: usize = 62;

/// A chart of charges by the first dimension, for each currency; one bar alone would say nothing.
pub(super) fn charts(rows: &[UsageRow]) -> Vec<Chart> {
    let charts = currencies(rows).into_iter().map(|currency| chart(rows, currency));
    charts.filter(|chart| chart.bars.len() > 1).collect()
}

fn chart(rows: &[UsageRow], currency: Currency) -> Chart {
    let mut bars: Vec<(&Group, Micros)> = Vec::new();
    for row in rows.iter().filter(|row| row.currency == currency) {
        let charge = row.totals.charge;
        // Rows are sorted by their groups.
        match bars.last_mut().filter(|(group, _)| **group == row.group) {
            Some((_, sum)) => *sum = sum.plus(charge).unwrap_or(Micros::MAX),
            None => bars.push((&row.group, charge)),
        }
    }
    let left_out = bars.len().saturating_sub(BARS);
    let title = if left_out == 0 {
        format!("Charges in {currency}")
    } else {
        format!("Charges in {currency}, the last {BARS} groups")
    };
    let bar = |(group, sum): (&Group, Micros)| (group_name(group), sum.get(), money(sum, currency));
    Chart::new(&title, bars.into_iter().skip(left_out).map(bar).collect())
}

fn currencies(rows: &[UsageRow]) -> Vec<Currency> {
    let mut all: Vec<_> = rows.iter().map(|row| row.currency).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Sums over all rows, by currency.
pub(super) fn sums(rows: &[UsageRow], shows_costs: bool) -> Table {
    let mut lines = Vec::new();
    for currency in currencies(rows) {
        let own = rows.iter().filter(|row| row.currency == currency);
        let sum = own.fold(Totals::NOTHING, |sum, row| sum.plus(&row.totals));
        let mut line = vec![Cell::text(currency.to_string())];
        line.extend(cells(&sum, currency, shows_costs));
        lines.push(line);
    }
    let mut head = vec!["Currency"];
    head.extend(columns(shows_costs));
    let is_incomplete = rows
        .iter()
        .any(|row| row.totals.is_saturated || (shows_costs && row.totals.is_incomplete()));
    let title = if is_incomplete { "All together, incomplete" } else { "All together" };
    Table::new(title, &head, lines, "")
}

/// Some of the rows.
pub(super) fn table(
    title: &str,
    by: Grouping,
    rows: &[&UsageRow],
    (query, shows_costs): (&SentFields, bool),
) -> Table {
    let mut head: Vec<_> = by.keys().map(label).collect();
    head.extend(columns(shows_costs));
    let line = |row: &&UsageRow| {
        let groups = std::iter::once(&row.group).chain(&row.second);
        let mut line: Vec<_> = groups.map(|it| group(it, query)).collect();
        line.extend(cells(&row.totals, row.currency, shows_costs));
        line
    };
    let empty = "Nothing finished in this period. Widen it, or send a request: it is counted when \
        it has ended.";
    Table::new(title, &head, rows.iter().map(line).collect(), empty)
}

fn columns(shows_costs: bool) -> impl Iterator<Item = &'static str> {
    let all =
        ["Completed", "Refused", "Abandoned", "Tokens in", "Tokens out", "Charge", "Refunded"];
    let costs = ["Cost", "Margin", "Exposure"];
    all.into_iter().chain(costs.into_iter().filter(move |_name| shows_costs))
}

fn cells(totals: &Totals, currency: Currency, shows_costs: bool) -> Vec<Cell> {
    let count = |kinds: &[MeterKind]| {
        let meters = MeterKind::ALL.into_iter().zip(totals.meters);
        let own = meters.filter(|(kind, _)| kinds.contains(kind));
        Cell::count(own.fold(0_u64, |sum, (_, count)| sum.saturating_add(count)))
    };
    let prompt =
        [MeterKind::Input, MeterKind::CachedInput, MeterKind::CacheWrite, MeterKind::AudioInput];
    let mut cells = vec![
        Cell::count(totals.completed),
        Cell::count(totals.refused),
        Cell::count(totals.abandoned),
        count(&prompt),
        count(&[MeterKind::Output, MeterKind::Reasoning, MeterKind::AudioOutput]),
        Cell::money(totals.charge, currency),
        Cell::money(totals.refunded, currency),
    ];
    if shows_costs {
        let known = totals.known();
        let told = |amount: Option<Micros>| match amount {
            Some(amount) if totals.costed == totals.completed && !totals.is_saturated => {
                Cell::money(amount, currency)
            }
            // A part is said to be one: the rest is not zero.
            Some(amount) => {
                Cell::Number(format!("{} of {} known", money(amount, currency), totals.costed))
            }
            None if totals.completed == 0 => Cell::Nothing,
            None => Cell::Number("not known".to_owned()),
        };
        cells.extend([
            told(known.map(|known| known.provider_cost)),
            told(known.map(|known| known.margin)),
            Cell::money(totals.exposure, currency),
        ]);
    }
    cells
}

/// A group, with a link to what it is, or to its parts under the same filters.
fn group(group: &Group, query: &SentFields) -> Cell {
    let name = group_name(group);
    let parts = |first: &str, own: &[(&str, &str)]| {
        let mut params = vec![("first", Some(first))];
        params.extend(own.iter().map(|(name, value)| (*name, Some(*value))));
        let is_replaced = |name: &str| {
            matches!(name, "first" | "second" | "after") || own.iter().any(|it| it.0 == name)
        };
        let kept = query.iter().filter(|(name, _)| !is_replaced(name));
        params.extend(kept.map(|(name, value)| (name, Some(value))));
        with_query("/usage", &params)
    };
    let span = |first: &str, from: Timestamp, to: Timestamp| {
        parts(first, &[("from", &written(from)), ("to", &written(to))])
    };
    match group {
        Group::Wallet { id, .. } => Cell::link(name, format!("/wallets/{id}")),
        Group::ApiKey { id, .. } => Cell::link(name, format!("/keys/{id}")),
        Group::Model(id) => Cell::link(&name, parts("day", &[("model", id)])),
        Group::Route(route) if route.is_empty() => Cell::text(name),
        Group::Route(route) => Cell::link(&name, parts("day", &[("route", route)])),
        Group::Day(start) => Cell::link(name, span("hour", *start, day_after(*start))),
        Group::Hour(start) => Cell::link(name, span("api_key", *start, hour_after(*start))),
        Group::Month(start) => {
            let end = Counter::SpendMonth.window_end(*start).unwrap_or(*start);
            Cell::link(name, span("day", *start, end))
        }
    }
}
