//! Origins of URLs: scheme, host and port. A webhook's address has one, and the operator lists those
//! that are not judged.
//!
//! Read by hand and strictly, for what is read here is also what is connected to: a second reader
//! of the same text could see another host in it. A text with two readings is refused: a user name,
//! a backslash, `127.1`, `0x7f000001`, a letter outside of ASCII.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest name that the DNS has, and the longest part between its dots, in bytes.
const NAME_LEN_MAX: usize = 253;
const LABEL_LEN_MAX: usize = 63;

/// Scheme, host and port of a URL, such as `https://hooks.example.com`.
///
/// ```
/// use holdfast_domain::admin::webhook::Origin;
///
/// let origin = Origin::try_from("http://localhost:9000")?;
/// assert_eq!(origin.to_string(), "http://localhost:9000");
/// assert_eq!(Origin::try_from("https://Hooks.Test:443/")?.to_string(), "https://hooks.test");
/// # Ok::<(), holdfast_domain::admin::webhook::BadOrigin>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// With TLS or without.
    pub scheme: Scheme,
    /// Name or address of the server.
    pub host: Host,
    /// Port, which may be the scheme's own.
    pub port: u16,
}

/// Scheme of an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// HTTP within TLS.
    Https,
    /// HTTP that everybody on the way can read.
    Http,
}

/// Host of an origin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A name in small letters, which the DNS has addresses of.
    Name(Box<str>),
    /// An address, written out.
    Address(IpAddr),
}

/// A text that is not an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadOrigin {
    /// No `://`, or no valid port after the host.
    #[error("no scheme, host and port to begin with: write https://HOST or https://HOST:PORT")]
    Malformed,
    /// Neither `https://` nor `http://`.
    #[error("neither https:// nor http://: webhooks are sent only over HTTP")]
    Scheme,
    /// A user name or a password before the host.
    #[error("a user name or password before the host: remove it, deliveries are signed instead")]
    UserInfo,
    /// A host that is no name of the DNS and no address.
    #[error(
        "no host that can be looked up: write a name like hooks.example.com (xn-- for letters \
         outside of ASCII), an IPv4 address like 192.0.2.7, or an IPv6 address in brackets"
    )]
    Host,
    /// More than an origin: a path, a query or a fragment.
    #[error("more than an origin: end it after the host, or after the port")]
    Rest,
}

impl Scheme {
    /// Port of the origin; the scheme's default if none is written.
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
}

impl Origin {
    /// Host and port as the `host` header has them: without the port that the scheme implies.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.port == self.scheme.port() {
            return self.host.to_string();
        }
        format!("{}:{}", self.host, self.port)
    }

    /// The origin of a URL, with any path after it.
    ///
    /// # Errors
    ///
    /// [`BadOrigin`], by the first part of the URL that is none of an origin.
    pub fn of_url(url: &str) -> Result<Self, BadOrigin> {
        Self::split(url).map(|(origin, _rest)| origin)
    }

    /// Splits a URL into its origin and what follows.
    pub(super) fn split(url: &str) -> Result<(Self, &str), BadOrigin> {
        let (scheme, rest) = url.split_once("://").ok_or(BadOrigin::Malformed)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "https" => Scheme::Https,
            "http" => Scheme::Http,
            _other => return Err(BadOrigin::Scheme),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at_checked(end).ok_or(BadOrigin::Malformed)?;
        if authority.contains('@') {
            return Err(BadOrigin::UserInfo);
        }
        // A colon within brackets belongs to the address.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            Some(_) | None => (authority, None),
        };
        let port = port.map_or(Ok(scheme.port()), read_port)?;
        Ok((Self { scheme, host: Host::read(host)?, port }, rest))
    }
}

fn read_port(text: &str) -> Result<u16, BadOrigin> {
    // `+443` is a number to Rust, and no port.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| is_number && *port > 0);
    port.ok_or(BadOrigin::Malformed)
}

impl TryFrom<&str> for Origin {
    type Error = BadOrigin;

    fn try_from(text: &str) -> Result<Self, BadOrigin> {
        let (origin, rest) = Self::split(text)?;
        if matches!(rest, "" | "/") { Ok(origin) } else { Err(BadOrigin::Rest) }
    }
}

impl Host {
    fn read(text: &str) -> Result<Self, BadOrigin> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(BadOrigin::Host)?;
            let address = inner.parse::<Ipv6Addr>().ok().ok_or(BadOrigin::Host)?;
            return Ok(Self::Address(address.into()));
        }
        let last = text.rsplit('.').next().unwrap_or(text);
        if is_number(last) {
            // Resolvers read `127.1` and `0x7f000001` as addresses: only the usual spelling is one.
            let address = text.parse::<Ipv4Addr>().ok().ok_or(BadOrigin::Host)?;
            return Ok(Self::Address(address.into()));
        }
        let is_name = text.len() <= NAME_LEN_MAX && text.split('.').all(is_label);
        if is_name {
            Ok(Self::Name(text.to_ascii_lowercase().into()))
        } else {
            Err(BadOrigin::Host)
        }
    }
}

fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_label(label: &str) -> bool {
    (1..=LABEL_LEN_MAX).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Https => "https",
            Scheme::Http => "http",
        };
        write!(f, "{scheme}://{}", self.authority())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}
