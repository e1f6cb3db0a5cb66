//! Receivers of webhooks under a configuration.

use std::sync::Arc;

use anyhow::Context;
use holdfast_config::Config;
use holdfast_webhooks::{AllowedOrigins, Receivers, Sender, SenderOptions};

/// Sender of webhooks, and the origins that a configuration lists for it.
///
/// # Errors
///
/// If TLS cannot be set up.
pub fn receivers(config: &Config) -> anyhow::Result<Receivers> {
    let sender = Sender::new(SenderOptions::default()).context("webhooks cannot be sent")?;
    let allowed = AllowedOrigins::new(&config.webhooks.allow);
    Ok(Receivers { sender: Arc::new(sender), allowed })
}
