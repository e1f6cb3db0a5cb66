//! Clients of providers, made from their configuration. Not what they are asked.

use std::sync::Arc;

use holdfast_domain::Provider;
use holdfast_providers::{
    Anthropic, AnthropicOptions, AzureOptions, Bedrock, BedrockOptions, Gemini, GeminiOptions,
    OpenAi, OpenAiOptions, Simulated,
};

use crate::config::ProviderKind;

/// A client that has not connected yet.
pub(crate) fn made(kind: &ProviderKind) -> anyhow::Result<Arc<dyn Provider>> {
    Ok(match kind {
        ProviderKind::Simulated => Arc::new(Simulated::new()),
        ProviderKind::OpenAi(options) => Arc::new(OpenAi::new(OpenAiOptions::clone(options))?),
        ProviderKind::AzureOpenAi(options) => {
            Arc::new(OpenAi::azure(AzureOptions::clone(options))?)
        }
        ProviderKind::Bedrock(options) => Arc::new(Bedrock::new(BedrockOptions::clone(options))?),
        ProviderKind::Gemini(options) => Arc::new(Gemini::new(GeminiOptions::clone(options))?),
        ProviderKind::Anthropic(options) => {
            Arc::new(Anthropic::new(AnthropicOptions::clone(options))?)
        }
    })
}
