//! Replay of a stored completion as a stream: the events that its run could have sent.

use bytes::Bytes;
use holdfast_domain::answer::{Answer, Delta};
use holdfast_domain::model::PublicModelId;
use holdfast_domain::request::ServiceTier;
use holdfast_domain::{OperationId, Timestamp};

use super::{Chunks, DONE, UsageMembers, pieces};
use crate::chat::completion::Json;
use crate::chat::upstream::read_choice;
use crate::json::{self, Node};

/// A text that [`completion::render`](crate::chat::completion::render) has not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored answer is no completion of ours")]
pub struct NotStored;

/// The events of a stream that says what `body` says, which
/// [`completion::render`](crate::chat::completion::render) made: under the same ids and of the same
/// moment, with [`DONE`] at its end. A chunk tells at most 4 KiB of text and 16 tokens' likeliness.
///
/// # Errors
///
/// [`NotStored`] for any other body.
pub fn replay(body: &[u8], include_usage: bool) -> Result<Vec<Bytes>, NotStored> {
    let stored = json::parse_own(body).map_err(|_not_json| NotStored)?;
    let mut chunks = chunks(&stored).ok_or(NotStored)?;
    let choices = stored.get("choices").and_then(Node::as_array).ok_or(NotStored)?;
    // The reader of providers' answers reads ours too: one reader less, and a test holds both renderings together.
    let choices = choices.iter().map(read_choice).collect::<Result<Vec<_>, _>>();
    let delta = Delta {
        choices: choices.map_err(|_unreadable| NotStored)?,
        service_tier: stored.get("service_tier").and_then(Node::as_str).and_then(tier),
        // Part of the stored usage, which goes out below as it is.
        predicted: None,
        moderation: stored.get("moderation").map(Node::to_opaque),
    };
    let mut events = Vec::new();
    chunks.tier(delta.service_tier);
    for choice in &delta.choices {
        pieces::for_each_piece(choice, &mut |piece| {
            let mut told = Vec::with_capacity(2);
            chunks.push_delta(&piece, &mut told);
            events.extend(told.iter().map(|piece| piece.frame.bytes(include_usage)));
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
    let model = PublicModelId::try_from(stored.get("model")?.as_str()?).ok()?;
    Some(Chunks::new(digits.parse::<OperationId>().ok()?, created, &model))
}

fn tier(label: &str) -> Option<ServiceTier> {
    ServiceTier::ALL.iter().copied().find(|tier| tier.label() == label)
}
