//! Usage and charges of a period, for whoever sends the bills: sums over finished operations.
//! Each currency has sums of its own.
//!
//! An operation belongs to the period in which it finished, and its refunds belong to it, whenever
//! they were made. What has not finished, or is not settled yet, is in no report.

use std::collections::BTreeMap;

use holdfast_domain::usage::MeterKind;
use holdfast_domain::{ApiKeyId, Currency, Micros, Timestamp, WalletId};

/// Microseconds of a day.
pub(crate) const DAY_MICROS: i64 = 86_400_000_000;

/// Key that sums are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// Each day, in UTC.
    Day,
    /// Each model.
    Model,
    /// Each API key.
    ApiKey,
    /// Each wallet.
    Wallet,
}

/// A group of operations that has sums of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// The day that begins then.
    Day(Timestamp),
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
}

/// A group's sums in one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// Group that the sums are of.
    pub group: Group,
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

/// A sum that does not fit into 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sum is too large")]
pub(crate) struct SumOverflow;

/// Key of a group in rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupKey {
    /// Days since 1970.
    Day(i64),
    Model(String),
    ApiKey(ApiKeyId),
    Wallet(WalletId),
}

/// Sums in the making.
#[derive(Debug, Default)]
pub(crate) struct Sums(BTreeMap<(GroupKey, Currency), Totals>);

impl Totals {
    const NOTHING: Self = Self {
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

    fn plus(&self, more: &Self) -> Option<Self> {
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

impl Sums {
    pub(crate) fn add(
        &mut self,
        part: GroupKey,
        currency: Currency,
        more: &Totals,
    ) -> Result<(), SumOverflow> {
        let totals = self.0.entry((part, currency)).or_insert(Totals::NOTHING);
        *totals = totals.plus(more).ok_or(SumOverflow)?;
        Ok(())
    }

    /// Ids of the groups that have one.
    pub(crate) fn ids(&self) -> Vec<[u8; 16]> {
        let id = |(part, _currency): &(GroupKey, Currency)| match part {
            GroupKey::Day(_) | GroupKey::Model(_) => None,
            GroupKey::ApiKey(id) => Some(id.to_bytes()),
            GroupKey::Wallet(id) => Some(id.to_bytes()),
        };
        self.0.keys().filter_map(id).collect()
    }

    /// The sums under the names of their groups, sorted by group and currency. Of an id that
    /// `names` does not know the name is empty.
    pub(crate) fn with_names(self, names: &BTreeMap<[u8; 16], String>) -> Vec<UsageRow> {
        let name = |id: [u8; 16]| names.get(&id).cloned().unwrap_or_default();
        let named = |((part, currency), totals)| {
            let group = match part {
                GroupKey::Day(day) => {
                    Group::Day(Timestamp::from_micros(day.saturating_mul(DAY_MICROS)))
                }
                GroupKey::Model(model) => Group::Model(model),
                GroupKey::ApiKey(id) => Group::ApiKey { name: name(id.to_bytes()), id },
                GroupKey::Wallet(id) => Group::Wallet { name: name(id.to_bytes()), id },
            };
            UsageRow { group, currency, totals }
        };
        let mut usages: Vec<_> = self.0.into_iter().map(named).collect();
        usages.sort_by(|a, b| (&a.group, a.currency).cmp(&(&b.group, b.currency)));
        usages
    }
}
