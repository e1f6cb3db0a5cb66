//! An answer that comes as a stream of server-sent events over a chunked body, read event by event as
//! the bytes arrive. Not an SSE library: what is not framed as the gateway promises ends the test.

use std::net::TcpStream;

use serde_json::Value;

use crate::http::{self, Answer, Waiting};

/// The last event of a stream that has ended well.
pub const DONE: &str = "data: [DONE]\n\n";
const PING: &str = ": ping\n";

/// A stream that is being read. Dropping it hangs up.
#[derive(Debug)]
pub struct Events {
    stream: TcpStream,
    /// Status and headers, without a body.
    pub head: Answer,
    /// Bytes of the body that have come and are not decoded.
    raw: Vec<u8>,
    /// Text that is decoded and not returned.
    text: Vec<u8>,
    end: Option<End>,
}

/// End of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With the body's own end.
    Whole,
    /// Without.
    BrokenOff,
}

/// A stream that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamedAnswer {
    /// Status and headers, without a body.
    pub head: Answer,
    /// The events, each with its empty line.
    pub events: Vec<String>,
    /// End of the stream.
    pub end: End,
}

impl Waiting {
    /// Waits for the whole answer, in whichever of the two ways it comes.
    pub fn either(mut self) -> Result<Answer, StreamedAnswer> {
        let (head, begun) = self.head().expect("a whole head");
        match head.header("transfer-encoding") {
            None => Ok(self.whole(head, begun).expect("a whole answer")),
            Some(_) => Err(Events::of(self.0, head, begun).rest()),
        }
    }

    /// Reads the answer as a stream of events, as soon as its head is there.
    #[must_use]
    pub fn events(mut self) -> Events {
        let (head, begun) = self.head().expect("a whole head");
        Events::of(self.0, head, begun)
    }
}

impl Events {
    pub(crate) fn of(stream: TcpStream, head: Answer, begun: Vec<u8>) -> Self {
        assert_eq!(head.header("transfer-encoding"), Some("chunked"), "{head:?}");
        Self { stream, head, raw: begun, text: Vec::new(), end: None }
    }

    /// The next event, with its empty line; `None` at the end.
    pub fn next_event(&mut self) -> Option<String> {
        loop {
            while self.text.starts_with(PING.as_bytes()) {
                self.text.drain(..PING.len());
            }
            if let Some(at) = self.text.windows(2).position(|window| window == b"\n\n") {
                let event: Vec<u8> = self.text.drain(..at + 2).collect();
                let event = String::from_utf8(event).expect("an event is text");
                assert!(event.starts_with("data: "), "{event:?}");
                assert_eq!(event.matches('\n').count(), 2, "{event:?}");
                return Some(event);
            }
            if self.end.is_some() {
                assert!(self.text.is_empty(), "{:?}", String::from_utf8_lossy(&self.text));
                return None;
            }
            self.decode();
        }
    }

    /// The next event, which has to come.
    #[track_caller]
    pub fn event(&mut self) -> String {
        self.next_event().expect("another event")
    }

    /// Waits for a comment, which comes while there is no event.
    pub fn is_kept_alive(&mut self) -> bool {
        while self.text.is_empty() && self.end.is_none() {
            self.decode();
        }
        self.text.starts_with(PING.as_bytes())
    }

    /// All that is left, and how it ends.
    pub fn rest(mut self) -> StreamedAnswer {
        let events = std::iter::from_fn(|| self.next_event()).collect();
        let Self { head, end, .. } = self;
        StreamedAnswer { head, events, end: end.expect("it has ended") }
    }

    /// End of the stream; `None` while it has not ended.
    #[must_use]
    pub const fn end(&self) -> Option<End> {
        self.end
    }

    /// Hangs up, as a client that is ended does.
    pub fn hang_up(self) {
        http::hang_up(&self.stream);
    }

    /// Takes one more chunk of the body.
    fn decode(&mut self) {
        loop {
            if let Some(at) = self.raw.windows(2).position(|window| window == b"\r\n") {
                let size = str::from_utf8(&self.raw[..at]).expect("a chunk's size");
                let size = usize::from_str_radix(size, 16).expect("a chunk's size");
                let whole = at + 2 + size + 2;
                if self.raw.len() >= whole {
                    assert_eq!(&self.raw[whole - 2..whole], b"\r\n", "a chunk ends with its line");
                    self.text.extend(&self.raw[at + 2..at + 2 + size]);
                    self.raw.drain(..whole);
                    if size == 0 {
                        assert!(self.raw.is_empty(), "nothing follows the answer");
                        self.end = Some(End::Whole);
                    }
                    return;
                }
            }
            if http::read_more(&mut self.stream, &mut self.raw).is_none() {
                assert!(self.raw.is_empty(), "{:?}", String::from_utf8_lossy(&self.raw));
                self.end = Some(End::BrokenOff);
                return;
            }
        }
    }
}

impl StreamedAnswer {
    /// The JSON of its events, without [`DONE`].
    #[must_use]
    pub fn chunks(&self) -> Vec<Value> {
        self.events.iter().filter(|event| *event != DONE).map(|event| chunk(event)).collect()
    }
}

/// The JSON of an event.
#[track_caller]
#[must_use]
pub fn chunk(event: &str) -> Value {
    let json = event.strip_prefix("data: ").expect("data");
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {event:?}"))
}
