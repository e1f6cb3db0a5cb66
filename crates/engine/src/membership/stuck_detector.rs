//! Detector of stuck operations: how long each has been due, as this process saw it.
//!
//! A row has no moment since which it is stale or recorded, so each process counts for itself, from the first pass
//! that found it. A restart counts anew, which reports later and never twice.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use holdfast_domain::OperationId;
use tokio::time::Instant;

/// Time for which an operation is due before it counts as stuck.
pub(super) const STUCK_AFTER: Duration = Duration::from_secs(300);

/// Operations that stood at the last pass.
#[derive(Debug, Default)]
pub(super) struct StuckDetector(HashMap<OperationId, Standing>);

#[derive(Debug, Clone, Copy)]
struct Standing {
    since: Instant,
    was_told: bool,
}

impl StuckDetector {
    /// Takes in the standing operations of a pass; returns those that have stood for [`STUCK_AFTER`] by now, each
    /// once.
    pub(super) fn look(
        &mut self,
        standing: &HashSet<OperationId>,
        now: Instant,
    ) -> Vec<OperationId> {
        // What came to rest is forgotten: if it is stuck again, that is another time.
        self.0.retain(|id, _standing| standing.contains(id));
        let mut stuck = Vec::new();
        for id in standing {
            let it = self.0.entry(*id).or_insert(Standing { since: now, was_told: false });
            if !it.was_told && now.duration_since(it.since) >= STUCK_AFTER {
                it.was_told = true;
                stuck.push(*id);
            }
        }
        // A set has another order in each process, and simulated time repeats a run.
        stuck.sort_unstable();
        stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_stuck_once_when_it_has_stood_for_long() {
        let [one, two] = [1, 2].map(OperationId::from_u128);
        let mut watch = StuckDetector::default();
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(watch.look(&[one].into(), at(0)), []);
        assert_eq!(watch.look(&[one, two].into(), at(299)), []);
        assert_eq!(watch.look(&[one, two].into(), at(300)), [one]);
        assert_eq!(watch.look(&[one, two].into(), at(301)), []);
        assert_eq!(watch.look(&[one].into(), at(600)), [], "the other one has come to rest");
        assert_eq!(watch.look(&[one, two].into(), at(700)), [], "and counts anew");
        assert_eq!(watch.look(&[two].into(), at(1_000)), [two]);
    }
}
