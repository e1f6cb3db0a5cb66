//! The owner's last word: brought to the store until it is taken, or until the row proves that it
//! cannot stand any more.
//!
//! A result is worth money, so it has no last try: while the store cannot be reached it is offered again, with
//! the pauses of the port, for as long as the process lives. Two refusals change its form. If the settling half
//! does not go through (a broken wallet row, an overflow), the result is recorded without it (T2a) and settled
//! later. If the result is too large to be kept, the operation is given up (T5) without a charge.
//!
//! Every answer comes from the row, read after the guarded write, never from the task's own result:
//! a result that the row does not show came too late, and is a cost of the operator's (T8).

use std::sync::Arc;

use super::Conduct;
use super::offering::{Verdict, has_landed};
use crate::operation::{
    Attempt, Event, Finish, Operation, Phase, ProviderRefusal, Receipt, SealedResult, Snapshot,
    Transition, decide,
};
use crate::ports::CommitError;
use crate::usage::MeterReading;
use crate::{ClaimId, OperationId};

/// Ending of a run, as its owner reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// A result, whole or cut short by a bound: it is charged (T2).
    Finished {
        /// Meters of the run.
        metered: MeterReading,
        /// The sealed answer.
        result: SealedResult,
    },
    /// Proof that no attempt of this generation ran (T3). One whose caller had requested its cancellation is
    /// given up all the same.
    NotRun,
    /// Refusal by the provider, for good (T4).
    Refused {
        /// Reason of the refusal.
        refusal: ProviderRefusal,
        /// The sealed error.
        result: SealedResult,
    },
    /// No result can come any more, and it may have run (T5).
    Unknown,
}

/// State of an operation after its owner's last word.
#[derive(Debug)]
pub struct Conclusion {
    /// Row, by any writer: the only source of an answer.
    pub snapshot: Arc<Snapshot>,
    /// True if a result came too late to be billed (T8).
    pub late: bool,
    /// True if it was this ending that brought it there.
    pub moved: bool,
}

impl Conclusion {
    /// True if the store has lost the commit of this claim, which it had acknowledged: no history that contains
    /// it leads to the row. No promise holds for the operation any more.
    #[must_use]
    pub fn is_commit_lost(&self, claimed: &Operation) -> bool {
        self.snapshot.operation.as_ref().is_none_or(|row| {
            // Generations never go back, and each has one claim: an older row, or another claim in
            // the same generation, cannot follow from a commit of this one.
            let is_another = row.owner.claim != claimed.owner.claim;
            row.generation < claimed.generation
                || (row.generation == claimed.generation && is_another)
        })
    }
}

