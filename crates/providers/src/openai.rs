//! Any server that speaks OpenAI's chat completions: the client. The dialect is `holdfast_wire`'s,
//! what proves what is [`proof`]'s.

mod proof;
mod transport;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::ports::{Call, Cause, Failure, Provider, Sink};
use holdfast_domain::usage::Meters;
use holdfast_wire::chat::upstream::{
    BoundField, Completion, UpstreamError, read_completion, read_error, render_request,
};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::Instant;

use self::transport::{Reply, Transport};

/// An error body is read so far and so long; what is not known of it by then is not needed: the
/// status alone proves less, never more.
const ERROR_BYTES_MAX: usize = 64 * 1024;
const ERROR_TIME_MAX: Duration = Duration::from_secs(2);
const COMPLETIONS: &str = "/chat/completions";
const MODELS: &str = "/models";

/// How to reach one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAiOptions {
    /// Where its API begins.
    pub base_url: BaseUrl,
    /// The operator's credential there.
    pub api_key: Option<UpstreamKey>,
    /// In which field the server reads the bound on output tokens.
    pub bound_field: BoundField,
    /// How long a connection may idle and still be used: less than the server's own keep-alive. It is
    /// closed soon after.
    pub pool_idle: Duration,
    /// The largest answer that is read, in bytes.
    pub response_bytes_max: usize,
    /// Root certificates to trust besides the platform's and Mozilla's.
    pub extra_roots: Vec<CertificateDer<'static>>,
}

impl OpenAiOptions {
    /// How long a connection idles unless the operator says otherwise.
    pub const POOL_IDLE: Duration = Duration::from_secs(4);
    /// The largest answer that is read unless the operator says otherwise.
    pub const RESPONSE_BYTES_MAX: usize = 16 * 1024 * 1024;

    /// The usual options for a server.
    #[must_use]
    pub const fn new(base_url: BaseUrl) -> Self {
        Self {
            base_url,
            api_key: None,
            bound_field: BoundField::MaxCompletionTokens,
            pool_idle: Self::POOL_IDLE,
            response_bytes_max: Self::RESPONSE_BYTES_MAX,
            extra_roots: Vec::new(),
        }
    }
}

/// Where a server's API begins, such as `https://api.openai.com/v1`. Plain `http` is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    completions: Uri,
    models: Uri,
}

/// A text that is not a base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBaseUrl {
    /// It cannot be read at all.
    #[error("not a URL: write https://HOST, and the path where the API begins")]
    Malformed,
    /// Not `http://` or `https://`, followed by a host.
    #[error("not http://HOST or https://HOST, and the path where the API begins")]
    Server,
    /// It carries credentials, which would end up in logs.
    #[error("a URL with a user name or password: use api_key instead")]
    Userinfo,
    /// It carries a query or a fragment, which nothing can be appended to.
    #[error("a URL with a query or a fragment: remove it")]
    Query,
    /// It is the address of the completions themselves.
    #[error("the address of the completions: leave /chat/completions away, it is appended")]
    Endpoint,
}

impl TryFrom<&str> for BaseUrl {
    type Error = BadBaseUrl;

    fn try_from(url: &str) -> Result<Self, BadBaseUrl> {
        if url.contains(['?', '#']) {
            return Err(BadBaseUrl::Query);
        }
        let parse = |url: &str| url.parse::<Uri>().map_err(|_reason| BadBaseUrl::Malformed);
        let base = parse(url)?;
        let authority = base.authority().ok_or(BadBaseUrl::Server)?;
        if authority.as_str().contains('@') {
            return Err(BadBaseUrl::Userinfo);
        }
        let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        if !port.is_empty() && authority.port_u16().is_none() {
            return Err(BadBaseUrl::Malformed);
        }
        if authority.host().is_empty() || !matches!(base.scheme_str(), Some("http" | "https")) {
            return Err(BadBaseUrl::Server);
        }
        let base = url.trim_end_matches('/');
        if base.ends_with(COMPLETIONS) {
            return Err(BadBaseUrl::Endpoint);
        }
        let completions = parse(&format!("{base}{COMPLETIONS}"))?;
        Ok(Self { completions, models: parse(&format!("{base}{MODELS}"))? })
    }
}

