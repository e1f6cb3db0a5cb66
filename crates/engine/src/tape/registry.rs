//! Run registry: the operations that this process runs, each with its tape, one for each operation.
//!
//! ```text
//! find_or_register ─► guard ─► leave(outcome)       the run ended
//!                       └────► drop                 its task died: the tape ends as lost
//! ```
//!
//! It is what makes two requests with one key meet in memory. It is not a lock: the claim id on the row decides who
//! owns an operation, and another process may run it while no run is registered here.
//!
//! - A run leaves its place before its end is published: a reader that tries again at once finds the place free.
//! - A place is removed only by the run that holds it. A successor may be registered by the time a guard is
//!   dropped.
//! - Claims of tasks that died before a byte was sent are remembered as `unsent`. Only they may be disowned as *not
//!   run*; an unknown claim may have reached a provider. The list grows by one id for each such death, which is a
//!   bug each time, and ends with the process.
//! - After [`stop_all`](RunRegistry::stop_all) a run that registers is stopped at once: a drain that has cut cannot
//!   be overtaken by a request that it did not see.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_domain::model::{ModelAlias, PublicModelId};
use holdfast_domain::operation::{Binding, SendStatus};
use holdfast_domain::{ClaimId, OperationId};
use holdfast_telemetry::traces::SpanContext;
use tokio::time::Instant;

use super::{ChunkLog, Outcome, StopCause, Tape};

/// The runs of this process by operation. A std mutex: never held across an await.
#[derive(Debug, Default)]
pub(crate) struct RunRegistry {
    tapes: Mutex<RegisteredTapes>,
    /// Claims whose tasks died before a byte was sent: the only ones that may be disowned as not run.
    unsent: Mutex<Vec<ClaimId>>,
}

#[derive(Debug, Default)]
struct RegisteredTapes {
    by_operation: HashMap<OperationId, Arc<Tape>>,
    /// The operator ends all runs, also those that are registered from now on.
    are_cut: bool,
}

/// Run that is to be registered.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub(crate) claim: ClaimId,
    pub(crate) binding: Binding,
    /// Public model id of its claim, and the alias that the request names it by.
    pub(crate) model: PublicModelId,
    pub(crate) alias: Option<ModelAlias>,
    /// Log of its chunks, if the first caller requested a stream.
    pub(crate) chunk_log: Option<ChunkLog>,
    /// Span of the claiming request.
    pub(crate) span: Option<SpanContext>,
}

/// A run's place in [`RunRegistry`]. Dropping it removes the run, and ends its tape if that is still open.
#[derive(Debug)]
pub(crate) struct RunGuard<'a> {
    running: &'a RunRegistry,
    tape: Arc<Tape>,
}

impl RunGuard<'_> {
    /// Leaves the place, then publishes the end: a reader that tries again at once finds it free.
    pub(crate) fn leave(self, outcome: Outcome) {
        self.running.remove(&self.tape);
        self.tape.end(outcome);
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        if self.tape.has_ended() {
            return;
        }
        // Remembered before the place is free: a heartbeat that no longer finds the tape finds this.
        if !self.tape.sent.load(Ordering::Acquire) {
            let mut unsent = self.running.unsent.lock().unwrap_or_else(PoisonError::into_inner);
            unsent.push(self.tape.claim);
        }
        self.running.remove(&self.tape);
        self.tape.end(Outcome::Lost);
    }
}

impl RunRegistry {
    /// Finds the run of this operation, or registers a new one. One lock for both: of two callers with one
    /// key, one registers and the other finds.
    pub(crate) fn find_or_register(&self, operation: OperationId, new: NewRun) -> Registration {
        let mut tapes = self.lock();
        if let Some(tape) = tapes.by_operation.get(&operation) {
            return Registration::Found(Arc::clone(tape));
        }
        let tape = Arc::new(Tape::new(operation, new));
        if tapes.are_cut {
            tape.end_early(StopCause::Operator);
        }
        tapes.by_operation.insert(operation, Arc::clone(&tape));
        Registration::New(tape)
    }

    /// Finds the run of this operation in this process.
    pub(crate) fn find(&self, operation: OperationId) -> Option<Arc<Tape>> {
        self.lock().by_operation.get(&operation).cloned()
    }

