//! Rendering of a whole answer: OpenAI's chat completion, and in its usage the charge.
//!
//! * No word of the provider is in it: ids are derived from the operation's, the model is the requested public
//!   id, and the moment is that of the run's admission.
//! * The same view is the same bytes, so that a replay by any node equals the first answer.
//! * Members that OpenAI always sends are always there, null if they are empty; its optional ones are left out.
//!
//! `upstream::choice` reads these bodies again, when a stored one is replayed as a stream.

use holdfast_domain::answer::{
    self, Answer, Audio, Choice, FinishReason, FunctionCall, PredictionTokens, ToolCall,
};
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::request::{Opaque, ToolKind};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{OperationId, Timestamp};
use serde::{Serialize, Serializer};

use crate::render::{self, Raw};

/// Parts of a completion; everything in the body follows from them.
#[derive(Debug, Clone, Copy)]
pub struct CompletionView<'a> {
    /// The operation's id, from which those of the completion, its calls and its audio are derived.
    pub id: OperationId,
    /// Moment at which the run was admitted; rendered in whole seconds.
    pub created: Timestamp,
    /// Name of the model as the request that bound the key wrote it: its public id or an alias.
    pub model: &'a str,
    /// The whole output of the model. A choice that has not ended was cut: it ends with `length`.
    pub answer: &'a Answer,
    /// Meters of the run, and the charge that the caller pays.
    pub usage: &'a UsageRecord,
}

/// Renders the body of a completed answer. The same view is the same bytes.
#[must_use]
pub fn render(view: &CompletionView<'_>) -> Vec<u8> {
    render::to_bytes(&Completion {
        id: view.id.completion_id(),
        object: "chat.completion",
        created: view.created.as_seconds(),
        model: view.model,
        service_tier: view.answer.service_tier.map(|tier| tier.label()),
        choices: view.answer.choices().map(|choice| choice_of(view.id, choice)).collect(),
        usage: Usage::of(view.usage, view.answer.predicted),
        moderation: view.answer.moderation.as_ref().map(Json),
    })
}

#[derive(Serialize)]
// The order of members is part of the format: a stored answer and its replay are the same bytes.
struct Completion<'a> {
    id: String,
    object: &'static str,
    created: i64,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'static str>,
    choices: Vec<ChoiceFields<'a>>,
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    moderation: Option<Json<'a>>,
}

#[derive(Serialize)]
struct ChoiceFields<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: Option<Logprobs<'a>>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<&'a str>,
    refusal: Option<&'a str>,
    annotations: Vec<Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<AudioFields<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCallFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Function<'a>>,
}

#[derive(Serialize)]
pub(super) struct Logprobs<'a> {
    content: Option<Vec<Json<'a>>>,
    refusal: Option<Vec<Json<'a>>>,
}

impl<'a> Logprobs<'a> {
    pub(super) fn of(logprobs: &'a answer::Logprobs) -> Self {
        let each = |all: &'a Vec<Opaque>| all.iter().map(Json).collect();
        Self {
            content: logprobs.content.as_ref().map(each),
            refusal: logprobs.refusal.as_ref().map(each),
        }
    }
}

#[derive(Serialize)]
struct AudioFields<'a> {
    id: String,
    expires_at: i64,
    data: &'a str,
    transcript: &'a str,
}

#[derive(Serialize)]
struct ToolCallFields<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<Function<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom: Option<Custom<'a>>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct Custom<'a> {
    name: &'a str,
    input: &'a str,
}

/// Written as the provider wrote it.
pub(super) struct Json<'a>(pub(super) &'a Opaque);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Raw(self.0.as_str()).serialize(serializer)
    }
}

#[derive(Serialize)]
pub(super) struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
    customer_charge_micros: i64,
}

impl Usage {
    /// OpenAI's counts contain one another; ours are disjoint.
    pub(super) fn of(usage: &UsageRecord, predicted: PredictionTokens) -> Self {
        let meters = &usage.metered.meters;
        let (prompt, completion) = (meters.prompt_tokens(), meters.completion_tokens());
        Self {
            prompt_tokens: prompt,
            completion_tokens: completion,
            total_tokens: prompt.saturating_add(completion),
            prompt_tokens_details: PromptDetails {
                cached_tokens: meters.count(MeterKind::CachedInput),
                audio_tokens: meters.count(MeterKind::AudioInput),
                cache_write_tokens: meters.count(MeterKind::CacheWrite),
            },
            completion_tokens_details: CompletionDetails {
                reasoning_tokens: meters.count(MeterKind::Reasoning),
                audio_tokens: meters.count(MeterKind::AudioOutput),
                // Of an own count they may be more than there are.
                accepted_prediction_tokens: predicted.accepted.min(completion),
                rejected_prediction_tokens: predicted.rejected.min(completion),
            },
            customer_charge_micros: usage.charge.get(),
        }
    }
}

#[derive(Serialize)]
struct PromptDetails {
    cached_tokens: u64,
    audio_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Serialize)]
struct CompletionDetails {
    reasoning_tokens: u64,
    audio_tokens: u64,
    accepted_prediction_tokens: u64,
    rejected_prediction_tokens: u64,
}

fn choice_of(id: OperationId, (index, choice): (u32, &Choice)) -> ChoiceFields<'_> {
    let calls = choice.tool_calls.iter();
    ChoiceFields {
        index,
        message: Message {
            role: "assistant",
            content: choice.content.as_deref(),
            refusal: choice.refusal.as_deref(),
            annotations: choice.annotations.iter().map(Json).collect(),
            reasoning_content: choice.reasoning.as_deref(),
            audio: choice.audio.as_ref().map(|audio| audio_of(id, index, audio)),
            tool_calls: calls.map(|(at, call)| tool_call_of(id, [index, *at], call)).collect(),
            function_call: choice
                .function_call
                .as_ref()
                .map(|FunctionCall { name, arguments }| Function { name, arguments }),
        },
        logprobs: choice.logprobs.as_ref().map(Logprobs::of),
        // A limit of ours or a cancel cut it: `length` is what tells clients that there was more to come.
        finish_reason: finish_label(choice.finish.unwrap_or(FinishReason::Length)),
    }
}

fn tool_call_of(id: OperationId, at: [u32; 2], call: &ToolCall) -> ToolCallFields<'_> {
    let ToolCall { kind, name, input, state: _ } = call;
    let (function, custom) = match kind {
        ToolKind::Function => (Some(Function { name, arguments: input }), None),
        ToolKind::Custom => (None, Some(Custom { name, input })),
    };
    // Derived and not kept: the same on any node, at any time, and never the provider's.
    ToolCallFields { id: id.tool_call_id(at), kind: kind.label(), function, custom }
}

/// The id of what a choice spoke: ours as well.
pub(super) fn audio_id(id: OperationId, choice: u32) -> String {
    let digits: String = id.to_string().chars().filter(char::is_ascii_hexdigit).collect();
    format!("audio_{digits}_{choice}")
}

fn audio_of(id: OperationId, choice: u32, audio: &Audio) -> AudioFields<'_> {
    AudioFields {
        id: audio_id(id, choice),
        expires_at: audio.expires_at,
        data: &audio.data,
        transcript: &audio.transcript,
    }
}

/// Reason for which a choice ended, as an answer spells it.
#[must_use]
pub const fn finish_label(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::FunctionCall => "function_call",
    }
}
