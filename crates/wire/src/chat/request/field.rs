//! A member of a request with the path that names it, and its reading as a type. Paths are linked frames on the
//! stack, and become strings only for an error.
//!
//! ```text
//! Body ◀─ Member("messages") ◀─ Element(0) ◀─ Member("content")     `messages[0].content`
//! ```
//!
//! An error names the path and the rule, and never the value: a value may be a prompt. Names in a path may
//! be a caller's own, so that they are shortened, and what does not show is replaced.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use holdfast_domain::request::{Decimal, Opaque};

use super::BadRequest;
use crate::error::Code;
use crate::json::Node;

/// Most characters of an unknown name that an error repeats.
const ECHO_CHARS_MAX: usize = 64;
/// The longest name of a function or a schema.
const NAME_CHARS_MAX: usize = 64;

/// A member or an element, and its path.
#[derive(Debug)]
pub(super) struct Field<'p, 'a> {
    pub(super) path: Path<'p>,
    pub(super) node: Node<'a>,
}

impl<'a> Field<'_, 'a> {
    /// True for an empty text and an empty array.
    pub(super) fn is_empty(&self) -> bool {
        match &self.node {
            Node::String(text) => text.is_empty(),
            Node::Array(elements) => elements.is_empty(),
            Node::Null | Node::Bool(_) | Node::Number(_) | Node::Object(_) => false,
        }
    }

    /// Reads a whole number however it is spelled: `1`, `1.0` and `1e0` are one.
    pub(super) fn integer(self, low: i64, high: i64) -> Result<i64, BadRequest> {
        self.exact()
            .and_then(|number| i64::try_from(number.to_integer()?).ok())
            .filter(|number| (low..=high).contains(number))
            .ok_or_else(|| self.path.invalid(format_args!("an integer from {low} to {high}")))
    }

    pub(super) fn decimal(self, low: i32, high: i32) -> Result<Decimal, BadRequest> {
        self.exact()
            .filter(|number| number.is_within(low, high))
            .ok_or_else(|| self.path.invalid(format_args!("a number from {low} to {high}")))
    }

    fn exact(&self) -> Option<Decimal> {
        // A decimal and no float: no digit is lost, and numbers that are equal are one in the fingerprint.
        self.node.as_number()?.parse().ok()
    }

    /// Reads one of these by its name.
    pub(super) fn one_of<T: Copy>(
        self,
        all: &[T],
        label: fn(T) -> &'static str,
    ) -> Result<T, BadRequest> {
        let text = self.node.as_str();
        let found = all.iter().copied().find(|one| text == Some(label(*one)));
        found.ok_or_else(|| {
            let labels: Vec<_> = all.iter().map(|one| label(*one)).collect();
            self.path.invalid(format_args!("{}", either(&labels)))
        })
    }

    /// Reads an array of some length, each element by its reader.
    pub(super) fn array<T>(
        self,
        length: RangeInclusive<usize>,
        what: &str,
        read: impl Fn(Field<'_, 'a>) -> Result<T, BadRequest>,
    ) -> Result<Vec<T>, BadRequest> {
        let path = self.path;
        match self.node {
            Node::Array(nodes) if length.contains(&nodes.len()) => {
                let element = |(at, node)| read(Field { path: Path::Element(&path, at), node });
                nodes.into_iter().enumerate().map(element).collect()
            }
            Node::Array(_)
            | Node::Null
            | Node::Bool(_)
            | Node::Number(_)
            | Node::String(_)
            | Node::Object(_) => Err(path.invalid(format_args!("{what}"))),
        }
    }
}

pub(super) fn string(field: Field<'_, '_>) -> Result<String, BadRequest> {
    text(field).map(Cow::into_owned)
}

/// A string as it stands in the body, if it has no escapes.
pub(super) fn text<'a>(field: Field<'_, 'a>) -> Result<Cow<'a, str>, BadRequest> {
    match field.node {
        Node::String(text) => Ok(text),
        Node::Null | Node::Bool(_) | Node::Number(_) | Node::Array(_) | Node::Object(_) => {
            Err(field.path.invalid(format_args!("a string")))
        }
    }
}

pub(super) fn boolean(field: Field<'_, '_>) -> Result<bool, BadRequest> {
    match field.node {
        Node::Bool(flag) => Ok(flag),
        Node::Null | Node::Number(_) | Node::String(_) | Node::Array(_) | Node::Object(_) => {
            Err(field.path.invalid(format_args!("true or false")))
        }
    }
}

/// Reads a name of a function or a schema.
pub(super) fn identifier(field: Field<'_, '_>) -> Result<String, BadRequest> {
    let path = field.path;
    let name = string(field)?;
    // Bytes are characters here, because every one of them has to be ASCII.
    let fits = (1..=NAME_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if fits {
        return Ok(name);
    }
    Err(path
        .invalid(format_args!("1 to {NAME_CHARS_MAX} letters, digits, underscores and hyphens")))
}

/// Takes an object as it is.
pub(super) fn opaque_object(field: Field<'_, '_>) -> Result<Opaque, BadRequest> {
    match &field.node {
        Node::Object(_) => Ok(field.node.to_opaque()),
        Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) | Node::Array(_) => {
            Err(field.path.invalid(format_args!("an object")))
        }
    }
}

/// `a, b or c`.
pub(super) fn either(labels: &[&str]) -> String {
    match labels {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Path of a value in a body, from the value up to the body.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'p> {
    /// The body itself.
    Body,
    /// A member of an object.
    Member(&'p Self, &'p str),
    /// An element of an array.
    Element(&'p Self, usize),
}

impl Path<'_> {
    /// Error of a member whose value is not allowed; `rule` ends the sentence "It must be …".
    pub(super) fn invalid(&self, rule: fmt::Arguments<'_>) -> BadRequest {
        self.bad(Code::InvalidValue, format!("`{self}` must be {rule}."))
    }

    pub(super) fn missing(&self) -> BadRequest {
        self.bad(Code::InvalidValue, format!("`{self}` is missing. Send it."))
    }

    /// Error of a member that is not known; `meant` is a known one that is spelled much alike.
    pub(super) fn unknown(&self, meant: Option<&str>) -> BadRequest {
        let message = match meant {
            None => format!("`{self}` is not known here. Remove it."),
            Some(meant) => {
                format!("`{self}` is not known here: did you mean `{meant}`? If not, remove it.")
            }
        };
        self.bad(Code::UnknownParameter, message)
    }

    /// Error of a known member that this model or this gateway does not take.
    pub(super) fn unsupported(&self, rule: &str) -> BadRequest {
        self.bad(Code::UnsupportedParameter, format!("`{self}` must be {rule}."))
    }

    fn bad(&self, code: Code, message: String) -> BadRequest {
        BadRequest { code, param: Some(self.to_string()), message }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body => Ok(()),
            Self::Element(parent, at) => write!(f, "{parent}[{at}]"),
            Self::Member(Self::Body, name) => echo(f, name),
            Self::Member(parent, name) => {
                write!(f, "{parent}.")?;
                echo(f, name)
            }
        }
    }
}

/// Writes a name that the caller may have made up: its beginning, and only what shows as itself.
fn echo(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    name.chars().take(ECHO_CHARS_MAX).try_for_each(|character| {
        let shows = character.is_ascii_graphic() || character == ' ' || character.is_alphanumeric();
        fmt::Write::write_char(f, if shows { character } else { '?' })
    })
}
