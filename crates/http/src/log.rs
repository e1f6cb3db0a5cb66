//! Request log: a line for each request, and its metrics.
//!
//! ```text
//! head read ─▶ RequestLog ─ status, facts, error ─▶ answer written ─▶ dropped: the line
//!                                        └─ client gone ─▶ dropped: the line, `hung_up`
//! ```
//!
//! A line has ids, names, meters, money and times, under the same names as everywhere; never content, secrets or
//! the name of a parameter that a caller made up. Of refused API keys only the first of a while have lines
//! ([`RefusalLog`](holdfast_net::RefusalLog)); the metrics count all.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_domain::model::PublicModelId;
use holdfast_domain::operation::Situation;
use holdfast_domain::statistics::Shortage;
use holdfast_engine::{Caller, Engine, RefusalFacts, ReplyFacts};
use holdfast_telemetry::traces::{OperationRecord, RequestTrace, ServerRecord, TraceId};
use holdfast_wire::error::Code;
use uuid::Uuid;

use crate::problem::Problem;
use crate::request_metrics::RequestMetrics;

/// Label of a request that has no route.
pub(crate) const NO_ROUTE: &str = "none";

/// Statuses of a refusal. An outcome that is unknown, or a stored answer that is gone, is none: its operation shows it.
const REFUSALS: [u16; 9] = [400, 402, 403, 404, 409, 413, 422, 429, 503];

/// Log line of a request in progress. Written when it is dropped: also for a request whose
/// client hung up, because hyper drops its future at any await.
#[derive(Debug)]
pub(crate) struct RequestLog {
    pub(crate) id: Uuid,
    pub(crate) route: &'static str,
    pub(crate) caller: Option<Arc<Caller>>,
    pub(crate) facts: ReplyFacts,
    pub(crate) replayed: bool,
    pub(crate) status: Option<u16>,
    pub(crate) code: Option<&'static str>,
    /// The parameter that is wrong.
    pub(crate) param: Option<String>,
    /// Amounts that were compared, if money was missing: for the statistics, and not for the line.
    pub(crate) shortage: Option<Box<Shortage>>,
    pub(crate) client: IpAddr,
    /// True if the API key was refused: only the first such lines of a window are written.
    pub(crate) is_refused: bool,
    /// Trace that the caller sent it in.
    pub(crate) caller_trace: Option<TraceId>,
    /// Trace of its own, with its method; `None` if traces are off.
    pub(crate) trace: Option<(Arc<RequestTrace>, &'static str)>,
    streamed: Option<StreamProgress>,
    started: Instant,
    counts: Arc<RequestMetrics>,
}

/// Progress of a streamed answer.
#[derive(Debug)]
struct StreamProgress {
    /// Time from the request to the first event.
    first: Duration,
    bytes: u64,
    is_over: bool,
}

impl RequestLog {
    pub(crate) fn new(
        id: Uuid,
        route: &'static str,
        counts: Arc<RequestMetrics>,
        client: IpAddr,
    ) -> Self {
        Self {
            id,
            route,
            caller: None,
            facts: ReplyFacts::default(),
            replayed: false,
            status: None,
            code: None,
            param: None,
            shortage: None,
            client,
            is_refused: false,
            caller_trace: None,
            trace: None,
            streamed: None,
            started: Instant::now(),
            counts,
        }
    }

    /// Records the error of the answer. The names of a schema are logged, a name that its caller chose is not.
    pub(crate) fn set_error(&mut self, told: &Problem) {
        self.code = Some(told.code.label());
        // What follows these two in the name of a parameter is their caller's word.
        let own = |param: &str| {
            let named = ["metadata", "logit_bias"].into_iter().find(|it| param.starts_with(it));
            named.unwrap_or(param).to_owned()
        };
        let is_own = told.code != Code::UnknownParameter;
        self.shortage.clone_from(&told.shortage);
        self.param = told.param.as_deref().filter(|_param| is_own).map(own);
    }

