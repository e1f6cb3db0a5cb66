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
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_domain::CredentialId;
use tokio::time::Instant;

use super::AuthError;

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
#[derive(Debug, Default)]
pub(super) struct UnknownKeyLimiter(Mutex<KeyHistory>);

#[derive(Debug, Default)]
struct KeyHistory {
    met: HashSet<CredentialId>,
    since: Option<Instant>,
    gone: HashSet<CredentialId>,
    before: HashSet<CredentialId>,
    refusals: HashMap<IpAddr, u32>,
}

impl UnknownKeyLimiter {
    /// Checks whether a credential from this address is worth a look-up.
    pub(super) fn check(&self, id: CredentialId, peer: IpAddr) -> Result<(), AuthError> {
        let known = self.lock();
        if known.gone.contains(&id) || known.before.contains(&id) {
            return Err(AuthError::Invalid);
        }
        let refusals = known.refusals.get(&peer).copied().unwrap_or(0);
        if refusals >= REFUSALS_MAX && !known.met.contains(&id) {
            return Err(AuthError::TooManyUnknown);
        }
        Ok(())
    }

    /// Remembers a credential that was let in.
    pub(super) fn on_found(&self, id: CredentialId) {
        let mut known = self.lock();
        if known.met.len() >= MET_MAX && !known.met.contains(&id) {
            known.met.clear();
        }
        known.met.insert(id);
    }

    /// Remembers a credential that does not exist, or no more.
    pub(super) fn on_missing(&self, id: CredentialId) {
        let mut known = self.lock();
        // What has ended passes the limiter no more.
        known.met.remove(&id);
        // Beyond the bound it is looked up again: the refusals of its address bound that.
        if known.gone.len() < REMEMBERED_MAX {
            known.gone.insert(id);
        }
    }

    /// Counts a look-up in vain against its address.
    pub(super) fn on_refused(&self, peer: IpAddr) {
        let mut known = self.lock();
        if known.refusals.len() < REMEMBERED_MAX || known.refusals.contains_key(&peer) {
            let count = known.refusals.entry(peer).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Locks the history, and moves its window on to the present.
    fn lock(&self) -> MutexGuard<'_, KeyHistory> {
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn id(n: u128) -> CredentialId {
        CredentialId::from_u128(n)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_gone_is_not_looked_for_again_within_a_second() {
        let strangers = UnknownKeyLimiter::default();
        assert!(strangers.check(id(1), HERE).is_ok());
        strangers.on_missing(id(1));
        tokio::time::advance(MOMENT / 2).await;
        assert!(matches!(strangers.check(id(1), HERE), Err(AuthError::Invalid)));
        assert!(strangers.check(id(2), HERE).is_ok(), "another one is");
        tokio::time::advance(MOMENT * 2).await;
        assert!(strangers.check(id(1), HERE).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_is_heard_again_a_second_after_its_refusals() {
        let strangers = UnknownKeyLimiter::default();
        strangers.on_found(id(1));
        (0..REFUSALS_MAX).for_each(|_| strangers.on_refused(HERE));
        assert!(matches!(strangers.check(id(2), HERE), Err(AuthError::TooManyUnknown)));
        assert!(strangers.check(id(1), HERE).is_ok(), "who was met is looked up");
        assert!(strangers.check(id(2), THERE).is_ok(), "others are heard");
        tokio::time::advance(MOMENT).await;
        assert!(strangers.check(id(2), HERE).is_ok());
    }
}
