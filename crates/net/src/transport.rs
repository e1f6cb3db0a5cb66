//! Client of one server: one POST a call, over HTTP/2 if the server chooses it, else over HTTP/1.1.
//!
//! ```text
//! server ─▶ Transport::send ─▶ pool ─┬─▶ connect     a new connection: TCP, proxy, TLS
//!                │                   └─▶ shared      HTTP/2: one connection, many calls
//!                └─▶ UpstreamResponse ─▶ response    the body, piece by piece
//! ```
//!
//! A call without an answer ends in a `SendError`, and money depends on its variant: `Unsent` proves that no
//! server ran the request, `Sent` leaves that open. The evidence is `TrackedBody`: until a connection polls it,
//! no byte of the body has left, and no server runs a prompt that it has not received.
//!
//! Never: a request that is sent again (not on a pooled connection that turns out to be closed
//! either), a redirect that is followed, or a meaning of an answer, which `proof` and the kinds
//! have.
//!
//! Limits: `CONNECT_MAX` for the connection of a probe, the call's own `connect` for that of a
//! call; `SPACE_BYTES_MAX` until the kind of a body is known; `END_TIME_MAX` for the end of a
//! stream; `TURN_BYTES` between two yields to other work. The length of a body is its reader's to
//! bound.

mod connect;
mod open;
mod pool;
mod shared;
mod unsent;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::debug_as;
use holdfast_domain::ports::ConnectionCounts;
use http::header::{HOST, HeaderName, HeaderValue, PROXY_AUTHORIZATION};
use http::response::Parts;
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use rustls::ClientConfig;

use self::connect::{Connector, ProxyRelay};
pub(crate) use self::pool::ResponseBody;
use self::pool::{BoxError, Pool, PooledConnection, RequestTarget};
pub use self::unsent::UnsentCause;
use crate::proxy::Proxies;
use crate::retry_after::{pause, requests_pause, retry_after};

/// Time limit of a probe's connection; a call brings its own.
const CONNECT_MAX: Duration = Duration::from_secs(60);
/// White space before a body that is searched for its first character, in bytes at most.
const SPACE_BYTES_MAX: usize = 4_096;
/// Time limit for the end of a body whose last event was read: the end comes with that event, or
/// right after it. A body that ends later costs its connection, not its call.
const END_TIME_MAX: Duration = Duration::from_millis(100);

/// Progress of a request that got no answer: proven unsent, perhaps sent, or answered too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendError {
    /// No connection took it, or none took a byte of its body, or its server reports that it has not processed
    /// it: no server can have run it.
    Unsent(UnsentCause),
    /// The connection broke, and some of the request may have arrived.
    Sent,
    /// The answer is larger than it may be.
    TooLarge,
}

/// Failure of an exchange on a connection that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum ExchangeError {
    /// The connection or the stream broke.
    #[error("the connection was closed, or the answer is not HTTP")]
    Broken,
    /// Over HTTP/2: the server reports that it has not processed the request.
    #[error("the server has not taken the request")]
    Unprocessed,
}

/// A pooled client for one server.
#[derive(Debug)]
pub struct Transport(Pool);

/// An answer whose body has not been read yet.
pub struct UpstreamResponse {
    /// Status of the answer.
    pub status: StatusCode,
    /// Value of the kind's `error_header`, if the answer has one.
    pub kind: Option<HeaderValue>,
    /// Pause that the head of an error requests.
    pub retry_after: Option<Duration>,
    /// Came through a proxy that relays, which may have written the answer itself.
    pub is_relayed: bool,
    /// Bytes that `first_byte` looked at: the next read returns them first.
    ahead: Bytes,
    body: AnswerBody,
}

/// Body of an answer, which lets other work have its turn while it is read.
pub(crate) struct AnswerBody {
    body: ResponseBody,
    turn: YieldBudget,
}

/// Bytes of an answer that are read before other work has its turn. A server that always has more to send would
/// else keep a worker of the runtime for itself: its reads never wait.
pub const TURN_BYTES: usize = 32 * 1024;
/// Charge for a piece besides its bytes: pieces may be of one byte each, or of none.
const PIECE_BYTES: usize = 128;

/// Bytes charged since other work had its turn.
#[derive(Default)]
struct YieldBudget(usize);

impl YieldBudget {
    fn charge(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes).saturating_add(PIECE_BYTES);
    }

    /// Lets other work have its turn, when it is time. Cancel safe.
    async fn yield_if_spent(&mut self) {
        if self.0 > TURN_BYTES {
            self.0 = 0;
            tokio::task::yield_now().await;
        }
    }
}

