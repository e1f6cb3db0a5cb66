//! What only a person or a gauge asks for: lists of operations, what is outstanding. Nothing in
//! here shows a result.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_domain::operation::{Lease, Operation};
use holdfast_domain::secret::ServerSecretId;
use holdfast_domain::{ApiKeyId, CredentialId, Currency, Micros, Timestamp};

/// Which operations to list, the newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// Which of them.
    pub scope: Scope,
    /// At most so many.
    pub limit: u32,
}

/// Which operations a list is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    All,
    /// Those whose owner may be gone or whose settlement is missing.
    Stale,
}

/// An operation with what its situation depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationListing {
    /// The row.
    pub operation: Operation,
    /// What has been refunded of its charge.
    pub refunded: Micros,
    /// The row of its node's name.
    pub lease: Option<Lease>,
    /// The database's clock.
    pub now: Timestamp,
}

/// A credential that is in force, without what its bearer is checked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveCredential {
    /// Its public half.
    pub id: CredentialId,
    /// Whose it is.
    pub api_key: ApiKeyId,
    /// The server secret that it was made with.
    pub server_secret: ServerSecretId,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its own end, as a rotation sets it; its API key may end before.
    pub ends_at: Option<Timestamp>,
}

/// What running operations hold.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct OutstandingHolds {
    /// How many hold something back.
    pub count: u64,
    /// How much of each currency that anything is held of.
    pub amounts: BTreeMap<Currency, Micros>,
    /// How long ago the oldest of them was admitted, by the database's clock.
    pub oldest_age: Duration,
}
