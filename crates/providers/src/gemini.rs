//! Google's Gemini API: the client. [`request`] says what it is sent, [`answer`] what it answers,
//! and [`proof`] what its errors prove.

mod answer;
pub(crate) mod request;
mod turns;

use async_trait::async_trait;
use holdfast_domain::ports::{
    Call, CallFailure, NotRunProof, Provider, ResponseMode, Sink, UnsupportedParam,
};
use holdfast_domain::request::Request;
use holdfast_domain::usage::Meters;
use http::{HeaderName, StatusCode, Uri};

use crate::adapter::{CredentialHeader, Dialect, Framing, segment};
use crate::proof;
use crate::server::{BadOptions, BaseUrl, HttpClient, ProbeError, ServerOptions};
use crate::turns::NO_STATES;

/// The name of the signatures that come with calls. Another layout has another.
const SHAPE: &str = "gemini 1";

pub(crate) static DIALECT: Dialect = Dialect {
    framing: Framing::Events,
    read: answer::read,
    follow: answer::follow,
    error_header: None,
    judge: proof::gemini,
};

/// Server of the Gemini API, and the habits of its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeminiOptions {
    /// Address, credential and limits of the server.
    pub server: ServerOptions,
    /// Earlier calls without a kept signature are sent as calls of another model, so that no
    /// signature is asked for: models from Gemini 3 on refuse them otherwise.
    pub skip_signatures: bool,
}

impl GeminiOptions {
    /// Start of the API unless the operator says otherwise.
    pub const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";

    /// The usual options for a server.
    #[must_use]
    pub const fn new(base_url: BaseUrl) -> Self {
        Self { server: ServerOptions::new(base_url), skip_signatures: false }
    }
}

/// Google's Gemini API.
#[derive(Debug)]
pub struct Gemini {
    server: HttpClient,
    base_url: BaseUrl,
    models: Uri,
    skip_signatures: bool,
}

impl Gemini {
    /// A client that has not connected yet. Reads the platform's root certificates.
    ///
    /// # Errors
    ///
    /// [`BadOptions`] where there is none with these options.
    pub fn new(options: GeminiOptions) -> Result<Self, BadOptions> {
        let GeminiOptions { server, skip_signatures } = options;
        let base_url = server.base_url.clone();
        let shown = CredentialHeader::In(HeaderName::from_static("x-goog-api-key"));
        let models = base_url.join("/models")?;
        Ok(Self { server: HttpClient::new(server, &shown)?, base_url, models, skip_signatures })
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
impl Provider for Gemini {
    fn check_supported(&self, request: &Request) -> Result<(), UnsupportedParam> {
        self.server.pictures().check(request)?;
        request::translate(request, self.skip_signatures, &NO_STATES).map(drop)
    }

    fn state_shape(&self) -> Option<&'static str> {
        Some(SHAPE)
    }

    async fn run(&self, call: &Call, sink: &mut dyn Sink) -> Result<Option<Meters>, CallFailure> {
        // Who claims asks first, so neither happens; and if it did, nothing was sent.
        let body = request::render(call, self.skip_signatures)
            .map_err(|_unsupported| CallFailure::NotRun(NotRunProof::Account))?;
        let method = match call.response_mode {
            ResponseMode::Whole => "generateContent",
            ResponseMode::Streamed => "streamGenerateContent?alt=sse",
        };
        let path = format!("/models/{}:{method}", segment(&call.model));
        let uri = self
            .base_url
            .join(&path)
            .map_err(|_address| CallFailure::NotRun(NotRunProof::Account))?;
        self.server.exchange(&DIALECT, (uri, body), call, sink).await
    }
}
