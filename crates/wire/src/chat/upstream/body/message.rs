//! The turns of a conversation as a provider is sent them.

use holdfast_domain::request::{
    AssistantMessage, CacheBreakpoint, Content, ContentPart, FunctionCall, Item, Message, Role,
    ToolCall, ToolKind,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{SingleMember, all, put, put_extras};

/// A turn. `content` is always there, null if the turn is empty: some servers insist on it.
pub(super) struct MessageBody<'a>(pub(super) &'a Message);

impl Serialize for MessageBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Message { role, name, content, extras } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", role.label())?;
        put(&mut map, "name", name.as_ref())?;
        map.serialize_entry("content", &content.as_ref().map(ContentBody))?;
        match role {
            Role::Assistant(reply) => put_reply(&mut map, reply)?,
            Role::Tool { call_id } => map.serialize_entry("tool_call_id", call_id)?,
            Role::Developer | Role::System | Role::User | Role::Function => {}
        }
        put_extras(&mut map, extras)?;
        map.end()
    }
}

fn put_reply<M: SerializeMap>(map: &mut M, reply: &AssistantMessage) -> Result<(), M::Error> {
    let AssistantMessage { refusal, audio_id, tool_calls, function_call } = reply;
    put(map, "refusal", refusal.as_ref())?;
    put(map, "audio", audio_id.as_ref().map(|id| SingleMember("id", id)))?;
    put(map, "tool_calls", (!tool_calls.is_empty()).then(|| all(tool_calls, ToolCallBody)))?;
    let function_call = function_call.as_ref().map(|FunctionCall { name, arguments }| CallFields {
        kind: ToolKind::Function,
        name,
        input: arguments,
    });
    put(map, "function_call", function_call)
}

struct ToolCallBody<'a>(&'a ToolCall);

impl Serialize for ToolCallBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolCall { id, kind, name, input } = self.0;
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("id", id)?;
        map.serialize_entry("type", kind.label())?;
        map.serialize_entry(kind.label(), &CallFields { kind: *kind, name, input })?;
        map.end()
    }
}

struct CallFields<'a> {
    kind: ToolKind,
    name: &'a str,
    input: &'a str,
}

impl Serialize for CallFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let input = match self.kind {
            ToolKind::Function => "arguments",
            ToolKind::Custom => "input",
        };
        serializer.collect_map([("name", self.name), (input, self.input)])
    }
}

struct ContentBody<'a>(&'a Content);

impl Serialize for ContentBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Content::Text(text) => text.serialize(serializer),
            Content::Parts(parts) => all(parts, PartBody).serialize(serializer),
        }
    }
}

struct PartBody<'a>(&'a ContentPart);

impl Serialize for PartBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.0.item {
            Item::Text(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Item::Refusal(text) => {
                map.serialize_entry("type", "refusal")?;
                map.serialize_entry("refusal", text)?;
            }
            Item::Image { url, detail } => {
                map.serialize_entry("type", "image_url")?;
                // `auto` was read as none, and is not sent.
                let detail = detail.map(|detail| ("detail", detail.label()));
                map.serialize_entry("image_url", &TextMembers([Some(("url", url)), detail]))?;
            }
            Item::Audio { data, format } => {
                map.serialize_entry("type", "input_audio")?;
                let format = Some(("format", format.label()));
                map.serialize_entry("input_audio", &TextMembers([Some(("data", data)), format]))?;
            }
            Item::File { id, name, data } => {
                map.serialize_entry("type", "file")?;
                let id = id.as_deref().map(|id| ("file_id", id));
                let name = name.as_deref().map(|name| ("filename", name));
                let data = data.as_deref().map(|data| ("file_data", data));
                map.serialize_entry("file", &TextMembers([id, name, data]))?;
            }
        }
        put(&mut map, "prompt_cache_breakpoint", self.0.cache_breakpoint.map(BreakpointBody))?;
        put_extras(&mut map, &self.0.extras)?;
        map.end()
    }
}

/// An object of texts, those that there are.
struct TextMembers<'a, const N: usize>([Option<(&'static str, &'a str)>; N]);

impl<const N: usize> Serialize for TextMembers<'_, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().flatten().copied())
    }
}

struct BreakpointBody(CacheBreakpoint);

impl Serialize for BreakpointBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ttl = self.0.ttl.map(|ttl| ("ttl", ttl.label()));
        TextMembers([Some(("mode", "explicit")), ttl]).serialize(serializer)
    }
}
