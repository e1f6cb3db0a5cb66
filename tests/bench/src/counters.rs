//! Counters that a gateway has of its own commits, as its `/metrics` shows them.
//!
//! They only grow: the work of a part is the difference of two readings.

use std::ops::{Add, Sub};

use holdfast_tests::config::ADMIN_TOKEN;
use holdfast_tests::{Gateway, Request};

/// Commits so far, or of a part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) transactions: u64,
    pub(crate) changes: u64,
    pub(crate) statements: u64,
    pub(crate) rows: u64,
}

impl Counters {
    /// The counters of a gateway that runs.
    pub(crate) fn of(gateway: &Gateway) -> Self {
        let request = Request::get("/metrics").bearer(ADMIN_TOKEN);
        let answer = request.send(gateway.admin_address());
        Self::read(answer.text()).expect("the gateway counts its commits")
    }

    fn read(metrics: &str) -> Option<Self> {
        let number = |name: &str| {
            let lines = metrics.lines();
            let value = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).next();
            // A sum of whole numbers is a whole number, however it is spelled.
            value.map_or(Some(0), |value| value.split('.').next()?.parse().ok())
        };
        Some(Self {
            transactions: number("holdfast_commit_batch_size_count")?,
            changes: number("holdfast_commit_batch_size_sum")?,
            statements: number("holdfast_commit_statements_total")?,
            rows: number("holdfast_commit_rows_total")?,
        })
    }
}

impl Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            transactions: self.transactions + other.transactions,
            changes: self.changes + other.changes,
            statements: self.statements + other.statements,
            rows: self.rows + other.rows,
        }
    }
}

impl Sub for Counters {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            transactions: self.transactions - before.transactions,
            changes: self.changes - before.changes,
            statements: self.statements - before.statements,
            rows: self.rows - before.rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_their_whole_names() {
        let metrics = "# TYPE holdfast_commit_rows_total counter\n\
            holdfast_commit_rows_total 12\nholdfast_commit_statements_total 9\n\
            holdfast_commit_batch_size_bucket{le=\"1\"} 1\nholdfast_commit_batch_size_sum 4.0\n\
            holdfast_commit_batch_size_count 2\n";
        let read = Counters { transactions: 2, changes: 4, statements: 9, rows: 12 };
        assert_eq!(Counters::read(metrics), Some(read));
    }
}
