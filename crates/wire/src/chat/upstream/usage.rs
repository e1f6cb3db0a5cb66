//! A provider's usage block in OpenAI's dialect, read into a report. What its counts mean together is
//! not decided here: [`UsageReport::resolve`] has the rule.

use holdfast_domain::answer::PredictionTokens;
use holdfast_domain::usage::{ReportedCount, UsageReport};

use crate::json::Node;

/// Usage blocks of a chunk or a whole answer, in every place where servers put one.
pub(super) fn reports<'n, 'a>(
    answer: &'n Node<'a>,
    n: u32,
) -> impl Iterator<Item = &'n Node<'a>> + use<'n, 'a> {
    // Groq's own member, and Moonshot's in the only choice.
    let of_groq = || answer.get("x_groq")?.get("usage");
    let of_choice = || answer.get("choices")?.as_array()?.first().filter(|_| n == 1)?.get("usage");
    [answer.get("usage"), of_groq(), of_choice()].into_iter().flatten()
}

/// Reads a usage block. Nothing of it is checked.
pub(super) fn read(usage: &Node<'_>) -> UsageReport {
    let prompt_details = usage.get("prompt_tokens_details");
    let completion_details = usage.get("completion_tokens_details");
    let detail =
        |details: Option<&Node<'_>>, name| reported_count(details.and_then(|it| it.get(name)));
    UsageReport {
        prompt: reported_count(usage.get("prompt_tokens")),
        completion: reported_count(usage.get("completion_tokens")),
        total: reported_count(usage.get("total_tokens")),
        // DeepSeek's is at the top, under a name of its own.
        cached: detail(prompt_details, "cached_tokens")
            .or(reported_count(usage.get("prompt_cache_hit_tokens"))),
        written: detail(prompt_details, "cache_write_tokens"),
        audio_in: detail(prompt_details, "audio_tokens"),
        reasoning: detail(completion_details, "reasoning_tokens"),
        audio_out: detail(completion_details, "audio_tokens"),
        has_content: false,
    }
}

/// Tokens of a predicted text, accepted and rejected. No charge depends on them: an unreadable count
/// is 0.
pub(super) fn predicted(usage: &Node<'_>) -> Option<PredictionTokens> {
    let details = usage.get("completion_tokens_details")?;
    let tokens = |name| reported_count(details.get(name)).or_zero();
    Some(PredictionTokens {
        accepted: tokens("accepted_prediction_tokens"),
        rejected: tokens("rejected_prediction_tokens"),
    })
}

/// Reads a count of a provider's answer: a number, or its digits as a text.
#[must_use]
pub fn reported_count(value: Option<&Node<'_>>) -> ReportedCount {
    match value {
        None | Some(Node::Null) => ReportedCount::Missing,
        Some(Node::Number(spelling)) => ReportedCount::parse(spelling),
        Some(Node::String(text)) => ReportedCount::parse(text),
        Some(Node::Bool(_) | Node::Array(_) | Node::Object(_)) => ReportedCount::Unreadable,
    }
}
