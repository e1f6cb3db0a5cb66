//! A provider that answers at once, or after a delay, always the same; as a stream where one is wanted,
//! whose chunks say when they were said. It believes nothing else of what it is sent.

mod speech;

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use self::speech::UpstreamBody;
use crate::{LISTENS, say};

/// Spelling of a request that wants a stream.
const STREAMED: &[u8] = br#""stream":true"#;
const ANSWER: &str = r#"{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion","created":1741569952,"model":"large-1","choices":[{"index":0,"message":{"role":"assistant","content":"Hello! A hold is placed before the model is called, and it is settled when the model has answered, so that nobody pays twice for one request.","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":40,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default"}"#;

/// Pace of its answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    delay: Duration,
    /// Chunks with text in a stream.
    chunks: u64,
    /// Time between two of them.
    gap: Duration,
}

/// The pace that the arguments name; nothing when they are wrong.
#[must_use]
pub fn parse(arguments: &[String]) -> Option<Pace> {
    let mut pace = Pace::default();
    for pair in arguments.chunks(2) {
        let [option, value] = pair else { return None };
        let value: u64 = value.parse().ok()?;
        match option.as_str() {
            "--delay-ms" => pace.delay = Duration::from_millis(value),
            "--chunks" => pace.chunks = value,
            "--gap-ms" => pace.gap = Duration::from_millis(value),
            _ => return None,
        }
    }
    Some(pace)
}

/// Serves until the process is ended.
pub fn run(pace: Pace) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        say(&format!("{LISTENS}{}", listener.local_addr().expect("an address")));
        let mut connections = JoinSet::new();
        loop {
            let (stream, _peer) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            connections.spawn(async move {
                let service = service_fn(move |request| answer(request, pace));
                // A client that goes away ends its connection, and that is all.
                drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
            });
        }
    });
}

async fn answer(
    request: Request<Incoming>,
    pace: Pace,
) -> Result<Response<UpstreamBody>, hyper::Error> {
    let mut body = request.into_body();
    let mut is_streamed = false;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            is_streamed |= data.windows(STREAMED.len()).any(|window| window == STREAMED);
        }
    }
    if !pace.delay.is_zero() {
        tokio::time::sleep(pace.delay).await;
    }
    let (body, kind) = if is_streamed {
        (UpstreamBody::speech(pace.chunks, pace.gap), "text/event-stream")
    } else {
        (UpstreamBody::whole(ANSWER), "application/json")
    };
    let mut answer = Response::new(body);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(answer)
}
