//! A journal of one's own, and an operation sold with it. All rows are in one value behind one lock; a
//! service with a database does in a transaction what [`Rows::write`] does on a copy.
//!
//! It is whole: it passes the laws of `holdfast-testkit`. It is not durable.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::conduct::{ClaimOutcome, Conduct, Ending};
use holdfast_domain::ledger::{Account, BalanceChange, Funds, Posting, PostingKind, Transfer};
use holdfast_domain::limits::{Counter, CounterMove, CounterReadings, ReachedLimit};
use holdfast_domain::operation::{Lease, Node, Receipt, SealedResult, Transition, situation};
use holdfast_domain::ports::{
    CommitError, HeartbeatOutcome, LeaseMode, LeasedOperation, LedgerEntry, LedgerSource,
    PendingWork, Unavailable,
};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{
    ApiKeyId, Currency, Journal, Micros, NodeName, Nodes, Operation, OperationId, Phase, PostingId,
    Situation, Snapshot, Timestamp, WalletId, Wallets,
};
use holdfast_testkit::{NoPause, sample};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let journal = TinyJournal::default();
    journal.open(sample::WALLET, "acme", sample::usd());
    let funds = Micros::new(1_000);
    let deposit = Posting::new(sample::fresh(), sample::WALLET, PostingKind::Deposit, funds)?;
    journal.post(&deposit)?;
    // The process leases its operations through a row, so that another one may end what it left.
    let beat = journal.heartbeat(&sample::node("shop"), sample::LEASE, LeaseMode::Take).await?;
    let HeartbeatOutcome::Held { lease, .. } = beat else { return Err("the name is taken".into()) };

    let grace = Some(Duration::from_secs(60));
    let conduct = Conduct { journal: &journal, pause: &NoPause, orphan_grace: grace };
    let claim = sample::claim().lease(lease).hold(100).build();
    let sold = conduct
        .perform(&sample::order(&claim), async |_operation| {
            let (metered, result) = (sample::metered(20, 10), sample::result("done"));
            (Ending::Finished { metered, result }, Vec::new())
        })
        .await?;

    assert!(matches!(sold, ClaimOutcome::Ended(_)));
    assert_eq!(journal.find(sample::WALLET).await?.map(|wallet| wallet.available.get()), Some(970));
    Ok(())
}

/// Everything that is kept.
#[derive(Debug, Default)]
pub(crate) struct TinyJournal(Mutex<Rows>);

#[derive(Debug, Default, Clone)]
struct Rows {
    /// The clock: microseconds, one more at every call.
    micros: i64,
    operations: BTreeMap<OperationId, (Operation, Option<SealedResult>)>,
    wallets: Vec<Wallet>,
    book: Vec<(WalletId, LedgerEntry)>,
    postings: BTreeMap<PostingId, Posting>,
    counters: BTreeMap<(ApiKeyId, Counter, Timestamp), i64>,
    nodes: BTreeMap<NodeName, Lease>,
}

impl TinyJournal {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.micros += 1;
        rows
    }

    /// Opens an empty wallet. A service opens wallets in its own way.
    pub(crate) fn open(&self, id: WalletId, name: &str, currency: Currency) {
        let (name, available, held) = (name.to_owned(), Micros::ZERO, Micros::ZERO);
        let wallet = Wallet { id, name, currency, available, held, suspended_at: None };
        self.rows().wallets.push(wallet);
    }

    /// Posts money that moves by itself.
    pub(crate) fn post(&self, posting: &Posting) -> Result<(), CommitError> {
        let mut rows = self.rows();
        let mut copy = rows.clone();
        copy.post(posting)?;
        *rows = copy;
        Ok(())
    }
}

#[async_trait]
impl Journal for TinyJournal {
    async fn load(&self, operation: OperationId) -> Result<Snapshot, Unavailable> {
        let rows = self.rows();
        let vacant = Snapshot::vacant(rows.now());
        Ok(rows.operations.get(&operation).cloned().map_or(vacant, |(row, result)| {
            let lease = rows.nodes.get(&row.owner.node.name).cloned();
            Snapshot { operation: Some(row), result, lease, now: rows.now() }
        }))
    }

    async fn clock(&self) -> Result<Timestamp, Unavailable> {
        Ok(self.rows().now())
    }

    async fn commit(&self, change: Arc<Transition>) -> Result<Receipt, CommitError> {
        let mut rows = self.rows();
        let mut copy = rows.clone();
        let receipt = copy.write(&change)?;
        *rows = copy;
        Ok(receipt)
    }

