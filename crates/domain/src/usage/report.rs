//! The rule of usage reports: what a provider counts, contradictions included, becomes disjoint meters.
//! A report is evidence. A part that contradicts the rest is cut; the rest of the report stands.
//!
//! Adapters fill a [`UsageReport`] with the counts as they were sent; [`UsageReport::resolve`] is the
//! only place that interprets them. Wholes are the prompt and the completion, details are their parts,
//! and `rest` is the total minus both wholes.
//!
//! | the report | reading | recorded from, or documented by |
//! |---|---|---|
//! | rest 0, no total, or a total below the wholes | details are parts | OpenAI, Azure OpenAI, Groq, DeepSeek; Gemini's servers that count thoughts among candidates |
//! | rest = cached | cached tokens beside the prompt | relays of Anthropic and Bedrock, whose input leaves out the cache |
//! | rest = written | written tokens beside the prompt | the same |
//! | rest = cached + written | both beside the prompt | the same |
//! | rest = audio in | audio beside the prompt | Mistral Voxtral: 9 and 375 of audio, 248, total 632 |
//! | rest = reasoning | reasoning beside the completion | xAI: 10,120, 1,499 and 2,809 of reasoning, total 14,428 |
//! | rest = audio out | audio beside the completion | the mirror of Voxtral's; not recorded |
//! | rest = one of the prompt's side + one of the completion's | both beside | a relay of Anthropic before a model that reasons; not recorded |
//! | any other rest, no detail exceeds its whole, completion + rest within the request's bound | the rest is output | Gemini behind Google's OpenAI endpoint: 35, 12, total 109 |
//! | any other rest | the total is left out | – |
//! | a detail exceeds its whole | cut to the whole: cached before written, reasoning before audio | Grok on Azure Foundry: cached 387 of 298; OpenRouter: cached and written both near the prompt |
//!
//! If several sets of details explain the rest, the one that is cheapest for the caller is taken; a set above
//! the context or the bound explains none, and the total is left out if there is no other. Audio may be cached
//! or reasoning, too: such a token is metered once, as cached or reasoning, and that is no contradiction. The
//! wholes are judged last: a prompt above the context or an output above [`Meters::completion_max`] is not
//! accepted, and neither is a report without a count of both wholes.
//!
//! Never: a token in two meters, a charge that a total raises by more than the rest that a row names.

use super::{MeterKind, Meters, UsageReason, UsageReasons};
use crate::Micros;

/// Count as a provider sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReportedCount {
    /// Absent, or null.
    #[default]
    Missing,
    /// A whole number; one that does not fit is the largest.
    Count(u64),
    /// Negative, fractional or not a number.
    Unreadable,
}

impl ReportedCount {
    /// Reads a number as it is spelled, or a text: ASCII digits, with an optional `.0` at the end.
    #[must_use]
    pub fn parse(spelling: &str) -> Self {
        let digits = spelling.strip_suffix(".0").unwrap_or(spelling);
        if digits.is_empty() {
            return Self::Unreadable;
        }
        let mut count = 0_u64;
        for byte in digits.bytes() {
            if !byte.is_ascii_digit() {
                return Self::Unreadable;
            }
            // More digits than fit are a number all the same, and too large for any limit.
            let digit = u64::from(byte.saturating_sub(b'0'));
            count = count.saturating_mul(10).saturating_add(digit);
        }
        Self::Count(count)
    }

    /// The number, if there is one.
    #[must_use]
    pub const fn count(self) -> Option<u64> {
        match self {
            Self::Count(count) => Some(count),
            Self::Missing | Self::Unreadable => None,
        }
    }

    /// The number, 0 if there is none.
    #[must_use]
    pub fn or_zero(self) -> u64 {
        self.count().unwrap_or(0)
    }

    /// Sum with a further count, of which only a number adds anything.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        match (self, more) {
            (Self::Count(count), Self::Count(more)) => Self::Count(count.saturating_add(more)),
            (count, Self::Count(_) | Self::Missing | Self::Unreadable) => count,
        }
    }

    /// The count, or the other one if this has no number.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Missing, other) => other,
            (Self::Unreadable, Self::Count(count)) => Self::Count(count),
            (kept, _other) => kept,
        }
    }

    const fn is_unreadable(self) -> bool {
        matches!(self, Self::Unreadable)
    }
}

