//! Counts of how operations end, each from an outcome that this process brought about: by a run, a
//! retry, a look-up, a cancel, a heartbeat or the reconciler. Not what another process brought about.

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

    /// Counts what was given up or settled for whoever ran it. What it used up was counted when its
    /// result was recorded.
    pub(crate) fn count_found(&self, found: Reconciliation) -> Snapshot {
        if let Some(operation) = found.snapshot.operation.as_ref().filter(|_row| found.moved) {
            self.outcome(operation.phase.label());
            self.money.expose(operation);
        }
        found.snapshot
    }
}
