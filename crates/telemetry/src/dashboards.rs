//! Dashboards over the catalogue: what a person looks at, subject by subject. `cargo xtask docs` writes
//! them as Grafana reads them, and a test holds every query to the metrics of the catalogue.
//!
//! Rates are over five minutes, so that a scrape each minute is enough. A query over micros keeps the
//! currency, and one over a fact of the database takes the `max` of the gateways.

/// A dashboard.
#[derive(Debug)]
pub struct Dashboard {
    /// Name of its file.
    pub name: &'static str,
    /// Title, for people.
    pub title: &'static str,
    /// Panels, two beside each other.
    pub panels: &'static [Panel],
}

/// A graph.
#[derive(Debug)]
pub struct Panel {
    /// Title of the panel.
    pub title: &'static str,
    /// Unit, as Grafana names it.
    pub unit: &'static str,
    /// Queries, each with the legend of its series.
    pub queries: &'static [(&'static str, &'static str)],
}

/// All dashboards.
pub const DASHBOARDS: &[Dashboard] = &[TRAFFIC, MONEY, ROUTES, STORE, NODES];

const TRAFFIC: Dashboard = Dashboard {
    name: "traffic",
    title: "Holdfast: traffic",
    panels: &[
        Panel {
            title: "Requests by status",
            unit: "reqps",
            queries: &[("sum by (status) (rate(holdfast_http_requests_total[5m]))", "{{status}}")],
        },
        Panel {
            title: "Requests by route",
            unit: "reqps",
            queries: &[("sum by (route) (rate(holdfast_http_requests_total[5m]))", "{{route}}")],
        },
        Panel {
            title: "Time to the first event of a stream",
            unit: "s",
            queries: &[
                (
                    "histogram_quantile(0.5, sum by (le) (rate(holdfast_http_first_event_seconds_bucket[5m])))",
                    "median",
                ),
                (
                    "histogram_quantile(0.99, sum by (le) (rate(holdfast_http_first_event_seconds_bucket[5m])))",
                    "99 %",
                ),
            ],
        },
        Panel {
            title: "Time of a request, 99 %",
            unit: "s",
            queries: &[(
                "histogram_quantile(0.99, sum by (le, route) (rate(holdfast_http_request_seconds_bucket[5m])))",
                "{{route}}",
            )],
        },
        Panel {
            title: "Operations by outcome",
            unit: "ops",
            queries: &[("sum by (outcome) (rate(holdfast_operations_total[5m]))", "{{outcome}}")],
        },
        Panel {
            title: "Requests that wait for an operation",
            unit: "short",
            queries: &[("sum(holdfast_waiters)", "waiters")],
        },
        Panel {
            title: "Tokens by kind",
            unit: "short",
            queries: &[("sum by (kind) (rate(holdfast_tokens_total[5m]))", "{{kind}}")],
        },
        Panel {
            title: "Tokens by model",
            unit: "short",
            queries: &[("sum by (model) (rate(holdfast_tokens_total[5m]))", "{{model}}")],
        },
    ],
};

