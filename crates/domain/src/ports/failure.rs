//! Failure of a call, by what is proven: not run, refused, or unknown.
//!
//! A wrong class costs money. *Not run* lets the same key, and the next route, send the request again: without
//! proof, two runs may be paid for. So each proof has a row with a source in the adapter's table, and any
//! answer without a row is unknown.

use crate::operation::ProviderRefusal;
use crate::statistics::FailureNote;

/// Failure of a call: all that is proven about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// The model did not run: the next route, or the same key again, may.
    #[error("the call did not run: {}", .0.label())]
    NotRun(NotRunProof),
    /// The provider refuses this request for good.
    #[error("the provider refused the request")]
    Refused(ProviderRefusal),
    /// The model may have run: the request must not be sent again, unless the operator has chosen
    /// to pay for that.
    #[error("the outcome of the call is unknown: {}", .0.label())]
    Unknown(UnknownReason),
}

impl CallFailure {
    /// Class of the failure, for attempts, logs and metrics.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::NotRun(why) => why.label(),
            Self::Refused(_) => "refused",
            Self::Unknown(why) => why.label(),
        }
    }

    /// Note for the statistics of routes, if the provider gave no text.
    #[must_use]
    pub fn note(&self) -> FailureNote {
        let text = match self {
            Self::NotRun(NotRunProof::Connect) => "not connected",
            Self::NotRun(NotRunProof::RateLimited) => "rate limited",
            Self::NotRun(NotRunProof::Overloaded) => "overloaded",
            Self::NotRun(NotRunProof::Account) => "account or route rejected",
            Self::Refused(_) => "request refused",
            Self::Unknown(UnknownReason::Status) => "status without a known meaning",
            Self::Unknown(UnknownReason::Broken) => "connection broken after the request was sent",
            Self::Unknown(UnknownReason::Timeout) => "timed out after the request was sent",
            Self::Unknown(UnknownReason::Cut) => "cut by the gateway",
            Self::Unknown(UnknownReason::Unreadable(why)) => {
                return FailureNote::new(&format!("status 200: {why}"));
            }
        };
        FailureNote::new(text)
    }
}

/// Proof that a call did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotRunProof {
    /// No connection came about before the first byte, or the call was dropped before there was
    /// one.
    Connect,
    /// The provider turned it away for its rate.
    RateLimited,
    /// The provider turned it away, and documents that it did not process it.
    Overloaded,
    /// The operator's account or route is wrong.
    Account,
}

impl NotRunProof {
    /// Name in attempts, logs and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Connect => "not_run_connect",
            Self::RateLimited => "not_run_rate_limited",
            Self::Overloaded => "not_run_overloaded",
            Self::Account => "not_run_account",
        }
    }
}

/// Reason why the outcome of a call is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownReason {
    /// A status that is no proof.
    Status,
    /// The connection broke after the request was sent.
    Broken,
    /// Time ran out after the request was sent.
    Timeout,
    /// Caller cancelled it, or the process had to end.
    Cut,
    /// The answer cannot be read, or is not whole.
    Unreadable(UnreadableReason),
}

impl UnknownReason {
    /// Name in attempts, logs and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Status => "unknown_status",
            Self::Broken => "unknown_broken",
            Self::Timeout => "unknown_timeout",
            Self::Cut => "unknown_cut",
            Self::Unreadable(_) => "unknown_unreadable",
        }
    }
}

/// Reason why a status of success has no usable answer. In every case the model may have run. Quotes no part of
/// the answer: a field is named by its documented path in the format of its kind of provider, and never by its
/// name in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum UnreadableReason {
    /// The body reports an error instead.
    #[error("the answer is an error under a status of success")]
    Error,
    /// The body is not JSON.
    #[error("the answer is not JSON")]
    Json,
    /// The body is JSON of too many values for its length.
    #[error("the answer has more values than an answer of its length may have")]
    Values,
    /// Choices are missing, doubled or more than requested, or one has no message.
    #[error("the answer has not the choices that were asked for, at {0}")]
    Choices(&'static str),
    /// A choice has content of an unknown kind.
    #[error("the answer has content of an unknown kind, at {0}")]
    Content(&'static str),
    /// A choice calls tools in a way that cannot be read, or ends with calls and has none.
    #[error("the answer calls tools in an unknown way, at {0}")]
    ToolCalls(&'static str),
    /// A choice calls more tools than any program intends.
    #[error("a choice of the answer has more than 1024 tool calls")]
    TooManyCalls,
    /// A choice has not ended, or in an unknown way.
    #[error("the answer has no known end, at {0}")]
    Finish(&'static str),
    /// The bytes of a stream are not framed as its kind frames them.
    #[error("the stream is not framed as its kind of provider frames it")]
    Framing,
    /// An event of a stream is longer than it may be.
    #[error("an event of the stream is longer than the provider's event_bytes")]
    LongEvent,
    /// An answer that does not stream is longer than it may be.
    #[error("the answer is longer than 16 MiB")]
    Long,
}

impl CallFailure {
    /// Reason for the operator besides the class; `None` if the class is enough.
    #[must_use]
    pub const fn reason(&self) -> Option<UnreadableReason> {
        match self {
            Self::Unknown(UnknownReason::Unreadable(why)) => Some(*why),
            Self::Unknown(
                UnknownReason::Status
                | UnknownReason::Broken
                | UnknownReason::Timeout
                | UnknownReason::Cut,
            )
            | Self::NotRun(_)
            | Self::Refused(_) => None,
        }
    }
}

/// Sentence of an attempt whose provider turned the request away for this field.
#[must_use]
pub fn rejected_text(field: &'static str) -> String {
    format!("the provider turns the request away for its field {field}")
}
