//! The engine's metrics: their names, and their series from the start. A series that begins with its
//! first event shows no growth to who watches it, so that whatever may be alarmed on begins at zero.
//! Not here: where they are counted.

use holdfast_domain::ports::NotRun;
use holdfast_domain::usage::Kind;
use metrics::{counter, histogram};

pub(crate) const OPERATIONS: &str = "holdfast_operations_total";
pub(crate) const SHORTFALL_MICROS: &str = "holdfast_shortfall_micros_total";
pub(crate) const TOKENS: &str = "holdfast_tokens_total";
pub(crate) const LATE_RESULTS: &str = "holdfast_late_results_total";
pub(crate) const RECONCILED: &str = "holdfast_reconciled_total";
pub(crate) const UPSTREAM_SECONDS: &str = "holdfast_upstream_seconds";

/// What an operation comes to.
const OUTCOMES: [&str; 5] = ["completed", "recorded", "open", "refused", "abandoned"];
/// Where the reconciler brings an operation.
const RESTS: [&str; 4] = ["completed", "open", "refused", "abandoned"];

/// Shows everything that this process counts, at zero.
pub(crate) fn begin() {
    for outcome in OUTCOMES {
        counter!(OPERATIONS, "outcome" => outcome).increment(0);
    }
    for phase in RESTS {
        counter!(RECONCILED, "phase" => phase).increment(0);
    }
    for kind in [Kind::Input, Kind::Output] {
        counter!(TOKENS, "kind" => kind.label()).increment(0);
    }
    for alone in [SHORTFALL_MICROS, LATE_RESULTS] {
        counter!(alone).increment(0);
    }
}

/// Shows the class of a provider's calls that somebody must act on, with no call in it. The other
/// classes are many, and each has a series for every bucket.
pub(crate) fn begin_provider(provider: &str) {
    let class = NotRun::Account.label();
    drop(histogram!(UPSTREAM_SECONDS, "provider" => provider.to_owned(), "class" => class));
}
