//! The body of a provider's error, for its classification. Any body is accepted: an unreadable member is
//! absent. No word of it may reach a caller or a log, because it may quote the prompt; a field is named by our
//! own word for it.

use std::fmt;

use serde_json::Value;

use crate::chat::request::MEMBERS;

/// Members of a provider's error body, each `None` if it is absent or no word.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct UpstreamError {
    /// `code`; an integer becomes its digits.
    pub code: Option<String>,
    /// `type`.
    pub kind: Option<String>,
    /// `param`.
    pub param: Option<String>,
    /// `message`: to look for known words in, never to show.
    pub message: Option<String>,
}

impl UpstreamError {
    /// Field at the top of a request that the error is about, by our own spelling; `None` if it names none that
    /// callers send.
    #[must_use]
    pub fn field(&self) -> Option<&'static str> {
        let first = self.param.as_deref()?.split(['.', '[']).next()?;
        MEMBERS.into_iter().find(|member| *member == first)
    }
}

impl fmt::Debug for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message.as_ref().map(|_kept_back| "…");
        f.debug_struct("UpstreamError")
            .field("code", &self.code)
            .field("kind", &self.kind)
            .field("message", &message)
            .finish_non_exhaustive()
    }
}

/// Reads `{"error": {…}}`, `{"error": "…"}` or the members themselves at the top.
#[must_use]
pub fn read_error(body: &[u8]) -> UpstreamError {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return UpstreamError::default() };
    // `error: null` is no error body: what there is may stand at the top.
    let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(&body);
    if let Some(message) = error.as_str() {
        return UpstreamError { message: Some(message.to_owned()), ..UpstreamError::default() };
    }
    UpstreamError {
        code: word(error, "code"),
        kind: word(error, "type"),
        param: word(error, "param"),
        message: word(error, "message"),
    }
}

fn word(error: &Value, name: &str) -> Option<String> {
    match error.get(name)? {
        Value::String(text) => Some(text.clone()),
        // Some servers send the status, as a number, in the place of a code.
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_named_by_our_own_word_or_not_at_all() {
        for (param, expected) in [
            ("temperature", Some("temperature")),
            ("messages[1].content[0].text", Some("messages")),
            ("tools.0.function", Some("tools")),
            ("Temperature", None),
            ("my secret", None),
            ("", None),
        ] {
            let error = UpstreamError { param: Some(param.to_owned()), ..UpstreamError::default() };
            assert_eq!(error.field(), expected, "{param}");
        }
        assert_eq!(UpstreamError::default().field(), None);
    }
}
