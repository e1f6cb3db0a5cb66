//! `[console]`: the listener of holders' pages, and what all pages have.
//!
//! Holders' pages require a password, so an address beyond this machine requires `https` here; the listener has
//! no other content that could be served without it.

use std::net::SocketAddr;

use holdfast_admin::AdminOptions;
use holdfast_net::{AdminUrl, Network};

use crate::brand::{self, BrandConfig};
use crate::document::ConfigTable;
use crate::listen::ListenAddress;
use crate::process::networks;

/// `[console]`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsoleConfig {
    /// Listener of the holders alone; unset: they have no pages.
    pub holders: Option<HoldersConfig>,
    /// True if pages have the playground.
    pub playground: bool,
    /// Operator's brand on holders' pages.
    pub brand: BrandConfig,
}

/// Listener of holders' pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldersConfig {
    pub listen: ListenAddress,
    /// Address that people type. Unset: loopback names with the listener's port.
    pub url: Option<AdminUrl>,
    /// Proxies in front, whose `X-Forwarded-For` is believed as the clients' address.
    pub proxies: Vec<Network>,
}

impl HoldersConfig {
    /// Scheme, host and port that people type, for a listener that is at this address.
    #[must_use]
    pub fn origin(&self, listens: SocketAddr) -> String {
        self.url.as_ref().map_or_else(|| format!("http://{listens}"), ToString::to_string)
    }
}

pub(crate) fn console(table: &ConfigTable<'_>) -> Option<ConsoleConfig> {
    let playground = table.field("playground").map(|field| field.flag());
    let holders = holders(table);
    let brand = brand::brand(table);
    table.refuse_unknown();
    // A value with a mistake is none that was left out.
    let playground = playground.map_or(Some(false), |playground| playground)?;
    Some(ConsoleConfig { holders: holders?, playground, brand: brand? })
}

/// `None` after a mistake.
fn holders(table: &ConfigTable<'_>) -> Option<Option<HoldersConfig>> {
    let url_field = table.field("url");
    let url = url_field.as_ref().map(|field| field.parse(AdminUrl::parse));
    let proxies = networks(table, "proxies");
    let Some(listen_field) = table.field("listen") else {
        if let Some(field) = url_field {
            field.mistake("is the address of `console.listen`, which is not set: write that too");
            return None;
        }
        return Some(None);
    };
    let listen = listen_field.parse(ListenAddress::parse)?;
    let url = url.map_or(Some(None), |url| url.map(Some))?;
    if AdminOptions::new(listen.first(), url.clone()).is_none() {
        listen_field.mistake(format_args!(
            "is {listen}, beyond this machine: passwords would cross a network in plain text. Write the \
             https:// address of a proxy with TLS as `console.url`, or listen on 127.0.0.1"
        ));
        return None;
    }
    Some(Some(HoldersConfig { listen, url, proxies }))
}
