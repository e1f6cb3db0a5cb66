//! Request failures: every reason why a request gets no answer, with the operation that it is about.
//!
//! Everything below the front names them: a claim that was refused, a tape that ended without a row.
//! Status codes and messages are not chosen here but in one table of `holdfast-http`.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::billing::UsageRecord;
use holdfast_domain::credential::BalanceVisibility;
use holdfast_domain::limits::ReachedLimit;
use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::{Currency, Micros, OperationId, Timestamp};
use holdfast_wire::chat::request::BadRequest;

use crate::routes::SkippedRoute;

/// Failure of a request. Every variant has one row in the table of errors.
#[derive(Debug, Clone)]
pub enum RequestFailure {
    /// The body cannot be taken.
    BadRequest(Arc<BadRequest>),
    /// The body is larger than its model takes.
    TooLarge {
        /// Limit of the model, in bytes.
        limit: usize,
    },
    /// A request that may not run, under a key that holds no answer and no run.
    NotBound,
    /// No such model.
    ModelNotFound {
        /// Id or alias that was probably meant, of the models that the API key may use.
        meant: Option<Arc<str>>,
    },
    /// No new run for the API key until it is resumed.
    ApiKeySuspended,
    /// No new run on the wallet until it is resumed.
    WalletSuspended,
    /// The API key may not use the model.
    ModelNotAllowed,
    /// The model has no price in the currency of the API key's wallet.
    NoPrice(Currency),
    /// The hold would exceed what the caller allowed.
    ChargeLimit {
        /// Hold of the request.
        hold: Micros,
        /// Maximum that the caller allowed.
        allowed: Micros,
    },
    /// The wallet has less available than the hold.
    InsufficientFunds {
        /// Hold of the request.
        hold: Micros,
        /// Balance a moment later, if it is less than the hold.
        available: Option<Micros>,
        /// Visibility of the balance to the API key.
        visibility: BalanceVisibility,
    },
    /// The wallet has less available than the hold, and the ends of operations that run may make up for it.
    FundsHeld {
        /// Hold of the request.
        hold: Micros,
        /// The wallet's amounts.
        balance: HeldBalance,
        /// Visibility of both to the API key.
        visibility: BalanceVisibility,
    },
    /// A limit of the API key is reached.
    LimitReached(ReachedLimit),
    /// No route that could take it may be taken now.
    PassedOver(SkippedRoute),
    /// Too many callers wait for this operation.
    TooManyWaiters,
    /// So many bytes of results are on their way to this API key that this one found no room.
    TooManyResults(OperationId),
    /// The key is bound to another request.
    OtherRequest,
    /// The ledger was restored, and the key may have run before.
    LedgerRestored {
        /// End of the window, from which on the key runs.
        until: Option<Timestamp>,
    },
    /// Still running when the caller's wait ended.
    InProgress(OperationId),
    /// Outcome unknown for good: may have run, and was not charged.
    OutcomeUnknown(OperationId),
    /// Cancelled while it was open: it did not run, and never will under this key.
    CancelledUnrun(OperationId),
    /// The database has lost the claim that it ran by: it may have run, and may run again under the
    /// same key.
    ClaimLost(OperationId),
    /// Proven not run; the same key may be sent again after this time.
    NotRun(OperationId, Duration),
    /// Refused for good; the words of the first answer are gone.
    Refused(OperationId, ProviderRefusal),
    /// Completed; the content was deleted after its time.
    ResultExpired(OperationId, Box<UsageRecord>),
    /// Completed; another credential sealed the content.
    ResultSealed(OperationId, Box<UsageRecord>),
    /// The store fails to write or read a row; with the operation if the key is bound.
    Storage(Option<OperationId>),
    /// Completed but for its settlement, which the store refuses: this will be its charge.
    Recorded(OperationId, Micros),
    /// A limit of the process is reached: waiting commits, or bytes of answers that arrive or are on the way.
    Overloaded,
    /// Process draining: no new request is accepted.
    Draining,
    /// Ended, with content that does not open with the credential that sealed it: a bug or
    /// tampering, logged as an error. A retry does not help.
    Unreadable(OperationId, Option<Box<UsageRecord>>),
    /// A bug, which is logged for the operator.
    Internal(Option<OperationId>),
}

/// Amounts of a wallet whose funds are held, as the refusing transaction read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldBalance {
    /// Amount available.
    pub available: Micros,
    /// Sum of the holds of operations that run.
    pub held: Micros,
}

impl RequestFailure {
    /// Operation that it is about, if the key is bound and the caller may know.
    pub(crate) const fn operation(&self) -> Option<OperationId> {
        match self {
            Self::InProgress(id)
            | Self::TooManyResults(id)
            | Self::Unreadable(id, _)
            | Self::OutcomeUnknown(id)
            | Self::CancelledUnrun(id)
            | Self::ClaimLost(id)
            | Self::NotRun(id, _)
            | Self::Recorded(id, _)
            | Self::Refused(id, _)
            | Self::ResultExpired(id, _)
            | Self::ResultSealed(id, _) => Some(*id),
            Self::Storage(operation) | Self::Internal(operation) => *operation,
            Self::BadRequest(_)
            | Self::NotBound
            | Self::TooLarge { .. }
            | Self::ModelNotFound { .. }
            | Self::ApiKeySuspended
            | Self::WalletSuspended
            | Self::ModelNotAllowed
            | Self::NoPrice(_)
            | Self::ChargeLimit { .. }
            | Self::InsufficientFunds { .. }
            | Self::FundsHeld { .. }
            | Self::LimitReached(_)
            | Self::PassedOver(_)
            | Self::TooManyWaiters
            | Self::OtherRequest
            | Self::LedgerRestored { .. }
            | Self::Overloaded
            | Self::Draining => None,
        }
    }
}
