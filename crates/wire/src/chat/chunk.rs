//! Rendering of a streamed answer: OpenAI's chunks, each one event (`data: {…}` and an empty line). Put
//! together they equal the rendering of the same answer by [`completion::render`](super::completion::render),
//! under the same ids.
//!
//! The order of a stream:
//!
//! 1. for each choice a chunk that opens it with its role, before its first delta;
//! 2. its deltas, from [`Chunks::delta`], in the order in which the model streams them;
//! 3. from [`Chunks::finish`], for each choice what clients cannot append (sources, the expiry of
//!    audio) and a chunk with its `finish_reason`; then the moderation, if there is one;
//! 4. from [`Chunks::usage`], for readers who requested it, a chunk without choices;
//! 5. [`DONE`], or instead of it, at any point, one [`error`].
//!
//! An event has two forms, with and without `"usage": null`, because readers of one run may have sent different
//! requests. Both are made from the same bytes, and each once.
//!
//! This module does not decide when a chunk is sent. Those of steps 3 and 4 promise a settled
//! charge, so that the operation has to be settled first.

mod choice_text;
mod delta;
mod pieces;
mod stored;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use holdfast_domain::answer::{Answer, Choice, ChoiceDelta, Delta, FinishReason};
use holdfast_domain::debug_as;
use holdfast_domain::request::ServiceTier;
use holdfast_domain::{OperationId, Timestamp};
use serde::Serialize;

pub use self::choice_text::ChoiceText;
use self::delta::{ChoiceProgress, ClosingDelta, DeltaFields, OpeningDelta};
pub use self::pieces::split_delta;
pub use self::stored::{NotStored, replay};
use super::completion::{CompletionView, Json, Logprobs, Usage, finish_label};
use crate::{render, sse};

/// The last event of a stream that has ended well.
pub const DONE: &[u8] = b"data: [DONE]\n\n";

const PLAIN_END: &[u8] = b"}\n\n";
const END_WITH_USAGE: &[u8] = b",\"usage\":null}\n\n";

/// Event of an error in the middle of a stream: `body` is what
/// [`ErrorBody::render`](crate::error::ErrorBody::render) made. No [`DONE`] may follow.
#[must_use]
pub fn error(body: &[u8]) -> Bytes {
    sse::event(body)
}

/// The form of a chunk for readers who requested usage: `"usage": null` means that it comes later. `None` for
/// an event that is no chunk.
#[must_use]
pub fn with_no_usage(event: &[u8]) -> Option<Bytes> {
    // The closing brace of the chunk ends the event, so the member goes in before it without reading JSON.
    let head = event.strip_suffix(PLAIN_END)?;
    Some([head, END_WITH_USAGE].concat().into())
}

/// A chunk as an event. Readers who requested usage find `"usage": null` in it, others do not: each form is
/// made once and shared.
#[derive(Clone)]
pub struct Frame {
    plain: Bytes,
    with_usage: OnceLock<Bytes>,
    /// Offset in `plain`, in bytes, of the members after the envelope.
    members_at: usize,
}

// Prints the size alone: the bytes are part of an answer.
debug_as!(Frame as it: "Frame({} bytes)", it.plain.len());

impl Frame {
    /// The event for readers of one sort.
    #[must_use]
    pub fn bytes(&self, include_usage: bool) -> Bytes {
        if !include_usage {
            return self.plain.clone();
        }
        self.with_usage.get_or_init(|| with_no_usage(&self.plain).unwrap_or_default()).clone()
    }

    /// Bytes of the event, for readers who did not request usage.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.plain.len()
    }

    /// Members after the envelope, with the closing brace: all that has to be stored of a chunk,
    /// since [`Envelope::chunk`] makes the same event of them.
    #[must_use]
    pub fn members(&self) -> &[u8] {
        let own = self.plain.get(self.members_at..).unwrap_or_default();
        own.strip_suffix(b"\n\n").unwrap_or_default()
    }
}

/// A piece of an answer as a chunk, and the text that it adds, if it adds only to one text.
pub struct DeltaChunk<'d> {
    /// The chunk.
    pub frame: Frame,
    /// The text that grows, and what is appended to it.
    pub text: Option<(ChoiceText, &'d str)>,
}

