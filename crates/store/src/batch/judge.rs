//! The judge: versions, limits, funds and permanent ids of changes, in this order, against the rows that a
//! transaction has read, with running totals over the changes that were judged before.
//!
//! Pure and without SQL, so that every dialect judges in the same way. It decides nothing about operations: the
//! meaning of a change was decided when the change was made. A change is checked whole before the first of its
//! totals moves: one that is refused leaves no trace, and those after it are judged without it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::admin::event::{LowBalance, NewEvent, abandoned};
use holdfast_domain::ledger::{BalanceChange, Funds};
use holdfast_domain::limits::{Counter, CounterMove, CounterReadings, ReachedLimit};
use holdfast_domain::operation::{Transition, Version};
use holdfast_domain::ports::CommitError;
use holdfast_domain::price::{PriceVersion, PriceVersionId};
use holdfast_domain::{ApiKeyId, ClaimId, Micros, OperationId, Timestamp, WalletId};
use holdfast_failpoint::{Fault, is_broken};

/// A counter of an API key in one of its windows.
pub type Window = (ApiKeyId, Counter, Timestamp);

/// The rows that a transaction has read for its changes.
#[derive(Debug, Default)]
pub struct BatchState {
    /// Rows that exist, here and below; a missing key is a missing row.
    pub wallets: BTreeMap<WalletId, WalletBalance>,
    pub operations: BTreeMap<OperationId, OperationRow>,
    pub counters: BTreeMap<Window, i64>,
    pub prices: BTreeMap<PriceVersionId, PriceVersion>,
    /// Totals of the changes that passed.
    pub moved: BookDeltas,
}

/// The two amounts of a wallet, its low-balance threshold, and the edits of its keys' limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalletBalance {
    pub available: Micros,
    pub held: Micros,
    pub low_balance: Option<Micros>,
    pub limits_revision: u64,
}

/// The columns of an operation's row that a change is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationRow {
    pub seq: i64,
    pub version: Version,
    /// Claim of this version: one that was lost and made anew has another.
    pub claim: ClaimId,
}

impl OperationRow {
    /// The row of this number, once a change has been written into it.
    pub fn after(transition: &Transition, seq: i64, version: Version) -> Option<Self> {
        let claim = transition.start().map(|start| start.owner.claim).or(transition.claim)?;
        Some(Self { seq, version, claim })
    }
}

/// Totals of the changes that passed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BookDeltas {
    /// Differences, to be added to wallets.
    pub wallets: BTreeMap<WalletId, BalanceChange>,
    /// Final values of counters: no other change moves them in this transaction.
    pub counters: BTreeMap<Window, i64>,
    /// Price versions to be inserted.
    pub prices: BTreeMap<PriceVersionId, PriceVersion>,
    /// Events of the changes, with or without a receiver; few changes have one.
    pub events: Vec<NewEvent>,
}

/// A change that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acceptance {
    /// The number of its operation's row; `None` if there is none yet.
    pub seq: Option<i64>,
    /// The version that it writes.
    pub version: Version,
    /// Values of the counters that it moves, after it.
    pub tally: CounterReadings,
}

/// A change that did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    Conflict,
    LimitsEdited,
    LimitReached(ReachedLimit),
    InsufficientFunds,
    /// Less available than a hold, and enough with all that is held: by operations that run, or by results whose
    /// settlement is refused. [`resolve_holds`] finds out.
    HoldUncovered(UncoveredHold),
    /// Less available than a hold, and enough with what leased operations hold.
    FundsHeld {
        available: Micros,
        held: Micros,
    },
    Collision,
}

/// A hold that its wallet cannot cover, and the wallet's two amounts as it was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UncoveredHold {
    pub hold: Micros,
    pub available: Micros,
    pub held: Micros,
}

/// Wallets whose recorded holds decide about a refusal of these verdicts. None as a rule: only a refused claim costs
/// the read of them.
pub fn uncovered_wallets(
    changes: &[&Transition],
    verdicts: &[Result<Acceptance, Rejection>],
) -> BTreeSet<WalletId> {
    let judged = changes.iter().zip(verdicts);
    let uncovered = judged.filter(|(_, it)| matches!(it, Err(Rejection::HoldUncovered(_))));
    uncovered.map(|(change, _)| change.wallet).collect()
}

