//! The node listener. It serves only relays, and answers every invalid request with 404: a client without a
//! proof cannot learn which operations exist. Connections are bounded, because its callers are other processes
//! of one operator; more than that is a misconfiguration, which is logged once a second.

use std::sync::Arc;
use std::time::Duration;

use holdfast_engine::{Engine, RelayRequest};
use holdfast_net::{ConnectionOptions, Listener, accept, connection, finish};
use http::header::{CONNECTION, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{CLAIM, NONCE, PROOF, TAPE, header};
use crate::live_options::LiveOptions;
use crate::reply::HttpResponse;
use crate::response_body::ResponseBody;

/// Connections at once: as many as there may be relays, and some that are refused. More are closed unheard.
const CONNECTIONS: usize = 320;
/// After a connection too many: the log has a line a second at most.
const FULL_PAUSE: Duration = Duration::from_secs(1);
/// The largest head: a path and three short headers.
const HEADER_BYTES: usize = 4_096;

/// Serves a node's listener for the others until `shutdown`.
pub async fn serve_nodes(
    listener: Listener,
    engine: Arc<Engine>,
    live: Arc<LiveOptions>,
    shutdown: CancellationToken,
) {
    let connections = TaskTracker::new();
    while let Some(accepted) = accept(&listener, &shutdown).await {
        if connections.len() >= CONNECTIONS {
            tracing::warn!(
                connections = CONNECTIONS,
                "another node's connection was closed: too many"
            );
            tokio::time::sleep(FULL_PAUSE).await;
            continue;
        }
        let (engine, shutdown) = (Arc::clone(&engine), shutdown.clone());
        let options = live.read(|config| config.options.of_connection());
        // A task for each: a relay lasts as long as its run.
        connections.spawn(async move {
            let options = ConnectionOptions { header_bytes: HEADER_BYTES, ..options };
            let answer = |request, _client| std::future::ready(answer(&engine, &request));
            connection(accepted, &options, &shutdown, answer).await;
        });
    }
    drop(listener);
    finish(&connections).await;
}

fn answer(engine: &Engine, request: &Request<Incoming>) -> HttpResponse {
    let relay = parse_request(request).and_then(|requested| engine.relay(&requested));
    let mut answer = match relay {
        Some(relay) => {
            let mut answer = Response::new(ResponseBody::Relayed(relay.records));
            if let Ok(nonce) = HeaderValue::try_from(relay.nonce.to_string()) {
                answer.headers_mut().insert(NONCE, nonce);
            }
            answer
        }
        None => {
            let mut answer = Response::new(ResponseBody::from(""));
            *answer.status_mut() = StatusCode::NOT_FOUND;
            answer
        }
    };
    // One relay a connection: its end is the end of the relay, and an asker that goes away cuts it.
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Relay request in an HTTP request; `None` for any that is not another node's.
fn parse_request(request: &Request<Incoming>) -> Option<RelayRequest> {
    let operation = request.uri().path().strip_prefix(TAPE)?.parse().ok()?;
    if request.method() != Method::GET {
        return None;
    }
    let headers = request.headers();
    let (claim, nonce) = (header(headers, &CLAIM)?, header(headers, &NONCE)?);
    Some(RelayRequest { operation, claim, nonce, proof: header(headers, &PROOF)? })
}
