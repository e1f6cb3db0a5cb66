//! Commands of administration in memory: wallets, API keys and postings.
//!
//! Facts, judgement and writes under one lock, as a store has them in one transaction. The judgement is
//! [`decide`]'s; an id that is taken fails as the unique index of a database would. There is no trail, and an action
//! that no law needs is not done.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::admin::ports::CommandError;
use holdfast_domain::admin::{
    AccountAction, AccountFacts, AccountReceipt, AccountWrite, KnownPosting, NewPosting,
    PostingDetails, RefundableOperation, WalletRecord, decide,
};
use holdfast_domain::credential::ApiKey;
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::operation::Phase;
use holdfast_domain::{ApiKeyId, OperationId, Timestamp, WalletId};

use super::judge::refunds;
use super::{JournalState, MemoryJournal};
use crate::commands::{CommandResult, Commands, command, empty_wallet};
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
        let Some(facts) = state.facts(&action, now) else {
            return Err(unwritten("this action is of no law"));
        };
        let effect = decide(&command(action), &facts)?;
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

impl JournalState {
    /// Facts of an action; `None` for one that is not done here.
    fn facts(&self, action: &AccountAction, now: Timestamp) -> Option<AccountFacts> {
        let mut facts = AccountFacts::at(now);
        match action {
            AccountAction::CreateWallet(record) => {
                let others = self.wallets.iter().filter(|it| it.id != record.wallet.id);
                facts.taken_names = others.map(|it| it.name.clone()).collect();
            }
            AccountAction::Post(new) => {
                facts.wallet = self.record(new.posting.wallet);
                facts.posting = self.known_posting(new);
                if let PostingKind::Refund(operation) = new.posting.kind {
                    facts.operation = self.refundable(operation);
                }
            }
            AccountAction::IssueApiKeys { wallet, .. } => {
                facts.wallet = self.record(*wallet);
                facts.taken_names = self.names_of_keys(*wallet);
            }
            AccountAction::EditApiKey { api_key, .. } | AccountAction::RevokeApiKey(api_key) => {
                facts.api_key = self.api_key(*api_key).cloned();
            }
            AccountAction::RotateApiKey { credential, .. } => {
                facts.api_key = self.api_key(credential.api_key).cloned();
            }
            AccountAction::EditWallet { .. }
            | AccountAction::SuspendWallet(_)
            | AccountAction::ResumeWallet(_)
            | AccountAction::CloseWallet(_)
            | AccountAction::SuspendApiKey(_)
            | AccountAction::ResumeApiKey(_)
            | AccountAction::AskOperation { .. }
            | AccountAction::StartJob { .. }
            | AccountAction::CancelJob(_)
            | AccountAction::ExcludeCosts { .. }
            | AccountAction::NoteRead(..)
            | AccountAction::NoteFailedSignIns { .. }
            | AccountAction::IssueAdminKey(..)
            | AccountAction::RotateAdminKey { .. }
            | AccountAction::RevokeAdminKey(_)
            | AccountAction::Person(_)
            | AccountAction::Webhook(_) => return None,
        }
        Some(facts)
    }

    fn record(&self, id: WalletId) -> Option<WalletRecord> {
        let wallet = self.wallet(id)?.clone();
        Some(WalletRecord { wallet, ..empty_wallet(id, "", crate::sample::usd()) })
    }

    fn api_key(&self, id: ApiKeyId) -> Option<&ApiKey> {
        self.api_keys.iter().find(|key| key.id == id)
    }

    fn names_of_keys(&self, wallet: WalletId) -> BTreeSet<String> {
        let keys = self.api_keys.iter().filter(|key| key.wallet == wallet);
        keys.map(|key| key.name.clone()).collect()
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

    /// Reason why a table would refuse a row: its id is taken, or it is a posting of nothing.
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
                row.into_iter().for_each(|row| *row = after.clone());
            }
            AccountWrite::InsertCredential(new, _) => {
                self.credentials.insert(new.id, new);
            }
            AccountWrite::EndCredentials(api_key, at) => self.end_credentials(api_key, at),
            AccountWrite::SeedCounters(api_key, counters, now) => {
                let wallet = self.api_key(api_key).map(|key| key.wallet);
                if let Some(wallet) = wallet {
                    let revision = self.limits_revisions.entry(wallet).or_insert(0);
                    *revision = revision.saturating_add(1);
                }
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
