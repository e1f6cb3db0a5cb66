//! Facts of a book in memory, for the tables of the families.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::decide;
use crate::admin::facts::{
    Count, Facts, FoundPerson, NameScope, Names, Owners, PersonBy, TakenNames,
};
use crate::admin::job_state::JobState;
use crate::admin::{
    AccountCommand, AccountEffect, AccountRefusal, ActorId, AdminKey, Authority, EmailAddress,
    KnownPosting, NewPosting, PasswordHash, PersonRecord, RefundableOperation, Rejection,
    WalletRecord, WebhookRecord,
};
use crate::credential::ApiKey;
use crate::ledger::Posting;
use crate::{
    AdminKeyId, ApiKeyId, JobId, Micros, OperationId, PersonId, Timestamp, WalletId, WebhookId,
};

/// Facts of a book with at most one resource of a kind.
#[derive(Debug, Clone)]
pub(super) struct Book {
    pub(super) now: Timestamp,
    pub(super) api_key: Option<ApiKey>,
    pub(super) person: Option<PersonRecord>,
    pub(super) password: Option<PasswordHash>,
    pub(super) is_email_taken: bool,
    pub(super) maker: Vec<Authority>,
    pub(super) owners: Owners,
}

impl Book {
    /// An empty book.
    pub(super) fn at(now: Timestamp) -> Self {
        Self {
            now,
            api_key: None,
            person: None,
            password: None,
            is_email_taken: false,
            maker: Vec::new(),
            owners: Owners::default(),
        }
    }
}

/// Judges a command by these facts.
pub(super) fn judged(
    command: &AccountCommand,
    facts: &Book,
) -> Result<AccountEffect, AccountRefusal> {
    let mut facts = facts.clone();
    let mut judgement = pin!(decide(command, &mut facts));
    // Nothing is waited for.
    let polled = judgement.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let ready = if let Poll::Ready(judged) = polled { Some(judged) } else { None };
    ready.unwrap().map_err(|refused| refused.refusal)
}

impl Facts for Book {
    type Error = Rejection;

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn wallet(&mut self, _id: WalletId) -> Result<Option<WalletRecord>, Rejection> {
        Ok(None)
    }

    async fn taken(
        &mut self,
        _scope: NameScope,
        _among: Names<'_>,
    ) -> Result<TakenNames, Rejection> {
        Ok(TakenNames::default())
    }

    async fn api_key(&mut self, _id: ApiKeyId) -> Result<Option<ApiKey>, Rejection> {
        Ok(self.api_key.clone())
    }

    async fn api_keys_of(&mut self, _wallet: WalletId) -> Result<Vec<ApiKey>, Rejection> {
        Ok(Vec::new())
    }

    async fn admin_key(&mut self, _id: AdminKeyId) -> Result<Option<AdminKey>, Rejection> {
        Ok(None)
    }

    async fn namesake(&mut self, _name: &str) -> Result<Option<AdminKey>, Rejection> {
        Ok(None)
    }

    async fn owners(&mut self, _but: (AdminKeyId, PersonId)) -> Result<Owners, Rejection> {
        Ok(self.owners)
    }

    async fn posting(&mut self, _new: &NewPosting) -> Result<Option<KnownPosting>, Rejection> {
        Ok(None)
    }

    async fn referenced(&mut self, _new: &NewPosting) -> Result<Option<Posting>, Rejection> {
        Ok(None)
    }

    async fn refundable(
        &mut self,
        _id: OperationId,
    ) -> Result<Option<RefundableOperation>, Rejection> {
        Ok(None)
    }

    async fn refunded_today(&mut self, _wallet: WalletId) -> Result<Micros, Rejection> {
        Ok(Micros::ZERO)
    }

    async fn person(&mut self, _of: PersonBy<'_>) -> Result<Option<FoundPerson>, Rejection> {
        Ok(self.person.clone().map(|record| (record, self.password.clone())))
    }

    async fn has_email(
        &mut self,
        _email: &EmailAddress,
        _but: PersonId,
    ) -> Result<bool, Rejection> {
        Ok(self.is_email_taken)
    }

    async fn authorities(&mut self, _actor: ActorId) -> Result<Vec<Authority>, Rejection> {
        Ok(self.maker.clone())
    }

    async fn webhook(&mut self, _id: WebhookId) -> Result<Option<WebhookRecord>, Rejection> {
        Ok(None)
    }

    async fn pending_job(&mut self) -> Result<Option<JobId>, Rejection> {
        Ok(None)
    }

    async fn job(&mut self, _id: JobId) -> Result<Option<JobState>, Rejection> {
        Ok(None)
    }

    async fn unknown_until(&mut self) -> Result<Option<Timestamp>, Rejection> {
        Ok(None)
    }

    async fn count(&mut self, _of: Count<'_>) -> Result<u32, Rejection> {
        Ok(0)
    }
}
