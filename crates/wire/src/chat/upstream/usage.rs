//! A provider's usage block, reduced to disjoint meters or not believed at all. Its counts contain
//! one another: cached and written tokens are prompt tokens, reasoning is completion.

use holdfast_domain::answer::PredictionTokens;
use holdfast_domain::usage::{MeterKind, Meters};

use crate::json::Node;

/// Reads a usage block; `None` when a count is missing, negative, fractional or absurd, or a part
/// is larger than its whole.
pub(super) fn read(usage: &Node<'_>) -> Option<Meters> {
    let prompt = count(usage.get("prompt_tokens"))??;
    let completion = count(usage.get("completion_tokens"))??;
    // Absurd wholes first: their disjoint parts might each still look sane.
    if prompt.max(completion) > Meters::COUNT_MAX {
        return None;
    }
    let cached = match part(usage, "prompt_tokens_details", "cached_tokens")? {
        Some(cached) => cached,
        // DeepSeek tells it at the top, under a name of its own.
        None => count(usage.get("prompt_cache_hit_tokens"))?.unwrap_or(0),
    };
    let written = part(usage, "prompt_tokens_details", "cache_write_tokens")?.unwrap_or(0);
    let heard = part(usage, "prompt_tokens_details", "audio_tokens")?.unwrap_or(0);
    let reasoning = part(usage, "completion_tokens_details", "reasoning_tokens")?.unwrap_or(0);
    let spoken = part(usage, "completion_tokens_details", "audio_tokens")?.unwrap_or(0);
    // Each part is held against its own whole; those of one whole together, by `checked_sub` below.
    if heard > prompt || spoken > completion {
        return None;
    }
    // Audio tokens may be cached or reasoning tokens too. Such a token is metered once, as cached
    // or as reasoning: the audio meters take what is left.
    let read_anew = prompt.checked_sub(cached)?.checked_sub(written)?;
    let (heard, said) = (heard.min(read_anew), completion.checked_sub(reasoning)?);
    let spoken = spoken.min(said);
    Meters::from_fn(|kind| match kind {
        MeterKind::Input => read_anew.saturating_sub(heard),
        MeterKind::CachedInput => cached,
        MeterKind::CacheWrite => written,
        MeterKind::AudioInput => heard,
        MeterKind::Output => said.saturating_sub(spoken),
        MeterKind::Reasoning => reasoning,
        MeterKind::AudioOutput => spoken,
        MeterKind::Request => 1,
        // Providers do not count pictures: the request's own count is added where a run is metered.
        MeterKind::Image => 0,
    })
}

/// Tokens of a predicted text, accepted and rejected. Nobody pays by them: an unreadable count is
/// 0.
pub(super) fn predicted(usage: &Node<'_>) -> Option<PredictionTokens> {
    let details = usage.get("completion_tokens_details")?;
    let tokens = |name| count(details.get(name)).flatten().unwrap_or(0);
    Some(PredictionTokens {
        accepted: tokens("accepted_prediction_tokens"),
        rejected: tokens("rejected_prediction_tokens"),
    })
}

/// A count in a block of details: `Some(None)` where there is none, `None` where it is not a count.
fn part(usage: &Node<'_>, details: &str, name: &str) -> Option<Option<u64>> {
    match usage.get(details) {
        None => Some(None),
        Some(details @ Node::Object(_)) => count(details.get(name)),
        Some(Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) | Node::Array(_)) => {
            None
        }
    }
}

fn count(value: Option<&Node<'_>>) -> Option<Option<u64>> {
    match value {
        None => Some(None),
        // As spelled: `7.0`, `-1` and `1e3` are no counts, and a report that has one is not believed.
        Some(value) => value.as_number()?.parse().ok().map(Some),
    }
}
