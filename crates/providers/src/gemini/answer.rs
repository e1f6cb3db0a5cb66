//! What Gemini answers, read leniently but never guessed: of its ids, its model's name and its own words
//! of errors nothing is kept.

use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason, ToolCallDelta};
use holdfast_domain::ports::Call;
use holdfast_domain::request::ToolKind;
use holdfast_domain::usage::{Kind, Meters};
use holdfast_wire::chat::upstream::{Completion, Unreadable};
use holdfast_wire::json::{Node, parse_answer};

use crate::reading::{append, count, text};

/// Reads the body of a 200.
pub(super) fn read(body: &[u8], call: &Call) -> Result<Completion, Unreadable> {
    let answer = parse_answer(body).map_err(|_not_json| Unreadable::Json)?;
    if answer.get("error").is_some() {
        return Err(Unreadable::Error);
    }
    let n = call.request.n;
    let listed = answer.get("candidates").and_then(Node::as_array).unwrap_or_default();
    let mut choices = listed.iter().map(candidate).collect::<Result<Vec<_>, _>>()?;
    if choices.is_empty() && is_blocked(&answer) {
        choices.extend((0..n).map(|index| ChoiceDelta {
            index,
            content: Some(String::new()),
            finish: Some(FinishReason::ContentFilter),
            ..ChoiceDelta::default()
        }));
    }
    choices.sort_by_key(|choice| choice.index);
    if !choices.iter().map(|choice| choice.index).eq(0..n) {
        return Err(Unreadable::Choices);
    }
    let says_something = choices.iter().any(|choice| {
        choice.content.as_ref().is_some_and(|text| !text.is_empty())
            || !choice.tool_calls.is_empty()
    });
    // Text that cost no token is not believed.
    let meters = answer
        .get("usageMetadata")
        .and_then(meters)
        .filter(|meters| !says_something || meters.completion_tokens() > 0);
    Ok(Completion { delta: Delta::from(choices), meters })
}

/// The prompt was refused, so nothing was said.
fn is_blocked(answer: &Node<'_>) -> bool {
    let feedback = answer.get("promptFeedback");
    feedback.and_then(|feedback| text(feedback, "blockReason")).is_some()
}

fn candidate(candidate: &Node<'_>) -> Result<ChoiceDelta, Unreadable> {
    let index = match candidate.get("index") {
        None => Some(0),
        Some(index) => index.as_number().and_then(|index| index.parse().ok()),
    };
    let index = index.ok_or(Unreadable::Choices)?;
    let mut choice = ChoiceDelta { index, ..ChoiceDelta::default() };
    let parts = candidate.get("content").and_then(|content| content.get("parts"));
    let parts = match parts {
        None => &[][..],
        Some(parts) => parts.as_array().ok_or(Unreadable::Content)?,
    };
    for part in parts {
        add(&mut choice, part)?;
    }
    if choice.content.is_none() && choice.tool_calls.is_empty() {
        choice.content = Some(String::new());
    }
    let finish = text(candidate, "finishReason").and_then(finish).ok_or(Unreadable::Finish)?;
    // It says STOP after calls as well.
    let calls = finish == FinishReason::Stop && !choice.tool_calls.is_empty();
    choice.finish = Some(if calls { FinishReason::ToolCalls } else { finish });
    Ok(choice)
}

fn add(choice: &mut ChoiceDelta, part: &Node<'_>) -> Result<(), Unreadable> {
    if let Some(call) = part.get("functionCall") {
        let index = u32::try_from(choice.tool_calls.len());
        let name = text(call, "name").ok_or(Unreadable::ToolCalls)?;
        let input = call.get("args").map_or_else(|| "{}".to_owned(), Node::to_string);
        choice.tool_calls.push(ToolCallDelta {
            index: index.map_err(|_too_many| Unreadable::ToolCalls)?,
            kind: Some(ToolKind::Function),
            name: Some(name.to_owned()),
            input: Some(input),
        });
        return Ok(());
    }
    let is_thought = part.get("thought") == Some(&Node::Bool(true));
    let to = if is_thought { &mut choice.reasoning } else { &mut choice.content };
    append(to, text(part, "text"))
}

/// Why it ended, in the words that callers know. What it does not say for itself, and calls that it
/// made wrongly, are no end.
fn finish(reason: &str) -> Option<FinishReason> {
    match reason {
        "STOP" => Some(FinishReason::Stop),
        "MAX_TOKENS" | "CONTINUATION" => Some(FinishReason::Length),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "ESCALATION"
        | "MODEL_ARMOR"
        | "PUP_LIMITED_DISABLED" => Some(FinishReason::ContentFilter),
        _ => None,
    }
}

/// Its prompt tokens include cached ones and those of audio; its candidates' tokens leave out what was
/// thought, but for servers whose total says that they do not.
fn meters(usage: &Node<'_>) -> Option<Meters> {
    let of = |name| Some(count(usage, name)?.unwrap_or(0));
    let prompt = count(usage, "promptTokenCount")??.checked_add(of("toolUsePromptTokenCount")?)?;
    let (candidates, thought) = (of("candidatesTokenCount")?, of("thoughtsTokenCount")?);
    let cached = of("cachedContentTokenCount")?;
    let total = count(usage, "totalTokenCount")?;
    let is_included = total.is_some() && total == prompt.checked_add(candidates);
    let said = if is_included { candidates.checked_sub(thought)? } else { candidates };
    let read_anew = prompt.checked_sub(cached)?;
    let heard = heard(usage)?.min(read_anew);
    Meters::by(|kind| match kind {
        Kind::Input => read_anew.saturating_sub(heard),
        Kind::CachedInput => cached,
        Kind::AudioInput => heard,
        Kind::Output => said,
        Kind::Reasoning => thought,
        Kind::Request => 1,
        Kind::CacheWrite | Kind::AudioOutput | Kind::Image => 0,
    })
}

/// Prompt tokens of audio.
fn heard(usage: &Node<'_>) -> Option<u64> {
    let Some(details) = usage.get("promptTokensDetails") else { return Some(0) };
    let details = details.as_array()?.iter();
    let of_audio = details.filter(|detail| text(detail, "modality") == Some("AUDIO"));
    of_audio.map(|detail| count(detail, "tokenCount").map(Option::unwrap_or_default)).sum()
}
