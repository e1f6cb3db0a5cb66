//! Commands of administration in memory: wallets, API keys and postings.
//!
//! Facts, judgement and writes under one lock, as a store has them in one transaction. The judgement is
//! [`decide`]'s; an id that is taken fails as the unique index of a database would. There is no trail, and an action
//! that no law needs is not done.
//!
//! The future of the judgement is polled once, under the lock: a fact in memory is never awaited. Never: a fact that
//! is made up. One that no law needs is an error, so that a law on top of it fails.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::admin::job::JobState;
use holdfast_domain::admin::ports::CommandError;
use holdfast_domain::admin::{
    AccountAction, AccountEffect, AccountReceipt, AccountRefusal, AccountWrite, ActorId, AdminKey,
    Authority, Count, EmailAddress, Facts, FoundPerson, KnownPosting, NameScope, Names, NewPosting,
    Owners, PersonBy, PostingDetails, RefundableOperation, Rejection, TakenNames, WalletPatch,
    WalletRecord, WebhookRecord, decide,
};
use holdfast_domain::credential::ApiKey;
use holdfast_domain::ledger::Posting;
use holdfast_domain::operation::Phase;
use holdfast_domain::{
    AdminKeyId, ApiKeyId, JobId, Micros, OperationId, PersonId, Timestamp, WalletId, WebhookId,
};

use super::judge::refunds;
use super::{JournalState, MemoryJournal};
use crate::commands::{CommandResult, Commands, command};
use crate::join::step_back;

/// Reason why a row of the fake is not written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unwritten(&'static str);

#[async_trait]
impl Commands for MemoryJournal {
    async fn administer(&self, action: AccountAction) -> CommandResult {
        step_back().await;
        let mut state = self.state();
        let now = state.tick();
        let effect = JournalFacts { state: &state, now }.judge(action)?;
        // All of them before the first is written.
        if let Some(taken) = effect.writes.iter().find_map(|write| state.is_refused(write)) {
            return Err(unwritten(taken));
        }
        for write in effect.writes {
            state.write_of_command(write);
        }
        let things = effect.entries.into_iter().map(|(thing, _changes)| thing).collect();
        Ok(AccountReceipt { things, at: now, replayed: effect.was_done })
    }

    fn turn(&self, span: Duration) -> bool {
        self.advance(span);
        true
    }
}

fn unwritten(why: &'static str) -> CommandError {
    CommandError::Unavailable(Box::new(Unwritten(why)))
}

/// Failure of a judgement.
#[derive(Debug)]
struct JudgementError(CommandError);

impl From<AccountRefusal> for JudgementError {
    fn from(refusal: AccountRefusal) -> Self {
        Self(refusal.into())
    }
}

impl From<Rejection> for JudgementError {
    fn from(rejection: Rejection) -> Self {
        rejection.refusal.into()
    }
}

/// Facts of the journal at a moment. A fact that no law needs cannot be read.
struct JournalFacts<'s> {
    state: &'s JournalState,
    now: Timestamp,
}

impl JournalFacts<'_> {
    /// Judges an action without waiting: every fact is in memory.
    fn judge(mut self, action: AccountAction) -> Result<AccountEffect, CommandError> {
        let command = command(action);
        let judgement = pin!(decide(&command, &mut self));
        match judgement.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(judged) => judged.map_err(|JudgementError(error)| error),
            Poll::Pending => Err(unwritten("a fact was waited for")),
        }
    }
}

fn missing<T>() -> Result<T, JudgementError> {
    Err(JudgementError(unwritten("this fact is of no law")))
}

