//! Endpoints: the URL that a webhook sends to, once it was found fit.
//!
//! `https`, port 443, a host, no user name and no fragment; an address that is written out must be
//! global. An origin that the operator has listed may have another scheme, port and address. The
//! list is an argument of every reading, so an origin that is taken off it is sent to no more.
//!
//! Never printed: path and query, which often hold the receiver's own secret.

use std::net::IpAddr;

use super::address::is_global;
use super::origin::{BadOrigin, Host, Origin, Scheme};
use crate::debug_as;

/// URL of a webhook that may be sent to: the host to connect to, and the target there.
///
/// ```
/// use holdfast_domain::admin::webhook::{BadEndpoint, Endpoint, Origin};
///
/// let endpoint = Endpoint::parse("https://hooks.example.com/in?from=holdfast", &[])?;
/// assert_eq!(endpoint.target(), "/in?from=holdfast");
///
/// let local = "http://localhost:9000/in";
/// assert_eq!(Endpoint::parse(local, &[]), Err(BadEndpoint::Scheme));
/// let allow = [Origin::try_from("http://localhost:9000").unwrap()];
/// assert!(Endpoint::parse(local, &allow).is_ok());
/// # Ok::<(), BadEndpoint>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    origin: Origin,
    target: Box<str>,
    /// Listed by the operator: none of its addresses is judged.
    is_allowed: bool,
}

/// A text that no webhook can be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadEndpoint {
    /// Longer than [`Endpoint::LEN_MAX`].
    #[error("a URL of more than 2048 characters: write a shorter one")]
    TooLong,
    /// A fragment, which no server ever gets.
    #[error("a URL with a fragment: remove the # and what follows it")]
    Fragment,
    /// A path or a query with characters that no URL has.
    #[error("a URL with a character that must be percent-encoded, such as a space or a backslash")]
    Character,
    /// Another scheme than `https`.
    #[error(
        "a URL without https://: write https://, or have the operator list its origin under \
         allow in [webhooks]"
    )]
    Scheme,
    /// Another port than 443.
    #[error(
        "a URL with another port than 443: remove the port, or have the operator list its origin \
         under allow in [webhooks]"
    )]
    Port,
    /// An address that is not global, or leads to one.
    #[error(
        "an address that is not public: write a public one, or have the operator list its origin \
         under allow in [webhooks]"
    )]
    Address,
    /// No origin that can be connected to.
    #[error(transparent)]
    Origin(BadOrigin),
}

impl Endpoint {
    /// The longest URL, in bytes.
    pub const LEN_MAX: usize = 2_048;

    /// Reads a URL; `allow` are the origins that the operator has listed.
    ///
    /// # Errors
    ///
    /// [`BadEndpoint`], by the first mistake of the URL: [`BadEndpoint::Scheme`], [`BadEndpoint::Port`] and
    /// [`BadEndpoint::Address`] do not apply to an origin that is listed.
    pub fn parse(url: &str, allow: &[Origin]) -> Result<Self, BadEndpoint> {
        if url.len() > Self::LEN_MAX {
            return Err(BadEndpoint::TooLong);
        }
        if url.contains('#') {
            return Err(BadEndpoint::Fragment);
        }
        let (origin, target) = Origin::split(url).map_err(BadEndpoint::Origin)?;
        if !is_target(target) {
            return Err(BadEndpoint::Character);
        }
        let is_allowed = allow.contains(&origin);
        if !is_allowed {
            judge(&origin)?;
        }
        // A query may follow the host at once: a target without its slash is not a request line.
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Self { origin, target: [slash, target].concat().into(), is_allowed })
    }

    /// Scheme, host and port to connect to.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Path and query, as the request's target. It begins with a slash.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// True if this address of its host may be connected to.
    #[must_use]
    pub fn permits(&self, address: IpAddr) -> bool {
        self.is_allowed || is_global(address)
    }
}

fn judge(origin: &Origin) -> Result<(), BadEndpoint> {
    match (origin.scheme, &origin.host) {
        (Scheme::Http, Host::Name(_) | Host::Address(_)) => Err(BadEndpoint::Scheme),
        (Scheme::Https, _) if origin.port != Scheme::Https.port() => Err(BadEndpoint::Port),
        (Scheme::Https, Host::Address(address)) if !is_global(*address) => {
            Err(BadEndpoint::Address)
        }
        (Scheme::Https, Host::Name(_) | Host::Address(_)) => Ok(()),
    }
}

/// Path and query in the characters of RFC 3986, so that it goes into a request as it stands.
fn is_target(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_fine = match byte {
            b'%' => {
                let digits = [bytes.next(), bytes.next()];
                digits.iter().all(|digit| digit.is_some_and(|byte| byte.is_ascii_hexdigit()))
            }
            byte => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte),
        };
        if !is_fine {
            return false;
        }
    }
    true
}

debug_as!(Endpoint as it: "Endpoint({}/…)", it.origin);
