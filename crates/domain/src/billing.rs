//! The billing fact of an operation, made of its usage and its price. An operation has at most one
//! for ever, and its charge never exceeds the hold: what the meters cost beyond it is shortfall,
//! which the operator bears.

use crate::Micros;
use crate::price::{PriceVersion, PriceVersionId};
use crate::usage::MeterReading;

/// The billing fact of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRecord {
    /// Meters and their source.
    pub metered: MeterReading,
    /// Amount that the caller pays: never more than was held.
    pub charge: Micros,
    /// Cost of the meters beyond the hold; the operator bears it.
    pub shortfall: Micros,
    /// Price version that the charge was computed with.
    pub price_version: PriceVersionId,
}

impl UsageRecord {
    /// Prices the meters; the charge ends at the hold and the rest is shortfall.
    #[must_use]
    pub fn of(metered: MeterReading, price: &PriceVersion, hold: Micros) -> Self {
        // Saturates at the largest amount, which the hold then caps: too much is never a wrap.
        let cost = price.tariff.cost(&metered.meters);
        let charge = cost.min(hold);
        // Kept, not charged: it is how an operator sees that a hold was too low.
        let shortfall = cost.minus(charge).unwrap_or(Micros::ZERO);
        Self { metered, charge, shortfall, price_version: price.id.clone() }
    }
}
