//! Gemini's answer, whole or in pieces of one shape, into deltas and usage.
//!
//! Each event of a stream is an answer of its own: `candidates` go on where the last event left
//! them, and `usageMetadata` is repeated in full, so the latest report counts. There is no closing
//! event: the end of the body is the end of the stream, and only then is an answer known to be
//! whole.
//!
//! ```text
//! candidate.content.parts[]   text, thought (`thought: true`) or `functionCall` (always whole)
//! candidate.finishReason      "STOP" also after calls; "tool_calls" is made of that here
//! promptFeedback.blockReason  no candidates: every choice ends as filtered, without text
//! ```
//!
//! Never: Gemini's ids, its model's name or its own words of errors in the output; a choice beyond the `n` of
//! the request. Limits: `CHOICES_MAX` candidates an event.

use std::collections::BTreeMap;

use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason, ToolCallDelta};
use holdfast_domain::request::ToolKind;
use holdfast_domain::state::ProviderState;
use holdfast_domain::usage::{LatestUsage, ReportedCount, UsageCeiling, UsageReport};
use holdfast_wire::chat::upstream::{CHOICES_MAX, Completion, UnreadableReason, reported_count};
use holdfast_wire::json::{Node, parse_answer};
use holdfast_wire::sse::Event;

use crate::adapter::{EventOutcome, StreamParser};
use crate::reading::{append, arguments, next_call, text};

/// Reads the body of a 200.
pub(super) fn read(
    body: &[u8],
    n: u32,
    ceiling: UsageCeiling,
) -> Result<Completion, UnreadableReason> {
    let mut stream = Box::new(GenerateStream::new(n, ceiling));
    let mut delta = stream.piece(body)?;
    // The body was read to its last byte: an answer without a named end is not a cut one.
    for choice in &mut delta.choices {
        if let Some(said) = stream.candidates.get_mut(&choice.index)
            && said.finish.is_none()
            && (said.has_text || said.n_calls > 0)
        {
            said.conclude(choice, FinishReason::Stop);
        }
    }
    Ok(Completion { delta, usage: stream.end()? })
}

/// State of an answer: its candidates by their index, and the newest usage.
pub(super) struct GenerateStream {
    n: u32,
    candidates: BTreeMap<u32, CandidateState>,
    /// Report that counts, of those so far; each is in full, so none are added up.
    usage: LatestUsage,
}

/// State of one candidate, which becomes one choice.
#[derive(Default)]
struct CandidateState {
    n_calls: u32,
    has_text: bool,
    says_something: bool,
    finish: Option<FinishReason>,
}

impl StreamParser for GenerateStream {
    fn read(&mut self, event: Event<'_>) -> Result<EventOutcome, UnreadableReason> {
        self.piece(event.data).map(EventOutcome::from)
    }

    /// Some models send an end with every piece: only the end of the body proves that no piece follows.
    fn is_whole(&self) -> bool {
        false
    }

    fn end(&self) -> Result<Option<UsageReport>, UnreadableReason> {
        if !(0..self.n).eq(self.candidates.keys().copied()) {
            return Err(UnreadableReason::Choices("candidates"));
        }
        if !self.candidates.values().all(|said| said.finish.is_some()) {
            return Err(UnreadableReason::Finish("candidates[].finishReason"));
        }
        Ok(self.usage.end(self.candidates.values().any(|said| said.says_something)))
    }
}

/// A part that is no call and has no text is of no known kind.
const PART_TEXT: &str = "candidates[].content.parts[].text";

impl GenerateStream {
    /// At the start of an answer with so many choices.
    pub(super) const fn new(n: u32, ceiling: UsageCeiling) -> Self {
        Self { n, candidates: BTreeMap::new(), usage: LatestUsage::new(ceiling) }
    }

    fn piece(&mut self, data: &[u8]) -> Result<Delta, UnreadableReason> {
        let answer = parse_answer(data)?;
        if answer.get("error").is_some() {
            return Err(UnreadableReason::Error);
        }
        if let Some(usage) = answer.get("usageMetadata") {
            self.usage.take(report(usage));
        }
        let listed = answer.get("candidates").and_then(Node::as_array).unwrap_or_default();
        if listed.len() > CHOICES_MAX {
            return Err(UnreadableReason::Choices("candidates"));
        }
        let mut choices = Vec::with_capacity(listed.len());
        for candidate in listed {
            choices.push(self.candidate(candidate)?);
        }
        if listed.is_empty() && self.candidates.is_empty() && is_blocked(&answer) {
            choices.extend((0..self.n).map(|index| self.filtered(index)));
        }
        choices.sort_by_key(|choice| choice.index);
        Ok(Delta::from(choices))
    }

