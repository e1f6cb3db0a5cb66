//! A provider's completion. Extras are ignored, and members that OpenAI requires but that are not used here may
//! be missing; but an answer that is not whole, or ends in an unknown way, is no answer.

use holdfast_domain::answer::{ChoiceDelta, Delta};
use holdfast_domain::ports::UnreadableReason;
use holdfast_domain::request::ServiceTier;
use holdfast_domain::usage::{LatestUsage, UsageCeiling, UsageReport};

use super::choice::{self, ChoiceState, DELTA, MESSAGE};
use super::context::AnswerContext;
use super::members::{has_error, index, list, object};
use super::moderation;
use super::usage::{self, UsageBlock};
use crate::json::{self, Node};

/// A provider's whole answer: one delta with everything, and its usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The whole output, each choice with its end. None of the provider's ids.
    pub delta: Delta,
    /// Usage as the provider reports it, unchecked; `None` without a report.
    pub usage: Option<UsageReport>,
}

/// Reads the body of a 200 for a request of `n` choices and without tools.
///
/// # Errors
///
/// An [`UnreadableReason`]: the answer is not whole, and the model may have run.
pub fn read_completion(body: &[u8], n: u32) -> Result<Completion, UnreadableReason> {
    read_completion_in(body, &AnswerContext::of_choices(n), UsageCeiling::NONE)
}

/// Reads the body of a 200.
///
/// # Errors
///
/// An [`UnreadableReason`]: the answer is not whole, and the model may have run.
pub fn read_completion_in(
    body: &[u8],
    context: &AnswerContext,
    ceiling: UsageCeiling,
) -> Result<Completion, UnreadableReason> {
    let n = context.n;
    let answer = json::parse_answer(body)?;
    // Some servers send an error under status 200.
    if has_error(&answer) || answer.get("x_groq").is_some_and(has_error) {
        return Err(UnreadableReason::Error);
    }
    let listed = list(answer.get("choices"));
    let listed = listed.ok_or(UnreadableReason::Choices("choices"))?;
    // Collecting would begin with room for four, and most answers have one; no room for more than
    // were asked for, whatever is listed.
    let mut choices = Vec::with_capacity(listed.len().min(usize::try_from(n).unwrap_or(1)));
    for choice in listed {
        choices.extend(read_choice(choice, context)?);
    }
    // A list in another order is whole all the same; one that lacks an index or has it twice is not.
    choices.sort_by_key(|choice| choice.index);
    if !choices.iter().map(|choice| choice.index).eq(0..n) {
        return Err(UnreadableReason::Choices("choices"));
    }
    let mut latest = LatestUsage::new(ceiling);
    let mut predicted = None;
    for block in usage::reports(&answer, listed, n).map(UsageBlock::read) {
        latest.take(block.report);
        predicted = predicted.or(block.predicted);
    }
    let usage = latest.end(choices.iter().any(has_content));
    let delta = Delta {
        choices,
        service_tier: answer.get("service_tier").and_then(service_tier),
        predicted,
        moderation: answer.get("moderation").and_then(moderation::read),
    };
    Ok(Completion { delta, usage })
}

/// A choice of a whole answer, as a delta that holds all of it; `None` for an empty one.
fn read_choice(
    choice: &Node<'_>,
    context: &AnswerContext,
) -> Result<Option<ChoiceDelta>, UnreadableReason> {
    const INDEX: UnreadableReason = UnreadableReason::Choices("choices[].index");
    const MISSING: UnreadableReason = UnreadableReason::Choices("choices[].message");
    let Some(choice) = object(Some(choice)).ok_or(INDEX)? else { return Ok(None) };
    // Not its place in the list: with several choices it would be a guess whose text this is.
    let index = index(choice.get("index")).ok_or(INDEX)?;
    let index = index.or((context.n == 1).then_some(0)).ok_or(INDEX)?;
    let mut state = ChoiceState::default();
    let message = object(choice.get("message")).ok_or(MISSING)?;
    let delta = choice.get("delta").filter(|_| message.is_none());
    let mut gained = match (message, object(delta).ok_or(MISSING)?) {
        (Some(message), _) => state.read(message, &context.tools, &MESSAGE)?,
        (None, Some(delta)) => state.read(delta, &context.tools, &DELTA)?,
        (None, None) => ChoiceDelta::default(),
    };
    let finish = context.words.read(choice.get("finish_reason"))?;
    if finish.is_none() && choice.get("message").is_none() && delta.is_none() {
        return Err(MISSING);
    }
    // The body was read to its last byte, so that an answer without a named end is not a cut one.
    state.end(finish.unwrap_or(state.unnamed_finish()), &mut gained);
    state.check("choices[].finish_reason", &MESSAGE)?;
    gained.index = index;
    gained.logprobs = choice::logprobs(choice.get("logprobs"));
    Ok(Some(gained))
}

/// A tier by OpenAI's name. Any other is dropped: it would reveal the provider.
pub(super) fn service_tier(node: &Node<'_>) -> Option<ServiceTier> {
    let name = node.as_str()?;
    ServiceTier::ALL.iter().copied().find(|tier| tier.label() == name)
}

fn has_content(choice: &ChoiceDelta) -> bool {
    let texts = [&choice.content, &choice.refusal, &choice.reasoning];
    texts.into_iter().flatten().any(|text| !text.is_empty())
        || !choice.tool_calls.is_empty()
        || choice.function_call.is_some()
        || choice.audio.is_some()
}
