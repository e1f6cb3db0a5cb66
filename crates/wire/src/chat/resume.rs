//! Resumption of a broken stream: one unbroken answer out of several replays of it.
//!
//! The stream is requested again and begins anew, cut into other pieces. The part that the reader already has
//! is dropped from the replay, and compared as it is dropped. The reader sees one answer, or an error, and
//! never two answers in one.
//!
//! State, kept for each field by its path (members, and in lists `index`), never the answer itself:
//!
//! * a string that grows: length in bytes and a running hash of what was written;
//! * a list without indexes (of log-probabilities): the same over its elements, one after the
//!   other;
//! * a value that comes once (`role`, `id`, `type`, `finish_reason`): the same of the value.
//!
//! A replay keeps a second such map. While a field of it is shorter than the written one, its bytes are
//! dropped; once it is as long, the hashes must be equal. All further content is news, and waits until every
//! field is as far: a replay may send the parts of a choice in another order, and until all that was written
//! has come again it may yet be another answer. Then the news goes out, and the replay is the answer. An end
//! before that is the end of another answer.
//!
//! ```text
//! written   content "Good d", call 0 "{"
//! replay    content "Good day"   ▶ dropped "Good d", held "ay"    behind: call 0
//!           call 0  "{}"         ▶ dropped "{", out "ay" and "}"  behind: nothing
//! ```
//!
//! What may come more than once without harm (`usage: null`, an empty list of choices) is no value.

use std::collections::BTreeMap;

use bytes::Bytes;
use holdfast_domain::debug_as;

use crate::json::{self, Node};
use crate::sse;

/// Members of a delta that come once: everything else that is a string grows.
const ONCE: [&str; 3] = ["role", "id", "type"];
/// Members of a chunk by which one answer is known; any other value of theirs is another answer.
const OWN: [&str; 3] = ["id", "created", "model"];
/// The most texts and values of one answer.
const PLACES_MAX: usize = 16_384;
/// The most news that waits for the rest of a replay, in bytes: more than an answer of ours has.
const HELD_BYTES_MAX: usize = 32 << 20;

const PREFIX: &[u8] = b"data: ";
const END: &[u8] = b"\n\n";
const DONE: &[u8] = b"[DONE]";

/// Reason for which a stream cannot be continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// The replay contradicts what was written, or has another id, moment or model.
    #[error("another answer than the one that was begun")]
    OtherAnswer,
    /// An event that is no chunk, or no JSON.
    #[error("no event of an answer")]
    Unreadable,
    /// More fields than are kept, or more news that waits: at most `PLACES_MAX`, `HELD_BYTES_MAX`.
    #[error("an answer of too many parts")]
    TooMany,
}

/// Digests of what was written of an answer, and of its newest replay.
#[derive(Default)]
pub struct Resumption {
    written: BTreeMap<FieldPath, PrefixDigest>,
    /// The newest replay while it is behind; from then on it is what is written.
    replay: Option<Replay>,
    /// Choices whose end was written.
    n_finished: usize,
}

/// Replay that has not repeated all that was written.
#[derive(Default)]
struct Replay {
    fields: BTreeMap<FieldPath, PrefixDigest>,
    /// Written fields that it has not reached the end of.
    n_behind: usize,
    /// Choices that end in `held`.
    n_finished: usize,
    /// Events of its news, which wait for the rest.
    held: Vec<Bytes>,
    held_bytes: usize,
}

/// Path of a text, a list or a value: the members that lead to it, `0.delta.tool_calls[1].id`.
type FieldPath = Box<str>;

/// Length and hash of a field's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PrefixDigest {
    /// Length in bytes.
    length: usize,
    hash: Hash,
}

/// FNV-1a of 128 bits: the same for the same bytes in any pieces, and small to keep. The hash distinguishes a
/// replay of one answer from another answer; a forger would gain no advantage by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hash(u128);

impl Hash {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(Self::PRIME);
        }
    }
}

impl Default for PrefixDigest {
    fn default() -> Self {
        Self { length: 0, hash: Hash(Hash::OFFSET) }
    }
}

debug_as!(Resumption as it: "Resumption({} parts, again: {})", it.written.len(), it.replay.is_some());

impl Resumption {
    /// State of an answer of which no byte was written.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Choices whose `finish_reason` was written.
    #[must_use]
    pub const fn finished(&self) -> usize {
        self.n_finished
    }

    /// Begins a replay: the next event is the first of the answer again. What was held back of the
    /// last replay is forgotten.
    pub fn restart(&mut self) {
        let n_behind = self.written.len();
        // Where nothing was written there is nothing to compare with.
        self.replay = (n_behind > 0).then(|| Replay { n_behind, ..Replay::default() });
    }

