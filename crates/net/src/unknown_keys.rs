//! Credentials that this process has not met: how many of them are looked up for nothing.
//!
//! Anybody can make up credentials faster than a database looks them up. Two things bound that:
//!
//! - An id that is unknown, revoked or past its end is remembered for one second, or two. Ids are random and
//!   made when a key is issued, and what has ended never begins again: nobody can have asked for a new key's id
//!   before it was there, so a new key works at once. A wrong secret is not remembered: its bearer may be
//!   somebody else.
//! - So many refusals a second are looked up for one address; whoever comes after them from there is told 503,
//!   which is retried, not 401. Credentials that this process has met are looked up whatever else comes from
//!   there, so that a flood behind a balancer, which is one address, shuts nobody out who was let in before.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Window over which refusals are counted, and for which they are remembered.
const MOMENT: Duration = Duration::from_secs(1);
/// Refused look-ups of one address in a moment.
const REFUSALS_MAX: u32 = 50;
/// Ids and addresses that are remembered of a moment.
const REMEMBERED_MAX: usize = 4_096;
/// Credentials that were met; beyond it all are met anew.
const MET_MAX: usize = 16_384;

/// Limiter of look-ups for unknown keys. A std mutex: never held across an await, and taken only
/// on a miss of the cache.
#[derive(Debug)]
pub struct UnknownKeyLimiter<K>(Mutex<KeyHistory<K>>);

#[derive(Debug)]
struct KeyHistory<K> {
    met: HashSet<K>,
    since: Option<Instant>,
    gone: HashSet<K>,
    before: HashSet<K>,
    refusals: HashMap<IpAddr, u32>,
}

/// Reason for which a credential is not looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupRefusal {
    /// The same id was unknown or ended a moment ago.
    Gone,
    /// Too many look-ups for this address were in vain.
    TooMany,
}

impl<K> Default for UnknownKeyLimiter<K> {
    fn default() -> Self {
        Self(Mutex::new(KeyHistory {
            met: HashSet::new(),
            since: None,
            gone: HashSet::new(),
            before: HashSet::new(),
            refusals: HashMap::new(),
        }))
    }
}

impl<K: Eq + Hash> UnknownKeyLimiter<K> {
    /// Checks whether a credential from this address is worth a look-up. Addresses are counted as given: by their
    /// [`group`](crate::group).
    ///
    /// # Errors
    ///
    /// [`LookupRefusal`]: the credential is not looked up.
    pub fn check(&self, id: &K, peer: IpAddr) -> Result<(), LookupRefusal> {
        let known = self.lock();
        if known.gone.contains(id) || known.before.contains(id) {
            return Err(LookupRefusal::Gone);
        }
        let refusals = known.refusals.get(&peer).copied().unwrap_or(0);
        if refusals >= REFUSALS_MAX && !known.met.contains(id) {
            return Err(LookupRefusal::TooMany);
        }
        Ok(())
    }

    /// Remembers a credential that was let in.
    pub fn on_found(&self, id: K) {
        let mut known = self.lock();
        if known.met.len() >= MET_MAX && !known.met.contains(&id) {
            known.met.clear();
        }
        known.met.insert(id);
    }

    /// Remembers a credential that does not exist, or no more.
    pub fn on_missing(&self, id: K) {
        let mut known = self.lock();
        // What has ended passes the limiter no more.
        known.met.remove(&id);
        // Beyond the bound it is looked up again: the refusals of its address bound that.
        if known.gone.len() < REMEMBERED_MAX {
            known.gone.insert(id);
        }
    }

    /// Counts a look-up in vain against its address.
    pub fn on_refused(&self, peer: IpAddr) {
        let mut known = self.lock();
        if known.refusals.len() < REMEMBERED_MAX || known.refusals.contains_key(&peer) {
            let count = known.refusals.entry(peer).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Locks the history, and moves its window on to the present.
    fn lock(&self) -> MutexGuard<'_, KeyHistory<K>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let since = *known.since.get_or_insert(now);
        let age = now.duration_since(since);
        if age >= MOMENT {
            // Two windows: an id that was met at the very end of one is remembered for the whole of the next.
            let last = std::mem::take(&mut known.gone);
            known.before = if age < MOMENT * 2 { last } else { HashSet::new() };
            known.refusals.clear();
            known.since = Some(now);
        }
        known
    }
}

/// Limiter of look-ups for credentials that are texts, of which only keyed hashes are remembered.
///
/// A text that was refused is remembered whole, with its secret: its bearer is the only one who has sent it.
#[derive(Debug, Default)]
pub struct UnknownTextLimiter {
    hash: RandomState,
    keys: UnknownKeyLimiter<u64>,
}

impl UnknownTextLimiter {
    /// Checks whether a credential from this address is worth a look-up.
    ///
    /// # Errors
    ///
    /// [`LookupRefusal`]: the credential is not looked up.
    pub fn check(&self, text: &str, peer: IpAddr) -> Result<(), LookupRefusal> {
        self.keys.check(&self.hash.hash_one(text), peer)
    }

    /// Remembers a credential that was let in.
    pub fn on_found(&self, text: &str) {
        self.keys.on_found(self.hash.hash_one(text));
    }

    /// Remembers a credential that was refused, and counts it against its address.
    pub fn on_refused(&self, text: &str, peer: IpAddr) {
        self.keys.on_missing(self.hash.hash_one(text));
        self.keys.on_refused(peer);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    #[tokio::test(start_paused = true)]
    async fn what_is_gone_is_not_looked_for_again_within_a_second() {
        let strangers = UnknownKeyLimiter::<u32>::default();
        assert!(strangers.check(&1, HERE).is_ok());
        strangers.on_missing(1);
        tokio::time::advance(MOMENT / 2).await;
        assert!(matches!(strangers.check(&1, HERE), Err(LookupRefusal::Gone)));
        assert!(strangers.check(&2, HERE).is_ok(), "another one is");
        tokio::time::advance(MOMENT * 2).await;
        assert!(strangers.check(&1, HERE).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_is_heard_again_a_second_after_its_refusals() {
        let strangers = UnknownKeyLimiter::<u32>::default();
        strangers.on_found(1);
        (0..REFUSALS_MAX).for_each(|_| strangers.on_refused(HERE));
        assert!(matches!(strangers.check(&2, HERE), Err(LookupRefusal::TooMany)));
        assert!(strangers.check(&1, HERE).is_ok(), "who was met is looked up");
        assert!(strangers.check(&2, THERE).is_ok(), "others are heard");
        tokio::time::advance(MOMENT).await;
        assert!(strangers.check(&2, HERE).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn forged_texts_are_looked_up_a_few_times_a_second() {
        let strangers = UnknownTextLimiter::default();
        strangers.on_found("known");
        let mut looked_up = 0;
        for number in 0..2_000 {
            let text = format!("forged {}", number % 1_000);
            if strangers.check(&text, HERE).is_ok() {
                looked_up += 1;
                strangers.on_refused(&text, HERE);
            }
        }
        assert_eq!(looked_up, REFUSALS_MAX);
        assert_eq!(strangers.check("forged 1", THERE), Err(LookupRefusal::Gone));
        assert_eq!(strangers.check("known", HERE), Ok(()));
    }
}
