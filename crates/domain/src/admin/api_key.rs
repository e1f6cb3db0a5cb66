//! Edits of API keys: what a grant becomes, and who may use the key for now.

use std::collections::{BTreeMap, BTreeSet};

use super::field_change::{Fields, TrailFields, moment};
use super::{AccountRefusal, ResourceId};
use crate::Timestamp;
use crate::credential::{ApiKey, BalanceVisibility, UsageScope};
use crate::limits::{CountLimit, SpendLimit};
use crate::model::ModelPattern;

/// Edit of an API key: a field that is `None` stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApiKeyPatch {
    /// Another name.
    pub name: Option<String>,
    /// Another external id, or none.
    pub external_id: Option<Option<String>>,
    /// Other counted limits, or none of them; a limit that is not in it stays as it is.
    pub counts: BTreeMap<CountLimit, Option<u64>>,
    /// Another bound on its spend, or none.
    pub spend: Option<Option<SpendLimit>>,
    /// Other models, or all of them.
    pub models: Option<Option<BTreeSet<ModelPattern>>>,
    /// Another visibility of the wallet's balance.
    pub balance: Option<BalanceVisibility>,
    /// Another scope of its usage reports.
    pub usage: Option<UsageScope>,
    /// Another end, or none.
    pub ends_at: Option<Option<Timestamp>>,
}

impl ApiKeyPatch {
    /// True if the edit concerns a limit: the sums of the key's operations are read.
    #[must_use]
    pub fn concerns_limits(&self) -> bool {
        !self.counts.is_empty() || self.spend.is_some()
    }
}

impl ApiKey {
    /// The key after an edit.
    ///
    /// # Errors
    ///
    /// [`AccountRefusal::ApiKeyRevoked`] for a revoked one.
    pub fn edit(&self, patch: &ApiKeyPatch) -> Result<Self, AccountRefusal> {
        self.refuse_revoked()?;
        let mut after = self.clone();
        let patch = patch.clone();
        let grant = &mut after.grant;
        let limits = &mut grant.limits;
        *limits = patch
            .counts
            .into_iter()
            .fold(*limits, |limits, (limit, bound)| limits.with_count(limit, bound));
        set(&mut limits.spend, patch.spend);
        set(&mut grant.models, patch.models);
        set(&mut grant.balance, patch.balance);
        set(&mut grant.usage, patch.usage);
        set(&mut grant.ends_at, patch.ends_at);
        set(&mut after.name, patch.name);
        set(&mut after.external_id, patch.external_id);
        Ok(after.counted(self))
    }

    /// The key with new runs stopped, since the earliest moment of such a request.
    ///
    /// # Errors
    ///
    /// [`AccountRefusal::ApiKeyRevoked`] for a revoked one.
    pub fn suspend(&self, now: Timestamp) -> Result<Self, AccountRefusal> {
        self.refuse_revoked()?;
        let suspended_at = self.suspended_at.or(Some(now));
        Ok(Self { suspended_at, ..self.clone() }.counted(self))
    }

    /// The key with new runs let in.
    ///
    /// # Errors
    ///
    /// [`AccountRefusal::ApiKeyRevoked`] for a revoked one.
    pub fn resume(&self) -> Result<Self, AccountRefusal> {
        self.refuse_revoked()?;
        Ok(Self { suspended_at: None, ..self.clone() }.counted(self))
    }

    /// The key ended for good, since the earliest moment of such a request.
    #[must_use]
    pub fn revoke(&self, now: Timestamp) -> Self {
        let revoked_at = self.revoked_at.or(Some(now));
        Self { revoked_at, ..self.clone() }.counted(self)
    }

    fn refuse_revoked(&self) -> Result<(), AccountRefusal> {
        if self.revoked_at.is_some() { Err(AccountRefusal::ApiKeyRevoked) } else { Ok(()) }
    }

    /// Counts an edit if any field has changed.
    fn counted(mut self, before: &Self) -> Self {
        // As for wallets: an edit without a change must not outdate the number that others have
        // seen.
        if self != *before {
            self.edited = before.edited.saturating_add(1);
        }
        self
    }
}

impl TrailFields for ApiKey {
    fn thing(&self) -> ResourceId {
        ResourceId::ApiKey(self.id)
    }

    fn trail_fields(&self) -> Fields {
        let models = |models: &BTreeSet<ModelPattern>| {
            models.iter().map(ModelPattern::as_str).collect::<Vec<_>>().join(",")
        };
        let (grant, limits) = (&self.grant, &self.grant.limits);
        let mut fields = vec![
            ("wallet_id", Some(self.wallet.to_string())),
            ("name", Some(self.name.clone())),
            ("external_id", self.external_id.clone()),
        ];
        let number = |limit: CountLimit| limits.count(limit).map(|bound| bound.to_string());
        fields.extend(CountLimit::ALL.map(|limit| (limit.row().member, number(limit))));
        fields.extend([
            ("spend_micros", limits.spend.map(|spend| spend.micros.get().to_string())),
            ("spend_window", limits.spend.map(|spend| spend.window.label().to_owned())),
            ("models", grant.models.as_ref().map(models)),
            ("balance", Some(grant.balance.label().to_owned())),
            ("usage", Some(grant.usage.label().to_owned())),
            ("ends_at", moment(grant.ends_at)),
            ("suspended_at", moment(self.suspended_at)),
            ("revoked_at", moment(self.revoked_at)),
        ]);
        fields
    }
}

fn set<T>(field: &mut T, to: Option<T>) {
    if let Some(value) = to {
        *field = value;
    }
}
