//! Note of one failed call, for operators: HTTP status, the provider's error names and its filtered message,
//! or the kind of transport failure.
//!
//! Kept in the statistics of routes and nowhere else: not in a row of the ledger, a log, a metric, a span or an
//! answer. So it has no `Display`, and its `Debug` shows a length. `holdfast-providers` makes the notes that quote
//! a provider, in one function (`proof::failure_note`), which removes the request and credentials from them.

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
        // The text is a stranger's, and an operator may read it on a terminal.
        let printable = text.chars().filter(|c| !c.is_control());
        Self(printable.take(Self::CHARS_MAX).collect::<String>().into())
    }

    /// Text of the note, for the statistics and for operators' pages.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

debug_as!(FailureNote as it: "FailureNote({} bytes)", it.0.len());
