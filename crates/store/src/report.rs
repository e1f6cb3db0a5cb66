//! What only a person or a gauge asks for: lists of operations, what is outstanding, usage by day or
//! by whom. Nothing in here shows a result.

use holdfast_domain::operation::{Lease, Operation};
use holdfast_domain::usage::Kind;
use holdfast_domain::{Currency, Micros, OperationId, Timestamp};

/// Which operations to list, the newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// Which of them.
    pub scope: Scope,
    /// At most so many.
    pub limit: u32,
    /// Only those whose key was bound before this one's.
    pub before: Option<OperationId>,
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

/// What usage is summed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The UTC day of the settlement.
    Day,
    /// The public model id.
    Model,
    /// The API key's name.
    Key,
    /// The wallet's name.
    Wallet,
}

/// Usage that was settled, summed. Currencies are never added up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSum {
    /// The day, the model or the name.
    pub subject: String,
    /// In which it was charged.
    pub currency: Currency,
    /// How many operations.
    pub operations: u64,
    /// How much of each kind.
    pub meters: Vec<(Kind, u64)>,
    /// What was charged; refunds are not taken off.
    pub charge: Micros,
    /// What the meters cost beyond the holds.
    pub shortfall: Micros,
}
