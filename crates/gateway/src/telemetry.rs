//! Telemetry: a log on standard error, metrics in the text format of Prometheus, and traces. None ever
//! has a secret or a word of a prompt in it.
//!
//! The log's level can be replaced while the process runs, its format cannot. A log that cannot be
//! written is given up in silence: a full disk must not end operations.
//!
//! Counters and histograms are counted where things happen, in the crates; the catalogue of
//! `holdfast-telemetry` says what they mean, and their buckets. Gauges are set whenever the metrics are
//! rendered (`gauges`), but for those that a look at many rows costs: the facts of the database.

mod exporter;
mod float;
mod gauges;
mod log_line;
mod process;

use std::io::{self, IsTerminal};

use anyhow::Context;
use holdfast_telemetry::MetricKind;
use holdfast_telemetry::traces::register_results;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::{EnvFilter, reload};

pub(crate) use self::exporter::Exporter;
pub(crate) use self::float::as_float;
pub(crate) use self::gauges::rendered;
use self::log_line::LogLine;
use holdfast_config::LogConfig;

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
    let mut builder = PrometheusBuilder::new();
    for metric in holdfast_telemetry::families() {
        if let MetricKind::Histogram(bounds) = metric.kind {
            let of = Matcher::Full(metric.name.to_owned());
            builder = builder.set_buckets_for_metric(of, bounds)?;
        }
    }
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).context("metrics cannot be recorded")?;
    holdfast_telemetry::register_descriptions();
    register_results();
    process::begin();
    Ok(handle)
}