impl Conduct<'_> {
    /// Brings an owner's ending to the store and returns the state of the operation after it.
    /// Offers it until the store takes it or the row proves that it cannot stand any more. Not
    /// cancel safe: a dropped ending is lost, and the operation is reaped.
    pub async fn conclude(
        &self,
        operation: &Operation,
        ending: &Ending,
        attempts: &[Attempt],
    ) -> Conclusion {
        let claim = operation.owner.claim;
        let attempts: Arc<[Attempt]> = attempts.into();
        // Shared, and changed in its place: handing it on copies no row.
        let mut current = Arc::new(Snapshot {
            operation: Some(operation.clone()),
            ..Snapshot::vacant(operation.admitted_at)
        });
        let (mut form, mut ending) = (FinishForm::Whole, ending);
        for attempt in 1_u32.. {
            let judged = decide(&current, ending.event(claim, &attempts, form));
            let judged = judged.map(Arc::new);
            // Refused only where the operation was not leased to this claim: its row is the answer.
            let Ok(change) = judged else { break };
            let Verdict { of_store, was_lost } = self.offer(&change).await;
            match of_store {
                Ok(receipt) => match conclusion_from_commit(&change, current, receipt) {
                    Some(concluded) => return concluded,
                    None => break,
                },
                Err(CommitError::Conflict) => {
                    let found = self.load_shared(operation.id).await;
                    // Still mine: only `cancel_asked` moved it, so the same ending is judged over
                    // the new row. Anything else has ended it, and that row is the answer.
                    let is_mine =
                        |row: &Operation| row.owner.claim == claim && row.phase == Phase::Leased;
                    if !found.operation.as_ref().is_some_and(is_mine) {
                        let before = current.operation.as_ref();
                        let moved = was_lost && has_landed(&change, before, &found);
                        return Conclusion { moved, ..conclusion_from_row(found, claim, ending) };
                    }
                    current = found;
                }
                // The settling half does not go through: keep the result, settle it later.
                Err(
                    CommitError::InsufficientFunds
                    | CommitError::FundsHeld { .. }
                    | CommitError::LimitsEdited
                    | CommitError::LimitReached(_)
                    | CommitError::Collision,
                ) => {
                    // A result's first refusal is answered at once by the other form. Anything
                    // else has no other form: it waits until somebody repairs what refuses it.
                    if form == FinishForm::Recorded || !matches!(ending, Ending::Finished { .. }) {
                        self.pause.pause(attempt).await;
                    }
                    form = FinishForm::Recorded;
                }
                // No result can come any more: this one cannot be kept, and nobody pays for it.
                Err(CommitError::TooLarge) => {
                    // An ending without a result that is still too large: wait, as for an outage.
                    if matches!(ending, Ending::Unknown) {
                        self.pause.pause(attempt).await;
                    }
                    (form, ending) = (FinishForm::Whole, &Ending::Unknown);
                }
                Err(
                    CommitError::Overloaded
                    | CommitError::Unavailable(_)
                    | CommitError::Uncertain(_),
                ) => self.pause.pause(attempt).await,
            }
        }
        conclusion_from_row(self.load_shared(operation.id).await, claim, ending)
    }

    /// Read that must succeed. In a box, because few endings come to it and all of them would carry
    /// room for it.
    async fn load_shared(&self, operation: OperationId) -> Arc<Snapshot> {
        Arc::new(Box::pin(self.load_with_retries(operation)).await)
    }
}

/// Form in which a result is offered: with its settlement (T2) or without (T2a).
#[derive(Clone, Copy, PartialEq, Eq)]
enum FinishForm {
    Whole,
    Recorded,
}

impl Ending {
    fn event(&self, claim: ClaimId, attempts: &Arc<[Attempt]>, form: FinishForm) -> Event {
        let attempts = Arc::clone(attempts);
        match self {
            Self::Finished { metered, result } => {
                let finish = Finish { claim, metered: *metered, result: result.clone(), attempts };
                match form {
                    FinishForm::Whole => Event::Finish(finish),
                    FinishForm::Recorded => Event::Record(finish),
                }
            }
            Self::NotRun => Event::NotRun { claim, attempts },
            Self::Refused { refusal, result } => {
                Event::Refuse { claim, refusal: *refusal, result: result.clone(), attempts }
            }
            Self::Unknown => Event::GiveUp { claim, attempts },
        }
    }
}

/// Conclusion from this owner's own commit, without reading the row again: the commit was the row's
/// compare-and-set.
fn conclusion_from_commit(
    transition: &Transition,
    mut shared: Arc<Snapshot>,
    receipt: Receipt,
) -> Option<Conclusion> {
    let snapshot = Arc::make_mut(&mut shared);
    transition.apply_to(snapshot.operation.as_mut()?, receipt)?;
    snapshot.result = transition.result().cloned();
    // What is not leased any more has no use for its owner's lease.
    (snapshot.lease, snapshot.now) = (None, receipt.at);
    Some(Conclusion { snapshot: shared, late: false, moved: true })
}

/// The row decides; a result that it does not show came too late.
fn conclusion_from_row(snapshot: Arc<Snapshot>, claim: ClaimId, ending: &Ending) -> Conclusion {
    let kept = snapshot.operation.as_ref().is_some_and(|operation| {
        operation.owner.claim == claim && operation.phase.usage().is_some()
    });
    let late = matches!(ending, Ending::Finished { .. }) && !kept;
    Conclusion { snapshot, late, moved: false }
}
