//! Server-sent events, framed according to the HTML standard: pieces of bytes in, events out, and JSON into the
//! bytes of one event.
//!
//! ```text
//! pieces ─► Decoder::feed ─► Events::next_event ─► Event { name, data, last_id }
//!              │ an unfinished line, its event's data, the newest id: kept between pieces
//!              └ TooLong: the stream is over, its decoder is not fed again
//! ```
//!
//! The decoder is written here because its input is a provider's: network reads cut lines, `\r
//! ` and multi-byte characters anywhere, so the result must not depend on the cut. It therefore works on bytes
//! and never decodes UTF-8; the reader of the JSON does.
//!
//! Memory is bounded by two limits that the caller sets: bytes of one unfinished line, and bytes of
//! one event's data. The decoder never hands out an event that the end of the stream cut (the
//! standard's rule, and here the difference between a broken answer and a whole one), and never
//! interprets data: `[DONE]` and error objects are its reader's business.

use bytes::Bytes;
use holdfast_domain::debug_as;

/// Comment line that keeps an idle connection alive. It ends with one line feed, not two: some
/// readers dispatch an event at every blank line, even one without data.
pub const PING: &[u8] = b": ping\n";

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Event of one `data:` field. `json` must be a single line, as everything is that this crate
/// renders: a line feed in it would split the field.
#[must_use]
pub fn event(json: &[u8]) -> Bytes {
    [b"data: ", json, b"\n\n"].concat().into()
}

/// Limit that a stream exceeded. The decoder has lost its place, so no more can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooLong {
    /// A line without an end is longer than `line_bytes_max`.
    #[error("a line of the stream is too long")]
    Line,
    /// The data of one event is longer than `event_bytes_max`.
    #[error("an event of the stream is too long")]
    Event,
}

/// Event with data. Fields before a blank line that hold no data dispatch no event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Event type; empty if the stream gave none, which stands for `message`.
    pub name: &'a [u8],
    /// Payload: the event's lines of data, joined by line feeds.
    pub data: &'a [u8],
    /// Newest id of the stream, this event's or an earlier one's; empty if there was none.
    pub last_id: &'a [u8],
}

// Sizes alone: the data may be an answer.
debug_as!(Event<'_> as it: "Event({} bytes of name, {} of data)", it.name.len(), it.data.len());

/// Incremental reader of a stream that comes in pieces of any size; piece boundaries make no
/// difference.
///
/// Decoder that copies each byte once, into the data of its event, and once more if its line came in several
/// pieces. An event that the end of the stream cuts is dropped.
pub struct Decoder {
    line_bytes_max: usize,
    event_bytes_max: usize,
    /// Unfinished line, from earlier pieces.
    line: Vec<u8>,
    is_first_line: bool,
    /// The last line ended with a carriage return: a line feed that follows belongs to that end.
    after_return: bool,
    name: Vec<u8>,
    data: Vec<u8>,
    stage: DecoderState,
    last_id: Vec<u8>,
}

/// State of the event whose lines are being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecoderState {
    /// No data field yet.
    Nothing,
    /// At least one data field, if only an empty one.
    Data,
    /// Dispatched or dropped. Its parts may still be borrowed, so they are cleared at the next
    /// line.
    Spent,
}

// Sizes alone: what it buffers may be an answer.
debug_as!(Decoder as it: "Decoder({} bytes of a line, {} of data)", it.line.len(), it.data.len());

impl Decoder {
    /// Decoder at the start of a stream. Both limits are in bytes: of one line, and of one event's
    /// data.
    #[must_use]
    pub const fn new(line_bytes_max: usize, event_bytes_max: usize) -> Self {
        Self {
            line_bytes_max,
            event_bytes_max,
            line: Vec::new(),
            is_first_line: true,
            after_return: false,
            name: Vec::new(),
            data: Vec::new(),
            stage: DecoderState::Nothing,
            last_id: Vec::new(),
        }
    }

    /// Feeds the next piece of the stream. Drain [`Events`] before the next call: what is left of a
    /// piece is lost.
    pub const fn feed<'a>(&'a mut self, piece: &'a [u8]) -> Events<'a> {
        Events { decoder: self, rest: piece }
    }

