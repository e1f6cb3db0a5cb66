//! The book as rows, and the balances that follow it.

use holdfast_domain::ledger::{Account, BalanceChange, Funds, Posting, PostingKind};
use holdfast_domain::limits::{Counter, CounterReadings};
use holdfast_domain::operation::Transition;
use holdfast_domain::ports::{LedgerEntry, LedgerSource};
use holdfast_domain::{Micros, OperationId, PostingId, Timestamp, WalletId};

use super::JournalState;

/// Transfer of a wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletEntry {
    /// The wallet on one of its sides.
    pub wallet: WalletId,
    /// The transfer.
    pub entry: LedgerEntry,
}

/// Generation of an operation that a transfer belongs to, and its wallet.
pub(super) struct Leg {
    pub(super) operation: OperationId,
    pub(super) generation: u32,
    pub(super) wallet: WalletId,
}

impl JournalState {
    /// Writes what an operation's change moves; it was judged before.
    pub(super) fn write_funds(&mut self, leg: &Leg, funds: Funds, at: Timestamp) {
        let source = LedgerSource::Operation(leg.operation, leg.generation);
        for transfer in funds.transfers() {
            let kind = transfer.kind.label();
            let (debit, credit, amount) = (transfer.debit, transfer.credit, transfer.amount);
            let entry = LedgerEntry { at, source, kind, debit, credit, amount };
            self.lines.push(WalletEntry { wallet: leg.wallet, entry });
        }
        self.add(leg.wallet, funds.balance_change());
    }

    /// Writes a posting; it was judged before.
    pub(super) fn write_posting(&mut self, posting: &Posting, at: Timestamp) {
        let counterpart = posting.kind.counterpart();
        // An amount below zero is a positive transfer the other way.
        let (debit, credit) = if posting.amount < Micros::ZERO {
            (Account::Available, counterpart)
        } else {
            (counterpart, Account::Available)
        };
        self.lines.push(WalletEntry {
            wallet: posting.wallet,
            entry: LedgerEntry {
                at,
                source: LedgerSource::Posting(posting.id),
                kind: posting.kind.label(),
                debit,
                credit,
                amount: posting.amount.max(posting.amount.negated()),
            },
        });
        self.postings.insert(posting.id, posting.clone());
        self.add(posting.wallet, BalanceChange { available: posting.amount, held: Micros::ZERO });
    }

    /// Readings of the counters that a change moves.
    pub(super) fn tally(&self, transition: &Transition, at: Timestamp) -> CounterReadings {
        // An ending corrects the window of its admission; a claim reserves in that of now.
        let at = transition.admitted_at.unwrap_or(at);
        let used = |counter: Counter| {
            let window = (transition.api_key, counter, counter.window(at));
            (counter, self.counters.get(&window).copied().unwrap_or(0))
        };
        transition.counters.iter().map(|moved| used(moved.counter)).collect()
    }

    pub(super) fn write_counters(&mut self, transition: &Transition, at: Timestamp) {
        let at = transition.admitted_at.unwrap_or(at);
        for moved in &transition.counters {
            let window = (transition.api_key, moved.counter, moved.counter.window(at));
            let value = self.counters.entry(window).or_insert(0);
            let reached = value.saturating_add(moved.amount);
            // A correction never leaves a negative value; a reservation was judged by its bound.
            *value = if moved.bound.is_some() { reached } else { reached.max(0) };
        }
    }

    pub(super) fn deposit(&mut self, wallet: WalletId, amount: Micros) {
        // No posting of a test has this id: fresh ones are UUIDs of version 4.
        let id = PostingId::from_u128(u128::MAX);
        let at = self.now;
        self.write_posting(&Posting { id, wallet, kind: PostingKind::Deposit, amount }, at);
    }

    pub(super) fn add(&mut self, id: WalletId, moves: BalanceChange) {
        // Judged before: both sums fit, or neither amount moves.
        if let Some(wallet) = self.wallets.iter_mut().find(|wallet| wallet.id == id)
            && let Some(available) = wallet.available.plus(moves.available)
            && let Some(held) = wallet.held.plus(moves.held)
        {
            wallet.available = available;
            wallet.held = held;
        }
    }
}
