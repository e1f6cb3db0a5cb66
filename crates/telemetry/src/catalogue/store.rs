//! The database: the writer's commits, the connections, and the events that wait for delivery.

use super::{Metric, MetricGroup, MetricKind};

/// From a single commit on a fast disk to a stalled one.
const COMMIT_SECONDS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
/// Changes in one transaction.
const BATCH_SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

pub(super) const GROUP: MetricGroup = MetricGroup {
    title: "Store",
    introduction: "The writer commits waiting changes in batches. A change waits, is committed, and has \
                   its verdict. The facts of the database among these are the same at every gateway: \
                   take their `max`.",
    metrics: &[
        Metric {
            name: "holdfast_commit_batch_size",
            kind: MetricKind::Histogram(BATCH_SIZES),
            unit: "changes",
            labels: &[],
            help: "Changes committed in one transaction",
            alarm: "",
        },
        Metric {
            name: "holdfast_commit_batch_seconds",
            kind: MetricKind::Histogram(COMMIT_SECONDS),
            unit: "seconds",
            labels: &[],
            help: "Time of one transaction of the writer, from its first statement to its commit",
            alarm: "most take longer than usual: the disk or the server is slow",
        },
        Metric {
            name: "holdfast_commit_wait_seconds",
            kind: MetricKind::Histogram(COMMIT_SECONDS),
            unit: "seconds",
            labels: &[],
            help: "Time that the oldest change of a batch waited for the writer",
            alarm: "",
        },
        Metric {
            name: "holdfast_commit_statements_total",
            kind: MetricKind::Counter,
            unit: "statements",
            labels: &[],
            help: "Statements that the writer's batches have run",
            alarm: "",
        },
        Metric {
            name: "holdfast_commit_rows_total",
            kind: MetricKind::Counter,
            unit: "rows",
            labels: &[],
            help: "Rows that the writer's batches have written",
            alarm: "",
        },
        Metric {
            name: "holdfast_commits_total",
            kind: MetricKind::Counter,
            unit: "changes",
            labels: &["verdict"],
            help: "Changes that were offered to the writer, by verdict",
            alarm: "`unavailable` or `uncertain` appear",
        },
        Metric {
            name: "holdfast_commits_replicated",
            kind: MetricKind::Gauge,
            unit: "boolean",
            labels: &[],
            help: "1 if a commit is acknowledged only once a synchronous standby has it, 0 if it is on one machine",
            alarm: "it is 0 at a PostgreSQL server with a standby: a failover loses acknowledged commits",
        },
        Metric {
            name: "holdfast_pool_connections",
            kind: MetricKind::Gauge,
            unit: "connections",
            labels: &["pool", "state"],
            help: "Connections that read the database: idle, or used by a read",
            alarm: "no `glances` (short reads: credentials and readiness) are idle for minutes: look-ups wait",
        },
        Metric {
            name: "holdfast_outbox_events",
            kind: MetricKind::Gauge,
            unit: "events",
            labels: &[],
            help: "Events that are not handed to webhooks yet; a fact of the database, read every 30 s",
            alarm: "",
        },
        Metric {
            name: "holdfast_outbox_deliveries",
            kind: MetricKind::Gauge,
            unit: "deliveries",
            labels: &[],
            help: "Deliveries to webhooks that have not ended; a fact of the database, read every 30 s",
            alarm: "",
        },
        Metric {
            name: "holdfast_webhook_oldest_due_seconds",
            kind: MetricKind::Gauge,
            unit: "seconds",
            labels: &[],
            help: "Time for which the oldest delivery that is due has waited; a fact of the database",
            alarm: "it grows: no gateway delivers, or receivers are slower than events come",
        },
        Metric {
            name: "holdfast_webhook_tries_total",
            kind: MetricKind::Counter,
            unit: "tries",
            labels: &["result"],
            help: "Delivery attempts of webhooks, by result",
            alarm: "`delivered` does not grow and others do: a receiver, or the network to it, fails",
        },
        Metric {
            name: "holdfast_webhook_deliveries_total",
            kind: MetricKind::Counter,
            unit: "deliveries",
            labels: &["state"],
            help: "Deliveries of events to webhooks that have ended: delivered or dead",
            alarm: "`dead` grows: a webhook is about to be disabled",
        },
    ],
};
