//! What only a person or a gauge asks for: lists of operations, what is outstanding. Nothing in
//! here shows a result.

use holdfast_domain::operation::{Lease, Operation};
use holdfast_domain::{Micros, Timestamp};

/// Which operations to list, the newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// Which of them.
    pub scope: Scope,
    /// At most so many.
    pub limit: u32,
}

/// Which operations a list is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    All,
    /// Those whose owner may be gone or whose settlement is missing.
    Stale,
}

/// An operation with what its situation depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The row.
    pub operation: Operation,
    /// The row of its node's name.
    pub lease: Option<Lease>,
    /// The database's clock.
    pub now: Timestamp,
}

/// What running operations hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outstanding {
    /// How many hold something back.
    pub count: u64,
    /// How much, over all currencies.
    pub amount: Micros,
    /// When the oldest of them was admitted.
    pub oldest_admitted_at: Option<Timestamp>,
    /// The database's clock.
    pub now: Timestamp,
}
