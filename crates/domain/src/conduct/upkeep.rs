//! Upkeep: all that any process may do to an operation that is not its own (reap it, settle it, request its end
//! from its owner), and the treatment of a claim of its own that no task runs.
//!
//! Reaping, settling and disowning are one try: a failure here loses no money, because a reconciler, a retry or
//! a look-up meets the same row again. So from every state, with all tasks hung for ever, reaping and settling
//! alone bring an operation to rest. A lost race is returned as such: of those who try at once, one learns that
//! it moved the row.
//!
//! Never: a reap read as proof that there was no run; an ending written in another owner's name.

use std::sync::Arc;

use super::Conduct;
use super::offering::{Verdict, has_landed};
use crate::operation::{Disown, Effect, Event, Phase, Snapshot, decide};
use crate::ports::{CommitError, Unavailable};
use crate::{ClaimId, OperationId};

/// State of an operation after its upkeep.
#[derive(Debug)]
pub struct Reconciliation {
    /// The row, its content and its owner's lease.
    pub snapshot: Snapshot,
    /// True if this call brought it there: only one of those who try at once gets true. A request to an owner
    /// to cancel brings it nowhere.
    pub moved: bool,
}

impl Conduct<'_> {
    /// Reaps or settles one operation if that is allowed, and returns its state. Cancel safe: an offered change
    /// stands or falls by itself.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the store cannot be read.
    pub async fn reconcile(&self, operation: OperationId) -> Result<Reconciliation, Unavailable> {
        self.reconcile_while_running(operation, None).await
    }

    /// [`Self::reconcile`] by a process one of whose tasks is running this claim: that one is alive, even if
    /// its deadline has passed by the database's clock.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the store cannot be read.
    pub async fn reconcile_while_running(
        &self,
        operation: OperationId,
        alive: Option<ClaimId>,
    ) -> Result<Reconciliation, Unavailable> {
        let snapshot = self.journal.load(operation).await?;
        if let Some(row) = &snapshot.operation
            && row.phase == Phase::Leased
            && Some(row.owner.claim) == alive
        {
            // A run of this very process: its task will say how it ends.
            return Ok(Reconciliation { snapshot, moved: false });
        }
        let event = match snapshot.operation.as_ref().map(|operation| &operation.phase) {
            Some(Phase::Leased) => Event::Reap { orphan_grace: self.orphan_grace },
            Some(Phase::Recorded(_)) => Event::Settle,
            Some(
                Phase::Open
                | Phase::Completed { .. }
                | Phase::Refused { .. }
                | Phase::Abandoned { .. },
            )
            | None => return Ok(Reconciliation { snapshot, moved: false }),
        };
        Ok(self.try_event(snapshot, event).await?.into_reconciliation())
    }

    /// Requests the end of an operation from its owner (T2c), and returns its state: leased if the request
    /// stands, by this call or an earlier one. One whose owner is gone is reaped instead, and a recorded one is
    /// settled. An open one is ended here (T5′), so that its key never runs again. An operation that has ended
    /// cannot be cancelled. A claim that waits for the store is on no row yet: the process that offered one
    /// waits for its verdict before this reports that there is no run. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the store does not work, or accepted no change: the request to the owner may have
    /// been written or not.
    pub async fn cancel(&self, operation: OperationId) -> Result<Reconciliation, Unavailable> {
        self.cancel_while_running(operation, None).await
    }

    /// [`Self::cancel`] by a process one of whose tasks is running this claim. Cancel safe.
    ///
    /// # Errors
    ///
    /// As [`Self::cancel`].
    pub async fn cancel_while_running(
        &self,
        operation: OperationId,
        alive: Option<ClaimId>,
    ) -> Result<Reconciliation, Unavailable> {
        loop {
            let found = self.reconcile_while_running(operation, alive).await?;
            let Ok(transition) = decide(&found.snapshot, Event::AskCancel) else {
                // Asked before, or nothing that runs: the row as it was found is the answer.
                return Ok(found);
            };
            let snapshot = found.snapshot;
            let ends = matches!(transition.effect, Effect::Cancel);
            let change = Arc::new(transition);
            let Verdict { of_store, was_lost } = self.offer(&change).await;
            match of_store {
                Ok(receipt) => {
                    let operation = change.apply(snapshot.operation.as_ref(), receipt);
                    let snapshot = Snapshot { operation, now: receipt.at, ..snapshot };
                    return Ok(Reconciliation { snapshot, moved: ends });
                }
                // The conflict may be with this very ending, whose first answer was lost.
                Err(CommitError::Conflict) if ends && was_lost => {
                    let after = self.journal.load(operation).await?;
                    if has_landed(&change, snapshot.operation.as_ref(), &after) {
                        return Ok(Reconciliation { snapshot: after, moved: true });
                    }
                }
                // It moved: asked by somebody else, ended, or begun anew. Each of them is progress.
                Err(CommitError::Conflict) => {}
                Err(
                    error @ (CommitError::InsufficientFunds
                    | CommitError::FundsHeld { .. }
                    | CommitError::LimitsEdited
                    | CommitError::LimitReached(_)
                    | CommitError::Collision
                    | CommitError::TooLarge
                    | CommitError::Overloaded
                    | CommitError::Unavailable(_)
                    | CommitError::Uncertain(_)),
                ) => return Err(Unavailable(Box::new(error))),
            }
        }
    }

    /// Gives up a claim of this process that no task of it runs, if it is still there.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the store cannot be read.
    pub async fn disown(
        &self,
        operation: OperationId,
        disown: Disown,
    ) -> Result<Reconciliation, Unavailable> {
        let snapshot = self.journal.load(operation).await?;
        Ok(self.try_event(snapshot, Event::Disown(disown)).await?.into_reconciliation())
    }

    /// Single try at an event: after any failure, another process tries again later.
    pub(super) async fn try_event(
        &self,
        snapshot: Snapshot,
        event: Event,
    ) -> Result<EventOutcome, Unavailable> {
        let Ok(transition) = decide(&snapshot, event) else {
            return Ok(EventOutcome::Stands(snapshot));
        };
        let id = transition.operation;
        let change = Arc::new(transition);
        let Verdict { of_store, was_lost } = self.offer(&change).await;
        let before = snapshot.operation.as_ref();
        match of_store {
            Ok(receipt) => {
                let operation = change.apply(before, receipt);
                let snapshot = Snapshot { operation, now: receipt.at, ..snapshot };
                Ok(EventOutcome::Moved(Reconciliation { snapshot, moved: true }))
            }
            Err(CommitError::Conflict) => {
                // A conflict may be with this very change, where its first answer was lost: then
                // the row shows it, and this call is the one that moved it.
                let after = self.journal.load(id).await?;
                let moved = was_lost && has_landed(&change, before, &after);
                Ok(EventOutcome::Moved(Reconciliation { snapshot: after, moved }))
            }
            // Refused or not taken in: nothing has changed.
            Err(
                CommitError::InsufficientFunds
                | CommitError::FundsHeld { .. }
                | CommitError::LimitsEdited
                | CommitError::LimitReached(_)
                | CommitError::Collision
                | CommitError::TooLarge
                | CommitError::Overloaded
                | CommitError::Unavailable(_)
                | CommitError::Uncertain(_),
            ) => Ok(EventOutcome::Stands(snapshot)),
        }
    }
}

/// Outcome of a try at another owner's operation.
pub(super) enum EventOutcome {
    /// The row moved, by this or by another process.
    Moved(Reconciliation),
    /// Not moved: refused by the judge or the store.
    Stands(Snapshot),
}

impl EventOutcome {
    fn into_reconciliation(self) -> Reconciliation {
        match self {
            Self::Moved(found) => found,
            Self::Stands(snapshot) => Reconciliation { snapshot, moved: false },
        }
    }
}
