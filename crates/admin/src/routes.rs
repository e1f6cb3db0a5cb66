//! `/routes`: health and traffic of the providers' routes, over all nodes. For operators only.
//!
//! Sums are of the hours that nodes have written, and breakers of the rows that each node writes when one changes: a
//! second old, and of every node. `/models` has the breakers of this node at this moment. The two may differ, because
//! each node has breakers of its own. The row of a node whose lease is over is `unknown`, never the state that it
//! had.
//!
//! The last error of a route has a status, a provider's error names and its filtered message. Never in an answer: a
//! part of a request, or a credential.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_accounts::{AttemptSums, RouteHistory, RouteReport};
use holdfast_domain::Timestamp;
use holdfast_domain::statistics::{BreakerCondition, Latencies, NodeBreaker, RouteHour};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, Reply};
use crate::description::Errors;
use crate::offers::NoParams;
use crate::page::List;
use crate::request::{Caller, Params};
use crate::value::Moment;

/// Route with its statistics of the last 24 hours.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RouteReport)]
pub(crate) struct RouteReportView {
    /// The configured provider and its model.
    name: String,
    /// True if this node serves it.
    is_served: bool,
    #[serde(flatten)]
    sums: SumsView,
    /// First failure since the last answer; null if the last attempt did not fail.
    failing_since: Option<Moment>,
    /// Last failure: HTTP status, error names and filtered message, or the kind of transport failure.
    last_error: Option<String>,
    last_error_at: Option<Moment>,
    /// Circuit breakers, by node.
    breakers: Vec<BreakerView>,
}

/// Attempts and their latencies.
#[derive(Debug, Serialize, ToSchema)]
struct SumsView {
    attempts: u64,
    /// Failures of the route.
    failed: u64,
    /// Requests that the provider refused: their callers' fault.
    refused: u64,
    /// Failed attempts in a thousand, without refused ones; null without an attempt.
    failed_per_mille: Option<u64>,
    /// Median latency of answered calls, in milliseconds.
    p50_ms: Option<u64>,
    p95_ms: Option<u64>,
    /// Median latency to the first token, of streamed calls.
    first_token_p50_ms: Option<u64>,
    first_token_p95_ms: Option<u64>,
}

/// Circuit breaker of a route on one node.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Breaker)]
struct BreakerView {
    node: String,
    /// `healthy`, `open`, `recovering` once the time of an open one is over, or `unknown` for a node that is gone.
    #[schema(pattern = "^(healthy|open|recovering|unknown)$")]
    state: &'static str,
    /// Last change that the node has reported.
    since: Moment,
    /// Next attempt on an open one.
    retry_at: Option<Moment>,
    /// Answers since then, counted up to 100.
    successes_since: u32,
}

/// History of one route.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RouteHistory)]
pub(crate) struct RouteHistoryView {
    route: RouteReportView,
    /// The last seven days, newest first; hours without an attempt are missing.
    hours: Vec<HourView>,
    /// The last 20 failures, newest first.
    failures: Vec<FailureView>,
}

/// Attempts in one hour.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RouteHour)]
struct HourView {
    hour: Moment,
    #[serde(flatten)]
    sums: SumsView,
}

/// Failed attempt on a route.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RouteFailure)]
struct FailureView {
    at: Moment,
    model: String,
    /// Class of the failure, as attempts have it.
    class: String,
    /// HTTP status, error names and filtered message, or the kind of transport failure.
    error: String,
}

impl From<&AttemptSums> for SumsView {
    fn from(sums: &AttemptSums) -> Self {
        let percentiles = |of: &Latencies| [50, 95].map(|percent| of.percentile_ms(percent));
        let [p50_ms, p95_ms] = percentiles(&sums.latencies);
        let [first_token_p50_ms, first_token_p95_ms] = percentiles(&sums.first_token);
        Self {
            attempts: sums.attempts,
            failed: sums.failed,
            refused: sums.refused,
            failed_per_mille: sums.failed_per_mille(),
            p50_ms,
            p95_ms,
            first_token_p50_ms,
            first_token_p95_ms,
        }
    }
}

