//! Anthropic's Messages API: the client. [`request`] says what it is sent, [`answer`] and
//! [`stream`] what it answers, and [`proof`] what its errors prove.

mod answer;
pub(crate) mod request;
mod stream;
mod turns;
mod usage;

use async_trait::async_trait;
use holdfast_domain::ports::{Call, CallFailure, NotRunProof, Provider, Sink, UnsupportedParam};
use holdfast_domain::request::Request;
use holdfast_domain::usage::Meters;
use http::{HeaderName, HeaderValue, StatusCode, Uri};

use crate::adapter::{CredentialHeader, Dialect, Framing};
use crate::proof;
use crate::server::{BadOptions, BaseUrl, HttpClient, ProbeError, ServerOptions};
use crate::turns::NO_STATES;

/// The name of the thoughts that come with calls. Another layout has another.
const SHAPE: &str = "anthropic 1";

/// The version of the API that is spoken here.
const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

pub(crate) static DIALECT: Dialect = Dialect {
    framing: Framing::Events,
    read: answer::read,
    follow: stream::follow,
    error_header: None,
    judge: proof::anthropic,
};

/// Server of the Messages API, and the parameters that its models take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnthropicOptions {
    /// Address, credential and limits of the server.
    pub server: ServerOptions,
    /// Models that take `temperature` and `top_p`, as older ones do; for others a
    /// value that is not the default is refused.
    pub sampling: bool,
}

impl AnthropicOptions {
    /// Start of the API unless the operator says otherwise.
    pub const BASE_URL: &str = "https://api.anthropic.com/v1";

    /// The usual options for a server.
    #[must_use]
    pub const fn new(base_url: BaseUrl) -> Self {
        Self { server: ServerOptions::new(base_url), sampling: false }
    }
}

/// Anthropic's Messages API.
#[derive(Debug)]
pub struct Anthropic {
    server: HttpClient,
    messages: Uri,
    models: Uri,
    sampling: bool,
}

impl Anthropic {
    /// A client that has not connected yet. Reads the platform's root certificates.
    ///
    /// # Errors
    ///
    /// [`BadOptions`] where there is none with these options.
    pub fn new(options: AnthropicOptions) -> Result<Self, BadOptions> {
        let AnthropicOptions { server, sampling } = options;
        let shown = CredentialHeader::In(HeaderName::from_static("x-api-key"));
        Ok(Self {
            messages: server.base_url.join("/messages")?,
            models: server.base_url.join("/models")?,
            server: HttpClient::new(server, &shown)?
                .with_header(HeaderName::from_static("anthropic-version"), VERSION),
            sampling,
        })
    }

    /// Asks for the list of models, which runs none, and tells the status of the answer. Cancel
    /// safe.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] where there was no answer.
    pub async fn probe(&self) -> Result<StatusCode, ProbeError> {
        self.server.probe(self.models.clone()).await
    }
}

#[async_trait]
impl Provider for Anthropic {
    fn check_supported(&self, request: &Request) -> Result<(), UnsupportedParam> {
        self.server.pictures().check(request)?;
        request::translate(request, self.sampling, &NO_STATES).map(drop)
    }

    fn state_shape(&self) -> Option<&'static str> {
        Some(SHAPE)
    }

    async fn run(&self, call: &Call, sink: &mut dyn Sink) -> Result<Option<Meters>, CallFailure> {
        // Who claims asks first, so this does not happen; and if it did, nothing was sent.
        let body = request::render(call, self.sampling)
            .map_err(|_unsupported| CallFailure::NotRun(NotRunProof::Account))?;
        self.server.exchange(&DIALECT, (self.messages.clone(), body), call, sink).await
    }
}
