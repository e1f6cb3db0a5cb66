//! Judgement of an answer without a completion: the only place that turns it into a [`CallFailure`], by a table
//! that lies in the folder of each kind.
//!
//! ```text
//! SendError ───────────────────────▶ of_send_error ─┐
//! a 200 that is no completion ─────▶ unreadable ────┼─▶ NotRun, Refused or Unknown
//! any other status, with its body ─▶ of_status ─────┘   (the first row of the kind's table)
//! ```
//!
//! A wrong row costs money: if a run is called "not run", two runs are paid for. So every row needs a document
//! as its source, and any error without a row is unknown. A row with a name or a text stands above the row of
//! its bare status; without a body that can be read, the bare status counts, and proves less.
//!
//! All kinds share two tables of names and texts, each used only for the statuses in the kind's own
//! table: [`overflow`], a prompt that does not fit, and [`no_model`], a missing model.
//!
//! Never: a word of an error's body outside of this module, because it may quote the prompt, except by
//! [`failure_note`], which removes the request and credentials from its note for operators; or a
//! row that rests on what a provider usually does.

mod credentials;
mod echoes;
mod error_body;
mod failure_note;
mod no_model;
mod overflow;
mod shape;

use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::ports::{CallFailure, NotRunProof, UnknownReason, UnreadableReason};
use http::StatusCode;

pub(crate) use self::error_body::UpstreamErrorBody;
pub(crate) use self::failure_note::{
    SENT_BYTES_MAX, failure_note, note_of_send_error, note_of_status,
};
use self::shape::{any_fits, fits, normal};
use holdfast_net::SendError;

/// A 200 whose body is no whole completion: garbage, an error object, missing choices.
pub(crate) const fn unreadable(why: UnreadableReason) -> CallFailure {
    CallFailure::Unknown(UnknownReason::Unreadable(why))
}

pub(crate) const ACCOUNT: CallFailure = CallFailure::NotRun(NotRunProof::Account);
pub(crate) const RATE_LIMITED: CallFailure = CallFailure::NotRun(NotRunProof::RateLimited);
pub(crate) const OVERLOADED: CallFailure = CallFailure::NotRun(NotRunProof::Overloaded);
pub(crate) const CONTEXT_LENGTH: CallFailure = CallFailure::Refused(ProviderRefusal::ContextLength);
pub(crate) const REQUEST: CallFailure = CallFailure::Refused(ProviderRefusal::Request);

/// A status, the required content of the error, and the proof.
pub(crate) struct ProofRow(pub(crate) u16, pub(crate) ErrorPattern, pub(crate) CallFailure);

/// Condition of a row on an error's body, besides the status.
pub(crate) enum ErrorPattern {
    /// No condition: the status alone proves it.
    Anything,
    /// An error with one of these names.
    Name(&'static [&'static str]),
    /// An error whose message begins with one of these texts.
    Message(&'static [&'static str]),
    /// An error for a prompt that does not fit in its model's context.
    Overflow,
    /// An error for a model that the server does not have.
    NoModel,
}

impl UpstreamErrorBody {
    /// Proof of the first row of a kind's table that fits.
    pub(crate) fn judge(&self, table: &[ProofRow], status: StatusCode) -> CallFailure {
        let row = table.iter().find(|ProofRow(of, says, _)| status == *of && self.matches(says));
        row.map_or(CallFailure::Unknown(UnknownReason::Status), |ProofRow(_, _, proves)| *proves)
    }

    fn matches(&self, says: &ErrorPattern) -> bool {
        match says {
            ErrorPattern::Anything => true,
            ErrorPattern::Name(names) => self.has_name(names),
            ErrorPattern::Message(starts) => self
                .message
                .as_ref()
                .is_some_and(|message| starts.iter().any(|start| message.starts_with(start))),
            ErrorPattern::Overflow => {
                self.has_name(overflow::NAMES)
                    || self.texts.iter().any(|text| any_fits(overflow::TEXTS, text))
            }
            ErrorPattern::NoModel => {
                let text = self.message.as_deref().map(normal).unwrap_or_default();
                self.has_name(no_model::NAMES)
                    || no_model::TEXTS.iter().any(|shape| fits(shape, &text))
            }
        }
    }

    fn has_name(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(&name.as_str()))
    }
}

/// Proof of a missing answer, by how far its request came.
pub(crate) const fn of_send_error(cause: SendError) -> CallFailure {
    match cause {
        SendError::Unsent(_) => CallFailure::NotRun(NotRunProof::Connect),
        SendError::Sent => CallFailure::Unknown(UnknownReason::Broken),
        // Only a 200 is read that far, so this proves no more than an answer that is garbage.
        SendError::TooLarge => unreadable(UnreadableReason::Long),
    }
}
