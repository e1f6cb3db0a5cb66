//! Who asks: credentials checked against the store, kept for a few seconds, and how much each API
//! key has in hand.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_domain::credential::{ApiKey, Bearer};
use holdfast_domain::model::FingerprintTerms;
use holdfast_domain::operation::Binding;
use holdfast_domain::ports::{KnownCredential, Unavailable};
use holdfast_domain::request::{Request, fingerprint};
use holdfast_domain::secret::{
    BodyDigest, BodyDigestKey, FingerprintKey, PseudonymKey, ServerSecret, ServerSecretId,
};
use holdfast_domain::{ApiKeyId, CredentialId, Currency, Timestamp};
use tokio::time::Instant;

use crate::Engine;
use crate::serving_config::ServingConfig;
use crate::unknown_keys::UnknownKeyLimiter;

/// How long a known credential is believed: a revocation bites within this.
const BELIEVED: Duration = Duration::from_secs(5);
/// From then on one of those who come looks it up anew, and the others need not wait for that.
const RENEWED: Duration = Duration::from_secs(4);
/// How long after that failed another one may try.
const RENEWED_AGAIN: Duration = Duration::from_millis(250);
/// Credentials kept at once; beyond it the whole cache starts anew.
const KEPT_MAX: usize = 16_384;

/// The operator's secrets: the first writes, all read.
#[derive(Debug, Clone)]
pub struct Secrets {
    first: ServerSecret,
    others: Vec<ServerSecret>,
}

impl Secrets {
    /// The first is used for whatever is new.
    #[must_use]
    pub fn new(first: ServerSecret, others: Vec<ServerSecret>) -> Self {
        Self { first, others }
    }

    /// The secret that writes.
    #[must_use]
    pub fn first(&self) -> &ServerSecret {
        &self.first
    }

    /// The secret that something was made with.
    #[must_use]
    pub fn find(&self, id: ServerSecretId) -> Option<&ServerSecret> {
        std::iter::once(&self.first).chain(&self.others).find(|secret| secret.id() == id)
    }

    /// The digest of a body under one of the secrets; `None` when that secret is gone.
    pub(crate) fn digest(
        &self,
        secret: ServerSecretId,
        caller: &Caller,
        body: &[u8],
    ) -> Option<BodyDigest> {
        Some(self.keys(secret, caller)?.digest.digest(body))
    }

    /// Binds a request under some terms; `None` when they cannot be met any more.
    pub(crate) fn bind(
        &self,
        terms: FingerprintTerms,
        caller: &Caller,
        request: &Request,
        body: &[u8],
    ) -> Option<Binding> {
        let keys = self.keys(terms.server_secret, caller)?;
        let FingerprintTerms { fingerprint_version, contract, .. } = terms;
        Some(Binding {
            terms,
            fingerprint: fingerprint(&keys.fingerprint, fingerprint_version, contract, request)?,
            body_digest: keys.digest.digest(body),
        })
    }

    /// A caller's keys under one of the secrets: those of the first one it has with it.
    fn keys<'c>(&self, secret: ServerSecretId, caller: &'c Caller) -> Option<Cow<'c, DerivedKeys>> {
        if secret == caller.keys.secret {
            return Some(Cow::Borrowed(&caller.keys));
        }
        Some(Cow::Owned(DerivedKeys::of(self.find(secret)?, caller.api_key.id)))
    }
}

/// What the requests of one API key are bound with.
#[derive(Debug, Clone)]
struct DerivedKeys {
    secret: ServerSecretId,
    fingerprint: FingerprintKey,
    digest: BodyDigestKey,
    pseudonyms: PseudonymKey,
}

impl DerivedKeys {
    fn of(secret: &ServerSecret, api_key: ApiKeyId) -> Self {
        Self {
            secret: secret.id(),
            fingerprint: secret.fingerprint_key(api_key),
            digest: secret.body_digest_key(api_key),
            pseudonyms: secret.pseudonym_key(api_key),
        }
    }
}

/// An authenticated caller.
#[derive(Debug)]
pub struct Caller {
    /// What it bears; its secret opens its results.
    pub(crate) bearer: Bearer,
    /// Its API key.
    pub api_key: ApiKey,
    /// The currency of its wallet.
    pub currency: Currency,
    /// Under the secret that writes.
    keys: DerivedKeys,
}

