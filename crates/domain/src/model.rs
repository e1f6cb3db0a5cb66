//! Model as callers know it: a public id and the contract behind it. Not its prices, not its
//! routes.
//!
//! The contract has two uses. Its numbers bound the hold, and its version is fingerprinted with each request:
//! an operation keeps the version that its key was bound under, so that a retry is compared under that one even
//! if the configuration has changed by then.
//!
//! # Example
//!
//! ```
//! use holdfast_domain::model::{ModelPattern, PublicModelId};
//!
//! let model = PublicModelId::try_from("acme/fast")?;
//! assert!(ModelPattern::of_publisher(&model).allows(&model));
//! assert!(PublicModelId::try_from("fast").is_err(), "an id names its publisher");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::secret::ServerSecretId;

/// `publisher/name`, compared exactly. Never an alias ([`ModelAlias`]), and never the name of a provider's model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicModelId(Arc<str>);

impl PublicModelId {
    /// The longest id, in bytes.
    pub const LEN_MAX: usize = 128;

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same text, shared.
    #[must_use]
    pub fn to_shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

/// A catalogue is searched by the beginning of an id.
impl Borrow<str> for PublicModelId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for PublicModelId {
    type Error = BadModelId;

    fn try_from(id: &str) -> Result<Self, BadModelId> {
        if is_id(id) { Ok(Self(id.into())) } else { Err(BadModelId) }
    }
}

fn is_id(id: &str) -> bool {
    id.len() <= PublicModelId::LEN_MAX
        && id.split_once('/').is_some_and(|(publisher, name)| {
            is_publisher(publisher)
                && name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "._:-".contains(c))
        })
}

fn is_publisher(publisher: &str) -> bool {
    publisher.starts_with(is_lower) && publisher.chars().all(|c| is_lower(c) || "._-".contains(c))
}

