//! Cache of the rows of operations that the writer has let run, so that their endings need not read them: a claim
//! is committed here, and most endings come to the same process.
//!
//! ```text
//! claim commits  -> remember (seq, version, claim)
//! ending arrives -> take, if version and claim are as it expects  -> judged without a read
//! UPDATE counts too few rows, or the verdict is a refusal         -> Misled: read, judge again
//! ```
//!
//! A row holds on the connection that it was committed on, and is dropped with it: the next server may have lost
//! that commit. Another process may have changed the row since, so a verdict by it is valid only if the row that is
//! written proves to be that one. No change is ever refused by it. A row is given once, so a batch can be misled
//! once.
//!
//! Bound: two generations of `ROOM` rows, some hundred bytes each; the older one goes when the newer is full.

use std::collections::{BTreeMap, HashMap};
use std::mem;

use holdfast_domain::OperationId;
use holdfast_domain::operation::Transition;

use crate::batch::judge::{Acceptance, OperationRow};

/// Rows of a generation: when the newer one has so many, it becomes the older one, whose rows go.
const ROOM: usize = 4_096;

/// Rows of running operations as they were committed, in two generations.
#[derive(Debug, Default)]
pub(super) struct RowCache {
    last: HashMap<OperationId, OperationRow>,
    before: HashMap<OperationId, OperationRow>,
}

impl RowCache {
    /// Remembers the row of a committed change, if its operation runs from then on.
    pub(super) fn remember(&mut self, change: &Transition, passed: Acceptance) {
        // Only a start: what does not run has no ending to come.
        if change.start().is_some()
            && let Some(seq) = passed.seq
            && let Some(row) = OperationRow::after(change, seq, passed.version)
        {
            if self.last.len() >= ROOM {
                // Whole generations go: no order of use is kept, and no scan is needed.
                self.before = mem::take(&mut self.last);
            }
            self.last.insert(change.operation, row);
        }
    }

    /// Rows that are as these changes expect them, taken out of the cache: a misled batch reads the table.
    pub(super) fn take(&mut self, changes: &[&Transition]) -> BTreeMap<OperationId, OperationRow> {
        let mut taken = BTreeMap::new();
        for change in changes {
            if change.expected.is_some()
                && let Some(row) = self.forget(change.operation)
                && change.matches_row(Some((row.version, row.claim)))
            {
                taken.insert(change.operation, row);
            }
        }
        taken
    }

    fn forget(&mut self, operation: OperationId) -> Option<OperationRow> {
        self.last.remove(&operation).or_else(|| self.before.remove(&operation))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use holdfast_domain::limits::CounterReadings;
    use holdfast_domain::operation::{Receipt, Version};
    use holdfast_domain::{Event, Snapshot, decide};
    use holdfast_testkit::laws::tenant::operation_change;
    use holdfast_testkit::sample::{self, NOW};

    use super::*;

    fn admission(n: u64) -> Arc<Transition> {
        sample::admission(&sample::claim().request_key(sample::request_key(n)).build())
    }

    /// Change that requests to cancel this admission, at some version.
    fn asked(admission: &Transition, version: Version) -> Arc<Transition> {
        let receipt =
            Receipt { version: Version::FIRST, at: NOW, counters: CounterReadings::default() };
        let mut operation = operation_change(admission).apply(None, receipt).unwrap();
        operation.version = version;
        let snapshot = Snapshot { operation: Some(operation), ..Snapshot::vacant(NOW) };
        Arc::new(decide(&snapshot, Event::AskCancel).unwrap())
    }

    fn passed(seq: i64) -> Acceptance {
        Acceptance { seq: Some(seq), version: Version::FIRST, tally: CounterReadings::default() }
    }

    #[test]
    fn a_row_is_given_once_to_who_expects_it() {
        let mut runs = RowCache::default();
        let admissions = [1, 2, 3].map(admission);
        for (seq, admission) in (7..).zip(&admissions) {
            runs.remember(admission, passed(seq));
        }
        let [first, second, third] = &admissions;
        let cancelled = asked(first, Version::FIRST);
        let other = asked(second, Version::new(2));
        let row = OperationRow::after(operation_change(first), 7, Version::FIRST).unwrap();
        let changes: [&Transition; 3] = [&cancelled, &other, third];
        let id = operation_change(first).operation;
        assert_eq!(runs.take(&changes), BTreeMap::from([(id, row)]), "one is of another version");
        assert_eq!(runs.take(&changes), BTreeMap::new());
        runs.remember(&cancelled, passed(7));
        assert_eq!(runs.take(&changes), BTreeMap::new(), "only those that begin to run");
        let expected = asked(second, Version::FIRST);
        assert_eq!(runs.take(&[&expected]), BTreeMap::new(), "who expects another knows better");
        assert_eq!(runs.take(&[&asked(third, Version::FIRST)]).len(), 1);
    }

    #[test]
    fn what_is_remembered_has_a_bound_and_the_last_ones_stay() {
        let mut runs = RowCache::default();
        let count = 2 * ROOM + 2;
        let change = admission(1);
        let mut transition = (*change).clone();
        for n in 0..count {
            transition.operation = OperationId::from_u128(u128::try_from(n).unwrap());
            runs.remember(&transition.clone(), passed(1));
        }
        assert_eq!((runs.last.len(), runs.before.len()), (2, ROOM));
        let is_there = |n: usize| {
            let id = OperationId::from_u128(u128::try_from(n).unwrap());
            runs.last.contains_key(&id) || runs.before.contains_key(&id)
        };
        assert!(is_there(count - 1) && is_there(count - ROOM) && !is_there(1));
    }
}