impl Caller {
    /// What its end users are told to providers under.
    pub(crate) const fn pseudonyms(&self) -> &PseudonymKey {
        &self.keys.pseudonyms
    }
}

/// Why a caller was not let in.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// Missing, malformed, unknown, revoked or expired: a caller is never told which.
    #[error("the API key is not valid")]
    Invalid,
    /// So many that were not valid came from its address that this one was not looked up.
    #[error("too many API keys that are not valid")]
    TooManyUnknown,
    /// Nothing is known about it.
    #[error("API keys cannot be checked")]
    Unavailable(#[source] Unavailable),
}

struct CachedCaller {
    caller: Arc<Caller>,
    /// From then on the next that comes looks it up anew. That one moves it to the end: who waits
    /// for the store is not joined by others.
    renew_at: Instant,
    until: Instant,
    /// By the database's clock, so that an end that was known is met to the moment.
    ends_at: Option<Timestamp>,
}

/// What this process knows of its callers. Std mutexes: never held across an await.
#[derive(Default)]
pub(crate) struct Callers {
    kept: Mutex<HashMap<CredentialId, CachedCaller>>,
    in_flight: Arc<Mutex<HashMap<ApiKeyId, usize>>>,
    unknown_keys: UnknownKeyLimiter,
}

impl std::fmt::Debug for Callers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Callers")
    }
}

/// One request that an API key has in hand, until it is dropped.
#[derive(Debug)]
pub struct InFlight {
    counts: Arc<Mutex<HashMap<ApiKeyId, usize>>>,
    api_key: ApiKeyId,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.api_key) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.api_key);
            }
        }
    }
}

impl Engine {
    /// Finds out who bears this text, at this address. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`AuthError::Invalid`] for whatever is wrong with it; [`AuthError::TooManyUnknown`] where that was not
    /// looked at.
    pub async fn authenticate(&self, bearer: &str, peer: IpAddr) -> Result<Arc<Caller>, AuthError> {
        let bearer = Bearer::parse(bearer).ok_or(AuthError::Invalid)?;
        let kept = self.callers.with_cached(&bearer, self.node.now(), CachedCaller::get_unless_due);
        let is_due = match kept {
            Some(Ok(Some(caller))) => return Ok(caller),
            Some(Err(error)) => return Err(error),
            Some(Ok(None)) => true,
            None => false,
        };
        if !is_due {
            self.callers.unknown_keys.check(bearer.id, peer)?;
        }
        // In a box: few requests come to it.
        let told = Box::pin(self.read_caller(&bearer)).await;
        match &told {
            Ok(_) => self.callers.unknown_keys.on_found(bearer.id),
            Err(AuthError::Invalid) => {
                self.callers.unknown_keys.on_refused(peer);
                if is_due {
                    self.callers.forget(bearer.id);
                }
            }
            Err(AuthError::Unavailable(error)) => {
                let kept = self.callers.with_cached(
                    &bearer,
                    self.node.now(),
                    CachedCaller::after_failed_renewal,
                );
                if let Some(believed) = kept {
                    let error: &dyn std::error::Error = error;
                    tracing::warn!(
                        error,
                        "a credential could not be looked up: it is still believed"
                    );
                    return believed;
                }
            }
            Err(AuthError::TooManyUnknown) => {}
        }
        told
    }

    async fn read_caller(&self, bearer: &Bearer) -> Result<Arc<Caller>, AuthError> {
        // Believed from before it was read: however long the reads take, a revocation bites in time for
        // all that come later.
        let now = Instant::now();
        let known = self.ports.keys.credential(bearer.id).await.map_err(AuthError::Unavailable)?;
        let Some(known) = known.filter(|known| !known.has_ended()) else {
            self.callers.unknown_keys.on_missing(bearer.id);
            return Err(AuthError::Invalid);
        };
        self.check(bearer, &known)?;
        let ends_at = known.ends_at();
        let wallet = self.ports.wallets.find(known.api_key.wallet).await;
        let wallet = wallet.map_err(AuthError::Unavailable)?.ok_or(AuthError::Invalid)?;
        let (bearer, api_key) = (bearer.clone(), known.api_key);
        let (id, keys) = (bearer.id, DerivedKeys::of(self.secrets.first(), api_key.id));
        let caller = Arc::new(Caller { bearer, api_key, currency: wallet.currency, keys });
        let (renew_at, until) = (now + RENEWED, now + BELIEVED);
        self.callers
            .keep(id, CachedCaller { caller: Arc::clone(&caller), renew_at, until, ends_at });
        Ok(caller)
    }

