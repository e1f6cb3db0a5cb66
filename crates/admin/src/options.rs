//! The address under which administration is served, and the rule that decides it.
//!
//! | listener | `admin.url` | served |
//! |---|---|---|
//! | on loopback | none | under `localhost`, `127.0.0.1` and `[::1]` with the listener's port |
//! | on loopback | any | only under the URL's host |
//! | on another address | `https://…` | only under the URL's host |
//! | on another address | none, or `http://…` | not at all: keys would cross a network in plain text |
//!
//! `Host` is compared because a browser within the network can be made to send requests under any other name (DNS
//! rebinding), and because a listener that was opened by an upgrade must not answer.

use std::net::SocketAddr;

use holdfast_domain::admin::Role;
use holdfast_net::{AdminUrl, host_and_port};
use http::uri::Authority;

/// Options of the administration's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminOptions {
    url: Option<AdminUrl>,
    port: u16,
    /// Scheme, host and port of the holders' own console, if there is one.
    holders: Option<String>,
}

impl AdminOptions {
    /// Options for a listener at this address; `None` if only metrics and probes may be served there.
    #[must_use]
    pub fn new(listens: SocketAddr, url: Option<AdminUrl>) -> Option<Self> {
        let is_guarded = listens.ip().to_canonical().is_loopback()
            || url.as_ref().is_some_and(AdminUrl::is_https);
        is_guarded.then_some(Self { url, port: listens.port(), holders: None })
    }

    /// Options of what no listener serves, for the links that it makes: the address of the operators' console,
    /// and the origin of the holders' own.
    #[must_use]
    pub const fn of_links(url: Option<AdminUrl>, holders: Option<String>) -> Self {
        Self { url, port: 0, holders }
    }

    /// The same with the origin of the holders' own console, the target of their links.
    #[must_use]
    pub fn with_holders(self, holders: Option<String>) -> Self {
        Self { holders, ..self }
    }

    /// Scheme, host and port at which a person with these roles signs in, if known: the holders' own console for a
    /// person with no other role.
    #[must_use]
    pub fn origin_for(&self, roles: &[Role]) -> Option<String> {
        let is_holder = !roles.is_empty() && roles.iter().all(|role| role.is_holder());
        let own = || self.url.as_ref().map(ToString::to_string);
        self.holders.clone().filter(|_holders| is_holder).or_else(own)
    }

    /// True if people reach it by `https`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.url.as_ref().is_some_and(AdminUrl::is_https)
    }

    /// True if a request may name this host.
    #[must_use]
    pub fn is_host(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        // A host never has user info. Parsers differ in the part that they take for the host.
        if authority.as_str().contains('@') {
            return false;
        }
        match &self.url {
            Some(url) => url.is_of(&authority),
            None => host_and_port(&authority, false).is_some_and(|(host, port)| {
                let is_loopback = matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]");
                is_loopback && port.unwrap_or(80) == self.port
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: u16 = 8081;

    fn options(listens: &str, url: Option<&str>) -> Option<AdminOptions> {
        let url = url.map(|url| AdminUrl::parse(url).unwrap());
        AdminOptions::new(SocketAddr::new(listens.parse().unwrap(), PORT), url)
    }

    #[test]
    fn beyond_loopback_nothing_is_served_without_https() {
        for (listens, url, is_served) in [
            ("127.0.0.1", None, true),
            ("::1", Some("http://localhost"), true),
            ("0.0.0.0", None, false),
            ("10.0.0.1", Some("http://admin.example.com"), false),
            ("10.0.0.1", Some("https://admin.example.com"), true),
        ] {
            assert_eq!(options(listens, url).is_some(), is_served, "{listens} {url:?}");
        }
    }

    #[test]
    fn holders_are_led_to_their_own_console() {
        let (own, theirs) = ("https://admin.example.com", "https://wallet.example.com");
        let without = options("127.0.0.1", Some(own)).unwrap();
        let with = without.clone().with_holders(Some(theirs.to_owned()));
        let (holder, both) = ([Role::HolderAdmin], [Role::HolderViewer, Role::Support]);
        for (options, roles, origin) in [
            (&with, &holder[..], theirs),
            (&with, &both, own),
            (&with, &[], own),
            (&without, &holder, own),
        ] {
            assert_eq!(options.origin_for(roles).as_deref(), Some(origin), "{roles:?}");
        }
    }

    #[test]
    fn one_host_is_answered() {
        let proxied = options("10.0.0.1", Some("https://admin.example.com")).unwrap();
        for (host, good) in [
            ("admin.example.com", true),
            ("ADMIN.example.com:443", true),
            ("admin.example.com:8081", false),
            ("10.0.0.1:8081", false),
            ("localhost:8081", false),
            ("me@admin.example.com", false),
            ("", false),
        ] {
            assert_eq!(proxied.is_host(host), good, "{host}");
        }
        let local = options("127.0.0.1", None).unwrap();
        for (name, good) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("[::1]", true),
            ("rebound.example.com", false),
        ] {
            assert_eq!(local.is_host(&format!("{name}:{PORT}")), good, "{name}");
            assert!(!local.is_host(name), "{name} on port 80");
        }
    }
}