    async fn due(&self, limit: u32) -> Result<Vec<OperationId>, Unavailable> {
        let rows = self.rows();
        let mut due: Vec<_> =
            rows.operations.values().filter(|(row, _)| rows.is_due(row)).collect();
        due.sort_by_key(|(row, _)| row.admitted_at);
        Ok(due.iter().map(|(row, _)| row.id).take(at_most(limit)).collect())
    }

    async fn leased_to(&self, node: &Node) -> Result<Vec<LeasedOperation>, Unavailable> {
        let rows = self.rows();
        let leased = rows.operations.values().filter(|(row, _)| row.phase == Phase::Leased);
        let of_node = leased.filter(|(row, _)| row.owner.node == *node);
        Ok(of_node.map(|(row, _)| LeasedOperation::from(row)).collect())
    }

    async fn purge(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        let mut rows = self.rows();
        let now = rows.now();
        let old = rows.operations.values_mut().filter(|(row, result)| {
            result.is_some() && row.phase.finished_at().is_some_and(|at| at.after(age) < now)
        });
        Ok(old.take(at_most(limit)).fold(0, |purged, (_, result)| {
            *result = None;
            purged + 1
        }))
    }
}

impl Rows {
    const fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros)
    }

    /// The version first, then bounds, then permanent ids. Whoever calls it drops the copy on an error.
    fn write(&mut self, change: &Transition) -> Result<Receipt, CommitError> {
        let (before, kept) = self.operations.get(&change.operation).cloned().unzip();
        if !change.matches_row(before.as_ref().map(|row| (row.version, row.owner.claim))) {
            return Err(CommitError::Conflict);
        }
        let tally = self.count(change)?;
        if change.funds != Funds::Unmoved {
            if let Some(held) = self.held(change) {
                return Err(held);
            }
            self.pay(change.wallet, change.funds.balance_change())?;
        }
        let source = LedgerSource::Operation(change.operation, change.generation);
        for Transfer { kind, debit, credit, amount } in change.funds.transfers() {
            let (at, kind) = (self.now(), kind.label());
            if self.book.iter().any(|(_, entry)| entry.source == source && entry.kind == kind) {
                return Err(CommitError::Collision);
            }
            let entry = LedgerEntry { at, source, kind, debit, credit, amount };
            self.book.push((change.wallet, entry));
        }
        let receipt = Receipt { version: change.version(), at: self.now(), counters: tally };
        let after = change.apply(before.as_ref(), receipt).ok_or(CommitError::Conflict)?;
        let result = change.result().cloned().or(kept.flatten());
        self.operations.insert(change.operation, (after, result));
        Ok(receipt)
    }

    /// Moves the counters, each within its bound, and says what they come to.
    fn count(&mut self, change: &Transition) -> Result<CounterReadings, CommitError> {
        let at = change.admitted_at.unwrap_or(self.now());
        let window = |counter: Counter| (change.api_key, counter, counter.window(at));
        let used = |counter| self.counters.get(&window(counter)).copied().unwrap_or(0);
        let before: CounterReadings =
            change.counters.iter().map(|m| (m.counter, used(m.counter))).collect();
        let mut tally = before;
        for CounterMove { counter, amount, bound } in change.counters.iter().copied() {
            let after = used(counter).saturating_add(amount);
            if let Some(bound) = bound.filter(|bound| after > *bound) {
                let reached =
                    ReachedLimit { counter, amount, bound, counters: before, at: self.now() };
                return Err(CommitError::LimitReached(reached));
            }
            tally = tally.with(counter, after);
        }
        for moved in &change.counters {
            let after = tally.used(moved.counter).unwrap_or(0);
            self.counters.insert(window(moved.counter), after);
        }
        Ok(tally)
    }

    fn post(&mut self, posting: &Posting) -> Result<(), CommitError> {
        let Posting { id, wallet, kind, amount } = posting.clone();
        if self.postings.contains_key(&id) {
            return Err(CommitError::Conflict);
        }
        if !kind.allows(amount) || !self.is_covered(posting) || !self.has_room(wallet, amount) {
            return Err(CommitError::InsufficientFunds);
        }
        self.pay(wallet, BalanceChange { available: amount, held: Micros::ZERO })?;
        let (there, here) = (kind.counterpart(), Account::Available);
        let (debit, credit) = if amount > Micros::ZERO { (there, here) } else { (here, there) };
        let (at, source, kind) = (self.now(), LedgerSource::Posting(id), kind.label());
        let amount = amount.max(amount.negated());
        self.book.push((wallet, LedgerEntry { at, source, kind, debit, credit, amount }));
        self.postings.insert(id, posting.clone());
        Ok(())
    }

    /// Neither amount of a wallet leaves its bounds.
    fn pay(&mut self, id: WalletId, moves: BalanceChange) -> Result<(), CommitError> {
        let wallet = self.wallets.iter_mut().find(|wallet| wallet.id == id);
        let wallet = wallet.ok_or(CommitError::InsufficientFunds)?;
        for (amount, by) in
            [(&mut wallet.available, moves.available), (&mut wallet.held, moves.held)]
        {
            let after = amount.plus(by).filter(|after| *after >= Micros::ZERO);
            *amount = after.ok_or(CommitError::InsufficientFunds)?;
        }
        Ok(())
    }

    /// A hold that the wallet would have with what its leased operations hold.
    fn held(&self, change: &Transition) -> Option<CommitError> {
        let Funds::Hold(hold) = change.funds else { return None };
        let wallet = self.wallets.iter().find(|wallet| wallet.id == change.wallet)?;
        let leased = self.operations.values().map(|(row, _)| row);
        let mut leased = leased.filter(|row| row.wallet == wallet.id && row.phase == Phase::Leased);
        let held = leased.try_fold(Micros::ZERO, |sum, row| sum.plus(row.hold))?;
        let available = wallet.available;
        let is_covered = available < hold && hold <= available.plus(held)?;
        is_covered.then_some(CommitError::FundsHeld { available, held })
    }

    /// What is held may come back, so a posting fits only beside all that is in the wallet.
    fn has_room(&self, id: WalletId, amount: Micros) -> bool {
        let wallet = self.wallets.iter().find(|wallet| wallet.id == id);
        let whole = wallet.and_then(|wallet| wallet.available.plus(wallet.held)?.plus(amount));
        whole.is_some_and(|whole| whole <= Micros::BALANCE_MAX)
    }

    /// The refunds of an operation stay within what it paid.
    fn is_covered(&self, posting: &Posting) -> bool {
        let PostingKind::Refund(operation) = posting.kind else { return true };
        let paid = self.operations.get(&operation).and_then(|(row, _)| {
            let is_settled = row.phase.finished_at().is_some() && row.wallet == posting.wallet;
            row.phase.usage().filter(|_| is_settled).map(|usage| usage.charge)
        });
        let earlier = self.postings.values().filter(|earlier| earlier.kind == posting.kind);
        let sum = earlier.map(|earlier| earlier.amount).try_fold(posting.amount, Micros::plus);
        sum.zip(paid).is_some_and(|(sum, paid)| sum <= paid)
    }

    fn is_due(&self, row: &Operation) -> bool {
        let is_late = row.phase == Phase::Leased && row.deadline < self.now();
        let lease = self.nodes.get(&row.owner.node.name);
        is_late || situation(row, lease, self.now()) == Situation::Stale
    }
}