impl Transport {
    /// A client that keeps no idle connection longer than `pool_idle`.
    #[must_use]
    pub fn new(tls: ClientConfig, proxies: Proxies, pool_idle: Duration) -> Self {
        Self(Pool::new(Connector::new(tls, proxies), pool_idle))
    }

    /// Connections of its pool.
    pub fn connections(&self) -> ConnectionCounts {
        self.0.counts()
    }

    /// Sends once. `connect` bounds the time until a new connection takes the request: resolving, connecting
    /// and the TLS handshake; `sending` is notified before a byte of it can leave. The value of `error_header`
    /// goes with the answer. Dropping the future closes the connection, or resets its stream if other calls
    /// share that connection.
    pub async fn send(
        &self,
        request: Box<Request<Vec<u8>>>,
        connect: Duration,
        error_header: Option<&HeaderName>,
        sending: &mut (dyn FnMut() + Send),
    ) -> Result<UpstreamResponse, SendError> {
        let (headers, mut reply) = self.send_with_head(request, connect, sending).await?;
        reply.kind = error_header.and_then(|name| headers.get(name)).cloned();
        Ok(reply)
    }

    /// Sends once, as [`Self::send`] does: all headers of the answer, and the answer.
    pub async fn send_with_head<B: Into<Bytes>>(
        &self,
        request: Box<Request<B>>,
        connect: Duration,
        sending: &mut (dyn FnMut() + Send),
    ) -> Result<(HeaderMap, UpstreamResponse), SendError> {
        let (head, body, is_relayed) = self.exchange(request, connect, sending).await?;
        let retry_after = match head.status {
            StatusCode::OK => None,
            status if requests_pause(status) => pause(&head.headers),
            _other => retry_after(&head.headers),
        };
        let (status, ahead, body) = (head.status, Bytes::new(), AnswerBody::new(body));
        let reply = UpstreamResponse { status, kind: None, retry_after, is_relayed, ahead, body };
        Ok((head.headers, reply))
    }

    /// Sends once, as [`Self::send`] does: the head of the answer, its body, and whether a proxy
    /// that relays may have written them.
    pub(crate) async fn exchange<B: Into<Bytes>>(
        &self,
        request: Box<Request<B>>,
        connect: Duration,
        sending: &mut (dyn FnMut() + Send),
    ) -> Result<(Parts, ResponseBody, bool), SendError> {
        let line = self.0.connection(request.uri(), connect).await;
        let line = line.map_err(|error| SendError::Unsent(UnsentCause::of_connect(&error)))?;
        // Shared with the body, which goes into the connection and does not come back from there.
        let taken = Arc::new(AtomicBool::new(false));
        let prompt = |body: B| {
            // A request without a body has no length to announce either.
            let bytes = Some(body.into()).filter(|bytes| !bytes.is_empty());
            TrackedBody { bytes, taken: Arc::clone(&taken) }
        };
        // Before the send, never after it: told later, a byte could be on its way and nobody know.
        sending();
        let is_relayed = matches!(line.form(), RequestTarget::Relayed(_));
        let request = Box::new(addressed(request.map(prompt), &line));
        match self.0.send(line, request).await {
            Ok(response) => {
                let (head, body) = response.into_parts();
                Ok((head, body, is_relayed))
            }
            Err(ExchangeError::Unprocessed) => Err(SendError::Unsent(UnsentCause::Unprocessed)),
            // The body was taken: some of it may have arrived and run, though no answer says so.
            Err(ExchangeError::Broken) if taken.load(Ordering::Acquire) => Err(SendError::Sent),
            Err(ExchangeError::Broken) => Err(SendError::Unsent(UnsentCause::Closed)),
        }
    }

    /// Sends one GET without side effects, and leaves the body of the answer unread.
    pub async fn get(&self, uri: Uri, headers: HeaderMap) -> Result<StatusCode, BoxError> {
        let line = self.0.connection(&uri, CONNECT_MAX).await?;
        let mut request = Request::new(TrackedBody { bytes: None, taken: Arc::default() });
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let request = Box::new(addressed(request, &line));
        Ok(self.0.send(line, request).await?.status())
    }
}

/// Request in the form that its connection needs: over HTTP/1.1 with the server's name as a header and the path
/// as the target, or the whole address to a proxy that relays.
fn addressed<B>(mut request: Request<B>, line: &PooledConnection) -> Request<B> {
    if let Some(host) = line.host() {
        request.headers_mut().insert(HOST, host.clone());
    }
    match line.form() {
        RequestTarget::Path => {
            let path = request.uri().path_and_query().cloned();
            *request.uri_mut() = path.map_or_else(Uri::default, Uri::from);
        }
        RequestTarget::Whole => *request.uri_mut() = plain(request.uri()),
        RequestTarget::Relayed(ProxyRelay { authorization: None }) => {}
        RequestTarget::Relayed(ProxyRelay { authorization: Some(authorization) }) => {
            request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
        }
    }
    request
}

