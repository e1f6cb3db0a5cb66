//! Timeouts of a connection's reads: idle time between two requests, and time for a head that has begun.
//!
//! ```text
//! idle ──first byte──▶ head ──whole──▶ in a turn ──answer handed over──▶ idle
//! ```
//!
//! The first head of a connection begins with the connection. Idle time exceeds what the connection pools of
//! common clients keep, because a client may lose a request that it sends as its connection is closed.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use holdfast_providers::PassedFailure;
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::body::CallerBody;

/// Time for a head, from its first byte or from the beginning of the connection.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(10);
/// Time without a byte between two requests.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(120);
/// Pause before the next check if an answer is still being written.
const UNFLUSHED_PAUSE: Duration = Duration::from_millis(250);

/// Flag of a connection that has a request in flight.
#[derive(Debug, Clone, Default)]
pub(crate) struct BusyFlag(Arc<AtomicBool>);

/// Guard of one request and its answer; dropping it makes the connection idle again.
#[derive(Debug)]
pub(crate) struct BusyGuard(BusyFlag);

impl BusyFlag {
    /// Marks the connection as busy, until the guard is dropped.
    pub(crate) fn begin(&self) -> BusyGuard {
        self.0.store(true, Ordering::Release);
        BusyGuard(self.clone())
    }

    fn is_idle(&self) -> bool {
        !self.0.load(Ordering::Acquire)
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

/// Body of an answer, which ends the turn of its request.
pub(crate) struct TurnBody {
    body: CallerBody,
    _turn: BusyGuard,
}

impl TurnBody {
    pub(crate) const fn new(body: CallerBody, turn: BusyGuard) -> Self {
        Self { body, _turn: turn }
    }
}

impl Body for TurnBody {
    type Data = Bytes;
    type Error = PassedFailure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, PassedFailure>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Socket whose heads and idle times end.
#[derive(Debug)]
pub(crate) struct TimedSocket<S> {
    socket: S,
    busy: BusyFlag,
    timer: Pin<Box<Sleep>>,
    /// Some of the awaited head has come, or it is the connection's first.
    has_begun: bool,
    /// Written bytes wait for a flush.
    is_unflushed: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TimedSocket<S> {
    pub(crate) fn new(socket: S, busy: BusyFlag) -> Self {
        let timer = Box::pin(sleep_until(Instant::now() + HEAD_TIME));
        Self { socket, busy, timer, has_begun: true, is_unflushed: false }
    }

    /// Reads a head, or more of it.
    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(context, buffer);
        if read.is_ready() {
            if buffer.filled().len() > before && !self.has_begun {
                self.has_begun = true;
                self.timer.as_mut().reset(Instant::now() + HEAD_TIME);
            }
            return read;
        }
        loop {
            ready!(self.timer.as_mut().poll(context));
            // An error, so that the connection is dropped; idle time ends as a clean end of input.
            if self.has_begun {
                let late = io::Error::new(io::ErrorKind::TimedOut, "a head took too long");
                return Poll::Ready(Err(late));
            }
            if !self.is_unflushed {
                return Poll::Ready(Ok(()));
            }
            self.timer.as_mut().reset(Instant::now() + UNFLUSHED_PAUSE);
        }
    }

    /// The next head is awaited, from now on.
    fn await_head(&mut self) {
        self.has_begun = false;
        self.timer.as_mut().reset(Instant::now() + IDLE_TIME);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TimedSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.busy.is_idle() {
            return self.poll_head(context, buffer);
        }
        // A body has its own time.
        self.await_head();
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimedSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_unflushed = true;
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.is_unflushed = true;
        Pin::new(&mut self.socket).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_flush(context))?;
        if std::mem::take(&mut self.is_unflushed) {
            self.await_head();
            // Polled once to register the waker: an idle connection is polled by nothing else.
            if self.timer.as_mut().poll(context).is_ready() {
                context.waker().wake_by_ref();
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
