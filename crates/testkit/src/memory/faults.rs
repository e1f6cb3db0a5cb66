//! Faults of a commit, on demand.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use holdfast_domain::WalletId;
use holdfast_domain::operation::Transition;
use holdfast_domain::ports::Cause;

/// Fate of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No fault: lets one commit pass between two faults.
    None,
    /// Not committed, and the store returns an error.
    Unavailable,
    /// Too many commits wait; no row is committed.
    Overloaded,
    /// A rule of the tables forbids it, for an unforeseen reason; no row is committed.
    Forbidden,
    /// Committed, or refused as it would have been anyway, and the answer is lost.
    Landed,
    /// Not committed, and the answer is lost.
    NotLanded,
    /// The answer is lost while the transaction is still under way: reads show the old row, and the
    /// next commit waits for it and finds it landed.
    LandsLate,
}

/// The faults of one journal.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) next: VecDeque<Fault>,
    pub(super) loads: u32,
    pub(super) broken: BTreeSet<WalletId>,
    pub(super) late: Vec<Arc<Transition>>,
    pub(super) offers: u64,
    pub(super) result_bytes_max: Option<usize>,
}

/// Names what a test made happen.
#[derive(Debug, thiserror::Error)]
#[error("the test made it so: {0:?}")]
struct InjectedFault(Fault);

impl Fault {
    pub(super) fn cause(self) -> Cause {
        Box::new(InjectedFault(self))
    }
}
