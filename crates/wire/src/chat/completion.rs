//! The answer that a caller gets: OpenAI's chat completion, with the charge. Nothing of the provider.

use holdfast_domain::answer::{Answer, Choice, FinishReason};
use holdfast_domain::model::PublicModelId;
use holdfast_domain::usage::{Kind, UsageRecord};
use holdfast_domain::{OperationId, Timestamp};
use serde::Serialize;

use crate::render;

/// What a completion is made of.
#[derive(Debug, Clone, Copy)]
pub struct CompletionView<'a> {
    /// Whose answer it is; its id is derived from it.
    pub id: OperationId,
    /// When the key was bound.
    pub created: Timestamp,
    /// The public id that was asked for.
    pub model: &'a PublicModelId,
    /// What the model said. A choice that has not ended was cut: it ends with `length`.
    pub answer: &'a Answer,
    /// What it used up and what the caller pays.
    pub usage: &'a UsageRecord,
}

/// Renders the body of a completed answer. The same view is the same bytes.
#[must_use]
pub fn render(view: &CompletionView<'_>) -> Vec<u8> {
    render::to_bytes(&Completion {
        id: view.id.completion_id(),
        object: "chat.completion",
        created: view.created.as_seconds(),
        model: view.model.as_str(),
        choices: view.answer.choices().map(choice).collect(),
        usage: usage(view.usage),
    })
}

#[derive(Serialize)]
struct Completion<'a> {
    id: String,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: Vec<ChoiceFields<'a>>,
    usage: Usage,
}

#[derive(Serialize)]
struct ChoiceFields<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: (),
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<&'a str>,
    refusal: Option<&'a str>,
    annotations: [(); 0],
}

#[derive(Serialize)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
    customer_charge_micros: i64,
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

fn choice((index, choice): (u32, &Choice)) -> ChoiceFields<'_> {
    ChoiceFields {
        index,
        message: Message {
            role: "assistant",
            content: choice.content.as_deref(),
            refusal: choice.refusal.as_deref(),
            annotations: [],
        },
        logprobs: (),
        finish_reason: label(choice.finish.unwrap_or(FinishReason::Length)),
    }
}

/// OpenAI's counts contain one another; ours are disjoint.
fn usage(usage: &UsageRecord) -> Usage {
    let meters = &usage.metered.meters;
    let (prompt, completion) = (meters.prompt_tokens(), meters.completion_tokens());
    Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt.saturating_add(completion),
        prompt_tokens_details: PromptDetails {
            cached_tokens: meters.count(Kind::CachedInput),
            audio_tokens: meters.count(Kind::AudioInput),
            cache_write_tokens: meters.count(Kind::CacheWrite),
        },
        completion_tokens_details: CompletionDetails {
            reasoning_tokens: meters.count(Kind::Reasoning),
            audio_tokens: meters.count(Kind::AudioOutput),
            accepted_prediction_tokens: 0,
            rejected_prediction_tokens: 0,
        },
        customer_charge_micros: usage.charge.get(),
    }
}

const fn label(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
    }
}
