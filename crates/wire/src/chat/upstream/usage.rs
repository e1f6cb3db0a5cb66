//! A provider's usage block in OpenAI's dialect, read into a report. What its counts mean together is
//! not decided here: [`UsageReport::resolve`] has the rule.

use holdfast_domain::answer::PredictionTokens;
use holdfast_domain::usage::{ReportedCount, UsageReport};

use crate::json::Node;

/// Usage blocks of a chunk or a whole answer, from every place in which servers put one.
pub(super) fn reports<'n, 'a>(
    answer: &'n Node<'a>,
    choices: &'n [Node<'a>],
    n: u32,
) -> impl Iterator<Item = &'n Node<'a>> {
    // Groq's own member, and Moonshot's in the only choice.
    let of_groq = answer.get("x_groq").and_then(|own| own.get("usage"));
    let of_choice = choices.first().filter(|_| n == 1).and_then(|choice| choice.get("usage"));
    [answer.get("usage"), of_groq, of_choice].into_iter().flatten()
}

/// Usage block as it was reported, unchecked.
#[derive(Default)]
pub(super) struct UsageBlock {
    pub(super) report: UsageReport,
    /// Tokens of a predicted text. No charge depends on them: an unreadable count is 0.
    pub(super) predicted: Option<PredictionTokens>,
}

impl UsageBlock {
    pub(super) fn read(usage: &Node<'_>) -> Self {
        let mut block = Self::default();
        // DeepSeek's is at the top, under a name of its own.
        let mut hit = ReportedCount::Missing;
        for (name, value) in usage.members() {
            match name.as_ref() {
                "prompt_tokens" => block.report.prompt = reported_count(value),
                "completion_tokens" => block.report.completion = reported_count(value),
                "total_tokens" => block.report.total = reported_count(value),
                "prompt_cache_hit_tokens" => hit = reported_count(value),
                "prompt_tokens_details" => block.prompt_details(value),
                "completion_tokens_details" => block.completion_details(value),
                _ => {}
            }
        }
        block.report.cached = block.report.cached.or(hit);
        block
    }

    fn prompt_details(&mut self, details: &Node<'_>) {
        for (name, value) in details.members() {
            match name.as_ref() {
                "cached_tokens" => self.report.cached = reported_count(value),
                "cache_write_tokens" => self.report.written = reported_count(value),
                "audio_tokens" => self.report.audio_in = reported_count(value),
                _ => {}
            }
        }
    }

    fn completion_details(&mut self, details: &Node<'_>) {
        let mut predicted = PredictionTokens::default();
        for (name, value) in details.members() {
            let count = reported_count(value);
            match name.as_ref() {
                "reasoning_tokens" => self.report.reasoning = count,
                "audio_tokens" => self.report.audio_out = count,
                "accepted_prediction_tokens" => predicted.accepted = count.or_zero(),
                "rejected_prediction_tokens" => predicted.rejected = count.or_zero(),
                _ => {}
            }
        }
        self.predicted = Some(predicted).filter(|_| *details != Node::Null);
    }
}

/// Reads a count of a provider's answer: a number, or its digits as a text.
#[must_use]
pub fn reported_count<'n, 'a: 'n>(value: impl Into<Option<&'n Node<'a>>>) -> ReportedCount {
    match value.into() {
        None | Some(Node::Null) => ReportedCount::Missing,
        Some(Node::Number(spelling)) => ReportedCount::parse(spelling),
        Some(Node::String(text)) => ReportedCount::parse(text),
        Some(Node::Bool(_) | Node::Array(_) | Node::Object(_)) => ReportedCount::Unreadable,
    }
}
