//! Answers of a model, as they arrive and when they are whole. No part of the provider is in them: not its ids,
//! not its name.
//!
//! ```text
//! Delta, Delta, … ─▶ Answer::append ─▶ is_complete ─▶ sealed and stored
//!                                  └─▶ a bound of ours: end_open_choices, then the same
//! ```
//!
//! Each delta is sent to callers as it comes and appended to the [`Answer`], so a replay equals the stream.
//! Anything less than every choice with its end is a broken answer, which is never passed off as a whole one:
//! only a bound of the gateway or a cancel may end open choices, as `length`.
//!
//! # Example
//!
//! ```
//! use holdfast_domain::answer::{Answer, ChoiceDelta, Delta, FinishReason};
//!
//! let mut answer = Answer::default();
//! let hello = ChoiceDelta { content: Some("Hello".into()), ..ChoiceDelta::default() };
//! answer.append(Delta { choices: vec![hello], ..Delta::default() });
//! assert!(!answer.is_complete(1), "its only choice has no end");
//!
//! // A bound of the gateway ends it.
//! answer.end_open_choices(1);
//! let (_index, choice) = answer.choices().next().unwrap();
//! assert_eq!(choice.content.as_deref(), Some("Hello"));
//! assert_eq!(choice.finish, Some(FinishReason::Length));
//! ```

mod debug;

use std::collections::BTreeMap;

use crate::request::{Opaque, Request, ServiceTier, ToolKind};
use crate::state::{CallStates, Origin, ProviderState};

/// Reason why a choice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// By itself or at a stop sequence.
    Stop,
    /// At a bound of the request, the model or the gateway.
    Length,
    /// The provider's filter cut it.
    ContentFilter,
    /// Calls of tools.
    ToolCalls,
    /// Call of a function, in the older form.
    FunctionCall,
}

impl FinishReason {
    /// True if a bound or a filter ended the choice: its last call may lack arguments.
    #[must_use]
    pub const fn is_cut(self) -> bool {
        match self {
            Self::Length | Self::ContentFilter => true,
            Self::Stop | Self::ToolCalls | Self::FunctionCall => false,
        }
    }
}

/// Piece of an answer. An answer that arrives whole is one delta.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delta {
    /// Gains of its choices.
    pub choices: Vec<ChoiceDelta>,
    /// Tier that serves it, if the provider reports one.
    pub service_tier: Option<ServiceTier>,
    /// Fate of a predicted text, if the provider reports it.
    pub predicted: Option<PredictionTokens>,
    /// Findings of a moderation of prompt and answer.
    pub moderation: Option<Opaque>,
}

impl From<Vec<ChoiceDelta>> for Delta {
    fn from(choices: Vec<ChoiceDelta>) -> Self {
        Self { choices, ..Self::default() }
    }
}

impl Delta {
    /// Drops the fields that its request did not include: the service of the operator's account is the
    /// operator's own matter.
    pub fn retain_requested(&mut self, request: &Request) {
        self.service_tier = request.service_tier.and(self.service_tier);
        self.moderation = request.moderation.as_ref().and(self.moderation.take());
        if !request.logprobs {
            self.choices.iter_mut().for_each(|choice| choice.logprobs = None);
        }
    }
}

/// Tokens of a predicted text, by whether they became part of the answer. Both are completion tokens: reported,
/// and never metered apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PredictionTokens {
    /// Tokens that became part of it.
    pub accepted: u64,
    /// Tokens that did not.
    pub rejected: u64,
}

/// Gain of a choice.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ChoiceDelta {
    /// Number of the choice, from zero.
    pub index: u32,
    /// More text.
    pub content: Option<String>,
    /// More of a refusal.
    pub refusal: Option<String>,
    /// More of its reasoning, if the provider sends it.
    pub reasoning: Option<String>,
    /// More of its tool calls, each at most once.
    pub tool_calls: Vec<ToolCallDelta>,
    /// More of its function call, in the older form.
    pub function_call: Option<FunctionCallDelta>,
    /// Likelihoods of more of its tokens.
    pub logprobs: Option<Logprobs>,
    /// More sources, each as the provider gives it.
    pub annotations: Vec<Opaque>,
    /// More of what it spoke.
    pub audio: Option<Audio>,
    /// Reason of its end, if it ends.
    pub finish: Option<FinishReason>,
}

/// Gain of a tool call. Its first piece names the tool.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ToolCallDelta {
    /// Number of the call in its choice, from zero in the order in which they begin.
    pub index: u32,
    /// Sort of the tool.
    pub kind: Option<ToolKind>,
    /// More of the tool's name: all of it, as a rule.
    pub name: Option<String>,
    /// More of the `arguments` or the `input`.
    pub input: Option<String>,
    /// State that the provider requires with the call's result.
    pub state: Option<ProviderState>,
}

