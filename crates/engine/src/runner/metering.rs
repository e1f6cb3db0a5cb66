//! Usage of a run: as its provider reports it, where that can be believed, else by an own count.

use holdfast_domain::answer::Answer;
use holdfast_domain::price::ProviderCost;
use holdfast_domain::usage::{MeterKind, MeterReading, Meters, MetersSource};
use holdfast_domain::{Currency, Micros, Operation};

use super::Runner;
use crate::catalogue::Route;
use crate::metrics::usage_not_believed;
use crate::request_context::PreparedClaim;

/// Bytes of UTF-8 text that an estimate counts as one token.
const BYTES_PER_TOKEN: u64 = 4;

impl Runner {
    /// Filters the reported meters: `None` where no run within the request's bounds can have used
    /// so much. The operator is told, and an estimate is charged instead.
    pub(crate) fn credible_meters(
        &self,
        route: &Route,
        prepared: &PreparedClaim,
        reported: Option<Meters>,
        operation: &Operation,
    ) -> Option<Meters> {
        let reported = reported?;
        let contract = &prepared.model.contract;
        if reported.is_credible(contract.context_tokens, prepared.bound.all_output_tokens()) {
            return Some(reported);
        }
        usage_not_believed(&route.provider).increment(1);
        self.route_complaints.report_implausible_usage(route, operation);
        None
    }
}

/// Meters to charge: the reported ones, else an estimate from the text; with the provider's
/// cost in the currency of the price: its own charge, else by the prices of the route. Images are
/// counted from the request, never reported.
pub(crate) fn final_meters(
    reported: Option<Meters>,
    (charge, cost): (Option<(Currency, Micros)>, Option<&ProviderCost>),
    prepared: &PreparedClaim,
    answer: &Answer,
) -> MeterReading {
    let (meters, source) = match reported {
        Some(meters) => (meters, MetersSource::Reported),
        None => (estimate(prepared, answer), MetersSource::Estimated),
    };
    // Counts of a body that was held in memory are never absurd.
    let meters = meters.with(MeterKind::Image, prepared.bound.images).unwrap_or(meters);
    let paid_in = prepared.claim.price.currency;
    let provider_cost = match charge {
        Some((currency, charge)) => (currency == paid_in).then_some(charge),
        None => cost.and_then(|cost| cost.of(&meters, paid_in)),
    };
    MeterReading { meters, source, provider_cost }
}

fn estimate(prepared: &PreparedClaim, answer: &Answer) -> Meters {
    // Both are cut at the bounds that the hold was computed from: an estimate must never charge
    // more than what was reserved.
    let prompt = prepared.request.cost_factors().prompt_bytes.div_ceil(BYTES_PER_TOKEN);
    let input = prompt.min(prepared.bound.prompt_tokens);
    let output =
        answer.text_bytes().div_ceil(BYTES_PER_TOKEN).min(prepared.bound.all_output_tokens());
    Meters::estimated(input, output)
}
