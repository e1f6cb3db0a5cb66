//! Request handling: from a parsed head to a response, its log line and its metrics.
//!
//! The checks come in this order, and the first that fails is the answer: `Host` and route are
//! found, the head's size is judged, then the route, then the API key, then the endpoint's own.
//! Probes and preflights of browsers leave no line in the log and need no key. A handler that panics answers
//! `internal_error` and keeps its log line. Every answer names its request and echoes a
//! well-formed `Idempotency-Key`, refusals too.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use holdfast_domain::admin::report::HolderReports;
use holdfast_engine::{AuthError, Caller, Engine};
use holdfast_net::{Client, client, group};
use holdfast_receipts::key::Signer;
use holdfast_telemetry::traces::Tracer;
use holdfast_wire::error::Code;
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Request};
use hyper::body::Incoming;
use uuid::Uuid;

use crate::body::{BodyBudget, Upload};
use crate::chat::CompletionRequest;
use crate::cors::Cors;
use crate::departure::Departure;
use crate::description;
use crate::live_options::LiveOptions;
use crate::log::{NO_ROUTE, RequestLog};
use crate::probe::answer_probe;
use crate::problem::Problem;
use crate::receipts::ReceiptCall;
use crate::reply::{
    HttpResponse, IDEMPOTENCY_KEY, not_allowed, problem, with_guard, with_request_id,
};
use crate::request_metrics::RequestMetrics;
use crate::response_body::ResponseBody;
use crate::route::{Auth, NoRoute, Route, route};
use crate::usage::UsageCall;
use crate::{chat, headers, receipts, resources, usage};

/// Shared state of all requests: engine, reports, signer, live options, metrics, body budget.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) engine: Arc<Engine>,
    pub(crate) reports: Arc<dyn HolderReports>,
    pub(crate) signer: Arc<Signer>,
    pub(crate) live: Arc<LiveOptions>,
    pub(crate) counts: Arc<RequestMetrics>,
    /// Begins the traces of requests; `None` if they are off.
    pub(crate) tracer: Option<Arc<Tracer>>,
    pub(crate) bodies: BodyBudget,
    pub(crate) departure: Departure,
}

