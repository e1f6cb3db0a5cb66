//! The engine's metrics: their names, and their series from the start. A series that begins with its
//! first event shows no growth to who watches it, so that whatever may be alarmed on begins at zero.
//! What is counted with every operation is looked up once. Not here: when it is counted.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use holdfast_domain::billing::UsageRecord;
use holdfast_domain::operation::{Operation, Phase};
use holdfast_domain::ports::NotRunProof;
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Currency, Micros};
use metrics::{Counter, Histogram, counter, gauge, histogram};

const OPERATIONS: &str = "holdfast_operations_total";
const SHORTFALL_MICROS: &str = "holdfast_shortfall_micros_total";
const EXPOSURE_MICROS: &str = "holdfast_exposure_micros_total";
const TOKENS: &str = "holdfast_tokens_total";
const LATE_RESULTS: &str = "holdfast_late_results_total";
const LOST_COMMITS: &str = "holdfast_lost_commits_total";
const RELAYS: &str = "holdfast_relays_total";
const RECONCILED: &str = "holdfast_reconciled_total";
const UPSTREAM_SECONDS: &str = "holdfast_upstream_seconds";
const USAGE_NOT_BELIEVED: &str = "holdfast_usage_not_believed_total";
const HOLDS_MICROS: &str = "holdfast_holds_outstanding_micros";

/// Outcomes of operations, one series each.
const OUTCOMES: [&str; 5] = ["completed", "recorded", "open", "refused", "abandoned"];
/// Endings of runs that may have cost the operator something and were not charged.
const EXPOSURES: [&str; 3] = ["refused", "abandoned", "cancelled"];
/// Phases to which the reconciler brings an operation.
const RESTS: [&str; 4] = ["completed", "open", "refused", "abandoned"];

/// Outcomes of relays that this process asks for: all was read, some was, the other node
/// refused, or it was not reached.
const RELAYED: [&str; 4] = ["whole", "cut", "refused", "unreached"];

/// Metrics of this process's operations.
#[derive(Debug)]
pub(crate) struct Metrics {
    outcomes: [LabelledCounter; OUTCOMES.len()],
    rests: [LabelledCounter; RESTS.len()],
    relays: [LabelledCounter; RELAYED.len()],
    input_tokens: Counter,
    output_tokens: Counter,
    late_results: Counter,
    lost_commits: Counter,
    /// By the provider and the class of the call.
    upstream: RwLock<HashMap<String, HashMap<&'static str, Histogram>>>,
}

pub(crate) type LabelledCounter = (&'static str, Counter);

impl Metrics {
    /// Shows everything at zero.
    pub(crate) fn begin() -> Self {
        Self {
            outcomes: OUTCOMES.map(|it| (it, registered(counter!(OPERATIONS, "outcome" => it)))),
            rests: RESTS.map(|it| (it, registered(counter!(RECONCILED, "phase" => it)))),
            relays: RELAYED.map(|it| (it, registered(counter!(RELAYS, "outcome" => it)))),
            input_tokens: registered(counter!(TOKENS, "kind" => MeterKind::Input.label())),
            output_tokens: registered(counter!(TOKENS, "kind" => MeterKind::Output.label())),
            late_results: registered(counter!(LATE_RESULTS)),
            lost_commits: registered(counter!(LOST_COMMITS)),
            upstream: RwLock::default(),
        }
    }

    /// An operation came to this phase.
    pub(crate) fn outcome(&self, phase: &str) {
        increment(&self.outcomes, phase);
    }

    /// The reconciler brought an operation to rest in this phase.
    pub(crate) fn reconciled(&self, phase: &str) {
        increment(&self.rests, phase);
    }

    /// A relay that another process was asked for came to this.
    pub(crate) fn relayed(&self, outcome: &str) {
        increment(&self.relays, outcome);
    }

    /// An operation used this up, in money of this currency.
    pub(crate) fn used(&self, usage: &UsageRecord, currency: Currency) {
        let meters = &usage.metered.meters;
        if usage.shortfall > Micros::ZERO {
            shortfall(currency).increment(counted(usage.shortfall));
        }
        self.input_tokens.increment(meters.prompt_tokens());
        self.output_tokens.increment(meters.completion_tokens());
    }

    /// A result came too late to be billed.
    pub(crate) fn late_result(&self) {
        self.late_results.increment(1);
    }

    /// The store does not have any more what it had committed.
    pub(crate) fn lost_commit(&self) {
        self.lost_commits.increment(1);
    }

    /// A call of a provider took so long and came to this.
    pub(crate) fn upstream(&self, provider: &str, class: &'static str, took: Duration) {
        // Read first: each class of a provider is written once, and looked up with every call.
        let known = self.upstream.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(histogram) = known.get(provider).and_then(|classes| classes.get(class)) {
            return histogram.record(took);
        }
        drop(known);
        let mut known = self.upstream.write().unwrap_or_else(PoisonError::into_inner);
        // Whoever was faster between the two locks has made it: the entry is looked up again.
        let classes = known.entry(provider.to_owned()).or_default();
        let of_class = || upstream(provider, class);
        classes.entry(class).or_insert_with(of_class).record(took);
    }
}

/// Shows what nobody pays of a currency, and what is held of it, with nothing in it.
pub(crate) fn begin_currency(currency: Currency) {
    drop(registered(shortfall(currency)));
    // Whoever renders metrics asks the store, and sets it.
    gauge!(HOLDS_MICROS, "currency" => currency.to_string()).increment(0.0);
    for reason in EXPOSURES {
        drop(registered(exposure(currency, reason)));
    }
}

/// An operation was brought here without a charge: what it may have cost the operator.
pub(crate) fn exposed(operation: &Operation) {
    let reason = match operation.phase {
        Phase::Refused { .. } => "refused",
        Phase::Abandoned { .. } if operation.cancel_asked => "cancelled",
        Phase::Abandoned { .. } => "abandoned",
        Phase::Leased | Phase::Recorded(_) | Phase::Open | Phase::Completed { .. } => return,
    };
    if let Some(hold) = operation.exposure() {
        exposure(operation.price.currency, reason).increment(counted(hold));
    }
}

fn shortfall(currency: Currency) -> Counter {
    counter!(SHORTFALL_MICROS, "currency" => currency.to_string())
}

fn exposure(currency: Currency, reason: &'static str) -> Counter {
    counter!(EXPOSURE_MICROS, "currency" => currency.to_string(), "reason" => reason)
}

fn counted(amount: Micros) -> u64 {
    // No amount here is negative; a counter could not go back.
    u64::try_from(amount.get()).unwrap_or(0)
}

/// Shows the class of a provider's calls that somebody must act on, with no call in it. The other
/// classes are many, and each has a series for every bucket.
pub(crate) fn begin_provider(provider: &str) {
    drop(upstream(provider, NotRunProof::Account.label()));
    usage_not_believed(provider).increment(0);
}

/// Counter of usage reports above what the model can have used, by provider.
pub(crate) fn usage_not_believed(provider: &str) -> Counter {
    counter!(USAGE_NOT_BELIEVED, "provider" => provider.to_owned())
}

fn upstream(provider: &str, class: &'static str) -> Histogram {
    histogram!(UPSTREAM_SECONDS, "provider" => provider.to_owned(), "class" => class)
}

pub(crate) fn registered(counter: Counter) -> Counter {
    counter.increment(0);
    counter
}

/// Counts up the series of a label, which all of them together cover.
pub(crate) fn increment(series: &[LabelledCounter], label: &str) {
    if let Some((_label, counter)) = series.iter().find(|(of, _counter)| *of == label) {
        counter.increment(1);
    }
}
