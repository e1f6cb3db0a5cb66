//! The operator's listener: metrics behind a token, the API of administration and the console, apart from the
//! public API.
//!
//! ```text
//! /healthz, /readyz ─▶ every client
//! /admin/…          ─▶ the API's handler, if one was given; it has keys of its own
//! /metrics          ─▶ the token
//! all else          ─▶ the console's handler, if one was given; else as /metrics
//! ```
//!
//! Probes are answered first and to every client, then the token is judged, and only then path and method: a
//! client without a token learns nothing about the routes. Neither handler is given the token. No API key is
//! valid here, and the token is valid in no other place.
//!
//! Limits: [`CONNECTIONS`] of operators, [`HOLDERS_CONNECTIONS`] of holders, a quarter of them for one address.
//! Beyond them probes are answered, and on the operator's listener every request that the token or an admin key
//! opens.
//!
//! Holders' pages have a listener of their own ([`serve_holders`]), with only the probes and the pages. No path
//! leads from there to the API of administration or to the metrics.
//!
//! A handler gets the request with its body unread, and the client's address behind the proxies that are
//! believed. This crate does not know the handlers' answers: no router, no role, no use case. The guarantees
//! that hold for all handlers are here: a head of 16 KiB, an answer after a panic, `x-request-id`.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use holdfast_domain::debug_as;
use holdfast_engine::Engine;
use holdfast_net::{
    AbortSignal, Admission, Client, ConnectionLimiter, ConnectionOptions, Listener, ListenerLimits,
    Network, ReadTimeouts, RefusalLog, SpareAnswer, accept, client_beyond, connection, finish,
    spare_connection,
};
use holdfast_wire::error::Code;
use http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Request, Response};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::headers;
use crate::probe::{answer_length, answer_probe};
use crate::problem::Problem;
use crate::reply::{HttpResponse, NO_SNIFF, not_allowed, problem, with_request_id};
use crate::response_body::{BodyError, FallibleBody, ResponseBody};
use crate::route::route;

/// Renders the metrics in Prometheus' text format.
pub type Metrics = Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>;

/// Answers a request of the API of administration, or of the console; the address is its client's.
pub type AdminHandler = Arc<
    dyn Fn(Request<Incoming>, IpAddr) -> BoxFuture<'static, Response<HandlerBody>> + Send + Sync,
>;

/// Body of a handler's answer.
pub enum HandlerBody {
    /// All of it.
    Whole(Bytes),
    /// Bytes that are still to come. An error ends the connection, and not the body.
    Streamed(BoxStream<'static, Result<Bytes, BodyError>>),
}

debug_as!(HandlerBody: "HandlerBody");

impl HandlerBody {
    /// The body on its connection.
    fn on(self, connection: AbortSignal) -> ResponseBody {
        match self {
            Self::Whole(bytes) => ResponseBody::Whole(bytes),
            Self::Streamed(parts) => {
                ResponseBody::Fallible(Box::new(FallibleBody::new(parts, connection)))
            }
        }
    }
}

/// The API of administration and the console as this listener has them.
#[derive(Clone)]
pub struct Administration {
    /// Handler of everything below `/admin/`.
    pub api: AdminHandler,
    /// Handler of everything else, but for `/metrics` and the probes.
    pub console: AdminHandler,
    /// Proxies whose `X-Forwarded-For` is believed as the clients' address.
    pub proxies: Arc<[Network]>,
    /// Logs of the handlers' refused requests.
    pub refusals: Vec<Arc<RefusalLog>>,
}

debug_as!(Administration: "Administration");

/// State of the operator's listener: its bearer token, the metrics and the engine of the probes.
#[derive(Clone)]
pub struct Admin {
    /// Bearer token of `/metrics`, the configuration's `admin.token`. Empty refuses everybody.
    pub token: String,
    /// `GET /metrics`
    pub metrics: Metrics,
    /// Engine behind `GET /healthz` and `GET /readyz`. Probes are answered here even if the public listener is
    /// busy.
    pub engine: Arc<Engine>,
    /// The API of administration and the console, if they may be served here.
    pub administration: Option<Administration>,
}

debug_as!(Admin: "Admin");

/// Pages of holders, on a listener of their own.
#[derive(Clone)]
pub struct HoldersPages {
    /// Handler of everything but the probes.
    pub console: AdminHandler,
    /// Engine behind the probes.
    pub engine: Arc<Engine>,
    /// Proxies whose `X-Forwarded-For` is believed as the clients' address.
    pub proxies: Arc<[Network]>,
    /// Logs of the handler's refused requests.
    pub refusals: Vec<Arc<RefusalLog>>,
}

debug_as!(HoldersPages: "HoldersPages");

const METRICS: &str = "/metrics";
const NO_TOKEN: &str = "This listener takes no API key. Send `Authorization: Bearer <token>` with the `admin.token` of the \
     configuration.";
const ONLY_METRICS: &str = "This listener serves only GET /metrics, /healthz and /readyz.";

/// Largest head of a request, in bytes. Bodies are read by the handlers, which bound them.
const HEADER_BYTES: usize = 16_384;
/// Limits of one connection of an operator.
const CONNECTION: ConnectionOptions = ConnectionOptions {
    header_bytes: HEADER_BYTES,
    reads: ReadTimeouts { head: Duration::from_secs(10), idle: Duration::from_secs(120) },
    write_time: Duration::from_secs(10),
};
/// Limits of one connection of a holder: each browser keeps several connections, and only for a short time.
const HOLDERS_CONNECTION: ConnectionOptions = ConnectionOptions {
    reads: ReadTimeouts { idle: Duration::from_secs(30), ..CONNECTION.reads },
    ..CONNECTION
};
/// Connections of operators at once. Fixed, so that no mistake in the configuration can shut the operator out.
const CONNECTIONS: ListenerLimits = ListenerLimits::by_quarters(256);
/// Connections of holders at once.
const HOLDERS_CONNECTIONS: ListenerLimits = ListenerLimits::by_quarters(1_024);

/// Serves the operator's listener until `shutdown`; what is in flight then is answered within a
/// few seconds.
pub async fn serve_admin(listener: Listener, admin: Admin, shutdown: CancellationToken) {
    serve_by(listener, (CONNECTIONS, &CONNECTION), shutdown, Arc::new(admin)).await;
}

/// Serves the listener of holders' pages until `shutdown`, as the operator's is.
pub async fn serve_holders(listener: Listener, pages: HoldersPages, shutdown: CancellationToken) {
    let limits = (HOLDERS_CONNECTIONS, &HOLDERS_CONNECTION);
    serve_by(listener, limits, shutdown, Arc::new(pages)).await;
}

/// Answers of a listener of people.
trait Pages: Send + Sync + 'static {
    /// Proxies whose connections do not count as those of one address.
    fn proxies(&self) -> &[Network];

