//! Prices of what is sold: per unit, or per million units.

use holdfast_domain::model::PublicModelId;
use holdfast_domain::price::{BadRate, PriceVersion, PriceVersionId, UnitPrices};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Currency, Micros};

/// Price of one product. Its version is named by the moment from which the service charges it: another price has
/// another moment, because rows keep the prices that they were charged by. No moment is compared with a clock.
#[derive(Debug, Clone)]
pub struct Price {
    pub(crate) product: PublicModelId,
    pub(crate) version: PriceVersion,
}

/// Reason why a price is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadPrice {
    /// The product is not named as `publisher/name`.
    #[error("a product is named publisher/name")]
    Product,
    /// The rate is below zero.
    #[error("a rate is not below zero")]
    NegativeRate,
    /// The rate is too large to compute with.
    #[error(transparent)]
    Rate(#[from] BadRate),
}

impl Price {
    /// A price per unit: `rate` micros for each.
    ///
    /// # Errors
    ///
    /// [`BadPrice::Product`] for a product without a publisher, [`BadPrice::NegativeRate`] and [`BadPrice::Rate`] for a
    /// rate that cannot be charged.
    pub fn each(
        product: &str,
        currency: Currency,
        effective_from: &str,
        rate: Micros,
    ) -> Result<Self, BadPrice> {
        Self::of(product, (currency, effective_from), (MeterKind::THING, rate))
    }

    /// A price of `rate` micros per million units: seconds, bytes or pages.
    ///
    /// # Errors
    ///
    /// As [`Self::each`].
    pub fn per_million(
        product: &str,
        currency: Currency,
        effective_from: &str,
        rate: Micros,
    ) -> Result<Self, BadPrice> {
        Self::of(product, (currency, effective_from), (MeterKind::UNIT, rate))
    }

    fn of(
        product: &str,
        (currency, effective_from): (Currency, &str),
        (metered, rate): (MeterKind, Micros),
    ) -> Result<Self, BadPrice> {
        let product = PublicModelId::try_from(product).map_err(|_bad| BadPrice::Product)?;
        let rate = u64::try_from(rate.get()).map_err(|_negative| BadPrice::NegativeRate)?;
        let rates = UnitPrices::from_fn(|kind| if kind == metered { rate } else { 0 })?;
        let id = PriceVersionId::new(&product, currency, effective_from);
        Ok(Self { product, version: PriceVersion { id, currency, tariff: rates.into() } })
    }
}
