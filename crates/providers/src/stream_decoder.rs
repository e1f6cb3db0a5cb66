//! Decoder of an answer that streams: bytes are cut into events by the kind's framing, and each
//! event is read by the kind's parser.
//!
//! ```text
//! bytes ─▶ Deframer (SSE or AWS frames) ─▶ take ─▶ StreamParser ─▶ Sink::on_delta, Sink::on_usage
//! ```
//!
//! Pieces may be cut anywhere, also within a character: an event counts when it is whole. An event named
//! `error` ends the stream in failure, for every kind.
//!
//! Usage is passed on as soon as all choices have ended, before the stream has: the connection may break
//! between the last word and its end, and the bill must not depend on that.
//!
//! Never: a delta passed on twice, or a stream called whole that lacks the end of a choice. Limits: no event is
//! longer than `bytes_max`. The origin of the bytes is the transport's.

use std::ops::ControlFlow;

use holdfast_domain::ports::{Call, Sink};
use holdfast_domain::usage::UsageReport;
use holdfast_wire::chat::upstream::UnreadableReason;
use holdfast_wire::sse::{Decoder, Event};

use crate::adapter::{Adapter, EventOutcome, Framing, StreamParser};
use crate::frames::Frames;

/// State of one answer, as far as it has come.
pub(crate) struct StreamDecoder {
    parts: Deframer,
    pieces: Box<dyn StreamParser>,
}

/// Cutter of bytes into events, by the framing.
enum Deframer {
    Events(Decoder),
    Frames(Frames),
}

impl StreamDecoder {
    /// Before the first byte. No event may be longer than `bytes_max`.
    pub(crate) fn new(adapter: &dyn Adapter, call: &Call, bytes_max: usize) -> Self {
        let parts = match adapter.framing() {
            Framing::Events => Deframer::Events(Decoder::new(bytes_max, bytes_max)),
            Framing::Aws => Deframer::Frames(Frames::new(bytes_max)),
        };
        Self { parts, pieces: adapter.follow(call) }
    }

    /// Reads the next bytes and passes their content to the sink; breaks after the last event.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn Sink,
    ) -> Result<ControlFlow<()>, UnreadableReason> {
        let pieces = &mut *self.pieces;
        let mut take = |event: Event<'_>| take(pieces, event, sink);
        match &mut self.parts {
            Deframer::Events(decoder) => {
                let mut events = decoder.feed(bytes);
                while let Some(event) =
                    events.next_event().map_err(|_too_long| UnreadableReason::LongEvent)?
                {
                    if take(event)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            Deframer::Frames(frames) => frames.feed(bytes, take),
        }
    }

    /// Bytes of an event that has not ended yet.
    pub(crate) const fn unread(&self) -> usize {
        match &self.parts {
            Deframer::Events(decoder) => decoder.unread(),
            Deframer::Frames(frames) => frames.unread(),
        }
    }

    /// True if every choice has ended: at most the usage is missing then, and the event that closes the stream.
    pub(crate) fn is_whole(&self) -> bool {
        self.pieces.is_whole()
    }

    /// The end of the answer: its usage as reported, unchecked.
    pub(crate) fn end(&self) -> Result<Option<UsageReport>, UnreadableReason> {
        self.pieces.end()
    }
}

fn take(
    pieces: &mut dyn StreamParser,
    event: Event<'_>,
    sink: &mut dyn Sink,
) -> Result<ControlFlow<()>, UnreadableReason> {
    if event.name == b"error" {
        return Err(UnreadableReason::Error);
    }
    // Some keep a connection alive so.
    if event.data.trim_ascii().is_empty() {
        return Ok(ControlFlow::Continue(()));
    }
    let outcome = pieces.read(event)?;
    let is_last = matches!(outcome, EventOutcome::Last);
    if let EventOutcome::More(delta) = outcome {
        sink.on_delta(delta);
    }
    // At each event from the end of the choices on: some report usage with it, some after it.
    if pieces.is_whole()
        && let Ok(Some(usage)) = pieces.end()
    {
        sink.on_usage(usage);
    }
    Ok(if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
}
