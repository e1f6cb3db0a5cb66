//! Answer as a caller received it, whole or in part, as JSON or as a stream: enough to compare two answers, without
//! anything that depends on the transport.

use std::fmt;

use serde_json::{Value, json};

use crate::events::{DONE, chunk};
use crate::http::unchunked;
use crate::{Answer, Waiting};

/// Bytes before the connection ended.
#[derive(Debug)]
pub(super) enum Delivery {
    /// All of an answer.
    Whole(WholeAnswer),
    /// Less than that.
    Part(Part),
}

/// An answer.
#[derive(Clone)]
pub(super) struct WholeAnswer {
    /// The status, or the one that the error at the end of a stream would have.
    pub(super) status: u16,
    /// Status and headers, as they came.
    pub(super) head: Answer,
    /// The exact bytes, if they were not a stream.
    pub(super) body: Option<Vec<u8>>,
    /// Content, in either form.
    pub(super) gist: Value,
}

/// The beginning of an answer.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Text of the model.
    pub(super) text: String,
    /// True if the end of the model's answer was received.
    pub(super) has_end: bool,
}

impl Delivery {
    /// Reads until the connection ends or so many bytes have come; whether it was the latter.
    pub(super) fn read(mut waiting: Waiting, bytes_max: usize) -> (Self, bool) {
        let bytes = waiting.read(bytes_max);
        let heard = Self::of(&bytes).unwrap_or_default();
        (heard, bytes.len() >= bytes_max)
    }

    /// `None` if not even a head has come.
    fn of(bytes: &[u8]) -> Option<Self> {
        let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let (head, body) = bytes.split_at(head_end);
        let head = Answer::of_head(str::from_utf8(head).expect("a head of text"));
        let Some(length) = head.header("content-length") else { return Some(streamed(head, body)) };
        let length: usize = length.parse().expect("a length");
        if body.len() < length {
            return None;
        }
        assert_eq!(body.len(), length, "nothing follows the answer");
        let told: Value = serde_json::from_slice(body).expect("JSON");
        let gist = if head.status == 200 { gist(&told) } else { told["error"].clone() };
        Some(Self::Whole(WholeAnswer {
            status: head.status,
            head,
            body: Some(body.to_vec()),
            gist,
        }))
    }
}

impl Default for Delivery {
    fn default() -> Self {
        Self::Part(Part::default())
    }
}

impl fmt::Debug for WholeAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, head, body: _, gist } = self;
        write!(f, "{status} {gist} {:?}", head.headers)
    }
}

impl WholeAnswer {
    /// True if it only requests a later retry: the store does not work now, or no call has run. Its status has to
    /// fit that.
    pub(super) fn is_for_now(&self) -> bool {
        let is_told = matches!(
            self.gist["code"].as_str(),
            Some("storage_unavailable" | "upstream_unavailable" | "draining")
        );
        assert!(!is_told || self.status == 503, "{self:?}");
        if is_told && self.head.status != 200 {
            assert_eq!(self.head.header("x-should-retry"), Some("true"), "{self:?}");
        }
        is_told
    }

    /// True if another request had it first.
    pub(super) fn is_replayed(&self) -> bool {
        self.head.header("idempotent-replayed") == Some("true")
    }

    /// Parts that are in both have to be equal.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let bodies = self.body.as_ref().zip(other.body.as_ref());
        self.status == other.status
            && self.gist == other.gist
            && bodies.is_none_or(|(one, two)| one == two)
    }
}

/// A stream: whole with its last event and the body's end, or with an error and without that end.
fn streamed(head: Answer, body: &[u8]) -> Delivery {
    let (text, is_whole) = unchunked(body);
    // It may end within a character.
    let text = String::from_utf8_lossy(&text);
    let (events, _begun) = text.rsplit_once("\n\n").unwrap_or_default();
    let events = events.split("\n\n").map(|event| event.trim_start_matches(": ping\n"));
    let events: Vec<_> = events.filter(|event| !event.is_empty()).collect();
    let is_done = events.last().is_some_and(|event| *event == DONE.trim_end());
    assert!(is_done || !is_whole, "an end that is none: {text}");
    let chunks = events.iter().filter(|event| **event != DONE.trim_end());
    let chunks: Vec<Value> = chunks.map(|event| chunk(event)).collect();
    if let Some(error) = chunks.last().and_then(|chunk| chunk.get("error")) {
        assert!(!is_whole, "an error has no end: {text}");
        let (status, gist) = (status(error), error.clone());
        return Delivery::Whole(WholeAnswer { status, head, body: None, gist });
    }
    let gist = assembled(&chunks);
    if is_whole {
        return Delivery::Whole(WholeAnswer { status: 200, head, body: None, gist });
    }
    let text = gist["content"].as_str().unwrap_or_default().to_owned();
    Delivery::Part(Part { text, has_end: !gist["finish_reason"].is_null() })
}

/// Status of an error without a byte before it.
fn status(error: &Value) -> u16 {
    match error["code"].as_str() {
        Some("provider_refused") => 422,
        Some("outcome_unknown") => 502,
        Some("upstream_unavailable" | "storage_unavailable" | "draining") => 503,
        _ => 500,
    }
}

/// One choice of a completion, put together of its chunks.
fn assembled(chunks: &[Value]) -> Value {
    let mut text = String::new();
    let (mut finish, mut usage) = (Value::Null, Value::Null);
    for chunk in chunks {
        if chunk["usage"].is_object() {
            usage = chunk["usage"].clone();
        }
        let choice = &chunk["choices"][0];
        text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        if !choice["finish_reason"].is_null() {
            finish = choice["finish_reason"].clone();
        }
    }
    let first = chunks.first().cloned().unwrap_or_default();
    let message = json!({"content": text});
    gist(&json!({
        "id": first["id"], "created": first["created"], "model": first["model"], "usage": usage,
        "choices": [{"message": message, "finish_reason": finish}],
    }))
}

fn gist(told: &Value) -> Value {
    let choice = &told["choices"][0];
    json!({
        "id": told["id"], "created": told["created"], "model": told["model"],
        "usage": told["usage"], "content": choice["message"]["content"],
        "finish_reason": choice["finish_reason"],
    })
}
