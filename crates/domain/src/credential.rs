//! API keys as their bearers hold them: `hfk_<credential id>_<secret>`, both in base62.
//!
//! The scope is the key, not the secret. An API key lives as long as its operations; it has
//! credentials, each with a verifier and an end. Rotation adds a credential and dates the end of
//! the others: ids, limits and fingerprints stay, so a retry across a rotation is the same
//! operation. Never stored: a secret.
//!
//! # Example
//!
//! ```
//! use holdfast_domain::credential::Bearer;
//! use holdfast_domain::{CredentialId, secret::CredentialSecret};
//!
//! let bearer = Bearer { id: CredentialId::from_u128(7), secret: CredentialSecret::new([1; 32]) };
//! let text = bearer.expose();
//! assert!(text.starts_with(&Bearer::prefix(bearer.id)));
//! assert!(Bearer::parse(&text) == Some(bearer.clone()));
//! assert!(Bearer::parse("sk-1234").is_none());
//! // Debug shows the id only.
//! assert!(!format!("{bearer:?}").contains(&text));
//! ```

use std::collections::BTreeSet;

use crate::base62::{self, LEN_OF_128, LEN_OF_256};
use crate::debug_as;
use crate::limits::Limits;
use crate::model::{ModelPattern, PublicModelId};
use crate::secret::{CredentialSecret, ServerSecretId, Verifier};
use crate::{ApiKeyId, CredentialId, Timestamp, WalletId};

const PREFIX: &str = "hfk_";

/// Entries that an allow-list has at most. Lists from before this bound stay as they are.
pub const MODELS_MAX: usize = 256;
/// Credentials in force of one API key or one admin key at most.
pub const CREDENTIALS_MAX: u32 = 32;

/// Bearer of a request: the id of a credential and the secret that proves it.
#[derive(Clone, PartialEq, Eq)]
pub struct Bearer {
    /// Id of the credential, public.
    pub id: CredentialId,
    /// Secret that proves it.
    pub secret: CredentialSecret,
}

impl Bearer {
    /// Reads `hfk_…`; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = read_bearer(PREFIX, text)?;
        Some(Self { id, secret })
    }

    /// Beginning of the whole text: identifies the credential, and reveals no part of its secret.
    #[must_use]
    pub fn prefix(id: CredentialId) -> String {
        write_prefix(PREFIX, id)
    }

    /// The whole text, shown once to the recipient of the key, and not kept.
    #[must_use]
    pub fn expose(&self) -> String {
        write_bearer(PREFIX, self.id, &self.secret)
    }
}

/// Reads a bearer text behind its noun.
pub(crate) fn read_bearer(noun: &str, text: &str) -> Option<(CredentialId, CredentialSecret)> {
    let (id, secret) = text.strip_prefix(noun)?.split_once('_')?;
    // Lengths first: base62 reads a shorter text as a smaller number, and a bearer has one
    // spelling.
    if id.len() != LEN_OF_128 || secret.len() != LEN_OF_256 {
        return None;
    }
    let secret = CredentialSecret::new(base62::read(secret)?);
    Some((CredentialId::from_bytes(base62::read(id)?), secret))
}

pub(crate) fn write_prefix(noun: &str, id: CredentialId) -> String {
    format!("{noun}{}", base62::write(&id.to_bytes(), LEN_OF_128))
}

pub(crate) fn write_bearer(noun: &str, id: CredentialId, secret: &CredentialSecret) -> String {
    let secret = base62::write(secret.bytes(), LEN_OF_256);
    format!("{}_{secret}", write_prefix(noun, id))
}

debug_as!(Bearer as it: "Bearer({}, …)", it.id);

/// An API key as it is kept: never with a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// The scope of request keys.
    pub id: ApiKeyId,
    /// Wallet that pays.
    pub wallet: WalletId,
    /// Name for people; unique within the wallet.
    pub name: String,
    /// Id in another system, such as your customers' database; unique within the wallet.
    pub external_id: Option<String>,
    /// Grant: all that it may do, and until when.
    pub grant: Grant,
    /// Number of edits.
    pub edited: u32,
    /// Moment of its issue.
    pub created_at: Timestamp,
    /// Moment since which no new run starts for it. Active runs go on, and bound keys answer.
    pub suspended_at: Option<Timestamp>,
    /// Moment since which it is revoked, for good.
    pub revoked_at: Option<Timestamp>,
}

