//! The client's socket, and what it proves about an answer.
//!
//! ```text
//! body: last bytes handed over ─▶ CallerState::hand_over ─▶ peek, write, flush ─▶ taken
//!                                        └─ the client has hung up, or the flush fails ─▶ gone
//! ```
//!
//! An answer counts as taken once the kernel has all of it and the client had not hung up before.
//! A reset that comes later on the same connection takes that back: a client which is killed with
//! unread bytes resets its connection, one that has read everything ends it. What keeps dead
//! connections open between client and sidecar hides all of this.

use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::attendance::{Attendance, TakenAnswer};
use crate::peek::has_hung_up;

/// Time after the last answer in which unread bytes are taken and thrown away: unread bytes at the
/// close would become a reset, to which an answer may be lost.
const LINGER: Duration = Duration::from_secs(2);

/// State that a connection's socket and its requests share.
#[derive(Debug, Default)]
pub(crate) struct CallerState {
    /// Attendance whose last bytes are on their way into the socket. In a lock: the body hands it over, the socket
    /// takes it.
    leaving: Mutex<Option<Attendance>>,
    /// The answer that this connection has taken last.
    taken: Mutex<Option<TakenAnswer>>,
    is_aborted: AtomicBool,
}

impl CallerState {
    /// A request has come: what was answered before it was read.
    pub(crate) fn begin(&self) {
        drop(self.taken.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The last bytes of an answer go into the connection next.
    pub(crate) fn hand_over(&self, attendance: Attendance) {
        *self.leaving.lock().unwrap_or_else(PoisonError::into_inner) = Some(attendance);
    }

    /// Ends the connection once everything before is written, without an end of the answer.
    pub(crate) fn abort(&self) {
        self.is_aborted.store(true, Ordering::Release);
    }

    fn take_leaving(&self) -> Option<Attendance> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn has_leaving(&self) -> bool {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn note_flush(&self) {
        if let Some(attendance) = self.take_leaving() {
            *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = attendance.finish();
        }
    }

    fn note_reset(&self) {
        if let Some(taken) = self.taken.lock().unwrap_or_else(PoisonError::into_inner).take() {
            taken.reset();
        }
    }
}

/// Socket of a connection. Others may look at it meanwhile.
#[derive(Debug)]
pub(crate) struct CallerSocket {
    socket: Arc<TcpStream>,
    state: Arc<CallerState>,
    lingering: Option<Pin<Box<Sleep>>>,
}

impl CallerSocket {
    pub(crate) const fn new(socket: Arc<TcpStream>, state: Arc<CallerState>) -> Self {
        Self { socket, state, lingering: None }
    }

    fn poll_io<T>(
        &self,
        context: &mut Context<'_>,
        ready: fn(&TcpStream, &mut Context<'_>) -> Poll<io::Result<()>>,
        mut work: impl FnMut(&TcpStream) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            ready!(ready(&self.socket, context))?;
            match work(&self.socket) {
                // Readiness was spent: wait for the next.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    /// Before the last bytes of an answer: if the client has hung up, no program will read them.
    fn look(&self) {
        if self.state.has_leaving() && has_hung_up(&self.socket) {
            drop(self.state.take_leaving());
        }
    }
}

impl AsyncRead for CallerSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.poll_io(context, TcpStream::poll_read_ready, |socket| {
            socket.try_read_buf(buffer).map(|_read| ())
        });
        if let Poll::Ready(Err(_reset)) = &read {
            self.state.note_reset();
        }
        read
    }
}

impl AsyncWrite for CallerSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.look();
        self.poll_io(context, TcpStream::poll_write_ready, |socket| socket.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.look();
        self.poll_io(context, TcpStream::poll_write_ready, |socket| {
            socket.try_write_vectored(pieces)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // All earlier bytes were written: the kernel keeps none back.
        self.state.note_flush();
        if self.state.is_aborted.load(Ordering::Acquire) {
            let aborted = io::Error::new(io::ErrorKind::ConnectionAborted, "a stream broke");
            return Poll::Ready(Err(aborted));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            shutdown(self.socket.as_fd(), Shutdown::Write)?;
        }
        let mut lingering = self.lingering.take().unwrap_or_else(|| Box::pin(sleep(LINGER)));
        let mut discarded = [0; 8_192];
        while lingering.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut discarded);
            let read = self.as_mut().poll_read(context, &mut buffer);
            if read.is_pending() {
                self.lingering = Some(lingering);
                return Poll::Pending;
            }
            if matches!(read, Poll::Ready(Err(_))) || buffer.filled().is_empty() {
                break;
            }
        }
        self.lingering = Some(lingering);
        Poll::Ready(Ok(()))
    }
}