impl Facts for JournalFacts<'_> {
    type Error = JudgementError;

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn wallet(&mut self, id: WalletId) -> Result<Option<WalletRecord>, JudgementError> {
        Ok(self.state.record(id))
    }

    async fn taken(
        &mut self,
        scope: NameScope,
        _among: Names<'_>,
    ) -> Result<TakenNames, JudgementError> {
        let names = match scope {
            NameScope::Wallets(but) => {
                let others = self.state.wallets.iter().filter(|it| it.id != but);
                others.map(|it| it.name.clone()).collect()
            }
            NameScope::ApiKeys(wallet, but) => {
                let others = self.state.api_keys.iter().filter(|it| Some(it.id) != but);
                others.filter(|key| key.wallet == wallet).map(|key| key.name.clone()).collect()
            }
        };
        Ok(TakenNames { names, ..TakenNames::default() })
    }

    async fn api_key(&mut self, id: ApiKeyId) -> Result<Option<ApiKey>, JudgementError> {
        Ok(self.state.api_key(id).cloned())
    }

    async fn api_keys_of(&mut self, _wallet: WalletId) -> Result<Vec<ApiKey>, JudgementError> {
        missing()
    }

    async fn admin_key(&mut self, _id: AdminKeyId) -> Result<Option<AdminKey>, JudgementError> {
        missing()
    }

    async fn namesake(&mut self, _name: &str) -> Result<Option<AdminKey>, JudgementError> {
        missing()
    }

    async fn owners(&mut self, _but: (AdminKeyId, PersonId)) -> Result<Owners, JudgementError> {
        missing()
    }

    async fn posting(&mut self, new: &NewPosting) -> Result<Option<KnownPosting>, JudgementError> {
        Ok(self.state.known_posting(new))
    }

    async fn referenced(&mut self, _new: &NewPosting) -> Result<Option<Posting>, JudgementError> {
        // No law gives a deposit a reference.
        Ok(None)
    }

    async fn refundable(
        &mut self,
        id: OperationId,
    ) -> Result<Option<RefundableOperation>, JudgementError> {
        Ok(self.state.refundable(id))
    }

    async fn refunded_today(&mut self, _wallet: WalletId) -> Result<Micros, JudgementError> {
        missing()
    }

    async fn person(&mut self, _of: PersonBy<'_>) -> Result<Option<FoundPerson>, JudgementError> {
        missing()
    }

    async fn has_email(
        &mut self,
        _email: &EmailAddress,
        _but: PersonId,
    ) -> Result<bool, JudgementError> {
        missing()
    }

    async fn authorities(&mut self, _actor: ActorId) -> Result<Vec<Authority>, JudgementError> {
        missing()
    }

    async fn webhook(&mut self, _id: WebhookId) -> Result<Option<WebhookRecord>, JudgementError> {
        missing()
    }

    async fn pending_job(&mut self) -> Result<Option<JobId>, JudgementError> {
        missing()
    }

    async fn job(&mut self, _id: JobId) -> Result<Option<JobState>, JudgementError> {
        missing()
    }

    async fn unknown_until(&mut self) -> Result<Option<Timestamp>, JudgementError> {
        missing()
    }

    async fn count(&mut self, of: Count<'_>) -> Result<u32, JudgementError> {
        match of {
            // No law comes near a bound.
            Count::ApiKeys(..) | Count::Credentials(_) => Ok(0),
            Count::AdminKeys(..)
            | Count::People(..)
            | Count::AdminCredentials(_)
            | Count::WebhooksOf(..)
            | Count::WebhooksBeside(_)
            | Count::RecentTests(_)
            | Count::Deliveries(..) => missing(),
        }
    }
}

impl JournalState {
    fn record(&self, id: WalletId) -> Option<WalletRecord> {
        let wallet = self.wallet(id)?.clone();
        Some(WalletRecord {
            wallet,
            ..WalletRecord::new(id, String::new(), crate::sample::usd(), WalletPatch::default())
        })
    }

    fn api_key(&self, id: ApiKeyId) -> Option<&ApiKey> {
        self.api_keys.iter().find(|key| key.id == id)
    }

    fn known_posting(&self, new: &NewPosting) -> Option<KnownPosting> {
        let posting = self.postings.get(&new.posting.id)?.clone();
        Some(KnownPosting { posting, details: Some(PostingDetails::default()) })
    }

