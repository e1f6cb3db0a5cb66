//! Sums of usage as sections: the total, a chart with its ranking, and a table of some rows.
//!
//! ```text
//! report of the table's groups ─▶ tiles, table
//! report of period × dimension ─▶ chart, ranking      (too many groups ─▶ report of the periods)
//! ```
//!
//! The chart is a report of its own, since the table need not be grouped by time. Both have the filters
//! and the period of the address.
//!
//! Never: a margin of all revenue if only a part of the costs is known. It is of the requests whose cost is known.

use std::cmp::Reverse;

use holdfast_domain::admin::report::{Group, GroupBy, Grouping, Totals, UsageQuery, UsageRow};
use holdfast_domain::limits::Counter;
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Currency, Timestamp};
use holdfast_wire::file::group_name;
use tokio::time::Instant;

use super::{FIRST, FROM, ON, PRESET, SECOND, TO, address_with, label};
use crate::failure::Failure;
use crate::kit::counting::ReportView;
use crate::kit::moment::{day_after, hour_after, moment_after, short, written};
use crate::kit::sorting::{self, SortColumn};
use crate::kit::{
    Cell, Ranking, Section, SentFields, Step, Table, Tile, Tiles, TimeAxis, Visit, cents, exact,
    grouped, money, percent,
};
use crate::pages::parts::usage::{
    self as parts, COMPLETION, CurrencyRows, PROMPT, chart, margin_tile, ranked, requests, revenue,
    revenue_name, series, start,
};

texts! { #[template(path = "pages/usage.txt")] ViewText<'a> {
    Empty { currency: Option<Currency> } = "empty",
    Incomplete = "incomplete",
    Title { name: &'a str, by: &'a str, currency: Currency, step: &'a str, last: Option<usize> } = "title",
} }

/// Rows of the ranking.
const RANKED: usize = 10;

/// A report without rows, or without rows of this currency.
pub(super) fn nothing(currency: Option<Currency>) -> Table {
    Table::new("Breakdown", &[], Vec::new(), ViewText::Empty { currency })
}

/// Sums of all rows.
pub(super) fn tiles(visit: &Visit, rows: &CurrencyRows<'_>, shows_costs: bool) -> Tiles {
    let (total, currency) = (&rows.total, rows.currency);
    let earned = revenue(total);
    let is_incomplete = total.is_saturated || (shows_costs && total.is_incomplete());
    let note = if is_incomplete { ViewText::Incomplete.to_string() } else { String::new() };
    let mut tiles = vec![
        Tile::new(revenue_name(visit), cents(earned, currency))
            .exact(money(earned, currency))
            .note(note),
        Tile::new("Requests", grouped(&requests(total).to_string())),
    ];
    if shows_costs {
        tiles.insert(1, margin_tile("Margin", total, currency));
        let risk = Tile::new("At risk", cents(total.exposure, currency));
        tiles.push(risk.exact(money(total.exposure, currency)));
    }
    Tiles { title: String::new(), tiles }
}

