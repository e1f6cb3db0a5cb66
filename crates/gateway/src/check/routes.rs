//! Calls each route of each model once, as cheaply as a model can be called, and reports the outcome. No hold
//! and no charge: a probe has no key of a caller.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use holdfast_domain::answer::Delta;
use holdfast_domain::ports::{
    Call, CallFailure, NotRunProof, ResponseMode, Sink, UnknownReason, rejected_text,
};
use holdfast_domain::state::ProviderStates;
use holdfast_domain::usage::UsageReport;
use holdfast_domain::{Provider, RequestKey};
use holdfast_engine::{Model, Route};
use serde::Serialize;
use uuid::Uuid;

use holdfast_bootstrap::provider::build;
use holdfast_config::Config;

/// Time for one route's answer, from the connection to its last byte.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// The bound on its answer.
const OUTPUT_TOKENS: u64 = 16;

/// Result of one call of a route.
#[derive(Debug, Serialize)]
pub(super) struct RouteView {
    model: String,
    route: String,
    pub(super) ok: bool,
    class: &'static str,
    answer: &'static str,
    /// Reason of a failure that has one, like the place at which an answer cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    latency_ms: u64,
}

impl RouteView {
    pub(super) fn line(&self) -> String {
        let Self { model, route, answer, class, reason, latency_ms, .. } = self;
        let why = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        format!("{model} by {route}: {answer}{why} ({class}, {latency_ms} ms)")
    }
}

/// Calls every route, one after the other.
pub(super) async fn call_all(config: &Config) -> anyhow::Result<Vec<RouteView>> {
    let mut views = Vec::new();
    for model in &config.models {
        for route in &model.routes {
            let about = || format!("provider {}", route.provider);
            let kind = config.providers.get(&route.provider).with_context(about)?;
            views.push(
                call(model, route, &*build(&route.provider, kind).with_context(about)?).await?,
            );
        }
    }
    Ok(views)
}

async fn call(model: &Model, route: &Route, provider: &dyn Provider) -> anyhow::Result<RouteView> {
    let id = &model.contract.model;
    let body = format!(r#"{{"model":"{id}","messages":[{{"role":"user","content":"Say ok"}}]}}"#);
    // Through the reader of real requests, so that the call is one that a caller could make.
    let parsed = holdfast_wire::chat::request::parse(body.as_bytes()).context("a request")?;
    let call = Call {
        request: Arc::new(parsed.request),
        model: Arc::clone(&route.model),
        max_output_tokens: OUTPUT_TOKENS.min(model.contract.max_output_tokens),
        context_tokens: model.contract.context_tokens,
        key: Some(RequestKey::of_random(Uuid::new_v4().into_bytes())),
        connect: model.timeouts.connect,
        response_mode: ResponseMode::Whole,
        states: ProviderStates::default(),
    };
    let begun = Instant::now();
    // Dropping a call that ran out of time may leave it running there: sixteen tokens at most.
    let mut sink = ProbeSink::default();
    let outcome = tokio::time::timeout(PROBE_TIMEOUT, provider.run(&call, &mut sink)).await;
    let outcome = outcome.unwrap_or(Err(CallFailure::Unknown(UnknownReason::Timeout)));
    let latency_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (class, answer) = read(&outcome);
    let (model, route, ok) = (id.to_string(), route.name(), outcome.is_ok());
    let unreadable = outcome.err().and_then(|failure| failure.reason());
    let rejected = sink.rejected_field.filter(|_field| !ok).map(rejected_text);
    let reason = unreadable.map(|why| why.to_string()).or(rejected);
    Ok(RouteView { model, route, ok, class, answer, reason, latency_ms })
}

/// Label of an outcome, and a sentence on what to check.
fn read(outcome: &Result<Option<UsageReport>, CallFailure>) -> (&'static str, &'static str) {
    let failure = match outcome {
        Ok(Some(_)) => return ("finished", "answers"),
        Ok(None) => {
            return ("finished", "answers without a usage report: usage is estimated");
        }
        Err(failure) => failure,
    };
    let answer = match failure {
        CallFailure::NotRun(NotRunProof::Connect) => "not reached: check base_url and the network",
        CallFailure::NotRun(NotRunProof::RateLimited) => "rate limited: probe it again later",
        CallFailure::NotRun(NotRunProof::Overloaded) => "overloaded: probe it again later",
        CallFailure::NotRun(NotRunProof::Account) => {
            "turned away: check the api_key, the account there, and the route's model"
        }
        CallFailure::Refused(_) => "refuses a plain request: check its kind and the route's model",
        CallFailure::Unknown(UnknownReason::Status) => "fails: look at the provider's status page",
        CallFailure::Unknown(UnknownReason::Broken | UnknownReason::Cut) => {
            "the answer is incomplete"
        }
        CallFailure::Unknown(UnknownReason::Timeout) => "does not answer in time",
        CallFailure::Unknown(UnknownReason::Unreadable(_)) => {
            "its answer cannot be read: check its kind"
        }
    };
    (failure.label(), answer)
}

/// Sink for the complaints of a provider; discards its answer.
#[derive(Default)]
struct ProbeSink {
    rejected_field: Option<&'static str>,
}

impl Sink for ProbeSink {
    fn on_send(&mut self) {}

    fn on_delta(&mut self, _delta: Delta) {}

    fn on_rejected_field(&mut self, field: &'static str) {
        self.rejected_field = Some(field);
    }
}
