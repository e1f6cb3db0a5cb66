//! The operator's secrets, and the keys that are derived from them for one API key: fingerprints and digests bind a
//! request to its key, pseudonyms stand for end users at providers.
//!
//! A row names the secret that bound it, so secrets can be replaced without a day on which retries conflict. The
//! keys under the secret for writing are derived once a caller, not once a request.

use std::borrow::Cow;

use holdfast_domain::ApiKeyId;
use holdfast_domain::conduct::Rebinding;
use holdfast_domain::model::{FingerprintTerms, ModelAlias, PublicModelId};
use holdfast_domain::operation::{Binding, Operation};
use holdfast_domain::request::{FINGERPRINT_VERSION, Request, fingerprint, is_known_version};
use holdfast_domain::secret::{
    BodyDigest, BodyDigestKey, FingerprintKey, PseudonymKey, ServerSecret, ServerSecretId,
};
use holdfast_wire::chat::request::parse_as;

use super::Caller;

/// Server secrets of the operator: the first writes, all read, so that they can be rotated.
#[derive(Debug, Clone)]
pub struct Secrets {
    first: ServerSecret,
    others: Vec<ServerSecret>,
}

impl Secrets {
    /// Creates the set; the first is used for all new rows.
    #[must_use]
    pub fn new(first: ServerSecret, others: Vec<ServerSecret>) -> Self {
        Self { first, others }
    }

    /// Secret that writes.
    #[must_use]
    pub fn first(&self) -> &ServerSecret {
        &self.first
    }

    /// All of them, the one that writes first.
    #[must_use]
    pub fn all(&self) -> Vec<ServerSecret> {
        std::iter::once(&self.first).chain(&self.others).cloned().collect()
    }

    /// Finds the secret that a row was made with; `None` after the operator has removed it.
    #[must_use]
    pub fn find(&self, id: ServerSecretId) -> Option<&ServerSecret> {
        std::iter::once(&self.first).chain(&self.others).find(|secret| secret.id() == id)
    }

    /// Digest of a body under one of the secrets; `None` if that secret is gone.
    pub(crate) fn digest(
        &self,
        secret: ServerSecretId,
        caller: &Caller,
        body: &[u8],
    ) -> Option<BodyDigest> {
        Some(self.keys(secret, caller)?.digest.digest(body))
    }

    /// Binds a request under the terms and the model of what a key is bound to already. `request` is the body as
    /// it is read today, `None` if today's rules refuse it.
    pub(crate) fn rebind(
        &self,
        bound: BoundRequest<'_>,
        caller: &Caller,
        request: Option<&Request>,
        body: &[u8],
    ) -> Rebinding {
        let BoundRequest { binding: Binding { terms, .. }, model, alias } = bound;
        let version = terms.fingerprint_version;
        if !is_known_version(version) {
            return Rebinding::UnknownVersion(self.digest(terms.server_secret, caller, body));
        }
        let is_of_model = request.is_some_and(|request| request.model == *model);
        // The alias that bound the key may lead elsewhere by now, or nowhere: the key keeps its model.
        let is_moved = alias.is_some() && !is_of_model;
        let binding = if version == FINGERPRINT_VERSION && !is_moved {
            request.and_then(|request| self.bind(*terms, caller, request, body))
        } else {
            // The row was bound to the body as that version read it.
            let leads_there = |name: &ModelAlias| is_of_model || alias == Some(name);
            parse_as(version, body, &|name| leads_there(name).then(|| model.clone()))
                .and_then(|request| self.bind(*terms, caller, &request, body))
        };
        binding.map_or(Rebinding::Lost, Rebinding::Bound)
    }

    /// Binds a request, in the normal form of the terms' version, under these terms; `None` if they cannot be met
    /// any more.
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

    /// Derives a caller's keys under one of the secrets; those of the first one are derived already.
    fn keys<'c>(&self, secret: ServerSecretId, caller: &'c Caller) -> Option<Cow<'c, DerivedKeys>> {
        if secret == caller.keys.secret {
            return Some(Cow::Borrowed(&caller.keys));
        }
        Some(Cow::Owned(DerivedKeys::of(self.find(secret)?, caller.api_key.id)))
    }
}

/// Request that a key is bound to, as a row or a tape has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoundRequest<'a> {
    pub(crate) binding: &'a Binding,
    pub(crate) model: &'a PublicModelId,
    /// Alias that it named the model by.
    pub(crate) alias: Option<&'a ModelAlias>,
}

impl<'a> From<&'a Operation> for BoundRequest<'a> {
    fn from(operation: &'a Operation) -> Self {
        let Operation { binding, model, alias, .. } = operation;
        Self { binding, model, alias: alias.as_ref() }
    }
}

/// The same, for a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedBoundRequest {
    binding: Binding,
    model: PublicModelId,
    alias: Option<ModelAlias>,
}

impl OwnedBoundRequest {
    pub(crate) fn as_bound(&self) -> BoundRequest<'_> {
        let Self { binding, model, alias } = self;
        BoundRequest { binding, model, alias: alias.as_ref() }
    }
}

impl From<BoundRequest<'_>> for OwnedBoundRequest {
    fn from(BoundRequest { binding, model, alias }: BoundRequest<'_>) -> Self {
        Self { binding: *binding, model: model.clone(), alias: alias.cloned() }
    }
}

/// Keys of one API key under one server secret, by which its requests are bound.
#[derive(Debug, Clone)]
pub(super) struct DerivedKeys {
    secret: ServerSecretId,
    fingerprint: FingerprintKey,
    digest: BodyDigestKey,
    pub(super) pseudonyms: PseudonymKey,
}

impl DerivedKeys {
    pub(super) fn of(secret: &ServerSecret, api_key: ApiKeyId) -> Self {
        Self {
            secret: secret.id(),
            fingerprint: secret.fingerprint_key(api_key),
            digest: secret.body_digest_key(api_key),
            pseudonyms: secret.pseudonym_key(api_key),
        }
    }
}
