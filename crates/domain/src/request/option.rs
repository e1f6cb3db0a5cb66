//! Options of a request beside the conversation and its tools.

use super::Opaque;

/// Shape of the answer. Plain text is the absence of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseFormat {
    /// Any JSON object.
    JsonObject,
    /// JSON by a schema.
    JsonSchema(JsonSchema),
}

/// Schema that an answer keeps to.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonSchema {
    /// Letters, digits, `_` and `-`: 1 to 64.
    pub name: String,
    /// Purpose, in words for the model.
    pub description: Option<String>,
    /// The schema itself.
    pub schema: Option<Opaque>,
    /// True if the model must keep to it.
    pub strict: Option<bool>,
}

named! {
    /// Kinds of content in the answer: a set. An absent one means text alone.
    Modalities {
        /// Text alone.
        Text = "text",
        /// Audio alone.
        Audio = "audio",
        /// Both.
        Both = "text+audio",
    }
}

/// Audio in the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audio {
    /// The voice.
    pub voice: Voice,
    /// The encoding.
    pub format: AudioFormat,
}

/// A voice.
#[derive(Clone, PartialEq, Eq)]
pub enum Voice {
    /// Voice that everybody has, by name.
    Named(String),
    /// Voice that the provider keeps for an account, by its id there.
    Custom(String),
}

named! {
    /// Encoding of audio in an answer.
    AudioFormat {
        /// Waveform.
        Wav = "wav",
        /// Advanced audio coding.
        Aac = "aac",
        /// MPEG layer 3.
        Mp3 = "mp3",
        /// Lossless.
        Flac = "flac",
        /// Opus.
        Opus = "opus",
        /// Raw samples.
        Pcm16 = "pcm16",
    }
}

named! {
    /// Effort that the model spends on thinking.
    ReasoningEffort {
        /// Not at all.
        None = "none",
        /// As little as can be.
        Minimal = "minimal",
        /// A little.
        Low = "low",
        /// As usual.
        Medium = "medium",
        /// Long.
        High = "high",
        /// Longer.
        Xhigh = "xhigh",
        /// As long as can be.
        Max = "max",
    }
}

named! {
    /// Length of the model's answer.
    Verbosity {
        /// Little.
        Low = "low",
        /// As usual.
        Medium = "medium",
        /// Much.
        High = "high",
    }
}

named! {
    /// Tier of the provider that serves the request. Synonyms there are not the same here.
    ServiceTier {
        /// The setting of the provider's project.
        Auto = "auto",
        /// The usual one.
        Default = "default",
        /// Slower and cheaper.
        Flex = "flex",
        /// Reserved.
        Scale = "scale",
        /// Faster and dearer.
        Priority = "priority",
        /// Faster and dearer, by its newer name.
        Fast = "fast",
    }
}

named! {
    /// Time that the provider keeps a prompt for its cache: the older form.
    CacheRetention {
        /// While it is in memory.
        InMemory = "in_memory",
        /// A day.
        Day = "24h",
    }
}

/// Caching of the prompt by the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheOptions {
    /// Source of the marks.
    pub mode: Option<CacheMode>,
    /// Time that it is kept.
    pub ttl: Option<CacheTtl>,
}

named! {
    /// Source of the marks that the prompt is cached up to.
    CacheMode {
        /// The provider.
        Implicit = "implicit",
        /// The caller's breakpoints.
        Explicit = "explicit",
    }
}

named! {
    /// Time that a prompt is cached.
    CacheTtl {
        /// Half an hour.
        HalfHour = "30m",
    }
}