    /// The prompt was refused, so the choice is empty.
    fn filtered(&mut self, index: u32) -> ChoiceDelta {
        let finish = Some(FinishReason::ContentFilter);
        self.candidates.insert(index, CandidateState { finish, ..CandidateState::default() });
        ChoiceDelta { index, content: Some(String::new()), finish, ..ChoiceDelta::default() }
    }

    fn candidate(&mut self, candidate: &Node<'_>) -> Result<ChoiceDelta, UnreadableReason> {
        let index = match candidate.get("index") {
            None => Some(0),
            Some(index) => index.as_number().and_then(|index| index.parse().ok()),
        };
        let index = index.filter(|index| *index < self.n);
        let index = index.ok_or(UnreadableReason::Choices("candidates[].index"))?;
        let state = self.candidates.entry(index).or_default();
        let mut choice = ChoiceDelta { index, ..ChoiceDelta::default() };
        let parts = candidate.get("content").and_then(|content| content.get("parts"));
        let parts = match parts {
            None => &[][..],
            Some(parts) => {
                parts.as_array().ok_or(UnreadableReason::Content("candidates[].content.parts"))?
            }
        };
        for part in parts {
            state.add(&mut choice, part)?;
        }
        let reason = text(candidate, "finishReason").filter(|reason| !reason.is_empty());
        if let Some(reason) = reason {
            let field = "candidates[].finishReason";
            state.conclude(&mut choice, finish(reason).ok_or(UnreadableReason::Finish(field))?);
        }
        Ok(choice)
    }
}

impl CandidateState {
    fn add(&mut self, choice: &mut ChoiceDelta, part: &Node<'_>) -> Result<(), UnreadableReason> {
        if let Some(call) = part.get("functionCall") {
            let field = "candidates[].content.parts[].functionCall.name";
            let name = text(call, "name").ok_or(UnreadableReason::ToolCalls(field))?;
            let input = arguments(call.get("args"));
            choice.tool_calls.push(ToolCallDelta {
                index: next_call(&mut self.n_calls)?,
                kind: Some(ToolKind::Function),
                name: Some(name.to_owned()),
                input: Some(input),
                state: text(part, "thoughtSignature").and_then(ProviderState::new),
            });
            self.says_something = true;
            return Ok(());
        }
        let piece = text(part, "text");
        self.says_something |= piece.is_some_and(|piece| !piece.is_empty());
        if part.get("thought") == Some(&Node::Bool(true)) {
            return append(&mut choice.reasoning, piece, PART_TEXT);
        }
        self.has_text = true;
        append(&mut choice.content, piece, PART_TEXT)
    }

    /// End of a candidate. Gemini sends STOP after calls as well, and callers expect `tool_calls`.
    fn conclude(&mut self, choice: &mut ChoiceDelta, finish: FinishReason) {
        let calls = finish == FinishReason::Stop && self.n_calls > 0;
        self.finish = Some(if calls { FinishReason::ToolCalls } else { finish });
        choice.finish = self.finish;
        if !self.has_text && self.n_calls == 0 {
            choice.content = Some(String::new());
        }
    }
}

fn is_blocked(answer: &Node<'_>) -> bool {
    let feedback = answer.get("promptFeedback");
    feedback.and_then(|feedback| text(feedback, "blockReason")).is_some()
}

/// Reason of the end, in the words that callers know; `None` for reasons without a meaning, and for calls that
/// the model made wrongly: such an answer is unreadable.
fn finish(reason: &str) -> Option<FinishReason> {
    match reason {
        "STOP" => Some(FinishReason::Stop),
        "MAX_TOKENS" | "CONTINUATION" => Some(FinishReason::Length),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "ESCALATION"
        | "MODEL_ARMOR"
        | "PUP_LIMITED_DISABLED" => Some(FinishReason::ContentFilter),
        _ => None,
    }
}

