//! Bedrock's answer, whole or as frames, into deltas and usage.
//!
//! ```text
//! messageStart
//! contentBlockStart?    a call, by its place      ┐
//! contentBlockDelta*    text, thought or input    ├ of every block
//! contentBlockStop                                ┘
//! messageStop           the reason of the end
//! metadata              the usage, and the last event
//! ```
//!
//! Blocks are known by their place: deltas of several may mix. A block of text has no start. The
//! usage comes after the end, so a stream whose choice has ended may still lack its bill.
//!
//! Lenient if no content is lost (unknown events are passed over), strict if money or meaning is: an unknown
//! reason of the end, a call without its name or a text block that is none make the answer unreadable. Usage is
//! passed on as reported, unchecked.
//!
//! Never: Bedrock's ids or its own words of errors in the output.

use std::collections::BTreeMap;

use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason, ToolCallDelta};
use holdfast_domain::request::ToolKind;
use holdfast_domain::usage::UsageReport;
use holdfast_wire::chat::upstream::{Completion, UnreadableReason, reported_count};
use holdfast_wire::json::{Draft, Node, parse_answer};
use holdfast_wire::sse::Event;

use crate::adapter::{EventOutcome, StreamParser};
use crate::reading::{
    CallInput, append, arguments, count, cut_last_call, has_content, has_text, input_delta,
    kept_promise, may_have_half_calls, next_call, text, unnamed_finish,
};
use crate::reasoning::{PendingReasoning, ReasoningBlock};

const UNKNOWN_END: UnreadableReason = UnreadableReason::Finish("stopReason");

/// Reads the body of a 200.
pub(super) fn read(body: &[u8]) -> Result<Completion, UnreadableReason> {
    let answer = parse_answer(body)?;
    let message = answer.get("output").and_then(|output| output.get("message"));
    let blocks = message.and_then(|message| message.get("content")).and_then(Node::as_array);
    let mut choice = ChoiceDelta::default();
    let mut thoughts = PendingReasoning::default();
    for block in blocks.ok_or(UnreadableReason::Choices("output.message.content"))? {
        add(&mut choice, &mut thoughts, block)?;
    }
    if choice.content.is_none() && choice.tool_calls.is_empty() {
        choice.content = Some(String::new());
    }
    let end = match text(&answer, "stopReason") {
        None | Some("") => unnamed_finish(choice.tool_calls.len()),
        Some(reason) => finish(reason).ok_or(UNKNOWN_END)?,
    };
    let n_calls = u32::try_from(choice.tool_calls.len()).unwrap_or(u32::MAX);
    let field = "output.message.content[].toolUse";
    let kept = kept_promise(end, n_calls, has_text(&choice));
    choice.finish = Some(kept.ok_or(UnreadableReason::ToolCalls(field))?);
    cut_last_call(&mut choice);
    let has_content = has_content(&choice);
    let usage = answer.get("usage").map(|usage| UsageReport { has_content, ..report(usage) });
    Ok(Completion { delta: Delta::from(vec![choice]), usage })
}

fn add(
    choice: &mut ChoiceDelta,
    thoughts: &mut PendingReasoning,
    block: &Node<'_>,
) -> Result<(), UnreadableReason> {
    if block.get("text").is_some() {
        thoughts.text();
        let field = "output.message.content[].text";
        return append(&mut choice.content, text(block, "text"), field);
    }
    if let Some(thought) = block.get("reasoningContent") {
        let Some(reasoning) = thought.get("reasoningText") else {
            thoughts.redacted(text(thought, "redactedContent"));
            return Ok(());
        };
        let signature = text(reasoning, "signature").map(str::to_owned);
        let field = "output.message.content[].reasoningContent.reasoningText.text";
        let reasoning = text(reasoning, "text").ok_or(UnreadableReason::Content(field))?;
        append(&mut choice.reasoning, Some(reasoning), field)?;
        thoughts.add(ReasoningBlock::Said { text: reasoning.to_owned(), signature });
        return Ok(());
    }
    let call = block.get("toolUse").ok_or(UnreadableReason::Content("output.message.content[]"))?;
    let field = "output.message.content[].toolUse.name";
    let mut n_calls = u32::try_from(choice.tool_calls.len()).unwrap_or(u32::MAX);
    let input = arguments(call.get("input"));
    choice.tool_calls.push(ToolCallDelta {
        index: next_call(&mut n_calls)?,
        kind: Some(ToolKind::Function),
        name: Some(text(call, "name").ok_or(UnreadableReason::ToolCalls(field))?.to_owned()),
        input: Some(input),
        state: thoughts.before_call(render_reasoning),
    });
    Ok(())
}

