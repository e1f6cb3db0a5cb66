//! One member of a request with the path that names it, and its reading as a type. Paths are built
//! only when something is wrong.

use std::borrow::Cow;
use std::fmt;

use holdfast_domain::request::Decimal;

use super::BadRequest;
use crate::error::Code;
use crate::json::Node;

/// How much of a name that the caller made up is repeated.
const ECHO_CHARS_MAX: usize = 64;

/// A member or an element, and where it stands.
#[derive(Debug)]
pub(super) struct Field<'p, 'a> {
    pub(super) path: Path<'p>,
    pub(super) node: Node<'a>,
}

impl<'a> Field<'_, 'a> {
    pub(super) fn string(self) -> Result<Cow<'a, str>, BadRequest> {
        match self.node {
            Node::String(text) => Ok(text),
            Node::Null | Node::Bool(_) | Node::Number(_) | Node::Array(_) | Node::Object(_) => {
                Err(self.path.invalid(format_args!("a string")))
            }
        }
    }

    pub(super) fn optional_string(self) -> Result<Option<String>, BadRequest> {
        if self.node == Node::Null {
            return Ok(None);
        }
        self.string().map(|text| Some(text.into_owned()))
    }

    /// Reads a whole number however it is spelled: `1`, `1.0` and `1e0` are one.
    pub(super) fn optional_integer(self, low: i64, high: i64) -> Result<Option<i64>, BadRequest> {
        if self.node == Node::Null {
            return Ok(None);
        }
        self.decimal()
            .and_then(|number| i64::try_from(number.to_integer()?).ok())
            .filter(|number| (low..=high).contains(number))
            .map(Some)
            .ok_or_else(|| self.path.invalid(format_args!("an integer from {low} to {high}")))
    }

    pub(super) fn optional_decimal(
        self,
        low: i32,
        high: i32,
    ) -> Result<Option<Decimal>, BadRequest> {
        if self.node == Node::Null {
            return Ok(None);
        }
        self.decimal()
            .filter(|number| number.is_within(low, high))
            .map(Some)
            .ok_or_else(|| self.path.invalid(format_args!("a number from {low} to {high}")))
    }

    fn decimal(&self) -> Option<Decimal> {
        match &self.node {
            Node::Number(lexeme) => lexeme.parse().ok(),
            Node::Null | Node::Bool(_) | Node::String(_) | Node::Array(_) | Node::Object(_) => None,
        }
    }

    pub(super) fn elements(self, what: &str) -> Result<Vec<Node<'a>>, BadRequest> {
        match self.node {
            Node::Array(elements) => Ok(elements),
            Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) | Node::Object(_) => {
                Err(self.path.invalid(format_args!("{what}")))
            }
        }
    }

    pub(super) fn members(self, what: &str) -> Result<Vec<(Cow<'a, str>, Node<'a>)>, BadRequest> {
        match self.node {
            Node::Object(members) => Ok(members),
            Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) | Node::Array(_) => {
                Err(self.path.invalid(format_args!("{what}")))
            }
        }
    }
}

/// Where something stands in a body.
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
    /// It has a value that it cannot have; `rule` ends the sentence "It must be …".
    pub(super) fn invalid(&self, rule: fmt::Arguments<'_>) -> BadRequest {
        self.bad(Code::InvalidValue, format!("`{self}` must be {rule}."))
    }

    pub(super) fn missing(&self) -> BadRequest {
        self.bad(Code::InvalidValue, format!("`{self}` is missing. Send it."))
    }

    pub(super) fn unknown(&self) -> BadRequest {
        self.bad(Code::UnknownParameter, format!("`{self}` is not known here. Remove it."))
    }

    /// It is known to OpenAI's callers and has a value that is not known here.
    pub(super) fn unknown_value(&self, rule: &str) -> BadRequest {
        self.bad(Code::UnknownParameter, format!("`{self}` must be {rule} here."))
    }

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
