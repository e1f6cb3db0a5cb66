//! The pace of a connection: how long it may be idle, and how long a head may take.
//!
//! ```text
//! idle ──first byte──▶ head ──whole──▶ in a turn ──answer handed over──▶ idle
//! ```
//!
//! Idle time and head time are apart: balancers keep connections for a minute and more, and lose what they
//! send on one that is just being closed; a head that has begun has no such excuse. The first head of a
//! connection has begun when the connection is there.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Between two looks whether an answer was written to its end.
const LOOK: Duration = Duration::from_millis(250);

/// Flag of a connection that has a request in flight. The service sets it, the stream reads it.
#[derive(Debug, Clone, Default)]
pub(crate) struct BusyFlag(Arc<AtomicBool>);

impl BusyFlag {
    /// A head was read: a turn begins, which ends when its answer has been handed over.
    #[must_use]
    pub(crate) fn begin(&self) -> BusyGuard {
        self.0.store(true, Ordering::Release);
        BusyGuard(self.clone())
    }

    fn is_idle(&self) -> bool {
        !self.0.load(Ordering::Acquire)
    }
}

/// Guard of one request and its answer; dropping it makes the connection idle again.
#[derive(Debug)]
pub(crate) struct BusyGuard(BusyFlag);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

/// The body of an answer, which ends its turn.
#[derive(Debug)]
pub struct GuardedBody<B, T> {
    body: B,
    _turn: T,
}

impl<B, T> GuardedBody<B, T> {
    /// A body whose end, or drop, ends this turn.
    pub const fn new(body: B, turn: T) -> Self {
        Self { body, _turn: turn }
    }
}

impl<B: HttpBody + Unpin, T: Unpin> HttpBody for GuardedBody<B, T> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Timeouts of reads: for the rest of a head, and for the first byte of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadTimeouts {
    /// Time for a head, from its first byte, or from the beginning of the connection.
    pub head: Duration,
    /// Time without a byte between two requests.
    pub idle: Duration,
}

/// Input that is awaited between two answers; it chooses the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadPhase {
    /// A request, or none.
    Request,
    /// The rest of a head of which some came.
    Rest,
}

/// A connection that keeps its pace.
#[derive(Debug)]
pub(crate) struct TimedStream<S> {
    stream: S,
    stage: BusyFlag,
    times: ReadTimeouts,
    /// Runs while a head is waited for.
    timer: Pin<Box<Sleep>>,
    /// True while `timer` runs for the awaited head.
    is_timed: bool,
    awaited: ReadPhase,
    /// True while written bytes wait for a flush.
    is_unflushed: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TimedStream<S> {
    /// A connection that has just begun: its first head is awaited.
    pub(crate) fn new(stream: S, stage: BusyFlag, times: ReadTimeouts) -> Self {
        let now = Instant::now();
        Self {
            stream,
            stage,
            times,
            timer: Box::pin(sleep_until(now + times.head)),
            is_timed: true,
            awaited: ReadPhase::Rest,
            is_unflushed: false,
        }
    }

    /// Waits for a head, or for more of it.
    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            if buffer.filled().len() > before && self.awaited == ReadPhase::Request {
                (self.awaited, self.is_timed) = (ReadPhase::Rest, false);
            }
            return read;
        }
        if !self.is_timed {
            let time = match self.awaited {
                ReadPhase::Request => self.times.idle,
                ReadPhase::Rest => self.times.head,
            };
            self.timer.as_mut().reset(Instant::now() + time);
            self.is_timed = true;
        }
        loop {
            ready!(self.timer.as_mut().poll(context));
            // An error, so that hyper drops the connection; idle time ends as a clean end of input.
            if self.awaited == ReadPhase::Rest {
                let late = io::Error::new(io::ErrorKind::TimedOut, "a head took too long");
                return Poll::Ready(Err(late));
            }
            // An answer that is still being written is no idle connection.
            if !self.is_unflushed {
                return Poll::Ready(Ok(()));
            }
            self.timer.as_mut().reset(Instant::now() + LOOK);
        }
    }

    /// Marks the connection as answering: a write belongs to an answer, so that no head is awaited
    /// before it is flushed.
    fn note_write<T>(&mut self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.is_unflushed = true;
        (self.awaited, self.is_timed) = (ReadPhase::Request, false);
        written
    }

    /// An answer is out. The peer need not be read from here until its next byte, so idle time begins now.
    fn note_flush(&mut self, context: &mut Context<'_>) {
        self.is_unflushed = false;
        if self.stage.is_idle() && !self.is_timed {
            self.is_timed = true;
            self.timer.as_mut().reset(Instant::now() + self.times.idle);
            // Polled once, to register the waker: nothing else polls an idle connection.
            if self.timer.as_mut().poll(context).is_ready() {
                context.waker().wake_by_ref();
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.stage.is_idle() {
            return self.poll_head(context, buffer);
        }
        // A body: its time is counted where it is read, and the next head is awaited afresh after it.
        (self.awaited, self.is_timed) = (ReadPhase::Request, false);
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.note_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.note_flush(context);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
