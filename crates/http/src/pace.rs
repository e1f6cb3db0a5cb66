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

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::streamed::Body;

/// Between two looks whether an answer was written to its end.
const LOOK: Duration = Duration::from_millis(250);

/// Where a connection stands between two requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stage(Arc<AtomicBool>);

impl Stage {
    /// A head was read: a turn begins, which ends when its answer has been handed over.
    pub(crate) fn begin(&self) -> Turn {
        self.0.store(true, Ordering::Release);
        Turn(self.clone())
    }

    fn is_idle(&self) -> bool {
        !self.0.load(Ordering::Acquire)
    }
}

/// One request and its answer.
#[derive(Debug)]
pub(crate) struct Turn(Stage);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

/// The body of an answer, which ends its turn.
pub(crate) struct Answering {
    body: Body,
    _turn: Turn,
}

impl Answering {
    pub(crate) const fn new(body: Body, turn: Turn) -> Self {
        Self { body, _turn: turn }
    }
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How long a connection may take over what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) head: Duration,
    pub(crate) idle: Duration,
}

/// What comes next between two answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    /// A request, or none.
    Request,
    /// The rest of a head of which some came.
    Rest,
}

/// A connection that keeps its pace.
#[derive(Debug)]
pub(crate) struct Paced<S> {
    stream: S,
    stage: Stage,
    times: Times,
    /// Runs while a head is waited for.
    timer: Pin<Box<Sleep>>,
    /// Whether `timer` runs for this head.
    is_timed: bool,
    awaited: Awaited,
    /// Whether anything waits to be written.
    is_unflushed: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Paced<S> {
    pub(crate) fn new(stream: S, stage: Stage, times: Times) -> Self {
        let now = Instant::now();
        Self {
            stream,
            stage,
            times,
            timer: Box::pin(sleep_until(now + times.head)),
            is_timed: true,
            awaited: Awaited::Rest,
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
            if buffer.filled().len() > before && self.awaited == Awaited::Request {
                (self.awaited, self.is_timed) = (Awaited::Rest, false);
            }
            return read;
        }
        if !self.is_timed {
            let time = match self.awaited {
                Awaited::Request => self.times.idle,
                Awaited::Rest => self.times.head,
            };
            self.timer.as_mut().reset(Instant::now() + time);
            self.is_timed = true;
        }
        loop {
            ready!(self.timer.as_mut().poll(context));
            if self.awaited == Awaited::Rest {
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

    /// Whatever is written belongs to an answer: no head is waited for before it is over.
    fn wrote<T>(&mut self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.is_unflushed = true;
        (self.awaited, self.is_timed) = (Awaited::Request, false);
        written
    }

    /// An answer is out. Nobody need read from here until something comes, so idle time begins now.
    fn flushed(&mut self, context: &mut Context<'_>) {
        self.is_unflushed = false;
        if self.stage.is_idle() && !self.is_timed {
            self.is_timed = true;
            self.timer.as_mut().reset(Instant::now() + self.times.idle);
            if self.timer.as_mut().poll(context).is_ready() {
                context.waker().wake_by_ref();
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.stage.is_idle() {
            return self.poll_head(context, buffer);
        }
        (self.awaited, self.is_timed) = (Awaited::Request, false);
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.flushed(context);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