/// The chart of a report, and the ranking of its series.
pub(super) async fn drawn(
    visit: &Visit,
    query: UsageQuery,
    (step, now, until): (Step, Timestamp, Instant),
    currency: Currency,
) -> Result<Vec<Section>, Failure> {
    let is_time = |by: &GroupBy| matches!(by, GroupBy::Hour | GroupBy::Day | GroupBy::Month);
    let other = if query.filter.model.is_some() { GroupBy::ApiKey } else { GroupBy::Model };
    let by = query.by.keys().find(|by| !is_time(by)).unwrap_or(other);
    let period = query.period;
    let whole = Grouping::by(step.group_by());
    let split = Grouping::by_both(step.group_by(), by).unwrap_or(whole);
    let asked = UsageQuery { by: split, ..query.clone() };
    let mut found = visit.shared.usage(&visit.visitor, asked, until).await;
    if matches!(&found, Err(failure) if failure.field.is_some()) {
        // More groups than a report may have: the sums of the periods are few.
        let asked = UsageQuery { by: whole, ..query };
        found = visit.shared.usage(&visit.visitor, asked, until).await;
    }
    let report = match found? {
        ReportView::There(report, _at) => report,
        ReportView::Absent(absence) => {
            let address = super::address("/usage", &visit.query);
            return Ok(vec![absence.notice("The chart", &address).into()]);
        }
    };
    let rows: Vec<_> = report.rows.iter().filter(|row| row.currency == currency).collect();
    let first = rows.iter().filter_map(|row| start(&row.group)).min();
    let (from, after_now) = (period.from.or(first).unwrap_or(now), moment_after(now));
    // Not past now: periods to come would be drawn as zeros.
    let axis = TimeAxis::new(step, from, period.to.unwrap_or(after_now).min(after_now));
    let of = |name: &str, id: &str| address_with(&visit.query, &[name], &[(name, id)]);
    let address = |group: &Group| parts::address(group, of);
    let all = series(&rows, &axis, address);
    let (name, dimension) = (revenue_name(visit), label(by).to_lowercase());
    let last = Some(axis.len()).filter(|_len| axis.is_cut(from));
    let title =
        ViewText::Title { name, by: &dimension, currency, step: step.word(), last }.to_string();
    let ranking = format!("{name} by {dimension}");
    let ranking = Ranking::new(&ranking, currency, RANKED, ranked(&rows, address));
    let chart = chart(&title, currency, &axis, all, |at| finer(&visit.query, &axis, at));
    Ok(vec![chart.into(), ranking.into()])
}

/// Address of the report of one period under the same filters.
fn finer(query: &SentFields, axis: &TimeAxis, start: Timestamp) -> String {
    let at = match axis.step {
        Step::Hour => short(start).chars().take(13).collect(),
        Step::Day | Step::Month => axis.name(start),
    };
    let keeps = query.get(FIRST).is_some_and(|name| !matches!(name, "hour" | "day" | "month"));
    // An hour has no finer report over time: it leads to that by API key.
    let is_hour = axis.step == Step::Hour && !keeps;
    let mut with = vec![(ON, at.as_str())];
    with.extend(is_hour.then_some((FIRST, "api_key")));
    let always = [ON, FROM, TO, PRESET];
    let groups: &[&str] = if keeps { &[] } else { &[FIRST, SECOND] };
    address_with(query, &[&always, groups].concat(), &with)
}

/// Columns by which the rows are sorted, after those of groups, in the order of [`columns`].
const SORTS: [SortColumn<UsageRow>; 7] = [
    SortColumn::Number("completed", |it| it.totals.completed.into()),
    SortColumn::Number("refused", |it| it.totals.refused.into()),
    SortColumn::Number("unconfirmed", |it| it.totals.abandoned.into()),
    SortColumn::Number("tokens_in", |it| units(&it.totals, &PROMPT).into()),
    SortColumn::Number("tokens_out", |it| units(&it.totals, &COMPLETION).into()),
    SortColumn::Number("charge", |it| it.totals.charge.get().into()),
    SortColumn::Number("refunded", |it| it.totals.refunded.get().into()),
];

/// Rows in the order of the address, or the newest first, and of one period or of none the largest.
pub(super) fn sorted(rows: &[&UsageRow], query: &SentFields) -> Vec<UsageRow> {
    let mut rows: Vec<UsageRow> = rows.iter().map(|row| (*row).clone()).collect();
    rows.sort_by_key(|row| (Reverse(start(&row.group)), Reverse(row.totals.charge)));
    sorting::sort(&SORTS, query, &mut rows);
    rows
}

