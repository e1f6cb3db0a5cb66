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

/// Largest provider cost of one operation that sums take: a million units of the currency.
pub const COST_MAX: Micros = Micros::new(1_000_000_000_000);

/// Holds that a reported charge may come to.
const HOLDS_MAX: i64 = 1_000;

/// Largest charge of the gateway behind that is accepted for a generation with this hold. A hold of zero, of a
/// model without a price, sets no bound.
///
/// ```
/// use holdfast_domain::Micros;
/// use holdfast_domain::billing::{COST_MAX, charge_max};
///
/// assert_eq!(charge_max(Micros::new(25)), Micros::new(25_000));
/// assert_eq!(charge_max(Micros::MAX), COST_MAX);
/// assert_eq!(charge_max(Micros::ZERO), COST_MAX);
/// ```
#[must_use]
pub fn charge_max(hold: Micros) -> Micros {
    if hold == Micros::ZERO {
        return COST_MAX;
    }
    // A product that saturates is far above `COST_MAX`: the cap is the same.
    Micros::new(hold.get().saturating_mul(HOLDS_MAX)).min(COST_MAX)
}

/// Charge of the gateway behind as the cost of a generation with this hold; `None` if it is negative or
/// above [`charge_max`]: the cost is not known then.
// One absurd number would be in every sum for good: operations never change.
#[must_use]
pub fn accepted_charge(reported: Micros, hold: Micros) -> Option<Micros> {
    (Micros::ZERO..=charge_max(hold)).contains(&reported).then_some(reported)
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
