//! A tenant to run operations for: a wallet with funds, an API key, a price and a live node, created through
//! the ports, and the few queries of every law.
//!
//! All names and ids are fresh, so that no law needs another's rows. [`Tenant::step`] is the work of most laws:
//! it commits a judged event and compares row, result, wallet and ledger with the change. A law that only reads
//! what it wrote would not see other writes of a store.
//!
//! # Panics
//!
//! A tenant panics if a port fails, or if a store writes other rows than a change predicts.
//!
//! ```
//! use holdfast_testkit::MemoryJournal;
//! use holdfast_testkit::laws::tenant::{Tenant, finish};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // A law of one's own: an operation of 30 micros, and what it leaves of the wallet.
//! let journal = MemoryJournal::new();
//! let tenant = Tenant::new(&journal, 1_000).await;
//! let operation = tenant.admit(&tenant.claim().hold(100).build()).await;
//! assert_eq!(tenant.balances().await, (900, 100));
//! tenant.step(operation.id, finish(&operation, 20, 10)).await;
//! assert_eq!(tenant.balances().await, (970, 0));
//! # }
//! ```
#![expect(clippy::unwrap_used, reason = "a law that fails panics")]

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::admin::AccountRefusal;
use holdfast_domain::admin::ports::CommandError;
use holdfast_domain::credential::{Credential, Grant};
use holdfast_domain::ledger::{Account, Posting, PostingKind};
use holdfast_domain::operation::{
    Claim, Finish, Lease, Operation, Receipt, SealedResult, Snapshot, Transition,
};
use holdfast_domain::ports::{CommitError, HeartbeatOutcome, LeaseMode, LedgerEntry, NewApiKey};
use holdfast_domain::secret::{ServerSecretId, Verifier};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{
    ApiKeyId, CredentialId, Event, Incarnation, Micros, NodeName, OperationId, PostingId, WalletId,
    decide,
};
use uuid::Uuid;

use super::Stores;
use crate::sample::{self, ClaimBuilder};

/// Customer of a store.
pub struct Tenant<'a> {
    /// Stores that keep it.
    pub stores: &'a dyn Stores,
    /// Wallet that pays.
    pub wallet: WalletId,
    /// API key of the operations.
    pub api_key: ApiKeyId,
    /// Credential of that API key, if the store keeps them.
    pub credential: CredentialId,
    /// The row of the node that runs them.
    pub lease: Lease,
}

impl std::fmt::Debug for Tenant<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tenant({}, {})", self.wallet, self.api_key)
    }
}

impl<'a> Tenant<'a> {
    /// A new one, with this much available.
    pub async fn new(stores: &'a dyn Stores, funds: i64) -> Self {
        let name = Uuid::new_v4().simple().to_string();
        let wallet: WalletId = sample::fresh();
        let wallet_name = format!("wallet-{name}");
        stores.commands().create_wallet(wallet, &wallet_name, sample::usd()).await.unwrap();
        if let Some(prices) = stores.prices() {
            // Pinned as a gateway does at its start: most claims meet a price that is known.
            prices.pin(&[sample::price()]).await.unwrap();
        }
        let node = holdfast_domain::operation::Node {
            name: NodeName::try_from(name.as_str()).unwrap(),
            incarnation: sample::fresh::<Incarnation>(),
        };
        let beat = stores.nodes().heartbeat(&node, sample::LEASE, LeaseMode::Take).await.unwrap();
        let HeartbeatOutcome::Held { lease, .. } = beat else { unreachable_beat(&beat) };
        let (api_key, credential) = (sample::fresh(), sample::fresh());
        let mut tenant = Self { stores, wallet, api_key, credential, lease };
        (tenant.api_key, tenant.credential) = tenant.issue().await;
        // A deposit of zero is no posting.
        if funds > 0 {
            tenant.post(PostingKind::Deposit, funds).await.unwrap();
        }
        tenant
    }

    /// Another API key of the wallet, known if the store keeps them.
    pub async fn another_api_key(&self) -> ApiKeyId {
        self.issue().await.0
    }

