//! Anthropic's answer as events, into deltas and meters.
//!
//! ```text
//! message_start          usage: the input's side
//! content_block_start    a text, a thought or a call, by its index  ┐
//! content_block_delta*   more of it                                 ├ of every block
//! content_block_stop                                                ┘
//! message_delta          the reason of the end, and usage in full
//! message_stop           the last event
//! ```
//!
//! As lenient as with a whole answer, and as little guessed: unknown events are passed over, as
//! Anthropic's documentation asks; an unknown block, or a piece for a block that is not open, is an
//! error.
//!
//! Never: a stream without the reason of its end as an answer, usage added up (each report is in
//! full), or a thought in anything but the reasoning and the state of the call that follows it.

use std::collections::BTreeMap;

use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason, ToolCallDelta};
use holdfast_domain::request::ToolKind;
use holdfast_domain::usage::Meters;
use holdfast_wire::chat::upstream::UnreadableReason;
use holdfast_wire::json::{Node, parse_answer};
use holdfast_wire::sse::Event;

use super::answer::{finish, render_reasoning};
use super::usage::TokenUsage;
use crate::adapter::{EventOutcome, StreamParser};
use crate::reading::{append, count, has_content, input_delta, next_call, text};
use crate::reasoning::PendingReasoning;

/// State of a stream: open blocks, thoughts that wait for their call, and usage as last reported.
#[derive(Default)]
pub(super) struct MessageStream {
    /// Blocks that have not ended, by their place.
    open: BTreeMap<u64, Block>,
    thoughts: PendingReasoning,
    n_calls: u32,
    has_text: bool,
    says_something: bool,
    usage: TokenUsage,
    finish: Option<FinishReason>,
}

/// A block of content.
#[derive(Debug, Clone, Copy)]
enum Block {
    Text,
    /// Thoughts, also those that only the provider can read.
    Thinking,
    /// A call, by its number; whether any of its input has come.
    Call(u32, Input),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    None,
    Some,
}

impl StreamParser for MessageStream {
    fn read(&mut self, event: Event<'_>) -> Result<EventOutcome, UnreadableReason> {
        let event = parse_answer(event.data)?;
        let mut choice = ChoiceDelta::default();
        match text(&event, "type") {
            Some("message_start") => self.report(event.get("message")),
            Some("content_block_start") => self.begin(&event, &mut choice)?,
            Some("content_block_delta") => self.apply_delta(&event, &mut choice)?,
            Some("content_block_stop") => self.end_block(&event, &mut choice)?,
            Some("message_delta") => self.conclude(&event, &mut choice)?,
            Some("message_stop") => return Ok(EventOutcome::Last),
            Some("error") => return Err(UnreadableReason::Error),
            // It keeps the connection alive, or is of a kind that its documentation says may come.
            Some(_) => {}
            None => return Err(UnreadableReason::Content("type")),
        }
        self.says_something |= has_content(&choice);
        // With the end: a later report may still name another tier.
        let service_tier = choice.finish.and(self.usage.tier);
        Ok(EventOutcome::from(Delta { service_tier, ..Delta::from(vec![choice]) }))
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&self) -> Result<Option<Meters>, UnreadableReason> {
        let finish = self.finish.ok_or(UnreadableReason::Finish("delta.stop_reason"))?;
        if finish == FinishReason::ToolCalls && self.n_calls == 0 {
            return Err(UnreadableReason::ToolCalls("content_block.type"));
        }
        // Text that cost no token is not believed.
        let meters = self.usage.meters();
        Ok(meters.filter(|meters| !self.says_something || meters.completion_tokens() > 0))
    }
}

impl MessageStream {
    fn report(&mut self, of: Option<&Node<'_>>) {
        if let Some(usage) = of.and_then(|of| of.get("usage")) {
            self.usage.take(usage);
        }
    }

