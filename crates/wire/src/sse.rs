//! Server-sent events, as the HTML standard frames them: bytes in any pieces to events, and JSON to the
//! bytes of an event. No I/O, no meaning: what an event says is its reader's business.

use bytes::Bytes;

/// A comment: keeps a connection alive and is no event, also for readers that end one at every blank
/// line.
pub const PING: &[u8] = b": ping\n";

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event that carries this. `json` is in one line, as everything is that this crate renders.
#[must_use]
pub fn event(json: &[u8]) -> Bytes {
    [b"data: ", json, b"\n\n"].concat().into()
}

/// Why a stream is not read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooLong {
    /// A line that has not ended yet is longer than it may be.
    #[error("a line of the stream is too long")]
    Line,
    /// The data of an event is longer than it may be.
    #[error("an event of the stream is too long")]
    Event,
}

/// An event that carries data. An event without any is none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// What it is called; empty where nothing says so, which stands for `message`.
    pub name: &'a [u8],
    /// What it carries: its lines of data with a line feed between them.
    pub data: &'a [u8],
    /// The newest id of the stream, this event's or an earlier one's; empty where there was none.
    pub last_id: &'a [u8],
}

impl std::fmt::Debug for Event<'_> {
    /// Its sizes: it may be an answer.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Event({} bytes of name, {} of data)", self.name.len(), self.data.len())
    }
}

/// Reads a stream that comes in pieces of any size: where they begin and end makes no difference.
///
/// A byte is copied once, into the data of its event, and once more where its line came in pieces. An
/// event that the end of the stream cuts is no event.
pub struct Decoder {
    line_bytes_max: usize,
    event_bytes_max: usize,
    /// A line that has not ended yet.
    line: Vec<u8>,
    is_first_line: bool,
    /// The last line ended with a carriage return, so a line feed that follows ends no other.
    after_return: bool,
    name: Vec<u8>,
    data: Vec<u8>,
    stage: DecoderState,
    last_id: Vec<u8>,
}

/// What there is of the event whose lines are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecoderState {
    /// No data yet.
    Nothing,
    /// Some data, if only an empty line of it.
    Data,
    /// It has ended and may have been handed out: its parts are forgotten before the next line.
    Spent,
}

impl std::fmt::Debug for Decoder {
    /// Its sizes: what it holds may be an answer.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decoder({} bytes of a line, {} of data)", self.line.len(), self.data.len())
    }
}

impl Decoder {
    /// At the start of a stream whose lines and events (their data) are at most so long.
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

    /// Takes the next piece of the stream. All of its events have to be taken out before the next piece
    /// comes: what is left in it is lost.
    pub const fn feed<'a>(&'a mut self, piece: &'a [u8]) -> Events<'a> {
        Events { decoder: self, rest: piece }
    }

    /// Bytes of an event that has not ended, so far.
    #[must_use]
    pub const fn unread(&self) -> usize {
        let data = match self.stage {
            DecoderState::Nothing | DecoderState::Spent => 0,
            DecoderState::Data => self.data.len(),
        };
        self.line.len() + data
    }

    /// Whether this line ends an event that carries data.
    fn take_line(&mut self, line: &[u8]) -> Result<bool, TooLong> {
        if self.stage == DecoderState::Spent {
            self.name.clear();
            self.data.clear();
            self.stage = DecoderState::Nothing;
        }
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
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
        };
        match field {
            b"data" => {
                let between = usize::from(self.stage == DecoderState::Data);
                if self.data.len() + between + value.len() > self.event_bytes_max {
                    return Err(TooLong::Event);
                }
                self.data.extend_from_slice(b"\n".get(..between).unwrap_or_default());
                self.data.extend_from_slice(value);
                self.stage = DecoderState::Data;
            }
            b"event" => value.clone_into(&mut self.name),
            b"id" if !value.contains(&0) => value.clone_into(&mut self.last_id),
            // A comment, a wish to reconnect, or a field that nobody knows.
            _ => {}
        }
        Ok(false)
    }
}

/// The events of one piece of a stream.
pub struct Events<'a> {
    decoder: &'a mut Decoder,
    rest: &'a [u8],
}

impl std::fmt::Debug for Events<'_> {
    /// Without what is in them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Events({} bytes)", self.rest.len())
    }
}

impl Events<'_> {
    /// The next event that ends in this piece; `None` when it has no other.
    ///
    /// # Errors
    ///
    /// [`TooLong`]: nothing more can be read of this stream.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, TooLong> {
        let Self { decoder, rest } = self;
        loop {
            if !rest.is_empty() && std::mem::take(&mut decoder.after_return) {
                *rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
            if decoder.line.len() + line.len() > decoder.line_bytes_max {
                return Err(TooLong::Line);
            }
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
