//! The address of an administration: scheme and host, perhaps a port.

use std::fmt;

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
        let (host, port) = host_and_port(authority, is_https).ok_or(BadAdminUrl)?;
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

    /// Port: the scheme's default if the URL has none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(if self.is_https { 443 } else { 80 })
    }

    /// Host and port as `Host` has them: without the scheme's own port.
    #[must_use]
    pub fn authority(&self) -> String {
        self.port.map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }

    /// True for its host and port.
    #[must_use]
    pub fn is_of(&self, authority: &Authority) -> bool {
        let named = host_and_port(authority, self.is_https);
        named.is_some_and(|(host, port)| host == self.host && port == self.port)
    }
}

impl fmt::Display for AdminUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Host in lower case, and the port if it is not the scheme's own.
#[must_use]
pub fn host_and_port(authority: &Authority, is_https: bool) -> Option<(String, Option<u16>)> {
    let own = if is_https { 443 } else { 80 };
    // A colon without a number behind it, or with one too large, is no port to the library, and is
    // left out: what is longer than its host has one.
    let port = match authority.port_u16() {
        None if authority.as_str().len() > authority.host().len() => return None,
        port => port,
    };
    Some((authority.host().to_ascii_lowercase(), port.filter(|port| *port != own)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
