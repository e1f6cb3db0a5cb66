//! Resumption of a broken stream: one unbroken answer out of several replays of it.
//!
//! The stream is asked for again and begins anew, cut into other pieces. What the reader already
//! has is dropped from the replay, and compared as it is dropped. The reader sees one answer, or an
//! error, and never two answers in one.
//!
//! State, kept for each field by its path (members, and in lists `index`), never the answer itself:
//!
//! * a string that grows: length in bytes and a running hash of what was written;
//! * a list without indexes (of log-probabilities): the same over its elements, one after the
//!   other;
//! * a value that comes once (`role`, `id`, `type`, `finish_reason`): the same of the value.
//!
//! A replay keeps a second such map. While a field of it is shorter than what was written, its
//! bytes are dropped; where it becomes as long, the hashes must be equal; from there on its bytes
//! go out. An end before the two maps are equal is the end of another answer.
//!
//! What may come more than once without harm (`usage: null`, an empty list of choices) is no value.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

use crate::json::{self, Node};
use crate::sse;

/// Members of a delta that come once: everything else that is a string grows.
const ONCE: [&str; 3] = ["role", "id", "type"];
/// Members of a chunk by which one answer is known; any other value of theirs is another answer.
const OWN: [&str; 3] = ["id", "created", "model"];
/// The most texts and values of one answer.
const PLACES_MAX: usize = 16_384;

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
    /// More fields than are kept: at most `PLACES_MAX`.
    #[error("an answer of too many parts")]
    TooMany,
}

/// Digests of what was written of an answer, and of its newest replay.
#[derive(Default)]
pub struct Resumption {
    written: BTreeMap<FieldPath, PrefixDigest>,
    /// The newest replay, which is compared until it is as far; `None` before the first break.
    replay: Option<BTreeMap<FieldPath, PrefixDigest>>,
    /// Choices whose end was written.
    n_finished: usize,
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

/// FNV-1a of 128 bits: the same for the same bytes in any pieces, and small to keep. It tells a
/// replay of one answer from another answer; nobody who could forge it gains by that.
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

impl fmt::Debug for Resumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resumption({} parts, again: {})", self.written.len(), self.replay.is_some())
    }
}

impl Resumption {
    /// State of an answer of which nothing was written.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Choices whose `finish_reason` was written.
    #[must_use]
    pub const fn finished(&self) -> usize {
        self.n_finished
    }

    /// Begins a replay: the next event is the first of the answer again.
    pub fn restart(&mut self) {
        self.replay = Some(BTreeMap::new());
    }

    /// The part of a whole event that is to be written: all of it before the first break, in a
    /// replay what was not written yet; `None` where that is nothing.
    ///
    /// # Errors
    ///
    /// [`ResumeError`]: nothing more of it may be written.
    pub fn filter(&mut self, event: &Bytes) -> Result<Option<Bytes>, ResumeError> {
        let data = event.strip_prefix(PREFIX).and_then(|data| data.strip_suffix(END));
        let data = data.ok_or(ResumeError::Unreadable)?;
        // Compared also in its length: a replay that ends early has said less than what was written.
        if data == DONE {
            // An end before what was written is another answer's.
            let is_behind = self.replay.as_ref().is_some_and(|again| *again != self.written);
            return if is_behind { Err(ResumeError::OtherAnswer) } else { Ok(Some(event.clone())) };
        }
        let mut chunk = json::parse_answer(data).map_err(|_not_json| ResumeError::Unreadable)?;
        let has_news = self.chunk(&mut chunk)?;
        // Before the first break every event goes out as it came: byte for byte, and never spelled anew.
        if self.replay.is_none() {
            return Ok(Some(event.clone()));
        }
        Ok(has_news.then(|| sse::event(chunk.to_string().as_bytes())))
    }

    /// Drops from a chunk what was written; true where anything is left.
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
                // An error ends the stream, whatever was written.
                ("error", _) => has_news = true,
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
                    self.n_finished += usize::from(is_news);
                    if !is_news {
                        *value = Node::Null;
                    }
                }
                (_, _) => {}
            }
        }
        Ok(has_news)
    }

    /// Drops from a value of a choice what was written; true where anything is left. The recursion
    /// is as deep as the JSON reader allows.
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

    /// Drops written elements of a list: by their `index` where all have one, else by their order.
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

    /// Compares a value that comes once; true where it was not written yet.
    fn check_value(&mut self, place: FieldPath, value: &str) -> Result<bool, ResumeError> {
        let mut reach = PrefixDigest::default();
        reach.add(value.as_bytes());
        // In the replay too a value comes once, or twice the same.
        let is_told = match &mut self.replay {
            Some(again) => *again.entry(place.clone()).or_insert(reach) == reach,
            None => true,
        };
        let places = self.written.len();
        let mut is_new = false;
        let known = self.written.entry(place).or_insert_with(|| {
            is_new = true;
            reach
        });
        if !is_told || *known != reach {
            return Err(ResumeError::OtherAnswer);
        }
        // The place is kept all the same: after this error nothing more is written.
        if is_new && places >= PLACES_MAX { Err(ResumeError::TooMany) } else { Ok(is_new) }
    }

    /// More of a text: how many bytes of that were written before; `None` where nothing was known
    /// of it.
    fn grow(&mut self, place: &str, more: &str) -> Result<Option<usize>, ResumeError> {
        let places = self.written.len();
        let Some(written) = self.written.get_mut(place) else {
            if places >= PLACES_MAX {
                return Err(ResumeError::TooMany);
            }
            let mut reach = PrefixDigest::default();
            reach.add(more.as_bytes());
            self.written.insert(place.into(), reach);
            if let Some(again) = &mut self.replay {
                again.insert(place.into(), reach);
            }
            return Ok(None);
        };
        let Some(again) = &mut self.replay else {
            written.add(more.as_bytes());
            return Ok(Some(0));
        };
        let again = again.entry(place.into()).or_default();
        let behind = written.length.saturating_sub(again.length).min(more.len());
        let (old, new) = more.as_bytes().split_at_checked(behind).unwrap_or_default();
        again.add(old);
        // Compared once the replay is as far: a hash of less than all says nothing about the rest.
        if again.length >= written.length && again.hash != written.hash {
            return Err(ResumeError::OtherAnswer);
        }
        if !new.is_empty() {
            again.add(new);
            // From here on the replay leads: the two are one again.
            *written = *again;
        }
        Ok(Some(behind))
    }
}

impl PrefixDigest {
    fn add(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len());
        self.hash.add(bytes);
    }
}
