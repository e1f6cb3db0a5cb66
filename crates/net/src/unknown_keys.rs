//! Credentials that this process has not met: a bound on their fruitless look-ups.
//!
//! Any client can invent credentials faster than a database looks them up. Two rules bound that:
//!
//! - An id that is unknown, revoked or past its end is remembered for one second, or two. Ids are random and
//!   drawn when a key is issued, and an ended one never begins again: a new key's id cannot have been looked up
//!   before the key existed, so a new key works at once. A wrong secret is not remembered: its bearer may be
//!   another client than the key's.
//! - [`REFUSALS_MAX`] refusals a second are looked up for one address group. A credential that comes after them from
//!   there is refused for a moment (429 or 503), which is retried, and not as invalid (401).
//!
//! A flood from an address group locks out no valid credential of the same group, as behind a balancer:
//!
//! - A credential that this process has let in or issued itself is known, and looked up always.
//! - Beyond the bound ten look-ups a second are kept, and drawn by lot: a second has ten slots, each slot has a secret
//!   random moment, and the first credential after that moment is looked up. A flood cannot take all ten by being
//!   first. The chance of one request is ten in the number of requests a second: after a restart a valid credential
//!   beside 50 forged ones a second more than the bound is known after some five tries.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Window over which refusals are counted, and for which they are remembered.
const MOMENT: Duration = Duration::from_secs(1);
/// Refused look-ups of one address in a moment, before lots are drawn.
const REFUSALS_MAX: u32 = 50;
/// Time in which one look-up beyond the bound is drawn: ten of them are a moment.
const SLOT: Duration = Duration::from_millis(100);
/// Ids and addresses that are remembered of a moment.
const REMEMBERED_MAX: usize = 4_096;
/// Credentials that were met; beyond it all are met anew.
const MET_MAX: usize = 16_384;

/// Limiter of look-ups for unknown keys. A std mutex: never held across an await. The public API takes it on a miss of
/// its cache, the API of administration and the console for each request with a credential.
#[derive(Debug)]
pub struct UnknownKeyLimiter<K>(Mutex<KeyHistory<K>>);

#[derive(Debug)]
struct KeyHistory<K> {
    met: HashSet<K>,
    since: Option<Instant>,
    gone: HashSet<K>,
    before: HashSet<K>,
    refusals: HashMap<IpAddr, AddressRefusals>,
    lots: RandomState,
}

/// Look-ups for one address in a moment.
#[derive(Debug, Default)]
struct AddressRefusals {
    count: u32,
    /// Last slot that has had its look-up beyond the bound.
    drawn_slot: Option<u128>,
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
            lots: RandomState::new(),
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
        let mut known = self.lock();
        if known.gone.contains(id) || known.before.contains(id) {
            return Err(LookupRefusal::Gone);
        }
        if known.met.contains(id) || known.draw(peer) {
            return Ok(());
        }
        Err(LookupRefusal::TooMany)
    }

    /// Remembers a credential that was let in, or that was issued here.
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
            let refusals = known.refusals.entry(peer).or_default();
            refusals.count = refusals.count.saturating_add(1);
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

impl<K> KeyHistory<K> {
    /// True for a look-up within the bound of its address, or for the one that is drawn in this slot.
    fn draw(&mut self, peer: IpAddr) -> bool {
        let Some(since) = self.since else { return true };
        let Some(refusals) = self.refusals.get_mut(&peer) else { return true };
        if refusals.count < REFUSALS_MAX {
            return true;
        }
        let (age, length) = (since.elapsed().as_micros(), SLOT.as_micros());
        let slot = age / length;
        let moment = u128::from(self.lots.hash_one((peer, since, slot))) % length;
        let is_drawn = refusals.drawn_slot < Some(slot) && age % length >= moment;
        if is_drawn {
            refusals.drawn_slot = Some(slot);
        }
        is_drawn
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

    /// Remembers a credential that was let in, or that was issued here.
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
        let refused = (0..2).filter(|_| strangers.check(&2, HERE).is_err());
        assert!(refused.count() > 0, "one at most is drawn");
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
        assert!((REFUSALS_MAX..=REFUSALS_MAX + 1).contains(&looked_up), "{looked_up}");
        assert_eq!(strangers.check("forged 1", THERE), Err(LookupRefusal::Gone));
        assert_eq!(strangers.check("known", HERE), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_valid_credential_is_drawn_within_seconds_of_a_flood() {
        let strangers = UnknownKeyLimiter::<u32>::default();
        let (mut forged, mut tries) = ((1_u32..), 0);
        let mut is_let_in = false;
        for _second in 0..60 {
            let mut looked_up = 0;
            for millisecond in 0..1_000 {
                // All 50 of the bound go to the flood, and nine of ten requests after them.
                let burst = if millisecond == 0 { 50 } else { 1 };
                if millisecond % 10 == 5 {
                    tries += 1;
                    is_let_in |= strangers.check(&0, HERE).is_ok();
                } else {
                    for id in forged.by_ref().take(burst) {
                        if strangers.check(&id, HERE).is_ok() {
                            looked_up += 1;
                            strangers.on_missing(id);
                            strangers.on_refused(HERE);
                        }
                    }
                }
                tokio::time::advance(Duration::from_millis(1)).await;
            }
            assert!(looked_up <= REFUSALS_MAX + 10, "{looked_up}");
        }
        assert!(is_let_in, "none of {tries} was looked up");
    }
}