/// Report of usage. Gemini's prompt tokens include cached ones and those of audio, and leave out those of
/// tools; its candidates' tokens leave out thoughts, except at servers whose total includes them.
fn report(usage: &Node<'_>) -> UsageReport {
    let of = |name| reported_count(usage.get(name));
    let prompt = of("promptTokenCount").plus(of("toolUsePromptTokenCount"));
    // Its JSON leaves out zeros, so that a report which has a prompt has an output.
    let absent = match prompt {
        ReportedCount::Count(_) => ReportedCount::Count(0),
        ReportedCount::Missing | ReportedCount::Unreadable => ReportedCount::Missing,
    };
    let candidates = match of("candidatesTokenCount") {
        ReportedCount::Missing => absent,
        told @ (ReportedCount::Count(_) | ReportedCount::Unreadable) => told,
    };
    let (thought, total) = (of("thoughtsTokenCount"), of("totalTokenCount"));
    // Servers that count thoughts among the candidates' tokens report no more than this total.
    let is_included = total.count().is_some() && total == prompt.plus(candidates);
    UsageReport {
        prompt,
        completion: if is_included { candidates } else { candidates.plus(thought) },
        total,
        cached: of("cachedContentTokenCount"),
        audio_in: audio_prompt_tokens(usage),
        reasoning: thought,
        ..UsageReport::default()
    }
}

/// Prompt tokens of audio.
fn audio_prompt_tokens(usage: &Node<'_>) -> ReportedCount {
    let details = usage.get("promptTokensDetails").and_then(Node::as_array).unwrap_or_default();
    let of_audio = details.iter().filter(|detail| text(detail, "modality") == Some("AUDIO"));
    let counts = of_audio.map(|detail| reported_count(detail.get("tokenCount")));
    counts.fold(ReportedCount::Missing, |sum, count| match sum {
        ReportedCount::Missing => count,
        sum @ (ReportedCount::Count(_) | ReportedCount::Unreadable) => sum.plus(count),
    })
}

#[cfg(test)]
mod tests {
    use holdfast_domain::usage::ReportedCount::{Count, Missing, Unreadable};

    use super::*;

    #[test]
    fn thoughts_stand_beside_candidates_unless_the_total_counts_them_there() {
        for (usage, completion, reasoning) in [
            (
                r#""candidatesTokenCount":5,"thoughtsTokenCount":3,"totalTokenCount":18"#,
                Count(8),
                Count(3),
            ),
            (
                r#""candidatesTokenCount":5,"thoughtsTokenCount":3,"totalTokenCount":15"#,
                Count(5),
                Count(3),
            ),
            (r#""candidatesTokenCount":5,"thoughtsTokenCount":3"#, Count(8), Count(3)),
            (
                r#""candidatesTokenCount":5,"thoughtsTokenCount":3,"totalTokenCount":1"#,
                Count(8),
                Count(3),
            ),
            (r#""thoughtsTokenCount":3,"totalTokenCount":13"#, Count(3), Count(3)),
            (r#""totalTokenCount":10"#, Count(0), Missing),
            (r#""candidatesTokenCount":-5,"thoughtsTokenCount":3"#, Unreadable, Count(3)),
            (r#""candidatesTokenCount":5,"thoughtsTokenCount":-3"#, Count(5), Unreadable),
        ] {
            let usage = format!(r#"{{"promptTokenCount":10,{usage}}}"#);
            let report = report(&parse_answer(usage.as_bytes()).unwrap());
            let counts = (report.prompt, report.completion, report.reasoning);
            assert_eq!(counts, (Count(10), completion, reasoning), "{usage}");
        }
        let empty = report(&parse_answer(b"{}").unwrap());
        assert_eq!((empty.prompt, empty.completion), (Missing, Missing));
    }

    #[test]
    fn prompts_have_those_of_tools_and_audio_of_every_detail() {
        let usage = br#"{"promptTokenCount":10,"toolUsePromptTokenCount":4,"promptTokensDetails":[
            {"modality":"AUDIO","tokenCount":2},{"modality":"TEXT","tokenCount":5},
            {"modality":"AUDIO","tokenCount":1}]}"#;
        let report = report(&parse_answer(usage).unwrap());
        assert_eq!((report.prompt, report.audio_in), (Count(14), Count(3)));
    }
}
