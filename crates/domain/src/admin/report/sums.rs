//! Sums of usage for operators: their operations, their groups, and their amounts.
//!
//! An operation belongs to the period in which it finished, and its refunds belong to it, whenever
//! they were made. What has not finished, or is not settled yet, is in no report. Each currency has
//! sums of its own.
//!
//! An unknown cost counts as none: [`Totals::known`] is empty for a group in which no operation has one, and
//! `costed` is the number of those that have.

use crate::admin::listing::Period;
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

    /// Sums for each pair of values of two keys; `None` if both are one.
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
    /// Group by the second key, if the report has two: the sums are of operations in both.
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
    /// Completed operations metered here, because the provider reported no believable usage.
    pub estimated: u64,
    /// Units that the completed used, in the order of [`MeterKind::ALL`].
    pub meters: [u64; MeterKind::COUNT],
    /// Charges of the completed.
    pub charge: Micros,
    /// Cost of the completed beyond their holds, which no caller paid.
    pub shortfall: Micros,
    /// Refunds of these charges, whenever they were made.
    pub refunded: Micros,
    /// The holds of those that were refused or abandoned: at most so much may they have cost the operator,
    /// without a charge.
    pub exposure: Micros,
    /// Completed operations whose provider cost is left out of the sums, because no run can have cost
    /// so much. Their holds are exposure.
    pub costs_excluded: u64,
    /// Completed operations with a known provider cost: their route has one in the currency.
    pub costed: u64,
    /// Provider cost of those.
    pub provider_cost: Micros,
    /// Margin of those: charges less refunds less provider cost.
    pub margin: Micros,
    /// True if a sum is more than an amount or a count can be: it is the largest then.
    pub is_saturated: bool,
}

/// Cost and margin of the operations whose cost is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownCost {
    /// Provider cost.
    pub provider_cost: Micros,
    /// Charges less refunds less provider cost.
    pub margin: Micros,
}

impl Totals {
    /// Cost and margin of those that have a known cost; `None` if none has. Runs that were not charged may have
    /// one as well, without a completed operation.
    #[must_use]
    pub const fn known(&self) -> Option<KnownCost> {
        let Self { costed, provider_cost, margin, .. } = *self;
        if costed == 0 && provider_cost.get() == 0 && margin.get() == 0 {
            return None;
        }
        Some(KnownCost { provider_cost, margin })
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
        costs_excluded: 0,
        costed: 0,
        provider_cost: Micros::ZERO,
        margin: Micros::ZERO,
        is_saturated: false,
    };

    /// True if the sums lack a part: a cost that is left out, or what no number can be.
    #[must_use]
    pub const fn is_incomplete(&self) -> bool {
        self.costs_excluded > 0 || self.is_saturated
    }

    /// Both sums. One that does not fit is the largest, and marked.
    #[must_use]
    pub fn plus(&self, more: &Self) -> Self {
        let mut is_saturated = self.is_saturated || more.is_saturated;
        let mut count = |one: u64, other: u64| {
            let sum = one.checked_add(other);
            is_saturated |= sum.is_none();
            sum.unwrap_or(u64::MAX)
        };
        let mut meters = self.meters;
        for (sum, more) in meters.iter_mut().zip(more.meters) {
            *sum = count(*sum, more);
        }
        let completed = count(self.completed, more.completed);
        let refused = count(self.refused, more.refused);
        let abandoned = count(self.abandoned, more.abandoned);
        let estimated = count(self.estimated, more.estimated);
        let costs_excluded = count(self.costs_excluded, more.costs_excluded);
        let costed = count(self.costed, more.costed);
        let mut micros = |of: fn(&Self) -> Micros| {
            let (one, other) = (of(self), of(more));
            let sum = one.plus(other);
            is_saturated |= sum.is_none();
            // Both have the sign of `one`, or their sum would fit.
            let largest = if one < Micros::ZERO { Micros::MAX.negated() } else { Micros::MAX };
            sum.unwrap_or(largest)
        };
        Self {
            completed,
            refused,
            abandoned,
            estimated,
            meters,
            charge: micros(|it| it.charge),
            shortfall: micros(|it| it.shortfall),
            refunded: micros(|it| it.refunded),
            exposure: micros(|it| it.exposure),
            costs_excluded,
            costed,
            provider_cost: micros(|it| it.provider_cost),
            margin: micros(|it| it.margin),
            is_saturated,
        }
    }
}
