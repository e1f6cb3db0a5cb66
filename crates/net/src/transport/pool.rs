//! Pool of connections, kept for the next request.
//!
//! ```text
//!                HTTP/1.1, `Http1Connection`          HTTP/2, `Http2Connection`
//! idle           in `PoolState::idle`, oldest first   in `PoolState::shared`
//! in a call      moved out, owned by the call         stays there; the call has an `Http2Handle`
//! driven by      the call that owns it                a task of its own
//! body ended     goes back, if it is open             the handle is dropped
//! call dropped   the connection closes                the call's stream is reset
//! ```
//!
//! An HTTP/1.1 connection has no task of its own, so that a request waits only for the network. The price: an
//! idle one is not watched. `is_open` polls it once before it is used again, and if a server closes it just
//! then, the call fails; `TrackedBody` shows if that was before its body.
//!
//! Never: an HTTP/1.1 connection in two calls, one that goes back before its body has ended, a lock
//! across an await, a request that is sent again. The content of a request is the transport's.
//!
//! Limits: `IDLE_MAX` idle HTTP/1.1 connections. `Pool::idle_max` (the operator's `pool_idle`) is
//! the age from which none is used; `sweep` closes it within as much time again.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::debug_as;
use holdfast_domain::ports::ConnectionCounts;
use http::{HeaderValue, Request, Response, Uri};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::time::{Instant, sleep, timeout};

use super::connect::{ConnectedStream, Connector, MaybeTlsStream, ProxyRelay};
use super::open::OpenConnections;
use super::shared::{Http2Connection, Http2Handle};
use super::{ExchangeError, TrackedBody, host};

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The most connections that idle: one more, and the oldest of them is closed.
const IDLE_MAX: usize = 1_024;

/// The connections of one client. A server is a scheme and an authority.
pub(super) struct Pool {
    connector: Connector,
    idle_max: Duration,
    kept: Arc<Mutex<PoolState>>,
    open: OpenConnections,
}

#[derive(Default)]
struct PoolState {
    /// Idle HTTP/1.1 connections, the longest idle first.
    idle: Vec<IdleConnection>,
    /// HTTP/2 connections, idle or in use: calls share them.
    shared: Vec<Http2Connection>,
    /// A `sweep` task runs. The task clears this flag when it ends, because no connection is left.
    is_swept: bool,
}

struct IdleConnection {
    connection: Box<Http1Connection>,
    since: Instant,
}

/// Connection of one call.
pub(super) enum PooledConnection {
    /// HTTP/1.1, all of it. In a box: it goes from hand to hand.
    Own(Box<Http1Connection>),
    /// HTTP/2, a share of it.
    Shared(Http2Handle),
}

/// Form of a request's target, by its connection.
pub(super) enum RequestTarget<'a> {
    /// By its path alone.
    Path,
    /// By all of its address.
    Whole,
    /// By all of its address, to a proxy.
    Relayed(&'a ProxyRelay),
}

/// A connection with no other user.
pub(super) struct Http1Connection {
    server: Uri,
    /// Value of the `host` header of every request; `None` if the address names no host.
    host: Option<HeaderValue>,
    relayed: Option<ProxyRelay>,
    sender: SendRequest<TrackedBody>,
    driver: Box<http1::Connection<TokioIo<MaybeTlsStream>, TrackedBody>>,
    _open: OpenConnections,
}

/// Response body. Drives its HTTP/1.1 connection, and returns it to the pool at the end of the
/// message; over HTTP/2 it holds the call's share of the connection until then.
pub(crate) struct ResponseBody {
    body: Incoming,
    line: Option<PooledConnection>,
    idle_max: Duration,
    kept: Arc<Mutex<PoolState>>,
}

debug_as!(Pool: "Pool");

impl Pool {
    /// Keeps connections no longer than this after their last answer; they are closed soon after.
    pub(super) fn new(connector: Connector, idle_max: Duration) -> Self {
        Self { connector, idle_max, kept: Arc::default(), open: OpenConnections::default() }
    }