/// Replaces uncovered holds by what they come to, with the holds of recorded operations by wallet: those do not go back
/// by themselves.
pub fn resolve_holds(
    changes: &[&Transition],
    verdicts: &mut [Result<Acceptance, Rejection>],
    recorded: &BTreeMap<WalletId, Micros>,
) {
    for (change, verdict) in changes.iter().zip(verdicts) {
        let Err(Rejection::HoldUncovered(UncoveredHold { hold, available, held })) = *verdict
        else {
            continue;
        };
        let recorded = recorded.get(&change.wallet).copied().unwrap_or(Micros::ZERO);
        let leased = held.minus(recorded).unwrap_or(Micros::ZERO);
        let is_covered = available.plus(leased).is_some_and(|all| hold <= all);
        *verdict = Err(if is_covered {
            Rejection::FundsHeld { available, held: leased }
        } else {
            Rejection::InsufficientFunds
        });
    }
}

impl From<Rejection> for CommitError {
    fn from(refused: Rejection) -> Self {
        match refused {
            Rejection::Conflict => Self::Conflict,
            Rejection::LimitsEdited => Self::LimitsEdited,
            Rejection::LimitReached(reached) => Self::LimitReached(reached),
            Rejection::InsufficientFunds | Rejection::HoldUncovered(_) => Self::InsufficientFunds,
            Rejection::FundsHeld { available, held } => Self::FundsHeld { available, held },
            Rejection::Collision => Self::Collision,
        }
    }
}

impl BatchState {
    /// Judges one change; `now` is the transaction's clock. A change that passes counts for all that are judged
    /// after it. No two changes of one batch concern the same operation.
    pub fn judge(
        &mut self,
        transition: &Transition,
        now: Timestamp,
    ) -> Result<Acceptance, Rejection> {
        let row = self.operations.get(&transition.operation).copied();
        if !transition.matches_row(row.map(|row| (row.version, row.claim))) {
            return Err(Rejection::Conflict);
        }
        if self.has_edited_limits(transition) {
            return Err(Rejection::LimitsEdited);
        }
        let mut counters = Vec::with_capacity(transition.counters.len());
        for (window, moved) in windows(transition, now) {
            let after = self.count(window, *moved);
            let reached = || Rejection::LimitReached(self.reached(transition, moved, now));
            counters.push((window, after.ok_or_else(reached)?));
        }
        let moves = with_fault(transition.funds, transition.funds.balance_change());
        // A result must find its place even if the wallet is broken.
        let balance = match (transition.funds, row) {
            (Funds::Unmoved, Some(_)) => None,
            (Funds::Unmoved, None)
            | (Funds::Hold(_) | Funds::Capture { .. } | Funds::Release(_) | Funds::Lapse(_), _) => {
                let balance = self.balance(transition.wallet, moves);
                Some(balance.map_err(|refused| self.uncovered(transition).unwrap_or(refused))?)
            }
        };
        let new_price = match transition.start().map(|start| &start.price) {
            Some(price) => match self.prices.get(&price.id) {
                Some(known) if known == price => None,
                Some(_) => return Err(Rejection::Collision),
                None => Some(price),
            },
            None => None,
        };

        // No failure from here on: a refused change has moved no total.
        let tally = counters.iter().map(|((_, counter, _), used)| (*counter, *used)).collect();
        for (window, used) in counters {
            self.counters.insert(window, used);
            self.moved.counters.insert(window, used);
        }
        if let Some(balance) = balance {
            self.move_wallet(transition.wallet, balance, moves, transition.operation.to_bytes());
        }
        self.moved.events.extend(abandoned(transition));
        if let Some(price) = new_price {
            self.prices.insert(price.id.clone(), price.clone());
            self.moved.prices.insert(price.id.clone(), price.clone());
        }
        Ok(Acceptance { seq: row.map(|row| row.seq), version: transition.version(), tally })
    }

    /// Value of a counter after a move; `None` beyond its bound. A correction is never refused, and
    /// never takes away more than there is: the window may have been swept meanwhile.
    fn count(&self, window: Window, moved: CounterMove) -> Option<i64> {
        let used = self.used(window);
        match moved.bound.filter(|_bound| !is_broken(Fault::CapIgnored)) {
            Some(bound) => used.checked_add(moved.amount).filter(|after| *after <= bound),
            None => Some(used.saturating_add(moved.amount).max(0)),
        }
    }

