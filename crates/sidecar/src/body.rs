//! Bodies of answers to the client: whole, as a stream, or passed on as they come.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};
use holdfast_net::PassedFailure;
use holdfast_wire::sse::PING;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use crate::attendance::Attendance;
use crate::socket::CallerState;
use crate::stream::{StreamPart, as_event};

/// The longest silence of a stream: proxies and clients take silence for an end.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Body on its way to the client.
pub(crate) enum CallerBody {
    /// All of it, and who leaves with it.
    Whole(Bytes, Option<(Arc<CallerState>, Attendance)>),
    Resumed(Box<ResumedBody>),
    Passed(PassedBody),
}

impl CallerBody {
    /// The body of an answer that is there.
    pub(crate) fn whole(
        bytes: Bytes,
        state: &Arc<CallerState>,
        attendance: Option<Attendance>,
    ) -> Self {
        match attendance {
            // No byte of it will ever be handed over.
            Some(attendance) if bytes.is_empty() => {
                state.hand_over(attendance);
                Self::Whole(bytes, None)
            }
            attendance => Self::Whole(bytes, attendance.map(|it| (Arc::clone(state), it))),
        }
    }
}

/// Bytes that are passed on as they come, and who leaves with the last of them.
pub(crate) struct PassedBody {
    pub(crate) bytes: BoxStream<'static, Result<Bytes, PassedFailure>>,
    pub(crate) leaving: Option<(Arc<CallerState>, Attendance)>,
    /// Bytes that are left of an announced length: once it has them, hyper does not poll for the end.
    pub(crate) left: Option<u64>,
}

impl PassedBody {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, PassedFailure>>> {
        let piece = ready!(self.bytes.poll_next_unpin(context));
        let is_last = match (&piece, &mut self.left) {
            (None, _) => true,
            (Some(Ok(bytes)), Some(left)) => {
                *left = left.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                *left == 0
            }
            (Some(_), _) => false,
        };
        if is_last && let Some((state, attendance)) = self.leaving.take() {
            state.hand_over(attendance);
        }
        Poll::Ready(piece)
    }
}

/// A stream on its way to the client.
pub(crate) struct ResumedBody {
    parts: BoxStream<'static, StreamPart>,
    /// Read already, while the head was waited for.
    first: Option<StreamPart>,
    state: Arc<CallerState>,
    is_broken: bool,
    silence: Pin<Box<Sleep>>,
}

impl ResumedBody {
    pub(crate) fn new(
        parts: BoxStream<'static, StreamPart>,
        first: Option<StreamPart>,
        state: Arc<CallerState>,
    ) -> Self {
        // A head without an event is a sign of life at once.
        let silence = if first.is_some() { KEEP_ALIVE } else { Duration::ZERO };
        Self { parts, first, state, is_broken: false, silence: Box::pin(sleep(silence)) }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if self.is_broken {
                // Never an end: the connection goes once the last event is written.
                self.state.abort();
                return Poll::Pending;
            }
            let part = match self.first.take() {
                Some(first) => Poll::Ready(Some(first)),
                None => self.parts.poll_next_unpin(context),
            };
            let Poll::Ready(part) = part else {
                ready!(self.silence.as_mut().poll(context));
                self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
                // Registers the timer; it is not due yet.
                if self.silence.as_mut().poll(context).is_pending() {
                    return Poll::Ready(Some(Bytes::from_static(PING)));
                }
                continue;
            };
            self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
            let (bytes, attendance) = match part {
                None => return Poll::Ready(None),
                Some(StreamPart::Begun(_)) => continue,
                Some(StreamPart::Event(bytes, attendance)) => (bytes, attendance),
                Some(StreamPart::Broken(bytes, attendance)) => {
                    self.is_broken = true;
                    (bytes, attendance)
                }
                Some(StreamPart::Whole(answer, attendance)) => {
                    self.is_broken = true;
                    (as_event(&answer), attendance)
                }
            };
            attendance.into_iter().for_each(|attendance| self.state.hand_over(attendance));
            return Poll::Ready(Some(bytes));
        }
    }
}

impl Body for CallerBody {
    type Data = Bytes;
    type Error = PassedFailure;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, PassedFailure>>> {
        match self.get_mut() {
            Self::Whole(bytes, leaving) => {
                // Before the bytes: the socket must find the attendance at the flush that follows
                // them.
                if let Some((state, attendance)) = leaving.take() {
                    state.hand_over(attendance);
                }
                let bytes = std::mem::take(bytes);
                let frame = (!bytes.is_empty()).then(|| Ok(Frame::data(bytes)));
                Poll::Ready(frame)
            }
            Self::Resumed(body) => body.poll(context).map(|bytes| Some(Ok(Frame::data(bytes?)))),
            Self::Passed(passed) => {
                passed.poll(context).map(|bytes| bytes.map(|bytes| bytes.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes, _) => bytes.is_empty(),
            Self::Resumed(_) | Self::Passed(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes, _) => {
                SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
            Self::Resumed(_) | Self::Passed(_) => SizeHint::default(),
        }
    }
}