    /// Counts a request of this caller until the guard is dropped; `None` when it has as many as the
    /// offer allows.
    #[must_use]
    pub fn enter(&self, offer: &ServingConfig, caller: &Caller) -> Option<InFlight> {
        let api_key = caller.api_key.id;
        let mut counts = self.callers.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(api_key).or_default();
        if *count >= offer.rules.operations_per_key {
            return None;
        }
        *count = count.saturating_add(1);
        Some(InFlight { counts: Arc::clone(&self.callers.in_flight), api_key })
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

impl CachedCaller {
    /// The caller; `None` for the one that is to look it up anew.
    fn get_unless_due(&mut self, moment: Instant) -> Option<Arc<Caller>> {
        if self.renew_at <= moment {
            self.renew_at = self.until;
            return None;
        }
        Some(Arc::clone(&self.caller))
    }

    /// The caller, after the look-up failed.
    fn after_failed_renewal(&mut self, moment: Instant) -> Arc<Caller> {
        self.renew_at = self.renew_at.min(moment + RENEWED_AGAIN);
        Arc::clone(&self.caller)
    }
}

impl Callers {
    /// Looks at what is still believed of a credential. The secret that was proven when it was looked
    /// up is the only one that is.
    fn with_cached<T>(
        &self,
        bearer: &Bearer,
        now: Timestamp,
        look: impl FnOnce(&mut CachedCaller, Instant) -> T,
    ) -> Option<Result<T, AuthError>> {
        let moment = Instant::now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.get_mut(&bearer.id).filter(|kept| moment < kept.until)?;
        let proven = kept.caller.bearer.secret == bearer.secret;
        let ended = kept.ends_at.is_some_and(|end| end <= now);
        Some(if proven && !ended { Ok(look(kept, moment)) } else { Err(AuthError::Invalid) })
    }

    fn forget(&self, credential: CredentialId) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(&credential);
    }

    fn keep(&self, credential: CredentialId, entry: CachedCaller) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX && !kept.contains_key(&credential) {
            kept.clear();
        }
        kept.insert(credential, entry);
    }

    /// Lets go of what is believed no more: it holds secrets.
    pub(crate) fn evict_expired(&self) {
        let now = Instant::now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_credential, kept| now < kept.until);
    }
}

#[cfg(test)]
mod tests {
    use holdfast_domain::credential::Grant;
    use holdfast_domain::secret::CredentialSecret;
    use holdfast_testkit::sample;

    use super::*;

    fn entry(id: CredentialId, until: Instant) -> CachedCaller {
        let bearer = Bearer { id, secret: CredentialSecret::new([5; 32]) };
        let secret = ServerSecret::new(&[7; 16]).unwrap();
        let api_key = ApiKey {
            id: sample::API_KEY,
            wallet: sample::WALLET,
            name: "one".to_owned(),
            grant: Grant::default(),
            created_at: sample::NOW,
            revoked_at: None,
        };
        let keys = DerivedKeys::of(&secret, api_key.id);
        let caller = Caller { bearer, api_key, currency: sample::usd(), keys };
        CachedCaller { caller: Arc::new(caller), renew_at: until, until, ends_at: None }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_believed_no_more_is_let_go_of() {
        let callers = Callers::default();
        let now = Instant::now();
        let [old, young] = [1, 2].map(CredentialId::from_u128);
        callers.keep(old, entry(old, now + BELIEVED));
        tokio::time::advance(BELIEVED).await;
        callers.keep(young, entry(young, Instant::now() + BELIEVED));
        callers.evict_expired();
        let left: Vec<_> = callers.kept.lock().unwrap().keys().copied().collect();
        assert_eq!(left, [young]);
    }

    #[tokio::test]
    async fn no_more_are_kept_than_so_many() {
        let callers = Callers::default();
        let until = Instant::now() + BELIEVED;
        for n in 0..=u128::try_from(KEPT_MAX).unwrap() {
            let id = CredentialId::from_u128(n);
            callers.keep(id, entry(id, until));
        }
        assert_eq!(callers.kept.lock().unwrap().len(), 1, "all went, and the last one came");
    }
}