impl Service {
    /// Answers one request. Cancel safe: a dropped future leaves operations running.
    pub(crate) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        client: Client,
    ) -> HttpResponse {
        let id = Uuid::new_v4();
        let (head, body) = request.into_parts();
        let found = if headers::has_host(&head) {
            route(&head.method, head.uri.path())
        } else {
            Err(NoRoute::Host)
        };
        let cors = self.live.read(|config| Cors::of(&config.origins, &head.headers));
        if let Some(answer) = cors.preflight(&head) {
            return self.sent(answer, id);
        }
        let probe = match found {
            Ok(route) if !route.is_logged() => answer_probe(&self.engine, route).await,
            Ok(_) | Err(_) => None,
        };
        let mut answer = match probe {
            Some(answer) => answer,
            None => self.answer_logged((id, client), found, &head, body).await,
        };
        answer = cors.put(answer);
        let is_completion = matches!(found, Ok(Route::Completions));
        if let Some(key) = headers::echo(&head.headers, is_completion) {
            answer.headers_mut().insert(IDEMPOTENCY_KEY, key);
        }
        self.sent(answer, id)
    }

    /// An answer as it goes out: with `connection: close` if the process is about to end.
    fn sent(&self, mut answer: HttpResponse, id: Uuid) -> HttpResponse {
        if self.departure.is_announced() {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        with_request_id(answer, id)
    }

    /// Answers one request with a line in the log, for every outcome.
    async fn answer_logged(
        &self,
        (id, client): (Uuid, Client),
        found: Result<Route<'_>, NoRoute>,
        head: &Parts,
        body: Incoming,
    ) -> HttpResponse {
        let label = found.as_ref().map_or(NO_ROUTE, Route::label);
        let mut log = RequestLog::new(id, label, Arc::clone(&self.counts), client.address);
        let caller = headers::caller_span(&head.headers);
        log.caller_trace = caller.map(|caller| caller.trace);
        let begun = self.tracer.as_ref().map(|tracer| tracer.begin(id, caller));
        log.trace = begun.map(|trace| (trace, headers::method_name(&head.method)));
        let body = Upload::new(body, &self.bodies);
        let result =
            // Safe to assert: after a panic only the log is used again, a row of plain values.
            AssertUnwindSafe(self.dispatch(found, head, body, &mut log)).catch_unwind().await;
        let result = result.unwrap_or_else(|_panic| {
            tracing::error!(request.id = %id, "a request's handler panicked");
            // The key may be bound by then, and its run may settle: no charge is promised.
            Err(Problem { charged: None, ..Problem::new(Code::InternalError) })
        });
        let mut answer = result.unwrap_or_else(|result| {
            log.set_error(&result);
            problem(&result)
        });
        log.status = Some(answer.status().as_u16());
        log.note_refusal(&self.engine);
        if let ResponseBody::Streamed(stream) = answer.body_mut() {
            stream.begin(client.cut, log);
        }
        answer
    }

    async fn dispatch(
        &self,
        found: Result<Route<'_>, NoRoute>,
        head: &Parts,
        body: Upload,
        log: &mut RequestLog,
    ) -> Result<HttpResponse, Problem> {
        // Loaded once: the limits of a request are the same to its end, even if a reload replaces them
        // meanwhile.
        let (options, client) = self
            .live
            .read(|config| (config.options, client(&config.trusted, log.client, &head.headers)));
        log.client = client;
        if headers::head_bytes(&head.uri, &head.headers) > options.header_bytes {
            return Err(Problem::new(Code::HeadersTooLarge));
        }
        let route = match found {
            Ok(route) => route,
            Err(no_route) => return refuse(no_route, log),
        };
        let (serving, caller) = match route.auth() {
            // Taken before the API key is looked up: a reload meanwhile is for requests that begin after it.
            Auth::ApiKey => (self.engine.serving(), self.caller(head, log).await?),
            Auth::Open => return self.answer_open(route).await,
        };
        log.caller = Some(Arc::clone(&caller));
        let engine = &self.engine;
        match route {
            Route::Completions => {
                let head = &head.headers;
                let request = CompletionRequest { options, serving, caller, head, body };
                chat::complete(engine, request, log).await
            }
            Route::Quotes => {
                let head = &head.headers;
                let request = CompletionRequest { options, serving, caller, head, body };
                Box::pin(chat::quote(engine, request, log)).await
            }
            // In boxes: a completion, which comes most, would be moved about with room for them.
            Route::Operation(key) => {
                let place = chat::enter(engine, &serving, &caller)?;
                let shown = Box::pin(resources::operation(engine, &caller, key, log)).await;
                Ok(with_guard(shown?, place))
            }
            Route::Cancel(key) => {
                let place = chat::enter(engine, &serving, &caller)?;
                let shown = Box::pin(resources::cancel(engine, &caller, key, log)).await;
                Ok(with_guard(shown?, place))
            }
            Route::Receipt(key) => {
                let place = chat::enter(engine, &serving, &caller)?;
                let (reports, signer) = (&*self.reports, &*self.signer);
                let call = ReceiptCall { caller: &caller, engine, reports, signer };
                let shown = Box::pin(receipts::receipt(call, key, log)).await;
                Ok(with_guard(shown?, place))
            }
            Route::Wallet => {
                let place = chat::enter(engine, &serving, &caller)?;
                let shown = Box::pin(resources::wallet(engine, &caller)).await;
                Ok(with_guard(shown?, place))
            }
            Route::Usage(route) => {
                let place = chat::enter(engine, &serving, &caller)?;
                let request = UsageCall { caller: &caller, uri: &head.uri, now: engine.now() };
                let shown = Box::pin(usage::answer(route, &*self.reports, request)).await;
                Ok(with_guard(shown?, place))
            }
            Route::Models => {
                let place = chat::enter(engine, &serving, &caller)?;
                Ok(with_guard(resources::models(&serving, &caller, engine.now()), place))
            }
            Route::Model(id) => {
                let place = chat::enter(engine, &serving, &caller)?;
                Ok(with_guard(resources::model(&serving, &caller, engine.now(), id)?, place))
            }
            Route::ReceiptKeys | Route::OpenApi | Route::Docs | Route::Health | Route::Ready => {
                self.answer_open(route).await
            }
        }
    }

    /// Answers on a route that requires no API key.
    async fn answer_open(&self, route: Route<'_>) -> Result<HttpResponse, Problem> {
        let probe = match route {
            Route::ReceiptKeys => return Ok(receipts::keys(&self.signer)),
            Route::OpenApi => return Ok(description::document()),
            Route::Docs => return Ok(description::page()),
            Route::Health | Route::Ready => answer_probe(&self.engine, route).await,
            // A row without a key gives access to no resource of a caller.
            Route::Completions
            | Route::Quotes
            | Route::Operation(_)
            | Route::Cancel(_)
            | Route::Receipt(_)
            | Route::Wallet
            | Route::Usage(_)
            | Route::Models
            | Route::Model(_) => None,
        };
        probe.ok_or_else(|| Problem::new(Code::InvalidApiKey))
    }

    async fn caller(&self, head: &Parts, log: &mut RequestLog) -> Result<Arc<Caller>, Problem> {
        let authenticated = match headers::bearer(&head.headers) {
            Some(bearer) => self.engine.authenticate(bearer, group(log.client)).await,
            None => Err(AuthError::Invalid),
        };
        log.is_refused =
            matches!(authenticated, Err(AuthError::Invalid | AuthError::TooManyUnknown));
        authenticated.map_err(|error| match error {
            AuthError::Invalid => Problem::new(Code::InvalidApiKey),
            AuthError::TooManyUnknown => Problem {
                message: "Too many requests with API keys that are not valid come from this \
                          address, and this one's was not looked up: send the same request again \
                          after `retry-after`."
                    .into(),
                ..Problem::new(Code::Overloaded)
            },
            AuthError::Unavailable(cause) => resources::unavailable(&cause),
        })
    }
}

