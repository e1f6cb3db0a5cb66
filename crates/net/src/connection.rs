//! A connection of any listener: accepted, served by one task, and finished at shutdown.
//!
//! ```text
//! socket ─ CallerSocket (slow readers, end) ─ TimedStream (idle, head) ─ hyper ─ answer ─▶ GuardedBody
//!                                                                  on a spare place: one answer, or a refusal
//! ```
//!
//! A connection keeps the limits that it was accepted with; a reload does not change them. At shutdown the
//! request in flight is answered, and the connection closes; after [`FINISH`] it is cut. Never in here:
//! answers, and the number of connections, which the [`limiter`](crate::limiter) bounds.

use std::convert::Infallible;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::limiter::{AnswerLength, SpareAnswer, SparePermit};
use crate::listener::Listener;
use crate::socket::{AbortSignal, CallerSocket};
use crate::target::in_origin_form;
use crate::timed_stream::{BusyFlag, GuardedBody, ReadTimeouts, TimedStream};
use holdfast_domain::ErrorChain;

/// Pause after an error of the listener, such as too many open files, which would repeat at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time for answers in flight at shutdown, once everything else has ended.
const FINISH: Duration = Duration::from_secs(5);

/// Limits of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionOptions {
    /// Largest head of a request, in bytes.
    pub header_bytes: usize,
    /// Times of its reads.
    pub reads: ReadTimeouts,
    /// Time that a write may wait without its reader taking a byte, before the connection is cut.
    pub write_time: Duration,
}

/// The client of a connection.
#[derive(Debug, Clone)]
pub struct Client {
    /// Peer address of the connection; behind a proxy it is the proxy's.
    pub address: IpAddr,
    /// Signal that ends the connection.
    pub cut: AbortSignal,
}

/// The next connection; `None` at the end.
pub async fn accept(
    listener: &Listener,
    shutdown: &CancellationToken,
) -> Option<(TcpStream, SocketAddr)> {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => return None,
        };
        match accepted {
            Ok(accepted) => return Some(accepted),
            Err(error) => log_accept_error(&error),
        }
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

fn log_accept_error(error: &std::io::Error) {
    tracing::warn!(error = %ErrorChain(error), "a connection was not accepted");
}

/// Serves one connection until it ends, or until its request in flight is answered at shutdown.
pub async fn connection<F, R, B>(
    (stream, address): (TcpStream, SocketAddr),
    options: &ConnectionOptions,
    shutdown: &CancellationToken,
    answer: F,
) where
    F: Fn(Request<Incoming>, Client) -> R,
    R: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error = Infallible> + Unpin + 'static,
{
    set_nodelay(&stream);
    let client = Client { address: address.ip(), cut: AbortSignal::default() };
    let socket = CallerSocket::new(stream, options.write_time, client.cut.clone());
    let heads = (options.header_bytes, options.reads);
    serve_stream(socket, heads, shutdown, |request| answer(request, client.clone())).await;
}

/// Serves one connection on a spare place: one answer, after which it is closed. Of requests that are not brief, some
/// are to be refused.
pub async fn spare_connection<F, R, B>(
    accepted: (TcpStream, SocketAddr),
    options: &ConnectionOptions,
    shutdown: &CancellationToken,
    (place, length): (&SparePermit, impl Fn(&Request<Incoming>) -> AnswerLength),
    answer: F,
) where
    F: Fn(Request<Incoming>, Client, SpareAnswer) -> R,
    R: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error = Infallible> + Unpin + 'static,
{
    let options = ConnectionOptions { reads: place.reads(options.reads), ..*options };
    let answer = &answer;
    let answer = |request: Request<Incoming>, client| {
        let length = length(&request);
        async move {
            let (decision, turn) = place.begin(length).await;
            let mut answer = answer(request, client, decision).await;
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            answer.map(|body| GuardedBody::new(body, turn))
        }
    };
    let connection = async {
        await_first_event(&accepted.0).await;
        place.serve(connection(accepted, &options, shutdown, answer)).await;
    };
    place.run(connection).await;
}

/// Waits until the system has reported a new socket as writable. The same report covers all bytes that had come
/// by then, so that a head that was sent before is found by the next read.
pub async fn await_first_event(stream: &TcpStream) {
    if let Err(error) = stream.writable().await {
        tracing::debug!(error = %ErrorChain(&error), "a connection has no events");
    }
}

/// Sends small answers at once.
pub fn set_nodelay(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error = %ErrorChain(&error), "a connection keeps its delay");
    }
}

/// Serves HTTP/1.1 on a stream, with heads of so many bytes and these times, until it ends, or until its request in
/// flight is answered at shutdown.
pub async fn serve_stream<S, F, R, B>(
    stream: S,
    (header_bytes, reads): (usize, ReadTimeouts),
    shutdown: &CancellationToken,
    answer: F,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Fn(Request<Incoming>) -> R,
    R: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let stage = BusyFlag::default();
    // Mapped, not awaited by another future, which would have room for it twice.
    let service = service_fn(|request: Request<Incoming>| {
        let turn = stage.begin();
        answer(in_origin_form(request))
            .map(|answer| Ok::<_, Infallible>(answer.map(|body| GuardedBody::new(body, turn))))
    });
    // Twice the limit, so that a head just over it gets a body that says so.
    let buffer = header_bytes.saturating_mul(2).max(16_384);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // That is the connection's own business.
        .header_read_timeout(None)
        .max_buf_size(buffer)
        .serve_connection(TokioIo::new(TimedStream::new(stream, stage.clone(), reads)), service);
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
        tracing::debug!(error = %ErrorChain(&error), "a connection ended");
    }
}

/// Lets connections finish for a short while.
pub async fn finish(connections: &TaskTracker) {
    connections.close();
    if tokio::time::timeout(FINISH, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections were cut at the end");
    }
}
