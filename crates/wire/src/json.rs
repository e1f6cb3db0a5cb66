//! JSON reader: one pass over UTF-8 text into a small tree that borrows from it. Members keep their
//! order and numbers their spelling, because request fields that are passed through are hashed and
//! sent as written.
//!
//! Two readers share the grammar and differ in what they forgive:
//!
//! - [`parse`], requests: a repeated name or a lone surrogate is an error. Here these are data or
//!   attacks: two readers that pick different members of one name see two different requests, and a
//!   general reader loses or forgives them.
//! - [`parse_answer`], answers of providers: the last of repeated names counts, half of a surrogate
//!   pair becomes U+FFFD (servers that cut UTF-16 into chunks send both halves of one), and `NaN`,
//!   `Infinity` and `-Infinity` are numbers (Python's writer makes them). An answer that was paid for
//!   is not lost over that.
//!
//! Limits: [`DEPTH_MAX`] levels, since reading recurses, and [`VALUES_MAX`] values, since two bytes
//! of input can cost 240 bytes of memory. Errors name a [`Fault`] and a byte, never a piece of the
//! body: a body is a prompt or an answer, and `Debug` prints sizes alone for the same reason.
//!
//! Writing is not here, except of what is passed through ([`Node`]'s `Display`) and of a provider's
//! own shapes ([`Draft`]); this crate's shapes are types, rendered by `render`.

mod draft;
mod opaque;
mod text;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use holdfast_domain::ports::UnreadableReason;

pub use self::draft::Draft;
pub(crate) use self::text::plain_prefix;

/// Levels of arrays and objects within each other, at most.
pub const DEPTH_MAX: usize = 64;
/// Values in a request body, at most. Each costs up to about 240 bytes while it is read, even if it is written
/// in two.
pub const VALUES_MAX: usize = 131_072;
/// Bytes of an answer for each value beyond [`VALUES_MAX`]. The densest real answers,
/// log-probabilities with the bytes of each token, have about seven.
const ANSWER_BYTES_PER_VALUE: usize = 4;

/// JSON value as it was written.
#[derive(Clone, PartialEq, Eq)]
pub enum Node<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as spelled; in an answer also one that is not finite.
    Number(&'a str),
    /// A string, unescaped; borrowed if it had no escapes.
    String(Cow<'a, str>),
    /// Array elements.
    Array(Vec<Self>),
    /// Object members, in order; in a request no name twice.
    Object(Vec<(Cow<'a, str>, Self)>),
}

impl fmt::Debug for Node<'_> {
    /// Kind and size alone: the value may be a prompt or an answer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Bool(_) => f.write_str("Bool"),
            Self::Number(_) => f.write_str("Number"),
            Self::String(text) => write!(f, "String({} bytes)", text.len()),
            Self::Array(elements) => write!(f, "Array({} elements)", elements.len()),
            Self::Object(members) => write!(f, "Object({} members)", members.len()),
        }
    }
}

/// Position and kind of the fault for which a body was not read. Repeats no part of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {at}")]
pub struct BadJson {
    /// Kind of the fault.
    pub fault: Fault,
    /// Byte offset from the start of the body.
    pub at: usize,
}

/// Kinds of fault that end a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Bytes that are not UTF-8.
    Encoding,
    /// A byte order mark.
    ByteOrderMark,
    /// A character that the grammar does not allow there.
    Syntax,
    /// A second value, or anything else, after the first.
    Trailing,
    /// The body ends too soon.
    End,
    /// A control character in a string.
    Control,
    /// Half of a surrogate pair in an escape.
    Surrogate,
    /// A member name twice in one object.
    Duplicate,
    /// More levels than [`DEPTH_MAX`].
    Depth,
    /// More values than [`VALUES_MAX`], or in an answer more than its length allows.
    Values,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Encoding => "bytes that are not UTF-8",
            Self::ByteOrderMark => "a byte order mark",
            Self::Syntax => "something that is not JSON",
            Self::Trailing => "more than one value",
            Self::End => "an unexpected end",
            Self::Control => "an unescaped control character in a string",
            Self::Surrogate => "half of a surrogate pair",
            Self::Duplicate => "a member name that its object has already",
            Self::Depth => "more than 64 levels of arrays and objects",
            Self::Values => "more than 131072 values",
        })
    }
}

