//! Options of one server behind a provider, whatever it speaks: its address, the operator's
//! credential there, the limits of its answers, and whom its TLS trusts.
//!
//! Never: a credential that prints, or one within an address, where it would end up in logs.
//! Anything that a kind has besides is in the kind's own options.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::debug_as;
use http::uri::InvalidUri;
use http::{HeaderName, HeaderValue, Uri, header};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use crate::images::ImageUrls;
use crate::proxy::Proxies;

/// Address, credential and limits of one server, whatever it speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOptions {
    /// Start of the API; paths are appended to it.
    pub base_url: BaseUrl,
    /// The operator's credential there.
    pub api_key: Option<UpstreamKey>,
    /// Age up to which an idle connection is used: less than the server's own keep-alive. It is
    /// closed within as much time again; zero keeps none.
    pub pool_idle: Duration,
    /// The largest answer that is read, in bytes, where it does not stream.
    pub response_bytes_max: usize,
    /// The largest event of an answer that streams, in bytes.
    pub event_bytes_max: usize,
    /// Root certificates to trust besides the platform's and Mozilla's.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// Proxies of the operator, and the servers that are reached without.
    pub proxies: Proxies,
    /// Header in which the key of each call goes along. It proves nothing: nothing is sent again by
    /// it.
    pub key_header: Option<KeyHeader>,
    /// URLs of pictures that the server is handed, by their scheme.
    pub image_urls: ImageUrls,
    /// Addresses of this machine: no URL of a picture that it is handed names one.
    pub own_addresses: Vec<IpAddr>,
}

impl ServerOptions {
    /// Default of `pool_idle`.
    pub const POOL_IDLE: Duration = Duration::from_secs(4);
    /// The largest answer that is read unless the operator says otherwise.
    pub const RESPONSE_BYTES_MAX: usize = 16 * 1024 * 1024;
    /// The largest event that is read unless the operator says otherwise: far more than a model
    /// says at once.
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

/// Start of a server's API, such as `https://api.openai.com/v1`. Plain `http` is allowed. No slash
/// at the end, no query, no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(Box<str>);

impl BaseUrl {
    /// The address of something in the API; `path` begins with a slash.
    ///
    /// # Errors
    ///
    /// [`BadOptions::Address`]: the path cannot be in one.
    pub fn join(&self, path: &str) -> Result<Uri, BadOptions> {
        format!("{}{path}", self.0).parse().map_err(BadOptions::Address)
    }
}

/// A text that is not a base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBaseUrl {
    /// No URL can be read from the text, or its port is none.
    #[error("not a URL: write https://HOST, and the path where the API begins")]
    Malformed,
    /// Not `http://` or `https://`, followed by a host.
    #[error("not http://HOST or https://HOST, and the path where the API begins")]
    Server,
    /// Credentials in the URL, which would end up in logs.
    #[error("a URL with a user name or password: use api_key instead")]
    Userinfo,
    /// A query or a fragment, which nothing can be appended to.
    #[error("a URL with a query or a fragment: remove it")]
    Query,
    /// The address of the completions themselves.
    #[error("the address of the completions: leave /chat/completions away, it is appended")]
    Endpoint,
}

impl TryFrom<&str> for BaseUrl {
    type Error = BadBaseUrl;

    fn try_from(url: &str) -> Result<Self, BadBaseUrl> {
        // Before parsing: `Uri` drops a fragment without a word.
        if url.contains(['?', '#']) {
            return Err(BadBaseUrl::Query);
        }
        let base: Uri = url.parse().map_err(|_reason| BadBaseUrl::Malformed)?;
        let authority = base.authority().ok_or(BadBaseUrl::Server)?;
        if authority.as_str().contains('@') {
            return Err(BadBaseUrl::Userinfo);
        }
        let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        // `port_u16` is `None` for no port and for one like `:65536` alike: the text tells them
        // apart.
        if !port.is_empty() && authority.port_u16().is_none() {
            return Err(BadBaseUrl::Malformed);
        }
        if authority.host().is_empty() || !matches!(base.scheme_str(), Some("http" | "https")) {
            return Err(BadBaseUrl::Server);
        }
        let base = url.trim_end_matches('/');
        if base.ends_with("/chat/completions") {
            return Err(BadBaseUrl::Endpoint);
        }
        Ok(Self(base.into()))
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

/// Options that no client can be made with.
#[derive(Debug, thiserror::Error)]
pub enum BadOptions {
    /// An extra root certificate that cannot be read.
    #[error("a root certificate cannot be read")]
    Root(#[source] rustls::Error),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// The base URL and what is appended to it are no address.
    #[error("the base URL cannot be appended to")]
    Address(#[source] InvalidUri),
}

/// Trusts Mozilla's roots, the platform's (or those of `SSL_CERT_FILE`) and the extra ones.
pub(crate) fn tls(extra_roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig, BadOptions> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    // A platform without roots, or with some that cannot be read, is common and no mistake.
    let platform = rustls_native_certs::load_native_certs();
    let (added, ignored) = roots.add_parsable_certificates(platform.certs);
    tracing::debug!(added, ignored, errors = platform.errors.len(), "platform roots read");
    for root in extra_roots {
        roots.add(root).map_err(BadOptions::Root)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(BadOptions::Tls)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
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