    fn begin(
        &mut self,
        event: &Node<'_>,
        choice: &mut ChoiceDelta,
    ) -> Result<(), UnreadableReason> {
        let block = event.get("content_block").ok_or(UnreadableReason::Content("content_block"))?;
        let place = place(event)?;
        let begun = match text(block, "type") {
            Some("text") => {
                self.thoughts.text();
                self.has_text = true;
                choice.content = text(block, "text").map(str::to_owned);
                Block::Text
            }
            Some("thinking") => {
                self.thoughts.append(place, text(block, "thinking"), text(block, "signature"));
                Block::Thinking
            }
            Some("redacted_thinking") => {
                self.thoughts.redacted(text(block, "data"));
                Block::Thinking
            }
            Some("tool_use") => {
                // Counted among the calls: the index of the block counts texts and thoughts, too.
                let number = next_call(&mut self.n_calls)?;
                choice.tool_calls.push(ToolCallDelta {
                    index: number,
                    kind: Some(ToolKind::Function),
                    name: Some(
                        text(block, "name")
                            .ok_or(UnreadableReason::ToolCalls("content_block.name"))?
                            .to_owned(),
                    ),
                    input: None,
                    state: self.thoughts.before_call(render_reasoning),
                });
                Block::Call(number, Input::None)
            }
            Some(_) | None => return Err(UnreadableReason::Content("content_block.type")),
        };
        self.open.insert(place, begun);
        Ok(())
    }

    fn apply_delta(
        &mut self,
        event: &Node<'_>,
        choice: &mut ChoiceDelta,
    ) -> Result<(), UnreadableReason> {
        let delta = event.get("delta").ok_or(UnreadableReason::Content("delta"))?;
        let place = place(event)?;
        let block = self.open.get_mut(&place).ok_or(UnreadableReason::Content("index"))?;
        match (text(delta, "type"), block) {
            (Some("text_delta"), Block::Text) => {
                append(&mut choice.content, text(delta, "text"), "delta.text")?;
            }
            (Some("thinking_delta"), Block::Thinking) => {
                let said = text(delta, "thinking");
                append(&mut choice.reasoning, said, "delta.thinking")?;
                self.thoughts.append(place, said, None);
            }
            (Some("input_json_delta"), Block::Call(number, input)) => {
                let piece = text(delta, "partial_json");
                let piece = piece.ok_or(UnreadableReason::ToolCalls("delta.partial_json"))?;
                if !piece.is_empty() {
                    *input = Input::Some;
                    choice.tool_calls.push(input_delta(*number, piece));
                }
            }
            (Some("signature_delta"), Block::Thinking) => {
                self.thoughts.append(place, None, text(delta, "signature"));
            }
            // Sources, and signatures of nothing that is wanted back.
            (Some("signature_delta" | "citations_delta"), _) => {}
            (Some(_) | None, _) => return Err(UnreadableReason::Content("delta.type")),
        }
        Ok(())
    }

    /// End of a block. A call without input gets `{}`, because callers parse what they get.
    fn end_block(
        &mut self,
        event: &Node<'_>,
        choice: &mut ChoiceDelta,
    ) -> Result<(), UnreadableReason> {
        let place = place(event)?;
        match self.open.remove(&place) {
            Some(Block::Call(number, Input::None)) => {
                choice.tool_calls.push(input_delta(number, "{}"));
            }
            Some(Block::Thinking) => self.thoughts.end(place),
            Some(Block::Call(_, Input::Some) | Block::Text) | None => {}
        }
        Ok(())
    }

    fn conclude(
        &mut self,
        event: &Node<'_>,
        choice: &mut ChoiceDelta,
    ) -> Result<(), UnreadableReason> {
        self.report(Some(event));
        let reason = event.get("delta").and_then(|delta| text(delta, "stop_reason"));
        let Some(reason) = reason else { return Ok(()) };
        self.finish = Some(finish(reason).ok_or(UnreadableReason::Finish("delta.stop_reason"))?);
        choice.finish = self.finish;
        if !self.has_text && self.n_calls == 0 {
            choice.content = Some(String::new());
        }
        Ok(())
    }
}

fn place(event: &Node<'_>) -> Result<u64, UnreadableReason> {
    count(event, "index").flatten().ok_or(UnreadableReason::Content("index"))
}
