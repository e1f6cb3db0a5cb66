//! Anthropic's whole answer into a delta and usage, read leniently but never guessed.
//!
//! A block of an unknown kind makes the answer unreadable: it may be the part that the caller paid for. Never:
//! Anthropic's ids, its model's name or its own words of errors in the output.

use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason, ToolCallDelta};
use holdfast_domain::request::ToolKind;
use holdfast_domain::usage::UsageCeiling;
use holdfast_wire::chat::upstream::{Completion, UnreadableReason};
use holdfast_wire::json::{Draft, Node, parse_answer};

use super::usage::TokenUsage;
use crate::reading::{
    append, arguments, cut_last_call, has_content, has_text, kept_promise, next_call, text,
    unnamed_finish,
};
use crate::reasoning::{PendingReasoning, ReasoningBlock};

/// Reads the body of a 200.
pub(super) fn read(body: &[u8]) -> Result<Completion, UnreadableReason> {
    let answer = parse_answer(body)?;
    if answer.get("error").is_some() {
        return Err(UnreadableReason::Error);
    }
    let blocks = answer
        .get("content")
        .and_then(Node::as_array)
        .ok_or(UnreadableReason::Choices("content"))?;
    let mut choice = ChoiceDelta::default();
    let mut thoughts = PendingReasoning::default();
    for block in blocks {
        add(&mut choice, &mut thoughts, block)?;
    }
    if choice.content.is_none() && choice.tool_calls.is_empty() {
        choice.content = Some(String::new());
    }
    let end = match text(&answer, "stop_reason") {
        None | Some("") => unnamed_finish(choice.tool_calls.len()),
        Some(reason) => finish(reason).ok_or(UnreadableReason::Finish("stop_reason"))?,
    };
    let n_calls = u32::try_from(choice.tool_calls.len()).unwrap_or(u32::MAX);
    let kept = kept_promise(end, n_calls, has_text(&choice));
    choice.finish = Some(kept.ok_or(UnreadableReason::ToolCalls("content[].type"))?);
    cut_last_call(&mut choice);
    let mut usage = TokenUsage::new(UsageCeiling::NONE);
    if let Some(reported) = answer.get("usage") {
        usage.take(reported);
    }
    let report = usage.report(has_content(&choice));
    let delta = Delta { service_tier: usage.tier, ..Delta::from(vec![choice]) };
    Ok(Completion { delta, usage: report })
}

fn add(
    choice: &mut ChoiceDelta,
    thoughts: &mut PendingReasoning,
    block: &Node<'_>,
) -> Result<(), UnreadableReason> {
    match text(block, "type") {
        Some("text") => {
            thoughts.text();
            append(&mut choice.content, text(block, "text"), "content[].text")?;
        }
        Some("thinking") => {
            let field = "content[].thinking";
            let thought = text(block, "thinking").ok_or(UnreadableReason::Content(field))?;
            append(&mut choice.reasoning, Some(thought), field)?;
            let signature = text(block, "signature").map(str::to_owned);
            thoughts.add(ReasoningBlock::Said { text: thought.to_owned(), signature });
        }
        Some("redacted_thinking") => thoughts.redacted(text(block, "data")),
        Some("tool_use") => {
            let mut n_calls = u32::try_from(choice.tool_calls.len()).unwrap_or(u32::MAX);
            choice.tool_calls.push(ToolCallDelta {
                index: next_call(&mut n_calls)?,
                kind: Some(ToolKind::Function),
                name: Some(
                    text(block, "name")
                        .ok_or(UnreadableReason::ToolCalls("content[].name"))?
                        .to_owned(),
                ),
                input: Some(arguments(block.get("input"))),
                state: thoughts.before_call(render_reasoning),
            });
        }
        Some(_) | None => return Err(UnreadableReason::Content("content[].type")),
    }
    Ok(())
}

/// A thought in the form in which it came and is required back.
pub(super) fn render_reasoning(thought: &ReasoningBlock) -> Draft<'_> {
    match thought {
        ReasoningBlock::Said { text, signature } => Draft::object([
            Some(("type", Draft::from("thinking"))),
            Some(("thinking", text.as_str().into())),
            signature.as_deref().map(|signature| ("signature", signature.into())),
        ]),
        ReasoningBlock::Redacted(data) => Draft::object([
            ("type", Draft::from("redacted_thinking")),
            ("data", data.as_str().into()),
        ]),
    }
}

/// Reason of the end, in the words that callers know; `None` makes the answer unreadable.
pub(super) fn finish(reason: &str) -> Option<FinishReason> {
    match reason {
        "end_turn" | "stop_sequence" => Some(FinishReason::Stop),
        "tool_use" => Some(FinishReason::ToolCalls),
        "max_tokens" | "model_context_window_exceeded" | "pause_turn" => Some(FinishReason::Length),
        "refusal" => Some(FinishReason::ContentFilter),
        _ => None,
    }
}