/// Some of the rows, with the sums of all.
pub(super) fn table(
    title: &str,
    by: Grouping,
    (shown, all): (&[UsageRow], &CurrencyRows<'_>),
    (query, shows_costs): (&SentFields, bool),
) -> Table {
    let mut head: Vec<_> = by.keys().map(|by| label(by).to_owned()).collect();
    let mut total: Vec<_> = head.iter().map(|_| Cell::Text(String::new())).collect();
    if let Some(first) = total.first_mut() {
        *first = Cell::text("Total");
    }
    total.extend(cells(&all.total, shows_costs));
    head.extend(columns(all.currency, shows_costs));
    let line = |row: &UsageRow| {
        let groups = std::iter::once(&row.group).chain(&row.second);
        let mut line: Vec<_> = groups.map(|it| group(it, query)).collect();
        line.extend(cells(&row.totals, shows_costs));
        line
    };
    let head: Vec<_> = head.iter().map(String::as_str).collect();
    let keys: Vec<_> = by.keys().map(label).collect();
    let mut sorts: Vec<_> = keys.iter().map(|_key| None).collect();
    sorts.extend(sorting::links(&SORTS, "/usage", query));
    Table::new(title, &head, shown.iter().map(line).collect(), "")
        .keep(&keys)
        .total(total)
        .sorts(sorts)
}

fn columns(currency: Currency, shows_costs: bool) -> Vec<String> {
    let counts = ["Completed", "Refused", "Outcome unknown", "Tokens in", "Tokens out"];
    let costs = ["Cost", "Margin", "At risk"].into_iter().filter(|_| shows_costs);
    let amounts = ["Charge", "Refunded"].into_iter().chain(costs);
    let amounts = amounts.map(|name| format!("{name}, {currency}"));
    counts.into_iter().map(str::to_owned).chain(amounts).collect()
}

fn cells(totals: &Totals, shows_costs: bool) -> Vec<Cell> {
    let mut cells = vec![
        Cell::count(totals.completed),
        Cell::count(totals.refused),
        Cell::count(totals.abandoned),
        Cell::count(units(totals, &PROMPT)),
        Cell::count(units(totals, &COMPLETION)),
        Cell::Money(exact(totals.charge)),
        Cell::Money(exact(totals.refunded)),
    ];
    if shows_costs {
        cells.extend(margin(totals));
        cells.push(Cell::Money(exact(totals.exposure)));
    }
    cells
}

/// Sum of the meters of these kinds.
fn units(totals: &Totals, kinds: &[MeterKind]) -> u64 {
    let meters = MeterKind::ALL.into_iter().zip(totals.meters);
    let own = meters.filter(|(kind, _)| kinds.contains(kind));
    own.fold(0_u64, |sum, (_, count)| sum.saturating_add(count))
}

/// Cost and margin of the requests whose cost is known. Both add up to the revenue beside the margin.
fn margin(totals: &Totals) -> [Cell; 2] {
    let Some(known) = totals.known() else {
        let nothing = || match totals.completed {
            0 => Cell::Nothing,
            _some => Cell::Number("not known".to_owned()),
        };
        return [nothing(), nothing()];
    };
    let cost = exact(known.provider_cost);
    // A part is said to be one: the rest is not zero.
    let cost = if totals.costed == totals.completed && !totals.is_saturated {
        Cell::Money(cost)
    } else {
        Cell::Part(cost, format!("for {} of {}", totals.costed, totals.completed))
    };
    let whole = known.margin.plus(known.provider_cost).unwrap_or(known.margin);
    let margin = match percent(known.margin.get(), whole.get()) {
        Some(share) => Cell::Part(exact(known.margin), format!("{share} of {}", exact(whole))),
        None => Cell::Money(exact(known.margin)),
    };
    [cost, margin]
}

/// A group, with a link to what it is, or to its parts under the same filters.
fn group(group: &Group, query: &SentFields) -> Cell {
    let name = group_name(group);
    let of = |name: &str, id: &str| {
        address_with(query, &[FIRST, SECOND, name], &[(FIRST, "day"), (name, id)])
    };
    if let Some(href) = parts::address(group, of) {
        return Cell::link(name, href);
    }
    let span = |first: &str, from: Timestamp, to: Timestamp| {
        let (from, to) = (written(from), written(to));
        let with = [(FIRST, first), (FROM, from.as_str()), (TO, to.as_str())];
        Cell::link(&name, address_with(query, &[FIRST, SECOND, FROM, TO, ON, PRESET], &with))
    };
    match group {
        Group::Day(start) => span("hour", *start, day_after(*start)),
        Group::Hour(start) => span("api_key", *start, hour_after(*start)),
        Group::Month(start) => {
            span("day", *start, Counter::SpendMonth.window_end(*start).unwrap_or(*start))
        }
        Group::Wallet { .. } | Group::ApiKey { .. } | Group::Model(_) | Group::Route(_) => {
            Cell::text(name)
        }
    }
}