    /// Another API key of the wallet, which is past its end.
    pub async fn ended_api_key(&self) -> ApiKeyId {
        let mut span = Duration::from_millis(20);
        loop {
            let ends_at = self.stores.journal().clock().await.unwrap().after(span);
            let id: ApiKeyId = sample::fresh();
            let new = NewApiKey {
                id,
                wallet: self.wallet,
                name: format!("ended-{}", Uuid::new_v4().simple()),
                external_id: None,
                grant: Grant { ends_at: Some(ends_at), ..Grant::default() },
            };
            let Err(refused) = self.stores.commands().issue(&new, &credential(id)).await else {
                let _is_turned = self.stores.commands().turn(span);
                // If the clock cannot be turned, until it has passed.
                while self.stores.journal().clock().await.unwrap() < ends_at {}
                return id;
            };
            assert!(
                matches!(refused, CommandError::Refused(AccountRefusal::EndPassed)),
                "{refused:?}"
            );
            // A slow store: its clock has passed the end before the command was judged.
            span = span.saturating_mul(2);
        }
    }

    async fn issue(&self) -> (ApiKeyId, CredentialId) {
        let id: ApiKeyId = sample::fresh();
        // Of the key's bytes, so that endings can seal for it.
        let credential_id = CredentialId::from_bytes(id.to_bytes());
        let credential = Credential { id: credential_id, ..credential(id) };
        if self.stores.keys().is_some() {
            let name = format!("key-{}", Uuid::new_v4().simple());
            let new = NewApiKey {
                id,
                wallet: self.wallet,
                name,
                external_id: None,
                grant: Grant::default(),
            };
            self.stores.commands().issue(&new, &credential).await.unwrap();
        }
        (id, credential.id)
    }

    /// A claim for a new operation by a new task.
    pub fn claim(&self) -> ClaimBuilder {
        sample::claim()
            .api_key(self.api_key)
            .wallet(self.wallet)
            .lease(self.lease.clone())
            .request_key(sample::fresh_request_key())
            .claim_id(sample::fresh())
    }

    /// Claims and expects to get it.
    pub async fn admit(&self, claim: &Claim) -> Operation {
        let change = sample::admission(claim);
        let receipt = self.stores.journal().commit(Arc::clone(&change)).await.unwrap();
        operation_change(&change).apply(None, receipt).unwrap()
    }

    /// Offers a claim over no row.
    pub async fn offer(&self, claim: &Claim) -> Result<Receipt, CommitError> {
        self.stores.journal().commit(sample::admission(claim)).await
    }

    /// Judges an event over the row as it stands and offers what follows.
    pub async fn offer_event(
        &self,
        operation: OperationId,
        event: Event,
    ) -> Result<Receipt, CommitError> {
        let snapshot = self.load(operation).await;
        self.stores.journal().commit(judged(&snapshot, event)).await
    }

    /// Judges an event over the current row, commits it, and compares the rows with the change: operation,
    /// result, wallet and ledger.
    pub async fn step(&self, operation: OperationId, event: Event) -> Operation {
        let before = self.load(operation).await;
        let change = judged(&before, event);
        self.commit_as_predicted(&before, &change).await
    }

    /// Commits a change and compares the rows with it.
    pub async fn commit_as_predicted(
        &self,
        before: &Snapshot,
        change: &Arc<Transition>,
    ) -> Operation {
        let transition = operation_change(change);
        // Before the commit: the comparison is of this change's movements, and not of the end states.
        let (wallet, entries) = (self.wallet().await, self.entries().await);
        let receipt = self.stores.journal().commit(Arc::clone(change)).await.unwrap();
        let after = self.load(transition.operation).await;
        let predicted = transition.apply(before.operation.as_ref(), receipt);
        assert_eq!(after.operation, predicted, "the row is what the change predicts");
        // A change without a result keeps the one that is there: a settlement loses no answer.
        let result = transition.result().or(before.result.as_ref());
        assert_eq!(after.result.as_ref(), result, "the result is kept");
        let moves = transition.funds.balance_change();
        let moved = Wallet {
            available: wallet.available.plus(moves.available).unwrap(),
            held: wallet.held.plus(moves.held).unwrap(),
            ..wallet
        };
        assert_eq!(self.wallet().await, moved, "the wallet is what the change predicts");
        // Only what was written since: the book is append-only, so its beginning is as it was.
        let transfers = transition.funds.transfers();
        let messages: Vec<_> =
            transfers.map(|t| (t.kind.label(), t.debit, t.credit, t.amount)).collect();
        let written: Vec<_> = self
            .entries()
            .await
            .into_iter()
            .skip(entries.len())
            .map(|entry| (entry.kind, entry.debit, entry.credit, entry.amount))
            .collect();
        assert_eq!(written, messages, "the book says what moved");
        after.operation.unwrap()
    }

