//! The values of administration: commands, what they are judged by, and what follows from them.
//!
//! ```text
//! AccountCommand { actor, request, reason, action } + AccountFacts ─▶ AccountEffect { writes, entries }
//! ```
//!
//! A command has everything that its transaction needs, ids and verifiers of new things too: it may
//! be offered again after a lost answer, and then must be the same one. Facts are what a store reads
//! under its locks. An effect is rows to write and what the trail says of them; a store adds nothing
//! to it, and leaves nothing out.
//!
//! Never in here: a secret. A credential's verifier is all that a command knows.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{
    ActorId, AdminCredential, AdminKey, ApiKeyPatch, CanonicalDigest, FieldChange, KnownPosting,
    NewPosting, PersonAction, PersonFacts, PersonWrite, RefundableOperation, RequestBinding, Thing,
    UseCase, WalletBounds, WalletPatch, WalletRecord, WebhookAction, WebhookFacts, WebhookWrite,
};
use crate::admin::job_state::JobState;
use crate::credential::{ApiKey, Credential, NewApiKey};
use crate::ledger::{Posting, PostingKind};
use crate::limits::Counter;
use crate::{AdminKeyId, ApiKeyId, JobId, Micros, OperationId, PersonId, Timestamp, WalletId};

/// Command of an administrator: one change, and all that the trail keeps of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountCommand {
    /// Whoever asks. Authorization was judged before.
    pub actor: ActorId,
    /// Network address of the actor, where there is one. It is kept beside the trail for a while.
    pub address: Option<String>,
    /// Request that it is bound to.
    pub request: RequestBinding,
    /// Reason that the actor gives.
    pub reason: Option<String>,
    /// Bounds on the wallet of a thing that it makes, as its process is configured.
    pub bounds: WalletBounds,
    /// The change.
    pub action: AccountAction,
}

/// Record of a request that was done: its digests, and what it was done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Digest of the request.
    pub digest: [u8; 32],
    /// Canonical digest of the request; `None` if a node of a version without it did the request.
    pub canonical: Option<CanonicalDigest>,
    /// Things that the command made or changed.
    pub things: Vec<Thing>,
    /// Moment of the command.
    pub at: Timestamp,
}

impl RequestRecord {
    /// True if the record is of this request.
    #[must_use]
    pub fn is_of(&self, request: &RequestBinding) -> bool {
        request.is_of(self.digest, self.canonical)
    }
}

/// Change that a command asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountAction {
    /// Make a wallet; its balance is empty, whatever the record says.
    CreateWallet(WalletRecord),
    /// Edit a wallet.
    EditWallet {
        /// The wallet.
        wallet: WalletId,
        /// The edit.
        patch: WalletPatch,
        /// Number of edits that the actor has seen, where that matters.
        expected: Option<u32>,
    },
    /// Stop new runs of a wallet.
    SuspendWallet(WalletId),
    /// Let new runs of a wallet in.
    ResumeWallet(WalletId),
    /// Close an empty wallet, and revoke its API keys with it.
    CloseWallet(WalletId),
    /// Move money that no operation moves.
    Post(NewPosting),
    /// Issue API keys of one wallet, all or none.
    IssueApiKeys {
        /// Wallet that pays.
        wallet: WalletId,
        /// The keys, each with its first credential.
        keys: Vec<(NewApiKey, Credential)>,
        /// True where the actor grants no more than the wallet's `key_spend`.
        is_bounded: bool,
    },
    /// Edit an API key.
    EditApiKey {
        /// The key.
        api_key: ApiKeyId,
        /// Its wallet, within which names are unique.
        wallet: WalletId,
        /// The edit.
        patch: ApiKeyPatch,
        /// Number of edits that the actor has seen, where that matters.
        expected: Option<u32>,
        /// True where the actor grants no more than the wallet's `key_spend`.
        is_bounded: bool,
    },
    /// Stop new runs of an API key.
    SuspendApiKey(ApiKeyId),
    /// Let new runs of an API key in.
    ResumeApiKey(ApiKeyId),
    /// Add a credential to an API key, and end its other ones after a grace.
    RotateApiKey {
        /// The credential, which names its key.
        credential: Credential,
        /// Wallet of the key.
        wallet: WalletId,
        /// Time that the others stay.
        grace: Duration,
        /// True if the actor grants at most the wallet's `key_spend`.
        is_bounded: bool,
    },
    /// End an API key for good.
    RevokeApiKey(ApiKeyId),
    /// Ask for an end of an operation: a trail row alone. The transition is offered after it.
    AskOperation {
        /// The operation.
        operation: OperationId,
        /// Use case that asks.
        use_case: UseCase,
    },
    /// Queue a job.
    StartJob {
        /// The job.
        job: JobId,
        /// Name of its kind.
        kind: &'static str,
        /// What it starts from, as its actor wrote it.
        since: Option<String>,
    },
    /// Take a queued job back.
    CancelJob(JobId),
    /// Take absurd costs out of the sums of usage: a trail row alone. The sums are corrected after it.
    ExcludeCosts {
        /// First of the operations, which the row is about.
        first: OperationId,
        /// Number of them.
        operations: u64,
    },
    /// Note a read of a wallet, or by the actor's own identity of all wallets: an audit row only.
    NoteRead(UseCase, Thing),
    /// Note failed sign-ins of one address group within an hour: an audit row only.
    NoteFailedSignIns {
        /// Person of the e-mail address, if one with a password has it.
        person: Option<PersonId>,
        /// Number of the failures.
        attempts: u64,
    },
    /// Issue an admin key with its first credential.
    IssueAdminKey(AdminKey, AdminCredential),
    /// Add a credential to an admin key, and end its other ones after a grace.
    RotateAdminKey {
        /// The credential, which names its key.
        credential: AdminCredential,
        /// Time that the others stay.
        grace: Duration,
    },
    /// End an admin key for good.
    RevokeAdminKey(AdminKeyId),
    /// Change a person.
    Person(PersonAction),
    /// Change a webhook.
    Webhook(WebhookAction),
}