    /// Leaves the request in the statistics, if it is one of a known API key and is refused.
    pub(crate) fn note_refusal(&self, engine: &Engine) {
        let (Some(caller), Some(status), Some(code)) = (&self.caller, self.status, self.code)
        else {
            return;
        };
        if REFUSALS.contains(&status) {
            let facts = RefusalFacts {
                id: self.id.into(),
                code,
                status,
                model: self.facts.model.clone(),
                shortage: self.shortage.as_deref().copied(),
            };
            engine.note_refusal(caller, facts);
        }
    }

    /// Counts bytes of a stream that were written.
    pub(crate) fn add_streamed(&mut self, bytes: usize) {
        let streamed = self.streamed.get_or_insert_with(|| StreamProgress {
            first: self.started.elapsed(),
            bytes: 0,
            is_over: false,
        });
        streamed.bytes = streamed.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    /// The stream has been written to its end.
    pub(crate) fn end_stream(&mut self) {
        if let Some(streamed) = &mut self.streamed {
            streamed.is_over = true;
        }
    }

    fn hung_up(&self) -> bool {
        // No status: the future was dropped before there was an answer.
        self.status.is_none() || self.streamed.as_ref().is_some_and(|streamed| !streamed.is_over)
    }

    /// Record that its span is built of.
    fn server_record(&self, method: &'static str) -> ServerRecord {
        let facts = &self.facts;
        ServerRecord {
            method,
            route: (self.route != NO_ROUTE).then_some(self.route),
            status: self.status,
            error: self.code,
            client: self.client,
            hung_up: self.hung_up(),
            replayed: self.replayed,
            provider_route: facts.route.clone(),
            operation: OperationRecord {
                model: facts.model.as_ref().map(PublicModelId::to_shared),
                id: facts.operation.map(|id| Uuid::from_bytes(id.to_bytes())),
                situation: facts.situation.map(Situation::label),
                outcome: facts.phase,
            },
            ended: Instant::now(),
        }
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        self.counts.count(self.route, self.status, took);
        if let Some(streamed) = &self.streamed {
            self.counts.record_first_event(streamed.first);
        }
        if let Some((trace, method)) = self.trace.take() {
            trace.end_request(|| self.server_record(method));
        }
        // After the metrics, which count every request: only its line is left out.
        if self.is_refused && !self.counts.refusals.has_line() {
            return;
        }
        let usage = self.facts.usage.as_ref();
        let meters = usage.map(|usage| usage.metered.meters);
        let reasons =
            usage.map(|usage| usage.metered.reasons).filter(|reasons| !reasons.is_empty());
        let streamed = self.streamed.as_ref();
        let caller = self.caller.as_deref();
        tracing::info!(
            request.id = %self.id,
            caller.trace_id = self.caller_trace.map(tracing::field::display),
            client.address = %self.client,
            http.route = self.route,
            http.status = self.status,
            hung_up = self.hung_up().then_some(true),
            error.code = self.code,
            error.param = self.param,
            api_key.id = caller.map(|caller| tracing::field::display(caller.api_key.id)),
            api_key.name = caller.map(|caller| caller.api_key.name.as_str()),
            wallet.name = caller.map(|caller| caller.wallet_name.as_str()),
            operation.id = self.facts.operation.map(tracing::field::display),
            operation.phase = self.facts.phase,
            replayed = self.replayed,
            model = self.facts.model.as_ref().map(tracing::field::display),
            provider.route = self.facts.route.as_deref(),
            provider.class = self.facts.class.as_deref(),
            provider.reason = self.facts.reason.as_deref(),
            prompt_tokens = meters.map(|meters| meters.prompt_tokens()),
            completion_tokens = meters.map(|meters| meters.completion_tokens()),
            usage.reasons = reasons.map(tracing::field::display),
            charge_micros = usage.map(|usage| usage.charge.get()),
            first_event_ms = streamed.map(|streamed| millis(streamed.first.as_millis())),
            stream_bytes = streamed.map(|streamed| streamed.bytes),
            upstream_ms = self.facts.upstream.map(|time| millis(time.as_millis())),
            latency_ms = millis(took.as_millis()),
            "request"
        );
    }
}

fn millis(all: u128) -> u64 {
    u64::try_from(all).unwrap_or(u64::MAX)
}