#[async_trait]
impl Nodes for TinyJournal {
    async fn heartbeat(
        &self,
        node: &Node,
        span: Duration,
        entry: LeaseMode,
    ) -> Result<HeartbeatOutcome, Unavailable> {
        let mut rows = self.rows();
        let (now, row) = (rows.now(), rows.nodes.get(&node.name).cloned());
        let is_mine = row.as_ref().is_some_and(|row| row.node == *node);
        let is_free = row.as_ref().is_none_or(|row| row.ends_at <= now);
        let may =
            is_mine || entry == LeaseMode::Take || (entry == LeaseMode::TakeExpired && is_free);
        if !may {
            return Ok(HeartbeatOutcome::Lost { lease: row, now });
        }
        let lease = Lease { node: node.clone(), ends_at: now.after(span) };
        rows.nodes.insert(node.name.clone(), lease.clone());
        // It does not look for work: the tasks of the process do.
        Ok(HeartbeatOutcome::Held { lease, now, pending: PendingWork::ALL })
    }

    async fn leave(&self, node: &Node) -> Result<(), Unavailable> {
        self.rows().nodes.retain(|_, lease| lease.node != *node);
        Ok(())
    }
}

#[async_trait]
impl Wallets for TinyJournal {
    async fn find(&self, id: WalletId) -> Result<Option<Wallet>, Unavailable> {
        Ok(self.rows().wallets.iter().find(|wallet| wallet.id == id).cloned())
    }

    async fn transfers(&self, id: WalletId, limit: u32) -> Result<Vec<LedgerEntry>, Unavailable> {
        let rows = self.rows();
        let newest_first = rows.book.iter().rev().filter(|(wallet, _)| *wallet == id);
        let newest_first = newest_first.map(|(_, entry)| entry.clone()).take(at_most(limit));
        let mut entries: Vec<_> = newest_first.collect();
        entries.reverse();
        Ok(entries)
    }

    async fn posting(&self, id: PostingId) -> Result<Option<Posting>, Unavailable> {
        Ok(self.rows().postings.get(&id).cloned())
    }
}

fn at_most(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