    /// The events that are to be written after a whole one came: itself before the first break, in a
    /// replay none until all of what was written has come again, and then what was not written yet.
    ///
    /// # Errors
    ///
    /// [`ResumeError`]: no more of it may be written.
    pub fn filter(&mut self, event: &Bytes) -> Result<Vec<Bytes>, ResumeError> {
        let data = event.strip_prefix(PREFIX).and_then(|data| data.strip_suffix(END));
        let data = data.ok_or(ResumeError::Unreadable)?;
        if data == DONE {
            // A replay that ends while it is behind has said less than what was written.
            return if self.replay.is_some() {
                Err(ResumeError::OtherAnswer)
            } else {
                Ok(vec![event.clone()])
            };
        }
        let mut chunk = json::parse_answer(data).map_err(|_not_json| ResumeError::Unreadable)?;
        if chunk.get("error").is_some() {
            // An error ends the stream, whatever was written; what waits was never confirmed.
            return Ok(vec![event.clone()]);
        }
        let has_news = self.chunk(&mut chunk)?;
        // Out of a replay every event goes out as it came: byte for byte, and never spelled anew.
        let Some(mut replay) = self.replay.take() else { return Ok(vec![event.clone()]) };
        if has_news {
            replay.hold(sse::event(chunk.to_string().as_bytes()))?;
        }
        if replay.n_behind > 0 {
            self.replay = Some(replay);
            return Ok(Vec::new());
        }
        self.written = replay.fields;
        self.n_finished = self.n_finished.saturating_add(replay.n_finished);
        Ok(replay.held)
    }

    /// Drops from a chunk the part that was written; true if any is left.
    fn chunk(&mut self, chunk: &mut Node<'_>) -> Result<bool, ResumeError> {
        let Node::Object(members) = chunk else { return Err(ResumeError::Unreadable) };
        let mut has_news = false;
        for (name, value) in members {
            match (&**name, value) {
                // These are in every chunk: compared, and never news by themselves.
                (own, value) if OWN.contains(&own) => {
                    self.check_value(own.into(), &value.to_string())?;
                }
                ("choices", Node::Array(choices)) => {
                    let mut left = Vec::with_capacity(choices.len());
                    for mut choice in std::mem::take(choices) {
                        if self.choice(&mut choice)? {
                            left.push(choice);
                        }
                    }
                    has_news |= !left.is_empty();
                    *choices = left;
                }
                // Only objects: `usage: null` stands in every chunk of readers who asked for usage.
                ("usage" | "moderation", value @ Node::Object(_)) => {
                    has_news |= self.check_value((**name).into(), &value.to_string())?;
                }
                (_, _) => {}
            }
        }
        Ok(has_news)
    }

    fn choice(&mut self, choice: &mut Node<'_>) -> Result<bool, ResumeError> {
        let index = choice.get("index").and_then(Node::as_number);
        // As it is spelled. All replays are rendered here, so that one number has one spelling.
        let place = index.ok_or(ResumeError::Unreadable)?.to_owned();
        let Node::Object(members) = choice else { return Err(ResumeError::Unreadable) };
        let mut has_news = false;
        for (name, value) in members {
            let place = format!("{place}.{name}");
            match (&**name, &mut *value) {
                ("delta", value) => has_news |= self.value(&place, value)?,
                ("logprobs", Node::Object(_)) => {
                    let is_news = self.value(&place, value)?;
                    has_news |= is_news;
                    if !is_news {
                        *value = Node::Null;
                    }
                }
                ("finish_reason", Node::String(reason)) => {
                    let is_news = self.check_value(place.into(), reason)?;
                    has_news |= is_news;
                    match &mut self.replay {
                        Some(replay) => replay.n_finished += usize::from(is_news),
                        None => self.n_finished += usize::from(is_news),
                    }
                    if !is_news {
                        *value = Node::Null;
                    }
                }
                (_, _) => {}
            }
        }
        Ok(has_news)
    }

    /// Drops from a value of a choice the part that was written; true if any is left. The recursion is as deep
    /// as the JSON reader allows.
    fn value(&mut self, place: &str, value: &mut Node<'_>) -> Result<bool, ResumeError> {
        match value {
            Node::Null => Ok(false),
            Node::Bool(_) | Node::Number(_) => self.check_value(place.into(), &value.to_string()),
            Node::String(text) => {
                // The last member of the path: a call's `type` is one, whatever call it is of.
                if place.rsplit('.').next().is_some_and(|name| ONCE.contains(&name)) {
                    return self.check_value(place.into(), text);
                }
                let Some(written) = self.grow(place, text)? else { return Ok(true) };
                // A replay may be cut within a character where the earlier one was not: that is no prefix of it.
                let (_written, left) =
                    text.split_at_checked(written).ok_or(ResumeError::OtherAnswer)?;
                let is_news = !left.is_empty();
                *text = left.to_owned().into();
                Ok(is_news)
            }
            Node::Array(elements) => self.list(place, elements),
            Node::Object(members) => {
                let mut left = Vec::with_capacity(members.len());
                // An object's presence may be all that it says.
                let mut has_news = self.grow(place, "")?.is_none();
                for (name, mut value) in std::mem::take(members) {
                    // The index of an element, and nulls, go along with what is news.
                    let is_beside = name == "index" || value == Node::Null;
                    let is_news =
                        !is_beside && self.value(&format!("{place}.{name}"), &mut value)?;
                    has_news |= is_news;
                    if is_beside || is_news {
                        left.push((name, value));
                    }
                }
                *members = left;
                Ok(has_news)
            }
        }
    }