/// Reads a request body: one value with white space around it, no name twice in an object.
pub fn parse(body: &[u8]) -> Result<Node<'_>, BadJson> {
    read(body, Strictness::Strict, VALUES_MAX)
}

/// Reads an answer of a provider, in which a repeated name is allowed and the last one counts,
/// half of a surrogate pair is U+FFFD, and a number need not be finite.
pub fn parse_answer(body: &[u8]) -> Result<Node<'_>, UnreadableReason> {
    // A limit that did not grow with the answer would lose long paid ones; one by length alone
    // would refuse short dense ones. So: the larger of both.
    let values_max = VALUES_MAX.max(body.len() / ANSWER_BYTES_PER_VALUE);
    read(body, Strictness::Lenient, values_max).map_err(|bad| match bad.fault {
        Fault::Values => UnreadableReason::Values,
        Fault::Encoding
        | Fault::ByteOrderMark
        | Fault::Syntax
        | Fault::Trailing
        | Fault::End
        | Fault::Control
        | Fault::Surrogate
        | Fault::Duplicate
        | Fault::Depth => UnreadableReason::Json,
    })
}

/// Reads JSON that was rendered here: leniently, and with any number of values.
pub(crate) fn parse_own(body: &[u8]) -> Result<Node<'_>, BadJson> {
    read(body, Strictness::Lenient, usize::MAX)
}

impl<'a> Node<'a> {
    /// Returns the member of this name, if this is an object that has it and it is not null.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => {
                // From the end: where an answer repeats a name, the last one counts.
                let found = members.iter().rev().find(|(other, _)| other == name);
                found.map(|(_, node)| node).filter(|node| **node != Self::Null)
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Array(_) => None,
        }
    }

    /// The members as they came, if this is an object: of a repeated name the last one counts, and null is
    /// no value.
    pub fn members(&self) -> &[(Cow<'a, str>, Self)] {
        match self {
            Self::Object(members) => members,
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Array(_) => &[],
        }
    }

    /// The text, if this is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// The spelling, if this is a number.
    #[must_use]
    pub fn as_number(&self) -> Option<&'a str> {
        match self {
            Self::Number(lexeme) => Some(lexeme),
            Self::Null | Self::Bool(_) | Self::String(_) | Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// The elements, if this is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(elements) => Some(elements),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Object(_) => {
                None
            }
        }
    }
}

/// True for `NaN` and the infinities, which JSON has no numbers for.
pub(crate) fn is_non_finite(number: &str) -> bool {
    number.ends_with(['N', 'y'])
}

/// Treatment of repeated names, lone surrogates and numbers that are not finite: an error in
/// requests, forgiven in answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strictness {
    Strict,
    Lenient,
}

fn read(body: &[u8], manner: Strictness, values_max: usize) -> Result<Node<'_>, BadJson> {
    let text = str::from_utf8(body)
        .map_err(|error| BadJson { fault: Fault::Encoding, at: error.valid_up_to() })?;
    // RFC 8259, 8.1: senders must not add one, and readers may ignore it or refuse it.
    if text.starts_with('\u{feff}') {
        return Err(BadJson { fault: Fault::ByteOrderMark, at: 0 });
    }
    let mut reader = Reader { text, at: 0, strictness: manner, values_left: values_max };
    reader.skip_space();
    let node = reader.value(0)?;
    reader.skip_space();
    if reader.at == text.len() { Ok(node) } else { Err(reader.fault(Fault::Trailing)) }
}

/// Members up to which names are compared in pairs, without an allocation; beyond, they are hashed.
const PAIRED_MAX: usize = 16;

/// Cursor over the text. Recursion is bounded by [`DEPTH_MAX`].
struct Reader<'a> {
    text: &'a str,
    at: usize,
    strictness: Strictness,
    values_left: usize,
}

impl<'a> Reader<'a> {
    fn fault(&self, fault: Fault) -> BadJson {
        BadJson { fault, at: self.at }
    }

