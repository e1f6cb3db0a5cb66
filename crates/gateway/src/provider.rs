//! Clients of providers, made from their configuration. Not what they are asked.

mod addresses;

use std::sync::Arc;

use holdfast_domain::Provider;
use holdfast_providers::{Anthropic, Bedrock, Gemini, OpenAi, Simulator};

use holdfast_config::ProviderKind;

/// A client that has not connected yet.
pub(crate) fn build(kind: &ProviderKind) -> anyhow::Result<Arc<dyn Provider>> {
    // For pictures at URLs: one of this machine would let callers reach what only it can reach.
    let mut kind = kind.clone();
    if let Some(server) = kind.server_mut() {
        server.own_addresses = addresses::own();
    }
    Ok(match kind {
        ProviderKind::Simulated => Arc::new(Simulator::new()),
        ProviderKind::OpenAi(options) => Arc::new(OpenAi::new(*options)?),
        ProviderKind::AzureOpenAi(options) => Arc::new(OpenAi::azure(*options)?),
        ProviderKind::Bedrock(options) => Arc::new(Bedrock::new(*options)?),
        ProviderKind::Gemini(options) => Arc::new(Gemini::new(*options)?),
        ProviderKind::Anthropic(options) => Arc::new(Anthropic::new(*options)?),
    })
}
