//! Interface of one kind of provider: the place of its credential, its addresses, the rendering of
//! its requests, the framing and reading of its answers, and the judgement of its errors.
//!
//! ```text
//! chain ─▶ provider                                               repeats requests under a key
//! provider ─▶ kinds ─▶ a file of `kinds/` for each kind                       one kind each: an Adapter
//!     │                  └─▶ refusals, turns, reading, reasoning    what several kinds share
//!     ├─▶ response ─▶ stream_decoder ─▶ frames
//!     │      └─▶ proof
//!     └─▶ transport
//!     all of them ─▶ adapter (this file) ─▶ server (options)
//! ```
//!
//! The modules that call a server are the same for every kind and know them through this file
//! alone. So none of them may name a kind, a kind's header or its signature: a new kind then changes
//! no line of what others are called with.
//!
//! An adapter has the operator's settings of a kind, and no other state: state that changes from one event of
//! an answer to the next is its `StreamParser`'s. Its functions are called by many calls at once, and `read`
//! also from a thread of its own.
//!
//! Limits: `render` is called after `check` has passed the same request and never fails; `sign` is
//! called once a request, after the body is rendered, because it signs the body's bytes.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use holdfast_domain::answer::{ChoiceDelta, Delta};
use holdfast_domain::ports::{Call, CallFailure, ResponseMode, Sink, UnsupportedParam};
use holdfast_domain::request::Request;
use holdfast_domain::usage::UsageReport;
use holdfast_wire::chat::upstream::{Completion, UnreadableReason};
use holdfast_wire::sse::Event;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};

use holdfast_net::{BadOptions, BaseUrl};

/// Place of the operator's credential in a request.
#[derive(Debug, Clone)]
pub(crate) enum CredentialHeader {
    /// `authorization: Bearer …`
    Bearer,
    /// Alone, in a header of this name.
    In(HeaderName),
}

/// Kind of provider, as the operator has set it.
pub(crate) trait Adapter: fmt::Debug + Send + Sync {
    /// Name of the kind in OpenTelemetry's conventions for generative AI.
    fn semantic_name(&self) -> &'static str;

    /// Place of the operator's credential.
    fn credential(&self) -> CredentialHeader;

    /// Header that goes along with every request.
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        None
    }

    /// Header in which the key of each call goes along, if the kind has one.
    fn key_header(&self) -> Option<HeaderName> {
        None
    }

    /// Path of a call below the base URL. Borrowed if every call has the same: its address is then made once.
    fn path(&self, model: &str, mode: ResponseMode) -> Cow<'static, str>;

    /// Address of the list of models, which runs none.
    fn list(&self, base_url: &BaseUrl) -> Result<Uri, BadOptions> {
        base_url.join("/models")
    }

    /// Shape of the states that its models require back with the results of calls; another layout has another
    /// name. `None` if they require none.
    fn state_shape(&self) -> Option<&'static str> {
        None
    }

    /// Finds the first part of a request that has no place there. Builds no body.
    fn check(&self, _request: &Request) -> Result<(), UnsupportedParam> {
        Ok(())
    }

    /// Bytes of prompt that the rendering adds to a request's own.
    fn added_prompt_bytes(&self, _request: &Request) -> u64 {
        0
    }

    /// Body for a call whose request was checked.
    fn render(&self, call: &Call) -> Vec<u8>;

    /// True if `sign` adds headers: requests then need no other credential.
    fn signs(&self) -> bool {
        false
    }

    /// Adds the headers that prove who sends a request, and when: now.
    fn sign(&self, _unsigned: &SignableRequest<'_>, _headers: &mut HeaderMap) {}

    /// Form of the events in a stream.
    fn framing(&self) -> Framing {
        Framing::Events
    }

    /// Reads a success that came whole.
    fn read(&self, body: &[u8], call: &Call) -> Result<Completion, UnreadableReason>;

    /// Follows one that comes in pieces.
    fn follow(&self, call: &Call) -> Box<dyn StreamParser>;

    /// Header that names an error, if one does: of all the others of an answer that is no success, only
    /// `retry-after` is read.
    fn error_header(&self) -> Option<HeaderName> {
        None
    }

    /// Judges an answer that is no success.
    fn judge(&self, rejected: &ErrorResponse) -> CallFailure;
}

impl dyn Adapter {
    /// Reads a success that came whole, and passes its content to the sink.
    pub(crate) fn deliver(
        &self,
        body: &[u8],
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<UsageReport>, UnreadableReason> {
        let Completion { delta, usage } = self.read(body, call)?;
        sink.on_delta(delta);
        Ok(usage)
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

/// Request as a signer sees it: the parts that a signature covers.
pub(crate) struct SignableRequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) body: &'a [u8],
}

/// An answer that is no success.
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    /// The name of the error, if a header has it.
    pub(crate) kind: Option<String>,
    /// Body; empty if it did not come in time, or was too long.
    pub(crate) body: Bytes,
}

/// Puts the events of one answer in relation to each other.
pub(crate) trait StreamParser: Send {
    /// Reads an event with content.
    fn read(&mut self, event: Event<'_>) -> Result<EventOutcome, UnreadableReason>;

    /// True if every choice has ended: at most the usage is missing then.
    fn is_whole(&self) -> bool;

    /// The end of the answer: its usage as reported, unchecked.
    fn end(&self) -> Result<Option<UsageReport>, UnreadableReason>;
}

/// Gain of one event.
pub(crate) enum EventOutcome {
    /// The answer goes on by this.
    More(Delta),
    /// The answer goes on, and this event adds no content.
    Nothing,
    /// The answer ends; later events are not read.
    Last,
}

impl From<Delta> for EventOutcome {
    /// Leaves out the choices without a gain.
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
