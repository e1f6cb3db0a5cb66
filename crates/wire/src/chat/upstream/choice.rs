//! Reading of one choice of a provider's completion, into a delta that holds all of it. The
//! provider's ids are dropped: callers get ids that are derived from the operation's.

use holdfast_domain::answer::{Audio, ChoiceDelta, FinishReason, FunctionCallDelta, ToolCallDelta};
use holdfast_domain::request::ToolKind;

use super::answer::UnreadableReason;
use super::calls::CALLS_MAX;
use super::passthrough;
use crate::json::Node;

pub(in crate::chat) fn read(choice: &Node<'_>) -> Result<ChoiceDelta, UnreadableReason> {
    let index = choice.get("index").and_then(Node::as_number).and_then(|at| at.parse().ok());
    let message = choice.get("message").filter(|message| matches!(message, Node::Object(_)));
    let (Some(index), Some(message)) = (index, message) else {
        return Err(UnreadableReason::Choices);
    };
    let tool_calls = tool_calls(message)?;
    let function_call = message.get("function_call").map(function_call).transpose()?;
    let reason =
        choice.get("finish_reason").and_then(Node::as_str).ok_or(UnreadableReason::Finish)?;
    let finish = finish(reason)?;
    // A caller that is told of calls looks for them.
    let are_there = match finish {
        FinishReason::ToolCalls => !tool_calls.is_empty(),
        FinishReason::FunctionCall => function_call.is_some(),
        FinishReason::Stop | FinishReason::Length | FinishReason::ContentFilter => true,
    };
    if !are_there {
        return Err(UnreadableReason::ToolCalls);
    }
    let reasoning = message.get("reasoning_content").or_else(|| message.get("reasoning"));
    Ok(ChoiceDelta {
        index,
        content: message.get("content").map(text).transpose()?,
        refusal: message.get("refusal").map(text).transpose()?,
        // An extension of some servers: what is not text is one more extra.
        reasoning: reasoning.and_then(Node::as_str).map(str::to_owned),
        tool_calls,
        function_call,
        logprobs: choice.get("logprobs").map(passthrough::logprobs),
        annotations: passthrough::annotations(message.get("annotations")),
        audio: message.get("audio").map(audio).transpose()?,
        finish: Some(finish),
    })
}

/// An end by its name at the provider.
pub(super) fn finish(reason: &str) -> Result<FinishReason, UnreadableReason> {
    Ok(match reason {
        "stop" | "eos" => FinishReason::Stop,
        "length" | "model_length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        "tool_calls" => FinishReason::ToolCalls,
        "function_call" => FinishReason::FunctionCall,
        _ => return Err(UnreadableReason::Finish),
    })
}

/// A string, or an array of text parts, which are joined; thoughts beside them are not what was
/// said.
pub(super) fn text(content: &Node<'_>) -> Result<String, UnreadableReason> {
    if let Some(text) = content.as_str() {
        return Ok(text.to_owned());
    }
    let parts = content.as_array().ok_or(UnreadableReason::Content)?;
    let said = parts.iter().map(|part| match part.get("type").and_then(Node::as_str) {
        Some("text") => part.get("text").and_then(Node::as_str).ok_or(UnreadableReason::Content),
        Some("thinking" | "reasoning") => Ok(""),
        Some(_) | None => Err(UnreadableReason::Content),
    });
    said.collect()
}

fn tool_calls(message: &Node<'_>) -> Result<Vec<ToolCallDelta>, UnreadableReason> {
    let Some(calls) = message.get("tool_calls") else { return Ok(Vec::new()) };
    let calls = calls.as_array().ok_or(UnreadableReason::ToolCalls)?;
    if calls.len() > CALLS_MAX {
        return Err(UnreadableReason::TooManyCalls);
    }
    (0..).zip(calls).map(|(index, call)| tool_call(index, call)).collect()
}

/// The `type` may be missing; what is called may not.
fn tool_call(index: u32, call: &Node<'_>) -> Result<ToolCallDelta, UnreadableReason> {
    let kind = match call.get("type").and_then(Node::as_str) {
        Some("function") => ToolKind::Function,
        Some("custom") => ToolKind::Custom,
        None if call.get("function").is_some() => ToolKind::Function,
        Some(_) | None => return Err(UnreadableReason::ToolCalls),
    };
    let called = call.get(kind.label()).ok_or(UnreadableReason::ToolCalls)?;
    let input = match kind {
        ToolKind::Function => "arguments",
        ToolKind::Custom => "input",
    };
    let (name, input) = (name(called)?, input_text(called.get(input))?);
    Ok(ToolCallDelta { index, kind: Some(kind), name: Some(name), input: Some(input), state: None })
}

fn function_call(call: &Node<'_>) -> Result<FunctionCallDelta, UnreadableReason> {
    let (name, arguments) = (name(call)?, input_text(call.get("arguments"))?);
    Ok(FunctionCallDelta { name: Some(name), arguments: Some(arguments) })
}

fn name(called: &Node<'_>) -> Result<String, UnreadableReason> {
    called.get("name").and_then(Node::as_str).map(str::to_owned).ok_or(UnreadableReason::ToolCalls)
}

/// Some servers send the arguments as the object that the text would be, or none at all.
pub(super) fn input_text(input: Option<&Node<'_>>) -> Result<String, UnreadableReason> {
    match input {
        None => Ok(String::new()),
        Some(Node::String(text)) => Ok(text.as_ref().to_owned()),
        Some(object @ Node::Object(_)) => Ok(object.to_string()),
        Some(Node::Null | Node::Bool(_) | Node::Number(_) | Node::Array(_)) => {
            Err(UnreadableReason::ToolCalls)
        }
    }
}

fn audio(audio: &Node<'_>) -> Result<Audio, UnreadableReason> {
    let text = |name| audio.get(name).and_then(Node::as_str).map(str::to_owned);
    let expires_at = audio.get("expires_at").and_then(Node::as_number);
    Ok(Audio {
        data: text("data").ok_or(UnreadableReason::Content)?,
        transcript: text("transcript").unwrap_or_default(),
        expires_at: expires_at.and_then(|at| at.parse().ok()).unwrap_or_default(),
    })
}
