//! A provider that answers at once, or after a delay, always the same. It reads what it is sent and
//! believes nothing of it.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::{LISTENS, say};

const ANSWER: &str = r#"{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion","created":1741569952,"model":"large-1","choices":[{"index":0,"message":{"role":"assistant","content":"Hello! A hold is placed before the model is called, and it is settled when the model has answered, so that nobody pays twice for one request.","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":40,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default"}"#;

/// The delay that the arguments name; nothing when they are wrong.
#[must_use]
pub fn parse(arguments: &[String]) -> Option<Duration> {
    match arguments {
        [] => Some(Duration::ZERO),
        [option, millis] if option == "--delay-ms" => {
            Some(Duration::from_millis(millis.parse().ok()?))
        }
        _ => None,
    }
}

/// Serves until the process is ended.
pub fn run(delay: Duration) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        say(&format!("{LISTENS}{}", listener.local_addr().expect("an address")));
        let mut connections = JoinSet::new();
        loop {
            let (stream, _peer) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            connections.spawn(async move {
                let service = service_fn(move |request| answer(request, delay));
                // A client that goes away ends its connection, and that is all.
                drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
            });
        }
    });
}

async fn answer(
    request: Request<Incoming>,
    delay: Duration,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
    }
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let mut answer = Response::new(Full::new(Bytes::from_static(ANSWER.as_bytes())));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(answer)
}
