//! The turns of a conversation and what they hold.

use std::collections::BTreeMap;

use super::Opaque;

/// One turn.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The speaker's name. A function's is the name that it was called by, and always there.
    pub name: Option<String>,
    /// What is said. Only an assistant's or a function's turn may say nothing.
    pub content: Option<Content>,
}

/// Who speaks, and what only such a speaker's turn has. Developer and system are two roles:
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
    /// What a tool call came to.
    Tool {
        /// The id of that call, as the caller sends it.
        call_id: String,
    },
    /// What a function call came to: the older form.
    Function,
}

impl AssistantMessage {
    /// Members of a message that are no part of the conversation: what clients keep beside an answer, and
    /// hand back with it. They go up only where the model accepts them by name.
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

    /// Leaves out the metadata that a model does not accept by name.
    pub fn strip_metadata(&mut self, accepts: &[String]) {
        self.extras.retain(|name, _value| {
            !Self::METADATA.contains(&name.as_str()) || accepts.contains(name)
        });
    }
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

/// What a model's earlier turn held beside its text.
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
    /// Members that are not known here, by name.
    pub extras: BTreeMap<String, Opaque>,
}

/// Which sort of tool.
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
    /// Its id, as the caller sends it.
    pub id: String,
    /// Which sort of tool.
    pub kind: ToolKind,
    /// Which tool.
    pub name: String,
    /// A function's `arguments` or a custom tool's `input`: text, whatever it looks like.
    pub input: String,
}

/// A function call in the older form.
#[derive(Clone, PartialEq, Eq)]
pub struct FunctionCall {
    /// Which function.
    pub name: String,
    /// Text, whatever it looks like.
    pub arguments: String,
}

/// What a turn says. One bare text part is the same as a string; several parts are never joined.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// A string, or one bare text part.
    Text(String),
    /// Two or more parts, or one that is not bare text.
    Parts(Vec<ContentPart>),
}

/// A part of what a turn says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentPart {
    /// What it is.
    pub item: Item,
    /// Whether the provider is asked to cache the prompt up to its end.
    pub cache_breakpoint: Option<CacheBreakpoint>,
}

/// What a part is.
#[derive(Clone, PartialEq, Eq)]
pub enum Item {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Where it is, or itself as a `data:` URL. Compared as text.
        url: String,
        /// How closely to look; `None` leaves it to the model.
        detail: Option<ImageDetail>,
    },
    /// A recording.
    Audio {
        /// Base64.
        data: String,
        /// How it is encoded.
        format: RecordingFormat,
    },
    /// A document: kept by the provider, or sent along.
    File {
        /// Its id at the provider.
        id: Option<String>,
        /// Its name.
        name: Option<String>,
        /// Its bytes, encoded.
        data: Option<String>,
    },
    /// A refusal in an earlier turn of the model.
    Refusal(String),
}

named! {
    /// How closely a picture is looked at.
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
    /// How a recording in the prompt is encoded.
    RecordingFormat {
        /// Waveform.
        Wav = "wav",
        /// MPEG layer 3.
        Mp3 = "mp3",
    }
}

/// A mark that asks the provider to cache the prompt up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheBreakpoint {
    /// For how long; `None` leaves it to the provider.
    pub ttl: Option<BreakpointTtl>,
}

named! {
    /// How long the prompt up to a mark is cached.
    BreakpointTtl {
        /// Half an hour.
        HalfHour = "30m",
        /// Half a day.
        HalfDay = "12h",
    }
}

impl Message {
    /// The parts of its content; none where that is a string.
    #[must_use]
    pub fn parts(&self) -> &[ContentPart] {
        match &self.content {
            Some(Content::Parts(parts)) => parts,
            Some(Content::Text(_)) | None => &[],
        }
    }
}

impl ContentPart {
    fn text(&self) -> Option<&str> {
        match &self.item {
            Item::Text(text) | Item::Refusal(text) => Some(text),
            Item::Image { .. } | Item::Audio { .. } | Item::File { .. } => None,
        }
    }
}

impl From<String> for ContentPart {
    fn from(text: String) -> Self {
        Self { item: Item::Text(text), cache_breakpoint: None }
    }
}

impl Content {
    /// Its texts, in order, refusals among them.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self {
            Self::Text(text) => (Some(text.as_str()), &[][..]),
            Self::Parts(parts) => (None, &parts[..]),
        };
        one.into_iter().chain(many.iter().filter_map(ContentPart::text))
    }
}
