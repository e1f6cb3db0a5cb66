//! Deltas of a choice on the wire, and the progress that decides what goes into them.
//!
//! Clients fold deltas by appending strings to strings, so that every member is of one of three
//! sorts:
//!
//! * text (content, refusal, reasoning, arguments, audio) goes out as it comes, and grows;
//! * identity (the role, a call's `id` and `type`, audio's `id`) goes out once, with the first
//!   delta of its part: a second time would be appended too, and double it;
//! * what cannot be appended (sources, which have no index; the expiry of audio, which is a number)
//!   goes out once, in the [`ClosingDelta`], when the choice is complete.
//!
//! The first delta of a part goes out even if it is empty: it shows that the part exists. A later empty one is
//! left out.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::OperationId;
use holdfast_domain::answer::{
    Audio, Choice, ChoiceDelta, FunctionCallDelta, Logprobs, ToolCallDelta,
};
use holdfast_domain::request::ToolKind;
use serde::Serialize;

use crate::chat::completion::{Json, audio_id};

/// Progress of an open choice: the parts that have begun, and the kind of each call by its index.
#[derive(Debug, Default)]
pub(super) struct ChoiceProgress {
    parts: BTreeSet<ChoicePart>,
    calls: BTreeMap<u32, ToolKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ChoicePart {
    Content,
    Refusal,
    Reasoning,
    FunctionCall,
    Audio,
    Logprobs,
    LogprobsOfContent,
    LogprobsOfRefusal,
}

impl ChoiceProgress {
    /// Progress of a choice whose opening chunk had content, if only an empty string.
    pub(super) fn with_content() -> Self {
        Self { parts: BTreeSet::from([ChoicePart::Content]), calls: BTreeMap::new() }
    }

    /// News of a piece, as a delta and its log-probabilities. `id` is the operation's: calls and
    /// audio derive their ids from it.
    pub(super) fn next_delta<'a>(
        &mut self,
        id: OperationId,
        piece: &'a ChoiceDelta,
    ) -> (DeltaFields<'a>, Option<&'a Logprobs>) {
        let function_call = piece.function_call.as_ref();
        let gained = DeltaFields {
            content: self.text_news(ChoicePart::Content, piece.content.as_deref()),
            refusal: self.text_news(ChoicePart::Refusal, piece.refusal.as_deref()),
            reasoning_content: self.text_news(ChoicePart::Reasoning, piece.reasoning.as_deref()),
            function_call: function_call.and_then(|call| self.function_call(call)),
            tool_calls: piece
                .tool_calls
                .iter()
                .filter_map(|call| self.tool_call(id, piece.index, call))
                .collect(),
            audio: piece.audio.as_ref().and_then(|audio| self.audio(id, piece.index, audio)),
        };
        (gained, piece.logprobs.as_ref().filter(|logprobs| self.logprobs_news(logprobs)))
    }

    /// A text that is not empty, or the first of its part.
    fn text_news<'a>(&mut self, part: ChoicePart, text: Option<&'a str>) -> Option<&'a str> {
        let text = text?;
        let is_first = self.parts.insert(part);
        if_new(is_first, Some(text))
    }

    fn function_call<'a>(&mut self, call: &'a FunctionCallDelta) -> Option<FunctionPiece<'a>> {
        let is_first = self.parts.insert(ChoicePart::FunctionCall);
        FunctionPiece::of(is_first, call.name.as_deref(), call.arguments.as_deref())
    }

    fn tool_call<'a>(
        &mut self,
        id: OperationId,
        choice: u32,
        call: &'a ToolCallDelta,
    ) -> Option<CallPiece<'a>> {
        let ToolCallDelta { index, kind, name, input, state: _ } = call;
        let known = self.calls.get(index).copied();
        let is_first = known.is_none();
        // The first piece decides: later ones often do not repeat the kind, and an id has gone out with it.
        let kind = known.or(*kind).unwrap_or(ToolKind::Function);
        self.calls.insert(*index, kind);
        let (name, input) = (name.as_deref(), input.as_deref());
        let (function, custom) = match kind {
            ToolKind::Function => (FunctionPiece::of(is_first, name, input), None),
            ToolKind::Custom => (None, CustomPiece::of(is_first, name, input)),
        };
        (function.is_some() || custom.is_some()).then(|| CallPiece {
            index: *index,
            id: is_first.then(|| id.tool_call_id([choice, *index])),
            kind: is_first.then(|| kind.label()),
            function,
            custom,
        })
    }

    fn audio<'a>(
        &mut self,
        id: OperationId,
        choice: u32,
        audio: &'a Audio,
    ) -> Option<AudioPiece<'a>> {
        let is_first = self.parts.insert(ChoicePart::Audio);
        let piece = AudioPiece {
            id: is_first.then(|| audio_id(id, choice)),
            // A number cannot be appended: it goes out at the end.
            expires_at: None,
            data: if_new(is_first, Some(&audio.data)),
            transcript: if_new(is_first, Some(&audio.transcript)),
        };
        (is_first || piece.data.is_some() || piece.transcript.is_some()).then_some(piece)
    }

    /// True if a list begins or gains a token.
    fn logprobs_news(&mut self, logprobs: &Logprobs) -> bool {
        let Logprobs { content, refusal } = logprobs;
        let lists =
            [(ChoicePart::LogprobsOfContent, content), (ChoicePart::LogprobsOfRefusal, refusal)];
        let is_first = self.parts.insert(ChoicePart::Logprobs);
        // A fold and no `any`: each list has to be marked as begun.
        lists.into_iter().fold(is_first, |is_news, (part, list)| {
            let says = |list: &Vec<_>| self.parts.insert(part) || !list.is_empty();
            list.as_ref().is_some_and(says) || is_news
        })
    }
}

