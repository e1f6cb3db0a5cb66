//! Debug output of a request and its pieces: counts and lengths, never what was asked. By hand,
//! because a derived one would put prompts into the first log line or panic that shows a request. Not
//! by fields of `Private`: readers and adapters write and match these texts in too many places.

use std::fmt;

use super::{
    AssistantMessage, Content, ContentPart, CostFactors, CustomTool, Function, FunctionCall,
    FunctionChoice, Item, JsonSchema, Message, Request, Role, ToolCall, ToolChoice, Voice,
};

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CostFactors { messages, prompt_bytes, .. } = self.cost_factors();
        write!(f, "Request({}, {messages} messages, {prompt_bytes} bytes)", self.model)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = length(self.name.as_deref());
        write!(f, "Message({:?}, name {name:?}, {:?})", self.role, self.content)
    }
}

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

impl fmt::Debug for AssistantMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusal = length(self.refusal.as_deref());
        let (calls, function) = (&self.tool_calls, &self.function_call);
        write!(f, "assistant(refusal {refusal:?}, {calls:?}, {function:?})")
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

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Parts(parts) => write!(f, "Parts({parts:?})"),
        }
    }
}

impl fmt::Debug for ContentPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the extras: their names are the caller's words.
        let Self { item, cache_breakpoint, extras: _ } = self;
        let mut shown = f.debug_struct("ContentPart");
        shown.field("item", item).field("cache_breakpoint", cache_breakpoint).finish()
    }
}

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

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function(name {}, {:?})", self.name.len(), self.parameters)
    }
}

impl fmt::Debug for CustomTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CustomTool(name {}, {:?})", self.name.len(), self.format)
    }
}

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

impl fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonSchema(name {}, {:?})", self.name.len(), self.schema)
    }
}

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
