//! Any server that speaks OpenAI's chat completions: the client. The dialect is `holdfast_wire`'s,
//! what proves what is [`proof`](crate::proof)'s.

use async_trait::async_trait;
use holdfast_domain::ports::{Call, CallFailure, NotRunProof, Provider, Sink, UnsupportedParam};
use holdfast_domain::request::Request;
use holdfast_domain::usage::Meters;
use holdfast_wire::chat::upstream::{
    BoundField, ChunkReader, Completion, UnreadableReason, read_completion, render_request,
};
use holdfast_wire::sse::Event;
use http::{StatusCode, Uri};

use crate::adapter::{CredentialHeader, Dialect, EventOutcome, Framing, StreamParser, segment};
use crate::proof;
use crate::server::{BadOptions, BaseUrl, HttpClient, ProbeError, ServerOptions};

pub(crate) static DIALECT: Dialect =
    Dialect { framing: Framing::Events, read, follow, error_header: None, judge: proof::openai };

/// Server that speaks OpenAI's chat completions, and the field that it reads the bound from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAiOptions {
    /// Address, credential and limits of the server.
    pub server: ServerOptions,
    /// Field in which the server reads the bound on output tokens.
    pub bound_field: BoundField,
}

impl OpenAiOptions {
    /// The usual options for a server.
    #[must_use]
    pub const fn new(base_url: BaseUrl) -> Self {
        let server = ServerOptions::new(base_url);
        Self { server, bound_field: BoundField::MaxCompletionTokens }
    }
}

/// A server that speaks OpenAI's chat completions.
#[derive(Debug)]
pub struct OpenAi {
    server: HttpClient,
    completions: Address,
    models: Uri,
    bound_field: BoundField,
    dialect: &'static Dialect,
}

/// Address of completions.
#[derive(Debug)]
pub(crate) enum Address {
    /// At one address.
    One(Uri),
    /// At that of the deployment which the route names.
    OfDeployment { base_url: BaseUrl, query: String },
}

impl Address {
    fn of(&self, model: &str) -> Result<Uri, BadOptions> {
        match self {
            Self::One(uri) => Ok(uri.clone()),
            Self::OfDeployment { base_url, query } => {
                let model = segment(model);
                base_url.join(&format!("/deployments/{model}/chat/completions?{query}"))
            }
        }
    }
}

impl OpenAi {
    /// A client that has not connected yet. Reads the platform's root certificates.
    ///
    /// # Errors
    ///
    /// [`BadOptions`] where there is none with these options.
    pub fn new(options: OpenAiOptions) -> Result<Self, BadOptions> {
        let OpenAiOptions { server, bound_field } = options;
        let completions = Address::One(server.base_url.join("/chat/completions")?);
        let models = server.base_url.join("/models")?;
        Self::at(server, &CredentialHeader::Bearer, (completions, models), bound_field, &DIALECT)
    }

    /// A client of a server that speaks the dialect at addresses of its own.
    pub(crate) fn at(
        server: ServerOptions,
        shown: &CredentialHeader,
        (completions, models): (Address, Uri),
        bound_field: BoundField,
        dialect: &'static Dialect,
    ) -> Result<Self, BadOptions> {
        let server = HttpClient::new(server, shown)?;
        Ok(Self { server, completions, models, bound_field, dialect })
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
impl Provider for OpenAi {
    fn check_supported(&self, request: &Request) -> Result<(), UnsupportedParam> {
        self.server.pictures().check(request)
    }

    async fn run(&self, call: &Call, sink: &mut dyn Sink) -> Result<Option<Meters>, CallFailure> {
        let body = render_request(
            &call.request,
            &call.model,
            call.max_output_tokens,
            self.bound_field,
            call.response_mode,
        );
        // An address that cannot be is the route's mistake, and nothing was sent.
        let uri = self.completions.of(&call.model);
        let uri = uri.map_err(|_address| CallFailure::NotRun(NotRunProof::Account))?;
        self.server.exchange(self.dialect, (uri, body), call, sink).await
    }
}

/// Reads a whole answer.
pub(crate) fn read(body: &[u8], call: &Call) -> Result<Completion, UnreadableReason> {
    read_completion(body, call.request.n)
}

/// Follows the answer to a call.
pub(crate) fn follow(call: &Call) -> Box<dyn StreamParser> {
    Box::new(ChunkReader::new(call.request.n))
}

impl StreamParser for ChunkReader {
    fn read(&mut self, event: Event<'_>) -> Result<EventOutcome, UnreadableReason> {
        if event.data.trim_ascii() == b"[DONE]" {
            return Ok(EventOutcome::Last);
        }
        let gained = Self::read(self, event.data)?;
        Ok(gained.map_or(EventOutcome::Nothing, EventOutcome::More))
    }

    fn is_whole(&self) -> bool {
        Self::is_complete(self)
    }

    fn end(&self) -> Result<Option<Meters>, UnreadableReason> {
        Self::end(self)
    }
}
