//! Reader of a provider's stream: one chunk in, one delta out, and a verdict at the end.
//!
//! Leniency, as with a completion: unknown members are ignored, and unused ones may be missing. Dialects that
//! are read: Groq's `x_groq` (usage and errors), Moonshot's usage inside the choice, a `message` that repeats
//! everything at the end, a missing `index` if one choice was requested.
//!
//! The content of a choice is read by the reader of a whole answer's choices. The end is stricter, because a
//! truncated answer must not pass for a whole one. A stream ends well only when:
//!
//! 1. every choice from 0 to `n - 1` has been seen;
//! 2. every choice has a `finish_reason`;
//! 3. a `finish_reason` that promises calls is kept or comes next to text, and every call has a name and
//!    whole arguments.
//!
//! Any other end is an [`UnreadableReason`], also after content: the model may have run. A stream that breaks
//! after the last of those ends lacks at most its usage.

use std::collections::BTreeMap;

use holdfast_domain::answer::{ChoiceDelta, Delta, PredictionTokens};
use holdfast_domain::debug_as;
use holdfast_domain::ports::UnreadableReason;
use holdfast_domain::usage::{LatestUsage, UsageCeiling, UsageReport};

use super::answer::service_tier;
use super::choice::{self, ChoiceState, DELTA, MESSAGE};
use super::context::AnswerContext;
use super::members::{has_error, index, list, object};
use super::moderation;
use super::usage::{self, UsageBlock};
use crate::json::{self, Node};

/// Choices in one chunk, at most: each is rendered by itself, so that they bound what a chunk
/// costs.
pub const CHOICES_MAX: usize = 128;

/// Puts the chunks of one answer in relation to each other.
pub struct ChunkReader {
    context: AnswerContext,
    choices: BTreeMap<u32, ChoiceState>,
    /// Choices that have ended.
    n_ended: u32,
    /// Usage report that counts, of those so far.
    usage: LatestUsage,
}

debug_as!(ChunkReader as it: "ChunkReader({} of {} choices)", it.choices.len(), it.context.n);

impl ChunkReader {
    /// Reader of an answer with `n` choices to a request without tools, before its first chunk.
    #[must_use]
    pub const fn new(n: u32) -> Self {
        Self::in_context(AnswerContext::of_choices(n), UsageCeiling::NONE)
    }

    /// Reader of an answer before its first chunk. The run cannot have used up more than `ceiling`: a
    /// later report above it never replaces one below it.
    #[must_use]
    pub const fn in_context(context: AnswerContext, ceiling: UsageCeiling) -> Self {
        let usage = LatestUsage::new(ceiling);
        Self { context, choices: BTreeMap::new(), n_ended: 0, usage }
    }

    /// Reads the `data` of one event, and returns its addition; `None` if that is empty.
    ///
    /// # Errors
    ///
    /// An [`UnreadableReason`]: the answer is broken, and the model may have run.
    pub fn read(&mut self, data: &[u8]) -> Result<Option<Delta>, UnreadableReason> {
        let chunk = json::parse_answer(data)?;
        // Groq has a place of its own for what others have at the top.
        let own = chunk.get("x_groq");
        if has_error(&chunk) || own.is_some_and(has_error) {
            return Err(UnreadableReason::Error);
        }
        let choices = list(chunk.get("choices"));
        let choices = choices.ok_or(UnreadableReason::Choices("choices"))?;
        // More than can be asked for: each would be rendered, and its reader would pay for that in memory.
        if choices.len() > CHOICES_MAX {
            return Err(UnreadableReason::Choices("choices"));
        }
        let mut predicted = None;
        for block in usage::reports(&chunk, choices, self.context.n).map(UsageBlock::read) {
            self.usage.take(block.report);
            predicted = predicted.or(block.predicted);
        }
        let gained = choices.iter().filter_map(|choice| self.choice(choice).transpose());
        let delta = Delta {
            choices: gained.collect::<Result<_, _>>()?,
            service_tier: chunk.get("service_tier").and_then(service_tier),
            // Zeros are what most report who were given no prediction: no news, and no event for callers.
            predicted: predicted.filter(|it| *it != PredictionTokens::default()),
            moderation: chunk.get("moderation").and_then(moderation::read),
        };
        // Events that only repeat the role, or say nothing, are common: nobody has to be told of them.
        Ok((delta != Delta::default()).then_some(delta))
    }

    /// True once every choice has ended: what is missing of the stream then is at most its usage.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.n_ended == self.context.n
    }

    /// The end of the stream: its usage as reported, unchecked.
    ///
    /// # Errors
    ///
    /// An [`UnreadableReason`] if the answer is not whole.
    pub fn end(&self) -> Result<Option<UsageReport>, UnreadableReason> {
        // The keys are sorted: this compares which choices there are with those that were asked for.
        if !(0..self.context.n).eq(self.choices.keys().copied()) {
            return Err(UnreadableReason::Choices("choices"));
        }
        if !self.is_complete() {
            return Err(UnreadableReason::Finish("choices[].finish_reason"));
        }
        let choices = self.choices.values();
        for choice in choices.clone() {
            choice.check("choices[].delta.tool_calls", &DELTA)?;
        }
        Ok(self.usage.end(choices.clone().any(|choice| choice.has_content())))
    }

    /// Gain of one choice; `None` if the chunk only repeats or is empty.
    fn choice(&mut self, choice: &Node<'_>) -> Result<Option<ChoiceDelta>, UnreadableReason> {
        const FIELD: UnreadableReason = UnreadableReason::Choices("choices[].index");
        let Some(choice) = object(Some(choice)).ok_or(FIELD)? else { return Ok(None) };
        let AnswerContext { n, tools, words } = &self.context;
        let index = index(choice.get("index")).ok_or(FIELD)?;
        // With several choices a missing index would be a guess at whose text it is.
        let index = index.or((*n == 1).then_some(0));
        // A choice beyond those that were asked for is refused here, so that at most `n` states are kept.
        let index = index.filter(|index| index < n).ok_or(FIELD)?;
        let known = self.choices.entry(index).or_default();
        let delta = object(choice.get("delta"));
        let mut gained = match delta.ok_or(UnreadableReason::Choices("choices[].delta"))? {
            Some(delta) => known.read(delta, tools, &DELTA)?,
            // Some say all of it again at the end: that is news only where nothing was said before.
            None if known.has_content() => ChoiceDelta::default(),
            None => match object(choice.get("message")) {
                Some(Some(message)) => known.read(message, tools, &MESSAGE)?,
                Some(None) => ChoiceDelta::default(),
                None => return Err(UnreadableReason::Choices("choices[].message")),
            },
        };
        // A message that repeats the answer may be the only place of a text or a call: none is left out.
        if choice.get("message").is_some_and(|message| known.lacks_part_of(message)) {
            return Err(UnreadableReason::Choices("choices[].message"));
        }
        gained.index = index;
        gained.logprobs = choice::logprobs(choice.get("logprobs"));
        if let Some(finish) = words.read(choice.get("finish_reason"))? {
            self.n_ended = self.n_ended.saturating_add(u32::from(known.finish().is_none()));
            known.end(finish, &mut gained);
        }
        let nothing = ChoiceDelta { index, ..ChoiceDelta::default() };
        Ok((gained != nothing).then_some(gained))
    }
}