/// Gain of a function call in the older form.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct FunctionCallDelta {
    /// More of the function's name: all of it, as a rule.
    pub name: Option<String>,
    /// More of the arguments.
    pub arguments: Option<String>,
}

/// Likelihoods of tokens, each as the provider gives it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Logprobs {
    /// Likelihoods of the text's tokens.
    pub content: Option<Vec<Opaque>>,
    /// Likelihoods of the refusal's tokens.
    pub refusal: Option<Vec<Opaque>>,
}

/// Speech.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Audio {
    /// Base64.
    pub data: String,
    /// Words that were spoken.
    pub transcript: String,
    /// Moment until which the provider keeps it, in seconds since 1970.
    pub expires_at: i64,
}

/// Answer put together from its deltas.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// In boxes: a map has room for eleven from its first one on, and most answers have one.
    choices: BTreeMap<u32, Box<Choice>>,
    /// Tier that served it, if the provider reported one.
    pub service_tier: Option<ServiceTier>,
    /// Fate of a predicted text.
    pub predicted: PredictionTokens,
    /// Findings of a moderation of prompt and answer.
    pub moderation: Option<Opaque>,
}

/// Choice of an answer.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// The text, if there was any.
    pub content: Option<String>,
    /// The refusal, if there was one.
    pub refusal: Option<String>,
    /// Thoughts of the model, if the provider sends them.
    pub reasoning: Option<String>,
    /// Tool calls by their number.
    pub tool_calls: BTreeMap<u32, ToolCall>,
    /// Function call, in the older form.
    pub function_call: Option<FunctionCall>,
    /// Likelihoods of its tokens.
    pub logprobs: Option<Logprobs>,
    /// Sources, each as the provider gives it.
    pub annotations: Vec<Opaque>,
    /// Speech.
    pub audio: Option<Audio>,
    /// Reason of its end; `None` while it has not ended.
    pub finish: Option<FinishReason>,
}

/// Tool call. Callers get an id of ours for it.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Sort of the tool.
    pub kind: ToolKind,
    /// Name of the tool.
    pub name: String,
    /// A function's `arguments` or a custom tool's `input`.
    pub input: String,
    /// State that the provider requires with the call's result. Callers never get it.
    pub state: Option<ProviderState>,
}

/// A function call in the older form.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct FunctionCall {
    /// Name of the function.
    pub name: String,
    /// Arguments, as text.
    pub arguments: String,
}

impl Answer {
    /// Adds what arrived.
    pub fn append(&mut self, delta: Delta) {
        for gained in delta.choices {
            self.choices.entry(gained.index).or_default().append(gained);
        }
        // The last word wins; a delta without one says nothing about it.
        self.service_tier = delta.service_tier.or(self.service_tier);
        self.predicted = delta.predicted.unwrap_or(self.predicted);
        self.moderation = delta.moderation.or(self.moderation.take());
    }

    /// Drops the fields that its request did not include: the service of the operator's account is the
    /// operator's own matter.
    pub fn retain_requested(&mut self, request: &Request) {
        self.service_tier = request.service_tier.and(self.service_tier);
        self.moderation = request.moderation.as_ref().and(self.moderation.take());
        if !request.logprobs {
            self.choices.values_mut().for_each(|choice| choice.logprobs = None);
        }
    }

    /// True if every one of `n` choices is there and has ended: anything less is a broken answer.
    #[must_use]
    pub fn is_complete(&self, n: u32) -> bool {
        // The keys are sorted: exactly 0 to n − 1, none missing and none beyond.
        (0..n).eq(self.choices.keys().copied())
            && self.choices.values().all(|choice| choice.finish.is_some())
    }

    /// True if no part of it has arrived: a choice that was opened without a word is still empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.choices.values().any(|choice| choice.has_content())
    }

    /// Ends every open one of `n` choices with `length`, as a bound of the gateway does.
    pub fn end_open_choices(&mut self, n: u32) {
        for index in 0..n {
            let choice = self.choices.entry(index).or_default();
            let finish = choice.finish.get_or_insert(FinishReason::Length);
            // An end with calls that has none was cut before it called: `length` as well.
            let calls_nobody = match finish {
                FinishReason::ToolCalls => choice.tool_calls.is_empty(),
                FinishReason::FunctionCall => choice.function_call.is_none(),
                FinishReason::Stop | FinishReason::Length | FinishReason::ContentFilter => false,
            };
            if calls_nobody {
                *finish = FinishReason::Length;
            }
        }
    }

    /// The choices in their order, each with its index.
    pub fn choices(&self) -> impl Iterator<Item = (u32, &Choice)> {
        self.choices.iter().map(|(index, choice)| (*index, &**choice))
    }

    /// States that came with its calls, from there; `None` if it has none.
    #[must_use]
    pub fn call_states(&self, origin: Origin) -> Option<CallStates> {
        let calls = self.choices().flat_map(|(choice, Choice { tool_calls, .. })| {
            tool_calls.iter().map(move |(call, said)| ([choice, *call], said))
        });
        let states: BTreeMap<_, _> =
            calls.filter_map(|(at, call)| Some((at, call.state.clone()?))).collect();
        // None rather than empty: the answer is then sealed in the layout without states.
        (!states.is_empty()).then_some(CallStates { origin, states })
    }

    /// UTF-8 bytes of the model's whole output: the basis of an estimate. Of speech, the words.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        self.choices.values().flat_map(|choice| choice.texts()).fold(0_u64, |sum, text| {
            sum.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX))
        })
    }
}

