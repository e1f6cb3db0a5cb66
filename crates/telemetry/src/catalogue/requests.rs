//! Requests of the public listener, and the configuration that serves them.

use super::{Metric, MetricGroup, MetricKind};

/// From a quick refusal to the longest call.
pub(super) const REQUEST_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0, 600.0,
];

pub(super) const GROUP: MetricGroup = MetricGroup {
    title: "Requests",
    introduction: "A status of a stream is the one that its head had. `hung_up` means that the \
        caller disconnected before its answer.",
    metrics: &[
        Metric {
            name: "holdfast_http_requests_total",
            kind: MetricKind::Counter,
            unit: "requests",
            labels: &["route", "status"],
            help: "Requests of the public API that were answered, by route and status",
            alarm: "503 keeps growing: the database, the routes or a limit of the process is in the way",
        },
        Metric {
            name: "holdfast_http_request_seconds",
            kind: MetricKind::Histogram(REQUEST_SECONDS),
            unit: "seconds",
            labels: &["route"],
            help: "Time from a request of the public API to its answer, of a stream to its end",
            alarm: "",
        },
        Metric {
            name: "holdfast_http_first_event_seconds",
            kind: MetricKind::Histogram(REQUEST_SECONDS),
            unit: "seconds",
            labels: &[],
            help: "Time from a request to the first event of the stream that answers it",
            alarm: "",
        },
        Metric {
            name: "holdfast_config_reloads_total",
            kind: MetricKind::Counter,
            unit: "reloads",
            labels: &["outcome"],
            help: "Reloads of the configuration: applied, unchanged or refused",
            alarm: "`refused` grows: the file has mistakes, or the database does not work",
        },
    ],
};