/// The operator's credential at a server. It never prints.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamKey(HeaderValue);

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
        let mut bearer =
            HeaderValue::try_from(format!("Bearer {key}")).map_err(|_reason| BadUpstreamKey)?;
        bearer.set_sensitive(true);
        Ok(Self(bearer))
    }
}

impl fmt::Debug for UpstreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamKey(…)")
    }
}

/// Why there is no client with these options.
#[derive(Debug, thiserror::Error)]
pub enum BadOptions {
    /// One of the extra root certificates cannot be read.
    #[error("a root certificate cannot be read")]
    Root(#[source] rustls::Error),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

/// Why a server did not answer: not resolved, not connected, no TLS, or no HTTP.
#[derive(Debug, thiserror::Error)]
#[error("there is no answer")]
pub struct Unreached(#[source] Cause);

/// A server that speaks OpenAI's chat completions over HTTP/1.1, with answers that arrive whole.
#[derive(Debug)]
pub struct OpenAi {
    transport: Transport,
    base_url: BaseUrl,
    headers: HeaderMap,
    bound_field: BoundField,
    response_bytes_max: usize,
}

impl OpenAi {
    /// A client that has not connected yet. Reads the platform's root certificates.
    ///
    /// # Errors
    ///
    /// [`BadOptions`] where TLS cannot be had with them.
    pub fn new(options: OpenAiOptions) -> Result<Self, BadOptions> {
        let tls = tls(options.extra_roots)?;
        let json = HeaderValue::from_static("application/json");
        let agent = concat!("holdfast/", env!("CARGO_PKG_VERSION"));
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, json.clone());
        headers.insert(ACCEPT, json);
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        if let Some(UpstreamKey(bearer)) = options.api_key {
            headers.insert(AUTHORIZATION, bearer);
        }
        Ok(Self {
            transport: Transport::new(tls, options.pool_idle),
            base_url: options.base_url,
            headers,
            bound_field: options.bound_field,
            response_bytes_max: options.response_bytes_max,
        })
    }

    /// Asks for the list of models, which runs none, and tells the status of the answer. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`Unreached`] where there was no answer.
    pub async fn probe(&self) -> Result<StatusCode, Unreached> {
        let (uri, headers) = (self.base_url.models.clone(), self.headers.clone());
        self.transport.get(uri, headers).await.map_err(Unreached)
    }

    /// Sends the call once and reads its answer.
    async fn ask(
        &self,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> (Option<StatusCode>, Result<Completion, Failure>) {
        let body =
            render_request(&call.request, &call.model, call.max_output_tokens, self.bound_field);
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.base_url.completions.clone();
        *request.headers_mut() = self.headers.clone();
        let mut sending = || sink.sending();
        match self.transport.send(request, call.connect, &mut sending).await {
            Err(cause) => (None, Err(proof::of_break(cause))),
            Ok(reply) => (Some(reply.status), self.hear(call, reply).await),
        }
    }

    async fn hear(&self, call: &Call, reply: Reply) -> Result<Completion, Failure> {
        let status = reply.status;
        if status == StatusCode::OK {
            let body = reply.read(self.response_bytes_max).await.map_err(proof::of_break)?;
            return read_completion(&body, call.request.n).map_err(|_unreadable| proof::UNREADABLE);
        }
        let read = tokio::time::timeout(ERROR_TIME_MAX, reply.read(ERROR_BYTES_MAX));
        let error = match read.await {
            Ok(Ok(body)) => read_error(&body),
            Ok(Err(_)) | Err(_) => UpstreamError::default(),
        };
        Err(proof::of_status(status, &error))
    }
}

#[async_trait]
impl Provider for OpenAi {
    async fn run(&self, call: &Call, sink: &mut dyn Sink) -> Result<Option<Meters>, Failure> {
        let begun = Instant::now();
        let (status, outcome) = self.ask(call, sink).await;
        tracing::debug!(
            class = outcome.as_ref().map_or_else(Failure::label, |_| "answered"),
            status = status.map(|status| status.as_u16()),
            latency_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            "provider call ended"
        );
        let Completion { delta, meters } = outcome?;
        sink.delta(delta);
        Ok(meters)
    }
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
