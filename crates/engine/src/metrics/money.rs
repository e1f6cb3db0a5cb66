//! Money and tokens of operations, by currency and model. The labels are bounded: a model that the process does not
//! offer counts as `other`, be its operation one that another gateway left.
//!
//! Series are looked up once for each model and kept, also over reloads: a counter that went away and came back
//! would look like a new process. No series adds up currencies.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use holdfast_domain::billing::UsageRecord;
use holdfast_domain::operation::{Operation, Phase};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Currency, Micros};
use metrics::{Counter, Histogram, counter, histogram};

use super::{LabelledCounter, increment_by, registered};

const CHARGE: &str = "holdfast_charge_micros_total";
const PROVIDER_COST: &str = "holdfast_provider_cost_micros_total";
/// Counted when a refund is requested; begun here, so that a margin can be computed from the start.
const REFUND: &str = "holdfast_refund_micros_total";
const SHORTFALL: &str = "holdfast_shortfall_micros_total";
const EXPOSURE: &str = "holdfast_exposure_micros_total";
const HOLD_RATIO: &str = "holdfast_hold_to_charge_ratio";
const TOKENS: &str = "holdfast_tokens_total";

/// Label of every model that the process does not offer.
const OTHER: &str = "other";
/// Endings of runs without a charge that may have had a cost for the operator.
const EXPOSURES: [&str; 4] = ["refused", "abandoned", "cancelled", "cut"];

/// Series of models and currencies, as they were begun.
#[derive(Debug, Default)]
pub(crate) struct MoneyMetrics(RwLock<BTreeMap<Currency, SeriesOfModels>>);

/// Series of one currency, by the model. Few names: comparing them is cheaper than a keyed hash.
type SeriesOfModels = BTreeMap<String, Arc<MoneySeries>>;

#[derive(Debug)]
struct MoneySeries {
    charge: Counter,
    provider_cost: Counter,
    shortfall: Counter,
    exposures: [LabelledCounter; EXPOSURES.len()],
    hold_ratio: Histogram,
    tokens: Vec<(MeterKind, Counter)>,
}

impl MoneyMetrics {
    /// Shows a model that is paid in this currency, at zero.
    pub(crate) fn begin(&self, model: &str, currency: Currency) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known
            .entry(currency)
            .or_default()
            .entry(model.to_owned())
            .or_insert_with(|| Arc::new(MoneySeries::begin(model, currency)));
    }

    /// Counts what an operation used up.
    pub(crate) fn settle(&self, operation: &Operation, usage: &UsageRecord) {
        let series = self.of(operation);
        series.charge.increment(counted(usage.charge));
        if let Some(ratio) = hold_ratio(operation.hold, usage.charge) {
            series.hold_ratio.record(ratio);
        }
        series.shortfall.increment(counted(usage.shortfall));
        let cost = usage.metered.provider_cost.unwrap_or(Micros::ZERO);
        series.provider_cost.increment(counted(cost));
        for (kind, tokens) in &series.tokens {
            tokens.increment(usage.metered.meters.count(*kind));
        }
    }

    /// Counts an operation that came to its end without a charge: what it may have cost the operator.
    pub(crate) fn expose(&self, operation: &Operation) {
        let reason = match operation.phase {
            Phase::Refused { .. } => "refused",
            Phase::Abandoned { .. } if operation.cancel_asked => "cancelled",
            Phase::Abandoned { .. } => "abandoned",
            Phase::Leased | Phase::Recorded(_) | Phase::Open | Phase::Completed { .. } => return,
        };
        if let Some(hold) = operation.exposure() {
            increment_by(&self.of(operation).exposures, reason, counted(hold));
        }
    }

    /// Counts a completed operation whose cost is awaited.
    pub(crate) fn expose_awaited(&self, operation: &Operation) {
        increment_by(&self.of(operation).exposures, "cut", counted(operation.hold));
    }

    /// Counts a cost that came after the ending of its operation.
    pub(crate) fn add_late_cost(&self, operation: &Operation, cost: Micros) {
        self.of(operation).provider_cost.increment(counted(cost));
    }

    fn of(&self, operation: &Operation) -> Arc<MoneySeries> {
        let currency = operation.price.currency;
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let of_currency = known.get(&currency);
        if let Some(series) = of_currency.and_then(|models| models.get(operation.model.as_str())) {
            return Arc::clone(series);
        }
        drop(known);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let series = known
            .entry(currency)
            .or_default()
            .entry(OTHER.to_owned())
            .or_insert_with(|| Arc::new(MoneySeries::begin(OTHER, currency)));
        Arc::clone(series)
    }
}

impl MoneySeries {
    fn begin(model: &str, currency: Currency) -> Self {
        let labels = [("currency", currency.to_string()), ("model", model.to_owned())];
        let exposure = |reason: &'static str| {
            let [currency, model] = labels.clone();
            let labels = [currency, model, ("reason", reason.to_owned())];
            (reason, registered(counter!(EXPOSURE, &labels)))
        };
        let tokens = |kind: MeterKind| {
            let tokens = counter!(TOKENS, "kind" => kind.label(), "model" => model.to_owned());
            (kind, registered(tokens))
        };
        drop(registered(counter!(REFUND, &labels)));
        let kinds = MeterKind::ALL.into_iter().filter(|kind| kind.per_million());
        Self {
            charge: registered(counter!(CHARGE, &labels)),
            provider_cost: registered(counter!(PROVIDER_COST, &labels)),
            shortfall: registered(counter!(SHORTFALL, &labels)),
            exposures: EXPOSURES.map(exposure),
            hold_ratio: histogram!(HOLD_RATIO, "model" => model.to_owned()),
            tokens: kinds.map(tokens).collect(),
        }
    }
}

/// Hold by charge; `None` for a free operation, whose ratio has no meaning.
fn hold_ratio(hold: Micros, charge: Micros) -> Option<f64> {
    // In whole thousandths: integers have no lossless way to a double beyond 32 bits.
    let thousandths = (i128::from(hold.get()) * 1_000).checked_div(i128::from(charge.get()))?;
    let thousandths = u32::try_from(thousandths).unwrap_or(u32::MAX);
    Some(f64::from(thousandths) / 1_000.0)
}

fn counted(amount: Micros) -> u64 {
    // No amount here is negative; a counter could not go back.
    u64::try_from(amount.get()).unwrap_or(0)
}
