//! The process itself. `process_*` are the names that every exporter of Prometheus uses.

use super::{Metric, MetricGroup, MetricKind};

pub(super) const GROUP: MetricGroup = MetricGroup {
    title: "Process",
    introduction: "`process_*` are read from `/proc`, and missing on systems without it.",
    metrics: &[
        Metric {
            name: "holdfast_build_info",
            kind: MetricKind::Gauge,
            unit: "1",
            labels: &["version"],
            help: "Version of the program: always 1",
            alarm: "",
        },
        Metric {
            name: "holdfast_spans_total",
            kind: MetricKind::Counter,
            unit: "spans",
            labels: &["result"],
            help: "Finished spans of traces: exported, or lost because the queue was full or the collector failed",
            alarm: "`queue_full` or `failed` grows: the collector is slow or gone, and requests are served all the same",
        },
        Metric {
            name: "process_cpu_seconds_total",
            kind: MetricKind::Counter,
            unit: "seconds",
            labels: &[],
            help: "Processor time of the process, in whole seconds",
            alarm: "",
        },
        Metric {
            name: "process_resident_memory_bytes",
            kind: MetricKind::Gauge,
            unit: "bytes",
            labels: &[],
            help: "Resident memory of the process",
            alarm: "",
        },
        Metric {
            name: "process_virtual_memory_bytes",
            kind: MetricKind::Gauge,
            unit: "bytes",
            labels: &[],
            help: "Virtual memory of the process",
            alarm: "",
        },
        Metric {
            name: "process_open_fds",
            kind: MetricKind::Gauge,
            unit: "files",
            labels: &[],
            help: "Open files and connections of the process",
            alarm: "it comes near `process_max_fds`: connections are refused beyond it",
        },
        Metric {
            name: "process_max_fds",
            kind: MetricKind::Gauge,
            unit: "files",
            labels: &[],
            help: "Files and connections that the process may have open",
            alarm: "",
        },
        Metric {
            name: "process_threads",
            kind: MetricKind::Gauge,
            unit: "threads",
            labels: &[],
            help: "Threads of the process",
            alarm: "",
        },
        Metric {
            name: "process_start_time_seconds",
            kind: MetricKind::Gauge,
            unit: "seconds",
            labels: &[],
            help: "Start of the process, as Unix time",
            alarm: "",
        },
    ],
};
