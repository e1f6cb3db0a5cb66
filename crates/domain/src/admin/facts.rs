//! Facts that a command is judged by, read by kind.
//!
//! A judgement reads each fact before it uses it, and has no other way to one. A store reads under the locks that keep
//! a fact true until COMMIT: the latest audit checksum is locked before the first, so no other command changes what
//! was read, and a wallet or an API key is locked as it is read, because batches move balances.

use std::collections::BTreeSet;

use super::job_state::JobState;
use super::{
    AccountRefusal, ActorId, AdminKey, Authority, EmailAddress, KnownPosting, NewPosting,
    PasswordHash, PersonRecord, RefundableOperation, Rejection, WalletRecord, WebhookRecord,
};
use crate::credential::ApiKey;
use crate::ledger::Posting;
use crate::{
    AdminKeyId, ApiKeyId, EventId, JobId, Micros, OperationId, PersonId, Timestamp, WalletId,
    WebhookId,
};

/// Reader of facts.
#[expect(async_fn_in_trait, reason = "a transaction of SQLite stays on its thread: no Send")]
pub trait Facts {
    /// Failure of a judgement: a refusal, or a fact that could not be read.
    type Error: From<AccountRefusal> + From<Rejection>;

    /// The database's clock, read after the locks.
    fn now(&self) -> Timestamp;

    /// A wallet: locked.
    async fn wallet(&mut self, id: WalletId) -> Result<Option<WalletRecord>, Self::Error>;

    /// Names and external ids, of these, that other resources of the scope have.
    async fn taken(
        &mut self,
        scope: NameScope,
        among: Names<'_>,
    ) -> Result<TakenNames, Self::Error>;

    /// An API key: locked.
    async fn api_key(&mut self, id: ApiKeyId) -> Result<Option<ApiKey>, Self::Error>;

    /// API keys of a wallet that are not revoked: locked.
    async fn api_keys_of(&mut self, wallet: WalletId) -> Result<Vec<ApiKey>, Self::Error>;

    /// An admin key.
    async fn admin_key(&mut self, id: AdminKeyId) -> Result<Option<AdminKey>, Self::Error>;

    /// The admin key of a name that is not revoked.
    async fn namesake(&mut self, name: &str) -> Result<Option<AdminKey>, Self::Error>;

    /// Owners in force other than this key and this person.
    async fn owners(&mut self, but: (AdminKeyId, PersonId)) -> Result<Owners, Self::Error>;

    /// The posting of the id of a new one.
    async fn posting(&mut self, new: &NewPosting) -> Result<Option<KnownPosting>, Self::Error>;

    /// The deposit that has the reference of a new posting.
    async fn referenced(&mut self, new: &NewPosting) -> Result<Option<Posting>, Self::Error>;

    /// The operation of a refund, with what is left to refund.
    async fn refundable(
        &mut self,
        id: OperationId,
    ) -> Result<Option<RefundableOperation>, Self::Error>;

    /// Sum of the actor's refunds of this UTC day, in the currency of the wallet.
    async fn refunded_today(&mut self, wallet: WalletId) -> Result<Micros, Self::Error>;

    /// A person, locked, with their password.
    async fn person(&mut self, of: PersonBy<'_>) -> Result<Option<FoundPerson>, Self::Error>;

    /// True if another person who has not ended has the address.
    async fn has_email(&mut self, email: &EmailAddress, but: PersonId)
    -> Result<bool, Self::Error>;

    /// Current authorities of an actor: none if it has ended.
    async fn authorities(&mut self, actor: ActorId) -> Result<Vec<Authority>, Self::Error>;

    /// A webhook: locked.
    async fn webhook(&mut self, id: WebhookId) -> Result<Option<WebhookRecord>, Self::Error>;

    /// The job of the actor that has not ended.
    async fn pending_job(&mut self) -> Result<Option<JobId>, Self::Error>;

    /// State of a job: locked.
    async fn job(&mut self, id: JobId) -> Result<Option<JobState>, Self::Error>;

    /// End of the window of a restore, if one is open: requests may be lost that were done before it.
    async fn unknown_until(&mut self) -> Result<Option<Timestamp>, Self::Error>;

    /// A count.
    async fn count(&mut self, of: Count<'_>) -> Result<u32, Self::Error>;
}

/// A person as a read finds them, and the password.
pub type FoundPerson = (PersonRecord, Option<PasswordHash>);

/// Names, then external ids.
pub type Names<'a> = [Vec<&'a String>; 2];

/// Resources among which a name is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameScope {
    /// Wallets other than this one.
    Wallets(WalletId),
    /// API keys of a wallet other than this one.
    ApiKeys(WalletId, Option<ApiKeyId>),
}

/// Selector of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonBy<'a> {
    /// By id.
    Id(PersonId),
    /// By the address of a person who has not ended.
    Email(&'a EmailAddress),
    /// The first owner, who has no address yet.
    Unnamed,
}

/// Count that a bound is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count<'a> {
    /// API keys in force of a wallet, at most so many.
    ApiKeys(WalletId, u32),
    /// Admin keys in force of a wallet, at most so many.
    AdminKeys(WalletId, u32),
    /// People and invitations of a wallet other than the person of an address, at most one more than so many.
    People(WalletId, &'a EmailAddress, u32),
    /// Credentials in force of an API key.
    Credentials(ApiKeyId),
    /// Credentials in force of an admin key.
    AdminCredentials(AdminKeyId),
    /// Webhooks in force of an owner, other than this one.
    WebhooksOf(Option<WalletId>, WebhookId),
    /// Webhooks in force of the owner of this one, other than it.
    WebhooksBeside(WebhookId),
    /// Tests of a webhook within the last minute.
    RecentTests(WebhookId),
    /// Deliveries of an event to a webhook.
    Deliveries(WebhookId, EventId),
}

/// Owners in force: keys, and people with a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owners {
    /// All of them.
    pub all: u32,
    /// Owners without an end, as every person is.
    pub lasting: u32,
}

/// Names and external ids that resources have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TakenNames {
    /// Names.
    pub names: BTreeSet<String>,
    /// External ids.
    pub external_ids: BTreeSet<String>,
}

impl TakenNames {
    /// Refuses a name or an external id, in this order, that is taken.
    pub(super) fn refuse(
        &self,
        [name, external_id]: [Option<&String>; 2],
    ) -> Result<(), AccountRefusal> {
        if let Some(name) = name.filter(|name| self.names.contains(*name)) {
            return Err(AccountRefusal::NameTaken(name.clone()));
        }
        if let Some(id) = external_id.filter(|id| self.external_ids.contains(*id)) {
            return Err(AccountRefusal::ExternalIdTaken(id.clone()));
        }
        Ok(())
    }
}
