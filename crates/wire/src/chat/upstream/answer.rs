//! A provider's completion. Extras are ignored, and what OpenAI requires but nobody needs may be
//! missing; but an answer that is not whole, or ends in a way that is not known, is no answer.

use holdfast_domain::answer::{ChoiceDelta, Delta};
use holdfast_domain::ports::UnreadableReason;
use holdfast_domain::request::ServiceTier;
use holdfast_domain::usage::Meters;

use super::{choice, moderation, usage};
use crate::json::{self, Node};

/// A provider's whole answer: one delta with everything, and its meters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Everything that was said, each choice with its end. None of the provider's ids.
    pub delta: Delta,
    /// Tokens that the provider reports; `None` when the report is missing or cannot be believed.
    pub meters: Option<Meters>,
}

/// Reads the body of a 200 for a request of `n` choices.
pub fn read_completion(body: &[u8], n: u32) -> Result<Completion, UnreadableReason> {
    let answer = json::parse_answer(body)?;
    // Some servers send an error under status 200. A null is no error: `get` takes it for absent.
    if answer.get("error").is_some() {
        return Err(UnreadableReason::Error);
    }
    let listed = answer
        .get("choices")
        .and_then(Node::as_array)
        .ok_or(UnreadableReason::Choices("choices"))?;
    // Collecting would begin with room for four, and most answers have one; no room for more than
    // were asked for, whatever is listed.
    let mut choices = Vec::with_capacity(listed.len().min(usize::try_from(n).unwrap_or(1)));
    for choice in listed {
        choices.push(choice::read(choice)?);
    }
    // A list in another order is whole all the same; one that lacks an index or has it twice is not.
    choices.sort_by_key(|choice| choice.index);
    if !choices.iter().map(|choice| choice.index).eq(0..n) {
        return Err(UnreadableReason::Choices("choices"));
    }
    let silent = !choices.iter().any(has_content);
    let meters = answer.get("usage").and_then(usage::read).filter(|meters| {
        // Text that cost no token is not believed.
        silent || meters.completion_tokens() > 0
    });
    let delta = Delta {
        choices,
        service_tier: answer.get("service_tier").and_then(service_tier),
        predicted: answer.get("usage").and_then(usage::predicted),
        moderation: answer.get("moderation").and_then(moderation::read),
    };
    Ok(Completion { delta, meters })
}

/// A tier by OpenAI's name. Any other is dropped: it would tell who the provider is.
pub(super) fn service_tier(node: &Node<'_>) -> Option<ServiceTier> {
    let said = node.as_str()?;
    ServiceTier::ALL.iter().copied().find(|tier| tier.label() == said)
}

fn has_content(choice: &ChoiceDelta) -> bool {
    let texts = [&choice.content, &choice.refusal, &choice.reasoning];
    texts.into_iter().flatten().any(|text| !text.is_empty())
        || !choice.tool_calls.is_empty()
        || choice.function_call.is_some()
        || choice.audio.is_some()
}
