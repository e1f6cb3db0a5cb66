//! Reports of usage as several pages show them: their currencies, their charts and their rankings.
//!
//! Revenue is charges less refunds, of the hour in which a request finished.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_accounts::UsageReport;
use holdfast_domain::admin::listing::Period as Span;
use holdfast_domain::admin::report::{
    Group, GroupBy, Grouping, Totals, UsageFilter, UsageQuery, UsageRow,
};
use holdfast_domain::admin::{ResourceId, UseCase};
use holdfast_domain::limits::Counter;
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Currency, Micros, Timestamp, WalletId};
use holdfast_wire::file::group_name;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::kit::counting::{Absence, ReportView};
use crate::kit::{
    Cell, Notice, Period, RankingEntry, Series, Tile, TimeAxis, TimeChart, Tone, Visit, cents,
    money, percent,
};

texts! { #[template(path = "pages/usage.txt")] UsagePartText<'a> {
    Counted = "counted",
    KnownCost { of: String } = "known_cost",
    Missing { part: &'a str, cause: &'a str } = "missing",
} }

/// Meters of a prompt.
pub(crate) const PROMPT: [MeterKind; 4] =
    [MeterKind::Input, MeterKind::CachedInput, MeterKind::CacheWrite, MeterKind::AudioInput];
/// Meters of a completion.
pub(crate) const COMPLETION: [MeterKind; 3] =
    [MeterKind::Output, MeterKind::Reasoning, MeterKind::AudioOutput];

/// Name of the charges less refunds of a month.
pub(crate) const SPEND_OF_MONTH: &str = "Spend this month";

/// Rows of one currency.
#[derive(Debug)]
pub(crate) struct CurrencyRows<'r> {
    pub(crate) currency: Currency,
    pub(crate) rows: Vec<&'r UsageRow>,
    pub(crate) total: Totals,
}

/// A report, or the notice in its place.
pub(crate) type ReportOrNotice = Result<Arc<UsageReport>, Notice>;

/// The report `what` from a moment on by the first of these groupings that has few enough rows, read until a deadline
/// for the page at this address.
pub(crate) async fn report(
    visit: &Visit,
    (what, address): (&str, &str),
    (groupings, filter): (&[Grouping], UsageFilter),
    (from, until): (Timestamp, Instant),
) -> Result<ReportOrNotice, Failure> {
    let period = Span { from: Some(from), to: None };
    let mut notice = Absence::Failed.notice(what, address);
    for by in groupings.iter().copied() {
        let query = UsageQuery { by, filter: filter.clone(), period, rows_max: None };
        match visit.shared.usage(&visit.visitor, query, until).await {
            Ok(ReportView::There(report, _at)) => return Ok(Ok(report)),
            Ok(ReportView::Absent(absence)) => return Ok(Err(absence.notice(what, address))),
            // Too many groups for a report: the next grouping has fewer.
            Err(failure) if failure.field.is_some() => {
                let text = UsagePartText::Missing { part: what, cause: &failure.message };
                let text = text.to_string();
                notice = Notice::new(Tone::Warning, text).link("Usage", "/usage");
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(Err(notice))
}

/// Charges less refunds of a resource.
pub(crate) type Spend = (Micros, Currency);

/// Charges less refunds of this month by wallet or by API key, for the list at this address; without them the notice in
/// their place, or none for a role that may not read usage.
pub(crate) async fn spend_of_month(
    visit: &Visit,
    by: GroupBy,
    address: &str,
) -> Result<(Option<BTreeMap<ResourceId, Spend>>, Vec<Notice>), Failure> {
    if !visit.may(UseCase::UsageRead) {
        return Ok((None, Vec::new()));
    }
    let month = Counter::SpendMonth.window(visit.accounts().clock().await?);
    let by = ([Grouping::by(by)], UsageFilter::default());
    let span = (month, visit.shared.deadline());
    let read = report(visit, (SPEND_OF_MONTH, address), (&by.0, by.1), span).await?;
    let of = |row: &UsageRow| Some((thing(&row.group)?, (revenue(&row.totals), row.currency)));
    Ok(match read {
        Ok(report) => (Some(report.rows.iter().filter_map(of).collect()), Vec::new()),
        Err(notice) => (None, vec![notice]),
    })
}

/// Wallet or API key that is a group.
const fn thing(group: &Group) -> Option<ResourceId> {
    match group {
        Group::Wallet { id, .. } => Some(ResourceId::Wallet(*id)),
        Group::ApiKey { id, .. } => Some(ResourceId::ApiKey(*id)),
        Group::Model(_) | Group::Route(_) => None,
        Group::Hour(_) | Group::Day(_) | Group::Month(_) => None,
    }
}

/// Cell of a spend; one without a request is zero.
pub(crate) fn spend_cell(spend: Option<Spend>) -> Cell {
    spend.map_or(Cell::Nothing, |(amount, currency)| Cell::Money(cents(amount, currency)))
}

/// Notice of the moments at which usage and payments count.
pub(crate) fn counted() -> Notice {
    Notice::new(Tone::Plain, UsagePartText::Counted.to_string()).link("Payments", "/payments")
}

/// Rows by currency, the one with the most volume first.
pub(crate) fn by_currency(rows: &[UsageRow]) -> Vec<CurrencyRows<'_>> {
    let mut all: BTreeMap<Currency, Vec<&UsageRow>> = BTreeMap::new();
    for row in rows {
        all.entry(row.currency).or_default().push(row);
    }
    let of_currency = |(currency, rows): (Currency, Vec<_>)| {
        let total = sum(&rows);
        CurrencyRows { currency, rows, total }
    };
    let mut all: Vec<_> = all.into_iter().map(of_currency).collect();
    all.sort_by_key(|it| (Reverse(it.total.charge), Reverse(requests(&it.total))));
    all
}

pub(crate) fn sum<'r>(rows: impl IntoIterator<Item = &'r &'r UsageRow>) -> Totals {
    rows.into_iter().fold(Totals::NOTHING, |sum, row| sum.plus(&row.totals))
}

/// Charges less refunds.
pub(crate) fn revenue(totals: &Totals) -> Micros {
    totals.charge.minus(totals.refunded).unwrap_or(Micros::ZERO)
}

/// Requests that ended, however they did.
pub(crate) const fn requests(totals: &Totals) -> u64 {
    totals.completed.saturating_add(totals.refused).saturating_add(totals.abandoned)
}

/// Name of revenue on pages: a holder pays it.
pub(crate) fn revenue_name(visit: &Visit) -> &'static str {
    if visit.principal().only_wallet().is_some() { "Spend" } else { "Revenue" }
}

