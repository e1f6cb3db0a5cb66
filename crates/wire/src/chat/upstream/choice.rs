//! A choice of a provider's answer, read by one rule from a whole message and from the pieces of a stream. The
//! provider's ids are dropped: callers get ids that are derived from the operation's.
//!
//! Leniency: a label may be odd. An empty list, an empty object, an empty text or a null in the place of any
//! member stands for its absence, because servers in other languages write them so. Content may not be odd: a
//! text, a call or an end that cannot be read is an [`UnreadableReason`].

use holdfast_domain::answer::{Audio, ChoiceDelta, FinishReason, FunctionCallDelta, Logprobs};
use holdfast_domain::ports::UnreadableReason;
use holdfast_domain::request::Opaque;

use super::call_part::{self, CallFields, input_text};
use super::calls::{Arguments, Calls};
use super::context::ToolNames;
use super::members::{list, object};
use super::passthrough;
use crate::json::Node;

/// Fields that an operator finds in the log for a choice that was not read.
#[derive(Debug)]
pub(super) struct UpstreamFields {
    calls: CallFields,
    content: &'static str,
    refusal: &'static str,
    audio: &'static str,
    function_call: &'static str,
    function_name: &'static str,
    function_arguments: &'static str,
}

/// Fields of a whole message.
pub(super) const MESSAGE: UpstreamFields = UpstreamFields {
    calls: call_part::WHOLE,
    content: "choices[].message.content",
    refusal: "choices[].message.refusal",
    audio: "choices[].message.audio",
    function_call: "choices[].message.function_call",
    function_name: "choices[].message.function_call.name",
    function_arguments: "choices[].message.function_call.arguments",
};

/// Fields of a piece.
pub(super) const DELTA: UpstreamFields = UpstreamFields {
    calls: call_part::PIECE,
    content: "choices[].delta.content",
    refusal: "choices[].delta.refusal",
    audio: "choices[].delta.audio",
    function_call: "choices[].delta.function_call",
    function_name: "choices[].delta.function_call.name",
    function_arguments: "choices[].delta.function_call.arguments",
};

/// State of one choice: enough to distinguish news from repetition, and never the text of the answer.
#[derive(Default)]
pub(super) struct ChoiceState {
    calls: Calls,
    function: Option<PartialFunction>,
    n_annotations: usize,
    has_content: bool,
    has_text: bool,
    finish: Option<FinishReason>,
    /// End as the provider named it: of calls that did not come, callers have read another one.
    named: Option<FinishReason>,
}

/// A call in the older form, as far as its pieces have come.
#[derive(Default)]
struct PartialFunction {
    name: String,
    arguments: Arguments,
}

impl ChoiceState {
    /// True once the choice has any content: text, a refusal, thoughts, speech or a call.
    pub(super) const fn has_content(&self) -> bool {
        self.has_content
    }

    pub(super) const fn finish(&self) -> Option<FinishReason> {
        self.finish
    }

    /// Gain of a message or a piece.
    pub(super) fn read(
        &mut self,
        said: &Node<'_>,
        tools: &ToolNames,
        fields: &UpstreamFields,
    ) -> Result<ChoiceDelta, UnreadableReason> {
        let text_of = |name| said.get(name).and_then(Node::as_str).filter(|text| !text.is_empty());
        let reasoning = text_of("reasoning_content").or_else(|| text_of("reasoning"));
        let refusal = text(said.get("refusal"), fields.refusal)?;
        let gained = ChoiceDelta {
            content: text(said.get("content"), fields.content)?,
            // An empty one is none: callers take the member for the fact.
            refusal: refusal.filter(|text| !text.is_empty()),
            // An extension of some servers: what is not text is one more extra.
            reasoning: reasoning.map(str::to_owned),
            tool_calls: self.calls.read(said, tools, &fields.calls)?,
            function_call: self.function_call(said.get("function_call"), fields)?,
            annotations: self.annotations(said.get("annotations")),
            audio: audio(said.get("audio"), fields.audio)?,
            ..ChoiceDelta::default()
        };
        let texts = [&gained.content, &gained.refusal];
        self.has_text |=
            texts.into_iter().flatten().any(|text| !text.is_empty()) || gained.audio.is_some();
        self.has_content |= self.has_text
            || gained.reasoning.is_some()
            || !gained.tool_calls.is_empty()
            || gained.function_call.is_some();
        Ok(gained)
    }

