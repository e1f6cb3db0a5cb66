//! One line a request, and its metrics. Ids, meters, money and times; never content or secrets.

use std::time::Instant;

use holdfast_domain::ApiKeyId;
use holdfast_engine::Facts;
use metrics::{counter, histogram};
use uuid::Uuid;

/// What is known of a request so far. The line is written when it is dropped: also for a request
/// whose client hung up.
#[derive(Debug)]
pub(crate) struct RequestLog {
    pub(crate) id: Uuid,
    pub(crate) route: &'static str,
    pub(crate) api_key: Option<ApiKeyId>,
    pub(crate) facts: Facts,
    pub(crate) replayed: bool,
    pub(crate) status: Option<u16>,
    pub(crate) code: Option<&'static str>,
    started: Instant,
}

impl RequestLog {
    pub(crate) fn new(id: Uuid, route: &'static str) -> Self {
        Self {
            id,
            route,
            api_key: None,
            facts: Facts::default(),
            replayed: false,
            status: None,
            code: None,
            started: Instant::now(),
        }
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        let status = self.status.map_or_else(|| "hung_up".to_owned(), |status| status.to_string());
        counter!("holdfast_http_requests_total", "route" => self.route, "status" => status)
            .increment(1);
        histogram!("holdfast_http_request_seconds", "route" => self.route).record(took);
        let usage = self.facts.usage.as_ref();
        let meters = usage.map(|usage| usage.metered.meters);
        tracing::info!(
            request.id = %self.id,
            http.route = self.route,
            http.status = self.status,
            hung_up = self.status.is_none().then_some(true),
            error.code = self.code,
            api_key.id = self.api_key.map(tracing::field::display),
            operation.id = self.facts.operation.map(tracing::field::display),
            operation.phase = self.facts.phase,
            replayed = self.replayed,
            model = self.facts.model.as_ref().map(tracing::field::display),
            provider.route = self.facts.route,
            prompt_tokens = meters.map(|meters| meters.prompt_tokens()),
            completion_tokens = meters.map(|meters| meters.completion_tokens()),
            charge_micros = usage.map(|usage| usage.charge.get()),
            upstream_ms = self.facts.upstream.map(|time| millis(time.as_millis())),
            latency_ms = millis(took.as_millis()),
            "request"
        );
    }
}

fn millis(all: u128) -> u64 {
    u64::try_from(all).unwrap_or(u64::MAX)
}
