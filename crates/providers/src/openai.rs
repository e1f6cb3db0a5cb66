//! Any server that speaks OpenAI's chat completions: the client. The dialect is `holdfast_wire`'s,
//! what proves what is [`proof`](crate::proof)'s.

use std::ops::ControlFlow;

use async_trait::async_trait;
use holdfast_domain::ports::{Arrival, Call, Failure, NotRun, Provider, Sink};
use holdfast_domain::usage::Meters;
use holdfast_wire::chat::upstream::{
    BoundField, ChunkReader, Completion, Unreadable, UpstreamError, read_completion, read_error,
    render_request,
};
use http::{StatusCode, Uri};
use tokio::time::Instant;

use crate::azure::ApiVersion;
use crate::proof;
use crate::server::{self, BadOptions, BaseUrl, Server, ServerOptions, Shown, Unreached, segment};
use crate::transport::Reply;

/// How to reach one server, and what it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAiOptions {
    /// How to reach it.
    pub server: ServerOptions,
    /// In which field it reads the bound on output tokens.
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

/// A server that speaks OpenAI's chat completions over HTTP/1.1.
#[derive(Debug)]
pub struct OpenAi {
    server: Server,
    completions: Address,
    models: Uri,
    bound_field: BoundField,
    judge: Judge,
}

type Judge = fn(StatusCode, &UpstreamError) -> Failure;

/// Where completions are asked for.
#[derive(Debug)]
pub(crate) enum Address {
    /// At one address.
    One(Uri),
    /// At that of the deployment which the route names.
    OfDeployment { base_url: BaseUrl, version: ApiVersion },
}

impl Address {
    fn of(&self, model: &str) -> Result<Uri, BadOptions> {
        match self {
            Self::One(uri) => Ok(uri.clone()),
            Self::OfDeployment { base_url, version } => {
                let model = segment(model);
                base_url.at(&format!("/deployments/{model}/chat/completions?api-version={version}"))
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
        let completions = Address::One(server.base_url.at("/chat/completions")?);
        let models = server.base_url.at("/models")?;
        Self::at(server, &Shown::Bearer, (completions, models), bound_field, proof::openai)
    }

    /// A client of a server that speaks the dialect at addresses of its own.
    pub(crate) fn at(
        server: ServerOptions,
        shown: &Shown,
        (completions, models): (Address, Uri),
        bound_field: BoundField,
        judge: Judge,
    ) -> Result<Self, BadOptions> {
        let server = Server::new(server, shown)?;
        Ok(Self { server, completions, models, bound_field, judge })
    }

    /// Asks for the list of models, which runs none, and tells the status of the answer. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`Unreached`] where there was no answer.
    pub async fn probe(&self) -> Result<StatusCode, Unreached> {
        self.server.probe(self.models.clone()).await
    }

    /// Sends the call once and reads its answer.
    async fn ask(
        &self,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> (Option<StatusCode>, Result<Option<Meters>, Failure>) {
        let body = render_request(
            &call.request,
            &call.model,
            call.max_output_tokens,
            self.bound_field,
            call.arrival,
        );
        let Ok(uri) = self.completions.of(&call.model) else {
            return (None, Err(Failure::NotRun(NotRun::Account)));
        };
        match self.server.post(uri, body, call.connect, sink).await {
            Err(cause) => (None, Err(proof::of_break(cause))),
            Ok(reply) => (Some(reply.status), self.hear(call, reply, sink).await),
        }
    }

    async fn hear(
        &self,
        call: &Call,
        mut reply: Reply,
        sink: &mut dyn Sink,
    ) -> Result<Option<Meters>, Failure> {
        let status = reply.status;
        if status != StatusCode::OK {
            let error = read_error(&server::read_error(reply).await);
            return Err((self.judge)(status, &error));
        }
        let n = call.request.n;
        match call.arrival {
            // A server that knows no streams answers as it always does.
            Arrival::Streamed if !reply.is_object().await.map_err(proof::of_break)? => {
                self.follow(n, reply, sink).await
            }
            Arrival::Streamed | Arrival::Whole => {
                let body = self.server.read(reply).await.map_err(proof::of_break)?;
                let Completion { delta, meters } =
                    read_completion(&body, n).map_err(|_unreadable| proof::UNREADABLE)?;
                sink.delta(delta);
                Ok(meters)
            }
        }
    }

    /// Reads an answer that streams.
    async fn follow(
        &self,
        n: u32,
        reply: Reply,
        sink: &mut dyn Sink,
    ) -> Result<Option<Meters>, Failure> {
        let mut reader = ChunkReader::new(n);
        let heard = self.server.each_event(reply, |event| {
            if event.name == b"error" {
                return Err(Unreadable::Error);
            }
            match event.data.trim_ascii() {
                b"[DONE]" => return Ok(ControlFlow::Break(())),
                // Some keep a connection alive so.
                b"" => {}
                chunk => {
                    if let Some(delta) = reader.read(chunk)? {
                        sink.delta(delta);
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        });
        match heard.await {
            Err(failure) if !reader.is_whole() => Err(failure),
            // Everything was said: what is missing is at most the usage, and the word that it ends.
            Ok(()) | Err(_) => reader.end().map_err(|_unreadable| proof::UNREADABLE),
        }
    }
}

#[async_trait]
impl Provider for OpenAi {
    async fn run(&self, call: &Call, sink: &mut dyn Sink) -> Result<Option<Meters>, Failure> {
        let begun = Instant::now();
        let (status, outcome) = self.ask(call, sink).await;
        server::tell(begun, status, outcome.as_ref().err());
        outcome
    }
}