    /// Logs of refused requests, whose old windows are reported in time.
    fn refusals(&self) -> &[Arc<RefusalLog>];

    /// Answer on a connection within the limits.
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        client: Client,
    ) -> impl Future<Output = HttpResponse> + Send;

    /// Answer on a connection beyond the limits.
    fn answer_beyond_limit(
        self: Arc<Self>,
        request: Request<Incoming>,
        client: Client,
    ) -> impl Future<Output = HttpResponse> + Send;
}

async fn serve_by<P: Pages>(
    listener: Listener,
    (limits, options): (ListenerLimits, &'static ConnectionOptions),
    shutdown: CancellationToken,
    pages: Arc<P>,
) {
    let (connections, places) = (TaskTracker::new(), ConnectionLimiter::default());
    let mut tick = tokio::time::interval(RefusalLog::TICK);
    loop {
        // A tick that drops `accept` loses no connection: those that it did not return are still in the
        // backlog.
        let accepted = tokio::select! {
            accepted = accept(&listener, &shutdown) => accepted,
            _ = tick.tick() => {
                pages.refusals().iter().for_each(|log| log.report_old());
                continue;
            }
        };
        let Some(accepted) = accepted else { break };
        let place = places.admit(accepted.1.ip(), limits, pages.proxies());
        let (pages, shutdown) = (Arc::clone(&pages), shutdown.clone());
        match place {
            Some(Admission::Served(place)) => drop(connections.spawn(async move {
                let answer = |request, client| Arc::clone(&pages).answer(request, client);
                connection(accepted, options, &shutdown, answer).await;
                drop(place);
            })),
            Some(Admission::Spare(place)) => drop(connections.spawn(async move {
                let answer = |request, client, decision| {
                    let pages = Arc::clone(&pages);
                    async move {
                        match decision {
                            SpareAnswer::Given => pages.answer_beyond_limit(request, client).await,
                            SpareAnswer::Refused => overloaded(),
                        }
                    }
                };
                let place = (&place, answer_length);
                spare_connection(accepted, options, &shutdown, place, answer).await;
            })),
            None => {}
        }
    }
    finish(&connections).await;
}

/// The probe's answer, if the request is one. The answer reveals no more than that of the public listener,
/// because probes have no token.
async fn probe(engine: &Engine, request: &Request<Incoming>) -> Option<HttpResponse> {
    let route = route(request.method(), request.uri().path()).ok()?;
    answer_probe(engine, route).await
}

/// Refusal of a request on a connection beyond the limits.
fn overloaded() -> HttpResponse {
    with_request_id(problem(&Problem::new(Code::Overloaded)), Uuid::new_v4())
}

impl Pages for HoldersPages {
    fn proxies(&self) -> &[Network] {
        &self.proxies
    }

    fn refusals(&self) -> &[Arc<RefusalLog>] {
        &self.refusals
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>, client: Client) -> HttpResponse {
        match probe(&self.engine, &request).await {
            Some(answer) => answer,
            None => handled(&self.console, &self.proxies, request, client).await,
        }
    }

    async fn answer_beyond_limit(
        self: Arc<Self>,
        request: Request<Incoming>,
        _client: Client,
    ) -> HttpResponse {
        probe(&self.engine, &request).await.unwrap_or_else(overloaded)
    }
}

impl Pages for Admin {
    fn proxies(&self) -> &[Network] {
        self.administration.as_ref().map_or(&[], |administration| &administration.proxies)
    }

    fn refusals(&self) -> &[Arc<RefusalLog>] {
        self.administration.as_ref().map_or(&[], |administration| &administration.refusals)
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>, client: Client) -> HttpResponse {
        if let Some(answer) = probe(&self.engine, &request).await {
            return answer;
        }
        if let Some(administration) = &self.administration
            && let Some(handler) = administration.handler(request.uri().path())
        {
            return handled(handler, &administration.proxies, request, client).await;
        }
        self.answer_token(&request).await
    }

    /// Probes, and what the token or an admin key opens: an operator looks at a flood while it lasts.
    async fn answer_beyond_limit(
        self: Arc<Self>,
        request: Request<Incoming>,
        client: Client,
    ) -> HttpResponse {
        let is_open = match headers::bearer(request.headers()) {
            // Any bearer: the handler judges admin keys, which are unknown here.
            Some(_) if is_administration(request.uri().path()) => true,
            Some(token) => is_token(token.as_bytes(), self.token.as_bytes()),
            None => false,
        };
        if is_open {
            return self.answer(request, client).await;
        }
        probe(&self.engine, &request).await.unwrap_or_else(overloaded)
    }
}

impl Admin {
    /// Answer to a bearer of the token.
    async fn answer_token(&self, request: &Request<Incoming>) -> HttpResponse {
        let token = headers::bearer(request.headers()).unwrap_or("");
        if !is_token(token.as_bytes(), self.token.as_bytes()) {
            return problem(&Problem {
                message: NO_TOKEN.into(),
                ..Problem::new(Code::InvalidApiKey)
            });
        }
        // After the token: without it, a client cannot learn which paths exist.
        if request.uri().path() != METRICS {
            return problem(&Problem {
                message: ONLY_METRICS.into(),
                ..Problem::new(Code::NotFound)
            });
        }
        if request.method() != Method::GET {
            return not_allowed("GET");
        }
        let mut answer = Response::new(ResponseBody::from((self.metrics)().await));
        let format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        answer.headers_mut().insert(CONTENT_TYPE, format);
        answer
    }
}

fn is_administration(path: &str) -> bool {
    path.strip_prefix("/admin").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Administration {
    /// Handler of a path; the metrics have none.
    fn handler(&self, path: &str) -> Option<&AdminHandler> {
        if is_administration(path) {
            return Some(&self.api);
        }
        (path != METRICS).then_some(&self.console)
    }
}

/// The handler's answer, or one for it after a panic.
async fn handled(
    handler: &AdminHandler,
    proxies: &[Network],
    request: Request<Incoming>,
    connection: Client,
) -> HttpResponse {
    let id = Uuid::new_v4();
    let head = headers::head_bytes(request.uri(), request.headers());
    if head > HEADER_BYTES {
        return with_request_id(problem(&Problem::new(Code::HeadersTooLarge)), id);
    }
    let client = client_beyond(proxies, connection.address, request.headers());
    // Safe to assert: a handler shares no state that a panic could leave half changed.
    let handled = AssertUnwindSafe(handler(request, client)).catch_unwind().await;
    let answer = match handled {
        Ok(mut answer) => {
            answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
            answer.map(|body| body.on(connection.cut))
        }
        Err(_panic) => {
            tracing::error!(request.id = %id, "a handler of administration panicked");
            // No run and no charge here; a change may have been made or not.
            let failed = Problem { charged: None, ..Problem::new(Code::InternalError) };
            problem(&failed)
        }
    };
    with_request_id(answer, id)
}

/// Constant-time comparison: its time depends only on the lengths, so that a guess reveals none of the bytes.
/// An empty token admits no client.
fn is_token(shown: &[u8], token: &[u8]) -> bool {
    let differences = shown.iter().zip(token).fold(0, |bits, (a, b)| bits | (a ^ b));
    !token.is_empty() && shown.len() == token.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::{is_administration, is_token};

    #[test]
    fn administration_is_what_is_below_its_path() {
        for path in ["/admin", "/admin/", "/admin/v1/wallets", "/admin/openapi.json"] {
            assert!(is_administration(path), "{path}");
        }
        for path in ["/", "/metrics", "/administration", "/v1/admin/"] {
            assert!(!is_administration(path), "{path}");
        }
    }

    #[test]
    fn only_the_token_is_the_token() {
        assert!(is_token(b"abc", b"abc"));
        for other in [&b""[..], b"ab", b"abd", b"abcd"] {
            assert!(!is_token(other, b"abc"));
        }
        assert!(!is_token(b"", b""));
    }
}
