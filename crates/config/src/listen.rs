//! Addresses that listeners are at: `IP:PORT`, or `localhost:PORT`, which is both loopback addresses.
//!
//! No name is looked up: `localhost` is loopback by its definition (RFC 6761), and the answer of a resolver may
//! be another address tomorrow, or one that other machines reach.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Address of one listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress {
    first: SocketAddr,
    is_localhost: bool,
}

/// Failure to read an address to listen on; its text goes on from the key's name.
#[derive(Debug, thiserror::Error)]
#[error(
    "not an address to listen on: write IP:PORT or localhost:PORT, like 127.0.0.1:8080 or [::1]:8080; other \
     names are not looked up"
)]
pub(crate) struct BadListen;

impl ListenAddress {
    pub(crate) fn parse(text: &str) -> Result<Self, BadListen> {
        if let Some(("localhost", port)) = text.split_once(':') {
            let port = port.parse().ok().filter(|_port| port.bytes().all(|it| it.is_ascii_digit()));
            let first = SocketAddr::from((Ipv4Addr::LOCALHOST, port.ok_or(BadListen)?));
            return Ok(Self { first, is_localhost: true });
        }
        text.parse::<SocketAddr>().map(Self::from).map_err(|_unreadable| BadListen)
    }

    /// The address that is shown and connected to; of localhost that of IPv4.
    #[must_use]
    pub const fn first(self) -> SocketAddr {
        self.first
    }

    /// Every address that it is at.
    pub fn all(self) -> impl Iterator<Item = SocketAddr> {
        let other = SocketAddr::from((Ipv6Addr::LOCALHOST, self.first.port()));
        std::iter::once(self.first).chain(self.is_localhost.then_some(other))
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(first: SocketAddr) -> Self {
        Self { first, is_localhost: false }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_localhost {
            return write!(f, "localhost:{}", self.first.port());
        }
        self.first.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_is_both_loopback_addresses_and_no_other_name_is_one() {
        let all = |text: &str| {
            let address = ListenAddress::parse(text).ok()?;
            assert_eq!(address.to_string(), text);
            Some(address.all().map(|it| it.to_string()).collect::<Vec<_>>().join(" "))
        };
        for (text, addresses) in [
            ("localhost:8080", Some("127.0.0.1:8080 [::1]:8080")),
            ("127.0.0.1:0", Some("127.0.0.1:0")),
            ("[::]:8080", Some("[::]:8080")),
            ("localhost", None),
            ("localhost:", None),
            ("localhost:+80", None),
            ("localhost:65536", None),
            ("gw-1:8080", None),
            ("127.0.0.1", None),
        ] {
            assert_eq!(all(text).as_deref(), addresses, "{text}");
        }
    }
}