/// A text that goes out: the first one even if empty or absent, a later one only if it is not
/// empty.
fn if_new(is_first: bool, text: Option<&str>) -> Option<&str> {
    let text = text.unwrap_or_default();
    (is_first || !text.is_empty()).then_some(text)
}

/// The delta that opens a choice.
#[derive(Serialize)]
pub(super) struct OpeningDelta<'a> {
    pub(super) role: &'static str,
    pub(super) content: Option<&'a str>,
    pub(super) refusal: Option<&'a str>,
}

/// A delta, empty if a choice ends.
#[derive(Default, Serialize)]
pub(super) struct DeltaFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_call: Option<FunctionPiece<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<CallPiece<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) audio: Option<AudioPiece<'a>>,
}

impl DeltaFields<'_> {
    pub(super) fn is_empty(&self) -> bool {
        let Self { content, refusal, reasoning_content, function_call, tool_calls, audio } = self;
        [content, refusal, reasoning_content].into_iter().all(Option::is_none)
            && function_call.is_none()
            && tool_calls.is_empty()
            && audio.is_none()
    }
}

/// The delta of a complete choice: sources and the expiry of audio, in Unix seconds, which clients
/// could not append.
#[derive(Serialize)]
pub(super) struct ClosingDelta<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<AudioPiece<'a>>,
}

impl<'a> ClosingDelta<'a> {
    pub(super) fn of(choice: &'a Choice) -> Self {
        let expires_at = |audio: &Audio| AudioPiece {
            id: None,
            expires_at: Some(audio.expires_at),
            data: None,
            transcript: None,
        };
        Self {
            annotations: choice.annotations.iter().map(Json).collect(),
            audio: choice.audio.as_ref().map(expires_at),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.annotations.is_empty() && self.audio.is_none()
    }
}

#[derive(Serialize)]
pub(super) struct CallPiece<'a> {
    pub(super) index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function: Option<FunctionPiece<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) custom: Option<CustomPiece<'a>>,
}

#[derive(Serialize)]
pub(super) struct FunctionPiece<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<&'a str>,
}

impl<'a> FunctionPiece<'a> {
    fn of(is_first: bool, name: Option<&'a str>, arguments: Option<&'a str>) -> Option<Self> {
        let (name, arguments) = (if_new(is_first, name), if_new(is_first, arguments));
        (name.is_some() || arguments.is_some()).then_some(Self { name, arguments })
    }
}

#[derive(Serialize)]
pub(super) struct CustomPiece<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<&'a str>,
}

impl<'a> CustomPiece<'a> {
    fn of(is_first: bool, name: Option<&'a str>, input: Option<&'a str>) -> Option<Self> {
        let (name, input) = (if_new(is_first, name), if_new(is_first, input));
        (name.is_some() || input.is_some()).then_some(Self { name, input })
    }
}

#[derive(Serialize)]
pub(super) struct AudioPiece<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) transcript: Option<&'a str>,
}
