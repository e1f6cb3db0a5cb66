//! View of a caller's own API key and of the wallet behind it: balances, limits, and how much of
//! them is used up.

use holdfast_domain::Timestamp;
use holdfast_domain::credential::{ApiKey, BalanceVisibility, Grant};
use holdfast_domain::limits::{CountLimit, Counter, Limits, SpendLimit};
use holdfast_domain::ports::CounterSnapshot;
use holdfast_domain::wallet::Wallet;
use serde::{Serialize, Serializer};

use super::rfc3339;

/// A wallet as the bearer of one of its keys sees it: without its name, which is the operator's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccountView {
    id: String,
    currency: String,
    available_micros: Option<i64>,
    held_micros: Option<i64>,
    api_key: OwnKeyView,
}

impl AccountView {
    /// Shows a wallet to this API key: its balance only if the key may see that.
    #[must_use]
    pub fn of(wallet: &Wallet, key: &ApiKey, standing: &CounterSnapshot) -> Self {
        let is_shown = match key.grant.balance {
            BalanceVisibility::Shown => true,
            BalanceVisibility::Hidden => false,
        };
        Self {
            id: wallet.id.to_string(),
            currency: wallet.currency.to_string(),
            available_micros: is_shown.then_some(wallet.available.get()),
            held_micros: is_shown.then_some(wallet.held.get()),
            api_key: OwnKeyView {
                id: key.id.to_string(),
                models: models(&key.grant),
                expires_at: key.grant.ends_at.map(rfc3339),
                limits: OwnLimitsView::of(&key.grant.limits, standing),
            },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct OwnKeyView {
    id: String,
    models: Option<Vec<String>>,
    expires_at: Option<String>,
    limits: OwnLimitsView,
}

/// Limits of the caller's own key; null if there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct OwnLimitsView {
    #[serde(flatten, serialize_with = "as_members")]
    counts: [(&'static str, Option<CountView>); CountLimit::ALL.len()],
    spend: Option<SpendView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct CountView {
    limit: u64,
    used: u64,
    remaining: u64,
    window_start: Option<String>,
    resets_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct SpendView {
    window: &'static str,
    limit_micros: i64,
    used_micros: i64,
    remaining_micros: i64,
    window_start: Option<String>,
    resets_at: Option<String>,
}

impl OwnLimitsView {
    fn of(limits: &Limits, standing: &CounterSnapshot) -> Self {
        let used = |counter| standing.counters.used(counter).unwrap_or(0);
        let count = |limit: CountLimit| {
            let row = limit.row();
            let view = limits.count(limit).map(|limit| {
                let used = u64::try_from(used(row.counter)).unwrap_or(0);
                let remaining = limit.saturating_sub(used);
                let (window_start, resets_at) = window(row.counter, standing.now);
                CountView { limit, used, remaining, window_start, resets_at }
            });
            (row.member, view)
        };
        let spend = limits.spend.map(|SpendLimit { micros, window: each }| {
            let used = used(each.counter());
            let (window_start, resets_at) = window(each.counter(), standing.now);
            SpendView {
                window: each.label(),
                limit_micros: micros.get(),
                used_micros: used,
                // Never below zero: callers read it as what is left.
                remaining_micros: micros.get().saturating_sub(used).max(0),
                window_start,
                resets_at,
            }
        });
        Self { counts: CountLimit::ALL.map(count), spend }
    }
}

/// Writes pairs of names and values as the members of their object.
fn as_members<S: Serializer>(
    pairs: &[(&'static str, Option<CountView>)],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(pairs.iter().map(|(name, view)| (name, view)))
}

/// Beginning and end of a counter's window, in RFC 3339; neither if it counts for ever.
fn window(counter: Counter, now: Timestamp) -> (Option<String>, Option<String>) {
    let end = counter.window_end(now);
    (end.map(|_end| rfc3339(counter.window(now))), end.map(rfc3339))
}

/// The models of an allow-list; `None` if all are allowed.
fn models(grant: &Grant) -> Option<Vec<String>> {
    let ids = grant.models.as_ref()?;
    Some(ids.iter().map(|id| id.as_str().to_owned()).collect())
}
