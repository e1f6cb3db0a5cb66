//! Telemetry: a log on standard error, and metrics in the text format of Prometheus. Neither ever
//! has a secret or a word of a prompt in it.
//!
//! The log's level can be replaced while the process runs, its format cannot. A log that cannot be
//! written is given up in silence: a full disk must not end operations.
//!
//! Counters and histograms are counted where things happen, in the crates; this module names their
//! units and buckets. Gauges of held funds and of waiters are read from store and engine whenever
//! the metrics are rendered, so they are as fresh as the request for them, and cost nothing
//! otherwise.

mod log_line;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use futures_util::FutureExt;
use holdfast_engine::Engine;
use holdfast_http::Metrics;
use holdfast_store::Store;
use metrics::{Unit, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::{EnvFilter, reload};

use self::log_line::LogLine;
use holdfast_config::LogConfig;

/// From a quick refusal to the longest call, in seconds.
const REQUEST_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0, 600.0,
];
/// From a single commit on a fast disk to a stalled one, in seconds.
const COMMIT_SECONDS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
/// Changes in one transaction.
const BATCH_SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

const HOLDS: &str = "holdfast_holds_outstanding";
const HOLDS_MICROS: &str = "holdfast_holds_outstanding_micros";
const HOLDS_OLDEST: &str = "holdfast_holds_oldest_seconds";
const WAITERS: &str = "holdfast_waiters";

/// Sets what the log tells.
pub(crate) struct LogLevel(Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>);

impl LogLevel {
    /// Tells this much from now on.
    pub(crate) fn set(&self, filter: EnvFilter) {
        // Fails only where there is no log any more, or a panic has broken it.
        if let Err(error) = (self.0)(filter) {
            tracing::warn!("log.level was not taken: {error}");
        }
    }
}

/// Filter of a log at this level, in the syntax of `EnvFilter`.
pub(crate) fn filter(level: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::builder().parse(level).context("log.level cannot be read")
}

/// Starts the log. What other parts of the process logged before is lost.
pub(crate) fn log(log: &LogConfig) -> anyhow::Result<LogLevel> {
    let builder = tracing_subscriber::fmt()
        // It would tell standard error that standard error cannot be written, and panic over it: a
        // full disk under the log must not end operations.
        .log_internal_errors(false)
        .event_format(LogLine::new(log.format, io::stderr().is_terminal()))
        .with_writer(io::stderr)
        .with_env_filter(filter(&log.level)?)
        .with_filter_reloading();
    let handle = builder.reload_handle();
    let started = builder.try_init();
    started.map_err(|error| anyhow::anyhow!(error).context("the log cannot be started"))?;
    Ok(LogLevel(Box::new(move |filter| handle.reload(filter))))
}

/// Starts counting. [`PrometheusHandle::run_upkeep`] has to be called every few seconds: until then
/// histograms keep every sample.
pub(crate) fn metrics() -> anyhow::Result<PrometheusHandle> {
    let buckets = [
        ("holdfast_http_request_seconds", REQUEST_SECONDS),
        ("holdfast_http_first_event_seconds", REQUEST_SECONDS),
        ("holdfast_upstream_seconds", REQUEST_SECONDS),
        ("holdfast_commit_batch_seconds", COMMIT_SECONDS),
        ("holdfast_commit_batch_size", BATCH_SIZES),
    ];
    let mut builder = PrometheusBuilder::new();
    for (name, bounds) in buckets {
        builder = builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), bounds)?;
    }
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).context("metrics cannot be recorded")?;
    describe();
    Ok(handle)
}

const MICROS: &str = "in millionths of the wallets' currencies";

/// Describes every metric but those of the store, which describe themselves.
fn describe() {
    describe_operations();
    describe_requests();
    describe_routes();
    describe_gauge!(HOLDS, Unit::Count, "Holds that reserve funds now");
    describe_gauge!(
        HOLDS_MICROS,
        format!("What the outstanding holds reserve, {MICROS}, by currency")
    );
    describe_gauge!(HOLDS_OLDEST, Unit::Seconds, "Age of the oldest outstanding hold");
    describe_gauge!(
        WAITERS,
        Unit::Count,
        "Requests that wait for the end of an operation, be it run here or elsewhere"
    );
    describe_counter!(
        "holdfast_config_reloads_total",
        Unit::Count,
        "Configurations that a running process was given, by what came of it"
    );
}

