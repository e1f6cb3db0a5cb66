//! Money and what it is charged for. Every amount has its currency: no query may leave that out.

use super::{Metric, MetricGroup, MetricKind};

/// The currency and the public id of the model; `other` for one that this process does not offer.
const OF_MODEL: &[&str] = &["currency", "model"];

/// Buckets of holds by charges: a hold is at least its charge.
const HOLD_RATIOS: &[f64] =
    &[1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 10_000.0];

pub(super) const GROUP: MetricGroup = MetricGroup {
    title: "Money",
    introduction: "Amounts are millionths of the currency in the label, and no sum may leave the \
                   currency out. `model` is the public id of a model that the process offers, else \
                   `other`. These count what one process committed since its start, and are for rates \
                   and alerts: the ledger is \
                   [`usage report`](../how-to/make-statements-and-reports.md#usage-reports). Those \
                   that are facts of the database are the same at every gateway: take their `max`.",
    metrics: &[
        Metric {
            name: "holdfast_charge_micros_total",
            kind: MetricKind::Counter,
            unit: "micros",
            labels: OF_MODEL,
            help: "Charges of answered operations, in millionths of the currency",
            alarm: "",
        },
        Metric {
            name: "holdfast_provider_cost_micros_total",
            kind: MetricKind::Counter,
            unit: "micros",
            labels: OF_MODEL,
            help: "Cost of answered operations by the cost of their routes, if that is \
                configured in the wallet's currency, in millionths of it",
            alarm: "",
        },
        Metric {
            name: "holdfast_usage_costs_excluded_total",
            kind: MetricKind::Counter,
            unit: "operations",
            labels: &[],
            help: "Operations whose provider cost is left out of all sums, because it is above 1,000,000 units of the \
                   currency; reports that lack one are marked incomplete",
            alarm: "it grows: a provider or a route's prices are wrong",
        },
        Metric {
            name: "holdfast_refund_micros_total",
            kind: MetricKind::Counter,
            unit: "micros",
            labels: OF_MODEL,
            help: "Refunds through this process's administration, in millionths of the currency",
            alarm: "",
        },
        Metric {
            name: "holdfast_shortfall_micros_total",
            kind: MetricKind::Counter,
            unit: "micros",
            labels: OF_MODEL,
            help: "Metered cost beyond its holds, which no caller paid, in millionths of the \
                currency",
            alarm: "it grows: a model's bounds are too low for its tokenizer",
        },
        Metric {
            name: "holdfast_hold_to_charge_ratio",
            kind: MetricKind::Histogram(HOLD_RATIOS),
            unit: "ratio",
            labels: &["model"],
            help: "Hold of an answered operation by its charge, of those that were charged: how much more of a wallet \
                   its runs keep than they cost",
            alarm: "",
        },
        Metric {
            name: "holdfast_exposure_micros_total",
            kind: MetricKind::Counter,
            unit: "micros",
            labels: &["currency", "model", "reason"],
            help: "Holds of runs that were refused, abandoned or cancelled, or cut before their cost was \
                   known: at most so much may they have cost, in millionths of the currency",
            alarm: "it grows faster than what you charge",
        },
        Metric {
            name: "holdfast_holds_outstanding",
            kind: MetricKind::Gauge,
            unit: "holds",
            labels: &[],
            help: "Holds that reserve funds; a fact of the database, read every 30 s",
            alarm: "",
        },
        Metric {
            name: "holdfast_holds_outstanding_micros",
            kind: MetricKind::Gauge,
            unit: "micros",
            labels: &["currency"],
            help: "Funds that the outstanding holds reserve, in millionths of the currency; a fact of the database, \
                   read every 30 s",
            alarm: "",
        },
        Metric {
            name: "holdfast_holds_oldest_seconds",
            kind: MetricKind::Gauge,
            unit: "seconds",
            labels: &[],
            help: "Age of the oldest outstanding hold; a fact of the database, read every 30 s",
            alarm: "it is older than the longest timeout of a model and a few minutes",
        },
        Metric {
            name: "holdfast_wallets_below_threshold",
            kind: MetricKind::Gauge,
            unit: "wallets",
            labels: &[],
            help: "Open wallets that have less than their low_balance; a fact of the database, read every 30 s",
            alarm: "",
        },
        Metric {
            name: "holdfast_tokens_total",
            kind: MetricKind::Counter,
            unit: "tokens",
            labels: &["kind", "model"],
            help: "Tokens of answered operations, by the disjoint kinds that prices have",
            alarm: "",
        },
        Metric {
            name: "holdfast_usage_not_believed_total",
            kind: MetricKind::Counter,
            unit: "runs",
            labels: &["provider", "reason"],
            help: "Runs whose usage is not as their provider reported it, by each reason",
            alarm: "it grows with a reason `count_…`, `above_…` or `text_without_tokens`, which are charged by an \
                    own count: the provider is wrong, or `context_tokens` is",
        },
        Metric {
            name: "holdfast_verification_finished_timestamp_seconds",
            kind: MetricKind::Gauge,
            unit: "seconds",
            labels: &[],
            help: "End of the last verification of the ledger, as Unix time; 0 before the first; a fact of \
                   the database, read every 30 s",
            alarm: "it is older than the interval in which you verify",
        },
        Metric {
            name: "holdfast_restore_window_end_timestamp_seconds",
            kind: MetricKind::Gauge,
            unit: "seconds",
            labels: &[],
            help: "End of the window of a restore, in which unknown request keys are refused, as Unix time; 0 if none is \
                   open; a fact of the database, read every 30 s",
            alarm: "it is above 0 without a restore of the ledger",
        },
        Metric {
            name: "holdfast_verification_mismatches",
            kind: MetricKind::Gauge,
            unit: "mismatches",
            labels: &[],
            help: "Mismatches that the last verification of the ledger found; a fact of the database, read every \
                   30 s",
            alarm: "it is not 0",
        },
    ],
};
