//! Reports for a person or a gauge: outstanding holds. Nothing in here shows a
//! result.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_domain::{Currency, Micros};

/// Sums over the holds of running operations.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct OutstandingHolds {
    /// Number of operations that hold something.
    pub count: u64,
    /// Held micros by currency; only currencies that anything is held of.
    pub amounts: BTreeMap<Currency, Micros>,
    /// Time since the oldest of them was admitted, by the database's clock.
    pub oldest_age: Duration,
}
