//! The API of administration and the console, put on the operator's listener.
//!
//! They are served where keys and passwords cannot cross a network in plain text: on loopback, or behind a proxy
//! with TLS that `admin.url` names. Elsewhere the listener has metrics and probes only, and the log
//! says why: an upgrade opens nothing on an address that was meant for a scraper.

use std::net::SocketAddr;
use std::sync::Arc;

use holdfast_accounts::Accounts;
use holdfast_admin::{AdminApi, AdminOptions};
use holdfast_config::Config;
use holdfast_console::{Audience, Console, ConsoleOptions};
use holdfast_domain::offer::{ModelOffer, Offers};
use holdfast_engine::Engine;
use holdfast_http::Administration;

/// What the engine serves at the moment it is asked, whichever configuration that is by then.
#[derive(Debug)]
pub(super) struct EngineOffers(pub(super) Arc<Engine>);

impl Offers for EngineOffers {
    fn models(&self) -> Vec<ModelOffer> {
        self.0.serving().offers()
    }
}

/// The API and the console over these use cases, for a listener at this address; `None` where they may not
/// be served.
pub(super) fn administration(
    config: &Config,
    accounts: Accounts,
    listens: Option<SocketAddr>,
) -> Option<Administration> {
    let (settings, listens) = (config.admin.as_ref()?, listens?);
    let Some(options) = AdminOptions::new(listens, settings.url.clone()) else {
        tracing::warn!(
            %listens,
            "administration is not served: admin.listen is not on loopback and there is no https:// \
             address in admin.url"
        );
        return None;
    };
    // Without a file there is one listener for everybody, on this machine alone.
    let audience = if config.file.is_none() { Audience::Everyone } else { Audience::Operators };
    let console = ConsoleOptions { address: options.clone(), audience };
    let console = Console::new(accounts.clone(), console);
    let api = AdminApi::new(accounts, options);
    Some(Administration {
        api: Arc::new(move |request, client| {
            let api = api.clone();
            Box::pin(async move { api.answer(request, client).await })
        }),
        console: Arc::new(move |request, client| {
            let console = console.clone();
            Box::pin(async move { console.answer(request, client).await })
        }),
        proxies: settings.proxies.as_slice().into(),
    })
}
