//! The three checks that a store enforces, in their order: the version, the bounds, the permanent ids. There is
//! no fourth.

use holdfast_domain::ledger::{BalanceChange, Funds, PostingKind};
use holdfast_domain::limits::{CounterMove, ReachedLimit};
use holdfast_domain::operation::{Phase, Transition};
use holdfast_domain::ports::{CommitError, LedgerSource};
use holdfast_domain::price::PriceVersion;
use holdfast_domain::{Micros, OperationId, Timestamp, WalletId};

use super::JournalState;

/// Judges a change as a store does: conflict, limits, funds, permanent ids, in this order.
pub(super) fn judge(
    state: &JournalState,
    transition: &Transition,
    at: Timestamp,
) -> Result<(), CommitError> {
    // First: the loser of a race learns only that, and neither limits nor funds.
    let row = state.operations.get(&transition.operation);
    if !transition.matches_row(row.map(|row| (row.operation.version, row.operation.owner.claim))) {
        return Err(CommitError::Conflict);
    }
    // What was read before the last edit may lack a counter that it has begun.
    let revision = transition.start().and_then(|start| start.limits_revision);
    if revision.is_some_and(|revision| revision != state.limits_revision(transition.wallet)) {
        return Err(CommitError::LimitsEdited);
    }
    let tally = state.tally(transition, at);
    for CounterMove { counter, amount, bound } in transition.counters.iter().copied() {
        let after = tally.used(counter).and_then(|used| used.checked_add(amount));
        if let Some(bound) = bound.filter(|bound| after.is_none_or(|after| after > *bound)) {
            return Err(CommitError::LimitReached(ReachedLimit {
                counter,
                amount,
                bound,
                counters: tally,
                at,
            }));
        }
    }
    // A change without money passes, even if a wallet is broken: a result must find its place.
    if transition.funds != Funds::Unmoved {
        let fits = within_bounds(state, transition.wallet, transition.funds.balance_change());
        fits.map_err(|refused| funds_held(state, transition).unwrap_or(refused))?;
    }
    // A price version stands for its numbers for ever: the same name with others is stopped.
    let known =
        |price: &PriceVersion| state.prices.get(&price.id).is_none_or(|known| known == price);
    if transition.start().is_some_and(|start| !known(&start.price)) {
        return Err(CommitError::Collision);
    }
    let source = LedgerSource::Operation(transition.operation, transition.generation);
    // By kind and generation, as the key of the table: a second settlement of one run is stopped.
    let repeats = transition.funds.transfers().any(|transfer| {
        state
            .lines
            .iter()
            .any(|line| line.entry.source == source && line.entry.kind == transfer.kind.label())
    });
    if repeats { Err(CommitError::Collision) } else { Ok(()) }
}

fn within_bounds(
    state: &JournalState,
    id: WalletId,
    moves: BalanceChange,
) -> Result<(), CommitError> {
    let fits = |balance: Micros, moved: Micros| {
        balance.plus(moved).is_some_and(|balance| balance >= Micros::ZERO)
    };
    let stands = !state.faults.broken.contains(&id)
        && state.wallet(id).is_some_and(|wallet| {
            fits(wallet.available, moves.available) && fits(wallet.held, moves.held)
        });
    if stands { Ok(()) } else { Err(CommitError::InsufficientFunds) }
}

/// Refusal of a hold that a wallet would have with what its leased operations hold. What is recorded goes back by no
/// ending.
fn funds_held(state: &JournalState, transition: &Transition) -> Option<CommitError> {
    let Funds::Hold(hold) = transition.funds else { return None };
    let available = state.wallet(transition.wallet)?.available;
    let mut leased = state.operations.values().map(|row| &row.operation).filter(|operation| {
        operation.wallet == transition.wallet && operation.phase == Phase::Leased
    });
    let held = leased.try_fold(Micros::ZERO, |sum, operation| sum.plus(operation.hold))?;
    let is_covered = available < hold && hold <= available.plus(held)?;
    is_covered.then_some(CommitError::FundsHeld { available, held })
}

pub(super) fn refunds(state: &JournalState, operation: OperationId) -> Micros {
    let of_operation = PostingKind::Refund(operation);
    let refunds = state.postings.values().filter(|posting| posting.kind == of_operation);
    refunds.fold(Micros::ZERO, |sum, refund| sum.plus(refund.amount).unwrap_or(Micros::MAX))
}