    /// Connections that idle, and those that calls have.
    pub(super) fn counts(&self) -> ConnectionCounts {
        let kept = lock(&self.kept);
        let n_idle_shared = kept.shared.iter().filter(|shared| shared.is_idle()).count();
        let idle = kept.idle.len().saturating_add(n_idle_shared);
        ConnectionCounts { idle, used: self.open.count().saturating_sub(idle) }
    }

    /// A connection to the server of this address: an idle one that is open as far as can be observed, or a new
    /// one within `connect`, which bounds resolving, connecting and the TLS handshake. Cancel safe.
    pub(super) async fn connection(
        &self,
        server: &Uri,
        connect: Duration,
    ) -> Result<PooledConnection, BoxError> {
        // Nobody speaks HTTP/2 without TLS here.
        if server.scheme_str() == Some("https")
            && let Some(share) = self.share(server)
        {
            return Ok(PooledConnection::Shared(share));
        }
        match self.idle(server) {
            Some(connection) => Ok(PooledConnection::Own(connection)),
            // In a box: every request would be moved about with room for what few come to.
            None => timeout(connect, Box::pin(self.connect(server.clone()))).await?,
        }
    }

    /// Sends a request in the form that its connection needs.
    pub(super) async fn send(
        &self,
        line: PooledConnection,
        request: Box<Request<TrackedBody>>,
    ) -> Result<Response<ResponseBody>, ExchangeError> {
        let (response, line) = match line {
            PooledConnection::Own(mut connection) => {
                let response = connection.send(request).await.ok_or(ExchangeError::Broken)?;
                (response, PooledConnection::Own(connection))
            }
            // In a box, too: it would be room in every request.
            PooledConnection::Shared(mut share) => {
                (Box::pin(share.send(*request)).await?, PooledConnection::Shared(share))
            }
        };
        let (idle_max, kept) = (self.idle_max, Arc::clone(&self.kept));
        Ok(response.map(|body| ResponseBody { body, line: Some(line), idle_max, kept }))
    }

    /// A share of a connection that others use, or used last.
    fn share(&self, server: &Uri) -> Option<Http2Handle> {
        let kept = lock(&self.kept);
        let fits =
            |shared: &&Http2Connection| shared.is_to(server) && shared.has_room(self.idle_max);
        kept.shared.iter().find(fits).map(Http2Connection::share)
    }

    /// The one that was used last.
    fn idle(&self, server: &Uri) -> Option<Box<Http1Connection>> {
        loop {
            let IdleConnection { mut connection, since } = {
                let mut kept = lock(&self.kept);
                let same = |idle: &IdleConnection| idle.connection.is_to(server);
                // From the end: the youngest, which its server is the least likely to have closed.
                let at = kept.idle.iter().rposition(same)?;
                kept.idle.remove(at)
            };
            // Without the lock: `is_open` may read from the socket. A connection that is of no use
            // any more closes here, and the next one is looked at.
            if since.elapsed() < self.idle_max && connection.is_open() {
                return Some(connection);
            }
        }
    }

    async fn connect(&self, server: Uri) -> Result<PooledConnection, BoxError> {
        let ConnectedStream { stream, relayed } = self.connector.connect(&server).await?;
        if stream.is_http2() {
            // Calls that connect at the same time make a connection each. All are kept: `share`
            // fills the first that has room, and the others idle until the sweep.
            let shared = Http2Connection::new(server, stream, self.open.clone()).await?;
            let share = shared.share();
            lock(&self.kept).keep(&self.kept, self.idle_max, |kept| kept.shared.push(shared));
            return Ok(PooledConnection::Shared(share));
        }
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        let driver = Box::new(driver);
        let host = host(&server).and_then(|host| HeaderValue::try_from(host).ok());
        Ok(PooledConnection::Own(Box::new(Http1Connection {
            server,
            host,
            relayed,
            sender,
            driver,
            _open: self.open.clone(),
        })))
    }
}

impl PoolState {
    /// Keeps a connection, and ensures that it is closed when it has idled too long.
    fn keep(&mut self, kept: &Arc<Mutex<Self>>, idle_max: Duration, put: impl FnOnce(&mut Self)) {
        put(self);
        if !self.is_swept {
            self.is_swept = true;
            TokioExecutor::new().execute(sweep(Arc::downgrade(kept), idle_max));
        }
    }
}

