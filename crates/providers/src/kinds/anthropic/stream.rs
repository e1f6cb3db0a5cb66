//! Anthropic's answer as events, into deltas and usage.
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
//! As lenient as with a whole answer, and as little guessed: unknown events are passed over, as Anthropic's
//! documentation requires; an unknown block, or a piece for a block that is not open, is an error. So is a
//! second message, once any part of the first has come: some relays repeat the request in the middle of an
//! answer, and continue with the other one from the place at which the first has stopped.
//!
//! Never: a stream without the reason of its end as an answer, half of a call's input as all of it,
//! usage added up (each report is in full), or a thought in anything but the reasoning and the state
//! of the call that follows it.

use std::collections::BTreeMap;

use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason, ToolCallDelta};
use holdfast_domain::request::ToolKind;
use holdfast_domain::usage::{UsageCeiling, UsageReport};
use holdfast_wire::chat::upstream::UnreadableReason;
use holdfast_wire::json::{Node, parse_answer};
use holdfast_wire::sse::Event;

use super::answer::{finish, render_reasoning};
use super::usage::TokenUsage;
use crate::adapter::{EventOutcome, StreamParser};
use crate::reading::{
    CallInput, append, count, has_content, has_text, input_delta, kept_promise,
    may_have_half_calls, next_call, text,
};
use crate::reasoning::PendingReasoning;

/// State of a stream: open blocks, thoughts that wait for their call, and usage as last reported.
pub(super) struct MessageStream {
    /// Blocks that have not ended, by their place.
    open: BTreeMap<u64, Block>,
    /// Id of the message.
    id: Option<Box<str>>,
    thoughts: PendingReasoning,
    n_calls: u32,
    /// Calls that ended with half of their input.
    n_half: u32,
    /// Blocks that have begun.
    n_blocks: u64,
    has_text: bool,
    says_something: bool,
    usage: TokenUsage,
    finish: Option<FinishReason>,
}

/// A block of content.
#[derive(Debug)]
enum Block {
    Text,
    /// Thoughts, also those that only the provider can read.
    Thinking,
    /// A call, by its number, with its input as far as it has come.
    Call(u32, CallInput),
}

impl Block {
    const fn is_blank(&self) -> bool {
        match self {
            Self::Call(_, input) => input.is_blank(),
            Self::Text | Self::Thinking => false,
        }
    }
}

impl StreamParser for MessageStream {
    fn read(&mut self, event: Event<'_>) -> Result<EventOutcome, UnreadableReason> {
        let event = parse_answer(event.data)?;
        let mut choice = ChoiceDelta::default();
        match text(&event, "type") {
            Some("message_start") => self.begin_message(event.get("message"))?,
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
        self.has_text |= has_text(&choice);
        // With the end: a later report may still name another tier.
        let service_tier = choice.finish.and(self.usage.tier);
        Ok(EventOutcome::from(Delta { service_tier, ..Delta::from(vec![choice]) }))
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&self) -> Result<Option<UsageReport>, UnreadableReason> {
        let finish = self.finish.ok_or(UnreadableReason::Finish("delta.stop_reason"))?;
        if finish == FinishReason::ToolCalls && self.n_calls == 0 {
            return Err(UnreadableReason::ToolCalls("content_block.type"));
        }
        let is_half = |block: &&Block| match block {
            Block::Call(_, input) => !input.is_whole(),
            Block::Text | Block::Thinking => false,
        };
        let n_open = u32::try_from(self.open.values().filter(is_half).count()).unwrap_or(u32::MAX);
        if !may_have_half_calls(finish, self.n_half.saturating_add(n_open)) {
            return Err(UnreadableReason::ToolCalls("delta.partial_json"));
        }
        Ok(self.usage.report(self.says_something))
    }
}

impl MessageStream {
    /// Before the first event of a run that cannot use up more than `ceiling`.
    pub(super) fn new(ceiling: UsageCeiling) -> Self {
        Self {
            open: BTreeMap::new(),
            id: None,
            thoughts: PendingReasoning::default(),
            n_calls: 0,
            n_half: 0,
            n_blocks: 0,
            has_text: false,
            says_something: false,
            usage: TokenUsage::new(ceiling),
            finish: None,
        }
    }

    /// Start of a message, which may come again.
    fn begin_message(&mut self, message: Option<&Node<'_>>) -> Result<(), UnreadableReason> {
        let id = message.and_then(|message| text(message, "id"));
        let is_begun = self.n_blocks > 0 || self.finish.is_some();
        if is_begun && (id.is_none() || id != self.id.as_deref()) {
            return Err(UnreadableReason::Content("message.id"));
        }
        self.id = id.map(Into::into);
        self.report(message);
        Ok(())
    }

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
        self.n_blocks = self.n_blocks.saturating_add(1);
        if let Some(Block::Call(..)) = self.open.get(&place) {
            // Of another message: a call ends before its place is taken.
            return Err(UnreadableReason::Content("index"));
        }
        let begun = match text(block, "type") {
            Some("text") => {
                self.thoughts.text();
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
                Block::Call(number, CallInput::begin(block.get("input")))
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
                let thought = text(delta, "thinking");
                append(&mut choice.reasoning, thought, "delta.thinking")?;
                self.thoughts.append(place, thought, None);
            }
            (Some("input_json_delta"), Block::Call(number, input)) => {
                let piece = text(delta, "partial_json");
                let piece = piece.ok_or(UnreadableReason::ToolCalls("delta.partial_json"))?;
                if !piece.is_empty() {
                    input.take(piece);
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

    /// End of a block.
    fn end_block(
        &mut self,
        event: &Node<'_>,
        choice: &mut ChoiceDelta,
    ) -> Result<(), UnreadableReason> {
        let place = place(event)?;
        match self.open.remove(&place) {
            Some(call @ Block::Call(..)) if call.is_blank() => {
                self.open.insert(place, call);
            }
            Some(Block::Call(number, mut input)) => {
                if let Some(rest) = input.close(false) {
                    choice.tool_calls.push(input_delta(number, &rest));
                }
                self.n_half = self.n_half.saturating_add(u32::from(!input.is_whole()));
            }
            Some(Block::Thinking) => self.thoughts.end(place),
            Some(Block::Text) | None => {}
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
        let Some(reason) = reason.filter(|reason| !reason.is_empty()) else { return Ok(()) };
        let end = finish(reason).ok_or(UnreadableReason::Finish("delta.stop_reason"))?;
        // Without text `end` judges it.
        let kept = kept_promise(end, self.n_calls, self.has_text).unwrap_or(end);
        self.finish = Some(kept);
        let is_last = |number: u32| number.checked_add(1) == Some(self.n_calls);
        for block in self.open.values_mut() {
            if let Block::Call(number, input) = block
                && let Some(rest) = input.close(kept.is_cut() && is_last(*number))
            {
                choice.tool_calls.push(input_delta(*number, &rest));
            }
        }
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
