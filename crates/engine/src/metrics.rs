//! The engine's metrics with labels: their names, and their series from the start. A series that begins with its
//! first event shows no growth to its alerts, so every series with an alert begins at zero. Counters that every
//! operation moves are looked up once. Not here: the places that count; and counters without labels, which the
//! catalogue registers, and which are counted in places that few operations reach.

mod calls;
mod money;

use std::collections::BTreeSet;

use holdfast_domain::Currency;
use holdfast_domain::ports::NotRunProof;
use holdfast_domain::usage::UsageReason;
use metrics::{Counter, counter, gauge};

use self::calls::CallMetrics;
pub(crate) use self::calls::CallReport;
use self::money::MoneyMetrics;

const OPERATIONS: &str = "holdfast_operations_total";
const RELAYS: &str = "holdfast_relays_total";
const RECONCILED: &str = "holdfast_reconciled_total";
const USAGE_NOT_BELIEVED: &str = "holdfast_usage_not_believed_total";
const HOLDS_MICROS: &str = "holdfast_holds_outstanding_micros";

/// Outcomes of operations, one series each.
const OUTCOMES: [&str; 5] = ["completed", "recorded", "open", "refused", "abandoned"];
/// Phases to which the reconciler brings an operation.
const RESTS: [&str; 4] = ["completed", "open", "refused", "abandoned"];

/// Outcomes of relays that this process requests: all was read, some was, the other node refused, or it was not
/// reached.
const RELAYED: [&str; 4] = ["whole", "cut", "refused", "unreached"];

/// Metrics of this process's operations.
#[derive(Debug)]
pub(crate) struct Metrics {
    outcomes: [LabelledCounter; OUTCOMES.len()],
    rests: [LabelledCounter; RESTS.len()],
    relays: [LabelledCounter; RELAYED.len()],
    pub(crate) money: MoneyMetrics,
    pub(crate) calls: CallMetrics,
}

pub(crate) type LabelledCounter = (&'static str, Counter);

impl Metrics {
    /// Shows all series at zero.
    pub(crate) fn begin() -> Self {
        Self {
            outcomes: OUTCOMES.map(|it| (it, registered(counter!(OPERATIONS, "outcome" => it)))),
            rests: RESTS.map(|it| (it, registered(counter!(RECONCILED, "phase" => it)))),
            relays: RELAYED.map(|it| (it, registered(counter!(RELAYS, "outcome" => it)))),
            money: MoneyMetrics::default(),
            calls: CallMetrics::default(),
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

    /// Counts the outcome of a relay that was requested of another process.
    pub(crate) fn relayed(&self, outcome: &str) {
        increment(&self.relays, outcome);
    }

    /// Shows the money of models that are paid in these currencies, at zero.
    pub(crate) fn begin_models<'m>(
        &self,
        models: impl Iterator<Item = (&'m str, BTreeSet<Currency>)>,
    ) {
        for (model, currencies) in models {
            for currency in currencies {
                self.money.begin(model, currency);
                // The renderer of metrics reads it from the store, and sets it.
                gauge!(HOLDS_MICROS, "currency" => currency.to_string()).increment(0.0);
            }
        }
    }
}

/// Shows the class of a provider's calls that needs an operator's action, at zero. The other classes are many, and
/// each has a series for every bucket.
pub(crate) fn begin_provider(provider: &str) {
    drop(calls::upstream(provider, NotRunProof::Account.label()));
    for reason in UsageReason::ALL {
        usage_not_as_reported(provider, reason).increment(0);
    }
}

/// Counter of runs whose usage is not as reported, by provider and reason.
pub(crate) fn usage_not_as_reported(provider: &str, reason: UsageReason) -> Counter {
    counter!(USAGE_NOT_BELIEVED, "provider" => provider.to_owned(), "reason" => reason.label())
}

pub(crate) fn registered(counter: Counter) -> Counter {
    counter.increment(0);
    counter
}

/// Counts up the series of a label, which all of them together cover.
pub(crate) fn increment(series: &[LabelledCounter], label: &str) {
    increment_by(series, label, 1);
}

fn increment_by(series: &[LabelledCounter], label: &str, by: u64) {
    if let Some((_label, counter)) = series.iter().find(|(of, _counter)| *of == label) {
        counter.increment(by);
    }
}
