//! Anthropic's report of usage.
//!
//! Its input tokens leave out those that were written to the cache and read from it, so that the
//! prompt is the sum of all three; its output tokens include those of thoughts. There is no total.

use holdfast_domain::request::ServiceTier;
use holdfast_domain::usage::{ReportedCount, UsageCeiling, UsageReport};
use holdfast_wire::chat::upstream::reported_count;
use holdfast_wire::json::Node;

use crate::reading::text;

/// The latest of each count: within a stream each is reported in full, and not every time.
pub(super) struct TokenUsage {
    ceiling: UsageCeiling,
    counts: ReportedCounts,
    pub(super) tier: Option<ServiceTier>,
}

#[derive(Clone, Copy, Default)]
struct ReportedCounts {
    is_reported: bool,
    /// Reports of an output so far.
    n_outputs: u32,
    input: ReportedCount,
    cached: ReportedCount,
    written: ReportedCount,
    /// The last output, and the largest: the first one of a stream is a guess.
    output: ReportedCount,
    output_max: ReportedCount,
    thought: ReportedCount,
}

impl TokenUsage {
    /// Before the first report of a run that cannot use up more than `ceiling`.
    pub(super) fn new(ceiling: UsageCeiling) -> Self {
        Self { ceiling, counts: ReportedCounts::default(), tier: None }
    }

    /// Takes a report. One above the ceiling never replaces one below it, unless that has only the guess
    /// that a stream begins with.
    pub(super) fn take(&mut self, usage: &Node<'_>) {
        self.tier = text(usage, "service_tier").and_then(tier).or(self.tier);
        let with = |mut counts: ReportedCounts| {
            counts.take(usage);
            counts
        };
        let (merged, alone) = (with(self.counts), with(ReportedCounts::default()));
        let is_accepted = |counts: &ReportedCounts| {
            counts.report(true).is_some_and(|report| report.is_accepted(&self.ceiling))
        };
        let is_final = |counts: &ReportedCounts| counts.n_outputs > 1;
        let earlier = Some(self.counts).filter(is_final);
        let mut judged = [Some(merged), earlier, Some(alone)].into_iter().flatten();
        self.counts = judged.find(is_accepted).unwrap_or(merged);
    }

    /// The report, for an answer that has content or none; `None` if there was none.
    pub(super) fn report(&self, has_content: bool) -> Option<UsageReport> {
        self.counts.report(has_content)
    }
}

impl ReportedCounts {
    /// Takes a report. Relays repeat a side of it as zeros, or begin with them: zeros replace no count, and the
    /// output of an answer with content never gets smaller.
    fn take(&mut self, usage: &Node<'_>) {
        self.is_reported = true;
        let of = |name| reported_count(usage.get(name));
        let prompt = [
            (&mut self.input, of("input_tokens")),
            (&mut self.cached, of("cache_read_input_tokens")),
            (&mut self.written, of("cache_creation_input_tokens")),
        ];
        let is_zero = prompt.iter().all(|(_known, later)| later.or_zero() == 0);
        for (known, later) in prompt {
            *known = if is_zero { known.or(later) } else { later.or(*known) };
        }
        let output = of("output_tokens");
        self.n_outputs = self.n_outputs.saturating_add(u32::from(output.count().is_some()));
        self.output = output.or(self.output);
        if output.or_zero() >= self.output_max.or_zero() {
            let details = usage.get("output_tokens_details");
            let thought = reported_count(details.and_then(|it| it.get("thinking_tokens")));
            self.output_max = output.or(self.output_max);
            self.thought = thought.or(self.thought);
        }
    }

    fn report(&self, has_content: bool) -> Option<UsageReport> {
        self.is_reported.then(|| UsageReport {
            prompt: self.input.plus(self.cached).plus(self.written),
            completion: if has_content { self.output_max } else { self.output },
            cached: self.cached,
            written: self.written,
            reasoning: self.thought,
            has_content,
            ..UsageReport::default()
        })
    }
}

fn tier(name: &str) -> Option<ServiceTier> {
    match name {
        "standard" => Some(ServiceTier::Default),
        "priority" => Some(ServiceTier::Priority),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use holdfast_domain::usage::ReportedCount::{Count, Missing};
    use holdfast_wire::json::parse_answer;

    use super::*;

    const CEILING: UsageCeiling = UsageCeiling { context_tokens: 1_000, output_tokens: 100 };

    /// Prompt, completion, cached, written and reasoning after these reports.
    fn counts(reports: &[&str], has_content: bool) -> Option<[ReportedCount; 5]> {
        let mut usage = TokenUsage::new(CEILING);
        for report in reports {
            usage.take(&parse_answer(report.as_bytes()).unwrap());
        }
        let report = usage.report(has_content)?;
        assert_eq!((report.total, report.has_content), (Missing, has_content));
        let UsageReport { prompt, completion, cached, written, reasoning, .. } = report;
        Some([prompt, completion, cached, written, reasoning])
    }

    #[test]
    fn the_latest_of_each_count_is_reported_and_zeros_replace_nothing() {
        let start = r#"{"input_tokens":9,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":1}"#;
        let end = r#"{"output_tokens":7,"output_tokens_details":{"thinking_tokens":3}}"#;
        let whole = [Count(15), Count(7), Count(4), Count(2), Count(3)];
        let zeros = r#"{"input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":0}"#;
        let odd = r#"{"input_tokens":-1,"output_tokens":"x"}"#;
        for reports in [
            &[start, end][..],
            &[start, end, "{}"],
            &[start, end, zeros],
            &[zeros, start, end],
            &[start, odd, end],
            &[odd, start, end, odd],
            &[end, start],
            &[start, end, r#"{"output_tokens":1000000}"#],
            &[start, end, r#"{"input_tokens":1000000,"output_tokens":8}"#],
            &[r#"{"output_tokens":1000000}"#, start, end],
            &[r#"{"input_tokens":0}"#, start, r#"{"input_tokens":0}"#, end],
        ] {
            assert_eq!(counts(reports, true), Some(whole), "{reports:?}");
        }
        let corrected = r#"{"input_tokens":20,"cache_read_input_tokens":0,"output_tokens":"8.0"}"#;
        let counted = counts(&[start, end, corrected], true);
        assert_eq!(counted, Some([Count(22), Count(8), Count(0), Count(2), Count(3)]));
    }

    #[test]
    fn a_guess_stands_for_no_output_above_the_ceiling() {
        let reports = [r#"{"input_tokens":9,"output_tokens":1}"#, r#"{"output_tokens":1000000}"#];
        let of = |output| Some([Count(9), Count(output), Missing, Missing, Missing]);
        assert_eq!(counts(&reports, true), of(1_000_000), "which its judge refuses");
        assert_eq!(counts(&reports[..1], true), of(1));
    }

    #[test]
    fn an_answer_without_content_ends_with_its_last_output() {
        let reports = [r#"{"input_tokens":9,"output_tokens":1}"#, r#"{"output_tokens":0}"#];
        let of = |output| Some([Count(9), Count(output), Missing, Missing, Missing]);
        assert_eq!(counts(&reports, false), of(0));
        assert_eq!(counts(&reports, true), of(1));
        assert_eq!(counts(&[], true), None);
    }
}