impl PooledConnection {
    /// Value of the `host` header; `None` over HTTP/2, in which the target names the server.
    pub(super) const fn host(&self) -> Option<&HeaderValue> {
        match self {
            Self::Own(connection) => connection.host.as_ref(),
            Self::Shared(_) => None,
        }
    }

    /// Form of a request's target on this connection.
    pub(super) const fn form(&self) -> RequestTarget<'_> {
        match self {
            Self::Own(connection) => match &connection.relayed {
                None => RequestTarget::Path,
                Some(relayed) => RequestTarget::Relayed(relayed),
            },
            Self::Shared(_) => RequestTarget::Whole,
        }
    }
}

impl Http1Connection {
    /// Sends a request. `None`: the connection broke.
    async fn send(&mut self, request: Box<Request<TrackedBody>>) -> Option<Response<Incoming>> {
        let Self { sender, driver, .. } = self;
        let mut response = pin!(sender.send_request(*request));
        poll_fn(|context| {
            if let Poll::Ready(response) = response.as_mut().poll(context) {
                return Poll::Ready(response.ok());
            }
            // The driver may read the answer and the end of the connection in one poll, so the
            // answer is asked for again before the end counts.
            let ended = Pin::new(&mut **driver).poll(context).is_ready();
            match response.as_mut().poll(context) {
                Poll::Ready(response) => Poll::Ready(response.ok()),
                Poll::Pending if ended => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    fn is_to(&self, server: &Uri) -> bool {
        self.server.scheme() == server.scheme() && self.server.authority() == server.authority()
    }

    /// True if the connection may be used again. The server may still have closed it unnoticed.
    fn is_open(&mut self) -> bool {
        // No waker: only this moment counts, and the next call polls with its own.
        let mut context = Context::from_waker(Waker::noop());
        Pin::new(&mut *self.driver).poll(&mut context).is_pending() && self.sender.is_ready()
    }
}

impl ResponseBody {
    /// Keeps the connection for the next request, if it can serve one.
    fn give_back(&mut self) {
        let Some(PooledConnection::Own(mut connection)) = self.line.take() else { return };
        // Zero means that nothing is kept.
        if self.idle_max.is_zero() || !connection.is_open() {
            return;
        }
        lock(&self.kept).keep(&self.kept, self.idle_max, |kept| {
            if kept.idle.len() >= IDLE_MAX {
                kept.idle.remove(0);
            }
            kept.idle.push(IdleConnection { connection, since: Instant::now() });
        });
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut read = Pin::new(&mut self.body).poll_frame(context);
        if read.is_pending()
            && let Some(PooledConnection::Own(connection)) = &mut self.line
        {
            // What was read before it ended is there all the same.
            if Pin::new(&mut *connection.driver).poll(context).is_ready() {
                self.line = None;
            }
            read = Pin::new(&mut self.body).poll_frame(context);
        }
        match &read {
            Poll::Ready(None) => self.give_back(),
            Poll::Ready(Some(Err(_broken))) => self.line = None,
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        read
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Closes connections that idle too long, until none idles or the pool is dropped.
async fn sweep(kept: Weak<Mutex<PoolState>>, idle_max: Duration) {
    loop {
        sleep(idle_max).await;
        let Some(kept) = kept.upgrade() else { return };
        let mut kept = lock(&kept);
        let now = Instant::now();
        let is_old = |idle: &IdleConnection| now.duration_since(idle.since) >= idle_max;
        // Sorted by age: `since` is read under this lock, just before the push at the end.
        let n_old = kept.idle.partition_point(is_old);
        kept.idle.drain(..n_old);
        kept.shared.retain(|shared| !shared.is_done(idle_max));
        if kept.idle.is_empty() && kept.shared.is_empty() {
            // Under the lock that found nothing left: the next connection starts a new task.
            kept.is_swept = false;
            return;
        }
    }
}

/// Lock of the pool's state. Never held across an await. A panic under it leaves lists that are
/// still lists, so poison is ignored.
fn lock(kept: &Mutex<PoolState>) -> MutexGuard<'_, PoolState> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
