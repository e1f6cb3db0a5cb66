//! Requests of the public API from within the process: HTTP over a pipe in memory.
//!
//! ```text
//! request ─▶ hyper client ═ pipe of 64 KiB ═ hyper server ─▶ Service::answer
//! ```
//!
//! Real HTTP on both sides, so that answers are the same as on a socket: heads, bodies, a stream that breaks. A
//! reader that stops reading fills the pipe and waits there; the caller bounds its own time. The two tasks of a
//! pipe end with its answer.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{client, server};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::task::JoinSet;

use crate::service::Service;
use holdfast_domain::ErrorChain;
use holdfast_net::{AbortSignal, Client};

/// Bytes on their way in either direction.
const PIPE: usize = 64 << 10;

/// Body of an answer within the process. What breaks off ends.
#[derive(Debug)]
pub struct LocalBody {
    body: Incoming,
    _tasks: JoinSet<()>,
}

impl LocalBody {
    /// The bytes as they come.
    pub fn into_stream(self) -> BoxStream<'static, Bytes> {
        let next = |mut local: Self| async move {
            loop {
                if let Ok(bytes) = local.body.frame().await?.ok()?.into_data() {
                    return Some((bytes, local));
                }
            }
        };
        stream::unfold(self, next).boxed()
    }
}

/// Sends the request to the service.
pub(crate) async fn answer(
    service: &Arc<Service>,
    request: Request<Bytes>,
    address: IpAddr,
) -> Result<Response<LocalBody>, hyper::Error> {
    let (near, far) = duplex(PIPE);
    let client = Client { address, cut: AbortSignal::default() };
    let far = TokioIo::new(ServerEnd { pipe: far, cut: client.cut.clone() });
    let service = Arc::clone(service);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let answer = service_fn(|request: Request<Incoming>| {
            let (service, client) = (Arc::clone(&service), client.clone());
            async move { Ok::<_, Infallible>(service.answer(request, client).await) }
        });
        let served = server::conn::http1::Builder::new().serve_connection(far, answer).await;
        log_end(served);
    });
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(near)).await?;
    tasks.spawn(async move { log_end(connection.await) });
    let answer = sender.send_request(request.map(Full::new)).await?;
    Ok(answer.map(|body| LocalBody { body, _tasks: tasks }))
}

fn log_end(ended: Result<(), hyper::Error>) {
    if let Err(error) = ended {
        tracing::debug!(error = %ErrorChain(&error), "a request within the process broke off");
    }
}

/// The server's end of a pipe. A stream that broke cuts it once its last event is on its way.
struct ServerEnd {
    pipe: DuplexStream,
    cut: AbortSignal,
}

impl AsyncRead for ServerEnd {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_read(context, buffer)
    }
}

impl AsyncWrite for ServerEnd {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.pipe).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.pipe).poll_flush(context))?;
        // After the flush: the last event, which has the error, must reach the reader first.
        let broke = io::ErrorKind::ConnectionAborted;
        Poll::Ready(if self.cut.is_set() { Err(broke.into()) } else { Ok(()) })
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(context)
    }
}
