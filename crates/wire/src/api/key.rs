//! API keys as the operator sees them. The whole credential is shown once, when it is made.

use std::collections::BTreeMap;
use std::fmt;

use holdfast_domain::credential::{ApiKey, BalanceVisibility, Bearer, Grant};
use holdfast_domain::limits::{Counter, Limits};
use holdfast_domain::ports::CounterSnapshot;
use holdfast_domain::{CredentialId, Timestamp};
use serde::Serialize;

use super::rfc3339;

/// An API key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApiKeyView {
    id: String,
    wallet_id: String,
    name: String,
    models: Option<Vec<String>>,
    limits: LimitsView,
    hide_balance: bool,
    created_at: String,
    expires_at: Option<String>,
    revoked_at: Option<String>,
    external_id: Option<String>,
    usage: &'static str,
    edited: u32,
    suspended_at: Option<String>,
}

impl ApiKeyView {
    /// Shows an API key.
    #[must_use]
    pub fn of(key: &ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            wallet_id: key.wallet.to_string(),
            name: key.name.clone(),
            models: models(&key.grant),
            limits: LimitsView::of(&key.grant.limits),
            hide_balance: key.grant.balance == BalanceVisibility::Hidden,
            created_at: rfc3339(key.created_at),
            expires_at: key.grant.ends_at.map(rfc3339),
            revoked_at: key.revoked_at.map(rfc3339),
            external_id: key.external_id.clone(),
            usage: key.grant.usage.label(),
            edited: key.edited,
            suspended_at: key.suspended_at.map(rfc3339),
        }
    }
}

/// Limits of an API key; null where there is none.
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

/// The models of an allow-list; `None` where all are allowed.
pub(super) fn models(grant: &Grant) -> Option<Vec<String>> {
    let ids = grant.models.as_ref()?;
    Some(ids.iter().map(|id| id.as_str().to_owned()).collect())
}

/// An API key with its credentials that are in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedKeyView {
    #[serde(flatten)]
    api_key: ApiKeyView,
    credentials: Vec<CredentialView>,
}

impl ListedKeyView {
    /// Shows an API key with these credentials of it.
    #[must_use]
    pub fn of(key: &ApiKey, credentials: Vec<CredentialView>) -> Self {
        Self { api_key: ApiKeyView::of(key), credentials }
    }
}

/// An API key with the readings of its counters in the windows of now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CountedKeyView {
    #[serde(flatten)]
    api_key: ApiKeyView,
    used: BTreeMap<&'static str, i64>,
}

impl CountedKeyView {
    /// Shows an API key and these readings.
    #[must_use]
    pub fn of(key: &ApiKey, standing: &CounterSnapshot) -> Self {
        let used = Counter::ALL
            .into_iter()
            .filter_map(|counter| Some((counter.label(), standing.counters.used(counter)?)));
        Self { api_key: ApiKeyView::of(key), used: used.collect() }
    }
}

/// A credential without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CredentialView {
    id: String,
    created_at: String,
    ends_at: Option<String>,
}

impl CredentialView {
    /// Shows a credential by what its bearer's text begins with, and its own end.
    #[must_use]
    pub fn of(id: CredentialId, created_at: Timestamp, ends_at: Option<Timestamp>) -> Self {
        let (created_at, ends_at) = (rfc3339(created_at), ends_at.map(rfc3339));
        // The prefix is public: it is what operators find in a caller's configuration.
        Self { id: Bearer::prefix(id), created_at, ends_at }
    }
}

/// An API key with a whole new credential.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct IssuedKeyView {
    key: Option<String>,
    #[serde(flatten)]
    api_key: ApiKeyView,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_ends_at: Option<String>,
}

impl IssuedKeyView {
    /// Shows a new API key and what its bearer must keep; null where an earlier request made it.
    #[must_use]
    pub fn of(key: &ApiKey, bearer: Option<&Bearer>) -> Self {
        Self {
            key: bearer.map(Bearer::expose),
            api_key: ApiKeyView::of(key),
            previous_ends_at: None,
        }
    }

    /// Shows an API key that was rotated, what its bearer must keep, and until when what it has
    /// borne so far is accepted at the latest.
    #[must_use]
    pub fn rotated(key: &ApiKey, bearer: Option<&Bearer>, previous_ends_at: Timestamp) -> Self {
        Self { previous_ends_at: Some(rfc3339(previous_ends_at)), ..Self::of(key, bearer) }
    }
}

impl fmt::Debug for IssuedKeyView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IssuedKeyView").field(&self.api_key).finish()
    }
}
