//! What Anthropic answers, read leniently but never guessed: of its ids, its model's name and its own
//! words of errors nothing is kept.

use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason, ToolCallDelta};
use holdfast_domain::ports::Call;
use holdfast_domain::request::{ServiceTier, ToolKind};
use holdfast_domain::usage::{Kind, Meters};
use holdfast_wire::chat::upstream::{Completion, Unreadable};
use holdfast_wire::json::{Node, parse_answer};

use crate::reading::{append, count, text};

/// Reads the body of a 200.
pub(super) fn read(body: &[u8], _call: &Call) -> Result<Completion, Unreadable> {
    let answer = parse_answer(body).map_err(|_not_json| Unreadable::Json)?;
    if answer.get("error").is_some() {
        return Err(Unreadable::Error);
    }
    let blocks = answer.get("content").and_then(Node::as_array).ok_or(Unreadable::Choices)?;
    let mut choice = ChoiceDelta::default();
    for block in blocks {
        add(&mut choice, block)?;
    }
    if choice.content.is_none() && choice.tool_calls.is_empty() {
        choice.content = Some(String::new());
    }
    let finish = text(&answer, "stop_reason").and_then(finish).ok_or(Unreadable::Finish)?;
    if finish == FinishReason::ToolCalls && choice.tool_calls.is_empty() {
        return Err(Unreadable::ToolCalls);
    }
    choice.finish = Some(finish);
    let usage = answer.get("usage");
    // Text that cost no token is not believed.
    let says_something = blocks.iter().any(|block| text(block, "text") != Some(""));
    let meters =
        usage.and_then(meters).filter(|meters| !says_something || meters.completion_tokens() > 0);
    let service_tier = usage.and_then(|usage| text(usage, "service_tier")).and_then(tier);
    Ok(Completion { delta: Delta { service_tier, ..Delta::from(vec![choice]) }, meters })
}

fn add(choice: &mut ChoiceDelta, block: &Node<'_>) -> Result<(), Unreadable> {
    match text(block, "type") {
        Some("text") => append(&mut choice.content, text(block, "text"))?,
        Some("thinking") => append(&mut choice.reasoning, text(block, "thinking"))?,
        // Thoughts that only the provider can read.
        Some("redacted_thinking") => {}
        Some("tool_use") => {
            let index = u32::try_from(choice.tool_calls.len());
            let input = block.get("input").ok_or(Unreadable::ToolCalls)?;
            choice.tool_calls.push(ToolCallDelta {
                index: index.map_err(|_too_many| Unreadable::ToolCalls)?,
                kind: Some(ToolKind::Function),
                name: Some(text(block, "name").ok_or(Unreadable::ToolCalls)?.to_owned()),
                input: Some(input.to_string()),
            });
        }
        Some(_) | None => return Err(Unreadable::Content),
    }
    Ok(())
}

/// Why it ended, in the five words that callers know.
fn finish(reason: &str) -> Option<FinishReason> {
    match reason {
        "end_turn" | "stop_sequence" => Some(FinishReason::Stop),
        "tool_use" => Some(FinishReason::ToolCalls),
        "max_tokens" | "model_context_window_exceeded" | "pause_turn" => Some(FinishReason::Length),
        "refusal" => Some(FinishReason::ContentFilter),
        _ => None,
    }
}

fn tier(name: &str) -> Option<ServiceTier> {
    match name {
        "standard" => Some(ServiceTier::Default),
        "priority" => Some(ServiceTier::Priority),
        _ => None,
    }
}

/// Its input tokens leave out what was written to the cache and read from it; its output tokens
/// include those that it thought.
fn meters(usage: &Node<'_>) -> Option<Meters> {
    let input = count(usage, "input_tokens")??;
    let output = count(usage, "output_tokens")??;
    let cached = count(usage, "cache_read_input_tokens")?.unwrap_or(0);
    let written = count(usage, "cache_creation_input_tokens")?.unwrap_or(0);
    let thought = match usage.get("output_tokens_details") {
        Some(details) => count(details, "thinking_tokens")?.unwrap_or(0),
        None => 0,
    };
    let said = output.checked_sub(thought)?;
    Meters::by(|kind| match kind {
        Kind::Input => input,
        Kind::CachedInput => cached,
        Kind::CacheWrite => written,
        Kind::Output => said,
        Kind::Reasoning => thought,
        Kind::Request => 1,
        Kind::AudioInput | Kind::AudioOutput | Kind::Image => 0,
    })
}