/// The same address without the port that it would have anyway.
fn plain(uri: &Uri) -> Uri {
    let mut parts = uri.clone().into_parts();
    if let Some(Ok(authority)) = host(uri).map(str::parse) {
        parts.authority = Some(authority);
    }
    Uri::from_parts(parts).unwrap_or_else(|_incomplete| uri.clone())
}

/// Host and port of a server for its `host` header: without the port that its scheme implies.
pub fn host(uri: &Uri) -> Option<&str> {
    let authority = uri.authority()?;
    let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let is_usual = authority.port_u16() == Some(default);
    Some(if is_usual { authority.host() } else { authority.as_str() })
}

debug_as!(UpstreamResponse as it: "UpstreamResponse({})", it.status);

impl UpstreamResponse {
    /// Reads the whole body, at most `bytes_max`, and reports how much of it came.
    pub async fn read(
        mut self,
        bytes_max: usize,
        received: &mut (dyn FnMut(usize) + Send),
    ) -> Result<Bytes, SendError> {
        let mut left = bytes_max;
        // Most answers come in one piece, which is not empty.
        let (mut only, mut all) = (Bytes::new(), Vec::new());
        while let Some(piece) = self.next().await? {
            received(piece.len());
            // Before the piece is kept: memory never holds more than `bytes_max` and one piece.
            left = left.checked_sub(piece.len()).ok_or(SendError::TooLarge)?;
            if only.is_empty() {
                only = piece;
                continue;
            }
            if all.is_empty() {
                all.extend_from_slice(&only);
            }
            all.extend_from_slice(&piece);
        }
        Ok(if all.is_empty() { only } else { all.into() })
    }

    /// The next bytes of the body, as they come; `None` at its end. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<Bytes>, SendError> {
        if !self.ahead.is_empty() {
            return Ok(Some(std::mem::take(&mut self.ahead)));
        }
        self.body.next().await
    }

    /// First byte of the body that is not white space, which distinguishes JSON from events; `None` if there is
    /// none near the start. The bytes that were looked at stay to be read.
    pub async fn first_byte(&mut self) -> Result<Option<u8>, SendError> {
        let first_of =
            |piece: &[u8]| piece.iter().copied().find(|byte| !byte.is_ascii_whitespace());
        let mut seen = Vec::new();
        while seen.len() < SPACE_BYTES_MAX
            && let Some(piece) = self.next().await?
        {
            let first = first_of(&piece);
            if first.is_some() && seen.is_empty() {
                // As nearly all bodies begin: nothing is copied.
                self.ahead = piece;
                return Ok(first);
            }
            seen.extend_from_slice(&piece);
            if first.is_some() {
                break;
            }
        }
        let first = first_of(&seen);
        self.ahead = seen.into();
        Ok(first)
    }

    /// Reads the end of a body whose message is complete, so that its connection may be used again: a server
    /// that leaves it open is not waited for.
    pub async fn end(mut self) {
        let rest = async { while let Ok(Some(_unsaid)) = self.next().await {} };
        // Not in time: the connection is closed.
        drop(tokio::time::timeout(END_TIME_MAX, rest).await);
    }
}

impl AnswerBody {
    pub(crate) fn new(body: ResponseBody) -> Self {
        Self { body, turn: YieldBudget::default() }
    }

    /// The next bytes, as they come; `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, SendError> {
        loop {
            self.turn.yield_if_spent().await;
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            // Trailers say nothing that is wanted here.
            let piece = frame.map_err(|_broken| SendError::Sent)?.into_data().unwrap_or_default();
            self.turn.charge(piece.len());
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
    }
}

/// A request body that remembers whether a connection ever took its bytes. Until then none of them can have
/// left, even if the head has.
struct TrackedBody {
    bytes: Option<Bytes>,
    taken: Arc<AtomicBool>,
}

debug_as!(TrackedBody as it: "TrackedBody({:?} bytes)", it.bytes.as_ref().map(Bytes::len));

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Before the bytes are handed over: set after that, there would be a moment in which they
        // may be on their way and `Unsent` would still be claimed.
        self.taken.store(true, Ordering::Release);
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        // Exact, so that HTTP/1.1 sends `content-length` and no chunks.
        let left = self.bytes.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(u64::try_from(left).unwrap_or(u64::MAX))
    }
}
