//! Authentication: finds the bearer of a credential, and the number of requests that its API key has in flight.
//!
//! ```text
//! bearer ─ cache ──────────────────────────────── caller
//!             └ unknown keys ─ credential ─ wallet ─┘
//! ```
//!
//! The cache answers almost every request without the store. A credential that is not in it passes the bounds of
//! [`UnknownKeyLimiter`], which keep made-up credentials from the database, and is then read and proven. A secret
//! is compared by its verifier under the server's secret that the row names, so a copy of the table does not help
//! an intruder.
//!
//! A refusal never reveals which of missing, malformed, unknown, revoked or expired a credential is. A store that
//! does not answer is never taken for a credential that does not exist: a 401 makes a client give up, a 503 makes
//! it retry.

mod credential_cache;
mod in_flight;
mod secrets;

use std::net::IpAddr;
use std::sync::Arc;

use holdfast_domain::cell::Cell;
use holdfast_domain::credential::{ApiKey, Bearer};
use holdfast_domain::debug_as;
use holdfast_domain::ports::{ApiKeys, KnownCredential, Unavailable, Wallets};
use holdfast_domain::secret::PseudonymKey;
use holdfast_domain::{CredentialId, Currency, ErrorChain, Timestamp};
use holdfast_net::{LookupRefusal, UnknownKeyLimiter};
use tokio::time::Instant;

use self::credential_cache::{CachedCaller, CredentialCache};
pub use self::in_flight::InFlight;
use self::in_flight::InFlightCounts;
use self::secrets::DerivedKeys;
pub use self::secrets::Secrets;
pub(crate) use self::secrets::{BoundRequest, OwnedBoundRequest};

/// Authentication of callers: cache, limiter of unknown keys, and counts in flight.
pub(crate) struct Authentication {
    keys: Arc<dyn ApiKeys>,
    wallets: Arc<dyn Wallets>,
    secrets: Arc<Secrets>,
    cache: CredentialCache,
    in_flight: InFlightCounts,
    unknown_keys: UnknownKeyLimiter<CredentialId>,
    cell: Option<Cell>,
}

// The cache is left out: it may have thousands of callers.
debug_as!(Authentication: "Authentication");

/// Authenticated caller: credential, API key, and what is to be known of its wallet.
#[derive(Debug)]
pub struct Caller {
    /// Credential that the caller bears; its secret opens the caller's results.
    pub(crate) bearer: Bearer,
    /// API key that the credential belongs to.
    pub api_key: ApiKey,
    /// Currency of the API key's wallet.
    pub currency: Currency,
    /// Revision of the wallet's limits that those of the API key were read at.
    pub(crate) limits_revision: u64,
    /// End of the window of a restore that was open at that read.
    pub(crate) unknown_until: Option<Timestamp>,
    /// Name of that wallet, for the log.
    pub wallet_name: String,
    /// True if no new run may begin on that wallet.
    pub(crate) is_wallet_suspended: bool,
    /// Keys derived under the server secret that writes.
    keys: DerivedKeys,
}

impl Caller {
    /// End of the window of a restore that is open at this moment of the database's clock: nobody knows what a key
    /// without a row, or with an open one, has done.
    pub(crate) fn window_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.unknown_until.filter(|until| now < *until)
    }

    /// Key of the pseudonyms that providers see in place of its end users' names.
    pub(crate) const fn pseudonyms(&self) -> &PseudonymKey {
        &self.keys.pseudonyms
    }
}

/// Failure of an authentication.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// Missing, malformed, unknown, revoked or expired: one answer for all of them.
    #[error("the API key is not valid")]
    Invalid,
    /// Not looked up: too many invalid ones came from this address.
    #[error("too many API keys that are not valid")]
    TooManyUnknown,
    /// Store not readable, and no cached credential.
    #[error("API keys cannot be checked")]
    Unavailable(#[source] Unavailable),
}

impl Authentication {
    /// Creates it with an empty cache.
    pub(crate) fn new(
        keys: Arc<dyn ApiKeys>,
        wallets: Arc<dyn Wallets>,
        secrets: Arc<Secrets>,
        cell: Option<Cell>,
    ) -> Self {
        let (cache, in_flight) = (CredentialCache::default(), InFlightCounts::default());
        Self {
            keys,
            wallets,
            secrets,
            cache,
            in_flight,
            unknown_keys: UnknownKeyLimiter::default(),
            cell,
        }
    }

