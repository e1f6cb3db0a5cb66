//! Sums in the making: what several reads find for one group is added up here, in 128 bits. Groups are by ids until all reads are done, and by names then.

use std::collections::BTreeMap;

use holdfast_domain::admin::report::{Group, Totals, UsageRow};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{ApiKeyId, Currency, Micros, Timestamp, WalletId};

use crate::transaction::hour::{self, SUMS, WideSums};

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
pub(crate) type GroupNames = BTreeMap<[u8; 16], String>;

/// Sums in the making.
#[derive(Debug, Default)]
pub(crate) struct Sums(BTreeMap<(Keys, Currency), WideSums>);

impl Sums {
    pub(crate) fn add(&mut self, keys: Keys, currency: Currency, more: WideSums) {
        hour::add(self.0.entry((keys, currency)).or_insert([0; SUMS]), more);
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
    pub(crate) fn with_names(self, names: &GroupNames) -> Vec<UsageRow> {
        let row = |((keys, currency), sums): ((Keys, Currency), WideSums)| UsageRow {
            group: keys.0.named(names),
            second: keys.1.map(|key| key.named(names)),
            currency,
            totals: totals(sums),
        };
        let mut rows: Vec<_> = self.0.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            (&a.group, &a.second, a.currency).cmp(&(&b.group, &b.second, b.currency))
        });
        rows
    }
}

impl GroupKey {
    fn named(self, names: &GroupNames) -> Group {
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

/// The sums of a report. One that no amount or count can be is the largest, and marked.
fn totals(sums: WideSums) -> Totals {
    let mut is_saturated = false;
    // The largest number is one that did not fit when its hour was summed.
    let mut count = |sum: i128| {
        is_saturated |= sum >= i128::from(i64::MAX);
        u64::try_from(sum.clamp(0, i128::from(i64::MAX))).unwrap_or(0)
    };
    let [completed, refused, abandoned, estimated, meters @ .., _, _, _, _, excluded, costed, _, _] =
        sums;
    let [completed, refused, abandoned, estimated] =
        [completed, refused, abandoned, estimated].map(&mut count);
    let [excluded, costed] = [excluded, costed].map(&mut count);
    let meters: [i128; MeterKind::COUNT] = meters;
    let meters = meters.map(&mut count);
    let mut micros = |sum: i128| {
        is_saturated |= sum.unsigned_abs() >= Micros::MAX.get().unsigned_abs().into();
        let amount = Micros::saturating_from(sum.unsigned_abs());
        if sum < 0 { amount.negated() } else { amount }
    };
    let [.., charge, shortfall, refunded, exposure, _, _, provider_cost, margin] = sums;
    let [charge, shortfall, refunded, exposure, provider_cost, margin] =
        [charge, shortfall, refunded, exposure, provider_cost, margin].map(&mut micros);
    Totals {
        completed,
        refused,
        abandoned,
        estimated,
        meters,
        charge,
        shortfall,
        refunded,
        exposure,
        costs_excluded: excluded,
        costed,
        provider_cost,
        margin,
        is_saturated,
    }
}
