//! Verdicts of a store that did not commit a change: one for each possible next step of its caller.

use super::Cause;
use crate::Micros;
use crate::limits::ReachedLimit;

/// Reason why a change was not committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The row is not at the version that was judged, or the posting exists: load and decide again. Judged first.
    #[error("the row has changed since it was judged")]
    Conflict,
    /// Limits of the wallet's API keys were edited since the claim's were read: read them and claim again.
    #[error("the limits were edited since they were read")]
    LimitsEdited,
    /// A wallet would leave its bounds, a refund would pass its charge, or a posting's amount is not of its
    /// kind; a missing wallet has no funds. Judged after the limits.
    #[error("the wallet has not enough funds")]
    InsufficientFunds,
    /// A wallet has less available than a claim's hold, and would have enough with what its leased operations
    /// hold: their ends may make up for it. Both amounts as the refusing transaction read them.
    #[error("the wallet's funds are held by operations that run")]
    FundsHeld {
        /// Amount available.
        available: Micros,
        /// Sum of the holds of its leased operations.
        held: Micros,
    },
    /// A counter of the API key would pass its bound.
    #[error("the API key's limit of {} is reached", .0.counter.label())]
    LimitReached(ReachedLimit),
    /// A permanent id exists already, or another rule of the tables forbids the change: the effect was
    /// stopped, and will be as often as it is offered.
    #[error("a permanent id exists already, or the tables forbid it otherwise")]
    Collision,
    /// The result is larger than the store can hold, now or later: no row was committed, and no other change
    /// was delayed by it.
    #[error("the result is larger than the store can hold")]
    TooLarge,
    /// Too many commits wait; this one was not taken in.
    #[error("too many commits wait")]
    Overloaded,
    /// The store cannot be reached or does not work: no row was committed.
    #[error("the store is unavailable")]
    Unavailable(#[source] Cause),
    /// The answer to the commit was lost: it may have happened, or may happen yet. Offer it again,
    /// unchanged, until the verdict is another one.
    #[error("the store did not report whether it committed")]
    Uncertain(#[source] Cause),
}
