//! A provider's completion. Extras are ignored, and what OpenAI requires but nobody needs may be
//! missing; but an answer that is not whole, or ends in a way that is not known, is no answer.

use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason};
use holdfast_domain::usage::Meters;
use serde_json::Value;

use super::usage;

/// What a provider answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Everything that was said, each choice with its end.
    pub delta: Delta,
    /// What it reported to have used up; `None` when that cannot be believed.
    pub meters: Option<Meters>,
}

/// Why a 200 is no answer. In every case the model may have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The body reports an error instead.
    #[error("the answer is an error under a status of success")]
    Error,
    /// The body is not JSON.
    #[error("the answer is not JSON")]
    Json,
    /// Choices are missing, doubled or more than were asked for, or one has no message.
    #[error("the answer has not the choices that were asked for")]
    Choices,
    /// A choice says something else than text.
    #[error("the answer has content of an unknown kind")]
    Content,
    /// A choice calls tools, and none were offered.
    #[error("the answer calls tools")]
    ToolCalls,
    /// A choice has not ended, or in an unknown way.
    #[error("the answer has no known end")]
    Finish,
}

/// Reads the body of a 200 for a request of `n` choices.
pub fn read_completion(body: &[u8], n: u32) -> Result<Completion, Unreadable> {
    let answer: Value = serde_json::from_slice(body).map_err(|_not_json| Unreadable::Json)?;
    if present(&answer, "error").is_some() {
        return Err(Unreadable::Error);
    }
    let listed = answer.get("choices").and_then(Value::as_array).ok_or(Unreadable::Choices)?;
    let mut choices = listed.iter().map(choice).collect::<Result<Vec<_>, _>>()?;
    choices.sort_by_key(|choice| choice.index);
    if !choices.iter().map(|choice| choice.index).eq(0..n) {
        return Err(Unreadable::Choices);
    }
    let says = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let silent = !choices.iter().any(|choice| says(&choice.content) || says(&choice.refusal));
    let meters = answer.get("usage").and_then(usage::read).filter(|meters| {
        // Text that cost no token is not believed.
        silent || meters.completion_tokens() > 0
    });
    Ok(Completion { delta: Delta { choices }, meters })
}

fn choice(choice: &Value) -> Result<ChoiceDelta, Unreadable> {
    let index = choice.get("index").and_then(Value::as_u64).and_then(|at| u32::try_from(at).ok());
    let message = choice.get("message").filter(|message| message.is_object());
    let (Some(index), Some(message)) = (index, message) else { return Err(Unreadable::Choices) };
    let calls = present(message, "tool_calls").filter(|calls| *calls != &Value::Array(Vec::new()));
    if calls.is_some() || present(message, "function_call").is_some() {
        return Err(Unreadable::ToolCalls);
    }
    let content = present(message, "content").map(text).transpose()?;
    let refusal = present(message, "refusal").map(text).transpose()?;
    let finish = match choice.get("finish_reason").and_then(Value::as_str) {
        Some("stop" | "eos") => FinishReason::Stop,
        Some("length" | "model_length") => FinishReason::Length,
        Some("content_filter") => FinishReason::ContentFilter,
        Some("tool_calls" | "function_call") => return Err(Unreadable::ToolCalls),
        Some(_) | None => return Err(Unreadable::Finish),
    };
    Ok(ChoiceDelta { index, content, refusal, finish: Some(finish) })
}

/// A string, or an array of text parts, which are joined; thoughts beside them are not what was said.
fn text(content: &Value) -> Result<String, Unreadable> {
    if let Some(text) = content.as_str() {
        return Ok(text.to_owned());
    }
    let parts = content.as_array().ok_or(Unreadable::Content)?;
    let said = parts.iter().map(|part| match part.get("type").and_then(Value::as_str) {
        Some("text") => part.get("text").and_then(Value::as_str).ok_or(Unreadable::Content),
        Some("thinking" | "reasoning") => Ok(""),
        Some(_) | None => Err(Unreadable::Content),
    });
    said.collect()
}

/// A member that is there and not null.
fn present<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}
