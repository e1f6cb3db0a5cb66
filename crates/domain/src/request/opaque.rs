//! JSON that passes through: schemas, tool parameters, vendor fields. No code here reads it.

use crate::private::Private;

/// JSON value as text: no white space, members in their order, numbers as spelled, each string escaped in one
/// way. The code that makes one vouches for that: it is hashed and sent as these bytes, and two spellings of a
/// value would be two requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque(Private<Box<str>>);

impl Opaque {
    /// Takes JSON that is in this form.
    #[must_use]
    pub fn from_json(json: String) -> Self {
        Self(Private(json.into()))
    }

    /// True for `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.as_str() == "null"
    }

    /// The JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
