//! Admin keys as their bearers hold them: `hfa_<credential id>_<secret>`, both in base62.
//!
//! They are made, kept and rotated as API keys are ([`crate::credential`]), under a noun of their own: no
//! verifier of one is a verifier of the other, so that neither listener takes the other's keys. An admin key
//! outlives its creator, and names them.

use super::field_change::{Fields, TrailFields, moment};
use super::{ActorId, Reach, ResourceId, Role};
use crate::credential::{read_bearer, write_bearer, write_prefix};
use crate::debug_as;
use crate::secret::{CredentialSecret, ServerSecretId, Verifier};
use crate::{AdminKeyId, CredentialId, Timestamp};

const PREFIX: &str = "hfa_";

/// Bearer of an administrative request.
#[derive(Clone, PartialEq, Eq)]
pub struct AdminBearer {
    /// Id of the credential, public.
    pub id: CredentialId,
    /// Secret that proves it.
    pub secret: CredentialSecret,
}

impl AdminBearer {
    /// Reads `hfa_…`; `None` for any other text, an API key's too.
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

debug_as!(AdminBearer as it: "AdminBearer({}, …)", it.id);

/// An admin key as it is kept: never with a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminKey {
    /// Id of the key; request keys are bound for it.
    pub id: AdminKeyId,
    /// Name for people; unique among those that have not ended.
    pub name: String,
    /// Role.
    pub role: Role,
    /// Wallets that the role is for.
    pub reach: Reach,
    /// Moment from which it is not accepted.
    pub ends_at: Option<Timestamp>,
    /// Moment of its issue.
    pub created_at: Timestamp,
    /// Actor that issued it.
    pub created_by: ActorId,
    /// Moment since which it is revoked, for good.
    pub revoked_at: Option<Timestamp>,
}

impl AdminKey {
    /// True if it is accepted no more.
    #[must_use]
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.revoked_at.is_some() || self.ends_at.is_some_and(|end| end <= now)
    }
}

impl TrailFields for AdminKey {
    fn thing(&self) -> ResourceId {
        ResourceId::AdminKey(self.id)
    }

    fn trail_fields(&self) -> Fields {
        let wallet = match self.reach {
            Reach::All => None,
            Reach::Wallet(wallet) => Some(wallet.to_string()),
        };
        vec![
            ("name", Some(self.name.clone())),
            ("role", Some(self.role.label().to_owned())),
            ("wallet_id", wallet),
            ("ends_at", moment(self.ends_at)),
            ("revoked_at", moment(self.revoked_at)),
        ]
    }
}

/// Credential of an admin key as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminCredential {
    /// Public half.
    pub id: CredentialId,
    /// Admin key that it belongs to.
    pub admin_key: AdminKeyId,
    /// Verifier that its secret is checked against.
    pub verifier: Verifier,
    /// The server secret that made the verifier.
    pub server_secret: ServerSecretId,
    /// Moment from which it is not accepted; `None`: as long as its admin key.
    pub ends_at: Option<Timestamp>,
}

/// An admin credential and its key, with the database's clock to judge their ends by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAdminCredential {
    /// Credential that the bearer's secret is checked against.
    pub credential: AdminCredential,
    /// Admin key that it belongs to.
    pub admin_key: AdminKey,
    /// The database's clock.
    pub now: Timestamp,
}

impl KnownAdminCredential {
    /// True if it is accepted no more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.admin_key.has_ended(self.now)
            || self.credential.ends_at.is_some_and(|end| end <= self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::Bearer;

    #[test]
    fn neither_listener_reads_the_others_keys() {
        let (id, secret) = (CredentialId::from_u128(7), CredentialSecret::new([9; 32]));
        let admin = AdminBearer { id, secret: secret.clone() };
        let holder = Bearer { id, secret };
        assert_eq!(AdminBearer::parse(&admin.expose()), Some(admin.clone()));
        assert_eq!(AdminBearer::parse(&holder.expose()), None);
        assert_eq!(Bearer::parse(&admin.expose()), None);
        assert!(!format!("{admin:?}").contains(&admin.expose()));
    }
}
