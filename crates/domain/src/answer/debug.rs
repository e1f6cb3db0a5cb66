//! Debug output of answers: lengths, never what was said. By hand, because a derived one would put
//! answers into the first log line or panic that shows one. Not by fields of `Private`, as for
//! requests.

use std::fmt;

use super::{
    Audio, Choice, ChoiceDelta, FinishReason, FunctionCall, FunctionCallDelta, ToolCall,
    ToolCallDelta,
};

impl fmt::Debug for ChoiceDelta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChoiceDelta({}: ", self.index)?;
        said(f, &self.content, &self.refusal, self.finish)
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Choice(")?;
        said(f, &self.content, &self.refusal, self.finish)
    }
}

impl fmt::Debug for ToolCallDelta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [name, input] = [&self.name, &self.input].map(length);
        write!(f, "ToolCallDelta({}: {:?}, name {name:?}, input {input:?})", self.index, self.kind)
    }
}

impl fmt::Debug for FunctionCallDelta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [name, arguments] = [&self.name, &self.arguments].map(length);
        write!(f, "FunctionCallDelta(name {name:?}, arguments {arguments:?})")
    }
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, input) = (self.name.len(), self.input.len());
        write!(f, "ToolCall({:?}, name {name}, input {input})", self.kind)
    }
}

impl fmt::Debug for FunctionCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, arguments) = (self.name.len(), self.arguments.len());
        write!(f, "FunctionCall(name {name}, arguments {arguments})")
    }
}

impl fmt::Debug for Audio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Audio(data {}, transcript {})", self.data.len(), self.transcript.len())
    }
}

fn said(
    f: &mut fmt::Formatter<'_>,
    content: &Option<String>,
    refusal: &Option<String>,
    finish: Option<FinishReason>,
) -> fmt::Result {
    let [content, refusal] = [content, refusal].map(length);
    write!(f, "content {content:?}, refusal {refusal:?}, finish {finish:?})")
}

fn length(text: &Option<String>) -> Option<usize> {
    text.as_ref().map(String::len)
}
