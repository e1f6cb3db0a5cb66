//! Recently proven credentials, so that each caller costs the store one read in seconds.
//!
//! ```text
//! read ──── RENEWED, 4 s ──── BELIEVED, 5 s
//!      all are let in       one looks it up anew,    none is let in
//!                           the others are let in    without a look-up
//! ```
//!
//! - Believed from before it was read, however long the reads took: a revocation takes effect within [`BELIEVED`]
//!   for all later requests.
//! - One request renews, so that a store that is slow for a moment does not get one read from each. If that fails,
//!   another may try [`RENEWED_AGAIN`] later, until the entry is not believed any more.
//! - A known end is met to the moment, by the database's clock.
//! - It holds secrets: entries that are not believed any more are dropped with every heartbeat. At [`KEPT_MAX`]
//!   credentials it starts anew, which costs one look-up each and needs no list of recent use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_domain::credential::Bearer;
use holdfast_domain::{CredentialId, Timestamp};
use tokio::time::Instant;

use super::{AuthError, Caller};

/// Age up to which a cached credential is believed: a revocation bites within this.
const BELIEVED: Duration = Duration::from_secs(5);
/// Age from which one request looks it up anew, while the others use the cached one.
const RENEWED: Duration = Duration::from_secs(4);
/// Wait after a failed renewal until another request may try.
const RENEWED_AGAIN: Duration = Duration::from_millis(250);
/// Credentials kept at once; beyond it the whole cache starts anew.
const KEPT_MAX: usize = 16_384;

/// Cached caller with its times.
pub(super) struct CachedCaller {
    caller: Arc<Caller>,
    /// Time from which the next request renews it. That request moves it to `until`, so that no
    /// other waits for the store as well.
    renew_at: Instant,
    until: Instant,
    /// End of the credential by the database's clock, met to the moment if it was known.
    ends_at: Option<Timestamp>,
}

/// Cache of callers by credential. A std mutex: never held across an await.
#[derive(Default)]
pub(super) struct CredentialCache(Mutex<HashMap<CredentialId, CachedCaller>>);

impl CachedCaller {
    /// Creates the entry of a look-up that began at `begun`.
    pub(super) fn read_at(
        begun: Instant,
        caller: &Arc<Caller>,
        ends_at: Option<Timestamp>,
    ) -> Self {
        let (renew_at, until) = (begun + RENEWED, begun + BELIEVED);
        Self { caller: Arc::clone(caller), renew_at, until, ends_at }
    }

    /// Cached caller; `None` for the one request that is to renew it.
    pub(super) fn get_unless_due(&mut self, moment: Instant) -> Option<Arc<Caller>> {
        if self.renew_at <= moment {
            self.renew_at = self.until;
            return None;
        }
        Some(Arc::clone(&self.caller))
    }

    /// Cached caller after a failed renewal, while it is still believed.
    pub(super) fn after_failed_renewal(&mut self, moment: Instant) -> Arc<Caller> {
        // It had been moved to the end of its time: without this no request would try again before that.
        self.renew_at = self.renew_at.min(moment + RENEWED_AGAIN);
        Arc::clone(&self.caller)
    }
}

impl CredentialCache {
    /// Reads the entry of a credential, if it is still believed and the secret is the one that was proven at the
    /// look-up.
    pub(super) fn with_cached<T>(
        &self,
        bearer: &Bearer,
        now: Timestamp,
        look: impl FnOnce(&mut CachedCaller, Instant) -> T,
    ) -> Option<Result<T, AuthError>> {
        let moment = Instant::now();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.get_mut(&bearer.id).filter(|kept| moment < kept.until)?;
        let proven = kept.caller.bearer.secret == bearer.secret;
        let ended = kept.ends_at.is_some_and(|end| end <= now);
        Some(if proven && !ended { Ok(look(kept, moment)) } else { Err(AuthError::Invalid) })
    }

    pub(super) fn forget(&self, credential: CredentialId) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(&credential);
    }

    pub(super) fn keep(&self, credential: CredentialId, entry: CachedCaller) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX && !kept.contains_key(&credential) {
            kept.clear();
        }
        kept.insert(credential, entry);
    }

    /// Drops entries that are too old: they hold secrets.
    pub(super) fn evict_expired(&self) {
        let now = Instant::now();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_credential, kept| now < kept.until);
    }
}

#[cfg(test)]
mod tests {
    use holdfast_domain::credential::{ApiKey, Grant};
    use holdfast_domain::secret::{CredentialSecret, ServerSecret};
    use holdfast_testkit::sample;

    use super::super::secrets::DerivedKeys;
    use super::*;

    fn entry(id: CredentialId, until: Instant) -> CachedCaller {
        let bearer = Bearer { id, secret: CredentialSecret::new([5; 32]) };
        let secret = ServerSecret::new(&[7; 16]).unwrap();
        let api_key = ApiKey {
            id: sample::API_KEY,
            wallet: sample::WALLET,
            name: "one".to_owned(),
            external_id: None,
            grant: Grant::default(),
            edited: 0,
            created_at: sample::NOW,
            suspended_at: None,
            revoked_at: None,
        };
        let keys = DerivedKeys::of(&secret, api_key.id);
        let (currency, is_wallet_suspended) = (sample::usd(), false);
        let wallet_name = "acme".to_owned();
        let caller = Caller {
            bearer,
            api_key,
            currency,
            limits_revision: 0,
            unknown_until: None,
            wallet_name,
            is_wallet_suspended,
            keys,
        };
        CachedCaller { caller: Arc::new(caller), renew_at: until, until, ends_at: None }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_believed_no_more_is_let_go_of() {
        let callers = CredentialCache::default();
        let now = Instant::now();
        let [old, young] = [1, 2].map(CredentialId::from_u128);
        callers.keep(old, entry(old, now + BELIEVED));
        tokio::time::advance(BELIEVED).await;
        callers.keep(young, entry(young, Instant::now() + BELIEVED));
        callers.evict_expired();
        let left: Vec<_> = callers.0.lock().unwrap().keys().copied().collect();
        assert_eq!(left, [young]);
    }

    #[tokio::test]
    async fn no_more_are_kept_than_so_many() {
        let callers = CredentialCache::default();
        let until = Instant::now() + BELIEVED;
        for n in 0..=u128::try_from(KEPT_MAX).unwrap() {
            let id = CredentialId::from_u128(n);
            callers.keep(id, entry(id, until));
        }
        assert_eq!(callers.0.lock().unwrap().len(), 1, "all went, and the last one came");
    }
}
