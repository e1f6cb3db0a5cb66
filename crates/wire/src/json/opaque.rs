//! JSON that is passed through, in its one spelling without white space. Order and numbers are
//! data; the way a string was escaped is not. Fingerprints cover these bytes: another spelling
//! would turn retries of a request that has such members into conflicts.

use std::fmt::{self, Write};

use holdfast_domain::request::Opaque;

use super::text::plain_prefix;
use super::{Node, is_non_finite};

impl Node<'_> {
    /// Spells the value as it is hashed and sent.
    pub(crate) fn to_opaque(&self) -> Opaque {
        Opaque::from_json(self.to_string())
    }
}

/// Recursion is bounded by the depth that was read.
impl fmt::Display for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(true) => f.write_str("true"),
            Self::Bool(false) => f.write_str("false"),
            // As it was spelled: `1.0` and `1` may be two things to a tool's schema, so they are two here.
            // JavaScript's spelling of a number that is not finite: JSON has none.
            Self::Number(lexeme) if is_non_finite(lexeme) => f.write_str("null"),
            Self::Number(lexeme) => f.write_str(lexeme),
            Self::String(text) => write_text(f, text),
            Self::Array(elements) => write_all(f, ['[', ']'], elements, |f, one| one.fmt(f)),
            Self::Object(members) => write_all(f, ['{', '}'], members, |f, (name, value)| {
                write_text(f, name)?;
                write!(f, ":{value}")
            }),
        }
    }
}

/// Writes each with commas between them.
pub(super) fn write_all<T>(
    f: &mut fmt::Formatter<'_>,
    [open, close]: [char; 2],
    all: &[T],
    one: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    f.write_char(open)?;
    for (at, item) in all.iter().enumerate() {
        f.write_str(if at == 0 { "" } else { "," })?;
        one(f, item)?;
    }
    f.write_char(close)
}

/// Escapes what must be, the shortest way: RFC 8785, 3.2.2.2.
pub(super) fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    let mut rest = text;
    // Eight bytes at once, as the reader does: what must be escaped is of one byte, so that no character is split.
    // Everything else goes out as UTF-8: `é` and its escape are one spelling, and one fingerprint.
    while let Some((plain, special)) = rest.split_at_checked(plain_prefix(rest.as_bytes())) {
        f.write_str(plain)?;
        let mut characters = special.chars();
        match characters.next() {
            Some('\u{8}') => f.write_str("\\b")?,
            Some('\t') => f.write_str("\\t")?,
            Some('\n') => f.write_str("\\n")?,
            Some('\u{c}') => f.write_str("\\f")?,
            Some('\r') => f.write_str("\\r")?,
            Some(control) if control < ' ' => write!(f, "\\u{:04x}", u32::from(control))?,
            Some('"') => f.write_str("\\\"")?,
            Some(mark) => write!(f, "\\{mark}")?,
            None => break,
        }
        rest = characters.as_str();
    }
    f.write_char('"')
}
