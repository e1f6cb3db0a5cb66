//! The turns of a conversation as a provider is sent them.

use holdfast_domain::request::{
    CacheBreakpoint, Content, FunctionCall, Item, Message, Part, Reply, Role, ToolCall, ToolKind,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Json, One, all, put};

/// One turn. Its content is always there, null where it says nothing: some servers want it.
pub(super) struct Turn<'a>(pub(super) &'a Message);

impl Serialize for Turn<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Message { role, name, content } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", role.label())?;
        put(&mut map, "name", name.as_ref())?;
        map.serialize_entry("content", &content.as_ref().map(Said))?;
        match role {
            Role::Assistant(reply) => put_reply(&mut map, reply)?,
            Role::Tool { call_id } => map.serialize_entry("tool_call_id", call_id)?,
            Role::Developer | Role::System | Role::User | Role::Function => {}
        }
        map.end()
    }
}

fn put_reply<M: SerializeMap>(map: &mut M, reply: &Reply) -> Result<(), M::Error> {
    let Reply { refusal, audio_id, tool_calls, function_call, extras } = reply;
    put(map, "refusal", refusal.as_ref())?;
    put(map, "audio", audio_id.as_ref().map(|id| One("id", id)))?;
    put(map, "tool_calls", (!tool_calls.is_empty()).then(|| all(tool_calls, Call)))?;
    let function_call = function_call.as_ref().map(|FunctionCall { name, arguments }| Called {
        kind: ToolKind::Function,
        name,
        input: arguments,
    });
    put(map, "function_call", function_call)?;
    extras.iter().try_for_each(|(name, value)| map.serialize_entry(name, &Json(value)))
}

struct Call<'a>(&'a ToolCall);

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolCall { id, kind, name, input } = self.0;
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("id", id)?;
        map.serialize_entry("type", kind.label())?;
        map.serialize_entry(kind.label(), &Called { kind: *kind, name, input })?;
        map.end()
    }
}

struct Called<'a> {
    kind: ToolKind,
    name: &'a str,
    input: &'a str,
}

impl Serialize for Called<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let input = match self.kind {
            ToolKind::Function => "arguments",
            ToolKind::Custom => "input",
        };
        serializer.collect_map([("name", self.name), (input, self.input)])
    }
}

struct Said<'a>(&'a Content);

impl Serialize for Said<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Content::Text(text) => text.serialize(serializer),
            Content::Parts(parts) => all(parts, Piece).serialize(serializer),
        }
    }
}

struct Piece<'a>(&'a Part);

impl Serialize for Piece<'_> {
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
                let detail = detail.map(|detail| ("detail", detail.label()));
                map.serialize_entry("image_url", &Pairs([Some(("url", url)), detail]))?;
            }
            Item::Audio { data, format } => {
                map.serialize_entry("type", "input_audio")?;
                let format = Some(("format", format.label()));
                map.serialize_entry("input_audio", &Pairs([Some(("data", data)), format]))?;
            }
            Item::File { id, name, data } => {
                map.serialize_entry("type", "file")?;
                let id = id.as_deref().map(|id| ("file_id", id));
                let name = name.as_deref().map(|name| ("filename", name));
                let data = data.as_deref().map(|data| ("file_data", data));
                map.serialize_entry("file", &Pairs([id, name, data]))?;
            }
        }
        put(&mut map, "prompt_cache_breakpoint", self.0.cache_breakpoint.map(Mark))?;
        map.end()
    }
}

/// An object of texts, those that there are.
struct Pairs<'a, const N: usize>([Option<(&'static str, &'a str)>; N]);

impl<const N: usize> Serialize for Pairs<'_, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().flatten().copied())
    }
}

struct Mark(CacheBreakpoint);

impl Serialize for Mark {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ttl = self.0.ttl.map(|ttl| ("ttl", ttl.label()));
        Pairs([Some(("mode", "explicit")), ttl]).serialize(serializer)
    }
}
