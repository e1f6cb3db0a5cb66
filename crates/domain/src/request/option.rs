//! What a request may ask for beside the conversation and its tools.

use super::Opaque;

/// The shape of the answer. Plain text is the absence of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseFormat {
    /// Any JSON object.
    JsonObject,
    /// JSON by a schema.
    JsonSchema(JsonSchema),
}

/// A schema that an answer keeps to.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonSchema {
    /// Letters, digits, `_` and `-`: 1 to 64.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The schema itself.
    pub schema: Option<Opaque>,
    /// Whether the model must keep to it.
    pub strict: Option<bool>,
}

named! {
    /// In what the model answers: a set. Text alone is what an absent one means.
    Modalities {
        /// Text alone.
        Text = "text",
        /// Audio alone.
        Audio = "audio",
        /// Both.
        Both = "text+audio",
    }
}

/// How the model speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audio {
    /// With which voice.
    pub voice: Voice,
    /// In which encoding.
    pub format: AudioFormat,
}

/// A voice.
#[derive(Clone, PartialEq, Eq)]
pub enum Voice {
    /// One that everybody has.
    Named(String),
    /// One that the provider keeps for an account, by its id there.
    Custom(String),
}

named! {
    /// How audio in an answer is encoded.
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
    /// How long the model thinks.
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
    /// How much the model says.
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
    /// Which of the provider's tiers serves the request. Synonyms there are not the same here.
    ServiceTier {
        /// As the provider's project says.
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
    /// How long the provider keeps a prompt for its cache: the older form.
    CacheRetention {
        /// While it is in memory.
        InMemory = "in_memory",
        /// A day.
        Day = "24h",
    }
}

/// How the provider caches the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheOptions {
    /// Where it marks the prompt.
    pub mode: Option<CacheMode>,
    /// For how long.
    pub ttl: Option<CacheTtl>,
}

named! {
    /// Who marks the prompt for the cache.
    CacheMode {
        /// The provider.
        Implicit = "implicit",
        /// The caller's breakpoints.
        Explicit = "explicit",
    }
}

named! {
    /// How long a prompt is cached.
    CacheTtl {
        /// Half an hour.
        HalfHour = "30m",
    }
}