impl From<u64> for ReportedCount {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

/// Report of usage as a provider sent it, unchecked: its counts may contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageReport {
    /// Prompt tokens: with cached and written ones, as the provider's kind documents it.
    pub prompt: ReportedCount,
    /// Completion tokens: with reasoning, as the provider's kind documents it.
    pub completion: ReportedCount,
    /// Tokens in total.
    pub total: ReportedCount,
    /// Prompt tokens that were read from a cache.
    pub cached: ReportedCount,
    /// Prompt tokens that were written to a cache.
    pub written: ReportedCount,
    /// Prompt tokens of audio.
    pub audio_in: ReportedCount,
    /// Completion tokens of reasoning.
    pub reasoning: ReportedCount,
    /// Completion tokens of audio.
    pub audio_out: ReportedCount,
    /// True if the answer has text, calls or audio: an output of no tokens is then not accepted.
    pub has_content: bool,
}

/// Most that a run can have used up, from its request and its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageCeiling {
    /// Tokens of the model's context.
    pub context_tokens: u64,
    /// The request's own bound on output tokens, of all choices together.
    pub output_tokens: u64,
}

impl UsageCeiling {
    /// No ceiling but [`Meters::COUNT_MAX`].
    pub const NONE: Self =
        Self { context_tokens: Meters::COUNT_MAX, output_tokens: Meters::COUNT_MAX };
}

/// Meters of an accepted report, and what of them is not as reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedUsage {
    /// Disjoint meters.
    pub meters: Meters,
    /// Differences from the report.
    pub reasons: UsageReasons,
}

impl UsageReport {
    /// Report of a prompt and a completion without details.
    #[must_use]
    pub fn text(prompt: u64, completion: u64) -> Self {
        Self { prompt: prompt.into(), completion: completion.into(), ..Self::default() }
    }

    /// Disjoint meters of the report, at the reading that costs least.
    ///
    /// # Errors
    ///
    /// The [`UsageReason`] for which the report is not accepted.
    pub fn resolve(
        &self,
        ceiling: &UsageCeiling,
        cost: impl Fn(&Meters) -> Micros,
    ) -> Result<ResolvedUsage, UsageReason> {
        self.judge(ceiling, cost)
    }

    /// True if the report would be accepted, at any price.
    #[must_use]
    pub fn is_accepted(&self, ceiling: &UsageCeiling) -> bool {
        // Prices choose among readings, of which an accepted one always goes first.
        self.judge(ceiling, |_meters| Micros::ZERO).is_ok()
    }

    fn judge(
        &self,
        ceiling: &UsageCeiling,
        cost: impl Fn(&Meters) -> Micros,
    ) -> Result<ResolvedUsage, UsageReason> {
        let counts = self.counts()?;
        let details = [self.cached, self.written, self.audio_in, self.reasoning, self.audio_out];
        let reasons = UsageReasons::NONE
            .with_if(
                details.into_iter().any(ReportedCount::is_unreadable),
                UsageReason::PartUnreadable,
            )
            .with_if(self.total.is_unreadable(), UsageReason::TotalNotBelieved);
        let wholes = counts.prompt.saturating_add(counts.completion);
        let rest = self.total.or_zero().saturating_sub(wholes);
        let (reading, why) = match rest {
            0 => (Reading::of(&counts, Beside::NOTHING, 0), None),
            rest => counts.explain(rest, ceiling, cost),
        };
        if let Some(reason) = reading.rejection(ceiling) {
            return Err(reason);
        }
        if self.has_content && reading.completion == 0 {
            return Err(UsageReason::TextWithoutTokens);
        }
        let reasons = why.map_or(reasons, |why| reasons.with(why));
        let reasons = reasons.with_if(reading.is_cut, UsageReason::PartCut);
        // Below the ceiling there is none that is absurd, unless the ceiling is.
        let meters = reading.meters.ok_or(UsageReason::AboveOutput)?;
        Ok(ResolvedUsage { meters, reasons })
    }

