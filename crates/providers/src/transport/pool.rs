//! Connections over HTTP/1.1, kept for the next request while they idle. Whoever uses a connection drives
//! it: it has no task of its own, so that a request waits for nothing but the network. Dropping one closes
//! it. Not here: what is sent, and what it means when it breaks.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::time::{Instant, sleep, timeout};

use super::Prompt;
use super::connect::{Connected, Connector, Relayed, Stream};

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The most connections that idle: one more, and the oldest of them is closed.
const IDLE_MAX: usize = 1_024;

/// The connections of one client. A server is a scheme and an authority.
pub(super) struct Pool {
    connector: Connector,
    idle_max: Duration,
    kept: Arc<Mutex<Kept>>,
}

/// What idles, the longest first.
#[derive(Default)]
struct Kept {
    idle: Vec<Idle>,
    /// Whether a task closes what idles too long. It ends when there is nothing left.
    is_swept: bool,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// A connection that nobody else uses.
pub(super) struct Connection {
    server: Uri,
    relayed: Option<Relayed>,
    sender: SendRequest<Prompt>,
    driver: Box<http1::Connection<TokioIo<Stream>, Prompt>>,
}

/// The body of an answer, which drives its connection until it ends, and then gives it back.
pub(super) struct Answer {
    body: Incoming,
    connection: Option<Connection>,
    idle_max: Duration,
    kept: Arc<Mutex<Kept>>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool")
    }
}

impl Pool {
    /// Keeps connections no longer than this after their last answer; they are closed soon after.
    pub(super) fn new(connector: Connector, idle_max: Duration) -> Self {
        Self { connector, idle_max, kept: Arc::default() }
    }

    /// A connection to the server of this address: one that idles and is open as far as can be told, or
    /// a new one within `connect`, which bounds resolving, connecting and the TLS handshake. Cancel safe.
    pub(super) async fn connection(
        &self,
        server: &Uri,
        connect: Duration,
    ) -> Result<Connection, BoxError> {
        match self.idle(server) {
            Some(connection) => Ok(connection),
            // In a box: every request would be moved about with room for what few come to.
            None => timeout(connect, Box::pin(self.connect(server.clone()))).await?,
        }
    }

    /// Sends a request, whose address is a path. `None`: the connection broke.
    pub(super) async fn ask(
        &self,
        mut connection: Connection,
        request: Request<Prompt>,
    ) -> Option<Response<Answer>> {
        let response = {
            let Connection { sender, driver, .. } = &mut connection;
            let mut response = pin!(sender.send_request(request));
            poll_fn(|context| {
                if let Poll::Ready(response) = response.as_mut().poll(context) {
                    return Poll::Ready(response.ok());
                }
                let ended = Pin::new(&mut **driver).poll(context).is_ready();
                match response.as_mut().poll(context) {
                    Poll::Ready(response) => Poll::Ready(response.ok()),
                    Poll::Pending if ended => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await?
        };
        let (idle_max, kept) = (self.idle_max, Arc::clone(&self.kept));
        Some(response.map(|body| Answer { body, connection: Some(connection), idle_max, kept }))
    }

    /// The one that was used last.
    fn idle(&self, server: &Uri) -> Option<Connection> {
        loop {
            let Idle { mut connection, since } = {
                let mut kept = lock(&self.kept);
                let same = |idle: &Idle| idle.connection.is_to(server);
                let at = kept.idle.iter().rposition(same)?;
                kept.idle.remove(at)
            };
            if since.elapsed() < self.idle_max && connection.is_open() {
                return Some(connection);
            }
        }
    }

    async fn connect(&self, server: Uri) -> Result<Connection, BoxError> {
        let Connected { stream, relayed } = self.connector.connect(&server).await?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Connection { server, relayed, sender, driver: Box::new(driver) })
    }
}

impl Connection {
    /// What a proxy is told that relays on this connection.
    pub(super) const fn relayed(&self) -> Option<&Relayed> {
        self.relayed.as_ref()
    }

    fn is_to(&self, server: &Uri) -> bool {
        self.server.scheme() == server.scheme() && self.server.authority() == server.authority()
    }

    /// Whether it may be used again. Its server may have closed it and nobody knows yet.
    fn is_open(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        Pin::new(&mut *self.driver).poll(&mut context).is_pending() && self.sender.is_ready()
    }
}

impl Answer {
    /// Keeps the connection for the next request, if it can serve one.
    fn give_back(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        if self.idle_max.is_zero() || !connection.is_open() {
            return;
        }
        let mut kept = lock(&self.kept);
        if kept.idle.len() >= IDLE_MAX {
            kept.idle.remove(0);
        }
        kept.idle.push(Idle { connection, since: Instant::now() });
        if !kept.is_swept {
            kept.is_swept = true;
            TokioExecutor::new().execute(sweep(Arc::downgrade(&self.kept), self.idle_max));
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut read = Pin::new(&mut self.body).poll_frame(context);
        if read.is_pending()
            && let Some(connection) = &mut self.connection
        {
            // What was read before it ended is there all the same.
            if Pin::new(&mut *connection.driver).poll(context).is_ready() {
                self.connection = None;
            }
            read = Pin::new(&mut self.body).poll_frame(context);
        }
        match &read {
            Poll::Ready(None) => self.give_back(),
            Poll::Ready(Some(Err(_broken))) => self.connection = None,
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

/// Closes what idles too long, until nothing idles or nobody is left who could use it.
async fn sweep(kept: Weak<Mutex<Kept>>, idle_max: Duration) {
    loop {
        sleep(idle_max).await;
        let Some(kept) = kept.upgrade() else { return };
        let mut kept = lock(&kept);
        let now = Instant::now();
        let is_old = |idle: &Idle| now.duration_since(idle.since) >= idle_max;
        let n_old = kept.idle.partition_point(is_old);
        kept.idle.drain(..n_old);
        if kept.idle.is_empty() {
            kept.is_swept = false;
            return;
        }
    }
}

/// Never held across an await.
fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
