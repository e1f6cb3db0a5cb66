//! The address under which administration is served, and the rule of where it is.
//!
//! | listener | `admin.url` | served |
//! |---|---|---|
//! | on loopback | none | under `localhost`, `127.0.0.1` and `[::1]` with the listener's port |
//! | on loopback | any | under the URL's host alone |
//! | elsewhere | `https://…` | under the URL's host alone |
//! | elsewhere | none, or `http://…` | not at all: keys would cross a network in plain text |
//!
//! `Host` is compared because a browser within the network can be made to send requests under any
//! other name (DNS rebinding), and because a listener that was opened by an upgrade answers nobody.

use std::fmt;
use std::net::SocketAddr;

use holdfast_domain::admin::Role;
use http::Uri;
use http::uri::Authority;

/// URL under which people reach the administration: scheme and host, perhaps a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminUrl {
    is_https: bool,
    host: String,
    port: Option<u16>,
}

/// A text that is no such URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an address: write scheme and host, perhaps a port, like https://admin.example.com")]
pub struct BadAdminUrl;

impl AdminUrl {
    /// Reads a URL without a path, a query or user information.
    ///
    /// # Errors
    ///
    /// [`BadAdminUrl`] for anything else.
    pub fn parse(text: &str) -> Result<Self, BadAdminUrl> {
        let uri: Uri = text.parse().ok().ok_or(BadAdminUrl)?;
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) | None => return Err(BadAdminUrl),
        };
        let authority = uri.authority().ok_or(BadAdminUrl)?;
        let is_bare = uri.path_and_query().is_none_or(|rest| rest.as_str() == "/");
        if !is_bare || text.contains(['@', '#', '?']) || authority.host().is_empty() {
            return Err(BadAdminUrl);
        }
        let (host, port) = split(authority, is_https).ok_or(BadAdminUrl)?;
        Ok(Self { is_https, host, port })
    }

    /// True for `https`.
    #[must_use]
    pub const fn is_https(&self) -> bool {
        self.is_https
    }

    /// Host in lower case; an IPv6 address in its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port: the scheme's own where none is written.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(if self.is_https { 443 } else { 80 })
    }

    /// Host and port as `Host` has them: without the scheme's own port.
    #[must_use]
    pub fn authority(&self) -> String {
        self.port.map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }
}

impl fmt::Display for AdminUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Host in lower case, and the port where it is not the scheme's own.
fn split(authority: &Authority, is_https: bool) -> Option<(String, Option<u16>)> {
    let own = if is_https { 443 } else { 80 };
    // A colon without a number behind it, or with one too large, is no port to the library, and is
    // left out: what is longer than its host has one.
    let port = match authority.port_u16() {
        None if authority.as_str().len() > authority.host().len() => return None,
        port => port,
    };
    Some((authority.host().to_ascii_lowercase(), port.filter(|port| *port != own)))
}

/// Options of the administration's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminOptions {
    url: Option<AdminUrl>,
    port: u16,
    /// Scheme, host and port of the holders' own console, where there is one.
    holders: Option<String>,
}

impl AdminOptions {
    /// Options for a listener at this address; `None` where nothing but metrics and probes may be
    /// served there.
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

    /// The same with the origin of the holders' own console, where their links lead.
    #[must_use]
    pub fn with_holders(self, holders: Option<String>) -> Self {
        Self { holders, ..self }
    }

    /// Scheme, host and port at which a person of these roles signs in, where they are known: the holders'
    /// own console for whoever has no other role.
    #[must_use]
    pub fn origin_for(&self, roles: &[Role]) -> Option<String> {
        let is_holder = !roles.is_empty() && roles.iter().all(|role| role.is_holder());
        let own = || self.url.as_ref().map(ToString::to_string);
        self.holders.clone().filter(|_holders| is_holder).or_else(own)
    }

    /// True where people reach it by `https`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.url.as_ref().is_some_and(AdminUrl::is_https)
    }

    /// True where a request may name this host.
    #[must_use]
    pub fn is_host(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        if authority.as_str().contains('@') {
            return false;
        }
        match &self.url {
            Some(url) => {
                let told = split(&authority, url.is_https);
                told.is_some_and(|(host, port)| host == url.host && port == url.port)
            }
            None => split(&authority, false).is_some_and(|(host, port)| {
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
    fn a_url_is_a_scheme_a_host_and_perhaps_a_port() {
        for (text, shown) in [
            ("https://Admin.Example.com", "https://admin.example.com"),
            ("https://admin.example.com:443/", "https://admin.example.com"),
            ("http://192.0.2.1:8081", "http://192.0.2.1:8081"),
            ("https://[::1]:8443", "https://[::1]:8443"),
        ] {
            assert_eq!(AdminUrl::parse(text).unwrap().to_string(), shown);
        }
        for bad in [
            "",
            "admin.example.com",
            "ftp://a",
            "https://",
            "https://a/b",
            "https://a?b",
            "https://a#b",
            "https://me@a",
            "https://a:",
            "https://a:70000",
        ] {
            assert_eq!(AdminUrl::parse(bad), Err(BadAdminUrl), "{bad}");
        }
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