    /// Claim of an operation that a live task of this process runs; `None` after its deadline, by
    /// the monotonic clock, which no hand sets.
    pub(crate) fn live_claim(&self, operation: OperationId) -> Option<ClaimId> {
        let tape = self.find(operation)?;
        let is_due = tape.deadline.get().is_some_and(|deadline| *deadline <= Instant::now());
        (!is_due).then_some(tape.claim)
    }

    /// Count of readers over all runs of this process.
    pub(crate) fn waiters(&self) -> usize {
        self.lock().by_operation.values().map(|tape| tape.readers.load(Ordering::Relaxed)).sum()
    }

    /// Stops the run of this claim, if it is here. The row must carry the caller's cancel already,
    /// because the ending is judged by it.
    pub(crate) fn cancel(&self, operation: OperationId, claim: ClaimId) {
        if let Some(tape) = self.find(operation).filter(|tape| tape.claim == claim) {
            tape.end_early(StopCause::Caller);
        }
    }

    /// Stops all runs, and those that register later.
    pub(crate) fn stop_all(&self) {
        // Under one lock with the registrations: each run is either among these or sees the mark.
        let mut tapes = self.lock();
        tapes.are_cut = true;
        let mut cut: Vec<_> = tapes.by_operation.values().collect();
        // Tasks wake in this order. That of the map is another one in each process, and simulated time repeats a run.
        cut.sort_unstable_by_key(|tape| tape.operation);
        cut.into_iter().for_each(|tape| tape.end_early(StopCause::Operator));
    }

    /// Makes the guard of a registered run, which gives the place up when the task ends or dies.
    pub(crate) fn guard(&self, tape: Arc<Tape>) -> RunGuard<'_> {
        RunGuard { running: self, tape }
    }

    /// Evidence on a claim whose row is leased to this process: never sent, or perhaps. `None` if a task runs it,
    /// so that there is no claim to disown.
    pub(crate) fn send_evidence(
        &self,
        operation: OperationId,
        claim: ClaimId,
    ) -> Option<SendStatus> {
        // In this order, the reverse of the guard's: a task that dies in between is found by one of the two checks.
        if self.find(operation).is_some_and(|tape| tape.claim == claim) {
            return None;
        }
        let unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        Some(if unsent.contains(&claim) { SendStatus::Never } else { SendStatus::Perhaps })
    }

    fn remove(&self, tape: &Arc<Tape>) {
        if let Entry::Occupied(found) = self.lock().by_operation.entry(tape.operation)
            && Arc::ptr_eq(found.get(), tape)
        {
            found.remove();
        }
    }

    fn lock(&self) -> MutexGuard<'_, RegisteredTapes> {
        self.tapes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Result of a registration.
#[derive(Debug)]
pub(crate) enum Registration {
    /// Run of an earlier request, to be followed.
    Found(Arc<Tape>),
    /// New run, which its registrar has to start.
    New(Arc<Tape>),
}

#[cfg(test)]
mod tests {
    use holdfast_domain::operation::Claim;
    use holdfast_testkit::sample;

    use super::*;

    fn register(running: &RunRegistry, n: u128) -> Arc<Tape> {
        let (operation, claim) = (OperationId::from_u128(n), ClaimId::from_u128(n));
        let Claim { binding, model, alias, .. } = sample::claim().build();
        let new = NewRun { claim, binding, model, alias, chunk_log: None, span: None };
        match running.find_or_register(operation, new) {
            Registration::New(tape) => tape,
            Registration::Found(tape) => panic!("{tape:?}"),
        }
    }

    #[test]
    fn a_run_that_is_over_takes_no_other_of_its_operation_along() {
        let running = RunRegistry::default();
        let first = register(&running, 1);
        running.remove(&first);
        let second = register(&running, 1);
        running.remove(&first);
        let found = running.find(second.operation).unwrap();
        assert!(Arc::ptr_eq(&found, &second));
    }

    #[test]
    fn all_runs_are_cut_those_that_come_as_well_and_the_caller_has_the_last_word() {
        let running = RunRegistry::default();
        let early = register(&running, 1);
        assert_eq!(early.stop(), None);
        running.stop_all();
        let late = register(&running, 2);
        assert_eq!([early.stop(), late.stop()], [Some(StopCause::Operator); 2]);
        running.cancel(early.operation, late.claim);
        running.cancel(late.operation, late.claim);
        assert_eq!(
            [early.stop(), late.stop()],
            [Some(StopCause::Operator), Some(StopCause::Caller)]
        );
    }
}
