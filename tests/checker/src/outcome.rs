//! Meaning of an answer by its status and code, as the contract lists them.

use crate::history::Answer;

/// Meaning of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A completion, charged. Final.
    Completed,
    /// The provider's refusal. Final.
    Refused,
    /// A run whose outcome nobody will know. Final.
    Abandoned,
    /// The key is bound to another request.
    Conflict,
    /// It did not run, and may be sent again.
    NotRun,
    /// Refused before anything was bound, for want of funds or for a limit.
    Unbound,
    /// Ask again: nothing follows from it.
    Later,
}

impl Outcome {
    /// Meaning of a status and code; `None` if the contract does not list them for a request of a load.
    pub(crate) fn of(answer: &Answer) -> Option<Self> {
        Some(match (answer.status, answer.code.as_deref()) {
            (200, None) => Self::Completed,
            (422, Some("provider_refused")) => Self::Refused,
            (502, Some("outcome_unknown")) => Self::Abandoned,
            (409, Some("idempotency_key_conflict")) => Self::Conflict,
            (503, Some("upstream_unavailable")) => Self::NotRun,
            (402, Some("insufficient_funds" | "spend_limit_exceeded"))
            | (429, Some("rate_limit_exceeded")) => Self::Unbound,
            (409, Some("operation_in_progress"))
            | (429, Some("too_many_operations"))
            | (503, Some("storage_unavailable" | "draining" | "overloaded")) => Self::Later,
            (_, _) => return None,
        })
    }

    /// True if every later answer of the key is the same.
    pub(crate) const fn is_final(self) -> bool {
        match self {
            Self::Completed | Self::Refused | Self::Abandoned => true,
            Self::Conflict | Self::NotRun | Self::Unbound | Self::Later => false,
        }
    }
}