fn is_lower(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

impl fmt::Display for PublicModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Alias of a model: 1 to 64 of `a-z 0-9 . _ -`, the first a letter or a digit. It has no slash, so that none is a
/// [`PublicModelId`]. An operation keeps the alias that its key was bound by, because its answer names the model so.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelAlias(Arc<str>);

impl ModelAlias {
    /// The longest alias, in bytes.
    pub const LEN_MAX: usize = 64;

    /// The alias as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for ModelAlias {
    type Error = BadModelAlias;

    fn try_from(alias: &str) -> Result<Self, BadModelAlias> {
        let fits = alias.len() <= Self::LEN_MAX
            && alias.starts_with(is_lower)
            && alias.chars().all(|c| is_lower(c) || "._-".contains(c));
        if fits { Ok(Self(alias.into())) } else { Err(BadModelAlias) }
    }
}

impl fmt::Display for ModelAlias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Entry of an allow-list: a [`PublicModelId`], or `publisher/*` for each model of a publisher. Its text orders it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelPattern(Arc<str>);

impl ModelPattern {
    /// The pattern for each model of this one's publisher.
    #[must_use]
    pub fn of_publisher(model: &PublicModelId) -> Self {
        let publisher = model.0.split('/').next().unwrap_or(&model.0);
        Self([publisher, "/*"].concat().into())
    }

    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if it allows this model.
    #[must_use]
    pub fn allows(&self, model: &PublicModelId) -> bool {
        // The slash stays in the prefix: `acme/*` must not allow a model of `acme-labs`.
        match self.0.strip_suffix('*') {
            Some(prefix) => model.as_str().starts_with(prefix),
            None => *self.0 == *model.0,
        }
    }
}

/// A set of patterns is searched by an id's text.
impl Borrow<str> for ModelPattern {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<PublicModelId> for ModelPattern {
    fn from(model: PublicModelId) -> Self {
        Self(model.0)
    }
}

impl TryFrom<&str> for ModelPattern {
    type Error = BadModelPattern;

    fn try_from(pattern: &str) -> Result<Self, BadModelPattern> {
        let fits = match pattern.strip_suffix("/*") {
            // No id has a star.
            Some(publisher) => pattern.len() <= PublicModelId::LEN_MAX && is_publisher(publisher),
            None => is_id(pattern),
        };
        if fits { Ok(Self(pattern.into())) } else { Err(BadModelPattern) }
    }
}

impl fmt::Display for ModelPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is not an entry of an allow-list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a model id or all models of a publisher: publisher/name or publisher/*, at most 128 bytes"
)]
pub struct BadModelPattern;

/// A text that is not an alias of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an alias of a model: at most 64 of a-z 0-9 . _ -")]
pub struct BadModelAlias;

/// A text that is not a public model id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a model id: publisher/name, at most 128 bytes")]
pub struct BadModelId;

/// Contract of a model: the part of it that bounds money and is fingerprinted by version. Prices
/// are not part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// The public id.
    pub model: PublicModelId,
    /// Version, which the operator counts up whenever limits, folds or adapter semantics change.
    pub version: u32,
    /// Tokens of prompt and completion together, at most.
    pub context_tokens: u64,
    /// Tokens of the longest completion, sent upstream if a request sets no bound.
    pub max_output_tokens: u64,
    /// Millionths of a token that one byte of prompt may be at most.
    pub prompt_tokens_per_byte_millionths: u64,
    /// Tokens that the provider may add to any prompt; `None` is the value of [`Contract::overhead_tokens`].
    pub prompt_overhead_tokens: Option<u64>,
    /// Tokens that a picture may cost at most; `None` makes a prompt with one as long as the context.
    pub image_tokens: Option<u64>,
    /// Members of a request that the model takes although they are not known here, by name: of the
    /// body, a turn, a part and a tool. Also words of members that have words of their own, as
    /// `member=word`.
    pub accepts: Vec<String>,
    /// Restricted fields that it takes all the same.
    pub allow: BTreeSet<RestrictedField>,
    /// Members of a request that are not sent to the model's providers.
    pub ignores: Vec<IgnoredField>,
}

impl Contract {
    /// Tokens of a byte of prompt, in millionths, unless the operator sets another number.
    // A token is a byte at least, for a tokenizer that works on bytes: the hold is never too low.
    pub const PROMPT_TOKENS_PER_BYTE_MILLIONTHS: u64 = 1_000_000;
    /// Overhead of a prompt without tools unless the operator sets another number.
    pub const OVERHEAD_TOKENS: u64 = 64;
    /// Overhead of a prompt with tools unless the operator sets another number: templates list them with much
    /// around them.
    pub const OVERHEAD_TOKENS_WITH_TOOLS: u64 = 1_024;

    /// A contract with the usual bounds, which takes only the usual members.
    #[must_use]
    pub const fn new(
        model: PublicModelId,
        version: u32,
        context_tokens: u64,
        max_output_tokens: u64,
    ) -> Self {
        Self {
            model,
            version,
            context_tokens,
            max_output_tokens,
            prompt_tokens_per_byte_millionths: Self::PROMPT_TOKENS_PER_BYTE_MILLIONTHS,
            prompt_overhead_tokens: None,
            image_tokens: None,
            accepts: Vec::new(),
            allow: BTreeSet::new(),
            ignores: Vec::new(),
        }
    }

    /// True if the model takes this word of a member that has words of its own.
    #[must_use]
    pub fn accepts_word(&self, member: &str, word: &str) -> bool {
        self.accepted_words(member).any(|accepted| accepted == word)
    }

    /// Words of a member that the model takes in addition to those that are known.
    pub fn accepted_words<'a>(&'a self, member: &'a str) -> impl Iterator<Item = &'a str> {
        let words = self.accepts.iter().filter_map(|accepted| accepted.split_once('='));
        words.filter(move |(name, _word)| *name == member).map(|(_name, word)| word)
    }

    /// Tokens that the provider may add to a prompt.
    #[must_use]
    pub fn overhead_tokens(&self, has_tools: bool) -> u64 {
        let usual =
            if has_tools { Self::OVERHEAD_TOKENS_WITH_TOOLS } else { Self::OVERHEAD_TOKENS };
        // The operator's number counts with and without tools: it is a bound, and theirs to know.
        self.prompt_overhead_tokens.unwrap_or(usual)
    }
}

/// Field that a model refuses unless its contract allows it: it reaches objects or tiers of the
/// account that all callers share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RestrictedField {
    /// A document that the account keeps.
    FileId,
    /// Audio of an earlier answer that the account keeps.
    AudioId,
    /// A voice that the account keeps.
    VoiceId,
    /// Keeping the completion in the account.
    Store,
    /// Another tier than the account's usual one.
    ServiceTier,
    /// Searching the web at the account's cost.
    WebSearchOptions,
    /// The account's moderation.
    Moderation,
    /// Keeping the prompt in the account's cache.
    PromptCacheRetention,
}

impl RestrictedField {
    /// Every one of them.
    pub const ALL: [Self; 8] = [
        Self::FileId,
        Self::AudioId,
        Self::VoiceId,
        Self::Store,
        Self::ServiceTier,
        Self::WebSearchOptions,
        Self::Moderation,
        Self::PromptCacheRetention,
    ];

    /// The name in configuration.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::FileId => "file_id",
            Self::AudioId => "audio.id",
            Self::VoiceId => "voice.id",
            Self::Store => "store",
            Self::ServiceTier => "service_tier",
            Self::WebSearchOptions => "web_search_options",
            Self::Moderation => "moderation",
            Self::PromptCacheRetention => "prompt_cache_retention",
        }
    }
}

/// Member of a request that a model may be sent without. A closed list: what identifies or bounds a
/// request, or chooses between prices, is never ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoredField {
    /// Penalty on tokens by their number.
    FrequencyPenalty,
    /// Bias of single tokens.
    LogitBias,
    /// Log-probabilities in the answer; with them goes `top_logprobs`.
    Logprobs,
    /// The caller's own labels.
    Metadata,
    /// Moderation by the provider.
    Moderation,
    /// Permission to call several tools at once.
    ParallelToolCalls,
    /// Expected text of the answer.
    Prediction,
    /// Penalty on tokens that occurred.
    PresencePenalty,
    /// Name of the cache at the provider.
    PromptCacheKey,
    /// Marks and time of the prompt's caching.
    PromptCacheOptions,
    /// Time of the prompt's caching: the older form.
    PromptCacheRetention,
    /// Effort of reasoning.
    ReasoningEffort,
    /// Shape of the answer.
    ResponseFormat,
    /// The caller's end user, for the provider's safety checks.
    SafetyIdentifier,
    /// Sampling seed.
    Seed,
    /// Keeping of the completion by the provider.
    Store,
    /// Sampling temperature.
    Temperature,
    /// Number of other tokens in log-probabilities.
    TopLogprobs,
    /// Nucleus sampling.
    TopP,
    /// The caller's end user.
    User,
    /// Length of the answer's text.
    Verbosity,
}

impl IgnoredField {
    /// Every one of them.
    pub const ALL: [Self; 21] = [
        Self::FrequencyPenalty,
        Self::LogitBias,
        Self::Logprobs,
        Self::Metadata,
        Self::Moderation,
        Self::ParallelToolCalls,
        Self::Prediction,
        Self::PresencePenalty,
        Self::PromptCacheKey,
        Self::PromptCacheOptions,
        Self::PromptCacheRetention,
        Self::ReasoningEffort,
        Self::ResponseFormat,
        Self::SafetyIdentifier,
        Self::Seed,
        Self::Store,
        Self::Temperature,
        Self::TopLogprobs,
        Self::TopP,
        Self::User,
        Self::Verbosity,
    ];

    /// The name in configuration, which is the member's.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::FrequencyPenalty => "frequency_penalty",
            Self::LogitBias => "logit_bias",
            Self::Logprobs => "logprobs",
            Self::Metadata => "metadata",
            Self::Moderation => "moderation",
            Self::ParallelToolCalls => "parallel_tool_calls",
            Self::Prediction => "prediction",
            Self::PresencePenalty => "presence_penalty",
            Self::PromptCacheKey => "prompt_cache_key",
            Self::PromptCacheOptions => "prompt_cache_options",
            Self::PromptCacheRetention => "prompt_cache_retention",
            Self::ReasoningEffort => "reasoning_effort",
            Self::ResponseFormat => "response_format",
            Self::SafetyIdentifier => "safety_identifier",
            Self::Seed => "seed",
            Self::Store => "store",
            Self::Temperature => "temperature",
            Self::TopLogprobs => "top_logprobs",
            Self::TopP => "top_p",
            Self::User => "user",
            Self::Verbosity => "verbosity",
        }
    }
}

/// Terms that a fingerprint was computed under. Stored with it, so that a retry is compared under the same
/// terms even if the configuration has changed by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FingerprintTerms {
    /// The server secret behind the fingerprint key.
    pub server_secret: ServerSecretId,
    /// The version of the normal form.
    pub fingerprint_version: u16,
    /// The model contract's version.
    pub contract: u32,
}
