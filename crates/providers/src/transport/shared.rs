//! Connections over HTTP/2, which many calls share. A task of its own drives each. Not which call goes
//! where: that is the pool's.

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
use super::{ExchangeError, TrackedBody};

/// The most calls that share a connection, whatever its server allows.
const STREAMS_MAX: usize = 100;
/// How often a server with calls in hand is asked whether it is there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(5);
const PING_TIME_MAX: Duration = Duration::from_secs(5);

/// A connection that is there for whoever wants to call its server.
pub(super) struct Http2Connection {
    server: Uri,
    sender: SendRequest<TrackedBody>,
    /// How many calls the server takes at once.
    max: Arc<AtomicUsize>,
    calls: Arc<CallTracker>,
}

/// What is known of the calls of a connection. Whoever else has it is one of them.
struct CallTracker {
    /// When the last of them has ended.
    ended: Mutex<Instant>,
}

/// One call's share of a connection.
pub(super) struct Http2Handle {
    sender: SendRequest<TrackedBody>,
    calls: Arc<CallTracker>,
}

impl Http2Connection {
    /// Speaks HTTP/2 on a new connection.
    pub(super) async fn new(server: Uri, stream: MaybeTlsStream) -> hyper::Result<Self> {
        let (sender, driver) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIME_MAX)
            .handshake(TokioIo::new(stream))
            .await?;
        let max = Arc::new(AtomicUsize::new(driver.current_max_send_streams()));
        let told = Arc::clone(&max);
        TokioExecutor::new().execute(async move {
            let mut driver = pin!(driver);
            std::future::poll_fn(|context| {
                let polled = driver.as_mut().poll(context);
                told.store(driver.current_max_send_streams(), Ordering::Relaxed);
                polled.map(drop)
            })
            .await;
        });
        let calls = Arc::new(CallTracker { ended: Mutex::new(Instant::now()) });
        Ok(Self { server, sender, max, calls })
    }

    pub(super) fn is_to(&self, server: &Uri) -> bool {
        self.server.scheme() == server.scheme() && self.server.authority() == server.authority()
    }

    /// Whether another call may have a share of it: it is open as far as can be told, does not idle too
    /// long, and its server takes one more.
    pub(super) fn has_room(&self, idle_max: Duration) -> bool {
        let max = self.max.load(Ordering::Relaxed).min(STREAMS_MAX);
        self.n_calls() < max && !self.is_done(idle_max)
    }

    /// Whether nobody needs it any more.
    pub(super) fn is_done(&self, idle_max: Duration) -> bool {
        let idles = || self.calls.ended().elapsed() >= idle_max;
        self.sender.is_closed() || (self.n_calls() == 0 && idles())
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

/// Whether a server says that it has not looked at the request: it refused its stream, or went away and
/// named an earlier stream as the last that it may have looked at (RFC 9113, 8.7 and 6.8).
fn is_unprocessed(error: &hyper::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let is_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
            // Streams up to the one that was named are not told of a server's going away.
            return error.is_remote() && (is_refused || error.is_go_away());
        }
        cause = error.source();
    }
    false
}