impl RouteReportView {
    fn new(report: &RouteReport, now: Timestamp) -> Self {
        let error = report.last_error.as_ref();
        Self {
            name: report.name.to_string(),
            is_served: report.is_served,
            sums: (&report.sums).into(),
            failing_since: report.failing_since.map(Moment),
            last_error: error.map(|(_, note)| note.as_str().to_owned()),
            last_error_at: error.map(|(at, _)| Moment(*at)),
            breakers: report
                .breakers
                .iter()
                .map(|breaker| BreakerView::new(breaker, now))
                .collect(),
        }
    }
}

impl BreakerView {
    fn new(breaker: &NodeBreaker, now: Timestamp) -> Self {
        let report = &breaker.report;
        // A node writes its breakers when they change, and the end of an open time is no change of
        // its own. By the clock of the database it is shown as the next request meets it.
        let is_over = report.retry_at.is_none_or(|retry_at| retry_at <= now);
        let state = match (breaker.is_known, report.state) {
            // The last row of a node that is gone is no state: shown as healthy it would hide an
            // outage.
            (false, _) => "unknown",
            (true, BreakerCondition::Open) if is_over => "recovering",
            (true, state) => state.label(),
        };
        Self {
            node: breaker.node.to_string(),
            state,
            since: Moment(report.since),
            retry_at: report.retry_at.map(Moment),
            successes_since: report.successes_since,
        }
    }
}

impl From<RouteHistory> for RouteHistoryView {
    fn from(RouteHistory { report, hours, failures, now }: RouteHistory) -> Self {
        let mut by_hour: BTreeMap<Timestamp, Vec<RouteHour>> = BTreeMap::new();
        for row in hours {
            by_hour.entry(row.hour).or_default().push(row);
        }
        let hour = |(hour, rows): (Timestamp, Vec<RouteHour>)| HourView {
            hour: Moment(hour),
            sums: (&AttemptSums::of(rows.iter())).into(),
        };
        let failures = failures.into_iter().map(|failure| FailureView {
            at: Moment(failure.at),
            model: failure.model.to_string(),
            class: failure.class,
            error: failure.error.as_str().to_owned(),
        });
        Self {
            route: RouteReportView::new(&report, now),
            hours: by_hour.into_iter().rev().map(hour).collect(),
            failures: failures.collect(),
        }
    }
}

/// Route of a history.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryQuery {
    /// Name of the route: the configured provider and its model.
    route: String,
}

#[utoipa::path(
    get, path = "/routes", operation_id = "list_routes", tag = "offers",
    responses((status = 200, description = "All of them.", body = List<RouteReportView>), Errors)
)]
/// Lists the routes of providers with their attempts, latencies and last errors of 24 hours, and the circuit breakers of
/// all nodes.
pub(crate) async fn list(
    caller: Caller,
    Params(NoParams {}): Params<NoParams>,
) -> Reply<List<RouteReportView>> {
    let routes = caller.accounts().routes(&caller.principal).await?;
    let now = caller.accounts().clock().await?;
    Answer::large(move || {
        List::whole(routes.iter().map(|report| RouteReportView::new(report, now)).collect())
    })
    .await
}

#[utoipa::path(
    get, path = "/routes/history", operation_id = "show_route", tag = "offers", params(HistoryQuery),
    responses((status = 200, description = "The route.", body = RouteHistoryView), Errors)
)]
/// Shows a route: its attempts of seven days by the hour, and its last 20 failures.
pub(crate) async fn history(
    caller: Caller,
    Params(HistoryQuery { route }): Params<HistoryQuery>,
) -> Reply<RouteHistoryView> {
    let route: Arc<str> = route.into();
    let history = caller.accounts().route(&caller.principal, &route).await?;
    Answer::large(move || history.into()).await
}
