//! Judges changes against what a transaction has read: versions, limits, funds and permanent ids,
//! in this order, with running totals over the changes that were judged before.
//!
//! Pure and without SQL, so that every dialect judges alike. It decides nothing about operations:
//! what a change means was decided when it was made.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::ledger::{Funds, Moves, Posting, PostingKind};
use holdfast_domain::limits::{Counter, CounterMove};
use holdfast_domain::operation::{Change, Effect, Transition, Version};
use holdfast_domain::ports::CommitError;
use holdfast_domain::price::{PriceVersion, PriceVersionId};
use holdfast_domain::{ApiKeyId, Micros, OperationId, PostingId, Timestamp, WalletId};

/// One counter of an API key in one of its windows.
pub(crate) type Window = (ApiKeyId, Counter, Timestamp);

/// What a transaction has read of everything that its changes touch.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// The wallets that exist.
    pub(crate) wallets: BTreeMap<WalletId, Balance>,
    /// The operations that exist.
    pub(crate) operations: BTreeMap<OperationId, Row>,
    /// The operations that refunds name.
    pub(crate) charged: BTreeMap<OperationId, Charged>,
    /// The postings that exist.
    pub(crate) postings: BTreeSet<PostingId>,
    /// The counters that exist.
    pub(crate) counters: BTreeMap<Window, i64>,
    /// The price versions that exist.
    pub(crate) prices: BTreeMap<PriceVersionId, PriceVersion>,
    /// What the changes that passed come to.
    pub(crate) moved: Moved,
}

/// The two amounts of a wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Balance {
    pub(crate) available: Micros,
    pub(crate) held: Micros,
}

/// What is needed of an operation's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) seq: i64,
    pub(crate) version: Version,
}

/// What a refund is measured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Charged {
    pub(crate) wallet: WalletId,
    pub(crate) charge: Micros,
    pub(crate) refunded: Micros,
}

/// What the changes that passed come to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// What is added to wallets.
    pub(crate) wallets: BTreeMap<WalletId, Moves>,
    /// What counters stand at: nobody else moves them in this transaction.
    pub(crate) counters: BTreeMap<Window, i64>,
    /// What is new.
    pub(crate) prices: BTreeMap<PriceVersionId, PriceVersion>,
}

/// A change that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    /// The number of its operation's row; `None` where there is none yet, or for a posting.
    pub(crate) seq: Option<i64>,
    /// The version that it writes.
    pub(crate) version: Version,
}

/// Why a change did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Conflict,
    LimitReached(Counter),
    InsufficientFunds,
    Collision,
}

impl From<Refused> for CommitError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Conflict => Self::Conflict,
            Refused::LimitReached(counter) => Self::LimitReached(counter),
            Refused::InsufficientFunds => Self::InsufficientFunds,
            Refused::Collision => Self::Collision,
        }
    }
}

impl Book {
    /// Judges one change; `now` is the transaction's clock. A change that passes counts for all that
    /// are judged after it. No two changes of one book concern the same operation or posting.
    pub(crate) fn judge(&mut self, change: &Change, now: Timestamp) -> Result<Passed, Refused> {
        match change {
            Change::Operation(transition) => self.judge_transition(transition, now),
            Change::Posting(posting) => self.judge_posting(posting),
        }
    }

    fn judge_transition(
        &mut self,
        transition: &Transition,
        now: Timestamp,
    ) -> Result<Passed, Refused> {
        let row = self.operations.get(&transition.operation).copied();
        if row.map(|row| row.version) != transition.expected {
            return Err(Refused::Conflict);
        }
        let windows = windows(transition, now);
        let counters = windows
            .map(|(window, moved)| self.count(window, *moved))
            .collect::<Result<Vec<_>, Refused>>()?;
        let moves = transition.funds.moves();
        // A result must find its place even where the wallet is broken.
        let balance = match (transition.funds, row) {
            (Funds::Unmoved, Some(_)) => None,
            (Funds::Unmoved, None)
            | (Funds::Hold(_) | Funds::Capture { .. } | Funds::Release(_), _) => {
                Some(self.balance(transition.wallet, moves)?)
            }
        };
        let new_price = match price(&transition.effect) {
            Some(price) => match self.prices.get(&price.id) {
                Some(known) if known == price => None,
                Some(_) => return Err(Refused::Collision),
                None => Some(price),
            },
            None => None,
        };

        for (window, used) in counters {
            self.counters.insert(window, used);
            self.moved.counters.insert(window, used);
        }
        if let Some(balance) = balance {
            self.move_wallet(transition.wallet, balance, moves);
        }
        if let Some(price) = new_price {
            self.prices.insert(price.id.clone(), price.clone());
            self.moved.prices.insert(price.id.clone(), price.clone());
        }
        Ok(Passed { seq: row.map(|row| row.seq), version: transition.version() })
    }