    /// Drops written elements of a list: by their `index` if all have one, else by their order.
    fn list(&mut self, place: &str, elements: &mut Vec<Node<'_>>) -> Result<bool, ResumeError> {
        let is_indexed = |element: &Node<'_>| element.get("index").is_some();
        if elements.is_empty() || !elements.iter().all(is_indexed) {
            let mut is_new = self.grow(place, "")?.is_none();
            let mut left = Vec::with_capacity(elements.len());
            for element in std::mem::take(elements) {
                let text = element.to_string();
                match self.grow(place, &text)? {
                    // Elements are written whole: a part of one is another answer.
                    Some(written) if written == text.len() => {}
                    Some(0) | None => left.push(element),
                    Some(_) => return Err(ResumeError::OtherAnswer),
                }
            }
            is_new |= !left.is_empty();
            *elements = left;
            return Ok(is_new);
        }
        let mut left = Vec::with_capacity(elements.len());
        for mut element in std::mem::take(elements) {
            // Elements may come in any order, and again: the index says which one grows.
            let index = element.get("index").map(ToString::to_string).unwrap_or_default();
            if self.value(&format!("{place}[{index}]"), &mut element)? {
                left.push(element);
            }
        }
        let has_news = !left.is_empty();
        *elements = left;
        Ok(has_news)
    }

    /// Compares a value that comes once; true if neither the written answer nor the replay had it.
    fn check_value(&mut self, place: FieldPath, value: &str) -> Result<bool, ResumeError> {
        let mut reach = PrefixDigest::default();
        reach.add(value.as_bytes());
        let written = self.written.get(&place).copied();
        let newest = match &self.replay {
            Some(replay) => replay.fields.get(&place).copied(),
            None => written,
        };
        // In a replay too a value comes once, or twice the same.
        if [written, newest].into_iter().flatten().any(|known| known != reach) {
            return Err(ResumeError::OtherAnswer);
        }
        if newest.is_none() {
            self.insert(place, reach)?;
        }
        if let (Some(replay), Some(_), None) = (&mut self.replay, written, newest) {
            replay.n_behind = replay.n_behind.saturating_sub(1);
        }
        Ok(written.is_none() && newest.is_none())
    }

    /// More of a text: how many bytes of that were written before; `None` if the text was unknown.
    fn grow(&mut self, place: &str, more: &str) -> Result<Option<usize>, ResumeError> {
        let Some(replay) = &mut self.replay else {
            if let Some(written) = self.written.get_mut(place) {
                written.add(more.as_bytes());
                return Ok(Some(0));
            }
            let mut reach = PrefixDigest::default();
            reach.add(more.as_bytes());
            self.insert(place.into(), reach)?;
            return Ok(None);
        };
        let written = self.written.get(place).copied();
        let before = replay.fields.get(place).copied();
        let goal = written.unwrap_or_default();
        let mut reach = before.unwrap_or_default();
        let behind = goal.length.saturating_sub(reach.length).min(more.len());
        let (old, new) = more.as_bytes().split_at_checked(behind).unwrap_or_default();
        reach.add(old);
        // Compared once the replay is as far: a hash of less than all says nothing about the rest.
        if reach.length == goal.length && reach.hash != goal.hash {
            return Err(ResumeError::OtherAnswer);
        }
        let was_behind = before.is_none_or(|before| before.length < goal.length);
        if written.is_some() && was_behind && reach.length >= goal.length {
            replay.n_behind = replay.n_behind.saturating_sub(1);
        }
        reach.add(new);
        match replay.fields.get_mut(place) {
            Some(known) => *known = reach,
            None => self.insert(place.into(), reach)?,
        }
        Ok((written.is_some() || before.is_some()).then_some(behind))
    }

    /// Adds a field to the newest of both maps.
    fn insert(&mut self, place: FieldPath, reach: PrefixDigest) -> Result<(), ResumeError> {
        let fields = match &mut self.replay {
            Some(replay) => &mut replay.fields,
            None => &mut self.written,
        };
        if fields.len() >= PLACES_MAX {
            return Err(ResumeError::TooMany);
        }
        fields.insert(place, reach);
        Ok(())
    }
}

impl Replay {
    /// Keeps news until the replay is no longer behind.
    fn hold(&mut self, event: Bytes) -> Result<(), ResumeError> {
        self.held_bytes = self.held_bytes.saturating_add(event.len());
        if self.held_bytes > HELD_BYTES_MAX {
            return Err(ResumeError::TooMany);
        }
        self.held.push(event);
        Ok(())
    }
}

impl PrefixDigest {
    fn add(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len());
        self.hash.add(bytes);
    }
}
