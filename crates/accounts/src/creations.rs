//! Rate of creations: how many API keys, people, webhooks and admin keys a wallet gets per minute.
//!
//! Each wallet has a bucket that holds a minute's creations and fills steadily; the operator's own resources
//! have one as well. The buckets are those of this process: as many nodes allow as many times the rate. A
//! request takes its creations before its transaction and gets them back if that was refused, so that a request
//! that can be repeated costs none.
//!
//! Not counted: dry runs, which create no resource, and commands with direct database access, which have no
//! rate. Not in here: the number of resources of a wallet, which the transaction judges.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdfast_domain::WalletId;
use holdfast_domain::admin::{
    AccountAction, AdminKeyAction, ApiKeyAction, PersonAction, Reach, WalletBounds, WebhookAction,
};

/// Wallets whose buckets are kept; full ones go first.
const WALLETS_MAX: usize = 4_096;
const MINUTE: Duration = Duration::from_secs(60);

/// Owner of what is made: a wallet, or the operator.
pub(crate) type Owner = Option<WalletId>;

/// Owner and number of an action's creations; `None` for an action without any that is counted.
pub(crate) fn of(action: &AccountAction) -> Option<(Owner, usize)> {
    let owner = |reach: Reach| match reach {
        Reach::All => None,
        Reach::Wallet(wallet) => Some(wallet),
    };
    match action {
        AccountAction::ApiKey(ApiKeyAction::Issue { wallet, keys, .. }) => {
            Some((Some(*wallet), keys.len()))
        }
        AccountAction::AdminKey(AdminKeyAction::Issue(key, _)) => Some((owner(key.reach), 1)),
        AccountAction::Person(PersonAction::Invite { offered, .. }) => {
            Some((owner(offered.reach), 1))
        }
        AccountAction::Webhook(WebhookAction::Create(record)) => Some((record.wallet, 1)),
        AccountAction::Wallet(_)
        | AccountAction::ApiKey(_)
        | AccountAction::Post(_)
        | AccountAction::Job(_)
        | AccountAction::Note(_)
        | AccountAction::AdminKey(_)
        | AccountAction::Person(_)
        | AccountAction::Webhook(_) => None,
    }
}

/// Buckets of one process.
#[derive(Debug)]
pub(crate) struct CreationRates {
    per_minute: u32,
    /// Moment at which the bucket of an owner is full again: its gap is the time until then.
    full_at: Mutex<BTreeMap<Owner, Instant>>,
}

impl Default for CreationRates {
    fn default() -> Self {
        Self::new(WalletBounds::CREATIONS_PER_MINUTE)
    }
}

impl CreationRates {
    pub(crate) fn new(per_minute: u32) -> Self {
        // At least one: `time_of` divides by it.
        Self { per_minute: per_minute.max(1), full_at: Mutex::default() }
    }

    /// Takes so many creations, or returns the time after which there is room for them. A request of more than a
    /// minute's creations passes if the bucket is full.
    pub(crate) fn take(
        &self,
        owner: Owner,
        creations: usize,
        now: Instant,
    ) -> Result<(), Duration> {
        let cost = self.time_of(creations);
        let mut buckets = self.buckets();
        let full_at = buckets.get(&owner).copied().map_or(now, |full_at| full_at.max(now));
        // A bucket has room if it is full a minute after the request at the latest.
        let room = MINUTE.max(cost);
        let after = full_at + cost;
        if let Some(excess) = after.checked_duration_since(now + room).filter(|it| !it.is_zero()) {
            return Err(excess);
        }
        if buckets.len() >= WALLETS_MAX {
            // A full bucket and an absent one are the same, so only full ones are forgotten: to
            // drop another would give its owner a minute's creations anew.
            buckets.retain(|_owner, full_at| *full_at > now);
        }
        buckets.insert(owner, after);
        Ok(())
    }

    /// Returns the creations of a request that was refused.
    pub(crate) fn give_back(&self, owner: Owner, creations: usize) {
        let cost = self.time_of(creations);
        if let Some(full_at) = self.buckets().get_mut(&owner) {
            *full_at = full_at.checked_sub(cost).unwrap_or(*full_at);
        }
    }

    /// Time in which a bucket gets so many creations back.
    fn time_of(&self, creations: usize) -> Duration {
        MINUTE * u32::try_from(creations).unwrap_or(u32::MAX) / self.per_minute
    }

    fn buckets(&self) -> MutexGuard<'_, BTreeMap<Owner, Instant>> {
        // A map of moments is whole after a panic.
        self.full_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wallet(id: u128) -> Owner {
        Some(WalletId::from_u128(id))
    }

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_wallet_gets_a_minutes_creations_at_once_and_then_its_rate() {
        let (rates, now) = (CreationRates::new(60), Instant::now());
        assert_eq!(rates.take(wallet(1), 60, now), Ok(()));
        assert_eq!(rates.take(wallet(1), 1, now), Err(seconds(1)));
        assert_eq!(rates.take(wallet(2), 1, now), Ok(()), "each wallet has its own");
        assert_eq!(rates.take(None, 60, now), Ok(()), "and the operator as well");
        let later = now + seconds(10);
        assert_eq!(rates.take(wallet(1), 10, later), Ok(()));
        assert_eq!(rates.take(wallet(1), 5, later), Err(seconds(5)));
    }

    #[test]
    fn creations_of_a_refused_request_are_given_back() {
        let (rates, now) = (CreationRates::new(60), Instant::now());
        assert_eq!(rates.take(wallet(1), 60, now), Ok(()));
        rates.give_back(wallet(1), 60);
        assert_eq!(rates.take(wallet(1), 60, now), Ok(()));
    }

    #[test]
    fn a_request_of_more_than_a_minutes_creations_passes_once_the_bucket_is_full() {
        let (rates, now) = (CreationRates::new(10), Instant::now());
        assert_eq!(rates.take(wallet(1), 100, now), Ok(()));
        assert_eq!(rates.take(wallet(1), 1, now), Err(seconds(546)));
        assert_eq!(rates.take(wallet(1), 100, now + seconds(600)), Ok(()));
    }
}
