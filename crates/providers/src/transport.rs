//! One POST over HTTP/1.1 to one server: pooled, bounded, and never sent again. Says how far a
//! request came when no answer did. Not what an answer means.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{HttpConnector, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tower_service::Service;

/// An attempt to connect ends after this time even where nobody waits for it any more, because
/// another connection became free first.
const CONNECT_MAX: Duration = Duration::from_secs(60);
/// The most white space before an answer that is looked through for what the answer is.
const SPACE_BYTES_MAX: usize = 4_096;
/// How long the end of a body is waited for that has said everything: it comes with the last word, or
/// right after it.
const END_TIME_MAX: Duration = Duration::from_millis(100);

/// How far a request came that got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// No connection took it, or none took a byte of its body: nobody can have run it.
    Unsent,
    /// The connection broke, and some of the request may have arrived.
    Sent,
    /// The answer is larger than it may be.
    TooLarge,
}

/// A pooled client for one server.
pub(crate) struct Transport(Client<Bounded<HttpsConnector<HttpConnector>>, Prompt>);

/// An answer whose body has not been read yet.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// What was looked at and is still to be read.
    ahead: Bytes,
    body: Incoming,
}

impl Transport {
    pub(crate) fn new(tls: ClientConfig, pool_idle: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(pool_idle)
            .retry_canceled_requests(false)
            .build(Bounded(connector));
        Self(client)
    }

    /// Sends once. `connect` bounds the time until a connection takes the request: resolving,
    /// connecting and the TLS handshake, or a pooled connection becoming free; `sending` is told as
    /// soon as one has. Dropping the future closes the connection.
    pub(crate) async fn send(
        &self,
        request: Request<Vec<u8>>,
        connect: Duration,
        sending: &mut (dyn FnMut() + Send),
    ) -> Result<Reply, Break> {
        let taken = Arc::new(AtomicBool::new(false));
        let prompt = |body: Vec<u8>| Prompt { bytes: Some(body.into()), taken: Arc::clone(&taken) };
        let mut request = request.map(prompt);
        let connection = capture_connection(&mut request);
        let mut response = pin!(self.0.request(request));
        // A connection can take the request only while `response` is polled, so when the time is up
        // and none has been seen, none ever had it. The same holds for whoever drops this future before
        // `sending` was told: it is looked at in that very poll. Waiting for the connection instead
        // would take some of the task's budget, and where that is used up, see it a poll too late.
        let first = poll_fn(|context| match response.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if connection.connection_metadata().is_some() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        let outcome = match tokio::time::timeout(connect, first).await {
            Ok(Some(outcome)) => {
                if outcome.is_ok() {
                    sending();
                }
                outcome
            }
            Ok(None) => {
                sending();
                response.await
            }
            Err(_elapsed) => return Err(Break::Unsent),
        };
        let response = outcome.map_err(|_cause| {
            if taken.load(Ordering::Acquire) { Break::Sent } else { Break::Unsent }
        })?;
        let (head, body) = response.into_parts();
        Ok(Reply { status: head.status, ahead: Bytes::new(), body })
    }
}

impl Transport {
    /// Asks once for something that has no effect, and leaves the body of the answer unread.
    pub(crate) async fn get(&self, uri: Uri, headers: HeaderMap) -> Result<StatusCode, BoxError> {
        let mut request = Request::new(Prompt { bytes: None, taken: Arc::default() });
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(self.0.request(request).await?.status())
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reply({})", self.status)
    }
}

impl Reply {
    /// Reads the whole body, at most `bytes_max`.
    pub(crate) async fn read(mut self, bytes_max: usize) -> Result<Bytes, Break> {
        let mut pieces = Vec::new();
        let mut left = bytes_max;
        while let Some(piece) = self.next().await? {
            left = left.checked_sub(piece.len()).ok_or(Break::TooLarge)?;
            pieces.push(piece);
        }
        Ok(match pieces.pop() {
            Some(only) if pieces.is_empty() => only,
            Some(last) => {
                pieces.push(last);
                pieces.concat().into()
            }
            None => Bytes::new(),
        })
    }

    /// The next bytes of the body, as they come; `None` at its end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Break> {
        if !self.ahead.is_empty() {
            return Ok(Some(std::mem::take(&mut self.ahead)));
        }
        while let Some(frame) = self.body.frame().await {
            // Trailers say nothing that is wanted here.
            if let Ok(piece) = frame.map_err(|_broken| Break::Sent)?.into_data()
                && !piece.is_empty()
            {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    /// Whether the body is a JSON object, as far as its first byte tells: no event begins like one. All of
    /// it stays to be read.
    pub(crate) async fn is_object(&mut self) -> Result<bool, Break> {
        let mut seen = Vec::new();
        let mut first = None;
        while first.is_none()
            && seen.len() < SPACE_BYTES_MAX
            && let Some(piece) = self.next().await?
        {
            first = piece.iter().copied().find(|byte| !byte.is_ascii_whitespace());
            if seen.is_empty() {
                seen = piece.into();
            } else {
                seen.extend_from_slice(&piece);
            }
        }
        self.ahead = seen.into();
        Ok(first == Some(b'{'))
    }

    /// Reads the end of a body that has said everything, so that its connection may be used again: a
    /// server that leaves it open is not waited for.
    pub(crate) async fn end(mut self) {
        let rest = async { while let Ok(Some(_unsaid)) = self.next().await {} };
        // Not in time: the connection is closed.
        drop(tokio::time::timeout(END_TIME_MAX, rest).await);
    }
}

/// A request body that remembers whether a connection ever took its bytes. Until then not one of
/// them can have left, whatever became of the head.
struct Prompt {
    bytes: Option<Bytes>,
    taken: Arc<AtomicBool>,
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prompt({:?} bytes)", self.bytes.as_ref().map(Bytes::len))
    }
}

impl Body for Prompt {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.taken.store(true, Ordering::Release);
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.bytes.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(u64::try_from(left).unwrap_or(u64::MAX))
    }
}

/// A connector that gives up after [`CONNECT_MAX`].
#[derive(Debug, Clone)]
struct Bounded<C>(C);

type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl<C> Service<Uri> for Bounded<C>
where
    C: Service<Uri, Error = BoxError>,
    C::Future: Send + 'static,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = Connecting<C::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(CONNECT_MAX, self.0.call(server));
        Box::pin(async move { connecting.await? })
    }
}
