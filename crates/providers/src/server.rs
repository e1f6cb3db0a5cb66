//! Client of one server behind a provider: its address, the operator's credential, and the part of
//! a call that is the same for every kind.
//!
//! ```text
//! exchange ─▶ headers, signature ─▶ Transport::send ─┬─ no answer ─▶ proof::of_send_error
//!                                                    ├─ 200 ───────▶ response::receive
//!                                                    └─ other ─────▶ read_error ─▶ Dialect::judge
//! ```
//!
//! A failure is judged by what is proven about the run, never by what is likely. Two rules stand
//! here because they hold for every kind: a 200 alone is read as an answer, and a "not run" from an
//! answer that a relaying proxy may have written is lowered to "unknown".
//!
//! Never: a call that is sent twice, a credential that prints, a word of an error's body outside of
//! `proof`. A kind's headers and signer come through `adapter`; none is named here.
//!
//! Limits: an error's body is read up to `ERROR_BYTES_MAX` and for `ERROR_TIME_MAX`, answers and
//! events up to `ServerOptions::response_bytes_max` and `event_bytes_max`. The time of a whole call
//! is its caller's, who drops the future.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use holdfast_domain::ports::{Call, CallFailure, Cause, Sink, UnknownReason};
use holdfast_domain::usage::Meters;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::uri::InvalidUri;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::Instant;

use crate::adapter::{CredentialHeader, Dialect, ErrorResponse, RequestSigner, SignableRequest};
use crate::images::{ImagePolicy, ImageUrls};
use crate::proof;
use crate::proxy::Proxies;
use crate::response::{SizeLimits, receive};
use crate::transport::{Transport, UpstreamResponse};

/// Length and time within which an error's body is read. A body that is longer or later counts as
/// empty: the status alone proves less, never more.
const ERROR_BYTES_MAX: usize = 64 * 1024;
const ERROR_TIME_MAX: Duration = Duration::from_secs(2);
/// Statuses that speak for the server and not of the request: a pause that comes with any other one
/// keeps nobody away from the server.
const ASKING: [u16; 3] = [429, 503, 529];

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
    pub(crate) fn join(&self, path: &str) -> Result<Uri, BadOptions> {
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
    plain: HeaderValue,
    bearer: HeaderValue,
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

impl fmt::Debug for UpstreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamKey(…)")
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

/// Probe without an answer: the host was not resolved or not connected, or spoke no TLS or no HTTP.
#[derive(Debug, thiserror::Error)]
#[error("there is no answer")]
pub struct ProbeError(#[source] Cause);

/// A client of one server.
#[derive(Debug)]
pub(crate) struct HttpClient {
    transport: Transport,
    headers: HeaderMap,
    signer: Option<Box<dyn RequestSigner>>,
    pictures: ImagePolicy,
    lengths: SizeLimits,
}

impl HttpClient {
    /// A client that has not connected yet. Reads the platform's root certificates.
    pub(crate) fn new(
        options: ServerOptions,
        shown: &CredentialHeader,
    ) -> Result<Self, BadOptions> {
        let json = HeaderValue::from_static("application/json");
        let agent = concat!("holdfast/", env!("CARGO_PKG_VERSION"));
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, json.clone());
        headers.insert(ACCEPT, json);
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        if let Some(UpstreamKey { plain, bearer }) = options.api_key {
            match shown {
                CredentialHeader::Bearer => headers.insert(AUTHORIZATION, bearer),
                CredentialHeader::In(name) => headers.insert(name, plain),
            };
        }
        Ok(Self {
            transport: Transport::new(
                tls(options.extra_roots)?,
                options.proxies,
                options.pool_idle,
            ),
            headers,
            signer: None,
            pictures: ImagePolicy { urls: options.image_urls, own: options.own_addresses },
            lengths: SizeLimits {
                whole_max: options.response_bytes_max,
                event_max: options.event_bytes_max,
            },
        })
    }

    /// Pictures that the server may be handed.
    pub(crate) const fn pictures(&self) -> &ImagePolicy {
        &self.pictures
    }

    /// The same, which also sends this with every call.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The same, which also signs every request.
    pub(crate) fn with_signer(self, signer: Box<dyn RequestSigner>) -> Self {
        Self { signer: Some(signer), ..self }
    }

    /// The headers of one request, as of now.
    fn headers_of(&self, method: &Method, uri: &Uri, body: &[u8]) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(signer) = &self.signer {
            signer.sign(&SignableRequest { method, uri, body }, SystemTime::now(), &mut headers);
        }
        headers
    }

    /// Sends a body once and has its answer read.
    pub(crate) async fn exchange(
        &self,
        dialect: &Dialect,
        (uri, body): (Uri, Vec<u8>),
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<Meters>, CallFailure> {
        let begun = Instant::now();
        let request = self.request(uri, body);
        let sent = self
            .transport
            .send(request, call.connect, dialect.error_header.as_ref(), &mut || sink.on_send())
            .await;
        let (status, outcome) = match sent {
            Err(cause) => (None, Err(proof::of_send_error(cause))),
            Ok(reply) if reply.status == StatusCode::OK => {
                (Some(StatusCode::OK), receive(dialect, reply, self.lengths, call, sink).await)
            }
            Ok(reply) => {
                if let Some(time) =
                    reply.retry_after.filter(|_| ASKING.contains(&reply.status.as_u16()))
                {
                    // Before the body is read: a body that does not come must not keep this back.
                    sink.on_retry_after(time);
                }
                let is_relayed = reply.is_relayed;
                // In a box, as what few calls come to: every call would have room for it.
                let rejected = Box::pin(read_error(reply)).await;
                let failure = match (dialect.judge)(&rejected) {
                    // The server may have run what a proxy then kept back.
                    CallFailure::NotRun(_) if is_relayed => {
                        CallFailure::Unknown(UnknownReason::Status)
                    }
                    failure @ (CallFailure::NotRun(_)
                    | CallFailure::Refused(_)
                    | CallFailure::Unknown(_)) => failure,
                };
                (Some(rejected.status), Err(failure))
            }
        };
        tracing::debug!(
            class = outcome.as_ref().map_or_else(CallFailure::label, |_| "answered"),
            status = status.map(|status| status.as_u16()),
            latency_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            "provider call ended"
        );
        outcome
    }

    /// POST of a body with the headers of now. In a box: it goes from hand to hand.
    fn request(&self, uri: Uri, body: Vec<u8>) -> Box<Request<Vec<u8>>> {
        let headers = self.headers_of(&Method::POST, &uri, &body);
        let mut request = Box::new(Request::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        request
    }

    /// Asks for something that has no effect, and tells the status of the answer.
    pub(crate) async fn probe(&self, uri: Uri) -> Result<StatusCode, ProbeError> {
        let headers = self.headers_of(&Method::GET, &uri, b"");
        self.transport.get(uri, headers).await.map_err(ProbeError)
    }
}

/// Reads an answer that is no success.
async fn read_error(reply: UpstreamResponse) -> ErrorResponse {
    let kind = reply.kind.as_ref().and_then(|kind| kind.to_str().ok()).map(str::to_owned);
    let status = reply.status;
    let mut uncounted = |_bytes| {};
    let body = reply.read(ERROR_BYTES_MAX, &mut uncounted);
    let body = match tokio::time::timeout(ERROR_TIME_MAX, body).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) | Err(_) => Bytes::new(),
    };
    ErrorResponse { status, kind, body }
}

/// Trusts Mozilla's roots, the platform's (or those of `SSL_CERT_FILE`) and the extra ones.
fn tls(extra_roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig, BadOptions> {
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