    fn reached(
        &self,
        transition: &Transition,
        moved: &CounterMove,
        now: Timestamp,
    ) -> ReachedLimit {
        let CounterMove { counter, amount, bound } = *moved;
        let used = |(window, moved): (Window, &CounterMove)| (moved.counter, self.used(window));
        let tally = windows(transition, now).map(used).collect();
        ReachedLimit { counter, amount, bound: bound.unwrap_or(i64::MAX), counters: tally, at: now }
    }

    /// True if limits were edited after those that a start reserves by were read. It would miss a counter
    /// that the edit has seeded, and no ending would correct that.
    fn has_edited_limits(&self, transition: &Transition) -> bool {
        let read = transition.start().and_then(|start| start.limits_revision);
        let edited = self.wallets.get(&transition.wallet).map(|wallet| wallet.limits_revision);
        read.zip(edited).is_some_and(|(read, edited)| read != edited)
    }

    fn used(&self, window: Window) -> i64 {
        self.counters.get(&window).copied().unwrap_or(0)
    }

    /// The wallet's balance after these moves. A missing wallet has a balance of zero and no room.
    fn balance(&self, wallet: WalletId, moves: BalanceChange) -> Result<WalletBalance, Rejection> {
        let sum = |amount: Micros, by: Micros| {
            amount.plus(by).filter(|sum| *sum >= Micros::ZERO).ok_or(Rejection::InsufficientFunds)
        };
        let balance = self.wallets.get(&wallet).ok_or(Rejection::InsufficientFunds)?;
        Ok(WalletBalance {
            available: sum(balance.available, moves.available)?,
            held: sum(balance.held, moves.held)?,
            low_balance: balance.low_balance,
            limits_revision: balance.limits_revision,
        })
    }

    /// Refusal of a hold that all of its wallet's money would cover.
    fn uncovered(&self, transition: &Transition) -> Option<Rejection> {
        let Funds::Hold(hold) = transition.funds else { return None };
        let WalletBalance { available, held, .. } = *self.wallets.get(&transition.wallet)?;
        let is_covered = available < hold && hold <= available.plus(held)?;
        is_covered.then_some(Rejection::HoldUncovered(UncoveredHold { hold, available, held }))
    }

    /// `cause` is the id of the operation that moves it.
    fn move_wallet(
        &mut self,
        wallet: WalletId,
        balance: WalletBalance,
        moves: BalanceChange,
        cause: [u8; 16],
    ) {
        let still = BalanceChange { available: Micros::ZERO, held: Micros::ZERO };
        // No row to write, and maybe none to write to: a change without money passes even if its wallet is gone.
        if moves == still {
            return;
        }
        let before = self.wallets.insert(wallet, balance);
        // Judged change by change and not by the batch's sum: a release of the same batch must not hide it.
        if let (Some(threshold), Some(before)) = (balance.low_balance, before) {
            let WalletBalance { available, held, .. } = balance;
            let low = LowBalance { wallet, available, held, threshold };
            self.moved.events.extend(low.event([before.available, before.held], cause));
        }
        let moved = self.moved.wallets.entry(wallet).or_insert(still);
        // Both balances fit, so their difference does.
        moved.available = moved.available.plus(moves.available).unwrap_or(Micros::MAX);
        moved.held = moved.held.plus(moves.held).unwrap_or(Micros::MAX);
    }
}

/// Moves of a wallet, altered if a guard is switched off.
fn with_fault(funds: Funds, moves: BalanceChange) -> BalanceChange {
    let BalanceChange { available, held } = moves;
    let add = |amount: Micros| available.plus(amount).unwrap_or(available);
    match funds {
        Funds::Release(hold) | Funds::Lapse(hold) if is_broken(Fault::HoldReleasedTwice) => {
            BalanceChange { available: add(hold), held }
        }
        Funds::Lapse(_) if is_broken(Fault::HoldKept) => {
            BalanceChange { available: Micros::ZERO, held: Micros::ZERO }
        }
        Funds::Capture { .. } if is_broken(Fault::OtherAmountCharged) => {
            BalanceChange { available: add(Micros::new(-1)), held }
        }
        Funds::Unmoved
        | Funds::Hold(_)
        | Funds::Capture { .. }
        | Funds::Release(_)
        | Funds::Lapse(_) => moves,
    }
}

/// In which window each counter of a change moves.
pub fn windows(
    transition: &Transition,
    now: Timestamp,
) -> impl Iterator<Item = (Window, &CounterMove)> {
    let at = transition.admitted_at.unwrap_or(now);
    transition
        .counters
        .iter()
        .map(move |moved| ((transition.api_key, moved.counter, moved.counter.window(at)), moved))
}