impl AccountAction {
    /// Thing that the action makes, whose id nobody else has chosen; `None` for all other actions.
    #[must_use]
    pub fn made(&self) -> Option<Thing> {
        match self {
            Self::CreateWallet(record) => Some(Thing::Wallet(record.wallet.id)),
            Self::IssueApiKeys { keys, .. } => keys.first().map(|(key, _)| Thing::ApiKey(key.id)),
            Self::IssueAdminKey(key, _) => Some(Thing::AdminKey(key.id)),
            Self::Person(action) => action.made().map(Thing::Person),
            Self::Webhook(action) => action.made().map(Thing::Webhook),
            Self::StartJob { job, .. } => Some(Thing::Job(*job)),
            Self::EditWallet { .. }
            | Self::SuspendWallet(_)
            | Self::ResumeWallet(_)
            | Self::CloseWallet(_)
            | Self::Post(_)
            | Self::EditApiKey { .. }
            | Self::SuspendApiKey(_)
            | Self::ResumeApiKey(_)
            | Self::RotateApiKey { .. }
            | Self::RevokeApiKey(_)
            | Self::AskOperation { .. }
            | Self::CancelJob(_)
            | Self::ExcludeCosts { .. }
            | Self::NoteRead(..)
            | Self::NoteFailedSignIns { .. }
            | Self::RotateAdminKey { .. }
            | Self::RevokeAdminKey(_) => None,
        }
    }

    /// True where the action adds a credential to a key that is there, or a link to a person who is.
    #[must_use]
    pub const fn is_rotation(&self) -> bool {
        match self {
            Self::Person(action) => action.is_rotation(),
            Self::RotateApiKey { .. } | Self::RotateAdminKey { .. } => true,
            Self::CreateWallet(_)
            | Self::EditWallet { .. }
            | Self::SuspendWallet(_)
            | Self::ResumeWallet(_)
            | Self::CloseWallet(_)
            | Self::Post(_)
            | Self::IssueApiKeys { .. }
            | Self::EditApiKey { .. }
            | Self::SuspendApiKey(_)
            | Self::ResumeApiKey(_)
            | Self::RevokeApiKey(_)
            | Self::AskOperation { .. }
            | Self::StartJob { .. }
            | Self::CancelJob(_)
            | Self::ExcludeCosts { .. }
            | Self::NoteRead(..)
            | Self::NoteFailedSignIns { .. }
            | Self::IssueAdminKey(..)
            | Self::RevokeAdminKey(_)
            | Self::Webhook(_) => false,
        }
    }

    /// Use case that the action belongs to.
    #[must_use]
    pub const fn use_case(&self) -> UseCase {
        match self {
            Self::CreateWallet(_) => UseCase::WalletCreate,
            Self::EditWallet { .. } => UseCase::WalletUpdate,
            Self::SuspendWallet(_) => UseCase::WalletSuspend,
            Self::ResumeWallet(_) => UseCase::WalletResume,
            Self::CloseWallet(_) => UseCase::WalletClose,
            Self::Post(new) => match new.posting.kind {
                PostingKind::Deposit => UseCase::PostingDeposit,
                PostingKind::Refund(_) => UseCase::PostingRefund,
                PostingKind::Adjustment(_) => UseCase::PostingAdjust,
            },
            Self::IssueApiKeys { .. } => UseCase::ApiKeyIssue,
            Self::EditApiKey { .. } => UseCase::ApiKeyUpdate,
            Self::SuspendApiKey(_) => UseCase::ApiKeySuspend,
            Self::ResumeApiKey(_) => UseCase::ApiKeyResume,
            Self::RotateApiKey { .. } => UseCase::ApiKeyRotate,
            Self::RevokeApiKey(_) => UseCase::ApiKeyRevoke,
            Self::AskOperation { use_case, .. } => *use_case,
            Self::StartJob { .. } | Self::CancelJob(_) => UseCase::JobCreate,
            Self::ExcludeCosts { .. } => UseCase::UsageExcludeCosts,
            Self::NoteRead(use_case, _thing) => *use_case,
            Self::NoteFailedSignIns { .. } => UseCase::PersonSignInFailed,
            Self::IssueAdminKey(..) => UseCase::AdminKeyIssue,
            Self::RotateAdminKey { .. } => UseCase::AdminKeyRotate,
            Self::RevokeAdminKey(_) => UseCase::AdminKeyRevoke,
            Self::Person(action) => action.use_case(),
            Self::Webhook(action) => action.use_case(),
        }
    }
}

