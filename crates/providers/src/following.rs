//! An answer that streams, read as it comes: its events are told apart as its framing says, and each is
//! read as its dialect says. Not where its bytes come from.

use std::ops::ControlFlow;

use holdfast_domain::ports::Sink;
use holdfast_domain::usage::Meters;
use holdfast_wire::chat::upstream::Unreadable;
use holdfast_wire::sse::{Decoder, Event};

use crate::bedrock::frames::Frames;
use crate::server::{Framing, Heard, Pieces};

/// One answer, as far as it has come.
pub(crate) struct Following {
    parts: Parts,
    pieces: Box<dyn Pieces>,
}

/// What its bytes are cut into.
enum Parts {
    Events(Decoder),
    Frames(Frames),
}

impl Following {
    /// Before the first byte. No event may be longer than `bytes_max`.
    pub(crate) fn new(framing: Framing, pieces: Box<dyn Pieces>, bytes_max: usize) -> Self {
        let parts = match framing {
            Framing::Events => Parts::Events(Decoder::new(bytes_max, bytes_max)),
            Framing::Aws => Parts::Frames(Frames::new(bytes_max)),
        };
        Self { parts, pieces }
    }

    /// Reads the next bytes and tells the sink what they say; breaks after the last event.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn Sink,
    ) -> Result<ControlFlow<()>, Unreadable> {
        let pieces = &mut *self.pieces;
        let mut take = |event: Event<'_>| take(pieces, event, sink);
        match &mut self.parts {
            Parts::Events(decoder) => {
                let mut events = decoder.feed(bytes);
                while let Some(event) =
                    events.next_event().map_err(|_too_long| Unreadable::LongEvent)?
                {
                    if take(event)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            Parts::Frames(frames) => frames.feed(bytes, take),
        }
    }

    /// Bytes of an event that has not ended yet.
    pub(crate) const fn unread(&self) -> usize {
        match &self.parts {
            Parts::Events(decoder) => decoder.unread(),
            Parts::Frames(frames) => frames.unread(),
        }
    }

    /// Whether every choice has ended: what is missing then is at most the usage, and the word that it
    /// ends.
    pub(crate) fn is_whole(&self) -> bool {
        self.pieces.is_whole()
    }

    /// The end of the answer: what was reported to have been used up, where that can be believed.
    pub(crate) fn end(&self) -> Result<Option<Meters>, Unreadable> {
        self.pieces.end()
    }
}

fn take(
    pieces: &mut dyn Pieces,
    event: Event<'_>,
    sink: &mut dyn Sink,
) -> Result<ControlFlow<()>, Unreadable> {
    if event.name == b"error" {
        return Err(Unreadable::Error);
    }
    // Some keep a connection alive so.
    if event.data.trim_ascii().is_empty() {
        return Ok(ControlFlow::Continue(()));
    }
    let heard = pieces.read(event)?;
    let is_last = matches!(heard, Heard::Last);
    if let Heard::More(delta) = heard {
        sink.delta(delta);
    }
    if pieces.is_whole()
        && let Ok(Some(meters)) = pieces.end()
    {
        sink.metered(meters);
    }
    Ok(if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
}
