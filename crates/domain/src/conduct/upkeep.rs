//! What anybody may do to an operation that is not its own: reap it, settle it, ask its owner to end
//! it; and what a process does to a claim of its own that no task runs.

use std::sync::Arc;

use super::Conduct;
use super::offering::applied;
use crate::OperationId;
use crate::operation::{Change, Disown, Event, Phase, Snapshot, decide};
use crate::ports::{CommitError, Unavailable};

impl Conduct<'_> {
    /// Reaps or settles one operation where that is allowed, and says how it stands.
    ///
    /// # Errors
    ///
    /// Where the store cannot be read.
    pub async fn reconcile(&self, operation: OperationId) -> Result<Snapshot, Unavailable> {
        let snapshot = self.journal.load(operation).await?;
        let event = match snapshot.operation.as_ref().map(|operation| &operation.phase) {
            Some(Phase::Leased) => Event::Reap { orphan_grace: self.orphan_grace },
            Some(Phase::Recorded(_)) => Event::Settle,
            Some(
                Phase::Open
                | Phase::Completed { .. }
                | Phase::Refused { .. }
                | Phase::Abandoned { .. },
            )
            | None => return Ok(snapshot),
        };
        match self.try_event(&snapshot, event).await {
            Tried::Moved => self.journal.load(operation).await,
            Tried::Stands => Ok(snapshot),
        }
    }

    /// Asks the owner of an operation to end it (T2c), and says how the operation stands: leased where
    /// it was asked, by this or before. One whose owner is gone is reaped instead, and a recorded one is
    /// settled. What an operation does not run any more cannot be cancelled. A claim that waits for the
    /// store is on no row yet: whoever offered one waits for its verdict before this says that nothing
    /// runs. Cancel safe.
    ///
    /// # Errors
    ///
    /// Where the store does not work, or took nothing in: whether the owner was asked is not known.
    pub async fn cancel(&self, operation: OperationId) -> Result<Snapshot, Unavailable> {
        loop {
            let snapshot = self.reconcile(operation).await?;
            let Ok(transition) = decide(&snapshot, Event::AskCancel) else { return Ok(snapshot) };
            let change = Arc::new(Change::Operation(transition));
            match self.offer(&change).await.of_store {
                Ok(receipt) => {
                    let operation = applied(&change, snapshot.operation.as_ref(), receipt);
                    return Ok(Snapshot { operation, now: receipt.at, ..snapshot });
                }
                // It moved: asked by somebody else, ended, or begun anew. Each of them is progress.
                Err(CommitError::Conflict) => {}
                Err(
                    error @ (CommitError::InsufficientFunds
                    | CommitError::LimitReached(_)
                    | CommitError::Collision
                    | CommitError::Overloaded
                    | CommitError::Unavailable(_)
                    | CommitError::Uncertain(_)),
                ) => return Err(Unavailable(Box::new(error))),
            }
        }
    }

    /// Gives up a claim of this process that no task of it runs; says whether it was still there.
    ///
    /// # Errors
    ///
    /// Where the store cannot be read.
    pub async fn disown(
        &self,
        operation: OperationId,
        disown: Disown,
    ) -> Result<bool, Unavailable> {
        let snapshot = self.journal.load(operation).await?;
        Ok(matches!(self.try_event(&snapshot, Event::Disown(disown)).await, Tried::Moved))
    }

    /// One try: whatever it meets, somebody tries again later.
    pub(super) async fn try_event(&self, snapshot: &Snapshot, event: Event) -> Tried {
        let Ok(transition) = decide(snapshot, event) else {
            return Tried::Stands;
        };
        match self.offer(&Arc::new(Change::Operation(transition))).await.of_store {
            Ok(_) | Err(CommitError::Conflict) => Tried::Moved,
            Err(
                CommitError::InsufficientFunds
                | CommitError::LimitReached(_)
                | CommitError::Collision
                | CommitError::Overloaded
                | CommitError::Unavailable(_)
                | CommitError::Uncertain(_),
            ) => Tried::Stands,
        }
    }
}

/// What became of a try at somebody else's operation.
pub(super) enum Tried {
    /// The row moved, by this or by somebody else: load it.
    Moved,
    /// It stands as it was.
    Stands,
}
