//! Routes of providers over all nodes: error rate, latencies, the last error, since when a route fails, and the circuit
//! breaker of each node. For operators: a route names a provider, and an error has its words.
//!
//! An error is status, error names and a filtered message; without any part of a request (`proof::failure_note` of
//! `holdfast-providers`).

use std::collections::BTreeMap;

use holdfast_accounts::{AttemptSums, RouteHistory};
use holdfast_domain::Timestamp;
use holdfast_domain::statistics::{AttemptOutcome, RouteFailure, RouteHour};

use crate::failure::Failure;
use crate::kit::moment::{days_before, moment_after};
use crate::kit::{
    Cell, Facts, Page, Period, Section, Series, Step, Table, TimeAxis, TimeChart, Unit, Visit,
};
use crate::pages::parts::route::{breakers, error_rate, milliseconds, note, report_row};

texts! { #[template(path = "pages/routes.txt")] RoutesText {
    Empty = "empty",
    Intro = "intro",
} }

/// Days of the chart: its periods are hours.
const DAYS: u32 = 2;
/// Values of a chart are millionths.
const ONE: i64 = 1_000_000;

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let routes = visit.accounts().routes(visit.principal()).await?;
    let now = visit.accounts().clock().await?;
    let rows = routes.iter().map(|report| report_row(report, now));
    let table = Table::of("Last 24 hours", rows, RoutesText::Empty);
    let table = table.keep(&["Error rate", "Failing since", "Last error"]);
    Ok(Page::new("Routes").intro(RoutesText::Intro.to_string()).section(table))
}

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let name = visit.query.get("name").unwrap_or_default();
    let history = visit.accounts().route(visit.principal(), name).await?;
    let RouteHistory { report, hours, failures, now } = history;
    let sums = &report.sums;
    let [p50, p95] = [50, 95].map(|percent| milliseconds(sums.latencies.percentile_ms(percent)));
    let [first_p50, first_p95] =
        [50, 95].map(|percent| milliseconds(sums.first_token.percentile_ms(percent)));
    let error = report.last_error.as_ref();
    let facts = vec![
        ("Failing since", Cell::some_moment(report.failing_since)),
        ("Last error", note(error.map(|(_, note)| note))),
        ("Last error at", Cell::some_moment(error.map(|(at, _)| *at))),
        ("Error rate", error_rate(sums)),
        ("Attempts", Cell::count(sums.attempts)),
        ("Failed attempts", Cell::count(sums.failed)),
        ("Refused requests", Cell::count(sums.refused)),
        ("p50", p50),
        ("p95", p95),
        ("First token p50", first_p50),
        ("First token p95", first_p95),
        ("Circuit breakers", breakers(&report, now)),
    ];
    let page = Page::new(&*report.name).below("Routes", "/routes");
    let page = page.section(Facts::new("Last 24 hours", facts)).section(chart(&hours, now));
    Ok(page.section(failure_table(&failures)).section(hour_table(&hours)))
}

/// Attempts of the last hours, failed ones apart.
fn chart(hours: &[RouteHour], now: Timestamp) -> Section {
    let axis = TimeAxis::new(Step::Hour, days_before(now, DAYS), moment_after(now));
    let series = |name: &str, is_of: fn(AttemptOutcome) -> bool| {
        let mut values = vec![0_i64; axis.len()];
        for row in hours.iter().filter(|row| is_of(row.outcome)) {
            if let Some(value) = axis.index(row.hour).and_then(|at| values.get_mut(at)) {
                let attempts = i64::try_from(row.attempts).unwrap_or(i64::MAX);
                *value = value.saturating_add(attempts.saturating_mul(ONE));
            }
        }
        Series { name: name.to_owned(), href: None, values }
    };
    let all = vec![
        series("Answered", |outcome| outcome == AttemptOutcome::Answered),
        series("Failed", AttemptOutcome::is_failure),
        series("Refused or cut", |outcome| {
            matches!(outcome, AttemptOutcome::Refused | AttemptOutcome::Cut)
        }),
    ];
    let period = |(start, _end)| Period {
        name: axis.name(start),
        short: axis.short_name(start),
        href: "#failures".to_owned(),
    };
    let periods: Vec<_> = axis.spans().map(period).collect();
    TimeChart::new("Attempts per hour", Unit::Count, &periods, all).into()
}

fn failure_table(failures: &[RouteFailure]) -> Table {
    let row = |failure: &RouteFailure| {
        [
            ("Time", Cell::moment(failure.at)),
            ("Model", Cell::text(failure.model.as_str())),
            ("Class", Cell::code(&failure.class)),
            ("Error", note(Some(&failure.error))),
        ]
    };
    Table::of("Last failures", failures.iter().map(row), "No recent failures.")
}

fn hour_table(hours: &[RouteHour]) -> Table {
    let mut by_hour: BTreeMap<Timestamp, Vec<&RouteHour>> = BTreeMap::new();
    for row in hours {
        by_hour.entry(row.hour).or_default().push(row);
    }
    let row = |(hour, rows): (&Timestamp, &Vec<&RouteHour>)| {
        let sums = AttemptSums::of(rows.iter().copied());
        [
            ("Hour", Cell::moment(*hour)),
            ("Attempts", Cell::count(sums.attempts)),
            ("Failed", Cell::count(sums.failed)),
            ("Error rate", error_rate(&sums)),
            ("p50", milliseconds(sums.latencies.percentile_ms(50))),
            ("p95", milliseconds(sums.latencies.percentile_ms(95))),
        ]
    };
    // A day, newest first: the command line prints seven.
    Table::of("Hours", by_hour.iter().rev().take(24).map(row), "No recent attempts.")
}