    /// Authenticates a bearer text that came from this address. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`AuthError::Invalid`] for every fault of it; [`AuthError::TooManyUnknown`] if it was not looked up.
    pub(crate) async fn authenticate(
        &self,
        bearer: &str,
        peer: IpAddr,
        now: impl Fn() -> Timestamp,
    ) -> Result<Arc<Caller>, AuthError> {
        let bearer = Bearer::parse(bearer).ok_or(AuthError::Invalid)?;
        let kept = self.cache.with_cached(&bearer, now(), CachedCaller::get_unless_due);
        let is_due = match kept {
            Some(Ok(Some(caller))) => return Ok(caller),
            Some(Err(error)) => return Err(error),
            Some(Ok(None)) => true,
            None => false,
        };
        // A renewal passes no limiter: its credential was let in seconds ago.
        if !is_due {
            self.unknown_keys.check(&bearer.id, peer).map_err(|refusal| match refusal {
                LookupRefusal::Gone => AuthError::Invalid,
                LookupRefusal::TooMany => AuthError::TooManyUnknown,
            })?;
        }
        // In a box: few requests miss the cache.
        let looked_up = Box::pin(self.read_caller(&bearer)).await;
        match &looked_up {
            Ok(_) => self.unknown_keys.on_found(bearer.id),
            Err(AuthError::Invalid) => {
                self.unknown_keys.on_refused(peer);
                if is_due {
                    // Revoked meanwhile: the cache must not let the others in for the rest of its time.
                    self.cache.forget(bearer.id);
                }
            }
            Err(AuthError::Unavailable(error)) => {
                let kept =
                    self.cache.with_cached(&bearer, now(), CachedCaller::after_failed_renewal);
                if let Some(believed) = kept {
                    tracing::warn!(
                        error = %ErrorChain(error),
                        "a credential could not be looked up: it is still believed"
                    );
                    return believed;
                }
            }
            Err(AuthError::TooManyUnknown) => {}
        }
        looked_up
    }

    async fn read_caller(&self, bearer: &Bearer) -> Result<Arc<Caller>, AuthError> {
        // The age counts from before the read: however slow it is, a revocation bites in time for
        // all that come later.
        let begun = Instant::now();
        let known = self.keys.credential(bearer.id).await.map_err(AuthError::Unavailable)?;
        if let (None, Some(other)) = (&known, self.cell.and_then(|own| own.other_of(bearer.id))) {
            // After the bounds on unknown keys, which bound the lines of the log as well.
            tracing::warn!(cell = %other, "an API key of another cell was refused: check the map of the balancer");
        }
        let Some(known) = known.filter(|known| !known.has_ended()) else {
            self.unknown_keys.on_missing(bearer.id);
            return Err(AuthError::Invalid);
        };
        // Not remembered if this fails: the credential exists, but its bearer may be another one.
        self.check(bearer, &known)?;
        let ends_at = known.ends_at();
        let wallet = self.wallets.find(known.api_key.wallet).await;
        let wallet = wallet.map_err(AuthError::Unavailable)?.ok_or(AuthError::Invalid)?;
        let (limits_revision, unknown_until) = (known.limits_revision, known.unknown_until);
        let (bearer, api_key) = (bearer.clone(), known.api_key);
        let (id, keys) = (bearer.id, DerivedKeys::of(self.secrets.first(), api_key.id));
        let is_wallet_suspended = wallet.suspended_at.is_some();
        let (currency, wallet_name) = (wallet.currency, wallet.name);
        let caller = Caller {
            bearer,
            api_key,
            currency,
            limits_revision,
            unknown_until,
            wallet_name,
            is_wallet_suspended,
            keys,
        };
        let caller = Arc::new(caller);
        self.cache.keep(id, CachedCaller::read_at(begun, &caller, ends_at));
        Ok(caller)
    }

    /// Reads a caller again whose limits were edited, for later requests too. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`AuthError::Invalid`] for one that has ended meanwhile.
    pub(crate) async fn renew(&self, caller: &Caller) -> Result<Arc<Caller>, AuthError> {
        self.read_caller(&caller.bearer).await
    }

    /// Counts a request of this caller until the guard is dropped; `None` if `max` are in flight.
    pub(crate) fn enter(&self, caller: &Caller, max: usize) -> Option<InFlight> {
        self.in_flight.enter(caller.api_key.id, max)
    }

    /// Drops cached callers that are too old: they hold secrets.
    pub(crate) fn evict_expired(&self) {
        self.cache.evict_expired();
    }

    fn check(&self, bearer: &Bearer, known: &KnownCredential) -> Result<(), AuthError> {
        let credential = &known.credential;
        let proven = self
            .secrets
            .find(credential.server_secret)
            .is_some_and(|secret| secret.verifier(&bearer.secret) == credential.verifier);
        if proven { Ok(()) } else { Err(AuthError::Invalid) }
    }
}
