//! A model as callers know it: a public id and the contract behind it. Not its prices, not its routes.

use std::fmt;

use crate::secret::ServerSecretId;

/// `publisher/name`, compared exactly; there are no aliases, and it never names a provider's model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicModelId(Box<str>);

impl PublicModelId {
    /// The longest id, in bytes.
    pub const LEN_MAX: usize = 128;

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for PublicModelId {
    type Error = BadModelId;

    fn try_from(id: &str) -> Result<Self, BadModelId> {
        let fits = id.len() <= Self::LEN_MAX
            && id.split_once('/').is_some_and(|(publisher, name)| {
                publisher.starts_with(is_lower)
                    && publisher.chars().all(|c| is_lower(c) || "._-".contains(c))
                    && name.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || "._:-".contains(c))
            });
        if fits { Ok(Self(id.into())) } else { Err(BadModelId) }
    }
}

fn is_lower(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

impl fmt::Display for PublicModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is not a public model id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a model id: publisher/name, at most 128 bytes")]
pub struct BadModelId;

/// What a model promises about length: the part of it that bounds money and is fingerprinted by
/// version. Prices are not part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// The public id.
    pub model: PublicModelId,
    /// The operator counts it up whenever limits, folds or adapter semantics change.
    pub version: u32,
    /// Prompt and completion together.
    pub context_tokens: u64,
    /// The longest completion, and what is sent upstream when a request sets no bound.
    pub max_output_tokens: u64,
    /// Millionths of a token that one byte of prompt may be at most.
    pub prompt_tokens_per_byte_millionths: u64,
    /// Tokens that the provider may add to any prompt.
    pub prompt_overhead_tokens: u64,
}

/// What a fingerprint was computed under. Stored with it, so that a retry is compared under the
/// same terms whatever the configuration says by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The server secret behind the fingerprint key.
    pub server_secret: ServerSecretId,
    /// The version of the normal form.
    pub fingerprint_version: u16,
    /// The model contract's version.
    pub contract: u32,
}
