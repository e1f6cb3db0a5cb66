//! Judgement of an answer without a completion: the one place where it becomes a [`CallFailure`],
//! with a table for each kind of provider.
//!
//! ```text
//! SendError ───────────────────────▶ of_send_error ─┐
//! a 200 that is no completion ─────▶ unreadable ────┼─▶ NotRun, Refused or Unknown
//! any other status, with its body ─▶ of_status ─────┘   (the first row of the kind's table)
//! ```
//!
//! A wrong row costs money: calling a run "not run" makes somebody pay for two. So every row needs
//! a document that says so, and whatever has no row is unknown. A row with a name or a text stands
//! above the row of its bare status; without a body that can be read, the bare status counts, and
//! proves less.
//!
//! Never: a word of an error's body outside of this module, because it may quote the prompt; or a
//! row that rests on what a provider usually does.

mod anthropic;
mod azure;
mod bedrock;
mod gemini;
mod openai;

use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::ports::{CallFailure, NotRunProof, UnknownReason, UnreadableReason};
use holdfast_wire::chat::upstream::{UpstreamError, read_error};
use holdfast_wire::json::{Node, parse_answer};
use http::StatusCode;

pub(crate) use self::anthropic::of_status as anthropic;
pub(crate) use self::azure::of_status as azure;
pub(crate) use self::bedrock::of_status as bedrock;
pub(crate) use self::gemini::of_status as gemini;
pub(crate) use self::openai::of_status as openai;
use crate::adapter::ErrorResponse;
use crate::transport::SendError;

/// A 200 whose body is no whole completion: garbage, an error object, missing choices.
pub(crate) const fn unreadable(why: UnreadableReason) -> CallFailure {
    CallFailure::Unknown(UnknownReason::Unreadable(why))
}

const ACCOUNT: CallFailure = CallFailure::NotRun(NotRunProof::Account);
const RATE_LIMITED: CallFailure = CallFailure::NotRun(NotRunProof::RateLimited);
const OVERLOADED: CallFailure = CallFailure::NotRun(NotRunProof::Overloaded);
const CONTEXT_LENGTH: CallFailure = CallFailure::Refused(ProviderRefusal::ContextLength);
const REQUEST: CallFailure = CallFailure::Refused(ProviderRefusal::Request);

/// A status, what the error must say besides, and the proof.
struct ProofRow(u16, ErrorPattern, CallFailure);

/// Condition of a row on an error's body, besides the status.
enum ErrorPattern {
    /// No condition: the status alone proves it.
    Anything,
    /// An error with one of these names.
    Name(&'static [&'static str]),
    /// An error whose message begins with one of these texts.
    Message(&'static [&'static str]),
}

/// Names and message of an error. No word of it leaves this module: it may quote the prompt.
#[derive(Default)]
struct UpstreamErrorBody {
    names: Vec<String>,
    message: Option<String>,
}

impl UpstreamErrorBody {
    /// Reads `{"error": {…}}`; its names are texts at these places in it.
    fn read(body: &[u8], names: &[&[&str]]) -> Self {
        // A body that cannot be read fits only rows without a condition.
        let Ok(body) = parse_answer(body) else { return Self::default() };
        let Some(error) = body.get("error") else { return Self::default() };
        let text = |place: &&[&str]| {
            let found = place.iter().try_fold(error, |node, name| node.get(name));
            found.and_then(Node::as_str).map(str::to_owned)
        };
        Self { names: names.iter().filter_map(text).collect(), message: text(&&["message"][..]) }
    }

    /// Reads `{"message": …}` of an error whose name is a header: what stands before a colon, which
    /// a URL follows.
    fn from_header(rejected: &ErrorResponse) -> Self {
        let body = parse_answer(&rejected.body).ok();
        let text = |name| body.as_ref().and_then(|body| body.get(name)?.as_str());
        let message = text("message").or_else(|| text("Message")).map(str::to_owned);
        let kind = rejected.kind.as_deref().and_then(|kind| kind.split(':').next());
        Self { names: kind.map(str::to_owned).into_iter().collect(), message }
    }

    /// Reads an error in OpenAI's dialect, whose name is its `code` or its `type`.
    fn of_openai(body: &[u8]) -> Self {
        let UpstreamError { code, kind, message, .. } = read_error(body);
        Self { names: [code, kind].into_iter().flatten().collect(), message }
    }

    /// Proof of the first row of a kind's table that fits.
    fn judge(&self, table: &[ProofRow], status: StatusCode) -> CallFailure {
        let row = table.iter().find(|ProofRow(of, says, _)| status == *of && self.matches(says));
        row.map_or(CallFailure::Unknown(UnknownReason::Status), |ProofRow(_, _, proves)| *proves)
    }

    fn matches(&self, says: &ErrorPattern) -> bool {
        match says {
            ErrorPattern::Anything => true,
            ErrorPattern::Name(names) => {
                self.names.iter().any(|name| names.contains(&name.as_str()))
            }
            ErrorPattern::Message(starts) => self
                .message
                .as_ref()
                .is_some_and(|message| starts.iter().any(|start| message.starts_with(start))),
        }
    }
}

/// Proof of a missing answer, by how far its request came.
pub(crate) const fn of_send_error(cause: SendError) -> CallFailure {
    match cause {
        SendError::Unsent => CallFailure::NotRun(NotRunProof::Connect),
        SendError::Sent => CallFailure::Unknown(UnknownReason::Broken),
        // Only a 200 is read that far, so this proves no more than an answer that is garbage.
        SendError::TooLarge => unreadable(UnreadableReason::Long),
    }
}
