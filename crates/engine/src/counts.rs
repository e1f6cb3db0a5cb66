//! Counts of the endings of operations, each from an outcome that this process brought about: by a run, a retry, a
//! look-up, a cancel, a heartbeat or the reconciler. Outcomes of other processes are not counted.

use holdfast_domain::conduct::{Conclusion, Reconciliation};
use holdfast_domain::operation::Snapshot;

use crate::metrics::Metrics;

impl Metrics {
    /// Counts the ending of an own run, and what it used up.
    pub(crate) fn count_concluded(&self, concluded: &Conclusion) {
        let Some(operation) = concluded.snapshot.operation.as_ref().filter(|_row| concluded.moved)
        else {
            return;
        };
        self.outcome(operation.phase.label());
        if let Some(usage) = operation.phase.usage() {
            self.money.settle(operation, usage);
        }
        self.money.expose(operation);
    }

    /// Counts an operation that was given up or settled for its owner, and logs the owner: a process that was
    /// killed cannot log it. Its usage was counted when its result was recorded.
    pub(crate) fn count_found(&self, found: Reconciliation) -> Snapshot {
        if let Some(operation) = found.snapshot.operation.as_ref().filter(|_row| found.moved) {
            let phase = operation.phase.label();
            self.outcome(phase);
            self.money.expose(operation);
            let age = found.snapshot.now.since(operation.admitted_at);
            tracing::info!(
                operation.id = %operation.id,
                node.name = %operation.owner.node.name,
                age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
                phase,
                "reconciled"
            );
        }
        found.snapshot
    }
}