    /// Fault for a byte that is required and missing: the end of the text, or another byte.
    fn unexpected(&self) -> BadJson {
        self.fault(if self.at < self.text.len() { Fault::Syntax } else { Fault::End })
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn want(&mut self, byte: u8) -> Result<(), BadJson> {
        if self.take(byte) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn skip_space(&mut self) {
        // The four of the grammar: `char::is_whitespace` would take others, which no other reader does.
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn skip_digits(&mut self) -> usize {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - from
    }

    // `at` stops at ASCII bytes alone, so a run never ends within a character.
    fn since(&self, from: usize) -> Result<&'a str, BadJson> {
        self.text.get(from..self.at).ok_or(self.fault(Fault::Encoding))
    }

    fn value(&mut self, depth: usize) -> Result<Node<'a>, BadJson> {
        // Counted before the value is read: the limit holds before the memory is spent.
        self.values_left = self.values_left.checked_sub(1).ok_or(self.fault(Fault::Values))?;
        match self.peek() {
            Some(b'"') => self.string().map(Node::String),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'N' | b'I') if self.strictness == Strictness::Lenient => self.non_finite(self.at),
            Some(b't') => self.word("true", Node::Bool(true)),
            Some(b'f') => self.word("false", Node::Bool(false)),
            Some(b'n') => self.word("null", Node::Null),
            Some(_) | None => Err(self.unexpected()),
        }
    }

    fn word(&mut self, word: &str, node: Node<'a>) -> Result<Node<'a>, BadJson> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err(self.fault(Fault::Syntax));
        }
        self.at += word.len();
        Ok(node)
    }

    /// Number by its grammar alone. The caller checks what follows, so `01` ends after its zero.
    fn number(&mut self) -> Result<Node<'a>, BadJson> {
        let from = self.at;
        self.take(b'-');
        if self.peek() == Some(b'I') && self.strictness == Strictness::Lenient {
            return self.non_finite(from);
        }
        if !self.take(b'0') && self.skip_digits() == 0 {
            return Err(self.unexpected());
        }
        if self.take(b'.') && self.skip_digits() == 0 {
            return Err(self.unexpected());
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            if self.skip_digits() == 0 {
                return Err(self.unexpected());
            }
        }
        self.since(from).map(Node::Number)
    }

    /// `NaN` or an infinity, whose sign stands between `from` and here.
    fn non_finite(&mut self, from: usize) -> Result<Node<'a>, BadJson> {
        let word =
            ["NaN", "Infinity"].into_iter().find(|word| self.rest().starts_with(word.as_bytes()));
        self.at += word.ok_or(self.fault(Fault::Syntax))?.len();
        self.since(from).map(Node::Number)
    }

    fn enter(&mut self, depth: usize) -> Result<usize, BadJson> {
        if depth == DEPTH_MAX {
            return Err(self.fault(Fault::Depth));
        }
        self.at += 1;
        self.skip_space();
        Ok(depth + 1)
    }

    fn array(&mut self, depth: usize) -> Result<Node<'a>, BadJson> {
        let inside = self.enter(depth)?;
        let mut elements = Vec::new();
        // An empty list is looked for first: after a comma there must be a value, so that `[1,]` is refused.
        if self.take(b']') {
            return Ok(Node::Array(elements));
        }
        loop {
            elements.push(self.value(inside)?);
            self.skip_space();
            if !self.take(b',') {
                self.want(b']')?;
                return Ok(Node::Array(elements));
            }
            self.skip_space();
        }
    }

    fn object(&mut self, depth: usize) -> Result<Node<'a>, BadJson> {
        let inside = self.enter(depth)?;
        if self.take(b'}') {
            return Ok(Node::Object(Vec::new()));
        }
        // Answers and messages have seldom more: growing costs more than the room.
        let mut members: Vec<(Cow<'a, str>, Node<'a>)> = Vec::with_capacity(8);
        loop {
            let name = self.string()?;
            // Names are compared unescaped: `"a"` and `"\u0061"` are one name, and twice it is an error.
            let once = self.strictness == Strictness::Strict;
            let paired = once && members.len() < PAIRED_MAX;
            if paired && members.iter().any(|(other, _)| *other == name) {
                return Err(self.fault(Fault::Duplicate));
            }
            self.skip_space();
            self.want(b':')?;
            self.skip_space();
            members.push((name, self.value(inside)?));
            self.skip_space();
            if !self.take(b',') {
                self.want(b'}')?;
                break;
            }
            self.skip_space();
        }
        // The first names were compared in pairs, the later ones not at all until here.
        if self.strictness == Strictness::Strict && members.len() > PAIRED_MAX {
            let mut names = HashSet::with_capacity(members.len());
            if !members.iter().all(|(name, _)| names.insert(name.as_ref())) {
                return Err(self.fault(Fault::Duplicate));
            }
        }
        Ok(Node::Object(members))
    }
}
