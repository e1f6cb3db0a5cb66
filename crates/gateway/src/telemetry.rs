//! Telemetry: a log on standard error, metrics in the text format of Prometheus, and traces. None ever
//! has a secret or a word of a prompt in it.
//!
//! The lines are those of `tracing-subscriber`, as text for people or as JSON for machines; `line_format` writes most
//! of them, and `line_writer` keeps each to its line. An event is complete by itself: there are no spans.
//!
//! The log's level can be replaced while the process runs, its format cannot. A log that cannot be
//! written is given up in silence: a full disk must not end operations.
//!
//! Counters and histograms are counted at their places in the crates; the catalogue of `holdfast-telemetry` has
//! their meaning and their buckets. Gauges are set whenever the metrics are rendered (`gauges`), but for those
//! that need a read of many rows: the facts of the database.

mod exporter;
mod float;
mod gauges;
mod line_format;
mod line_writer;
mod plain;
mod process;

use std::io::{self, IsTerminal};

use anyhow::Context;
use holdfast_telemetry::MetricKind;
use holdfast_telemetry::traces::register_results;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing::Subscriber;
use tracing_subscriber::fmt::{FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt, registry, reload};

pub(crate) use self::exporter::Exporter;
pub(crate) use self::float::as_float;
pub(crate) use self::gauges::rendered;
use self::line_format::LineFormat;
use self::line_writer::LineWriter;
use holdfast_config::{LogConfig, LogFormat};

/// Sets the level of the log.
pub(crate) struct LogLevel(Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>);

impl LogLevel {
    /// Sets the filter from now on.
    pub(crate) fn set(&self, filter: EnvFilter) {
        // Fails only if there is no log any more, or a panic has broken it.
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
    let (filter, handle) = reload::Layer::new(filter(&log.level)?);
    let is_terminal = io::stderr().is_terminal();
    let lines = fmt::layer()
        // The library would report to standard error that standard error cannot be written, and panic over it:
        // a full disk under the log must not end operations.
        .log_internal_errors(false)
        .with_ansi(is_terminal && log.format == LogFormat::Pretty)
        .with_writer(LineWriter { is_terminal });
    let lines = match log.format {
        LogFormat::Pretty => in_form(lines, log.format).boxed(),
        // A line is complete by itself: there are no spans.
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true);
            in_form(lines.with_current_span(false).with_span_list(false), log.format).boxed()
        }
    };
    let started = registry().with(filter).with(lines).try_init();
    started.context("the log cannot be started")?;
    Ok(LogLevel(Box::new(move |filter| handle.reload(filter))))
}

/// The same lines, most of them written without the library's formatter.
fn in_form<S, N, F, W>(
    lines: fmt::Layer<S, N, F, W>,
    form: LogFormat,
) -> fmt::Layer<S, N, LineFormat<F>, W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N> + 'static,
    W: for<'a> MakeWriter<'a> + 'static,
{
    lines.map_event_format(|library| LineFormat { library, form })
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
    holdfast_telemetry::register();
    register_results();
    process::begin();
    Ok(handle)
}