const MONEY: Dashboard = Dashboard {
    name: "money",
    title: "Holdfast: money",
    panels: &[
        Panel {
            title: "Charges an hour",
            unit: "short",
            queries: &[(
                "sum by (currency, model) (rate(holdfast_charge_micros_total[5m])) * 3600 / 1e6",
                "{{currency}} {{model}}",
            )],
        },
        Panel {
            title: "Margin an hour, where the cost is configured",
            unit: "short",
            queries: &[(
                "sum by (currency, model) (rate(holdfast_charge_micros_total[5m]) \
                 - rate(holdfast_refund_micros_total[5m]) \
                 - rate(holdfast_provider_cost_micros_total[5m])) * 3600 / 1e6",
                "{{currency}} {{model}}",
            )],
        },
        Panel {
            title: "Exposure an hour: at most so much may runs have cost that nobody paid",
            unit: "short",
            queries: &[(
                "sum by (currency, reason) (rate(holdfast_exposure_micros_total[5m])) * 3600 / 1e6",
                "{{currency}} {{reason}}",
            )],
        },
        Panel {
            title: "Shortfall and refunds in an hour",
            unit: "short",
            queries: &[
                (
                    "sum by (currency, model) (increase(holdfast_shortfall_micros_total[1h])) / 1e6",
                    "shortfall {{currency}} {{model}}",
                ),
                (
                    "sum by (currency, model) (increase(holdfast_refund_micros_total[1h])) / 1e6",
                    "refunds {{currency}} {{model}}",
                ),
            ],
        },
        Panel {
            title: "Provider costs left out of sums in an hour",
            unit: "short",
            queries: &[("sum(increase(holdfast_usage_costs_excluded_total[1h]))", "operations")],
        },
        Panel {
            title: "Held now",
            unit: "short",
            queries: &[(
                "max by (currency) (holdfast_holds_outstanding_micros) / 1e6",
                "{{currency}}",
            )],
        },
        Panel {
            title: "Hold by charge, median by model",
            unit: "short",
            queries: &[(
                "histogram_quantile(0.5, sum by (le, model) (rate(holdfast_hold_to_charge_ratio_bucket[5m])))",
                "{{model}}",
            )],
        },
        Panel {
            title: "Holds, and the age of the oldest",
            unit: "short",
            queries: &[
                ("max(holdfast_holds_outstanding)", "holds"),
                ("max(holdfast_holds_oldest_seconds)", "oldest, in seconds"),
            ],
        },
        Panel {
            title: "Wallets below their threshold",
            unit: "short",
            queries: &[("max(holdfast_wallets_below_threshold)", "wallets")],
        },
        Panel {
            title: "Last verification of the ledger",
            unit: "short",
            queries: &[
                ("max(holdfast_verification_mismatches)", "mismatches"),
                (
                    "(time() - max(holdfast_verification_finished_timestamp_seconds)) / 3600",
                    "hours ago",
                ),
            ],
        },
    ],
};

const ROUTES: Dashboard = Dashboard {
    name: "routes",
    title: "Holdfast: providers and routes",
    panels: &[
        Panel {
            title: "Calls by what came of them",
            unit: "reqps",
            queries: &[(
                "sum by (provider, class) (rate(holdfast_upstream_seconds_count[5m]))",
                "{{provider}} {{class}}",
            )],
        },
        Panel {
            title: "Time of a call, 95 %",
            unit: "s",
            queries: &[(
                "histogram_quantile(0.95, sum by (le, provider) (rate(holdfast_upstream_seconds_bucket[5m])))",
                "{{provider}}",
            )],
        },
        Panel {
            title: "Routes that are left alone",
            unit: "short",
            queries: &[(
                "max by (instance, provider, model) (holdfast_route_cooling)",
                "{{instance}} {{provider}}/{{model}}",
            )],
        },
        Panel {
            title: "Cool-downs in an hour",
            unit: "short",
            queries: &[(
                "sum by (provider, model, reason) (increase(holdfast_route_cool_downs_total[1h]))",
                "{{provider}}/{{model}} {{reason}}",
            )],
        },
        Panel {
            title: "Passed over for their concurrency",
            unit: "reqps",
            queries: &[(
                "sum by (provider, model) (rate(holdfast_route_full_total[5m]))",
                "{{provider}}/{{model}}",
            )],
        },
        Panel {
            title: "Connections to providers",
            unit: "short",
            queries: &[(
                "sum by (provider, state) (holdfast_provider_connections)",
                "{{provider}} {{state}}",
            )],
        },
        Panel {
            title: "Usage that is not as reported, in an hour",
            unit: "short",
            queries: &[(
                "sum by (provider, reason) (increase(holdfast_usage_not_believed_total[1h]))",
                "{{provider}} {{reason}}",
            )],
        },
        Panel {
            title: "Failed calls, by OpenTelemetry's conventions",
            unit: "reqps",
            queries: &[(
                "sum by (gen_ai_provider_name, gen_ai_request_model, error_type) \
                 (rate(gen_ai_client_operation_duration_seconds_count{error_type!=\"\"}[5m]))",
                "{{gen_ai_request_model}} {{error_type}}",
            )],
        },
        Panel {
            title: "Tokens of a call, median",
            unit: "short",
            queries: &[(
                "histogram_quantile(0.5, sum by (le, gen_ai_request_model, gen_ai_token_type) \
                 (rate(gen_ai_client_token_usage_bucket[5m])))",
                "{{gen_ai_request_model}} {{gen_ai_token_type}}",
            )],
        },
    ],
};

