//! Sums of usage for operators: what they are of, how they are grouped, and what they say.
//!
//! An operation belongs to the period in which it finished, and its refunds belong to it, whenever
//! they were made. What has not finished, or is not settled yet, is in no report. Each currency has
//! sums of its own.
//!
//! A cost that is not known is none: [`Totals::known`] is empty for a group in which nothing has
//! one, and `costed` says how many have.

use crate::listing::Period;
use crate::usage::MeterKind;
use crate::{ApiKeyId, Currency, Micros, Timestamp, WalletId};

/// Key that sums are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupBy {
    /// Each hour, in UTC.
    Hour,
    /// Each day, in UTC.
    Day,
    /// Each month, in UTC.
    Month,
    /// Each model.
    Model,
    /// Each API key.
    ApiKey,
    /// Each wallet.
    Wallet,
    /// Each route: the one that was tried last.
    Route,
}

impl GroupBy {
    /// Every key, in the order of their declaration.
    pub const ALL: [Self; 7] =
        [Self::Hour, Self::Day, Self::Month, Self::Model, Self::ApiKey, Self::Wallet, Self::Route];
}

/// Grouping of a report: by one key, or by each pair of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grouping {
    first: GroupBy,
    second: Option<GroupBy>,
}

impl Grouping {
    /// Sums for each value of one key.
    #[must_use]
    pub const fn by(first: GroupBy) -> Self {
        Self { first, second: None }
    }

    /// Sums for each pair of values of two keys; `None` where both are one.
    #[must_use]
    pub fn by_both(first: GroupBy, second: GroupBy) -> Option<Self> {
        (first != second).then_some(Self { first, second: Some(second) })
    }

    /// The keys, in the order of the report.
    pub fn keys(self) -> impl Iterator<Item = GroupBy> + Clone {
        std::iter::once(self.first).chain(self.second)
    }
}

/// Operations that a report is of. All parts of it apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageFilter {
    /// Wallet of all of them.
    pub wallet: Option<WalletId>,
    /// API key of all of them.
    pub api_key: Option<ApiKeyId>,
    /// Public id of the model of all of them.
    pub model: Option<String>,
    /// Route that all of them tried last; an empty text is none.
    pub route: Option<String>,
}

/// Request for a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageQuery {
    /// Groups that are summed.
    pub by: Grouping,
    /// Operations that are summed.
    pub filter: UsageFilter,
    /// Period in which they finished. Whole hours are read at once; the rest of an hour at its
    /// begin or end is found among all operations, which takes as long as there are many.
    pub period: Period,
    /// Most rows of the report; `None` for as many as there are.
    pub rows_max: Option<u32>,
}

impl UsageQuery {
    /// Everything that ever finished.
    #[must_use]
    pub fn all(by: Grouping) -> Self {
        Self { by, filter: UsageFilter::default(), period: Period::default(), rows_max: None }
    }
}

/// A group of operations that has sums of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// The hour that begins then.
    Hour(Timestamp),
    /// The day that begins then.
    Day(Timestamp),
    /// The month that begins then.
    Month(Timestamp),
    /// The public id of a model.
    Model(String),
    /// An API key; its name first, they are sorted by it.
    ApiKey {
        /// Name of the API key.
        name: String,
        /// Id of the API key.
        id: ApiKeyId,
    },
    /// A wallet; its name first, they are sorted by it.
    Wallet {
        /// Name of the wallet.
        name: String,
        /// Id of the wallet.
        id: WalletId,
    },
    /// A route as attempts name it; empty for operations that tried none.
    Route(String),
}

/// A group's sums in one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// Group that the sums are of.
    pub group: Group,
    /// Group by the second key, where the report has two: the sums are of what is in both.
    pub second: Option<Group>,
    /// Currency of all amounts in the sums.
    pub currency: Currency,
    /// The sums.
    pub totals: Totals,
}

/// Sums over finished operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Operations that were answered and settled.
    pub completed: u64,
    /// Operations that the provider refused.
    pub refused: u64,
    /// Operations that ended without a known outcome.
    pub abandoned: u64,
    /// Completed operations metered here, because the provider reported nothing believable.
    pub estimated: u64,
    /// Units that the completed used, in the order of [`MeterKind::ALL`].
    pub meters: [u64; MeterKind::COUNT],
    /// Charges of the completed.
    pub charge: Micros,
    /// Cost of the completed beyond their holds, which nobody paid.
    pub shortfall: Micros,
    /// Refunds of these charges, whenever they were made.
    pub refunded: Micros,
    /// The holds of those that were refused or abandoned: at most so much may they have cost the
    /// operator, and nobody was charged.
    pub exposure: Micros,
    /// Completed operations with a known provider cost: their route has one in the currency.
    pub costed: u64,
    /// Provider cost of those.
    pub provider_cost: Micros,
    /// Margin of those: charges less refunds less provider cost.
    pub margin: Micros,
}

/// Cost and margin of the operations whose cost is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownCost {
    /// Provider cost.
    pub provider_cost: Micros,
    /// Charges less refunds less provider cost.
    pub margin: Micros,
}

impl Totals {
    /// Cost and margin of those that have a known cost; `None` where nothing has one.
    #[must_use]
    pub const fn known(&self) -> Option<KnownCost> {
        let Self { costed, provider_cost, margin, .. } = *self;
        if costed == 0 { None } else { Some(KnownCost { provider_cost, margin }) }
    }

    /// Sums over no operation.
    pub const NOTHING: Self = Self {
        completed: 0,
        refused: 0,
        abandoned: 0,
        estimated: 0,
        meters: [0; MeterKind::COUNT],
        charge: Micros::ZERO,
        shortfall: Micros::ZERO,
        refunded: Micros::ZERO,
        exposure: Micros::ZERO,
        costed: 0,
        provider_cost: Micros::ZERO,
        margin: Micros::ZERO,
    };

    /// Both sums; `None` where a part does not fit into 64 bits.
    #[must_use]
    pub fn plus(&self, more: &Self) -> Option<Self> {
        let mut meters = self.meters;
        for (count, more) in meters.iter_mut().zip(more.meters) {
            *count = count.checked_add(more)?;
        }
        Some(Self {
            completed: self.completed.checked_add(more.completed)?,
            refused: self.refused.checked_add(more.refused)?,
            abandoned: self.abandoned.checked_add(more.abandoned)?,
            estimated: self.estimated.checked_add(more.estimated)?,
            meters,
            charge: self.charge.plus(more.charge)?,
            shortfall: self.shortfall.plus(more.shortfall)?,
            refunded: self.refunded.plus(more.refunded)?,
            exposure: self.exposure.plus(more.exposure)?,
            costed: self.costed.checked_add(more.costed)?,
            provider_cost: self.provider_cost.plus(more.provider_cost)?,
            margin: self.margin.plus(more.margin)?,
        })
    }
}