impl Delta {
    /// True if the delta has content: the opening of a choice without a word has none.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.choices.iter().any(ChoiceDelta::has_content)
    }
}

impl ChoiceDelta {
    fn has_content(&self) -> bool {
        let texts = [&self.content, &self.refusal, &self.reasoning];
        let audio = self.audio.as_ref();
        texts.into_iter().flatten().any(|text| !text.is_empty())
            || !self.tool_calls.is_empty()
            || self.function_call.is_some()
            || !self.annotations.is_empty()
            || audio.is_some_and(|audio| !audio.data.is_empty() || !audio.transcript.is_empty())
            // An end without a word is an answer: the model had nothing to say.
            || self.finish.is_some()
    }
}

impl Choice {
    fn has_content(&self) -> bool {
        self.texts().any(|text| !text.is_empty())
            || !self.annotations.is_empty()
            || self.audio.as_ref().is_some_and(|audio| !audio.data.is_empty())
            || self.finish.is_some()
    }

    fn append(&mut self, gained: ChoiceDelta) {
        append(&mut self.content, gained.content);
        append(&mut self.refusal, gained.refusal);
        append(&mut self.reasoning, gained.reasoning);
        for piece in gained.tool_calls {
            let call = self.tool_calls.entry(piece.index).or_insert_with(|| ToolCall {
                // A provider that names no sort means a function: others came later.
                kind: ToolKind::Function,
                name: String::new(),
                input: String::new(),
                state: None,
            });
            call.kind = piece.kind.unwrap_or(call.kind);
            grow(&mut call.name, piece.name);
            grow(&mut call.input, piece.input);
            call.state = piece.state.or(call.state.take());
        }
        if let Some(piece) = gained.function_call {
            let call = self.function_call.get_or_insert_default();
            grow(&mut call.name, piece.name);
            grow(&mut call.arguments, piece.arguments);
        }
        if let Some(Logprobs { content, refusal }) = gained.logprobs {
            let logprobs = self.logprobs.get_or_insert_default();
            extend(&mut logprobs.content, content);
            extend(&mut logprobs.refusal, refusal);
        }
        gather(&mut self.annotations, gained.annotations);
        if let Some(Audio { data, transcript, expires_at }) = gained.audio {
            let audio = self.audio.get_or_insert_default();
            grow(&mut audio.data, Some(data));
            grow(&mut audio.transcript, Some(transcript));
            // Most pieces come without a moment, which is zero: none of them takes it back.
            audio.expires_at = audio.expires_at.max(expires_at);
        }
        // The first end stays: a second one would change what callers were told.
        self.finish = self.finish.or(gained.finish);
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        // Thoughts and calls among them: providers bill both as completion tokens.
        let written = [&self.content, &self.refusal, &self.reasoning];
        let tools = self.tool_calls.values().flat_map(|call| [&call.name, &call.input]);
        let function = self.function_call.iter().flat_map(|call| [&call.name, &call.arguments]);
        let spoken = self.audio.iter().map(|audio| &audio.transcript);
        let written = written.into_iter().flatten();
        written.chain(tools).chain(function).chain(spoken).map(String::as_str)
    }
}

fn append(to: &mut Option<String>, more: Option<String>) {
    match to {
        Some(text) => grow(text, more),
        None => *to = more,
    }
}

fn extend(to: &mut Option<Vec<Opaque>>, more: Option<Vec<Opaque>>) {
    if let Some(more) = more {
        gather(to.get_or_insert_default(), more);
    }
}

/// Text with more at its end. The first piece is taken over as it is: it may be all of a long
/// answer.
fn grow(to: &mut String, more: Option<String>) {
    match more {
        Some(more) if to.is_empty() => *to = more,
        Some(more) => to.push_str(&more),
        None => {}
    }
}

/// List with more at its end; the first piece is taken over as in [`grow`].
fn gather(to: &mut Vec<Opaque>, more: Vec<Opaque>) {
    if to.is_empty() {
        *to = more;
    } else {
        to.extend(more);
    }
}