    /// Ends the choice. The first reason holds: a later one repeats it, even if it differs.
    pub(super) fn end(&mut self, told: FinishReason, gained: &mut ChoiceDelta) {
        let finish = self.finish.unwrap_or_else(|| self.kept_promise(told));
        self.named.get_or_insert(told);
        self.finish = Some(finish);
        gained.finish = Some(finish);
        self.calls.end(finish, &mut gained.tool_calls);
        let is_cut = finish.is_cut() && self.calls.is_empty();
        let rest = self.function.as_mut().and_then(|call| call.arguments.close(is_cut));
        if let Some(arguments) = rest {
            let call = gained.function_call.get_or_insert_default();
            call.arguments = Some(arguments);
        }
    }

    const fn has_calls(&self) -> bool {
        !self.calls.is_empty() || self.function.is_some()
    }

    /// True if a message that repeats the answer has a text or calls that the answer lacks.
    pub(super) fn lacks_part_of(&self, message: &Node<'_>) -> bool {
        let is_call = |call: &&Node<'_>| matches!(object(Some(call)), Some(Some(_)));
        let n_calls = || {
            let all = list(message.get("tool_calls")).unwrap_or_default();
            all.iter().filter(is_call).count()
        };
        let has_text = || {
            let content = text(message.get("content"), "");
            content.is_ok_and(|text| text.is_some_and(|text| !text.is_empty()))
        };
        self.calls.len() < n_calls()
            || self.function.is_none() && message.get("function_call").as_ref().is_some_and(is_call)
            || !self.has_text && has_text()
    }

    /// End of an answer that was read to its last byte and names none.
    pub(super) const fn unnamed_finish(&self) -> FinishReason {
        if !self.calls.is_empty() {
            FinishReason::ToolCalls
        } else if self.function.is_some() {
            FinishReason::FunctionCall
        } else {
            FinishReason::Stop
        }
    }

    /// The end that the provider sent, as far as the content agrees with it: a caller that reads of calls looks
    /// for them. A text without the promised calls is an answer all the same.
    const fn kept_promise(&self, told: FinishReason) -> FinishReason {
        match told {
            FinishReason::ToolCalls | FinishReason::FunctionCall => {
                if self.has_text || !self.calls.is_empty() || self.function.is_some() {
                    let has_both = !self.calls.is_empty() && self.function.is_some();
                    if has_both { told } else { self.unnamed_finish() }
                } else {
                    told
                }
            }
            FinishReason::Stop | FinishReason::Length | FinishReason::ContentFilter => told,
        }
    }

    /// Judges a choice that has ended: promised calls are there, and all calls are whole.
    pub(super) fn check(
        &self,
        promised: &'static str,
        fields: &UpstreamFields,
    ) -> Result<(), UnreadableReason> {
        // The end that callers have read does not promise the calls that came after it.
        let is_dropped = self.finish == Some(FinishReason::Stop) && self.named != self.finish;
        if is_dropped && self.has_calls() {
            return Err(UnreadableReason::ToolCalls(promised));
        }
        let finish = self.finish.unwrap_or(FinishReason::Stop);
        let is_kept = match finish {
            FinishReason::ToolCalls => !self.calls.is_empty(),
            FinishReason::FunctionCall => self.function.is_some(),
            FinishReason::Stop | FinishReason::Length | FinishReason::ContentFilter => true,
        };
        let is_named = self.function.as_ref().is_none_or(|call| !call.name.is_empty());
        if !is_kept || !is_named || self.calls.has_nameless() {
            return Err(UnreadableReason::ToolCalls(promised));
        }
        let is_cut = finish.is_cut();
        let is_whole = self.function.as_ref().is_none_or(|call| call.arguments.is_whole());
        if !is_whole && !is_cut {
            return Err(UnreadableReason::ToolCalls(fields.function_arguments));
        }
        let are_whole = self.calls.are_whole(is_cut);
        are_whole.then_some(()).ok_or(UnreadableReason::ToolCalls(fields.calls.arguments))
    }

