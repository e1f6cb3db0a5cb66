//! Reading of one choice of a provider's completion, into a delta that holds all of it. The
//! provider's ids are dropped: callers get ids that are derived from the operation's.

use holdfast_domain::answer::{Audio, ChoiceDelta, FinishReason, FunctionCallDelta};
use holdfast_domain::ports::UnreadableReason;

use super::{calls, passthrough};
use crate::json::Node;

pub(in crate::chat) fn read(choice: &Node<'_>) -> Result<ChoiceDelta, UnreadableReason> {
    // Not its place in the list: without an index it is a guess whose text this is.
    let index = choice.get("index").and_then(Node::as_number).and_then(|at| at.parse().ok());
    let index = index.ok_or(UnreadableReason::Choices("choices[].index"))?;
    let message = choice.get("message").filter(|message| matches!(message, Node::Object(_)));
    let message = message.ok_or(UnreadableReason::Choices("choices[].message"))?;
    let tool_calls = calls::read(message)?;
    let function_call = message.get("function_call").map(function_call).transpose()?;
    let finish = finish(choice.get("finish_reason").and_then(Node::as_str))?;
    // A caller that is told of calls looks for them.
    let are_there = match finish {
        FinishReason::ToolCalls => !tool_calls.is_empty(),
        FinishReason::FunctionCall => function_call.is_some(),
        FinishReason::Stop | FinishReason::Length | FinishReason::ContentFilter => true,
    };
    if !are_there {
        return Err(UnreadableReason::ToolCalls("choices[].finish_reason"));
    }
    let reasoning = message.get("reasoning_content").or_else(|| message.get("reasoning"));
    Ok(ChoiceDelta {
        index,
        content: text(message.get("content"), "choices[].message.content")?,
        refusal: text(message.get("refusal"), "choices[].message.refusal")?,
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
pub(super) fn finish(reason: Option<&str>) -> Result<FinishReason, UnreadableReason> {
    Ok(match reason {
        Some("stop" | "eos") => FinishReason::Stop,
        Some("length" | "model_length") => FinishReason::Length,
        Some("content_filter") => FinishReason::ContentFilter,
        Some("tool_calls") => FinishReason::ToolCalls,
        Some("function_call") => FinishReason::FunctionCall,
        // An end of another name may be a cut answer, which must not pass for a whole one.
        Some(_) | None => return Err(UnreadableReason::Finish("choices[].finish_reason")),
    })
}

/// A string, or an array of text parts, which are joined; thoughts beside them are not what was
/// said.
pub(super) fn text(
    content: Option<&Node<'_>>,
    field: &'static str,
) -> Result<Option<String>, UnreadableReason> {
    let Some(content) = content else { return Ok(None) };
    if let Some(text) = content.as_str() {
        return Ok(Some(text.to_owned()));
    }
    let parts = content.as_array().ok_or(UnreadableReason::Content(field))?;
    let said = parts.iter().map(|part| match part.get("type").and_then(Node::as_str) {
        Some("text") => {
            part.get("text").and_then(Node::as_str).ok_or(UnreadableReason::Content(field))
        }
        Some("thinking" | "reasoning") => Ok(""),
        Some(_) | None => Err(UnreadableReason::Content(field)),
    });
    said.collect::<Result<_, _>>().map(Some)
}

fn function_call(call: &Node<'_>) -> Result<FunctionCallDelta, UnreadableReason> {
    let name = calls::name(call, "choices[].message.function_call.name")?;
    let field = "choices[].message.function_call.arguments";
    let arguments = calls::input_text(call.get("arguments"), field)?;
    Ok(FunctionCallDelta { name: Some(name), arguments: Some(arguments) })
}

fn audio(audio: &Node<'_>) -> Result<Audio, UnreadableReason> {
    let text = |name| audio.get(name).and_then(Node::as_str).map(str::to_owned);
    let expires_at = audio.get("expires_at").and_then(Node::as_number);
    Ok(Audio {
        // A voice without its data is nothing; a missing transcript only lacks words.
        data: text("data").ok_or(UnreadableReason::Content("choices[].message.audio.data"))?,
        transcript: text("transcript").unwrap_or_default(),
        expires_at: expires_at.and_then(|at| at.parse().ok()).unwrap_or_default(),
    })
}
