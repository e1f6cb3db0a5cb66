//! Note of one failed call, for operators: HTTP status, the provider's error names and its filtered message,
//! or the kind of transport failure.
//!
//! Kept in the statistics of routes and nowhere else: not in a row of the ledger, a log, a metric, a span or an
//! answer. So it has no `Display`, and its `Debug` shows a length. `holdfast-providers` makes the notes that quote
//! a provider, in one function (`proof::failure_note`), which removes the request and credentials from them.

use super::{CallFailure, NotRunProof, UnknownReason};
use crate::debug_as;

/// Note of one failed call.
#[derive(Clone, PartialEq, Eq)]
pub struct FailureNote(Box<str>);

impl FailureNote {
    /// Length of a note, in characters at most.
    pub const CHARS_MAX: usize = 512;

    /// Note with this text, cut to [`Self::CHARS_MAX`]; control characters are left out.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let printable = text.chars().filter(|c| !c.is_control());
        Self(printable.take(Self::CHARS_MAX).collect::<String>().into())
    }

    /// Note of a failure for which the provider gave no text.
    #[must_use]
    pub fn of_failure(failure: &CallFailure) -> Self {
        let text = match failure {
            CallFailure::NotRun(NotRunProof::Connect) => "not connected",
            CallFailure::NotRun(NotRunProof::RateLimited) => "rate limited",
            CallFailure::NotRun(NotRunProof::Overloaded) => "overloaded",
            CallFailure::NotRun(NotRunProof::Account) => "account or route rejected",
            CallFailure::Refused(_) => "request refused",
            CallFailure::Unknown(UnknownReason::Status) => "status without a known meaning",
            CallFailure::Unknown(UnknownReason::Broken) => {
                "connection broken after the request was sent"
            }
            CallFailure::Unknown(UnknownReason::Timeout) => "timed out after the request was sent",
            CallFailure::Unknown(UnknownReason::Cut) => "cut by the gateway",
            CallFailure::Unknown(UnknownReason::Unreadable(why)) => {
                return Self::new(&format!("status 200: {why}"));
            }
        };
        Self::new(text)
    }

    /// Text of the note, for the statistics and for operators' pages.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

debug_as!(FailureNote as it: "FailureNote({} bytes)", it.0.len());