    /// Posts money.
    pub async fn post(&self, kind: PostingKind, amount: i64) -> Result<PostingId, CommandError> {
        let id: PostingId = sample::fresh();
        let posting = Posting { id, wallet: self.wallet, kind, amount: Micros::new(amount) };
        self.stores.commands().post(&posting).await?;
        Ok(id)
    }

    /// Reads an operation.
    pub async fn load(&self, operation: OperationId) -> Snapshot {
        self.stores.journal().load(operation).await.unwrap()
    }

    /// The wallet as it stands.
    pub async fn wallet(&self) -> Wallet {
        self.stores.wallets().find(self.wallet).await.unwrap().unwrap()
    }

    /// All its transfers.
    pub async fn entries(&self) -> Vec<LedgerEntry> {
        self.stores.wallets().transfers(self.wallet, u32::MAX).await.unwrap()
    }

    /// Available and held amounts, in micros; both are the sums of the wallet's transfers.
    pub async fn balances(&self) -> (i64, i64) {
        let entries = self.entries().await;
        let sum = |account: Account| {
            entries.iter().fold(0_i64, |sum, entry| {
                let amount = entry.amount.get();
                assert!(amount > 0, "no transfer is of nothing: {entry:?}");
                let credited = if entry.credit == account { amount } else { 0 };
                let debited = if entry.debit == account { amount } else { 0 };
                sum.checked_add(credited).unwrap().checked_sub(debited).unwrap()
            })
        };
        let wallet = self.wallet().await;
        let balances = (wallet.available.get(), wallet.held.get());
        let sums = (sum(Account::Available), sum(Account::Held));
        assert_eq!(balances, sums, "balances are the sums of their transfers");
        balances
    }
}

/// A credential of an API key.
#[must_use]
pub fn credential(api_key: ApiKeyId) -> Credential {
    Credential {
        id: sample::fresh(),
        api_key,
        verifier: Verifier::from_bytes([3; 32]),
        server_secret: ServerSecretId::from_bytes([1; 8]),
        ends_at: None,
    }
}

/// Change that an event makes of a row that allows it.
#[must_use]
pub fn judged(snapshot: &Snapshot, event: Event) -> Arc<Transition> {
    Arc::new(decide(snapshot, event).unwrap())
}

/// The change of an operation.
#[must_use]
#[track_caller]
pub fn operation_change(change: &Transition) -> &Transition {
    change
}

/// T2 by the owner of this operation.
#[must_use]
pub fn finish(operation: &Operation, input: u64, output: u64) -> Event {
    Event::Finish(finish_event(operation, input, output))
}

/// T2a by the owner of this operation.
#[must_use]
pub fn record(operation: &Operation, input: u64, output: u64) -> Event {
    Event::Record(finish_event(operation, input, output))
}

/// T3 by the owner of this operation.
#[must_use]
pub fn not_run(operation: &Operation) -> Event {
    Event::NotRun { claim: operation.owner.claim, attempts: sample::attempts() }
}

/// T4 by the owner of this operation.
#[must_use]
pub fn refuse(operation: &Operation) -> Event {
    Event::Refuse {
        claim: operation.owner.claim,
        refusal: holdfast_domain::operation::ProviderRefusal::ContextLength,
        result: answer_for(operation.api_key),
        attempts: sample::attempts(),
    }
}

/// T5 by the owner of this operation.
#[must_use]
pub fn give_up(operation: &Operation) -> Event {
    Event::GiveUp { claim: operation.owner.claim, attempts: sample::unread_attempts() }
}

/// A sealed answer that has every byte in it.
#[must_use]
pub fn answer() -> SealedResult {
    SealedResult { sealed: (0..=u8::MAX).collect(), ..sample::result("") }
}

/// The answer, sealed for the first credential of an API key of a tenant.
#[must_use]
pub fn answer_for(api_key: ApiKeyId) -> SealedResult {
    SealedResult { credential: CredentialId::from_bytes(api_key.to_bytes()), ..answer() }
}

fn finish_event(operation: &Operation, input: u64, output: u64) -> Finish {
    Finish {
        claim: operation.owner.claim,
        metered: sample::metered(input, output),
        result: answer_for(operation.api_key),
        attempts: sample::attempts(),
    }
}

#[expect(clippy::panic, reason = "a law that fails panics")]
fn unreachable_beat(beat: &HeartbeatOutcome) -> ! {
    panic!("a free name is taken: {beat:?}")
}
