//! The normalized request: the only value that the fingerprint hashes and that providers translate. So the same
//! fingerprint means the same upstream request. A provider may get less than all of it
//! ([`Request::make_outgoing`]), and never any other content.
//!
//! Normal form: absent and default are one value if no provider can distinguish them, and two if one can; the
//! last step to it is [`Request::fold`]. Numbers are exact decimals, maps are sorted, JSON that passes through
//! is text in one spelling. A field that is added here has to be fed to [`fingerprint`], whose strings
//! [`CostFactors`] counts: else it is free of charge, and invisible to a retry.
//!
//! Not here: its spelling (that is the wire's), the transport of the answer (`stream` is no part of the
//! request), and the model's contract, which joins it in [`crate::hold`] and in [`fingerprint`].
//!
//! # Example
//!
//! ```
//! use holdfast_domain::ApiKeyId;
//! use holdfast_domain::request::{FINGERPRINT_VERSION, fingerprint};
//! use holdfast_testkit::sample;
//!
//! let key = sample::secret().fingerprint_key(ApiKeyId::from_u128(1));
//! let of = |text| fingerprint(&key, FINGERPRINT_VERSION, 1, &sample::request(text));
//! assert_eq!(of("cat"), of("cat"));
//! assert_ne!(of("cat"), of("dog"));
//! // Requests under an unknown version are not comparable.
//! assert!(fingerprint(&key, u16::MAX, 1, &sample::request("cat")).is_none());
//! ```

/// An enum whose variants have names on the wire.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $label:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every one of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name on the wire.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$variant => $label,)+
                }
            }
        }
    };
}

mod canon;
mod cost_factors;
mod debug;
mod decimal;
mod ignored;
mod message;
mod normal_form;
mod opaque;
mod option;
mod outgoing;
mod tool;

use std::collections::BTreeMap;

pub use self::canon::{FINGERPRINT_VERSION, UNFOLDED_VERSION, fingerprint, is_known_version};
pub use self::cost_factors::CostFactors;
pub use self::decimal::{BadDecimal, Decimal};
pub use self::message::{
    AssistantMessage, BreakpointTtl, CacheBreakpoint, Content, ContentPart, FunctionCall,
    ImageDetail, Item, Message, RecordingFormat, Role, ToolCall, ToolKind,
};
pub use self::opaque::Opaque;
pub use self::option::{
    Audio, AudioFormat, CacheMode, CacheOptions, CacheRetention, CacheTtl, JsonSchema, Modalities,
    ReasoningEffort, ResponseFormat, ServiceTier, Verbosity, Voice,
};
pub use self::tool::{CustomTool, Function, FunctionChoice, Tool, ToolChoice, ToolMode};
use crate::model::PublicModelId;

/// Chat completion request in normal form. Ranges are checked by its reader (the wire), not here.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The public id, as sent.
    pub model: PublicModelId,
    /// At least one, in order.
    pub messages: Vec<Message>,
    /// `max_tokens` or `max_completion_tokens`; at least one.
    pub max_output_tokens: Option<u64>,
    /// Number of choices: 1 to 128.
    pub n: u32,
    /// 0 to 2.
    pub temperature: Option<Decimal>,
    /// 0 to 1.
    pub top_p: Option<Decimal>,
    /// -2 to 2.
    pub presence_penalty: Option<Decimal>,
    /// -2 to 2.
    pub frequency_penalty: Option<Decimal>,
    /// At most four sequences, in order.
    pub stop: Vec<String>,
    /// Sampling seed.
    pub seed: Option<i64>,
    /// The caller's end user.
    pub user: Option<String>,
    /// At most 16 pairs.
    pub metadata: BTreeMap<String, String>,
    /// True if the answer is to include the likeliness of its tokens.
    pub logprobs: bool,
    /// Number of alternative tokens with theirs: 0 to 20, with `logprobs` only.
    pub top_logprobs: Option<u8>,
    /// By token id: -100 to 100.
    pub logit_bias: BTreeMap<String, i8>,
    /// At most 128, in order.
    pub tools: Vec<Tool>,
    /// Choice among the tools.
    pub tool_choice: Option<ToolChoice>,
    /// Permission to call several tools at once.
    pub parallel_tool_calls: Option<bool>,
    /// Functions on offer in the older form, whose calls come in the older form: at most 128.
    pub functions: Vec<Function>,
    /// Choice among the functions.
    pub function_call: Option<FunctionChoice>,
    /// The shape of the answer, if it is not plain text.
    pub response_format: Option<ResponseFormat>,
    /// Kinds of content that the model answers with.
    pub modalities: Modalities,
    /// Voice and encoding of audio in the answer.
    pub audio: Option<Audio>,
    /// Text that most of the answer is expected to be.
    pub prediction: Option<Opaque>,
    /// Effort that the model spends on thinking.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Length of the answer.
    pub verbosity: Option<Verbosity>,
    /// Tier that serves the request.
    pub service_tier: Option<ServiceTier>,
    /// Wish that the provider keeps the completion.
    pub store: Option<bool>,
    /// The caller's end user, for the provider's safety checks.
    pub safety_identifier: Option<String>,
    /// Name of the cache at the provider to look into.
    pub prompt_cache_key: Option<String>,
    /// Time that the prompt is kept for the cache.
    pub prompt_cache_retention: Option<CacheRetention>,
    /// Marks and time of the prompt's caching.
    pub prompt_cache_options: Option<CacheOptions>,
    /// Settings of searches of the web.
    pub web_search_options: Option<Opaque>,
    /// Moderation of prompt and answer by the provider.
    pub moderation: Option<Opaque>,
    /// Members that are not known here, by name, and members of [`Self::WORDS`] with a word that is
    /// not known. Only a model that accepts them gets them.
    pub extras: BTreeMap<String, Opaque>,
}

impl Request {
    /// Members whose values are words, of which a model may accept more than are known here.
    pub const WORDS: [&str; 4] =
        ["reasoning_effort", "verbosity", "service_tier", "prompt_cache_retention"];

    /// Request to a model to go on with a conversation, without options.
    #[must_use]
    pub const fn new(model: PublicModelId, messages: Vec<Message>) -> Self {
        Self {
            model,
            messages,
            max_output_tokens: None,
            n: 1,
            temperature: None,
            top_p: None,
            presence_penalty: None,
            frequency_penalty: None,
            stop: Vec::new(),
            seed: None,
            user: None,
            metadata: BTreeMap::new(),
            logprobs: false,
            top_logprobs: None,
            logit_bias: BTreeMap::new(),
            tools: Vec::new(),
            tool_choice: None,
            parallel_tool_calls: None,
            functions: Vec::new(),
            function_call: None,
            response_format: None,
            modalities: Modalities::Text,
            audio: None,
            prediction: None,
            reasoning_effort: None,
            verbosity: None,
            service_tier: None,
            store: None,
            safety_identifier: None,
            prompt_cache_key: None,
            prompt_cache_retention: None,
            prompt_cache_options: None,
            web_search_options: None,
            moderation: None,
            extras: BTreeMap::new(),
        }
    }
}