const STORE: Dashboard = Dashboard {
    name: "store",
    title: "Holdfast: store and webhooks",
    panels: &[
        Panel {
            title: "Time of a commit",
            unit: "s",
            queries: &[
                (
                    "histogram_quantile(0.5, sum by (le) (rate(holdfast_commit_batch_seconds_bucket[5m])))",
                    "median",
                ),
                (
                    "histogram_quantile(0.99, sum by (le) (rate(holdfast_commit_batch_seconds_bucket[5m])))",
                    "99 %",
                ),
            ],
        },
        Panel {
            title: "Wait for the writer, 99 %",
            unit: "s",
            queries: &[(
                "histogram_quantile(0.99, sum by (le, instance) (rate(holdfast_commit_wait_seconds_bucket[5m])))",
                "{{instance}}",
            )],
        },
        Panel {
            title: "Changes in a transaction, mean",
            unit: "short",
            queries: &[(
                "sum by (instance) (rate(holdfast_commit_batch_size_sum[5m])) \
                 / sum by (instance) (rate(holdfast_commit_batch_size_count[5m]))",
                "{{instance}}",
            )],
        },
        Panel {
            title: "Changes by verdict",
            unit: "ops",
            queries: &[("sum by (verdict) (rate(holdfast_commits_total[5m]))", "{{verdict}}")],
        },
        Panel {
            title: "Statements and rows",
            unit: "ops",
            queries: &[
                ("sum(rate(holdfast_commit_statements_total[5m]))", "statements"),
                ("sum(rate(holdfast_commit_rows_total[5m]))", "rows"),
            ],
        },
        Panel {
            title: "Connections that read",
            unit: "short",
            queries: &[("sum by (pool, state) (holdfast_pool_connections)", "{{pool}} {{state}}")],
        },
        Panel {
            title: "Outbox",
            unit: "short",
            queries: &[
                ("max(holdfast_outbox_events)", "events"),
                ("max(holdfast_outbox_deliveries)", "deliveries"),
                ("max(holdfast_webhook_oldest_due_seconds)", "oldest due, in seconds"),
            ],
        },
        Panel {
            title: "Tries and ends of deliveries",
            unit: "ops",
            queries: &[
                ("sum by (result) (rate(holdfast_webhook_tries_total[5m]))", "try {{result}}"),
                ("sum by (state) (rate(holdfast_webhook_deliveries_total[5m]))", "{{state}}"),
            ],
        },
    ],
};

const NODES: Dashboard = Dashboard {
    name: "nodes",
    title: "Holdfast: gateways",
    panels: &[
        Panel {
            title: "Versions",
            unit: "short",
            queries: &[("count by (version) (holdfast_build_info)", "{{version}}")],
        },
        Panel {
            title: "Time since the start",
            unit: "s",
            queries: &[("time() - max by (instance) (process_start_time_seconds)", "{{instance}}")],
        },
        Panel {
            title: "Processor",
            unit: "percentunit",
            queries: &[(
                "rate(process_cpu_seconds_total{job=~\"holdfast.*\"}[5m])",
                "{{instance}}",
            )],
        },
        Panel {
            title: "Memory",
            unit: "bytes",
            queries: &[
                ("process_resident_memory_bytes{job=~\"holdfast.*\"}", "{{instance}} resident"),
                ("process_virtual_memory_bytes{job=~\"holdfast.*\"}", "{{instance}} virtual"),
            ],
        },
        Panel {
            title: "Open files, of what is allowed",
            unit: "percentunit",
            queries: &[(
                "process_open_fds{job=~\"holdfast.*\"} / process_max_fds{job=~\"holdfast.*\"}",
                "{{instance}}",
            )],
        },
        Panel {
            title: "Threads",
            unit: "short",
            queries: &[("process_threads{job=~\"holdfast.*\"}", "{{instance}}")],
        },
        Panel {
            title: "Work of dead gateways, in an hour",
            unit: "short",
            queries: &[
                (
                    "sum by (phase) (increase(holdfast_reconciled_total[1h]))",
                    "reconciled {{phase}}",
                ),
                ("sum(increase(holdfast_late_results_total[1h]))", "late results"),
                ("sum(increase(holdfast_lost_commits_total[1h]))", "lost commits"),
            ],
        },
        Panel {
            title: "Spans of traces",
            unit: "ops",
            queries: &[("sum by (result) (rate(holdfast_spans_total[5m]))", "{{result}}")],
        },
        Panel {
            title: "Relays and reloads, in an hour",
            unit: "short",
            queries: &[
                ("sum by (outcome) (increase(holdfast_relays_total[1h]))", "relay {{outcome}}"),
                (
                    "sum by (outcome) (increase(holdfast_config_reloads_total[1h]))",
                    "reload {{outcome}}",
                ),
            ],
        },
    ],
};
