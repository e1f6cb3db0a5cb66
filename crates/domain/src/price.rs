//! Prices of a unit of each kind. A price version never changes its numbers.
//!
//! Integers only: micros per million units of a token kind, micros for each request and picture. A charge is Σ
//! meters × price, in 128 bits, rounded **up** once to a whole micro for an operation: rounding each kind apart
//! would add up to seven micros that no one used. An operation carries the version that was in force at its
//! admission, and is charged by that.

use std::fmt;
use std::sync::Arc;

use crate::model::PublicModelId;
use crate::usage::{MeterKind, Meters};
use crate::{Currency, Micros};

const MILLION: u128 = 1_000_000;

/// Line of an amount: so many units at the price of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceLine {
    /// Kind of the units.
    pub kind: MeterKind,
    /// Units.
    pub units: u64,
    /// Price of the kind: micros for a million units of a token kind, else for each.
    pub rate: u64,
}

impl PriceLine {
    /// Exact amount, in millionths of a micro: what is rounded is the sum of all lines.
    #[must_use]
    pub fn millionths(&self) -> u128 {
        let factor = if self.kind.per_million() { 1 } else { MILLION };
        u128::from(self.units).saturating_mul(u128::from(self.rate)).saturating_mul(factor)
    }
}

/// Prices of all kinds: micros per million of a token kind, micros for each of the others.
///
/// ```
/// use holdfast_domain::{Micros, price::UnitPrices, usage::{MeterKind, Meters}};
///
/// // 2,000 micros for each request, and a third of a micro for each unit of input.
/// let rate = |kind| [(MeterKind::Request, 2_000), (MeterKind::Input, 333_333)].into_iter().find(|it| it.0 == kind);
/// let rates = UnitPrices::from_fn(|kind| rate(kind).map_or(0, |(_, micros)| micros));
/// // Rounded up, once: 2,000 + 33.3333.
/// assert_eq!(rates.unwrap().cost(&Meters::text(100, 0).unwrap()), Micros::new(2_034));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnitPrices([u64; MeterKind::COUNT]);

impl UnitPrices {
    /// Dearest rate that is accepted: a million units of a currency for one token.
    pub const RATE_MAX: u64 = 1_000_000_000_000_000_000;

    /// Rates by kind.
    ///
    /// # Errors
    ///
    /// [`BadRate`] for a rate above [`UnitPrices::RATE_MAX`].
    pub fn from_fn(rate: impl Fn(MeterKind) -> u64) -> Result<Self, BadRate> {
        let rates = MeterKind::ALL.map(rate);
        // The bound is what makes the sum of a cost fit into 128 bits, whatever is counted.
        let is_payable = rates.iter().all(|rate| *rate <= Self::RATE_MAX);
        if is_payable { Ok(Self(rates)) } else { Err(BadRate) }
    }

    /// The rate of one kind.
    #[must_use]
    pub fn rate(&self, kind: MeterKind) -> u64 {
        MeterKind::ALL.iter().zip(self.0).find_map(|(k, r)| (*k == kind).then_some(r)).unwrap_or(0)
    }

    /// Lines of these meters' counts, none of zero.
    pub fn lines(&self, meters: &Meters) -> impl Iterator<Item = PriceLine> {
        let counted = meters.iter().filter(|(_, units)| *units > 0);
        counted.map(|(kind, units)| PriceLine { kind, units, rate: self.rate(kind) })
    }

    /// Σ meters × price, rounded up once to a whole micro; [`Micros::MAX`] if it does not fit.
    #[must_use]
    pub fn cost(&self, meters: &Meters) -> Micros {
        // At most nine products of 2^60 × 2^40 × 2^20: all of them fit into 128 bits.
        let lines = self.lines(meters).map(|line| line.millionths());
        let millionths = lines.fold(0_u128, u128::saturating_add);
        Micros::saturating_from(millionths.div_ceil(MILLION))
    }

    /// The dearest of these kinds, the first of several, and its rate; a request if there is none.
    pub(crate) fn dearest(&self, kinds: &[MeterKind]) -> (MeterKind, u64) {
        let rates = kinds.iter().map(|kind| (*kind, self.rate(*kind)));
        let dearer = |one: (MeterKind, u64), other: (MeterKind, u64)| {
            if other.1 > one.1 { other } else { one }
        };
        rates.reduce(dearer).unwrap_or((MeterKind::Request, 0))
    }
}

/// A rate that is too dear to compute with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a rate is at most {} micros", UnitPrices::RATE_MAX)]
pub struct BadRate;

/// Tariff of a model: its first rates, and those of a tier if the prompt is longer than that tier's threshold.
/// A request has one tier, for all of its usage.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tariff {
    rates: UnitPrices,
    tiers: Box<[Tier]>,
}

