//! Reader of a provider's stream: one chunk in, one delta out, and a verdict at the end.
//!
//! Leniency, as with a completion: unknown members are ignored, and what nobody needs may be
//! missing. Dialects that are read: Groq's `x_groq` (usage and errors), Moonshot's usage inside the
//! choice, a `message` that repeats everything at the end, a missing `index` where one choice was
//! asked for.
//!
//! Strictness, because a truncated answer must not pass for a whole one. A stream ends well only
//! when:
//!
//! 1. every choice from 0 to `n - 1` has been seen;
//! 2. every choice has a `finish_reason`;
//! 3. a `finish_reason` that promises calls is kept, and every call has a name.
//!
//! Anything else is an [`UnreadableReason`], whatever was said before: the model may have run.
//! A stream that breaks after the last of those ends lacks at most its usage.

use std::collections::BTreeMap;

use holdfast_domain::answer::{
    Audio, ChoiceDelta, Delta, FinishReason, FunctionCallDelta, PredictionTokens,
};
use holdfast_domain::ports::UnreadableReason;
use holdfast_domain::request::Opaque;
use holdfast_domain::usage::Meters;

use super::answer::service_tier;
use super::calls::{self, Calls};
use super::{choice, moderation, passthrough, usage};
use crate::json::{self, Node};

/// Choices in one chunk, at most: each is rendered by itself, so that they bound what a chunk
/// costs.
pub const CHOICES_MAX: usize = 128;

/// Puts the chunks of one answer in relation to each other.
pub struct ChunkReader {
    n: u32,
    choices: BTreeMap<u32, ChoiceState>,
    /// Choices that have ended.
    n_ended: u32,
    /// Meters of the newest usage report, which replaces those before it.
    /// `None` before the first one, and where the newest cannot be believed.
    meters: Option<Meters>,
}

/// State of one choice: enough to tell news from repetition, and never the text of the answer.
#[derive(Default)]
struct ChoiceState {
    calls: Calls,
    n_annotations: usize,
    function: Option<String>,
    has_content: bool,
    finish: Option<FinishReason>,
}

impl std::fmt::Debug for ChunkReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChunkReader({} of {} choices)", self.choices.len(), self.n)
    }
}

impl ChunkReader {
    /// Reader of an answer with `n` choices, before its first chunk.
    #[must_use]
    pub const fn new(n: u32) -> Self {
        Self { n, choices: BTreeMap::new(), n_ended: 0, meters: None }
    }

    /// Reads the `data` of one event, and returns what it adds; `None` where that is nothing.
    ///
    /// # Errors
    ///
    /// An [`UnreadableReason`]: the answer is broken, and the model may have run.
    pub fn read(&mut self, data: &[u8]) -> Result<Option<Delta>, UnreadableReason> {
        let chunk = json::parse_answer(data)?;
        // Groq has a place of its own for what others have at the top.
        let own = chunk.get("x_groq");
        if chunk.get("error").or_else(|| own?.get("error")).is_some() {
            return Err(UnreadableReason::Error);
        }
        let choices = match chunk.get("choices") {
            None => &[][..],
            Some(choices) => choices.as_array().ok_or(UnreadableReason::Choices("choices"))?,
        };
        // More than can be asked for: each would be rendered, and its reader would pay for that in memory.
        if choices.len() > CHOICES_MAX {
            return Err(UnreadableReason::Choices("choices"));
        }
        // Moonshot tells it with the only choice.
        let with_choice = || choices.first().filter(|_| self.n == 1)?.get("usage");
        let report = chunk.get("usage").or_else(|| own?.get("usage")).or_else(with_choice);
        if let Some(report) = report {
            self.meters = usage::read(report);
        }
        let gained = choices.iter().filter_map(|choice| self.choice(choice).transpose());
        let delta = Delta {
            choices: gained.collect::<Result<_, _>>()?,
            service_tier: chunk.get("service_tier").and_then(service_tier),
            predicted: report
                .and_then(usage::predicted)
                // Zeros are what most report who were given no prediction: no news, and no event for callers.
                .filter(|it| *it != PredictionTokens::default()),
            moderation: chunk.get("moderation").and_then(moderation::read),
        };
        // Events that only repeat the role, or say nothing, are common: nobody has to be told of them.
        Ok((delta != Delta::default()).then_some(delta))
    }