// Prints which text grows, and not what is said.
debug_as!(DeltaChunk<'_> as it: "DeltaChunk({:?}, {:?})", it.frame, it.text.map(|(lane, _text)| lane));

/// Beginning of every event of one answer: `data: {` and the members `id`, `object`, `created` and `model`; and
/// the service tier, once the provider has sent it.
#[derive(Clone)]
pub struct Envelope {
    head: Vec<u8>,
    service_tier: Option<ServiceTier>,
}

debug_as!(Envelope as it: "Envelope({} bytes)", it.head.len());

impl Envelope {
    /// The chunk that adds more to a text which has begun.
    #[must_use]
    pub fn text(&self, lane: ChoiceText, more: &str) -> Frame {
        let (index, delta) = (lane.choice(), lane.to_delta(more));
        let fields = ChoiceFields { index, delta, logprobs: None, finish_reason: None };
        self.frame(&ChoiceMembers { choices: [fields] })
    }

    /// The chunk with these members, as [`Frame::members`] returns them.
    #[must_use]
    pub fn chunk(&self, members: &[u8]) -> Frame {
        let mut bytes = Vec::with_capacity(self.head.len() + members.len() + 2 * PLAIN_END.len());
        bytes.extend_from_slice(&self.head);
        if let Some(tier) = self.service_tier {
            // Behind `model`, where the completion has it too.
            bytes.extend_from_slice(b",\"service_tier\":");
            bytes.append(&mut render::to_bytes(&tier.label()));
        }
        bytes.push(b',');
        let members_at = bytes.len();
        bytes.extend_from_slice(members);
        bytes.extend_from_slice(b"\n\n");
        // The second form is made only when a reader asks for it.
        Frame { plain: bytes.into(), with_usage: OnceLock::new(), members_at }
    }

    /// An event of the head, the tier if it is known, and the members of `rest`.
    fn frame(&self, rest: &impl Serialize) -> Frame {
        let rest = render::to_bytes(rest);
        // The members of `rest` continue the object that the head opened, and its brace closes it.
        self.chunk(rest.strip_prefix(b"{").unwrap_or_default())
    }
}

/// Renders one answer as chunks, in the order of its deltas.
pub struct Chunks {
    id: OperationId,
    envelope: Arc<Envelope>,
    choices: BTreeMap<u32, ChoiceProgress>,
}

debug_as!(Chunks as it: "Chunks({}, {} choices)", it.id, it.choices.len());

impl Chunks {
    /// Renderer of an answer without any delta yet. `id` is the operation's, `created` the moment at which its
    /// run was admitted, `model` its name as the request that bound the key wrote it.
    #[must_use]
    pub fn new(id: OperationId, created: Timestamp, model: &str) -> Self {
        let mut head = b"data: ".to_vec();
        head.append(&mut render::to_bytes(&Head {
            id: id.completion_id(),
            object: "chat.completion.chunk",
            created: created.as_seconds(),
            model,
        }));
        // The closing brace goes: each chunk adds members of its own.
        head.pop();
        let envelope = Arc::new(Envelope { head, service_tier: None });
        Self { id, envelope, choices: BTreeMap::new() }
    }

    /// Envelope of the next chunk; a later one may also have the service tier.
    #[must_use]
    pub const fn envelope(&self) -> &Arc<Envelope> {
        &self.envelope
    }

    /// Chunks of one delta: at most one for each choice, and before its first one the chunk that
    /// opens the choice. Sources, ends and the expiry of audio are left to [`Self::finish`].
    pub fn delta<'d>(&mut self, delta: &'d Delta) -> Vec<DeltaChunk<'d>> {
        self.tier(delta.service_tier);
        let mut pieces = Vec::with_capacity(delta.choices.len());
        for gained in &delta.choices {
            self.push_delta(gained, &mut pieces);
        }
        pieces
    }

    fn tier(&mut self, tier: Option<ServiceTier>) {
        if tier.is_some() && tier != self.envelope.service_tier {
            // Whoever holds the envelope of earlier chunks keeps it without the tier, as they were told.
            Arc::make_mut(&mut self.envelope).service_tier = tier;
        }
    }

    /// The rest of every choice and its end, then the results of a moderation. `answer` is the sum of the
    /// deltas; a choice that has not ended was cut and ends with `length`.
    pub fn finish(&mut self, answer: &Answer) -> Vec<Frame> {
        self.tier(answer.service_tier);
        let mut frames = Vec::new();
        for (index, choice) in answer.choices() {
            // A choice that has said nothing yet is opened here: clients take no end of what has no role.
            frames.extend(self.open(index, choice.content.as_deref().map(|_later| "")));
            self.close(index, choice, &mut frames);
        }
        if let Some(moderation) = &answer.moderation {
            frames
                .push(self.frame(&ModerationMembers { choices: [], moderation: Json(moderation) }));
        }
        frames
    }

    /// The chunk with the answer's usage and its charge; for readers who requested it, between [`Self::finish`]
    /// and [`DONE`].
    #[must_use]
    pub fn usage(&self, view: &CompletionView<'_>) -> Bytes {
        let usage = Usage::of(view.usage, view.answer.predicted);
        // In one form alone: it goes to readers who asked for usage, and has it.
        self.frame(&UsageMembers { choices: [], usage }).plain
    }

    fn push_delta<'d>(&mut self, gained: &'d ChoiceDelta, pieces: &mut Vec<DeltaChunk<'d>>) {
        let index = gained.index;
        let opening = self.open(index, gained.content.as_deref().map(|_now| ""));
        pieces.extend(opening.map(|frame| DeltaChunk { frame, text: None }));
        // Always there: `open` has just put it there, or an earlier delta did.
        let Some(begun) = self.choices.get_mut(&index) else { return };
        let (delta, logprobs) = begun.next_delta(self.id, gained);
        if !delta.is_empty() || logprobs.is_some() {
            // Text with log-probabilities is more than text: no bare text makes the same chunk.
            let text = if logprobs.is_none() { delta.text(index) } else { None };
            let logprobs = logprobs.map(Logprobs::of);
            let fields = ChoiceFields { index, delta, logprobs, finish_reason: None };
            pieces.push(DeltaChunk { frame: self.choice(fields), text });
        }
    }

    /// The chunk that opens a choice with its role; `None` if it is open already. Content that is given here is
    /// there, if empty, before more of it comes.
    fn open(&mut self, index: u32, content: Option<&str>) -> Option<Frame> {
        let Entry::Vacant(place) = self.choices.entry(index) else { return None };
        place.insert(
            content.map_or_else(ChoiceProgress::default, |_text| ChoiceProgress::with_content()),
        );
        let delta = OpeningDelta { role: "assistant", content, refusal: None };
        Some(self.choice(ChoiceFields { index, delta, logprobs: None, finish_reason: None }))
    }

    fn close(&self, index: u32, choice: &Choice, frames: &mut Vec<Frame>) {
        let rest = ClosingDelta::of(choice);
        if !rest.is_empty() {
            let fields = ChoiceFields { index, delta: rest, logprobs: None, finish_reason: None };
            frames.push(self.choice(fields));
        }
        let finish = choice.finish.unwrap_or(FinishReason::Length);
        let (delta, finish_reason) = (DeltaFields::default(), Some(finish_label(finish)));
        frames.push(self.choice(ChoiceFields { index, delta, logprobs: None, finish_reason }));
    }

    fn choice<D: Serialize>(&self, choice: ChoiceFields<'_, D>) -> Frame {
        self.frame(&ChoiceMembers { choices: [choice] })
    }

    fn frame(&self, rest: &impl Serialize) -> Frame {
        self.envelope.frame(rest)
    }
}

#[derive(Serialize)]
struct Head<'a> {
    id: String,
    object: &'static str,
    created: i64,
    model: &'a str,
}

#[derive(Serialize)]
struct ChoiceMembers<'a, D> {
    choices: [ChoiceFields<'a, D>; 1],
}

#[derive(Serialize)]
struct ChoiceFields<'a, D> {
    index: u32,
    delta: D,
    logprobs: Option<Logprobs<'a>>,
    finish_reason: Option<&'static str>,
}

#[derive(Serialize)]
struct ModerationMembers<'a> {
    choices: [(); 0],
    moderation: Json<'a>,
}

#[derive(Serialize)]
struct UsageMembers<U> {
    choices: [(); 0],
    usage: U,
}
