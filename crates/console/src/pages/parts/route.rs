//! Routes and their health, as several pages show them.

use holdfast_accounts::{AttemptSums, RouteReport};
use holdfast_domain::Timestamp;
use holdfast_domain::admin::offer::{ModelOffer, RouteHealth, RouteOffer};
use holdfast_domain::ports::FailureNote;
use holdfast_domain::statistics::{BreakerCondition, Latencies, NodeBreaker};

use crate::kit::moment::second;
use crate::kit::{Cell, Tone, grouped, with_query};

/// Head of a table of routes and their health.
pub(crate) const HEALTH_HEAD: [&str; 7] =
    ["Model", "Route", "Health", "Retry in", "Runs", "Priority", "Weight"];

/// Row of a route with its health.
pub(crate) fn health_row(model: &ModelOffer, route: &RouteOffer) -> Vec<Cell> {
    let health = match route.health {
        RouteHealth::Well => Cell::badge("healthy", Tone::Good),
        RouteHealth::Probe => Cell::badge("recovering", Tone::Warning),
        RouteHealth::LastResort => Cell::badge("last resort", Tone::Warning),
        RouteHealth::LeftAlone => Cell::badge("failing", Tone::Bad),
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

/// Address of the page of a route.
pub(crate) fn address(name: &str) -> String {
    with_query("/routes/show", &[("name", Some(name))])
}

/// Row of a route with its statistics of the last 24 hours.
pub(crate) fn report_row(report: &RouteReport, now: Timestamp) -> [(&'static str, Cell); 10] {
    let sums = &report.sums;
    let percentile = |of: &Latencies, percent| milliseconds(of.percentile_ms(percent));
    [
        ("Route", Cell::link(&*report.name, address(&report.name))),
        ("Attempts", Cell::count(sums.attempts)),
        ("Error rate", error_rate(sums)),
        ("p50", percentile(&sums.latencies, 50)),
        ("p95", percentile(&sums.latencies, 95)),
        ("First token p50", percentile(&sums.first_token, 50)),
        ("First token p95", percentile(&sums.first_token, 95)),
        ("Failing since", Cell::some_moment(report.failing_since)),
        ("Last error", note(report.last_error.as_ref().map(|(_, note)| note))),
        ("Circuit breakers", breakers(report, now)),
    ]
}

/// Row of a route that fails, for *Home*.
pub(crate) fn failing_row(report: &RouteReport) -> [(&'static str, Cell); 5] {
    let error = report.last_error.as_ref();
    [
        ("Route", Cell::link(&*report.name, address(&report.name))),
        ("Failing since", Cell::some_moment(report.failing_since)),
        ("Last error", note(error.map(|(_, note)| note))),
        ("Last error at", Cell::some_moment(error.map(|(at, _)| *at))),
        ("Error rate", error_rate(&report.sums)),
    ]
}

/// Share of failed attempts, in per cent with one decimal.
pub(crate) fn error_rate(sums: &AttemptSums) -> Cell {
    sums.failed_per_mille().map_or(Cell::Nothing, |share| Cell::Number(percent(share)))
}

/// Per mille in per cent.
pub(crate) fn percent(per_mille: u64) -> String {
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

/// An optional latency.
pub(crate) fn milliseconds(latency: Option<u64>) -> Cell {
    latency.map_or(Cell::Nothing, |ms| Cell::Number(format!("{} ms", grouped(&ms.to_string()))))
}

/// An optional note of a failure.
pub(crate) fn note(note: Option<&FailureNote>) -> Cell {
    Cell::some_text(note.map(FailureNote::as_str))
}

/// State of the circuit breaker on each node; that of a node that is gone is not known.
pub(crate) fn breakers(report: &RouteReport, now: Timestamp) -> Cell {
    let of_node = |breaker: &NodeBreaker| {
        // The state is written when it changes, and the end of a pause is no change: time is
        // applied here.
        let is_over = breaker.report.retry_at.is_none_or(|retry_at| retry_at <= now);
        let state = match (breaker.is_known, breaker.report.state) {
            // The node is gone: its last state may be healthy, and is no proof that it still is.
            (false, _) => "unknown".to_owned(),
            (true, BreakerCondition::Healthy) => "healthy".to_owned(),
            (true, BreakerCondition::Open) if is_over => "recovering".to_owned(),
            (true, BreakerCondition::Open) => {
                let retry_at = breaker.report.retry_at.map(second).unwrap_or_default();
                format!("retry at {retry_at}")
            }
        };
        format!("{}: {state}", breaker.node)
    };
    let states: Vec<_> = report.breakers.iter().map(of_node).collect();
    if states.is_empty() { Cell::Nothing } else { Cell::text(states.join(", ")) }
}