fn describe_operations() {
    describe_counter!(
        "holdfast_operations_total",
        Unit::Count,
        "Operations that ended, by outcome"
    );
    describe_counter!(
        "holdfast_shortfall_micros_total",
        format!("What metered usage cost beyond its holds and nobody paid, {MICROS}, by currency")
    );
    describe_counter!(
        "holdfast_exposure_micros_total",
        format!(
            "Holds of refused, abandoned and cancelled runs: at most so much may they have cost, and \
             nobody was charged, {MICROS}, by currency and reason"
        )
    );
    describe_counter!(
        "holdfast_late_results_total",
        Unit::Count,
        "Results that came after their operation had ended: provider costs that nobody paid"
    );
    describe_counter!(
        "holdfast_lost_commits_total",
        Unit::Count,
        "Claims that the database had committed and does not have any more"
    );
    describe_counter!(
        "holdfast_relays_total",
        Unit::Count,
        "Runs that other gateways were asked to tell, by what came of it: whole, cut, refused, unreached"
    );
    describe_counter!(
        "holdfast_tokens_total",
        Unit::Count,
        "Tokens of settled operations, by kind: prompt (input) and completion (output)"
    );
    describe_counter!(
        "holdfast_reconciled_total",
        Unit::Count,
        "Operations that the reconciler brought to rest, by their phase then"
    );
    describe_histogram!(
        "holdfast_upstream_seconds",
        Unit::Seconds,
        "Time of one call to a provider, by provider and what came of it"
    );
}

fn describe_requests() {
    describe_counter!(
        "holdfast_http_requests_total",
        Unit::Count,
        "Requests of the public API that were answered, by route and status"
    );
    describe_histogram!(
        "holdfast_http_request_seconds",
        Unit::Seconds,
        "Time from a request of the public API to its answer, by route; of a stream to its end"
    );
    describe_histogram!(
        "holdfast_http_first_event_seconds",
        Unit::Seconds,
        "Time from a request to the first event of the stream that answers it"
    );
}

fn describe_routes() {
    describe_gauge!(
        "holdfast_route_cooling",
        Unit::Count,
        "Whether a route is left alone now, by provider and its model: 1, else 0"
    );
    describe_counter!(
        "holdfast_route_cool_downs_total",
        Unit::Count,
        "How often a route was left alone for a while, by provider, its model and why"
    );
    describe_counter!(
        "holdfast_route_full_total",
        Unit::Count,
        "How often a route was passed over for its concurrency, by provider and its model"
    );
    describe_counter!(
        "holdfast_usage_not_believed_total",
        Unit::Count,
        "Runs whose provider reported more than their model can have used, by provider"
    );
}

/// Renders the metrics, with what store and engine say at that moment.
pub(crate) fn rendered(handle: PrometheusHandle, store: Store, engine: Arc<Engine>) -> Metrics {
    // Currencies that were shown once. A gauge keeps its last value until it is set: without this,
    // a currency whose last hold ended would show that hold for ever.
    let told = Arc::new(Mutex::new(BTreeSet::new()));
    Arc::new(move || {
        let (handle, store, engine) = (handle.clone(), store.clone(), Arc::clone(&engine));
        let told = Arc::clone(&told);
        async move {
            gauge!(WAITERS).set(as_float(engine.waiters()));
            match store.outstanding().await {
                Ok(outstanding) => {
                    gauge!(HOLDS).set(as_float(outstanding.count));
                    gauge!(HOLDS_OLDEST).set(outstanding.oldest_age.as_secs_f64());
                    // Also of what nothing is held of any more.
                    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                    told.extend(outstanding.amounts.keys().copied());
                    for currency in &*told {
                        let held = outstanding.amounts.get(currency).map_or(0, |held| held.get());
                        gauge!(HOLDS_MICROS, "currency" => currency.to_string())
                            .set(as_float(held));
                    }
                }
                // Metrics matter most while the database is away: the others are rendered still.
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(
                        error,
                        "outstanding holds cannot be read: the last ones are shown"
                    );
                }
            }
            handle.render()
        }
        .boxed()
    })
}

/// The nearest number that a metric can carry.
fn as_float(count: impl std::fmt::Display) -> f64 {
    count.to_string().parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::as_float;

    #[test]
    fn counts_become_the_nearest_float() {
        assert!((as_float(0_u64) - 0.0).abs() < f64::EPSILON);
        assert!((as_float(9_007_199_254_740_992_i64) - 9_007_199_254_740_992.0).abs() < 1.0);
    }
}