    fn counts(&self) -> Result<Counts, UsageReason> {
        let wholes = [self.prompt, self.completion];
        if wholes.into_iter().any(ReportedCount::is_unreadable) {
            return Err(UsageReason::CountUnreadable);
        }
        let (Some(prompt), Some(completion)) = (self.prompt.count(), self.completion.count())
        else {
            return Err(UsageReason::CountMissing);
        };
        Ok(Counts {
            prompt,
            completion,
            cached: self.cached.or_zero(),
            written: self.written.or_zero(),
            audio_in: self.audio_in.or_zero(),
            reasoning: self.reasoning.or_zero(),
            audio_out: self.audio_out.or_zero(),
        })
    }
}

/// Numbers of a report that has both wholes.
struct Counts {
    prompt: u64,
    completion: u64,
    cached: u64,
    written: u64,
    audio_in: u64,
    reasoning: u64,
    audio_out: u64,
}

impl Counts {
    /// Reading of a report whose total leaves a rest.
    fn explain(
        &self,
        rest: u64,
        ceiling: &UsageCeiling,
        cost: impl Fn(&Meters) -> Micros,
    ) -> (Reading, Option<UsageReason>) {
        let is_exact = |beside: &Beside| beside.tokens(self) == rest;
        let exact = Beside::all().filter(is_exact);
        let readings = exact.map(|beside| Reading::of(self, beside, 0));
        // One that no run can have caused explains nothing: a total alone never rejects a report.
        let readings = readings.filter(|reading| reading.rejection(ceiling).is_none());
        let price = |reading: &Reading| reading.meters.as_ref().map_or(Micros::MAX, &cost);
        if let Some(least) = readings.min_by_key(price) {
            return (least, Some(UsageReason::BesideWhole));
        }
        let parts = Reading::of(self, Beside::NOTHING, 0);
        let is_explained = Beside::all().any(|beside| is_exact(&beside));
        let is_within = self.completion.saturating_add(rest) <= ceiling.output_tokens;
        if is_within && !parts.is_cut && !is_explained {
            return (Reading::of(self, Beside::NOTHING, rest), Some(UsageReason::RestIsOutput));
        }
        (parts, Some(UsageReason::TotalNotBelieved))
    }
}

/// Details that stand beside their whole in a reading.
#[derive(Debug, Clone, Copy)]
struct Beside(PromptSide, CompletionSide);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptSide {
    Nothing,
    Cached,
    Written,
    CachedAndWritten,
    Audio,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompletionSide {
    Nothing,
    Reasoning,
    Audio,
}

impl Beside {
    const NOTHING: Self = Self(PromptSide::Nothing, CompletionSide::Nothing);

    /// Every pair of sides: a rest above zero is never the first one's.
    fn all() -> impl Iterator<Item = Self> {
        let prompt = [
            PromptSide::Nothing,
            PromptSide::Cached,
            PromptSide::Written,
            PromptSide::CachedAndWritten,
            PromptSide::Audio,
        ];
        let completion =
            [CompletionSide::Nothing, CompletionSide::Reasoning, CompletionSide::Audio];
        prompt.into_iter().flat_map(move |of| completion.map(|beside| Self(of, beside)))
    }

    fn tokens(self, counts: &Counts) -> u64 {
        self.0.tokens(counts).saturating_add(self.1.tokens(counts))
    }
}

impl PromptSide {
    const fn tokens(self, counts: &Counts) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Cached => counts.cached,
            Self::Written => counts.written,
            Self::CachedAndWritten => counts.cached.saturating_add(counts.written),
            Self::Audio => counts.audio_in,
        }
    }

    /// Written tokens that are no part of the prompt, so that cached ones never take their place.
    const fn written(self, counts: &Counts) -> u64 {
        match self {
            Self::Written | Self::CachedAndWritten => counts.written,
            Self::Nothing | Self::Cached | Self::Audio => 0,
        }
    }
}

impl CompletionSide {
    const fn tokens(self, counts: &Counts) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Reasoning => counts.reasoning,
            Self::Audio => counts.audio_out,
        }
    }
}

/// A way to read a report.
struct Reading {
    prompt: u64,
    completion: u64,
    /// Disjoint; `None` if one is absurd.
    meters: Option<Meters>,
    /// A detail exceeded its whole.
    is_cut: bool,
}

