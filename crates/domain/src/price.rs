//! What a unit of each kind costs. A price version never changes its numbers.

use std::fmt;
use std::sync::Arc;

use crate::model::PublicModelId;
use crate::usage::{Kind, Meters};
use crate::{Currency, Micros};

const MILLION: u128 = 1_000_000;

/// The price of each kind: micros per million of a token kind, micros for each of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates([u64; Kind::COUNT]);

impl Rates {
    /// The dearest rate that is accepted: a million units of a currency for one token.
    pub const RATE_MAX: u64 = 1_000_000_000_000_000_000;

    /// Rates by kind; `None` when one is too dear to compute with.
    #[must_use]
    pub fn by(rate: impl Fn(Kind) -> u64) -> Option<Self> {
        let rates = Kind::ALL.map(rate);
        rates.iter().all(|rate| *rate <= Self::RATE_MAX).then_some(Self(rates))
    }

    /// The rate of one kind.
    #[must_use]
    pub fn rate(&self, kind: Kind) -> u64 {
        Kind::ALL.iter().zip(self.0).find_map(|(k, r)| (*k == kind).then_some(r)).unwrap_or(0)
    }

    /// Σ meters × price, rounded up once to a whole micro; [`Micros::MAX`] where it does not fit.
    #[must_use]
    pub fn cost(&self, meters: &Meters) -> Micros {
        let millionths = meters.iter().fold(0_u128, |sum, (kind, count)| {
            let units = if kind.per_million() { 1 } else { MILLION };
            let cost = u128::from(count).saturating_mul(u128::from(self.rate(kind)));
            sum.saturating_add(cost.saturating_mul(units))
        });
        Micros::saturating_from(millionths.div_ceil(MILLION))
    }

    /// The dearest of these kinds.
    #[must_use]
    pub fn dearest(&self, kinds: &[Kind]) -> u64 {
        kinds.iter().map(|kind| self.rate(*kind)).max().unwrap_or(0)
    }
}

/// `<model>/<currency>/<effective from>`: names a price version for ever.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PriceVersionId(Arc<str>);

impl PriceVersionId {
    /// Names the prices of a model in a currency from a moment on, written in RFC 3339.
    #[must_use]
    pub fn new(model: &PublicModelId, currency: Currency, effective_from: &str) -> Self {
        Self(format!("{model}/{currency}/{effective_from}").into())
    }

    /// Reads what a row holds.
    #[must_use]
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PriceVersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The prices in force at admission, copied into the operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceVersion {
    /// Its name.
    pub id: PriceVersionId,
    /// Only wallets of this currency pay by it.
    pub currency: Currency,
    /// Its numbers.
    pub rates: Rates,
}
