//! Accepts connections within their limit, and lets them finish at the end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use holdfast_engine::Engine;
use holdfast_wire::error::Code;
use http::header::{CONNECTION, HeaderValue};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::Options;
use crate::current::Current;
use crate::description::Description;
use crate::error::Problem;
use crate::reply::{Answer, problem, with_request_id};
use crate::service::Service;
use crate::stream::Stream;
use crate::streamed::Cut;

/// After an error of the listener itself, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections beyond the limit that are told so at once; more are closed unheard.
const TURNED_AWAY_MAX: usize = 64;
/// How long answers in flight may take once everything else has ended.
const FINISH: Duration = Duration::from_secs(5);

/// Serves the public API until `shutdown`, then lets connections finish for a short while.
pub async fn serve(
    listener: TcpListener,
    engine: Arc<Engine>,
    current: Arc<Current>,
    shutdown: CancellationToken,
) {
    let (slots, refusals) = (Slots::default(), Slots::default());
    let service = Arc::new(Service {
        engine,
        current: Arc::clone(&current),
        description: Description::render(),
        counts: Arc::default(),
    });
    let connections = TaskTracker::new();
    while let Some(stream) = accept(&listener, &shutdown).await {
        let shutdown = shutdown.clone();
        let options = current.get().options;
        if let Some(slot) = slots.take(options.connections) {
            let service = Arc::clone(&service);
            connections.spawn(async move {
                let answer = |request, connection| Arc::clone(&service).answer(request, connection);
                connection(stream, &options, &shutdown, answer).await;
                drop(slot);
            });
        } else if let Some(slot) = refusals.take(TURNED_AWAY_MAX) {
            connections.spawn(async move {
                let answer = |_request, _connection| async { turned_away() };
                connection(stream, &options, &shutdown, answer).await;
                drop(slot);
            });
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(FINISH, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections were cut at the end");
    }
}

/// Connections at once, within a limit that may change. Each has a clone of the pointer, and only the
/// task that accepts them makes clones.
#[derive(Default)]
struct Slots(Arc<()>);

impl Slots {
    /// Room for one more, until it is dropped.
    fn take(&self, most: usize) -> Option<Arc<()>> {
        (Arc::strong_count(&self.0) <= most).then(|| Arc::clone(&self.0))
    }
}

/// The next connection; `None` at the end.
pub(crate) async fn accept(
    listener: &TcpListener,
    shutdown: &CancellationToken,
) -> Option<TcpStream> {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => return None,
        };
        match accepted {
            Ok((stream, _peer)) => return Some(stream),
            Err(error) => not_accepted(&error),
        }
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

/// The answer on a connection beyond the limit.
fn turned_away() -> Answer {
    let mut answer = problem(&Problem::new(Code::Overloaded));
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    with_request_id(answer, Uuid::new_v4())
}

fn not_accepted(error: &std::io::Error) {
    let error: &dyn std::error::Error = error;
    tracing::warn!(error, "a connection was not accepted");
}

/// Serves one connection until it ends, or until its request in flight is answered at shutdown.
pub(crate) async fn connection<F, R>(
    stream: TcpStream,
    options: &Options,
    shutdown: &CancellationToken,
    answer: F,
) where
    F: Fn(http::Request<Incoming>, Cut) -> R,
    R: Future<Output = Answer>,
{
    if let Err(error) = stream.set_nodelay(true) {
        let error: &dyn std::error::Error = &error;
        tracing::debug!(error, "a connection keeps its delay");
    }
    let cut = Cut::default();
    // Mapped, not awaited by another future, which would have room for it twice.
    let service = service_fn(|request| answer(request, cut.clone()).map(Ok::<_, Infallible>));
    // Twice the limit, so that a head just over it gets a body that says so.
    let buffer = options.header_bytes.saturating_mul(2).max(16_384);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_time)
        .max_buf_size(buffer)
        .serve_connection(
            TokioIo::new(Stream::new(stream, options.write_time, cut.clone())),
            service,
        );
    let mut connection = pin!(connection);
    let served = tokio::select! {
        // No lots are drawn at each step.
        biased;
        served = connection.as_mut() => served,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        // A client that goes away is nobody's mistake.
        let error: &dyn std::error::Error = &error;
        tracing::debug!(error, "a connection ended");
    }
}