impl Reading {
    fn of(counts: &Counts, beside: Beside, rest: u64) -> Self {
        let Beside(prompt_side, completion_side) = beside;
        let prompt = counts.prompt.saturating_add(prompt_side.tokens(counts));
        let completion = counts.completion.saturating_add(completion_side.tokens(counts));
        // Each detail is cut to what its whole has left: meters are disjoint, and add up to the
        // wholes.
        let cached = counts.cached.min(prompt.saturating_sub(prompt_side.written(counts)));
        let written = counts.written.min(prompt.saturating_sub(cached));
        let read_anew = prompt.saturating_sub(cached).saturating_sub(written);
        let audio_in = counts.audio_in.min(read_anew);
        let reasoning = counts.reasoning.min(completion);
        let visible = completion.saturating_sub(reasoning);
        let audio_out = counts.audio_out.min(visible);
        let meters = Meters::from_fn(|kind| match kind {
            MeterKind::Input => read_anew.saturating_sub(audio_in),
            MeterKind::CachedInput => cached,
            MeterKind::CacheWrite => written,
            MeterKind::AudioInput => audio_in,
            // The rest is of no detail.
            MeterKind::Output => visible.saturating_sub(audio_out).saturating_add(rest),
            MeterKind::Reasoning => reasoning,
            MeterKind::AudioOutput => audio_out,
            MeterKind::Request => 1,
            // Providers do not count images: the request's own count is added where a run is metered.
            MeterKind::Image => 0,
        })
        .ok();
        let is_cut = cached < counts.cached
            || written < counts.written
            // Audio is held against its whole only: what is cached or reasoning, too, is no contradiction.
            || counts.audio_in > prompt
            || counts.reasoning > completion
            || counts.audio_out > completion;
        Self { prompt, completion: completion.saturating_add(rest), meters, is_cut }
    }

    /// Reason for which no run can have used up so much.
    fn rejection(&self, ceiling: &UsageCeiling) -> Option<UsageReason> {
        if self.prompt > ceiling.context_tokens {
            return Some(UsageReason::AboveContext);
        }
        let completion_max = Meters::completion_max(ceiling.output_tokens);
        (self.completion > completion_max).then_some(UsageReason::AboveOutput)
    }
}

/// Report that counts, of those that one answer brought so far.
#[derive(Debug, Clone, Copy)]
pub struct LatestUsage {
    ceiling: UsageCeiling,
    report: Option<UsageReport>,
}

impl LatestUsage {
    /// Before the first report.
    #[must_use]
    pub const fn new(ceiling: UsageCeiling) -> Self {
        Self { ceiling, report: None }
    }

    /// Takes a further report. It replaces the one before if it is accepted, its completion is not
    /// smaller and its prompt not zero; counts that it lacks stay while both wholes are equal.
    pub fn take(&mut self, later: UsageReport) {
        let Some(earlier) = self.report else {
            self.report = Some(later);
            return;
        };
        // An absurd report replaces none: the last one that was believed is the better count.
        if !later.is_accepted(&self.ceiling) {
            return;
        }
        if !earlier.is_accepted(&self.ceiling) {
            self.report = Some(later);
            return;
        }
        let is_smaller = later.completion.or_zero() < earlier.completion.or_zero();
        let is_emptied = later.prompt.or_zero() == 0 && earlier.prompt.or_zero() > 0;
        if is_smaller || is_emptied {
            return;
        }
        let is_same = (later.prompt, later.completion) == (earlier.prompt, earlier.completion);
        self.report = Some(if is_same { later.completed_by(&earlier) } else { later });
    }

    /// The report that counts, for an answer that has content or none.
    #[must_use]
    pub fn end(&self, has_content: bool) -> Option<UsageReport> {
        self.report.map(|report| UsageReport { has_content, ..report })
    }
}

impl UsageReport {
    /// The report, with the counts that it lacks from an earlier one of the same wholes.
    const fn completed_by(self, earlier: &Self) -> Self {
        Self {
            prompt: self.prompt,
            completion: self.completion,
            total: self.total.or(earlier.total),
            cached: self.cached.or(earlier.cached),
            written: self.written.or(earlier.written),
            audio_in: self.audio_in.or(earlier.audio_in),
            reasoning: self.reasoning.or(earlier.reasoning),
            audio_out: self.audio_out.or(earlier.audio_out),
            has_content: self.has_content,
        }
    }
}
