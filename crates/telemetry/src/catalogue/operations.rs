//! Operations: how they end, who waits for them, and what went wrong between processes.

use super::{Metric, MetricGroup, MetricKind};

pub(super) const GROUP: MetricGroup = MetricGroup {
    title: "Operations",
    introduction: "A process counts the endings that it committed itself, for requests of \
                   any process. A \
                   `recorded` operation counts as `completed` too when it is settled, an `open` one \
                   each time.",
    metrics: &[
        Metric {
            name: "holdfast_operations_total",
            kind: MetricKind::Counter,
            unit: "operations",
            labels: &["outcome"],
            help: "Operations that ended: completed, recorded, open, refused or abandoned",
            alarm: "`recorded` grows at all; `abandoned` grows faster than usual",
        },
        Metric {
            name: "holdfast_waiters",
            kind: MetricKind::Gauge,
            unit: "requests",
            labels: &[],
            help: "Requests that wait for the end of an operation, run by any process",
            alarm: "",
        },
        Metric {
            name: "holdfast_late_results_total",
            kind: MetricKind::Counter,
            unit: "results",
            labels: &[],
            help: "Results that came after their operation had ended: provider costs without a \
                charge",
            alarm: "it grows: a provider was paid for a result that no caller paid for",
        },
        Metric {
            name: "holdfast_lost_commits_total",
            kind: MetricKind::Counter,
            unit: "claims",
            labels: &[],
            help: "Claims of this process that the database had committed and does not have any more",
            alarm: "it grows: a failover lost acknowledged commits",
        },
        Metric {
            name: "holdfast_reconciled_total",
            kind: MetricKind::Counter,
            unit: "operations",
            labels: &["phase"],
            help: "Operations that the reconciler ended, by their phase after it",
            alarm: "it grows without a restart",
        },
        Metric {
            name: "holdfast_relays_total",
            kind: MetricKind::Counter,
            unit: "relays",
            labels: &["outcome"],
            help: "Relays of runs of other gateways: whole, cut, refused or unreached",
            alarm: "`unreached` or `cut` grow without a gateway that ended",
        },
    ],
};
