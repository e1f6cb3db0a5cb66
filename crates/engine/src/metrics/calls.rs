//! Calls to providers: by provider and what came of them, and as OpenTelemetry's conventions for
//! generative AI have them (`gen_ai.client.operation.duration`, `gen_ai.client.token.usage`). One call,
//! one observation of each; the tokens are those that are charged.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use holdfast_domain::usage::Meters;
use metrics::{Histogram, histogram};

const UPSTREAM_SECONDS: &str = "holdfast_upstream_seconds";
const DURATION: &str = "gen_ai_client_operation_duration_seconds";
const TOKEN_USAGE: &str = "gen_ai_client_token_usage";
const OPERATION: &str = "chat";

/// Result of one call to a provider.
pub(crate) struct CallReport<'a> {
    /// Name of the provider in the configuration.
    pub(crate) provider: &'a str,
    /// Name of the provider by the conventions.
    pub(crate) system: &'static str,
    /// Model of the route.
    pub(crate) model: &'a str,
    pub(crate) class: &'static str,
    pub(crate) took: Duration,
    /// Usage as it is charged.
    pub(crate) meters: Option<&'a Meters>,
    pub(crate) has_failed: bool,
}

/// Series of calls, looked up once for each route and class.
#[derive(Debug, Default)]
pub(crate) struct CallMetrics {
    /// By the provider's name and its model. Few names: comparing them is cheaper than a keyed hash.
    known: RwLock<BTreeMap<String, BTreeMap<String, SeriesOfClasses>>>,
}

/// Series of one route, by the class of the call.
type SeriesOfClasses = BTreeMap<&'static str, CallSeries>;

#[derive(Debug, Clone)]
struct CallSeries {
    upstream: Histogram,
    duration: Histogram,
    tokens: [Histogram; 2],
}

impl CallMetrics {
    /// Counts a call.
    pub(crate) fn count(&self, call: &CallReport<'_>) {
        // Read first: each class of a route is written once, and looked up with every call.
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let models = known.get(call.provider);
        let classes = models.and_then(|models| models.get(call.model));
        if let Some(series) = classes.and_then(|classes| classes.get(call.class)) {
            return series.count(call);
        }
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Another task may have made it between the two locks: the entry is looked up again.
        let models = known.entry(call.provider.to_owned()).or_default();
        let classes = models.entry(call.model.to_owned()).or_default();
        classes.entry(call.class).or_insert_with(|| CallSeries::of(call)).count(call);
    }
}

impl CallSeries {
    fn of(call: &CallReport<'_>) -> Self {
        let labels = [
            ("gen_ai_operation_name", OPERATION.to_owned()),
            ("gen_ai_provider_name", call.system.to_owned()),
            ("gen_ai_request_model", call.model.to_owned()),
        ];
        let with = |name: &'static str, value: &'static str| {
            let [operation, provider, model] = labels.clone();
            [operation, provider, model, (name, value.to_owned())]
        };
        let tokens = |kind| histogram!(TOKEN_USAGE, &with("gen_ai_token_type", kind));
        Self {
            upstream: upstream(call.provider, call.class),
            duration: if call.has_failed {
                histogram!(DURATION, &with("error_type", call.class))
            } else {
                histogram!(DURATION, &labels)
            },
            tokens: ["input", "output"].map(tokens),
        }
    }

    fn count(&self, call: &CallReport<'_>) {
        self.upstream.record(call.took);
        self.duration.record(call.took);
        if let Some(meters) = call.meters {
            let counts = [meters.prompt_tokens(), meters.completion_tokens()];
            for (tokens, count) in self.tokens.iter().zip(counts) {
                tokens.record(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
            }
        }
    }
}

/// Histogram of the calls of a provider, by their class.
pub(super) fn upstream(provider: &str, class: &'static str) -> Histogram {
    histogram!(UPSTREAM_SECONDS, "provider" => provider.to_owned(), "class" => class)
}