    /// Sources, as many as are passed on of a choice.
    fn annotations(&mut self, nodes: Option<&Node<'_>>) -> Vec<Opaque> {
        let mut annotations = passthrough::annotations(nodes);
        // The limit is the choice's: else each chunk could bring as many again.
        annotations.truncate(passthrough::ANNOTATIONS_MAX.saturating_sub(self.n_annotations));
        self.n_annotations = self.n_annotations.saturating_add(annotations.len());
        annotations
    }

    /// Gain of the call in the older form. A name that comes with every piece is passed on once.
    fn function_call(
        &mut self,
        call: Option<&Node<'_>>,
        fields: &UpstreamFields,
    ) -> Result<Option<FunctionCallDelta>, UnreadableReason> {
        let call = object(call).ok_or(UnreadableReason::ToolCalls(fields.function_call))?;
        let Some(call) = call else { return Ok(None) };
        let name = call.get("name").and_then(Node::as_str).unwrap_or_default();
        let arguments = input_text(call.get("arguments"), fields.function_arguments)?;
        let says_nothing = name.is_empty() && arguments.trim_ascii().is_empty();
        if says_nothing && self.function.is_none() {
            return Ok(None);
        }
        if fields.calls.is_whole && name.is_empty() {
            return Err(UnreadableReason::ToolCalls(fields.function_name));
        }
        let is_known = self.function.is_some();
        let known = self.function.get_or_insert_default();
        let name = Some(name).filter(|name| !name.is_empty() && *name != known.name);
        let name = name.map(str::to_owned);
        known.name.push_str(name.as_deref().unwrap_or_default());
        let arguments = known.arguments.take(arguments);
        let rest = || self.finish.and_then(|finish| known.arguments.close(finish.is_cut()));
        let arguments = arguments.or_else(rest);
        let is_news = !is_known || name.is_some() || arguments.is_some();
        Ok(is_news.then_some(FunctionCallDelta { name, arguments }))
    }
}

/// A string, or parts, which are joined. Any part with a text is part of the answer; thoughts are not, and
/// references without a text are empty.
fn text(
    content: Option<&Node<'_>>,
    field: &'static str,
) -> Result<Option<String>, UnreadableReason> {
    if let Some(Node::String(text)) = content {
        return Ok(Some(text.as_ref().to_owned()));
    }
    let parts = list(content).ok_or(UnreadableReason::Content(field))?;
    if parts.is_empty() {
        return Ok(None);
    }
    let texts = parts.iter().map(|part| part_text(part).ok_or(UnreadableReason::Content(field)));
    texts.collect::<Result<_, _>>().map(Some)
}

/// Text of one part; `None` for a part of another kind.
fn part_text<'n>(part: &'n Node<'_>) -> Option<&'n str> {
    if let Node::String(text) = part {
        return Some(text);
    }
    let Some(part) = object(Some(part))? else { return Some("") };
    let kind = part.get("type").and_then(Node::as_str).unwrap_or("text");
    match (kind, part.get("text")) {
        ("thinking" | "reasoning" | "redacted_thinking", _) => Some(""),
        (_, Some(Node::String(text))) => Some(text),
        ("text" | "output_text" | "reference" | "tool_reference" | "citation", None) => Some(""),
        (_, _) => None,
    }
}

/// Speech of a message or a piece: base64 data and transcript, and its expiry, 0 if unknown.
fn audio(audio: Option<&Node<'_>>, field: &'static str) -> Result<Option<Audio>, UnreadableReason> {
    let Some(audio) = object(audio).ok_or(UnreadableReason::Content(field))? else {
        return Ok(None);
    };
    let text = |name| audio.get(name).and_then(Node::as_str).unwrap_or_default().to_owned();
    let expires_at = audio.get("expires_at").and_then(Node::as_number);
    let audio = Audio {
        data: text("data"),
        transcript: text("transcript"),
        expires_at: expires_at.and_then(|at| at.parse().ok()).unwrap_or_default(),
    };
    // The id of a voice is the provider's own, and says nothing of it.
    Ok(Some(audio).filter(|audio| *audio != Audio::default()))
}

/// Likelihoods of tokens; `None` if there are none of any side.
pub(super) fn logprobs(logprobs: Option<&Node<'_>>) -> Option<Logprobs> {
    logprobs.map(passthrough::logprobs).filter(|logprobs| *logprobs != Logprobs::default())
}
