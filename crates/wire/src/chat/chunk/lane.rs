//! The texts of an answer that grow, and the delta that adds to one of them alone.

use super::delta::{AudioPiece, CallPiece, CustomPiece, FunctionPiece, Gained};

/// One text of one choice, which pieces are added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    choice: u32,
    text: Text,
}

/// Which text of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Text {
    Content,
    Refusal,
    Reasoning,
    /// Of the function call in the older form.
    Arguments,
    /// Of the function that this tool call calls.
    CallArguments(u32),
    /// Of the custom tool that this tool call calls.
    CallInput(u32),
    AudioData,
    AudioTranscript,
}

impl Lane {
    pub(super) const fn choice(self) -> u32 {
        self.choice
    }

    /// The delta that adds this.
    pub(super) fn gained(self, more: &str) -> Gained<'_> {
        let mut gained = Gained::default();
        let call =
            |index, function, custom| CallPiece { index, id: None, kind: None, function, custom };
        let function = FunctionPiece { name: None, arguments: Some(more) };
        let audio = AudioPiece { id: None, expires_at: None, data: None, transcript: None };
        match self.text {
            Text::Content => gained.content = Some(more),
            Text::Refusal => gained.refusal = Some(more),
            Text::Reasoning => gained.reasoning_content = Some(more),
            Text::Arguments => gained.function_call = Some(function),
            Text::CallArguments(index) => {
                gained.tool_calls = vec![call(index, Some(function), None)];
            }
            Text::CallInput(index) => {
                let custom = CustomPiece { name: None, input: Some(more) };
                gained.tool_calls = vec![call(index, None, Some(custom))];
            }
            Text::AudioData => gained.audio = Some(AudioPiece { data: Some(more), ..audio }),
            Text::AudioTranscript => {
                gained.audio = Some(AudioPiece { transcript: Some(more), ..audio });
            }
        }
        gained
    }
}

impl<'a> Gained<'a> {
    /// The one text that this adds to and what it adds, where it does nothing else.
    pub(super) fn text(&self, choice: u32) -> Option<(Lane, &'a str)> {
        let Self { content, refusal, reasoning_content, function_call, tool_calls, audio } = self;
        let (text, more) = match (content, refusal, reasoning_content, function_call, audio) {
            (None, None, None, None, None) => tool_calls.first().and_then(call)?,
            _ if !tool_calls.is_empty() => return None,
            (Some(more), None, None, None, None) => (Text::Content, *more),
            (None, Some(more), None, None, None) => (Text::Refusal, *more),
            (None, None, Some(more), None, None) => (Text::Reasoning, *more),
            (None, None, None, Some(call), None) => (Text::Arguments, arguments(call)?),
            (None, None, None, None, Some(audio)) => spoken(audio)?,
            _ => return None,
        };
        let is_one = tool_calls.len() < 2 && !more.is_empty();
        is_one.then_some((Lane { choice, text }, more))
    }
}

fn call<'a>(call: &CallPiece<'a>) -> Option<(Text, &'a str)> {
    let CallPiece { index, id, kind, function, custom } = call;
    if id.is_some() || kind.is_some() {
        return None;
    }
    match (function, custom) {
        (Some(function), None) => Some((Text::CallArguments(*index), arguments(function)?)),
        (None, Some(CustomPiece { name: None, input: Some(more) })) => {
            Some((Text::CallInput(*index), more))
        }
        (_, _) => None,
    }
}

fn arguments<'a>(function: &FunctionPiece<'a>) -> Option<&'a str> {
    let FunctionPiece { name, arguments } = function;
    if name.is_some() { None } else { *arguments }
}

fn spoken<'a>(audio: &AudioPiece<'a>) -> Option<(Text, &'a str)> {
    let AudioPiece { id, expires_at, data, transcript } = audio;
    if id.is_some() || expires_at.is_some() {
        return None;
    }
    match (data, transcript) {
        (Some(more), None) => Some((Text::AudioData, more)),
        (None, Some(more)) => Some((Text::AudioTranscript, more)),
        (_, _) => None,
    }
}
