//! Rows of the catalogue, by groups, and what is made of them.

mod money;
mod operations;
mod process;
mod requests;
mod routes;
mod store;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram};

/// Everything that is counted, in the order of the manual.
pub const CATALOGUE: &[MetricGroup] = &[
    requests::GROUP,
    operations::GROUP,
    money::GROUP,
    routes::GROUP,
    store::GROUP,
    process::GROUP,
];

/// Metrics of one subject.
#[derive(Debug)]
pub struct MetricGroup {
    /// Heading in the manual.
    pub title: &'static str,
    /// Facts about all of them.
    pub introduction: &'static str,
    /// The metrics.
    pub metrics: &'static [Metric],
}

/// A metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Name in a scrape; of a histogram without `_bucket`, `_sum` and `_count`.
    pub name: &'static str,
    /// Kind, with the bounds of a histogram.
    pub kind: MetricKind,
    /// Unit of the number.
    pub unit: &'static str,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// Meaning, as the HELP line of a scrape: one line.
    pub help: &'static str,
    /// Reason to act; empty if there is none.
    pub alarm: &'static str,
}

/// Kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// Grows, and begins anew with the process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Distribution over buckets with these upper bounds.
    Histogram(&'static [f64]),
}

impl MetricKind {
    /// Name in a scrape and in the manual.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// Every metric.
pub fn families() -> impl Iterator<Item = &'static Metric> {
    CATALOGUE.iter().flat_map(|group| group.metrics)
}

/// The metric that a series of this name belongs to.
#[must_use]
pub fn find(series: &str) -> Option<&'static Metric> {
    let of_histogram =
        ["_bucket", "_sum", "_count"].iter().find_map(|end| series.strip_suffix(end));
    // By kind: a counter whose own name ends in `_count` must keep it.
    families().find(|metric| match metric.kind {
        MetricKind::Counter | MetricKind::Gauge => metric.name == series,
        MetricKind::Histogram(_) => of_histogram == Some(metric.name),
    })
}

/// Registers every metric with the recorder, which must be installed by then: its meaning, and a counter without labels
/// at zero. A series that begins with its first event shows no growth.
pub fn register() {
    for Metric { name, kind, labels, help, .. } in families() {
        match kind {
            MetricKind::Counter => {
                describe_counter!(*name, *help);
                if labels.is_empty() {
                    counter!(*name).increment(0);
                }
            }
            MetricKind::Gauge => describe_gauge!(*name, *help),
            MetricKind::Histogram(_) => describe_histogram!(*name, *help),
        }
    }
}
