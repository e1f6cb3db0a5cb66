//! Debug output of a request and its pieces: counts and lengths, never text. By hand, because a derived one
//! would put prompts into the first log line or panic that shows a request. Not by fields of `Private`: readers
//! and adapters write and match these texts in too many places.

use std::fmt;

use super::{
    AssistantMessage, Content, ContentPart, CostFactors, CustomTool, Function, FunctionCall,
    FunctionChoice, Item, JsonSchema, Message, Request, Role, ToolCall, ToolChoice, Voice,
};
use crate::debug_as;

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CostFactors { messages, prompt_bytes, .. } = self.cost_factors();
        write!(f, "Request({}, {messages} messages, {prompt_bytes} bytes)", self.model)
    }
}

debug_as!(Message as it: "Message({:?}, name {:?}, {:?})", it.role, length(it.name.as_deref()), it.content);

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Assistant(reply) => reply.fmt(f),
            Self::Developer | Self::System | Self::User | Self::Tool { .. } | Self::Function => {
                f.write_str(self.label())
            }
        }
    }
}

debug_as!(
    AssistantMessage as it: "assistant(refusal {:?}, {:?}, {:?})",
    length(it.refusal.as_deref()), it.tool_calls, it.function_call,
);

debug_as!(ToolCall as it: "ToolCall({:?}, name {}, input {})", it.kind, it.name.len(), it.input.len());

debug_as!(FunctionCall as it: "FunctionCall(name {}, arguments {})", it.name.len(), it.arguments.len());

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Parts(parts) => write!(f, "Parts({parts:?})"),
        }
    }
}

// Not the extras: their names are the caller's words.
debug_as!(
    ContentPart as it: "ContentPart {{ item: {:?}, cache_breakpoint: {:?} }}",
    it.item, it.cache_breakpoint,
);

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Image { url, .. } => write!(f, "Image({} bytes)", url.len()),
            Self::Audio { data, .. } => write!(f, "Audio({} bytes)", data.len()),
            Self::File { data, .. } => write!(f, "File({:?} bytes)", length(data.as_deref())),
            Self::Refusal(text) => write!(f, "Refusal({} bytes)", text.len()),
        }
    }
}

debug_as!(Function as it: "Function(name {}, {:?})", it.name.len(), it.parameters);

debug_as!(CustomTool as it: "CustomTool(name {}, {:?})", it.name.len(), it.format);

impl fmt::Debug for ToolChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mode(mode) => write!(f, "{mode:?}"),
            Self::Named { kind, name } => write!(f, "Named({kind:?}, name {})", name.len()),
            Self::Allowed { mode, tools } => write!(f, "Allowed({mode:?}, {tools:?})"),
        }
    }
}

impl fmt::Debug for FunctionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Auto => f.write_str("Auto"),
            Self::Named(name) => write!(f, "Named(name {})", name.len()),
        }
    }
}

debug_as!(JsonSchema as it: "JsonSchema(name {}, {:?})", it.name.len(), it.schema);

impl fmt::Debug for Voice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "Named(name {})", name.len()),
            Self::Custom(id) => write!(f, "Custom(id {})", id.len()),
        }
    }
}

fn length(text: Option<&str>) -> Option<usize> {
    text.map(str::len)
}
