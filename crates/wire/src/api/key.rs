//! API keys as the operator sees them. The whole credential is shown once, when it is made.

use std::fmt;

use holdfast_domain::credential::{ApiKey, Bearer};
use holdfast_domain::limits::Limits;
use serde::Serialize;

use super::rfc3339;

/// An API key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApiKeyView {
    id: String,
    wallet_id: String,
    name: String,
    limits: LimitsView,
    created_at: String,
    revoked_at: Option<String>,
}

impl ApiKeyView {
    /// Shows an API key.
    #[must_use]
    pub fn of(key: &ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            wallet_id: key.wallet.to_string(),
            name: key.name.clone(),
            limits: LimitsView::of(&key.limits),
            created_at: rfc3339(key.created_at),
            revoked_at: key.revoked_at.map(rfc3339),
        }
    }
}

/// What an API key may use up; null where there is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct LimitsView {
    requests_per_minute: Option<u64>,
    tokens_per_minute: Option<u64>,
    concurrency: Option<u64>,
    spend_micros: Option<i64>,
    spend_window: Option<&'static str>,
}

impl LimitsView {
    fn of(limits: &Limits) -> Self {
        Self {
            requests_per_minute: limits.requests_per_minute,
            tokens_per_minute: limits.tokens_per_minute,
            concurrency: limits.concurrency,
            spend_micros: limits.spend.map(|spend| spend.micros.get()),
            spend_window: limits.spend.map(|spend| spend.window.label()),
        }
    }
}

/// A new API key with its whole credential.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct IssuedKeyView {
    id: String,
    key: String,
    wallet_id: String,
    name: String,
    created_at: String,
}

impl IssuedKeyView {
    /// Shows a new API key and what its bearer must keep.
    #[must_use]
    pub fn of(key: &ApiKey, bearer: &Bearer) -> Self {
        Self {
            id: key.id.to_string(),
            key: bearer.expose(),
            wallet_id: key.wallet.to_string(),
            name: key.name.clone(),
            created_at: rfc3339(key.created_at),
        }
    }
}

impl fmt::Debug for IssuedKeyView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedKeyView")
            .field("id", &self.id)
            .field("wallet_id", &self.wallet_id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
