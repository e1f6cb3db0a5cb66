//! The journal's port: reads and commits, each of which a test may have fail.
//!
//! A commit is judged and written under one lock, whole or not at all: every rule that can refuse it is checked
//! before the first row changes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::limits::CounterReadings;
use holdfast_domain::operation::{
    GenerationStart, Node, Operation, Phase, Receipt, Snapshot, Transition,
};
use holdfast_domain::ports::{CommitError, LeasedOperation, PendingWork, Unavailable, WorkKind};
use holdfast_domain::{Journal, OperationId, Timestamp};

use super::book::Leg;
use super::judge::judge;
use super::{Fault, JournalState, MemoryJournal, StoredOperation};
use crate::join::step_back;

#[async_trait]
impl Journal for MemoryJournal {
    async fn load(&self, operation: OperationId) -> Result<Snapshot, Unavailable> {
        step_back().await;
        let mut state = self.state();
        if state.faults.loads > 0 {
            state.faults.loads = state.faults.loads.saturating_sub(1);
            return Err(Unavailable(Fault::Unavailable.cause()));
        }
        let now = state.tick();
        let Some(row) = state.operations.get(&operation) else {
            return Ok(Snapshot::vacant(now));
        };
        let lease = state.nodes.get(&row.operation.owner.node.name).cloned();
        let (operation, result) = (Some(row.operation.clone()), row.result.clone());
        Ok(Snapshot { operation, result, lease, now })
    }

    async fn clock(&self) -> Result<Timestamp, Unavailable> {
        step_back().await;
        Ok(self.state().tick())
    }

    async fn commit(&self, change: Arc<Transition>) -> Result<Receipt, CommitError> {
        step_back().await;
        let mut state = self.state();
        state.faults.offers = state.faults.offers.saturating_add(1);
        // A store would wait for the locks of the lost transactions: they land before anything
        // else.
        for late in std::mem::take(&mut state.faults.late) {
            // The result is dropped: no caller waits for its answer.
            drop(state.write(&late));
        }
        let bytes = change.result().map_or(0, |it| it.sealed.len());
        // Before the next fault, which stays for a commit that the store would take in.
        if state.faults.result_bytes_max.is_some_and(|most| bytes > most) {
            return Err(CommitError::TooLarge);
        }
        let fault = state.faults.next.pop_front().unwrap_or(Fault::None);
        match fault {
            Fault::None => state.write(&change),
            Fault::Unavailable => Err(CommitError::Unavailable(fault.cause())),
            Fault::Overloaded => Err(CommitError::Overloaded),
            Fault::Forbidden => Err(CommitError::Collision),
            Fault::NotLanded => Err(CommitError::Uncertain(fault.cause())),
            Fault::Landed => {
                // Refused or not, no caller waits for the answer.
                drop(state.write(&change));
                Err(CommitError::Uncertain(fault.cause()))
            }
            Fault::LandsLate => {
                state.faults.late.push(change);
                Err(CommitError::Uncertain(fault.cause()))
            }
        }
    }

    async fn due(&self, limit: u32) -> Result<Vec<OperationId>, Unavailable> {
        step_back().await;
        let mut state = self.state();
        let now = state.tick();
        let mut due: Vec<&Operation> = state
            .operations
            .values()
            .map(|row| &row.operation)
            .filter(|operation| state.is_due(operation, now))
            .collect();
        // Oldest first: a batch with a limit must not starve what has waited longest.
        due.sort_by_key(|operation| operation.admitted_at);
        Ok(due.iter().map(|operation| operation.id).take(at_most(limit)).collect())
    }

    async fn leased_to(&self, node: &Node) -> Result<Vec<LeasedOperation>, Unavailable> {
        step_back().await;
        let state = self.state();
        let operations = state.operations.values().map(|row| &row.operation);
        Ok(operations
            .filter(|operation| operation.phase == Phase::Leased && operation.owner.node == *node)
            .map(LeasedOperation::from)
            .collect())
    }

    async fn purge(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        step_back().await;
        let mut state = self.state();
        let now = state.tick();
        let old = |row: &&mut StoredOperation| {
            let ended = row.operation.phase.finished_at();
            row.result.is_some() && ended.is_some_and(|ended| ended.after(age) < now)
        };
        let mut purged = 0_u64;
        for row in state.operations.values_mut().filter(old).take(at_most(limit)) {
            row.result = None;
            purged = purged.saturating_add(1);
        }
        Ok(purged)
    }
}

impl JournalState {
    /// Judges a change and writes all of it, or none.
    fn write(&mut self, change: &Transition) -> Result<Receipt, CommitError> {
        let at = self.tick();
        judge(self, change, at)?;
        let transition = change;
        let mut receipt =
            Receipt { version: transition.version(), at, counters: CounterReadings::default() };
        let before = self.operations.get(&transition.operation);
        // A change of another kind than its row was never judged over this version of it.
        let after = transition
            .apply(before.map(|row| &row.operation), receipt)
            .ok_or(CommitError::Conflict)?;
        // A settlement brings no result: the recorded one stays.
        let kept = before.and_then(|row| row.result.clone());
        let result = transition.result().cloned().or(kept);
        if let Some(GenerationStart { price, .. }) = transition.start() {
            self.prices.insert(price.id.clone(), price.clone());
        }
        self.operations.insert(transition.operation, StoredOperation { operation: after, result });
        let leg = Leg {
            operation: transition.operation,
            generation: transition.generation,
            wallet: transition.wallet,
        };
        self.write_funds(&leg, transition.funds, at);
        self.write_counters(transition, at);
        receipt.counters = self.tally(transition, at);
        Ok(receipt)
    }

    /// Work of the journal that waits for a node, or for any. There are no jobs and no deliveries in memory.
    pub(super) fn pending(&self, node: &Node, now: Timestamp) -> PendingWork {
        let rows = || self.operations.values().map(|row| &row.operation);
        let mut pending = PendingWork::NONE;
        if rows().any(|row| self.is_due(row, now)) {
            pending = pending.with(WorkKind::Due);
        }
        if rows().any(|row| row.phase == Phase::Leased && row.owner.node == *node) {
            pending = pending.with(WorkKind::Leased);
        }
        pending
    }

    fn is_due(&self, operation: &Operation, now: Timestamp) -> bool {
        let owner = &operation.owner.node;
        match operation.phase {
            Phase::Recorded(_) => true,
            Phase::Leased => {
                let lease = self.nodes.get(&owner.name);
                now > operation.deadline || !lease.is_some_and(|lease| lease.is_live(owner, now))
            }
            Phase::Open
            | Phase::Completed { .. }
            | Phase::Refused { .. }
            | Phase::Abandoned { .. } => false,
        }
    }
}

fn at_most(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
