//! Sums in the making: what several reads find for one group is added up here, in 64 bits or not at
//! all. Groups are by ids until all reads are done, and by names then.

use std::collections::BTreeMap;

use holdfast_domain::report::{Group, Totals, UsageRow};
use holdfast_domain::{ApiKeyId, Currency, Timestamp, WalletId};

/// A sum that does not fit into 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sum is too large")]
pub(crate) struct SumOverflow;

/// Key of a group in rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupKey {
    Hour(Timestamp),
    Day(Timestamp),
    Month(Timestamp),
    Model(String),
    ApiKey(ApiKeyId),
    Wallet(WalletId),
    Route(String),
}

/// Key of a group, and of the one by the second key.
type Keys = (GroupKey, Option<GroupKey>);

/// Names of API keys and wallets by their ids.
pub(crate) type Names = BTreeMap<[u8; 16], String>;

/// Sums in the making.
#[derive(Debug, Default)]
pub(crate) struct Sums(BTreeMap<(Keys, Currency), Totals>);

impl Sums {
    pub(crate) fn add(
        &mut self,
        keys: Keys,
        currency: Currency,
        more: &Totals,
    ) -> Result<(), SumOverflow> {
        let totals = self.0.entry((keys, currency)).or_insert(Totals::NOTHING);
        *totals = totals.plus(more).ok_or(SumOverflow)?;
        Ok(())
    }

    /// Number of groups, each currency's its own.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Ids of the groups that have one: API keys, then wallets.
    pub(crate) fn ids(&self) -> [Vec<[u8; 16]>; 2] {
        let (mut api_keys, mut wallets) = (Vec::new(), Vec::new());
        for ((first, second), _currency) in self.0.keys() {
            for key in std::iter::once(first).chain(second) {
                match key {
                    GroupKey::ApiKey(id) => api_keys.push(id.to_bytes()),
                    GroupKey::Wallet(id) => wallets.push(id.to_bytes()),
                    GroupKey::Hour(_)
                    | GroupKey::Day(_)
                    | GroupKey::Month(_)
                    | GroupKey::Model(_)
                    | GroupKey::Route(_) => {}
                }
            }
        }
        [api_keys, wallets].map(|mut ids| {
            ids.sort_unstable();
            ids.dedup();
            ids
        })
    }

    /// The sums under the names of their groups, sorted by group and currency. Of an id that
    /// `names` does not know the name is empty.
    pub(crate) fn with_names(self, names: &Names) -> Vec<UsageRow> {
        let row = |((keys, currency), totals): ((Keys, Currency), Totals)| UsageRow {
            group: keys.0.named(names),
            second: keys.1.map(|key| key.named(names)),
            currency,
            totals,
        };
        let mut rows: Vec<_> = self.0.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            (&a.group, &a.second, a.currency).cmp(&(&b.group, &b.second, b.currency))
        });
        rows
    }
}

impl GroupKey {
    fn named(self, names: &Names) -> Group {
        let name = |id: [u8; 16]| names.get(&id).cloned().unwrap_or_default();
        match self {
            Self::Hour(start) => Group::Hour(start),
            Self::Day(start) => Group::Day(start),
            Self::Month(start) => Group::Month(start),
            Self::Model(model) => Group::Model(model),
            Self::ApiKey(id) => Group::ApiKey { name: name(id.to_bytes()), id },
            Self::Wallet(id) => Group::Wallet { name: name(id.to_bytes()), id },
            Self::Route(route) => Group::Route(route),
        }
    }
}
