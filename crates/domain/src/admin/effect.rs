//! Effects of commands: rows to write, rows of the audit log about them, and events. A store neither adds to an
//! effect nor leaves any part out.
//!
//! Never in here: a secret. A credential's verifier is all that a command knows.

use super::event::NewEvent;
use super::field_change::{TrailFields, differences};
use super::{
    AdminCredential, AdminKey, FieldChange, NewPosting, PersonWrite, ResourceId, WalletRecord,
    WebhookWrite,
};
use crate::credential::{ApiKey, Credential};
use crate::limits::Counter;
use crate::{AdminKeyId, ApiKeyId, JobId, Micros, Timestamp, WalletId};

/// Effect of a command: writes, and a row of the audit log for each resource that they change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AccountEffect {
    /// Rows to be written, in this order.
    pub writes: Vec<AccountWrite>,
    /// Resources of the command, each with the changes of its fields.
    pub entries: Vec<(ResourceId, Vec<FieldChange>)>,
    /// Resources that changed with them and have rows of the audit log as well; no answer names them, as they
    /// may be many.
    pub also: Vec<(ResourceId, Vec<FieldChange>)>,
    /// Events that it has.
    pub events: Vec<NewEvent>,
    /// True if an earlier command had done it, by another request or another interface.
    pub was_done: bool,
}

impl AccountEffect {
    /// Effect on one resource.
    pub(super) fn done(
        writes: Vec<AccountWrite>,
        thing: ResourceId,
        changes: Vec<FieldChange>,
    ) -> Self {
        Self { writes, entries: vec![(thing, changes)], ..Self::default() }
    }

    /// Effect of a new record.
    pub(super) fn created<T: TrailFields>(made: T, write: fn(T) -> AccountWrite) -> Self {
        let (thing, changes) = (made.thing(), differences(None, made.trail_fields()));
        Self::done(vec![write(made)], thing, changes)
    }

    /// Effect of a change of a record: none if it is the same.
    pub(super) fn changed<T: TrailFields>(
        before: &T,
        after: T,
        write: fn(T) -> AccountWrite,
    ) -> Self {
        if *before == after {
            return Self::done(Vec::new(), before.thing(), Vec::new());
        }
        let changes = before.changes(&after);
        Self::done(vec![write(after)], before.thing(), changes)
    }

    /// The effect with its event, if it writes.
    pub(super) fn with_event(mut self, event: impl FnOnce() -> NewEvent) -> Self {
        if !self.writes.is_empty() {
            self.events.push(event());
        }
        self
    }

    /// Effect of what an earlier command did: none.
    pub(super) fn already_done(thing: ResourceId) -> Self {
        Self { was_done: true, ..Self::done(Vec::new(), thing, Vec::new()) }
    }
}

/// Write of one row, or of rows with one id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountWrite {
    /// A new wallet, with an empty balance.
    InsertWallet(WalletRecord),
    /// All of a wallet that people set; never its balance.
    UpdateWallet(WalletRecord),
    /// Available amount of a locked wallet.
    SetAvailable(WalletId, Micros),
    /// A posting with its details, made at this moment.
    InsertPosting(NewPosting, Timestamp),
    /// A new API key.
    InsertApiKey(ApiKey),
    /// All of an API key that people set.
    UpdateApiKey(ApiKey),
    /// Counters of an API key, in their windows of this moment, set to what its operations make of them. Each
    /// that runs is counted by its ending from then on. The revision of the wallet's limits moves, of no
    /// counters as well: claims by limits that were read before are refused.
    SeedCounters(ApiKeyId, Vec<Counter>, Timestamp),
    /// End of all API keys of a wallet that are not revoked, and of their credentials.
    RevokeApiKeysOf(WalletId, Timestamp),
    /// A credential, made at this moment.
    InsertCredential(Credential, Timestamp),
    /// End of the credentials of an API key that would end later.
    EndCredentials(ApiKeyId, Timestamp),
    /// A new admin key.
    InsertAdminKey(AdminKey),
    /// End of an admin key.
    UpdateAdminKey(AdminKey),
    /// An admin credential, made at this moment.
    InsertAdminCredential(AdminCredential, Timestamp),
    /// End of the credentials of an admin key that would end later.
    EndAdminCredentials(AdminKeyId, Timestamp),
    /// Rows of a person.
    Person(PersonWrite),
    /// Rows of a webhook.
    Webhook(WebhookWrite),
    /// A job that is queued at this moment, with the name of its kind and what it starts from.
    QueueJob(JobId, &'static str, Option<String>, Timestamp),
    /// End of a queued job, at this moment.
    CancelJob(JobId, Timestamp),
}

/// Receipt of a command that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountReceipt {
    /// Resources that it created or changed.
    pub things: Vec<ResourceId>,
    /// Moment at which it was done.
    pub at: Timestamp,
    /// True if an earlier request did it: no row was changed now, and no secret of this command is kept.
    pub replayed: bool,
}
