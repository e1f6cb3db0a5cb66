//! Debug output of answers: lengths, never their text. By hand, because a derived one would put answers into
//! the first log line or panic that shows one. Not by fields of `Private`, as for requests.

use super::{Audio, Choice, ChoiceDelta, FunctionCall, FunctionCallDelta, ToolCall, ToolCallDelta};
use crate::debug_as;

debug_as!(
    ChoiceDelta as it: "ChoiceDelta({}: content {:?}, refusal {:?}, finish {:?})",
    it.index, length(&it.content), length(&it.refusal), it.finish,
);

debug_as!(
    Choice as it: "Choice(content {:?}, refusal {:?}, finish {:?})",
    length(&it.content), length(&it.refusal), it.finish,
);

debug_as!(
    ToolCallDelta as it: "ToolCallDelta({}: {:?}, name {:?}, input {:?})",
    it.index, it.kind, length(&it.name), length(&it.input),
);

debug_as!(
    FunctionCallDelta as it: "FunctionCallDelta(name {:?}, arguments {:?})",
    length(&it.name), length(&it.arguments),
);

debug_as!(ToolCall as it: "ToolCall({:?}, name {}, input {})", it.kind, it.name.len(), it.input.len());

debug_as!(FunctionCall as it: "FunctionCall(name {}, arguments {})", it.name.len(), it.arguments.len());

debug_as!(Audio as it: "Audio(data {}, transcript {})", it.data.len(), it.transcript.len());

fn length(text: &Option<String>) -> Option<usize> {
    text.as_ref().map(String::len)
}
