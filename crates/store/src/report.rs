//! Reports for a person or a gauge: credentials in force, outstanding holds. Nothing in here shows a
//! result.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_domain::secret::ServerSecretId;
use holdfast_domain::{ApiKeyId, CredentialId, Currency, Micros, Timestamp};

/// A credential that is in force, without what its bearer is checked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveCredential {
    /// The public half of the credential.
    pub id: CredentialId,
    /// The API key that it belongs to.
    pub api_key: ApiKeyId,
    /// The server secret that it was made with.
    pub server_secret: ServerSecretId,
    /// The moment when it was made.
    pub created_at: Timestamp,
    /// End of the credential, as a rotation sets it; its API key may end before.
    pub ends_at: Option<Timestamp>,
}

/// Sums over the holds of running operations.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct OutstandingHolds {
    /// Number of operations that hold something.
    pub count: u64,
    /// Held micros by currency; only currencies that anything is held of.
    pub amounts: BTreeMap<Currency, Micros>,
    /// Time since the oldest of them was admitted, by the database's clock.
    pub oldest_age: Duration,
}
