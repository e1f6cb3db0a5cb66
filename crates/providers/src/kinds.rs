//! Kinds of providers with a server: one variant each, which is the operator's options of the kind
//! and its adapter in one. A new kind is its files, its variant and its line here.

mod anthropic;
mod azure;
mod bedrock;
mod gemini;
pub(crate) mod holdfast;
mod openai;

use std::sync::Arc;

pub use self::anthropic::Anthropic;
pub use self::azure::{ApiVersion, AzureOpenAi, BadApiVersion};
pub use self::bedrock::{AwsKeys, BadRegion, Bedrock, Region};
pub use self::gemini::Gemini;
pub use self::holdfast::Holdfast;
pub use self::openai::OpenAi;
use crate::adapter::Adapter;
use crate::server::ServerOptions;

/// Server of a provider, and its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// Address, credential and limits of the server.
    pub server: ServerOptions,
    /// Kind of the provider, with its own options.
    pub kind: Kind,
}

/// Kind of a provider with a server, and its own options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Any server that speaks OpenAI's chat completions.
    OpenAi(OpenAi),
    /// Anthropic's Messages API.
    Anthropic(Anthropic),
    /// Google's Gemini API.
    Gemini(Gemini),
    /// Azure OpenAI.
    AzureOpenAi(AzureOpenAi),
    /// Amazon Bedrock's Converse API.
    Bedrock(Bedrock),
    /// Another Holdfast.
    Holdfast(Holdfast),
}

impl Kind {
    /// The gateway of this kind, to which requests are repeated under the same key.
    #[must_use]
    pub const fn chain(&self) -> Option<&Holdfast> {
        match self {
            Self::Holdfast(kind) => Some(kind),
            Self::OpenAi(_)
            | Self::Anthropic(_)
            | Self::Gemini(_)
            | Self::AzureOpenAi(_)
            | Self::Bedrock(_) => None,
        }
    }

    pub(crate) fn into_adapter(self) -> Arc<dyn Adapter> {
        match self {
            Self::OpenAi(kind) => Arc::new(kind),
            Self::Anthropic(kind) => Arc::new(kind),
            Self::Gemini(kind) => Arc::new(kind),
            Self::AzureOpenAi(kind) => Arc::new(kind),
            Self::Bedrock(kind) => Arc::new(kind),
            Self::Holdfast(kind) => Arc::new(kind),
        }
    }
}
