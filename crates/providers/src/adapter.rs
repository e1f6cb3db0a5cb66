//! Interface of one kind of provider: the place of its credential, the signing of its requests, the
//! framing and reading of its answers, and the judgement of its errors.
//!
//! ```text
//! anthropic, azure, bedrock, gemini, openai      one kind each: a Dialect, and what it is sent
//!        └─▶ server ─▶ response ─▶ stream_decoder ─▶ frames
//!              │          └─▶ proof
//!              └─▶ transport
//!        all of them ─▶ adapter (this file, which uses none of them)
//! ```
//!
//! The modules that call a server are the same for every kind and know them through this file
//! alone. So none of them may name a kind, a kind's header or its signer: a new kind then changes
//! no line of what others are called with.
//!
//! Limits: a dialect is constant, and is shared by all servers of its kind. A signer is asked once
//! a request, after the body is rendered, because it signs the body's bytes.

use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;
use holdfast_domain::answer::{ChoiceDelta, Delta};
use holdfast_domain::ports::{Call, CallFailure, Sink};
use holdfast_domain::usage::Meters;
use holdfast_wire::chat::upstream::{Completion, UnreadableReason};
use holdfast_wire::sse::Event;
use http::{HeaderMap, HeaderName, Method, StatusCode, Uri};

/// Place of the operator's credential in a request.
#[derive(Debug, Clone)]
pub(crate) enum CredentialHeader {
    /// `authorization: Bearer …`
    Bearer,
    /// Alone, in a header of this name.
    In(HeaderName),
}

/// Reading of one kind's answers: constant functions, no state.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// Form of the events in a stream.
    pub(crate) framing: Framing,
    /// Reads a success that came whole.
    pub(crate) read: fn(&[u8], &Call) -> Result<Completion, UnreadableReason>,
    /// Follows one that comes in pieces.
    pub(crate) follow: fn(&Call) -> Box<dyn StreamParser>,
    /// The header that names an error, where one does: of all the others of an answer that is no
    /// success, only `retry-after` is read.
    pub(crate) error_header: Option<HeaderName>,
    /// Judges anything else.
    pub(crate) judge: fn(&ErrorResponse) -> CallFailure,
}

impl Dialect {
    /// Reads a success that came whole, and tells the sink what it says.
    pub(crate) fn deliver(
        &self,
        body: &[u8],
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<Meters>, UnreadableReason> {
        let Completion { delta, meters } = (self.read)(body, call)?;
        sink.on_delta(delta);
        Ok(meters)
    }
}

/// Form of the events in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// AWS's event stream.
    Aws,
}

/// Signs every request to a server, for kinds where a credential alone is not enough.
pub(crate) trait RequestSigner: fmt::Debug + Send + Sync {
    /// Adds the headers that prove who sends it, as of `now`.
    fn sign(&self, unsigned: &SignableRequest<'_>, now: SystemTime, headers: &mut HeaderMap);
}

/// Request as a signer sees it: the parts that a signature covers.
pub(crate) struct SignableRequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) body: &'a [u8],
}

/// An answer that is no success.
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    /// The name of the error, where a header has it.
    pub(crate) kind: Option<String>,
    /// Body; empty where it did not come in time, or was too long.
    pub(crate) body: Bytes,
}

/// Puts the events of one answer in relation to each other.
pub(crate) trait StreamParser: Send {
    /// Reads an event that says something.
    fn read(&mut self, event: Event<'_>) -> Result<EventOutcome, UnreadableReason>;

    /// Says if every choice has ended: at most the usage is missing then.
    fn is_whole(&self) -> bool;

    /// The end of the answer: what was reported to have been used up, where that can be believed.
    fn end(&self) -> Result<Option<Meters>, UnreadableReason>;
}

/// Gain of one event.
pub(crate) enum EventOutcome {
    /// The answer goes on by this.
    More(Delta),
    /// The answer goes on, and this event adds nothing.
    Nothing,
    /// The answer ends; whatever follows is not read.
    Last,
}

impl From<Delta> for EventOutcome {
    /// Leaves out the choices that gained nothing.
    fn from(mut delta: Delta) -> Self {
        delta.choices.retain(|choice| {
            let nothing = ChoiceDelta { index: choice.index, ..ChoiceDelta::default() };
            *choice != nothing
        });
        if delta == Delta::default() { Self::Nothing } else { Self::More(delta) }
    }
}

/// A text as one segment of a path: what is not plain there is encoded.
pub(crate) fn segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        match char::from(byte) {
            plain @ ('a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' | '~') => {
                segment.push(plain);
            }
            _ => segment.push_str(&format!("%{byte:02X}")),
        }
    }
    segment
}
