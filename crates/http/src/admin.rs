//! The operator's listener: metrics behind a token, apart from the public API.
//!
//! Probes are answered first and to everybody, then the token is judged, and only then path and method: whoever
//! has no token learns nothing of what is here. Its limits are fixed, so that no mistake in the configuration
//! can shut the operator out. No API key is valid here, and the token is valid nowhere else.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use holdfast_engine::Engine;
use holdfast_wire::error::Code;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Options;
use crate::connection::{accept, connection};
use crate::headers;
use crate::probe::answer_probe;
use crate::problem::Problem;
use crate::reply::{HttpResponse, not_allowed, problem};
use crate::response_body::ResponseBody;
use crate::route::route;

/// Renders the metrics in Prometheus' text format.
pub type Metrics = Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>;

/// State of the operator's listener: its bearer token, the metrics and the engine of the probes.
#[derive(Clone)]
pub struct Admin {
    /// Bearer token of `/metrics`, the configuration's `admin.token`. Empty refuses everybody.
    pub token: String,
    /// `GET /metrics`
    pub metrics: Metrics,
    /// Engine behind `GET /healthz` and `GET /readyz`. Probes are heard here however busy the
    /// public listener is.
    pub engine: Arc<Engine>,
}

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Admin")
    }
}

const NO_TOKEN: &str = "This listener takes no API key. Send `Authorization: Bearer <token>` with the `admin.token` of the \
     configuration.";
const ONLY_METRICS: &str = "There is nothing here but GET /metrics, /healthz and /readyz.";

/// Fixed limits of the operator's connections: 64 at once, heads of 16 KiB, no bodies.
const LIMITS: Options = Options {
    header_bytes: 16_384,
    body_bytes: 0,
    header_time: Duration::from_secs(10),
    idle_time: Duration::from_secs(120),
    body_time: Duration::from_secs(10),
    write_time: Duration::from_secs(10),
    connections: 64,
    connections_per_address: 64,
    body_bytes_in_memory: 0,
    retry_wait: Duration::ZERO,
};

/// Serves the operator's listener until `shutdown`. Connections in flight are not awaited: a
/// scrape that is cut is made again.
pub async fn serve_admin(listener: TcpListener, admin: Admin, shutdown: CancellationToken) {
    let connections = TaskTracker::new();
    while let Some(accepted) = accept(&listener, &shutdown).await {
        // Closed unheard, without a line in the log: a scraper that finds no room tries again.
        if connections.len() >= LIMITS.connections {
            continue;
        }
        let (admin, shutdown) = (admin.clone(), shutdown.clone());
        connections.spawn(async move {
            let answer = |request, _client| answer(&admin, request);
            connection(accepted, &LIMITS, &shutdown, answer).await;
        });
    }
}

async fn answer(admin: &Admin, request: Request<Incoming>) -> HttpResponse {
    // They tell no more than the public listener does, and those who ask have no token.
    if let Ok(route) = route(request.method(), request.uri().path())
        && let Some(answer) = answer_probe(&admin.engine, route).await
    {
        return answer;
    }
    let token = headers::bearer(request.headers()).unwrap_or("");
    if !is_token(token.as_bytes(), admin.token.as_bytes()) {
        return problem(&Problem { message: NO_TOKEN.into(), ..Problem::new(Code::InvalidApiKey) });
    }
    // After the token: without it, nobody learns which paths there are.
    if request.uri().path() != "/metrics" {
        return problem(&Problem { message: ONLY_METRICS.into(), ..Problem::new(Code::NotFound) });
    }
    if request.method() != Method::GET {
        return not_allowed("GET");
    }
    let mut answer = Response::new(ResponseBody::from((admin.metrics)().await));
    let format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, format);
    answer
}

/// Constant-time comparison: its time depends on the lengths alone, so that a guess learns
/// nothing of the bytes. An empty token lets nobody in.
fn is_token(shown: &[u8], token: &[u8]) -> bool {
    let differences = shown.iter().zip(token).fold(0, |bits, (a, b)| bits | (a ^ b));
    !token.is_empty() && shown.len() == token.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::is_token;

    #[test]
    fn only_the_token_is_the_token() {
        assert!(is_token(b"abc", b"abc"));
        for other in [&b""[..], b"ab", b"abd", b"abcd"] {
            assert!(!is_token(other, b"abc"));
        }
        assert!(!is_token(b"", b""));
    }
}