    fn refundable(&self, id: OperationId) -> Option<RefundableOperation> {
        let row = &self.operations.get(&id)?.operation;
        let charge = match &row.phase {
            Phase::Completed { usage, .. } => Some(usage.charge),
            Phase::Leased
            | Phase::Recorded(_)
            | Phase::Open
            | Phase::Refused { .. }
            | Phase::Abandoned { .. } => None,
        };
        Some(RefundableOperation { wallet: row.wallet, charge, refunded: refunds(self, id) })
    }

    /// Reason why a table would refuse a row: its id is taken, or it is a posting of zero.
    fn is_refused(&self, write: &AccountWrite) -> Option<&'static str> {
        let (is_refused, why) = match write {
            AccountWrite::InsertWallet(new) => {
                (self.wallet(new.wallet.id).is_some(), "the id of the wallet is taken")
            }
            AccountWrite::InsertApiKey(new) => {
                (self.api_key(new.id).is_some(), "the id of the API key is taken")
            }
            AccountWrite::InsertCredential(new, _) => {
                (self.credentials.contains_key(&new.id), "the id of the credential is taken")
            }
            AccountWrite::InsertPosting(NewPosting { posting, .. }, _) => {
                (!posting.kind.allows(posting.amount), "a posting moves something")
            }
            AccountWrite::UpdateWallet(_)
            | AccountWrite::SetAvailable(..)
            | AccountWrite::UpdateApiKey(_)
            | AccountWrite::SeedCounters(..)
            | AccountWrite::RevokeApiKeysOf(..)
            | AccountWrite::EndCredentials(..)
            | AccountWrite::InsertAdminKey(_)
            | AccountWrite::UpdateAdminKey(_)
            | AccountWrite::InsertAdminCredential(..)
            | AccountWrite::EndAdminCredentials(..)
            | AccountWrite::Person(_)
            | AccountWrite::Webhook(_)
            | AccountWrite::QueueJob(..)
            | AccountWrite::CancelJob(..) => return None,
        };
        is_refused.then_some(why)
    }

    fn write_of_command(&mut self, write: AccountWrite) {
        match write {
            AccountWrite::InsertWallet(new) => self.wallets.push(new.wallet),
            AccountWrite::InsertPosting(new, at) => self.write_posting(&new.posting, at),
            AccountWrite::InsertApiKey(new) => self.api_keys.push(new),
            AccountWrite::UpdateApiKey(after) => {
                let row = self.api_keys.iter_mut().find(|key| key.id == after.id);
                if let Some(row) = row {
                    let standing = |key: &ApiKey| (key.suspended_at, key.revoked_at);
                    if row.edited != after.edited && standing(row) == standing(&after) {
                        let revision = self.limits_revisions.entry(row.wallet).or_insert(0);
                        *revision = revision.saturating_add(1);
                    }
                    *row = after;
                }
            }
            AccountWrite::InsertCredential(new, _) => {
                self.credentials.insert(new.id, new);
            }
            AccountWrite::EndCredentials(api_key, at) => self.end_credentials(api_key, at),
            AccountWrite::SeedCounters(api_key, counters, now) => {
                counters.into_iter().for_each(|counter| self.seed(api_key, counter, now));
            }
            // The posting itself moves the amount; the others are of actions that are not done here.
            AccountWrite::SetAvailable(..)
            | AccountWrite::UpdateWallet(_)
            | AccountWrite::RevokeApiKeysOf(..)
            | AccountWrite::InsertAdminKey(_)
            | AccountWrite::UpdateAdminKey(_)
            | AccountWrite::InsertAdminCredential(..)
            | AccountWrite::EndAdminCredentials(..)
            | AccountWrite::Person(_)
            | AccountWrite::Webhook(_)
            | AccountWrite::QueueJob(..)
            | AccountWrite::CancelJob(..) => {}
        }
    }
}
