//! JSON that is written in a provider's own shape: a tree that borrows its content. Members keep the order in
//! which they were given. Not for our own shapes: those are types.

use std::borrow::Cow;
use std::fmt;

use holdfast_domain::request::{Decimal, Opaque};

use super::opaque::{write_all, write_text};

/// A JSON value to be written.
#[derive(Clone, PartialEq, Eq)]
pub enum Draft<'a> {
    /// `true` or `false`.
    Bool(bool),
    /// A number, as spelled.
    Number(String),
    /// A string, unescaped.
    Text(Cow<'a, str>),
    /// JSON that is passed through.
    Json(&'a str),
    /// JSON that was made of what is passed through.
    Made(Opaque),
    /// Array elements.
    Array(Vec<Self>),
    /// Object members, in the order given.
    Object(Vec<(&'a str, Self)>),
}

impl<'a> Draft<'a> {
    /// An object of these members, those that there are.
    pub fn object(members: impl IntoIterator<Item = impl Into<Option<(&'a str, Self)>>>) -> Self {
        Self::Object(members.into_iter().filter_map(Into::into).collect())
    }

    /// The JSON, without white space.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }
}

impl fmt::Debug for Draft<'_> {
    /// Kind and size alone: the value may be a prompt.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(_) => f.write_str("Bool"),
            Self::Number(_) => f.write_str("Number"),
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Json(json) => write!(f, "Json({} bytes)", json.len()),
            Self::Made(json) => write!(f, "Made({} bytes)", json.as_str().len()),
            Self::Array(elements) => write!(f, "Array({} elements)", elements.len()),
            Self::Object(members) => write!(f, "Object({} members)", members.len()),
        }
    }
}

/// Recursion is bounded by the code that builds the tree.
impl fmt::Display for Draft<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::Number(lexeme) => f.write_str(lexeme),
            Self::Text(text) => write_text(f, text),
            // Unchecked: `Opaque` and its like were read as JSON before.
            Self::Json(json) => f.write_str(json),
            Self::Made(json) => f.write_str(json.as_str()),
            Self::Array(elements) => write_all(f, ['[', ']'], elements, |f, one| one.fmt(f)),
            Self::Object(members) => write_all(f, ['{', '}'], members, |f, (name, value)| {
                write_text(f, name)?;
                write!(f, ":{value}")
            }),
        }
    }
}

impl<'a> From<&'a str> for Draft<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Draft<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<bool> for Draft<'_> {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<u64> for Draft<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number.to_string())
    }
}

impl From<i64> for Draft<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number.to_string())
    }
}

impl From<Decimal> for Draft<'_> {
    fn from(number: Decimal) -> Self {
        Self::Number(number.to_string())
    }
}

impl<'a> From<&'a Opaque> for Draft<'a> {
    fn from(json: &'a Opaque) -> Self {
        Self::Json(json.as_str())
    }
}

impl From<Opaque> for Draft<'_> {
    fn from(json: Opaque) -> Self {
        Self::Made(json)
    }
}

impl From<Vec<Self>> for Draft<'_> {
    fn from(elements: Vec<Self>) -> Self {
        Self::Array(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_in_the_order_given_and_without_white_space() {
        let number: Decimal = "0.50".parse().unwrap();
        let passed = Opaque::from_json(r#"{"z":1.0,"a":[]}"#.to_owned());
        let draft = Draft::object([
            Some(("b", Draft::from("say \"hi\"\n"))),
            None,
            Some(("a", Draft::from(vec![true.into(), 7_u64.into(), (-7_i64).into()]))),
            Some(("d", number.into())),
            Some(("c", (&passed).into())),
            Some(("e", Draft::Array(Vec::new()))),
        ]);
        let json = r#"{"b":"say \"hi\"\n","a":[true,7,-7],"d":0.5,"c":{"z":1.0,"a":[]},"e":[]}"#;
        assert_eq!(draft.to_string(), json);
        assert_eq!(draft.to_bytes(), json.as_bytes());
    }

    #[test]
    fn never_prints_what_it_says() {
        let draft = Draft::object([("text", Draft::from("a secret"))]);
        assert_eq!(format!("{draft:?}"), "Object(1 members)");
    }
}
