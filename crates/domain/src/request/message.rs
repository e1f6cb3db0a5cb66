//! The turns of a conversation and what they hold.
//!
//! Kept as the caller sent them wherever a model could see the difference: developer and system are two roles,
//! several parts are never joined, arguments of a call are text even if they look like JSON. Folded only if no
//! model can: one bare text part is the same as a string. Pictures, recordings and documents are compared as
//! text; none is fetched or decoded here.

use std::collections::BTreeMap;

use super::Opaque;

/// Turn of a conversation.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// Speaker.
    pub role: Role,
    /// The speaker's name. A function's is the name that it was called by, and always there.
    pub name: Option<String>,
    /// Text or parts. Only an assistant's or a function's turn may have none.
    pub content: Option<Content>,
    /// Members that are not known here, by name. Only a model that accepts them gets them.
    pub extras: BTreeMap<String, Opaque>,
}

/// Speaker of a turn, with what only such a speaker's turn has. Developer and system are two roles:
/// providers treat them differently.
#[derive(Clone, PartialEq, Eq)]
pub enum Role {
    /// Instructions of the application.
    Developer,
    /// Instructions, in the older role.
    System,
    /// The person.
    User,
    /// The model.
    Assistant(AssistantMessage),
    /// Result of a tool call.
    Tool {
        /// The id of that call, as the caller sends it.
        call_id: String,
    },
    /// Result of a function call: the older form.
    Function,
}

impl AssistantMessage {
    /// Members of a message that are no part of the conversation: clients keep them with an answer, and hand
    /// them back with it. They go up only if the model accepts them by name.
    pub const METADATA: [&str; 8] = [
        "annotations",
        "id",
        "parsed",
        "provider_specific_fields",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "thinking_blocks",
    ];
}

impl Role {
    /// The name on the wire.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Developer => "developer",
            Self::System => "system",
            Self::User => "user",
            Self::Assistant(_) => "assistant",
            Self::Tool { .. } => "tool",
            Self::Function => "function",
        }
    }
}

/// Earlier turn of a model: all that it held beside its text.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct AssistantMessage {
    /// The refusal, if it was one.
    pub refusal: Option<String>,
    /// Audio that the provider keeps, by its id there.
    pub audio_id: Option<String>,
    /// Tools that it called, in order.
    pub tool_calls: Vec<ToolCall>,
    /// The function that it called: the older form.
    pub function_call: Option<FunctionCall>,
}

/// Sort of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// Takes JSON, by a schema.
    Function,
    /// Takes text, by a grammar or none.
    Custom,
}

impl ToolKind {
    /// The name on the wire.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Custom => "custom",
        }
    }
}

/// A tool call of an earlier turn.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Id of the call, as the caller sends it.
    pub id: String,
    /// Sort of the tool.
    pub kind: ToolKind,
    /// Name of the tool.
    pub name: String,
    /// A function's `arguments` or a custom tool's `input`: text, even if it looks like JSON.
    pub input: String,
}

/// A function call in the older form.
#[derive(Clone, PartialEq, Eq)]
pub struct FunctionCall {
    /// Name of the function.
    pub name: String,
    /// Text, even if it looks like JSON.
    pub arguments: String,
}

/// Content of a turn. One bare text part is the same as a string; several parts are never joined.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// A string, or one bare text part.
    Text(String),
    /// Two or more parts, or one that is not bare text.
    Parts(Vec<ContentPart>),
}

/// Part of a turn's content.
#[derive(Clone, PartialEq, Eq)]
pub struct ContentPart {
    /// The part itself.
    pub item: Item,
    /// Mark that makes the provider cache the prompt up to the part's end.
    pub cache_breakpoint: Option<CacheBreakpoint>,
    /// Members that are not known here, by name. Only a model that accepts them gets them.
    pub extras: BTreeMap<String, Opaque>,
}

/// Text, picture, recording or document of a part.
#[derive(Clone, PartialEq, Eq)]
pub enum Item {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Address, or the picture itself as a `data:` URL. Compared as text.
        url: String,
        /// Detail to look at it with; `None` leaves it to the model.
        detail: Option<ImageDetail>,
    },
    /// A recording.
    Audio {
        /// Base64.
        data: String,
        /// Encoding of the recording.
        format: RecordingFormat,
    },
    /// A document: kept by the provider, or sent along.
    File {
        /// Id at the provider.
        id: Option<String>,
        /// File name.
        name: Option<String>,
        /// Bytes, encoded as the caller sent them.
        data: Option<String>,
    },
    /// A refusal in an earlier turn of the model.
    Refusal(String),
}

named! {
    /// Detail that a picture is looked at with.
    ImageDetail {
        /// Coarsely.
        Low = "low",
        /// Closely.
        High = "high",
        /// At its own size.
        Original = "original",
    }
}

named! {
    /// Encoding of a recording in the prompt.
    RecordingFormat {
        /// Waveform.
        Wav = "wav",
        /// MPEG layer 3.
        Mp3 = "mp3",
    }
}

/// Mark that makes the provider cache the prompt up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheBreakpoint {
    /// Time that it is kept; `None` leaves it to the provider.
    pub ttl: Option<BreakpointTtl>,
}

named! {
    /// Time that the prompt up to a mark is cached.
    BreakpointTtl {
        /// Half an hour.
        HalfHour = "30m",
        /// Half a day.
        HalfDay = "12h",
    }
}

impl Message {
    /// Turn that consists of its content.
    #[must_use]
    pub const fn new(role: Role, content: Option<Content>) -> Self {
        Self { role, name: None, content, extras: BTreeMap::new() }
    }

    /// Leaves out the metadata of an earlier answer that a model does not accept by name.
    pub fn strip_metadata(&mut self, accepts: &[String]) {
        if matches!(self.role, Role::Assistant(_)) {
            self.extras.retain(|name, _value| {
                !AssistantMessage::METADATA.contains(&name.as_str()) || accepts.contains(name)
            });
        }
    }

    /// Parts of the content; empty if that is a string.
    #[must_use]
    pub fn parts(&self) -> &[ContentPart] {
        match &self.content {
            Some(Content::Parts(parts)) => parts,
            Some(Content::Text(_)) | None => &[],
        }
    }
}

impl ContentPart {
    /// True for only a text: a string is another spelling of it.
    #[must_use]
    pub fn is_bare_text(&self) -> bool {
        let Self { item, cache_breakpoint, extras } = self;
        matches!(item, Item::Text(_)) && cache_breakpoint.is_none() && extras.is_empty()
    }

    fn text(&self) -> Option<&str> {
        match &self.item {
            Item::Text(text) | Item::Refusal(text) => Some(text),
            Item::Image { .. } | Item::Audio { .. } | Item::File { .. } => None,
        }
    }
}

impl From<Item> for ContentPart {
    fn from(item: Item) -> Self {
        Self { item, cache_breakpoint: None, extras: BTreeMap::new() }
    }
}

impl From<String> for ContentPart {
    fn from(text: String) -> Self {
        Self::from(Item::Text(text))
    }
}

impl Content {
    /// Texts in order, refusals among them.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self {
            Self::Text(text) => (Some(text.as_str()), &[][..]),
            Self::Parts(parts) => (None, &parts[..]),
        };
        one.into_iter().chain(many.iter().filter_map(ContentPart::text))
    }
}