/// Facts that a command is judged by, read under the locks that keep them so until COMMIT. What the
/// action does not need is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountFacts {
    /// The database's clock, read after the locks.
    pub now: Timestamp,
    /// Wallet of the action: locked.
    pub wallet: Option<WalletRecord>,
    /// API key of the action: locked.
    pub api_key: Option<ApiKey>,
    /// API keys of a wallet that is closed which are not revoked: locked.
    pub api_keys: Vec<ApiKey>,
    /// Admin key of the action.
    pub admin_key: Option<AdminKey>,
    /// Credentials in force of the key that a rotation is of.
    pub credentials: u32,
    /// Resources in force that the wallet of a new thing has of its kind, counted up to their bound.
    pub in_force: u32,
    /// Admin key that is not revoked and has the name of the action's.
    pub namesake: Option<AdminKey>,
    /// Owners in force beside the key or the person of the action: keys, and people with a password.
    pub other_owners: u32,
    /// Those of them that have no end, as no person has.
    pub other_lasting_owners: u32,
    /// Names among those of the action that other things of their kind have.
    pub taken_names: BTreeSet<String>,
    /// External ids among those of the action that other things of their kind have.
    pub taken_external_ids: BTreeSet<String>,
    /// Posting of the action's id.
    pub posting: Option<KnownPosting>,
    /// Deposit of the action's reference.
    pub referenced: Option<Posting>,
    /// Operation of a refund.
    pub operation: Option<RefundableOperation>,
    /// Sum of the actor's refunds of this UTC day, in the currency of the wallet.
    pub refunded_today: Micros,
    /// Person of the action, and what counts for them.
    pub person: PersonFacts,
    /// Webhook of the action, and what counts for it.
    pub webhook: WebhookFacts,
    /// Job of the actor that has not ended.
    pub pending_job: Option<JobId>,
    /// State of the job of the action: locked.
    pub job: Option<JobState>,
}

impl AccountFacts {
    /// Facts of an empty book.
    #[must_use]
    pub const fn at(now: Timestamp) -> Self {
        Self {
            now,
            wallet: None,
            api_key: None,
            api_keys: Vec::new(),
            admin_key: None,
            credentials: 0,
            in_force: 0,
            namesake: None,
            other_owners: 0,
            other_lasting_owners: 0,
            taken_names: BTreeSet::new(),
            taken_external_ids: BTreeSet::new(),
            posting: None,
            referenced: None,
            operation: None,
            refunded_today: Micros::ZERO,
            person: PersonFacts::NONE,
            webhook: WebhookFacts::NONE,
            pending_job: None,
            job: None,
        }
    }
}

/// Effect of a command: writes, and a row of the trail for each thing that they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountEffect {
    /// Rows to be written, in this order.
    pub writes: Vec<AccountWrite>,
    /// Things that the command is about, each with what changed of it.
    pub entries: Vec<(Thing, Vec<FieldChange>)>,
    /// Things that changed with them and have rows of the trail as well; no answer names them, as
    /// they may be many.
    pub also: Vec<(Thing, Vec<FieldChange>)>,
    /// True where an earlier command had done it, by another request or another door.
    pub was_done: bool,
}

impl AccountEffect {
    /// Effect on one thing.
    pub(crate) fn done(writes: Vec<AccountWrite>, thing: Thing, changes: Vec<FieldChange>) -> Self {
        Self { writes, entries: vec![(thing, changes)], also: Vec::new(), was_done: false }
    }

    /// Effect of what an earlier command did: none.
    pub(crate) fn already_done(thing: Thing) -> Self {
        Self { was_done: true, ..Self::done(Vec::new(), thing, Vec::new()) }
    }
}

/// Write of one row, or of rows that are told apart by one id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountWrite {
    /// A new wallet, with nothing on it.
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
    /// Things that it made or changed.
    pub things: Vec<Thing>,
    /// Moment at which it was done.
    pub at: Timestamp,
    /// True where an earlier request did it: nothing was changed now, and no secret of this command
    /// is kept.
    pub replayed: bool,
}