    /// Bytes buffered for an event that has not ended.
    #[must_use]
    pub const fn unread(&self) -> usize {
        let data = match self.stage {
            DecoderState::Nothing | DecoderState::Spent => 0,
            DecoderState::Data => self.data.len(),
        };
        self.line.len() + data
    }

    /// Applies one line; `true` if it ends an event that carries data.
    fn take_line(&mut self, line: &[u8]) -> Result<bool, TooLong> {
        if self.stage == DecoderState::Spent {
            self.name.clear();
            self.data.clear();
            self.stage = DecoderState::Nothing;
        }
        // Only the first line of a stream can begin with a byte order mark, and the mark is no
        // data.
        let line = if std::mem::take(&mut self.is_first_line) {
            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            let stage = std::mem::replace(&mut self.stage, DecoderState::Spent);
            return Ok(stage == DecoderState::Data);
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            None => (line, &b""[..]),
            Some(at) => {
                let (field, rest) = line.split_at(at);
                let value = rest.get(1..).unwrap_or_default();
                // One leading space belongs to the syntax, further ones to the value.
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
        };
        match field {
            b"data" => {
                let between = usize::from(self.stage == DecoderState::Data);
                // Checked before the copy: a provider decides how long an event is, not how much is
                // kept of it.
                if self.data.len() + between + value.len() > self.event_bytes_max {
                    return Err(TooLong::Event);
                }
                self.data.extend_from_slice(b"\n".get(..between).unwrap_or_default());
                self.data.extend_from_slice(value);
                self.stage = DecoderState::Data;
            }
            // The last one counts, as in the standard; the buffer is used again.
            b"event" => value.clone_into(&mut self.name),
            // An id with a NUL is ignored, as the standard says: the last good one stays in force.
            b"id" if !value.contains(&0) => value.clone_into(&mut self.last_id),
            // Comments, `retry` and unknown fields. Reconnecting is decided elsewhere, never by a
            // provider.
            _ => {}
        }
        Ok(false)
    }
}

/// Bytes before the first end of a line, all of them if there is none. Sixteen at a time: data is looked through for
/// ends and seldom has one.
fn line_length(bytes: &[u8]) -> usize {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let (chunks, _rest) = bytes.as_chunks::<16>();
    let has_none = |chunk: &&[u8; 16]| !chunk.iter().fold(false, |any, byte| any | is_end(byte));
    let before = 16 * chunks.iter().take_while(has_none).count();
    let after = bytes.get(before..).unwrap_or_default();
    before + after.iter().position(is_end).unwrap_or(after.len())
}

/// Events that end in one piece of a stream.
pub struct Events<'a> {
    decoder: &'a mut Decoder,
    rest: &'a [u8],
}

// Size alone: its bytes may be an answer.
debug_as!(Events<'_> as it: "Events({} bytes)", it.rest.len());

impl Events<'_> {
    /// Returns the next event that ends in this piece; `None` if the piece holds no other.
    ///
    /// # Errors
    ///
    /// [`TooLong`]: no more can be read of this stream.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, TooLong> {
        let Self { decoder, rest } = self;
        loop {
            // `\r\n` may be cut between two pieces, so the line feed is skipped when it comes, not
            // ahead.
            if !rest.is_empty() && std::mem::take(&mut decoder.after_return) {
                *rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let (line, after) = rest.split_at(line_length(rest));
            if decoder.line.len() + line.len() > decoder.line_bytes_max {
                return Err(TooLong::Line);
            }
            // No end of a line in this piece: the rest waits for the next one.
            let Some((byte, after)) = after.split_first() else {
                decoder.line.extend_from_slice(line);
                *rest = &[];
                return Ok(None);
            };
            decoder.after_return = *byte == b'\r';
            *rest = after;
            let ends_event = if decoder.line.is_empty() {
                decoder.take_line(line)?
            } else {
                // The line's buffer is taken and put back to keep its allocation for the next cut
                // line.
                let mut whole = std::mem::take(&mut decoder.line);
                whole.extend_from_slice(line);
                let ends_event = decoder.take_line(&whole)?;
                whole.clear();
                decoder.line = whole;
                ends_event
            };
            if ends_event {
                let Decoder { name, data, last_id, .. } = &**decoder;
                return Ok(Some(Event { name, data, last_id }));
            }
        }
    }
}
