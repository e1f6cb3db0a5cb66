//! Builds the clients of providers from the configuration. The requests that they send are no concern of this
//! file.

mod addresses;

use std::sync::Arc;

use holdfast_config::ProviderKind;
use holdfast_domain::Provider;
use holdfast_providers::kinds::HttpOptions;
use holdfast_providers::{ChainProvider, HttpProvider, Simulator};

/// A provider that has not connected yet.
pub fn build(name: &str, kind: &ProviderKind) -> anyhow::Result<Arc<dyn Provider>> {
    Ok(match kind {
        ProviderKind::Simulated => Arc::new(Simulator::new()),
        ProviderKind::Http(options) => match options.kind.chain() {
            Some(kind) => Arc::new(ChainProvider::new(name, client(options)?, *kind)),
            None => Arc::new(client(options)?),
        },
    })
}

/// A provider with a server, which is handed no picture from an address of this machine.
pub fn client(options: &HttpOptions) -> anyhow::Result<HttpProvider> {
    let mut options = options.clone();
    // For pictures at URLs: one of this machine would let callers reach what only it can reach.
    options.server.own_addresses = addresses::own();
    Ok(HttpProvider::new(options)?)
}
