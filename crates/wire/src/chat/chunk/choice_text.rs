//! The texts of an answer that grow, and the delta that adds to one of them alone.

use super::delta::{AudioPiece, CallPiece, CustomPiece, DeltaFields, FunctionPiece};

/// Address of a text that grows: the index of its choice, and the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChoiceText {
    choice: u32,
    text: TextField,
}

/// Field of a choice that holds a text; calls by their index within the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TextField {
    Content,
    Refusal,
    Reasoning,
    /// `function_call.arguments`, the older form.
    Arguments,
    /// `tool_calls[i].function.arguments`.
    CallArguments(u32),
    /// `tool_calls[i].custom.input`.
    CallInput(u32),
    AudioData,
    AudioTranscript,
}

impl ChoiceText {
    pub(super) const fn choice(self) -> u32 {
        self.choice
    }

    /// The delta that appends `more` to this text, and has no other effect.
    pub(super) fn to_delta(self, more: &str) -> DeltaFields<'_> {
        let mut gained = DeltaFields::default();
        let call =
            |index, function, custom| CallPiece { index, id: None, kind: None, function, custom };
        let function = FunctionPiece { name: None, arguments: Some(more) };
        let audio = AudioPiece { id: None, expires_at: None, data: None, transcript: None };
        match self.text {
            TextField::Content => gained.content = Some(more),
            TextField::Refusal => gained.refusal = Some(more),
            TextField::Reasoning => gained.reasoning_content = Some(more),
            TextField::Arguments => gained.function_call = Some(function),
            TextField::CallArguments(index) => {
                gained.tool_calls = vec![call(index, Some(function), None)];
            }
            TextField::CallInput(index) => {
                let custom = CustomPiece { name: None, input: Some(more) };
                gained.tool_calls = vec![call(index, None, Some(custom))];
            }
            TextField::AudioData => gained.audio = Some(AudioPiece { data: Some(more), ..audio }),
            TextField::AudioTranscript => {
                gained.audio = Some(AudioPiece { transcript: Some(more), ..audio });
            }
        }
        gained
    }
}

impl<'a> DeltaFields<'a> {
    /// The only text that this adds to and the addition, if it has no other effect.
    pub(super) fn text(&self, choice: u32) -> Option<(ChoiceText, &'a str)> {
        let Self { content, refusal, reasoning_content, function_call, tool_calls, audio } = self;
        let (text, more) = match (content, refusal, reasoning_content, function_call, audio) {
            (None, None, None, None, None) => tool_calls.first().and_then(call)?,
            _ if !tool_calls.is_empty() => return None,
            (Some(more), None, None, None, None) => (TextField::Content, *more),
            (None, Some(more), None, None, None) => (TextField::Refusal, *more),
            (None, None, Some(more), None, None) => (TextField::Reasoning, *more),
            (None, None, None, Some(call), None) => (TextField::Arguments, arguments(call)?),
            (None, None, None, None, Some(audio)) => audio_text(audio)?,
            _ => return None,
        };
        // An empty text is no growth: such a chunk opens something, and is told as it is.
        let is_one = tool_calls.len() < 2 && !more.is_empty();
        is_one.then_some((ChoiceText { choice, text }, more))
    }
}

fn call<'a>(call: &CallPiece<'a>) -> Option<(TextField, &'a str)> {
    let CallPiece { index, id, kind, function, custom } = call;
    // The first piece of a call does more than append.
    if id.is_some() || kind.is_some() {
        return None;
    }
    match (function, custom) {
        (Some(function), None) => Some((TextField::CallArguments(*index), arguments(function)?)),
        (None, Some(CustomPiece { name: None, input: Some(more) })) => {
            Some((TextField::CallInput(*index), more))
        }
        (_, _) => None,
    }
}

fn arguments<'a>(function: &FunctionPiece<'a>) -> Option<&'a str> {
    let FunctionPiece { name, arguments } = function;
    if name.is_some() { None } else { *arguments }
}

fn audio_text<'a>(audio: &AudioPiece<'a>) -> Option<(TextField, &'a str)> {
    let AudioPiece { id, expires_at, data, transcript } = audio;
    if id.is_some() || expires_at.is_some() {
        return None;
    }
    match (data, transcript) {
        (Some(more), None) => Some((TextField::AudioData, more)),
        (None, Some(more)) => Some((TextField::AudioTranscript, more)),
        (_, _) => None,
    }
}
