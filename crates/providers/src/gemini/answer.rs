//! Gemini's answer, whole or in pieces of one shape, into deltas and meters.
//!
//! Each event of a stream is an answer of its own: `candidates` go on where the last event left
//! them, and `usageMetadata` is repeated in full, so the newest report counts. There is no closing
//! event: the end of the body is the end of the stream, and only then is an answer known to be
//! whole.
//!
//! ```text
//! candidate.content.parts[]   text, thought (`thought: true`) or `functionCall` (always whole)
//! candidate.finishReason      "STOP" also after calls; "tool_calls" is made of that here
//! promptFeedback.blockReason  no candidates: every choice ends as filtered, without text
//! ```
//!
//! Never: Gemini's ids, its model's name or its own words of errors in what is told; a choice
//! beyond the `n` of the request. Limits: `CHOICES_MAX` candidates an event.

use std::collections::BTreeMap;

use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason, ToolCallDelta};
use holdfast_domain::request::ToolKind;
use holdfast_domain::state::ProviderState;
use holdfast_domain::usage::{MeterKind, Meters};
use holdfast_wire::chat::upstream::{CHOICES_MAX, Completion, UnreadableReason};
use holdfast_wire::json::{Node, parse_answer};
use holdfast_wire::sse::Event;

use crate::adapter::{EventOutcome, StreamParser};
use crate::reading::{append, arguments, count, next_call, text};

/// Reads the body of a 200.
pub(super) fn read(body: &[u8], n: u32) -> Result<Completion, UnreadableReason> {
    let mut stream = Box::new(GenerateStream::new(n));
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
    Ok(Completion { delta, meters: stream.end()? })
}

/// State of an answer: its candidates by their index, and the newest usage.
pub(super) struct GenerateStream {
    n: u32,
    candidates: BTreeMap<u32, CandidateState>,
    /// Newest report of usage; each is in full, so none are added up.
    meters: Option<Meters>,
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

    /// Some models tell an end with every piece: only the end of the body says that nothing
    /// follows.
    fn is_whole(&self) -> bool {
        false
    }

    fn end(&self) -> Result<Option<Meters>, UnreadableReason> {
        if !(0..self.n).eq(self.candidates.keys().copied()) {
            return Err(UnreadableReason::Choices("candidates"));
        }
        if !self.candidates.values().all(|said| said.finish.is_some()) {
            return Err(UnreadableReason::Finish("candidates[].finishReason"));
        }
        // Text that cost no token is not believed.
        let says_something = self.candidates.values().any(|said| said.says_something);
        Ok(self.meters.filter(|meters| !says_something || meters.completion_tokens() > 0))
    }
}

/// A part that is no call and has no text is of no known kind.
const PART_TEXT: &str = "candidates[].content.parts[].text";

impl GenerateStream {
    /// At the start of an answer with so many choices.
    pub(super) const fn new(n: u32) -> Self {
        Self { n, candidates: BTreeMap::new(), meters: None }
    }

    fn piece(&mut self, data: &[u8]) -> Result<Delta, UnreadableReason> {
        let answer = parse_answer(data)?;
        if answer.get("error").is_some() {
            return Err(UnreadableReason::Error);
        }
        if let Some(usage) = answer.get("usageMetadata") {
            self.meters = meters(usage);
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

    /// The prompt was refused, so nothing was said.
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
        let said = self.candidates.entry(index).or_default();
        let mut choice = ChoiceDelta { index, ..ChoiceDelta::default() };
        let parts = candidate.get("content").and_then(|content| content.get("parts"));
        let parts = match parts {
            None => &[][..],
            Some(parts) => {
                parts.as_array().ok_or(UnreadableReason::Content("candidates[].content.parts"))?
            }
        };
        for part in parts {
            said.add(&mut choice, part)?;
        }
        let reason = text(candidate, "finishReason").filter(|reason| !reason.is_empty());
        if let Some(reason) = reason {
            let field = "candidates[].finishReason";
            said.conclude(&mut choice, finish(reason).ok_or(UnreadableReason::Finish(field))?);
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

    /// End of a candidate. Gemini says STOP after calls as well, and callers expect `tool_calls`.
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

/// Reason of the end, in the words that callers know; `None` for reasons that say nothing, and for
/// calls that the model made wrongly: such an answer is unreadable.
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

/// Meters of a report, each token in one of them. Gemini's prompt tokens include cached ones and
/// those of audio; its candidates' tokens leave out thoughts, but for servers whose total says
/// otherwise.
fn meters(usage: &Node<'_>) -> Option<Meters> {
    let of = |name| Some(count(usage, name)?.unwrap_or(0));
    let prompt = count(usage, "promptTokenCount")??.checked_add(of("toolUsePromptTokenCount")?)?;
    let (candidates, thought) = (of("candidatesTokenCount")?, of("thoughtsTokenCount")?);
    let cached = of("cachedContentTokenCount")?;
    let total = count(usage, "totalTokenCount")?;
    // Servers that count thoughts among the candidates' tokens report no more than this total.
    let is_included = total.is_some() && total == prompt.checked_add(candidates);
    let said = if is_included { candidates.checked_sub(thought)? } else { candidates };
    let read_anew = prompt.checked_sub(cached)?;
    // Cached tokens may be of audio, too: no more count as audio than were read anew.
    let heard = audio_prompt_tokens(usage)?.min(read_anew);
    Meters::from_fn(|kind| match kind {
        MeterKind::Input => read_anew.saturating_sub(heard),
        MeterKind::CachedInput => cached,
        MeterKind::AudioInput => heard,
        MeterKind::Output => said,
        MeterKind::Reasoning => thought,
        MeterKind::Request => 1,
        MeterKind::CacheWrite | MeterKind::AudioOutput | MeterKind::Image => 0,
    })
}

/// Prompt tokens of audio.
fn audio_prompt_tokens(usage: &Node<'_>) -> Option<u64> {
    let Some(details) = usage.get("promptTokensDetails") else { return Some(0) };
    let details = details.as_array()?.iter();
    let of_audio = details.filter(|detail| text(detail, "modality") == Some("AUDIO"));
    of_audio.map(|detail| count(detail, "tokenCount").map(Option::unwrap_or_default)).sum()
}
