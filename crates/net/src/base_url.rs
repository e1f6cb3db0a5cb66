//! Start of a server's API, and the options that no client can be made with.

use http::Uri;
use http::uri::InvalidUri;

/// Start of a server's API, such as `https://api.openai.com/v1`. Plain `http` is allowed. No slash
/// at the end, no query, no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(Box<str>);

impl BaseUrl {
    /// Address of a path of the API; `path` begins with a slash.
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
    /// A query or a fragment, to which no path can be appended.
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
