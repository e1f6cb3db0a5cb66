//! Offering: a change on its way to a verdict, through any number of lost answers; not the consequences of the
//! verdict.
//!
//! A lost answer is the hard case: the commit may have happened, may happen yet, or never. Reading the row
//! proves nothing as long as the lost transaction may still land, so no row is read here. The same change goes
//! to the store again, which waits for the locks of the lost one, until it answers committed or conflict. Both
//! loops have no end but the store's answer.

use std::sync::Arc;

use super::Conduct;
use crate::OperationId;
use crate::limits::CounterReadings;
use crate::operation::{Operation, Receipt, Snapshot, Transition};
use crate::ports::{CommitError, Unavailable};

impl Conduct<'_> {
    /// Offers a change; an uncertain verdict is no verdict, so the same change is offered again. A change that
    /// may have landed must be followed to its end, even if the store reports meanwhile that it cannot be
    /// reached.
    pub(super) async fn offer(&self, change: &Arc<Transition>) -> Verdict {
        let mut was_lost = false;
        let mut attempt: u32 = 0;
        loop {
            match self.journal.commit(Arc::clone(change)).await {
                Err(CommitError::Uncertain(_)) => was_lost = true,
                // True of this offer alone: nothing was taken in now, but the lost one may land.
                Err(CommitError::Unavailable(_) | CommitError::Overloaded) if was_lost => {}
                of_store @ (Ok(_)
                | Err(
                    CommitError::Conflict
                    | CommitError::InsufficientFunds
                    | CommitError::FundsHeld { .. }
                    | CommitError::LimitsEdited
                    | CommitError::LimitReached(_)
                    | CommitError::Collision
                    | CommitError::TooLarge
                    | CommitError::Overloaded
                    | CommitError::Unavailable(_),
                )) => return Verdict { of_store, was_lost },
            }
            attempt = attempt.saturating_add(1);
            self.pause.pause(attempt).await;
        }
    }

    /// Reads a row that must be known before any caller is answered, however long that takes.
    pub(super) async fn load_with_retries(&self, operation: OperationId) -> Snapshot {
        let mut attempt: u32 = 0;
        loop {
            match self.journal.load(operation).await {
                Ok(snapshot) => return snapshot,
                Err(Unavailable(_)) => {
                    attempt = attempt.saturating_add(1);
                    self.pause.pause(attempt).await;
                }
            }
        }
    }
}

/// Final word of a store on a change.
pub(super) struct Verdict {
    pub(super) of_store: Result<Receipt, CommitError>,
    /// True if an earlier answer to the same change was lost: a conflict may then be its own.
    pub(super) was_lost: bool,
}

/// True if a row shows the state that this change would have written: it landed, its answers were lost.
pub(super) fn has_landed(
    transition: &Transition,
    before: Option<&Operation>,
    after: &Snapshot,
) -> bool {
    let Some(row) = &after.operation else { return false };
    // The receipt is lost as well. The moment is the row's own, so that only what the change chose
    // is compared: version and phase.
    let at = row.phase.finished_at().unwrap_or(row.admitted_at);
    let receipt =
        Receipt { version: transition.version(), at, counters: CounterReadings::default() };
    transition
        .apply(before, receipt)
        .is_some_and(|written| written.version == row.version && written.phase == row.phase)
}
