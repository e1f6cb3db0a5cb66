//! Options of one server behind a provider, for any dialect: its address, the operator's credential there, the
//! limits of its answers, and the certificates that its TLS trusts.
//!
//! Never: a credential that prints, or one within an address, in which it would end up in logs. All further
//! options of a kind are in the kind's own.

use std::net::IpAddr;
use std::time::Duration;

use holdfast_domain::debug_as;
use holdfast_net::{BaseUrl, Proxies, ServerClient};
use http::{HeaderName, HeaderValue, header};
use rustls::pki_types::CertificateDer;

use crate::images::ImageUrls;

/// Address, credential and limits of one server, for any dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOptions {
    /// Start of the API; paths are appended to it.
    pub base_url: BaseUrl,
    /// The operator's credential there.
    pub api_key: Option<UpstreamKey>,
    /// Age up to which an idle connection is used: less than the server's own keep-alive. It is
    /// closed within as much time again; zero keeps none.
    pub pool_idle: Duration,
    /// The largest answer that is read, in bytes, if it does not stream.
    pub response_bytes_max: usize,
    /// The largest event of an answer that streams, in bytes.
    pub event_bytes_max: usize,
    /// Root certificates to trust besides the platform's and Mozilla's.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// Proxies of the operator, and the servers that are reached without.
    pub proxies: Proxies,
    /// Header in which the key of each call goes along. The header is no proof: no request is repeated because
    /// of it.
    pub key_header: Option<KeyHeader>,
    /// URLs of pictures that the server is handed, by their scheme.
    pub image_urls: ImageUrls,
    /// Addresses of this machine: no URL of a picture that it is handed names one.
    pub own_addresses: Vec<IpAddr>,
}

impl ServerOptions {
    /// Default of `pool_idle`.
    pub const POOL_IDLE: Duration = ServerClient::POOL_IDLE;
    /// The largest answer that is read unless the operator sets another size.
    pub const RESPONSE_BYTES_MAX: usize = 16 * 1024 * 1024;
    /// The largest event that is read unless the operator sets another size: far more than a model sends in
    /// one.
    pub const EVENT_BYTES_MAX: usize = 1024 * 1024;

    /// The usual options for a server.
    #[must_use]
    pub const fn new(base_url: BaseUrl) -> Self {
        Self {
            base_url,
            api_key: None,
            pool_idle: Self::POOL_IDLE,
            response_bytes_max: Self::RESPONSE_BYTES_MAX,
            event_bytes_max: Self::EVENT_BYTES_MAX,
            extra_roots: Vec::new(),
            proxies: Proxies::none(),
            key_header: None,
            image_urls: ImageUrls::Https,
            own_addresses: Vec::new(),
        }
    }
}

/// The operator's credential at a server. It never prints.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamKey {
    pub(crate) plain: HeaderValue,
    pub(crate) bearer: HeaderValue,
}

/// A text that cannot be a credential: empty, or not visible ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a credential: visible ASCII characters are expected")]
pub struct BadUpstreamKey;

impl TryFrom<&str> for UpstreamKey {
    type Error = BadUpstreamKey;

    fn try_from(key: &str) -> Result<Self, BadUpstreamKey> {
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_graphic()) {
            return Err(BadUpstreamKey);
        }
        let header = |text: String| {
            let mut header = HeaderValue::try_from(text).map_err(|_reason| BadUpstreamKey)?;
            // Sensitive values print as such, and HTTP/2 leaves them out of its compression table.
            header.set_sensitive(true);
            Ok(header)
        };
        Ok(Self { plain: header(key.to_owned())?, bearer: header(format!("Bearer {key}"))? })
    }
}

debug_as!(UpstreamKey: "UpstreamKey(…)");

/// Name of a header for the keys of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHeader(pub(crate) HeaderName);

/// A text that cannot name the header of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a header for a key: a name like Idempotency-Key is expected, which no other header has"
)]
pub struct BadKeyHeader;

impl KeyHeader {
    /// Headers that every request has, or that HTTP reads itself.
    const TAKEN: [HeaderName; 12] = [
        header::ACCEPT,
        header::ACCEPT_ENCODING,
        header::AUTHORIZATION,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::EXPECT,
        header::HOST,
        header::TE,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::USER_AGENT,
    ];
}

impl TryFrom<&str> for KeyHeader {
    type Error = BadKeyHeader;

    fn try_from(name: &str) -> Result<Self, BadKeyHeader> {
        let name: HeaderName = name.parse().map_err(|_malformed| BadKeyHeader)?;
        if Self::TAKEN.contains(&name) { Err(BadKeyHeader) } else { Ok(Self(name)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_provider_never_prints() {
        let key = UpstreamKey::try_from("s3cret").unwrap();
        assert_eq!(format!("{key:?} {key:#?}"), "UpstreamKey(…) UpstreamKey(…)");
    }
}
