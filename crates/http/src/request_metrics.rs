//! Metrics of requests, by route and status. A series is looked up once and kept, because the recorder would
//! else make a key of its labels for every request. Routes and statuses are few, so that the map is small.
//!
//! Not here: the meaning of the metrics, which the process registers, and probes, which are not counted.

use std::collections::BTreeMap;
use std::sync::{OnceLock, PoisonError, RwLock};
use std::time::Duration;

use holdfast_net::RefusalLog;
use metrics::{Counter, Histogram, counter, histogram};

/// Warning of refused API keys that have no line.
const REFUSED: &str = "more requests had their API keys refused than are listed";

/// Metrics of answered requests, with their series looked up once and kept.
#[derive(Debug)]
pub(crate) struct RequestMetrics {
    /// Series by route and status; without a status if the caller hung up. Nearly all requests only read: a new pair
    /// is rare.
    answered: RwLock<BTreeMap<(&'static str, Option<u16>), RequestSeries>>,
    begun: OnceLock<Histogram>,
    /// Limiter of the log lines of refused API keys.
    pub(crate) refusals: RefusalLog,
}

#[derive(Debug)]
struct RequestSeries {
    requests: Counter,
    seconds: Histogram,
}

impl Default for RequestMetrics {
    fn default() -> Self {
        Self {
            answered: RwLock::default(),
            begun: OnceLock::new(),
            refusals: RefusalLog::new(REFUSED),
        }
    }
}

impl RequestMetrics {
    /// Counts a request that took so long.
    pub(crate) fn count(&self, route: &'static str, status: Option<u16>, took: Duration) {
        let known = self.answered.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = known.get(&(route, status)) {
            return series.count(took);
        }
        drop(known);
        // Another request may have added the series between the two locks: `entry` finds it then.
        let mut known = self.answered.write().unwrap_or_else(PoisonError::into_inner);
        known
            .entry((route, status))
            .or_insert_with(|| RequestSeries::of(route, status))
            .count(took);
    }

    /// Counts a stream whose first event came so long after its request.
    pub(crate) fn record_first_event(&self, after: Duration) {
        // Created by the first stream: a process without streams has no histogram of it.
        self.begun.get_or_init(|| histogram!("holdfast_http_first_event_seconds")).record(after);
    }
}

impl RequestSeries {
    fn of(route: &'static str, status: Option<u16>) -> Self {
        let status = status.map_or_else(|| "hung_up".to_owned(), |status| status.to_string());
        Self {
            requests: counter!("holdfast_http_requests_total", "route" => route, "status" => status),
            seconds: histogram!("holdfast_http_request_seconds", "route" => route),
        }
    }

    fn count(&self, took: Duration) {
        self.requests.increment(1);
        self.seconds.record(took);
    }
}
