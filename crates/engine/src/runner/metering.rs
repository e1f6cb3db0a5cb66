//! Usage of a run: as its provider reports it, if the report is accepted, else by an own count.
//!
//! The own count takes text as text. An image counts by the model's `image_tokens`; documents, audio and other
//! images have no figure except the context, and count zero: the operator bears the difference.

use holdfast_domain::Operation;
use holdfast_domain::answer::Answer;
use holdfast_domain::billing::accepted_charge;
use holdfast_domain::usage::{
    MeterKind, MeterReading, Meters, MetersSource, ResolvedUsage, UsageCeiling, UsageReason,
    UsageReasons, UsageReport,
};

use super::Runner;
use super::assembly::Assembly;
use crate::catalogue::Route;
use crate::metrics::usage_not_as_reported;
use crate::request_context::PreparedClaim;

/// Bytes of UTF-8 text that an estimate counts as one token.
const BYTES_PER_TOKEN: u64 = 4;

impl Runner {
    /// Meters to charge: those of the report, else an estimate from the text; with the provider's
    /// cost in the currency of the price: its own charge, else by the prices of the route. Images are
    /// counted from the request, never reported. Each difference from the report is counted and logged.
    pub(super) fn metered(
        &self,
        route: &Route,
        reported: Option<UsageReport>,
        assembly: &Assembly<'_>,
        (prepared, operation): (&PreparedClaim, &Operation),
    ) -> MeterReading {
        let price = &operation.price;
        let ceiling = UsageCeiling {
            context_tokens: prepared.model.contract.context_tokens,
            output_tokens: prepared.bound.all_output_tokens(),
        };
        let resolved = reported
            .ok_or(UsageReason::NotReported)
            .and_then(|report| report.resolve(&ceiling, |meters| price.tariff.cost(meters)));
        let (meters, source, reasons) = match resolved {
            Ok(ResolvedUsage { meters, reasons }) => (meters, MetersSource::Reported, reasons),
            Err(reason) => {
                let (meters, reasons) = estimate(prepared, &assembly.answer);
                (meters, MetersSource::Estimated, reasons.with(reason))
            }
        };
        let charge = assembly.charge.filter(|(currency, _charge)| *currency == price.currency);
        let accepted = charge.map(|(_currency, charge)| accepted_charge(charge, operation.hold));
        let reasons = reasons.with_if(accepted == Some(None), UsageReason::ChargeTooLarge);
        for reason in reasons.iter() {
            usage_not_as_reported(&route.provider, reason).increment(1);
        }
        if !reasons.is_empty() {
            self.route_complaints.report_usage(route, reasons, operation);
        }
        // Counts of a body that was held in memory are never absurd.
        let meters = meters.with(MeterKind::Image, prepared.bound.images).unwrap_or(meters);
        let provider_cost = match assembly.charge {
            Some(_charge) => accepted.flatten(),
            None => route.cost.as_ref().and_then(|cost| cost.of(&meters, price.currency)),
        };
        MeterReading { meters, source, reasons, provider_cost }
    }
}

fn estimate(prepared: &PreparedClaim, answer: &Answer) -> (Meters, UsageReasons) {
    let facts = prepared.request.cost_factors();
    let per_image = prepared.model.contract.image_tokens;
    let text = facts.text_bytes.div_ceil(BYTES_PER_TOKEN);
    let images = facts.images.saturating_mul(per_image.unwrap_or(0));
    let has_uncounted =
        facts.recordings > 0 || facts.files > 0 || (facts.images > 0 && per_image.is_none());
    // Both are cut at the bounds that the hold was computed from: an estimate must never charge
    // more than what was reserved.
    let input = text.saturating_add(images).min(prepared.bound.prompt_tokens);
    let output =
        answer.text_bytes().div_ceil(BYTES_PER_TOKEN).min(prepared.bound.all_output_tokens());
    let reasons = UsageReasons::NONE.with_if(has_uncounted, UsageReason::MediaNotCounted);
    (Meters::estimated(input, output), reasons)
}