/// The rates of requests with long prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tier {
    /// A prompt of more tokens than this has these rates.
    pub above_prompt_tokens: u64,
    /// The rates.
    pub rates: UnitPrices,
}

/// Tiers that are too many or out of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadTiers {
    /// There are more than [`Tariff::TIERS_MAX`].
    #[error("there are more tiers than {}", Tariff::TIERS_MAX)]
    TooMany,
    /// A threshold is not above the one before it.
    #[error("each tier begins above the one before it, and the first above 0")]
    Order,
}

impl Tariff {
    /// The most tiers beside the first rates.
    pub const TIERS_MAX: usize = 8;

    /// Rates with tiers, the lowest threshold first.
    ///
    /// # Errors
    ///
    /// [`BadTiers`] if they are too many or out of order.
    pub fn with_tiers(rates: UnitPrices, tiers: Vec<Tier>) -> Result<Self, BadTiers> {
        if tiers.len() > Self::TIERS_MAX {
            return Err(BadTiers::TooMany);
        }
        let thresholds = tiers.iter().map(|tier| tier.above_prompt_tokens);
        let is_sorted = thresholds.clone().is_sorted_by(|lower, upper| lower < upper);
        if !is_sorted || thresholds.min() == Some(0) {
            return Err(BadTiers::Order);
        }
        Ok(Self { rates, tiers: tiers.into() })
    }

    /// The rates of the shortest prompts.
    #[must_use]
    pub const fn rates(&self) -> &UnitPrices {
        &self.rates
    }

    /// The tiers, the lowest threshold first.
    #[must_use]
    pub fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    /// Rates that a prompt of at most `tokens` can have, each with the longest prompt that has
    /// them.
    pub fn reachable(&self, tokens: u64) -> impl Iterator<Item = (&UnitPrices, u64)> {
        let first = std::iter::once((0, &self.rates));
        let all =
            first.chain(self.tiers.iter().map(|tier| (tier.above_prompt_tokens, &tier.rates)));
        // Each threshold begins a tier and ends the one before it.
        let ends = self.tiers.iter().map(|tier| tier.above_prompt_tokens).chain([u64::MAX]);
        all.zip(ends)
            // The first rates are always within reach; a tier only beyond its threshold.
            .filter(move |((above, _), _)| *above == 0 || *above < tokens)
            .map(move |((_, rates), end)| (rates, end.min(tokens)))
    }

    /// Tier that these meters are paid by: the last one that their prompt is above, if it is above any.
    #[must_use]
    pub fn tier(&self, meters: &Meters) -> Option<&Tier> {
        let prompt = meters.prompt_tokens();
        self.tiers.iter().rfind(|tier| tier.above_prompt_tokens < prompt)
    }

    /// Rates that these meters are paid by: those of their tier.
    #[must_use]
    pub fn applied(&self, meters: &Meters) -> &UnitPrices {
        self.tier(meters).map_or(&self.rates, |tier| &tier.rates)
    }

    /// Σ meters × the rates of the tier that their prompt has, rounded up once to a whole micro;
    /// [`Micros::MAX`] if it does not fit.
    #[must_use]
    pub fn cost(&self, meters: &Meters) -> Micros {
        self.applied(meters).cost(meters)
    }
}

impl From<UnitPrices> for Tariff {
    /// Tariff without tiers: one price for prompts of any length.
    fn from(rates: UnitPrices) -> Self {
        Self { rates, tiers: Box::default() }
    }
}

/// Cost of a route to the operator, who pays its provider. Callers never see it, and the ledger does not
/// contain it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProviderCost {
    /// Currency of the cost. Only operations that are paid in it keep one, so that both can be
    /// compared.
    pub currency: Currency,
    /// Rates of the provider.
    pub tariff: Tariff,
}

impl ProviderCost {
    /// Cost of a run with these meters; `None` if it was paid in another currency.
    #[must_use]
    pub fn of(&self, meters: &Meters, paid_in: Currency) -> Option<Micros> {
        // Never converted: a rate of exchange would be one more number that nobody can check.
        (self.currency == paid_in).then(|| self.tariff.cost(meters))
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

    /// Name that a row holds, unchecked.
    #[must_use]
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Public id of the model; `None` if a row holds another name than [`Self::new`] gives.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        // From the end: the model's id has a slash of its own.
        self.0.rsplitn(3, '/').nth(2)
    }

    /// Moment from which it is in force, as it was written; `None` as for [`Self::model`].
    #[must_use]
    pub fn effective_from(&self) -> Option<&str> {
        self.model().and_then(|_model| self.0.rsplit('/').next())
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
    /// Name of the version.
    pub id: PriceVersionId,
    /// Currency of the numbers: only its wallets pay by them.
    pub currency: Currency,
    /// Numbers of the version, which never change.
    pub tariff: Tariff,
}
