//! JSON that passes through: schemas, tool parameters, vendor fields. Nobody here reads it.

use std::fmt;

/// JSON value as text: no white space, members in their order, numbers as spelled, each string
/// escaped in one way. Whoever makes one vouches for that: it is hashed and sent as these bytes,
/// and two spellings of a value would be two requests.
#[derive(Clone, PartialEq, Eq)]
pub struct Opaque(Box<str>);

impl Opaque {
    /// Takes JSON that is in this form.
    #[must_use]
    pub fn from_json(json: String) -> Self {
        Self(json.into())
    }

    /// The JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opaque({} bytes)", self.0.len())
    }
}