    /// True once every choice has ended: what is missing of the stream then is at most its usage.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.n_ended == self.n
    }

    /// The end of the stream: what was reported to have been used up, where that can be believed.
    ///
    /// # Errors
    ///
    /// An [`UnreadableReason`] where the answer is not whole.
    pub fn end(&self) -> Result<Option<Meters>, UnreadableReason> {
        // The keys are sorted: this compares which choices there are with those that were asked for.
        if !(0..self.n).eq(self.choices.keys().copied()) {
            return Err(UnreadableReason::Choices("choices"));
        }
        if !self.is_complete() {
            return Err(UnreadableReason::Finish("choices[].finish_reason"));
        }
        let said = self.choices.values();
        if !said.clone().all(ChoiceState::has_promised_calls) {
            return Err(UnreadableReason::ToolCalls("choices[].delta.tool_calls"));
        }
        // Text that cost no token is not believed.
        let is_silent = !said.clone().any(|choice| choice.has_content);
        Ok(self.meters.filter(|meters| is_silent || meters.completion_tokens() > 0))
    }

    /// Gain of one choice; `None` where the chunk repeats or says nothing.
    fn choice(&mut self, choice: &Node<'_>) -> Result<Option<ChoiceDelta>, UnreadableReason> {
        // With several choices a missing index would be a guess at whose text it is.
        let index = match choice.get("index") {
            Some(index) => index.as_number().and_then(|index| index.parse().ok()),
            None => (self.n == 1).then_some(0),
        };
        // A choice beyond those that were asked for is refused here, so that at most `n` states are kept.
        let index = index.filter(|index| *index < self.n);
        let index = index.ok_or(UnreadableReason::Choices("choices[].index"))?;
        let known = self.choices.entry(index).or_default();
        // Some say all of it again at the end: that is news only where nothing was said before.
        let whole = choice.get("message").filter(|_| !known.has_content);
        let mut gained = match choice.get("delta").or(whole) {
            Some(delta @ Node::Object(_)) => known.read_delta(delta)?,
            Some(_) => return Err(UnreadableReason::Choices("choices[].delta")),
            None => ChoiceDelta::default(),
        };
        gained.index = index;
        gained.logprobs = choice.get("logprobs").map(passthrough::logprobs);
        gained.finish = match choice.get("finish_reason").and_then(Node::as_str) {
            // Some servers send an empty reason with every chunk before the last.
            None | Some("") => None,
            Some(reason) => {
                let finish = choice::finish(Some(reason))?;
                // The first reason holds: a later one, whatever it says, repeats the first.
                self.n_ended = self.n_ended.saturating_add(u32::from(known.finish.is_none()));
                Some(*known.finish.get_or_insert(finish))
            }
        };
        let nothing = ChoiceDelta { index, ..ChoiceDelta::default() };
        Ok((gained != nothing).then_some(gained))
    }
}

impl ChoiceState {
    fn read_delta(&mut self, delta: &Node<'_>) -> Result<ChoiceDelta, UnreadableReason> {
        let reasoning = delta.get("reasoning_content").or_else(|| delta.get("reasoning"));
        let reasoning = reasoning.and_then(Node::as_str).filter(|text| !text.is_empty());
        let gained = ChoiceDelta {
            content: choice::text(delta.get("content"), "choices[].delta.content")?,
            refusal: choice::text(delta.get("refusal"), "choices[].delta.refusal")?,
            reasoning: reasoning.map(str::to_owned),
            tool_calls: self.calls.read_deltas(delta)?,
            function_call: delta
                .get("function_call")
                .map(|call| self.function_call(call))
                .transpose()?
                .flatten(),
            annotations: self.annotations(delta.get("annotations")),
            audio: delta.get("audio").map(audio),
            ..ChoiceDelta::default()
        };
        let texts = [&gained.content, &gained.refusal, &gained.reasoning];
        self.has_content |= texts.into_iter().flatten().any(|text| !text.is_empty())
            || !gained.tool_calls.is_empty()
            || gained.function_call.is_some()
            || gained.audio.is_some();
        Ok(gained)
    }

    /// Sources, as many as are passed on of a choice.
    fn annotations(&mut self, nodes: Option<&Node<'_>>) -> Vec<Opaque> {
        let mut annotations = passthrough::annotations(nodes);
        // The limit is the choice's: else each chunk could bring as many again.
        annotations.truncate(passthrough::ANNOTATIONS_MAX.saturating_sub(self.n_annotations));
        self.n_annotations = self.n_annotations.saturating_add(annotations.len());
        annotations
    }

    /// Gain of the call in the older form. A name that comes with every piece is passed on once.
    fn function_call(
        &mut self,
        call: &Node<'_>,
    ) -> Result<Option<FunctionCallDelta>, UnreadableReason> {
        let name = call.get("name").and_then(Node::as_str);
        let is_known = self.function.is_some();
        let known = self.function.get_or_insert_default();
        let name = name.filter(|name| !name.is_empty() && *name != known).map(str::to_owned);
        known.push_str(name.as_deref().unwrap_or_default());
        let field = "choices[].delta.function_call.arguments";
        let arguments = calls::input_text(call.get("arguments"), field)?;
        let arguments = Some(arguments).filter(|text| !text.is_empty());
        let is_news = !is_known || name.is_some() || arguments.is_some();
        Ok(is_news.then_some(FunctionCallDelta { name, arguments }))
    }

    /// True when every call has a name, and a `finish_reason` that promises calls has some: a
    /// caller that reads `tool_calls` there looks for them.
    fn has_promised_calls(&self) -> bool {
        let is_promised = match self.finish {
            Some(FinishReason::ToolCalls) => !self.calls.is_empty(),
            Some(FinishReason::FunctionCall) => self.function.is_some(),
            Some(FinishReason::Stop | FinishReason::Length | FinishReason::ContentFilter)
            | None => true,
        };
        let named = self.function.as_ref().is_none_or(|name| !name.is_empty());
        is_promised && named && !self.calls.has_nameless()
    }
}

/// Audio of one piece: base64 data and transcript that are appended, and its expiry, 0 if unknown.
fn audio(audio: &Node<'_>) -> Audio {
    let text = |name| audio.get(name).and_then(Node::as_str).unwrap_or_default().to_owned();
    let expires_at = audio.get("expires_at").and_then(Node::as_number);
    Audio {
        data: text("data"),
        transcript: text("transcript"),
        expires_at: expires_at.and_then(|at| at.parse().ok()).unwrap_or_default(),
    }
}