impl ApiKey {
    /// True if it is accepted no more: revoked, or at or past its end.
    #[must_use]
    pub fn has_ended(&self, now: Timestamp) -> bool {
        // A revocation counts whatever its moment: a clock that was set back does not undo it.
        self.revoked_at.is_some() || self.grant.ends_at.is_some_and(|end| end <= now)
    }
}

/// An API key to be issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApiKey {
    /// Id of the key.
    pub id: ApiKeyId,
    /// Wallet that pays.
    pub wallet: WalletId,
    /// Name for people; unique within the wallet, and not shaped like an id.
    pub name: String,
    /// Id in another system, such as your customers' database; unique within the wallet.
    pub external_id: Option<String>,
    /// Grant: all that it may do, and until when.
    pub grant: Grant,
}

impl NewApiKey {
    /// The key as it is kept, issued at this moment.
    #[must_use]
    pub fn issued_at(self, now: Timestamp) -> ApiKey {
        let Self { id, wallet, name, external_id, grant } = self;
        ApiKey {
            id,
            wallet,
            name,
            external_id,
            grant,
            edited: 0,
            created_at: now,
            suspended_at: None,
            revoked_at: None,
        }
    }
}

/// Grant of an API key: all that it may do, and until when. The default allows everything, for
/// ever.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grant {
    /// Limits on what it may use up.
    pub limits: Limits,
    /// Allow-list of models; `None`: all of them.
    pub models: Option<BTreeSet<ModelPattern>>,
    /// Visibility of the wallet's balance to its bearer.
    pub balance: BalanceVisibility,
    /// Scope of the usage reports that its bearer may read.
    pub usage: UsageScope,
    /// Moment from which no credential of it is accepted: rotation does not move it.
    pub ends_at: Option<Timestamp>,
}

impl Grant {
    /// True if it may use this model.
    #[must_use]
    pub fn allows(&self, model: &PublicModelId) -> bool {
        self.models.as_ref().is_none_or(|models| {
            // Most entries are ids, which the sorted set finds; only patterns need the scan.
            models.contains(model.as_str()) || models.iter().any(|entry| entry.allows(model))
        })
    }
}

/// Visibility of a wallet's balance to the bearer of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BalanceVisibility {
    /// Available and held amounts are shown.
    #[default]
    Shown,
    /// Neither is shown.
    Hidden,
}

impl BalanceVisibility {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Shown, Self::Hidden];

    /// The name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::Hidden => "hidden",
        }
    }
}

/// Scope of the usage reports that the bearer of an API key may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UsageScope {
    /// The key's own usage.
    #[default]
    Key,
    /// The usage of all keys of its wallet.
    Wallet,
}

impl UsageScope {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Key, Self::Wallet];

    /// The name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Wallet => "wallet",
        }
    }
}

/// Credential of an API key as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Public half.
    pub id: CredentialId,
    /// API key that it belongs to.
    pub api_key: ApiKeyId,
    /// Verifier that its secret is checked against.
    pub verifier: Verifier,
    /// The server secret that made the verifier.
    pub server_secret: ServerSecretId,
    /// Moment from which it is not accepted; `None`: as long as its API key.
    pub ends_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_reads_what_it_wrote() {
        for byte in [0, 1, 61, 62, 254, 255] {
            let bearer = Bearer {
                id: CredentialId::from_bytes([byte; 16]),
                secret: CredentialSecret::new([byte; 32]),
            };
            let text = bearer.expose();
            assert_eq!(text.len(), 4 + 22 + 1 + 43);
            assert_eq!(Bearer::parse(&text), Some(bearer));
        }
    }

    #[test]
    fn other_texts_are_no_bearer() {
        let text = Bearer {
            id: CredentialId::from_bytes([7; 16]),
            secret: CredentialSecret::new([7; 32]),
        }
        .expose();
        let short = text.get(..text.len() - 1).unwrap();
        let too_large = format!("hfk_{}_{}", "z".repeat(22), "z".repeat(43));
        for bad in ["", "hfk_", "sk-123", short, &text.replace('_', "-"), &too_large] {
            assert_eq!(Bearer::parse(bad), None, "{bad}");
        }
    }
}