    fn judge_posting(&mut self, posting: &Posting) -> Result<Passed, Refused> {
        if self.postings.contains(&posting.id) {
            return Err(Refused::Conflict);
        }
        let refunded = match &posting.kind {
            PostingKind::Refund(operation) => Some((*operation, self.refund(posting, *operation)?)),
            PostingKind::Deposit | PostingKind::Adjustment(_) => None,
        };
        let only_up = !matches!(posting.kind, PostingKind::Adjustment(_));
        if posting.amount == Micros::ZERO || (only_up && posting.amount < Micros::ZERO) {
            return Err(Refused::InsufficientFunds);
        }
        let moves = Moves { available: posting.amount, held: Micros::ZERO };
        let balance = self.balance(posting.wallet, moves)?;

        if let Some((operation, charged)) = refunded {
            self.charged.insert(operation, charged);
        }
        self.postings.insert(posting.id);
        self.move_wallet(posting.wallet, balance, moves);
        Ok(Passed { seq: None, version: Version::FIRST })
    }

    /// What a counter becomes. A correction is never refused, and never takes away more than there
    /// is: the window may have been swept meanwhile.
    fn count(&self, window: Window, moved: CounterMove) -> Result<(Window, i64), Refused> {
        let used = self.counters.get(&window).copied().unwrap_or(0);
        let after = match moved.bound {
            Some(bound) => match used.checked_add(moved.amount) {
                Some(after) if after <= bound => after,
                Some(_) | None => return Err(Refused::LimitReached(moved.counter)),
            },
            None => used.saturating_add(moved.amount).max(0),
        };
        Ok((window, after))
    }

    /// The wallet's balance after these moves. A missing wallet has nothing, not even room.
    fn balance(&self, wallet: WalletId, moves: Moves) -> Result<Balance, Refused> {
        let sum = |amount: Micros, by: Micros| {
            amount.plus(by).filter(|sum| *sum >= Micros::ZERO).ok_or(Refused::InsufficientFunds)
        };
        let balance = self.wallets.get(&wallet).ok_or(Refused::InsufficientFunds)?;
        Ok(Balance {
            available: sum(balance.available, moves.available)?,
            held: sum(balance.held, moves.held)?,
        })
    }

    fn refund(&self, posting: &Posting, operation: OperationId) -> Result<Charged, Refused> {
        let charged = self.charged.get(&operation).ok_or(Refused::InsufficientFunds)?;
        let refunded = charged.refunded.plus(posting.amount);
        match refunded {
            Some(refunded) if charged.wallet == posting.wallet && refunded <= charged.charge => {
                Ok(Charged { refunded, ..*charged })
            }
            Some(_) | None => Err(Refused::InsufficientFunds),
        }
    }

    fn move_wallet(&mut self, wallet: WalletId, balance: Balance, moves: Moves) {
        let still = Moves { available: Micros::ZERO, held: Micros::ZERO };
        if moves == still {
            return;
        }
        self.wallets.insert(wallet, balance);
        let moved = self.moved.wallets.entry(wallet).or_insert(still);
        // Both balances fit, so their difference does.
        moved.available = moved.available.plus(moves.available).unwrap_or(Micros::MAX);
        moved.held = moved.held.plus(moves.held).unwrap_or(Micros::MAX);
    }
}

/// In which window each counter of a change moves.
pub(crate) fn windows(
    transition: &Transition,
    now: Timestamp,
) -> impl Iterator<Item = (Window, &CounterMove)> {
    let at = transition.admitted_at.unwrap_or(now);
    transition
        .counters
        .iter()
        .map(move |moved| ((transition.api_key, moved.counter, moved.counter.window(at)), moved))
}

/// The prices that a change brings along.
pub(crate) fn price(effect: &Effect) -> Option<&PriceVersion> {
    match effect {
        Effect::Admit(admission) => Some(&admission.start.price),
        Effect::Reopen(start) => Some(&start.price),
        Effect::Complete { .. }
        | Effect::Record { .. }
        | Effect::Settle
        | Effect::AskCancel
        | Effect::Open { .. }
        | Effect::Refuse { .. }
        | Effect::Abandon { .. } => None,
    }
}
