//! The address of a process, for the others on its database.

use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// `host:port` of a node: a host name or an IPv4 address, or an IPv6 address in brackets.
///
/// ```
/// use holdfast_domain::NodeAddress;
///
/// assert_eq!(NodeAddress::try_from("gw-1.internal:8082").unwrap().port(), 8082);
/// assert!(NodeAddress::try_from("[::1]:8082").is_ok());
/// assert!(NodeAddress::try_from("http://gw-1:8082").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAddress {
    text: Arc<str>,
    port: u16,
}

impl NodeAddress {
    /// The longest address, in bytes: a host name of 253, a colon and a port.
    pub const LEN_MAX: usize = 259;

    /// The address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The port; never 0.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl TryFrom<&str> for NodeAddress {
    type Error = BadNodeAddress;

    fn try_from(text: &str) -> Result<Self, BadNodeAddress> {
        // From the end: an address of version 6 has colons of its own, in its brackets.
        let (host, port) = text.rsplit_once(':').ok_or(BadNodeAddress)?;
        // Rust reads `+1` as a number too, and no other process would write it so.
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|port| is_number && *port != 0);
        let port = port.ok_or(BadNodeAddress)?;
        let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => {
                let is_usual = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
                !host.is_empty() && host.bytes().all(is_usual)
            }
        };
        if !is_host || text.len() > Self::LEN_MAX {
            return Err(BadNodeAddress);
        }
        Ok(Self { text: text.into(), port })
    }
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A text without a host and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an address of a node: write HOST:PORT, like gw-1:8082, 10.0.0.1:8082 or [::1]:8082")]
pub struct BadNodeAddress;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_and_a_port_are_an_address() {
        for good in ["a:1", "10.0.0.1:8082", "gw_1.internal:65535", "[fe80::1]:80"] {
            assert_eq!(NodeAddress::try_from(good).unwrap().as_str(), good);
        }
        let long = format!("{}:1", "a".repeat(NodeAddress::LEN_MAX));
        for bad in [
            "",
            ":",
            "a",
            "a:",
            ":1",
            "a:0",
            "a:65536",
            "a:+1",
            "a b:1",
            "a/b:1",
            "user@a:1",
            "::1:80",
            "[::1:80",
            "[a]:80",
            "http://a:1",
            "a:1/",
            &long,
        ] {
            assert_eq!(NodeAddress::try_from(bad), Err(BadNodeAddress), "{bad}");
        }
    }
}
