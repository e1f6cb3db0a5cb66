//! Response bodies: whole, streamed as server-sent events, or relayed from or to another server.
//!
//! ```text
//! event ─▶ event ─▶ … ─▶ end                 whole
//! event ─▶ event ─▶ error event ─▶ abort     broken
//! ```
//!
//! - A stream that breaks sends the error in its last event, then aborts its connection. The final chunk of the
//!   chunked coding is never written: a client would take it for a complete answer.
//! - A stream that is silent for 15 s sends a comment, which keeps proxies from closing it.
//! - The stream owns the request's log line, which is written when it is dropped: at its end, or
//!   when its reader has gone. Dropping a stream does not stop the run behind it.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use holdfast_domain::private::Private;
use holdfast_engine::{
    CompletionStream, InFlight, ReplyFacts, StreamFailure, StreamItem, is_large,
};
use holdfast_net::AbortSignal;
use holdfast_wire::chat::chunk;
use holdfast_wire::error::Code;
use holdfast_wire::sse::PING;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::guarded_bytes::GuardedBytes;
use crate::log::RequestLog;
use crate::problem::Problem;

/// The longest silence of a stream: proxies and clients take silence for an end.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Cause of an interrupted body of a handler.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// Response body. Never fails: a broken stream aborts the connection through [`AbortSignal`].
pub(crate) enum ResponseBody {
    /// All of it is there; empty once it was handed over.
    Whole(Bytes),
    /// The rest of it is still to come.
    Streamed(Box<StreamedBody>),
    /// Bytes of another source: records for another node.
    Relayed(BoxStream<'static, Bytes>),
    /// Bytes of a handler, which may fail on the way.
    Fallible(Box<FallibleBody>),
}

/// Bytes of a handler. After a failure the connection ends, and never the body: a client would take a part for all.
pub(crate) struct FallibleBody {
    parts: BoxStream<'static, Result<Bytes, BodyError>>,
    connection: AbortSignal,
}

impl FallibleBody {
    pub(crate) const fn new(
        parts: BoxStream<'static, Result<Bytes, BodyError>>,
        connection: AbortSignal,
    ) -> Self {
        Self { parts, connection }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.connection.is_set() {
            match ready!(self.parts.poll_next_unpin(context)) {
                Some(Ok(bytes)) => return Poll::Ready(Some(bytes)),
                None => return Poll::Ready(None),
                // The source of the body has logged the cause.
                Some(Err(error)) => tracing::debug!(%error, "an answer was interrupted"),
            }
            self.connection.set();
        }
        Poll::Pending
    }
}

impl<B: Into<Bytes>> From<B> for ResponseBody {
    fn from(body: B) -> Self {
        Self::Whole(body.into())
    }
}

impl ResponseBody {
    /// Holds an API key's place until all of it is written: the bytes of a large body carry it along to
    /// their end, and a stream has it until it is over. A small body needs none.
    pub(crate) fn hold(&mut self, place: Arc<InFlight>) {
        match self {
            Self::Whole(bytes) if is_large(bytes.len()) => {
                let bytes = std::mem::take(bytes);
                *self = Self::Whole(Bytes::from_owner(GuardedBytes { bytes, held: place }));
            }
            Self::Whole(_) => {}
            Self::Streamed(stream) => stream.place = Some(place),
            // Neither another node nor a handler has an API key.
            Self::Relayed(_) | Self::Fallible(_) => {}
        }
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Streamed(body) => body.poll(context).map(|bytes| Some(Ok(Frame::data(bytes?)))),
            Self::Relayed(bytes) => {
                bytes.poll_next_unpin(context).map(|bytes| Some(Ok(Frame::data(bytes?))))
            }
            Self::Fallible(body) => body.poll(context).map(|bytes| Some(Ok(Frame::data(bytes?)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Streamed(_) | Self::Relayed(_) | Self::Fallible(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
            Self::Streamed(_) | Self::Relayed(_) | Self::Fallible(_) => SizeHint::default(),
        }
    }
}

/// A stream on its way to its reader.
pub(crate) struct StreamedBody {
    events: BoxStream<'static, StreamEvent>,
    connection: AbortSignal,
    is_broken: bool,
    log: Option<RequestLog>,
    /// Runs until [`Self::ping_at`] or an earlier moment: no event costs a timer.
    quiet_until: Pin<Box<Sleep>>,
    ping_at: Instant,
    place: Option<Arc<InFlight>>,
}

/// Next step of a streamed body: an event, the last event of a broken one, or the end.
enum StreamEvent {
    Event(Bytes),
    Broken(ReplyFacts, &'static str, Bytes),
    Ended(ReplyFacts),
}

impl StreamedBody {
    pub(crate) fn new(stream: Box<CompletionStream>) -> Self {
        let now = Instant::now();
        // A head that has waited for the first event has waited long enough: a client that gets the head
        // without one gets a sign of life at once.
        let ping_at = if stream.has_begun() { now + KEEP_ALIVE } else { now };
        let events = stream::unfold(Some(stream), |stream| async {
            let mut stream = stream?;
            Some(match stream.next().await {
                Some(StreamItem::Event(Private(event))) => {
                    (StreamEvent::Event(event), Some(stream))
                }
                Some(StreamItem::Broken(broken)) => {
                    let (code, event) = failure_event(broken);
                    (StreamEvent::Broken(stream.facts().clone(), code, event), None)
                }
                None => (StreamEvent::Ended(stream.facts().clone()), None),
            })
        });
        Self {
            events: events.boxed(),
            connection: AbortSignal::default(),
            is_broken: false,
            log: None,
            quiet_until: Box::pin(sleep_until(ping_at)),
            ping_at,
            place: None,
        }
    }

    /// Begins to write the stream to this connection, and to count its bytes in this line of the log.
    pub(crate) fn begin(&mut self, connection: AbortSignal, log: RequestLog) {
        (self.connection, self.log) = (connection, Some(log));
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.is_broken {
            // Never an end: the connection goes as soon as the last event is written.
            self.connection.set();
            return Poll::Pending;
        }
        // Events first: a ping is due only while there is none.
        let Poll::Ready(events) = self.events.poll_next_unpin(context) else {
            ready!(self.poll_silence(context));
            return Poll::Ready(Some(Bytes::from_static(PING)));
        };
        Poll::Ready(match events {
            Some(StreamEvent::Event(event)) => {
                self.ping_at = Instant::now() + KEEP_ALIVE;
                if let Some(log) = &mut self.log {
                    log.add_streamed(event.len());
                }
                Some(event)
            }
            Some(StreamEvent::Broken(facts, code, event)) => {
                self.is_broken = true;
                if let Some(log) = &mut self.log {
                    (log.facts, log.code) = (facts, Some(code));
                    log.end_stream();
                }
                Some(event)
            }
            Some(StreamEvent::Ended(facts)) => {
                if let Some(log) = &mut self.log {
                    log.facts = facts;
                    log.end_stream();
                }
                None
            }
            None => None,
        })
    }

    /// Ready if no bytes were written for so long.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.quiet_until.as_mut().poll(context));
            let now = Instant::now();
            if self.ping_at <= now {
                self.ping_at = now + KEEP_ALIVE;
                self.quiet_until.as_mut().reset(self.ping_at);
                return Poll::Ready(());
            }
            self.quiet_until.as_mut().reset(self.ping_at);
        }
    }
}

/// The name of an error and the event that reports it.
fn failure_event(broken: StreamFailure) -> (&'static str, Bytes) {
    match broken {
        StreamFailure::Refused(refusal, body) => (Code::of(refusal).label(), chunk::error(&body)),
        StreamFailure::Failed(failure) => {
            let error = Problem::from(&failure);
            (error.code.label(), chunk::error(&error.render()))
        }
    }
}
