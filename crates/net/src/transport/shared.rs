//! HTTP/2 connections, each shared by many calls and driven by a task of its own.
//!
//! ```text
//! Pool ── Http2Connection ── max ◀── the driving task, from the server's settings
//!               └─ calls ◀── Http2Handle, one a call
//! ```
//!
//! The number of calls is the reference count of `CallTracker` less one: a call that ends anywhere,
//! also by being dropped, is counted out by that. The last one to end leaves the moment at which
//! idling began.
//!
//! Never: a call more than the server's settings allow, as far as they have come, or than `STREAMS_MAX`; a call
//! that is judged unrun by anything but the server's own statement (`is_unprocessed`). The choice of a
//! connection for a call is the pool's.
//!
//! Limits: `STREAMS_MAX` calls a connection. A server that is silent for `PING_EVERY` while it has calls is
//! pinged, and given up after `PING_TIME_MAX`: its calls then end as broken.

use std::error::Error;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use h2::Reason;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::Instant;

use super::connect::MaybeTlsStream;
use super::open::OpenConnections;
use super::{ExchangeError, TrackedBody};

/// The most calls that share a connection, even if its server allows more.
const STREAMS_MAX: usize = 100;
/// Silence of a server with calls in flight after which it is pinged, and the time limit of its
/// reply.
const PING_EVERY: Duration = Duration::from_secs(5);
const PING_TIME_MAX: Duration = Duration::from_secs(5);

/// Connection of the pool, from which every call takes a handle.
pub(super) struct Http2Connection {
    server: Uri,
    sender: SendRequest<TrackedBody>,
    /// Calls that the server takes at once, by its latest settings.
    max: Arc<AtomicUsize>,
    calls: Arc<CallTracker>,
    _open: OpenConnections,
}

/// Calls of a connection: each has a reference to this, and the connection has one.
struct CallTracker {
    /// End of the call that ended last; the start of the connection before the first. In a lock: calls end on any
    /// thread.
    ended: Mutex<Instant>,
}

/// Share of one call in a connection.
pub(super) struct Http2Handle {
    sender: SendRequest<TrackedBody>,
    calls: Arc<CallTracker>,
}

impl Http2Connection {
    /// Speaks HTTP/2 on a new connection.
    pub(super) async fn new(
        server: Uri,
        stream: MaybeTlsStream,
        open: OpenConnections,
    ) -> hyper::Result<Self> {
        let (sender, driver) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIME_MAX)
            .handshake(TokioIo::new(stream))
            .await?;
        let max = Arc::new(AtomicUsize::new(driver.current_max_send_streams()));
        let reported = Arc::clone(&max);
        TokioExecutor::new().execute(async move {
            let mut driver = pin!(driver);
            std::future::poll_fn(|context| {
                let polled = driver.as_mut().poll(context);
                // Relaxed: it only chooses a connection, and the server enforces its own limit.
                reported.store(driver.current_max_send_streams(), Ordering::Relaxed);
                polled.map(drop)
            })
            .await;
        });
        let calls = Arc::new(CallTracker { ended: Mutex::new(Instant::now()) });
        Ok(Self { server, sender, max, calls, _open: open })
    }

    pub(super) fn is_to(&self, server: &Uri) -> bool {
        self.server.scheme() == server.scheme() && self.server.authority() == server.authority()
    }

    /// True if another call may have a share: the connection is open as far as can be observed, has not idled
    /// too long, and its server takes one more.
    pub(super) fn has_room(&self, idle_max: Duration) -> bool {
        // The pool asks this and takes the share under one lock: no two calls take the last place.
        let max = self.max.load(Ordering::Relaxed).min(STREAMS_MAX);
        self.n_calls() < max && !self.is_done(idle_max)
    }

    /// True if the connection is closed, or has had no call for `idle_max`.
    pub(super) fn is_done(&self, idle_max: Duration) -> bool {
        let idles = || self.calls.ended().elapsed() >= idle_max;
        self.sender.is_closed() || (self.is_idle() && idles())
    }

    /// True if no call has a share.
    pub(super) fn is_idle(&self) -> bool {
        self.n_calls() == 0
    }

    pub(super) fn share(&self) -> Http2Handle {
        Http2Handle { sender: self.sender.clone(), calls: Arc::clone(&self.calls) }
    }

    fn n_calls(&self) -> usize {
        Arc::strong_count(&self.calls).saturating_sub(1)
    }
}

impl CallTracker {
    fn ended(&self) -> Instant {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Http2Handle {
    fn drop(&mut self) {
        *self.calls.ended.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

impl Http2Handle {
    /// Sends a request, whose address is whole. Dropping the future resets its stream.
    pub(super) async fn send(
        &mut self,
        request: Request<TrackedBody>,
    ) -> Result<Response<Incoming>, ExchangeError> {
        let answered = self.sender.send_request(request).await;
        answered.map_err(|error| {
            if is_unprocessed(&error) { ExchangeError::Unprocessed } else { ExchangeError::Broken }
        })
    }
}

/// True if the server itself disclaims the request: it refused the stream, or went away and named an earlier
/// stream as the last that it may have processed (RFC 9113, 8.7 and 6.8).
fn is_unprocessed(error: &hyper::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            // Only the server's word counts: a reset or a going away that this side began (over an
            // error in the protocol, say) proves nothing about the run.
            let is_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
            // Streams up to the one that was named are not told of a server's going away.
            return error.is_remote() && (is_refused || error.is_go_away());
        }
        cause = error.source();
    }
    false
}