/// A thought in the form in which it came and is required back.
fn render_reasoning(thought: &ReasoningBlock) -> Draft<'_> {
    let thought = match thought {
        ReasoningBlock::Said { text, signature } => {
            let signature = signature.as_deref().map(|signature| ("signature", signature.into()));
            let reasoning = Draft::object([Some(("text", text.as_str().into())), signature]);
            Draft::object([("reasoningText", reasoning)])
        }
        ReasoningBlock::Redacted(data) => {
            Draft::object([("redactedContent", data.as_str().into())])
        }
    };
    Draft::object([("reasoningContent", thought)])
}

/// State of a stream: open calls, thoughts that wait for their call, and the end as far as it has come.
#[derive(Default)]
pub(super) struct ConverseStream {
    /// Calls that have not ended, by the place of their block: the number, and the input as far as
    /// it has come.
    open: BTreeMap<u64, (u32, CallInput)>,
    thoughts: PendingReasoning,
    n_calls: u32,
    /// Calls that ended with half of their input.
    n_half: u32,
    /// Events of blocks.
    n_events: u64,
    has_text: bool,
    says_something: bool,
    usage: Option<UsageReport>,
    finish: Option<FinishReason>,
}

impl StreamParser for ConverseStream {
    fn read(&mut self, event: Event<'_>) -> Result<EventOutcome, UnreadableReason> {
        let body = parse_answer(event.data)?;
        let mut choice = ChoiceDelta::default();
        match event.name {
            // Messages have no ids: another start, once anything has come, is another message's.
            b"messageStart" if self.n_events > 0 || self.finish.is_some() => {
                return Err(UnreadableReason::Content("messageStart"));
            }
            b"contentBlockStart" => self.begin(&body, &mut choice)?,
            b"contentBlockDelta" => self.apply_delta(&body, &mut choice)?,
            b"contentBlockStop" => self.end_block(&body, &mut choice)?,
            b"messageStop" => self.conclude(&body, &mut choice)?,
            // The usage comes after the end, and nothing after the usage.
            b"metadata" => {
                self.usage = body.get("usage").map(report);
                return Ok(EventOutcome::Last);
            }
            _ => {}
        }
        let is_of_block = event.name.starts_with(b"contentBlock");
        self.n_events = self.n_events.saturating_add(u64::from(is_of_block));
        self.says_something |= has_content(&choice);
        self.has_text |= has_text(&choice);
        Ok(EventOutcome::from(Delta::from(vec![choice])))
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&self) -> Result<Option<UsageReport>, UnreadableReason> {
        let finish = self.finish.ok_or(UNKNOWN_END)?;
        if finish == FinishReason::ToolCalls && self.n_calls == 0 {
            return Err(UnreadableReason::ToolCalls("start.toolUse"));
        }
        let n_open = self.open.values().filter(|(_, input)| !input.is_whole()).count();
        let n_open = u32::try_from(n_open).unwrap_or(u32::MAX);
        if !may_have_half_calls(finish, self.n_half.saturating_add(n_open)) {
            return Err(UnreadableReason::ToolCalls("delta.toolUse.input"));
        }
        let has_content = self.says_something;
        Ok(self.usage.map(|report| UsageReport { has_content, ..report }))
    }
}

impl ConverseStream {
    fn begin(&mut self, said: &Node<'_>, choice: &mut ChoiceDelta) -> Result<(), UnreadableReason> {
        let begun = said.get("start");
        let Some(call) = begun.and_then(|begun| begun.get("toolUse")) else { return Ok(()) };
        let place = place(said)?;
        if self.open.contains_key(&place) {
            // Of another message: a call ends before its place is taken.
            return Err(UnreadableReason::Content("contentBlockIndex"));
        }
        let number = next_call(&mut self.n_calls)?;
        choice.tool_calls.push(ToolCallDelta {
            index: number,
            kind: Some(ToolKind::Function),
            name: Some(
                text(call, "name")
                    .ok_or(UnreadableReason::ToolCalls("start.toolUse.name"))?
                    .to_owned(),
            ),
            input: None,
            state: self.thoughts.before_call(render_reasoning),
        });
        self.open.insert(place, (number, CallInput::begin(call.get("input"))));
        Ok(())
    }