/// Margin of the requests whose cost is known, in percent of their revenue.
pub(crate) fn margin_tile(label: &str, total: &Totals, currency: Currency) -> Tile {
    let Some((known, share)) = total.known().zip(margin_share(total, currency)) else {
        return Tile::new(label, "–").note("no known cost");
    };
    let whole = known.margin.plus(known.provider_cost).unwrap_or(known.margin);
    let note = UsagePartText::KnownCost { of: cents(whole, currency) }.to_string();
    Tile::new(label, share).exact(money(known.margin, currency)).note(note)
}

/// Margin as a share of the revenue whose cost is known, or as an amount if it is a loss without revenue. None if no
/// cost is known.
pub(crate) fn margin_share(total: &Totals, currency: Currency) -> Option<String> {
    let known = total.known()?;
    let whole = known.margin.plus(known.provider_cost).unwrap_or(known.margin);
    // Of the revenue of these requests only: of all revenue, an unknown cost would count as zero.
    let share = percent(known.margin.get(), whole.get());
    Some(share.unwrap_or_else(|| cents(known.margin, currency)))
}

/// First moment of a group of time.
pub(crate) const fn start(group: &Group) -> Option<Timestamp> {
    match group {
        Group::Hour(start) | Group::Day(start) | Group::Month(start) => Some(*start),
        Group::Model(_) | Group::ApiKey { .. } | Group::Wallet { .. } | Group::Route(_) => None,
    }
}

/// Wallet that is a group.
pub(crate) const fn wallet(group: &Group) -> Option<WalletId> {
    match group {
        Group::Wallet { id, .. } => Some(*id),
        Group::ApiKey { .. } | Group::Model(_) | Group::Route(_) => None,
        Group::Hour(_) | Group::Day(_) | Group::Month(_) => None,
    }
}

/// Address of the rows behind a group that is no period, if there is one.
pub(crate) fn address(group: &Group, report: impl FnOnce(&str, &str) -> String) -> Option<String> {
    match group {
        Group::Wallet { id, .. } => Some(format!("/wallets/{id}")),
        Group::ApiKey { id, .. } => Some(format!("/keys/{id}")),
        Group::Model(id) => Some(report("model", id)),
        Group::Route(route) if !route.is_empty() => Some(report("route", route)),
        Group::Route(_) | Group::Hour(_) | Group::Day(_) | Group::Month(_) => None,
    }
}

/// Revenue over time by the second group of the rows, whose first is a period of the axis.
pub(crate) fn series(
    rows: &[&UsageRow],
    axis: &TimeAxis,
    href: impl Fn(&Group) -> Option<String>,
) -> Vec<Series> {
    let mut all: BTreeMap<Option<&Group>, Series> = BTreeMap::new();
    for row in rows {
        let second = row.second.as_ref();
        let series = all.entry(second).or_insert_with(|| Series {
            name: name_of(second),
            href: second.and_then(&href),
            // A period without a row is zero, and no gap in the drawing.
            values: vec![0; axis.len()],
        });
        let index = start(&row.group).and_then(|at| axis.index(at));
        if let Some(value) = index.and_then(|index| series.values.get_mut(index)) {
            *value = value.saturating_add(revenue(&row.totals).get());
        }
    }
    all.into_values().collect()
}

/// Chart of series over an axis, each of whose periods leads to this address.
pub(crate) fn chart(
    title: &str,
    currency: Currency,
    axis: &TimeAxis,
    series: Vec<Series>,
    href: impl Fn(Timestamp) -> String,
) -> TimeChart {
    let period = |(start, _end)| Period {
        name: axis.name(start),
        short: axis.short_name(start),
        href: href(start),
    };
    let periods: Vec<_> = axis.spans().map(period).collect();
    TimeChart::new(title, currency, &periods, series)
}

/// Revenue of all rows by their second group, as rows of a ranking.
pub(crate) fn ranked(
    rows: &[&UsageRow],
    href: impl Fn(&Group) -> Option<String>,
) -> Vec<RankingEntry> {
    let mut all: BTreeMap<Option<&Group>, i64> = BTreeMap::new();
    for row in rows {
        let sum = all.entry(row.second.as_ref()).or_insert(0);
        *sum = sum.saturating_add(revenue(&row.totals).get());
    }
    let entry = |(group, value): (Option<&Group>, i64)| RankingEntry {
        name: name_of(group),
        href: group.and_then(&href),
        value,
    };
    all.into_iter().map(entry).collect()
}

/// Name of the second group of a row; rows without one are of all.
fn name_of(group: Option<&Group>) -> String {
    group.map_or_else(|| "All".to_owned(), group_name)
}