/// The commonest mistake of a client that is set up by hand.
fn misspelled(right: &str) -> Problem {
    let message = format!(
        "This path does not exist: send the request to {right}. The base URL of an OpenAI client \
         ends with /v1, once and without a slash after it, and no path here ends with a slash or has two in a row."
    );
    Problem { message: message.into(), ..Problem::new(Code::NotFound) }
}

/// Hint in messages: the endpoint of completions, and the page that describes the rest.
const SERVED: &str = "This gateway serves POST /v1/chat/completions; see /docs.";

/// Answer to a request without a route.
fn refuse(no_route: NoRoute, log: &mut RequestLog) -> Result<HttpResponse, Problem> {
    match no_route {
        NoRoute::Host => Err(headers::no_host()),
        NoRoute::NotFound => Err(nothing_here()),
        NoRoute::NotServed(endpoint) => Err(not_served(endpoint)),
        NoRoute::Misspelled(right) => Err(misspelled(right)),
        NoRoute::Method(allowed) => {
            // A whole answer, because no other error has the `Allow` header.
            log.code = Some(Code::MethodNotAllowed.label());
            Ok(not_allowed(allowed))
        }
    }
}

fn nothing_here() -> Problem {
    let message = format!("This path does not exist. {SERVED}");
    Problem { message: message.into(), ..Problem::new(Code::NotFound) }
}

/// An endpoint of OpenAI's that clients are set up for by default, with the one that serves instead.
fn not_served(endpoint: &str) -> Problem {
    let instead = match endpoint {
        "/responses" => {
            " In the AI SDK, `openai.chat(model)` asks for it instead of `openai(model)`."
        }
        "/chat/completions/" => {
            " Completions are not stored by their ids: GET /v1/operations/{idempotency-key} shows an answer while it \
             is kept."
        }
        "/completions" => " Send the prompt as a message of the role user.",
        _ => "",
    };
    let message = format!("OpenAI's /v1{endpoint} is not served here. {SERVED}{instead}");
    Problem { message: message.into(), ..Problem::new(Code::NotFound) }
}