    fn apply_delta(
        &mut self,
        event: &Node<'_>,
        choice: &mut ChoiceDelta,
    ) -> Result<(), UnreadableReason> {
        let delta = event.get("delta").ok_or(UnreadableReason::Content("delta"))?;
        if delta.get("text").is_some() {
            self.thoughts.text();
            return append(&mut choice.content, text(delta, "text"), "delta.text");
        }
        if let Some(thought) = delta.get("reasoningContent") {
            let text_piece = text(thought, "text");
            choice.reasoning = text_piece.map(str::to_owned);
            if thought.get("redactedContent").is_some() {
                self.thoughts.redacted(text(thought, "redactedContent"));
            } else {
                self.thoughts.append(place(event)?, text_piece, text(thought, "signature"));
            }
            return Ok(());
        }
        let call = delta.get("toolUse").ok_or(UnreadableReason::Content("delta"))?;
        let piece =
            text(call, "input").ok_or(UnreadableReason::ToolCalls("delta.toolUse.input"))?;
        let open = self.open.get_mut(&place(event)?);
        let (number, input) = open.ok_or(UnreadableReason::ToolCalls("contentBlockIndex"))?;
        if !piece.is_empty() {
            input.take(piece);
            choice.tool_calls.push(input_delta(*number, piece));
        }
        Ok(())
    }

    /// End of a block.
    fn end_block(
        &mut self,
        said: &Node<'_>,
        choice: &mut ChoiceDelta,
    ) -> Result<(), UnreadableReason> {
        let place = place(said)?;
        match self.open.remove(&place) {
            Some((number, input)) if input.is_blank() => {
                self.open.insert(place, (number, input));
            }
            Some((number, mut input)) => {
                if let Some(rest) = input.close(false) {
                    choice.tool_calls.push(input_delta(number, &rest));
                }
                self.n_half = self.n_half.saturating_add(u32::from(!input.is_whole()));
            }
            None => {}
        }
        self.thoughts.end(place);
        Ok(())
    }

    fn conclude(
        &mut self,
        body: &Node<'_>,
        choice: &mut ChoiceDelta,
    ) -> Result<(), UnreadableReason> {
        let end = text(body, "stopReason").and_then(finish).ok_or(UNKNOWN_END)?;
        // Without text `end` judges it.
        let kept = kept_promise(end, self.n_calls, self.has_text).unwrap_or(end);
        self.finish = Some(kept);
        let is_last = |number: u32| number.checked_add(1) == Some(self.n_calls);
        for (number, input) in self.open.values_mut() {
            if let Some(rest) = input.close(kept.is_cut() && is_last(*number)) {
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

fn place(said: &Node<'_>) -> Result<u64, UnreadableReason> {
    count(said, "contentBlockIndex").flatten().ok_or(UnreadableReason::Content("contentBlockIndex"))
}

/// Reason of the end, in the words that callers know; `None` for any other, such as a call or an
/// output that the model made wrongly: such an answer is unreadable.
fn finish(reason: &str) -> Option<FinishReason> {
    match reason {
        "end_turn" | "stop_sequence" => Some(FinishReason::Stop),
        "tool_use" => Some(FinishReason::ToolCalls),
        "max_tokens" | "model_context_window_exceeded" => Some(FinishReason::Length),
        "guardrail_intervened" | "content_filtered" => Some(FinishReason::ContentFilter),
        _ => None,
    }
}

/// Report of usage. Bedrock's input tokens leave out those that were written to the cache and read from
/// it, so that the prompt is the sum of all three.
fn report(usage: &Node<'_>) -> UsageReport {
    let of = |name| reported_count(usage.get(name));
    let (cached, written) = (of("cacheReadInputTokens"), of("cacheWriteInputTokens"));
    UsageReport {
        prompt: of("inputTokens").plus(cached).plus(written),
        completion: of("outputTokens"),
        total: of("totalTokens"),
        cached,
        written,
        ..UsageReport::default()
    }
}

#[cfg(test)]
mod tests {
    use holdfast_domain::usage::ReportedCount::{Count, Missing};

    use super::*;

    #[test]
    fn the_prompt_is_what_was_read_anew_cached_and_written() {
        let usage = br#"{"inputTokens":9,"outputTokens":3,"totalTokens":18,
            "cacheReadInputTokens":4,"cacheWriteInputTokens":2}"#;
        let report = report(&parse_answer(usage).unwrap());
        assert_eq!(
            (report.prompt, report.completion, report.total),
            (Count(15), Count(3), Count(18))
        );
        assert_eq!(
            (report.cached, report.written, report.reasoning),
            (Count(4), Count(2), Missing)
        );
    }
}
