//! Providers and routes. `gen_ai_*` are spelled as OpenTelemetry's conventions have them, with their
//! buckets, so that dashboards which know those find them.

use super::requests::REQUEST_SECONDS;
use super::{Metric, MetricGroup, MetricKind};

/// Buckets of the conventions, for `gen_ai.client.operation.duration`.
const GEN_AI_SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Buckets of the conventions, for `gen_ai.client.token.usage`.
const GEN_AI_TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const OF_ROUTE: &[&str] = &["provider", "model"];

pub(super) const GROUP: MetricGroup = MetricGroup {
    title: "Providers and routes",
    introduction: "`provider` is the name of the provider in the configuration, `model` that \
        provider's name of its model. The two `gen_ai_*` are OpenTelemetry's \
                   `gen_ai.client.operation.duration` and `gen_ai.client.token.usage`: one \
                   observation for each call, `error_type` only if the call failed.",
    metrics: &[
        Metric {
            name: "holdfast_upstream_seconds",
            kind: MetricKind::Histogram(REQUEST_SECONDS),
            unit: "seconds",
            labels: &["provider", "class"],
            help: "Time of one call to a provider, by its outcome",
            alarm: "`not_run_account`: the account at that provider is refused",
        },
        Metric {
            name: "holdfast_route_cooling",
            kind: MetricKind::Gauge,
            unit: "0 or 1",
            labels: OF_ROUTE,
            help: "1 while a route cools down, else 0",
            alarm: "it stays 1",
        },
        Metric {
            name: "holdfast_route_cool_downs_total",
            kind: MetricKind::Counter,
            unit: "cool-downs",
            labels: &["provider", "model", "reason"],
            help: "Cool-downs of a route, by reason: failures, account or retry_after",
            alarm: "`account` grows",
        },
        Metric {
            name: "holdfast_route_full_total",
            kind: MetricKind::Counter,
            unit: "requests",
            labels: OF_ROUTE,
            help: "Requests that skipped a route because of its concurrency",
            alarm: "it grows faster than usual",
        },
        Metric {
            name: "holdfast_provider_connections",
            kind: MetricKind::Gauge,
            unit: "connections",
            labels: &["provider", "state"],
            help: "Connections to a provider: idle, or used by a call",
            alarm: "`used` grows without end: calls are not answered",
        },
        Metric {
            name: "gen_ai_client_operation_duration_seconds",
            kind: MetricKind::Histogram(GEN_AI_SECONDS),
            unit: "seconds",
            labels: &[
                "gen_ai_operation_name",
                "gen_ai_provider_name",
                "gen_ai_request_model",
                "error_type",
            ],
            help: "Time of one call to a provider, by OpenTelemetry's conventions",
            alarm: "",
        },
        Metric {
            name: "gen_ai_client_token_usage",
            kind: MetricKind::Histogram(GEN_AI_TOKENS),
            unit: "tokens",
            labels: &[
                "gen_ai_operation_name",
                "gen_ai_provider_name",
                "gen_ai_request_model",
                "gen_ai_token_type",
            ],
            help: "Tokens of one answered call as they are charged, by OpenTelemetry's conventions",
            alarm: "",
        },
    ],
};
