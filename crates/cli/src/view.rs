//! Members of the API's answers as texts for people.
//!
//! A command shows an answer: with `--json` as it is, else as fields or columns. What is not there,
//! or null, is a dash. An answer may have members that this version does not know.

use holdfast_domain::Micros;
use serde_json::Value;

/// Text of what is not there.
pub(crate) const NOTHING: &str = "-";

/// A member; null if it is not there.
pub(crate) fn member<'t>(thing: &'t Value, name: &str) -> &'t Value {
    thing.get(name).unwrap_or(&Value::Null)
}

/// A member as text.
pub(crate) fn text(thing: &Value, name: &str) -> String {
    some_text(thing, name).unwrap_or_else(|| NOTHING.to_owned())
}

/// A member as text, if it exists.
pub(crate) fn some_text(thing: &Value, name: &str) -> Option<String> {
    match thing.get(name)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Some(other.to_string())
        }
    }
}

/// A member of micros as a decimal amount.
pub(crate) fn amount(thing: &Value, name: &str) -> String {
    some_amount(thing, name).unwrap_or_else(|| NOTHING.to_owned())
}

/// A member of micros as a decimal amount, if it exists.
pub(crate) fn some_amount(thing: &Value, name: &str) -> Option<String> {
    Some(Micros::new(thing.get(name)?.as_i64()?).to_string())
}

/// A bound on spend, such as `25.00/month`.
pub(crate) fn spend(thing: &Value, [micros, window]: [&str; 2]) -> Option<String> {
    Some(format!("{}/{}", some_amount(thing, micros)?, some_text(thing, window)?))
}

/// Adds a member.
pub(crate) fn with(mut thing: Value, name: &str, value: impl Into<Value>) -> Value {
    if let Some(members) = thing.as_object_mut() {
        members.insert(name.to_owned(), value.into());
    }
    thing
}
