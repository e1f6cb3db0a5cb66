//! Costs of the rows of a book, and steps of the summing.

use std::time::Duration;

use holdfast_domain::billing::COST_MAX;
use holdfast_store::Store;
use holdfast_store::usage::SummingProgress;

use super::Book;

impl Book {
    /// Cost of a run: some have none, and some one that no run can have caused.
    pub(super) fn cost(&mut self) -> Option<i64> {
        match self.roll(12) {
            0..4 => None,
            4 => Some(i64::MAX),
            5 => Some(COST_MAX.get() + 1),
            _usual => Some(self.amount(2_000)),
        }
    }
}

/// Sums everything that is there.
pub(crate) async fn sum_all(store: &Store) -> u32 {
    let mut steps = 0;
    while store.sum_usage_older_than(Duration::ZERO).await.unwrap() == SummingProgress::Step {
        steps += 1;
        assert!(steps < 1_000, "the summing has an end");
    }
    steps
}
