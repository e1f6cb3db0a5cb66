//! A caller's socket, with an end for what may otherwise last for ever.
//!
//! - An answer that waits too long for its reader cuts the connection.
//! - A stream that broke cuts it once its last event is on its way ([`AbortSignal`]).
//! - After the last answer, what the caller still sends is read for a moment and thrown away: bytes that are
//!   unread at the close become a reset, to which a refusal may be lost.
//!
//! Not here: how long heads ([`timed_stream`](crate::timed_stream)) and bodies may take.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// Time after the last answer in which a caller's unread bytes are taken and thrown away.
const LINGER: Duration = Duration::from_secs(2);
/// Bytes of that taken by one read.
const DISCARDED: usize = 8_192;

/// Breaks a connection off once everything that was written to it is on its way.
#[derive(Debug, Clone, Default)]
pub struct AbortSignal(Arc<AtomicBool>);

impl AbortSignal {
    /// True once the connection is to end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Ends the connection after the next complete flush.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A connection with limits of time on its ends of answers.
#[derive(Debug)]
pub(crate) struct CallerSocket {
    socket: TcpStream,
    write_time: Duration,
    /// Signal that a stream broke: the next complete flush ends the connection.
    cut: AbortSignal,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Runs from the end of the last answer.
    lingering: Option<Pin<Box<Sleep>>>,
}

impl CallerSocket {
    /// Allows a write so long to make any progress.
    #[must_use]
    pub(crate) const fn new(socket: TcpStream, write_time: Duration, cut: AbortSignal) -> Self {
        Self { socket, write_time, cut, stalled: None, lingering: None }
    }

    /// Passes on what became of a write, unless it has waited too long.
    fn in_time<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            // Any progress starts the time anew: a slow reader is no dead one.
            self.stalled = None;
            return written;
        }
        let write_time = self.write_time;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(write_time)));
        ready!(stalled.as_mut().poll(context));
        // What the kernel still holds of the answer goes too, instead of waiting for the reader there.
        self.socket.set_zero_linger()?;
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "an answer was not taken")))
    }
}

impl AsyncRead for CallerSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for CallerSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_flush(context))?;
        // Everything was written that came before: an answer that broke says so in the last of it.
        if self.cut.is_set() {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "a stream broke",
            )));
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the answers, then reads until the caller hangs up. Bytes that are unread when a socket is
    /// closed make a reset of it, which may overtake the answer.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.socket).poll_shutdown(context))?;
        }
        let stream = &mut *self;
        // Kept across polls: a caller that goes on sending cannot extend its time.
        let lingering = stream.lingering.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        let mut discarded = [0; DISCARDED];
        while lingering.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut discarded);
            ready!(Pin::new(&mut stream.socket).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
