//! Replay of a stored completion as a stream: the events that its run could have sent.

use bytes::Bytes;
use holdfast_domain::answer::{
    Answer, Audio, ChoiceDelta, Delta, FinishReason, FunctionCallDelta, ToolCallDelta,
};
use holdfast_domain::model::{ModelAlias, PublicModelId};
use holdfast_domain::request::{ServiceTier, ToolKind};
use holdfast_domain::{OperationId, Timestamp};

use super::{Chunks, DONE, UsageMembers, pieces};
use crate::chat::completion::{Json, finish_label};
use crate::chat::upstream::logprobs;
use crate::json::{self, Node};

/// A text that [`completion::render`](crate::chat::completion::render) has not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored answer is no completion of ours")]
pub struct NotStored;

/// The events of a stream with the content of `body`, which
/// [`completion::render`](crate::chat::completion::render) made: under the same ids and of the same moment,
/// with [`DONE`] at its end. A chunk has at most 4 KiB of text and 16 tokens' likeliness.
///
/// # Errors
///
/// [`NotStored`] for any other body.
pub fn replay(body: &[u8], include_usage: bool) -> Result<Vec<Bytes>, NotStored> {
    let stored = json::parse_own(body).map_err(|_not_json| NotStored)?;
    let mut chunks = chunks(&stored).ok_or(NotStored)?;
    let choices = stored.get("choices").and_then(Node::as_array).ok_or(NotStored)?;
    let choices = choices.iter().map(choice).collect::<Option<Vec<_>>>();
    let delta = Delta {
        choices: choices.ok_or(NotStored)?,
        service_tier: stored.get("service_tier").and_then(Node::as_str).and_then(tier),
        // Part of the stored usage, which goes out below as it is.
        predicted: None,
        moderation: stored.get("moderation").map(Node::to_opaque),
    };
    let mut events = Vec::new();
    chunks.tier(delta.service_tier);
    for choice in &delta.choices {
        pieces::for_each_piece(choice, &mut |piece| {
            let mut chunks_of_piece = Vec::with_capacity(2);
            chunks.push_delta(&piece, &mut chunks_of_piece);
            events.extend(chunks_of_piece.iter().map(|piece| piece.frame.bytes(include_usage)));
        });
    }
    let mut answer = Answer::default();
    answer.append(delta);
    events.extend(chunks.finish(&answer).iter().map(|frame| frame.bytes(include_usage)));
    if include_usage {
        let usage = stored.get("usage").ok_or(NotStored)?.to_opaque();
        events.push(chunks.frame(&UsageMembers { choices: [], usage: Json(&usage) }).plain);
    }
    events.push(Bytes::from_static(DONE));
    Ok(events)
}

/// Renderer with the envelope of a stored completion: its id, its moment and its model.
fn chunks(stored: &Node<'_>) -> Option<Chunks> {
    let digits = stored.get("id")?.as_str()?.strip_prefix("chatcmpl_")?;
    let created = stored.get("created")?.as_number()?.parse::<i64>().ok()?;
    // Whole seconds are all that is stored, and all that a chunk tells.
    let created = Timestamp::from_micros(created.checked_mul(1_000_000)?);
    let model = stored.get("model")?.as_str()?;
    let is_name = PublicModelId::try_from(model).is_ok() || ModelAlias::try_from(model).is_ok();
    is_name.then_some(())?;
    Some(Chunks::new(digits.parse::<OperationId>().ok()?, created, model))
}

fn tier(label: &str) -> Option<ServiceTier> {
    ServiceTier::ALL.iter().copied().find(|tier| tier.label() == label)
}

/// A stored choice, exactly as it was written. The reader of providers' answers would correct entries of older
/// versions, such as empty arguments, and a replay has to equal the first answer.
fn choice(choice: &Node<'_>) -> Option<ChoiceDelta> {
    let message = choice.get("message")?;
    let text = |name| message.get(name).and_then(Node::as_str).map(str::to_owned);
    let calls = message.get("tool_calls").and_then(Node::as_array).unwrap_or_default();
    let annotations = message.get("annotations").and_then(Node::as_array).unwrap_or_default();
    Some(ChoiceDelta {
        index: choice.get("index")?.as_number()?.parse().ok()?,
        content: text("content"),
        refusal: text("refusal"),
        reasoning: text("reasoning_content"),
        tool_calls: (0..).zip(calls).map(tool_call).collect::<Option<_>>()?,
        function_call: match message.get("function_call") {
            None => None,
            Some(call) => Some(FunctionCallDelta {
                name: Some(owned(call, "name")?),
                arguments: Some(owned(call, "arguments")?),
            }),
        },
        logprobs: choice.get("logprobs").map(logprobs),
        annotations: annotations.iter().map(Node::to_opaque).collect(),
        audio: match message.get("audio") {
            None => None,
            Some(audio) => Some(Audio {
                data: owned(audio, "data")?,
                transcript: owned(audio, "transcript")?,
                expires_at: audio.get("expires_at")?.as_number()?.parse().ok()?,
            }),
        },
        finish: Some(finish(choice.get("finish_reason")?.as_str()?)?),
    })
}

fn tool_call((index, call): (u32, &Node<'_>)) -> Option<ToolCallDelta> {
    let kinds = [(ToolKind::Function, "arguments"), (ToolKind::Custom, "input")];
    let label = call.get("type")?.as_str()?;
    let (kind, input) = kinds.into_iter().find(|(kind, _)| kind.label() == label)?;
    let called = call.get(label)?;
    let (name, input) = (Some(owned(called, "name")?), Some(owned(called, input)?));
    Some(ToolCallDelta { index, kind: Some(kind), name, input, state: None })
}

fn owned(node: &Node<'_>, name: &str) -> Option<String> {
    node.get(name)?.as_str().map(str::to_owned)
}

fn finish(label: &str) -> Option<FinishReason> {
    let all = [
        FinishReason::Stop,
        FinishReason::Length,
        FinishReason::ContentFilter,
        FinishReason::ToolCalls,
        FinishReason::FunctionCall,
    ];
    all.into_iter().find(|finish| finish_label(*finish) == label)
}
