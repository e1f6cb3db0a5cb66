//! A reader of streams whose chunks tell when they were said: how long each was on its way, and whether
//! one was kept waiting. By hand, as the rest of the load, so that it takes little of the machine.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::latencies::Latencies;

/// Digits of a moment: microseconds since 1970.
pub(crate) const STAMP_LEN: usize = 16;
/// The bytes before them.
const BEFORE: &[u8] = br#""content":""#;

/// Microseconds since 1970, the same for all processes of a machine.
pub(crate) fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    u64::try_from(since.as_micros()).expect("less than an age")
}

/// Samples of streams, in microseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamSamples {
    /// From the request to the first chunk with text.
    first: Vec<u32>,
    /// From the moment in which a chunk was said to the one in which it was read.
    delays: Vec<u32>,
    /// The most by which the time between two chunks was longer than at their source.
    stall: u64,
}

/// The same in a few numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StreamFigures {
    pub(crate) first: Latencies,
    pub(crate) delay: Latencies,
    pub(crate) stall: u64,
}

impl StreamSamples {
    pub(crate) fn add(&mut self, other: Self) {
        self.first.extend(other.first);
        self.delays.extend(other.delays);
        self.stall = self.stall.max(other.stall);
    }

    pub(crate) fn flow(self) -> StreamFigures {
        let Self { first, delays, stall } = self;
        StreamFigures { first: Latencies::of(first), delay: Latencies::of(delays), stall }
    }
}

impl StreamFigures {
    pub(crate) fn to_json(self) -> Value {
        let Self { first, delay, stall } = self;
        json!({ "first": first.to_json(), "delay": delay.to_json(), "stall": stall })
    }

    pub(crate) fn read(value: &Value) -> Option<Self> {
        let latencies = |name: &str| Latencies::read(value.get(name)?);
        let (first, delay) = (latencies("first")?, latencies("delay")?);
        Some(Self { first, delay, stall: value.get("stall")?.as_u64()? })
    }
}

/// A stream that is being read.
#[derive(Debug, Default)]
pub(crate) struct StreamReader {
    /// Bytes that have come and are still framed.
    raw: Vec<u8>,
    /// Bytes that are not, and are no whole event yet.
    text: Vec<u8>,
    /// Moments at which the last chunk was said, and was read.
    last: Option<(u64, u64)>,
    has_done: bool,
}

impl StreamReader {
    /// Reads one stream to its end; nothing when it broke, or was none.
    pub(crate) async fn read(
        &mut self,
        stream: &mut TcpStream,
        sent: Instant,
        heard: &mut StreamSamples,
    ) -> Option<u16> {
        self.raw.clear();
        self.text.clear();
        (self.last, self.has_done) = (None, false);
        let status = self.head(stream).await?;
        loop {
            let is_over = self.unframe()?;
            self.events(sent, heard);
            if is_over {
                return (self.has_done && self.last.is_some()).then_some(status);
            }
            if stream.read_buf(&mut self.raw).await.ok()? == 0 {
                return None;
            }
        }
    }

    /// The status; nothing when no stream follows.
    async fn head(&mut self, stream: &mut TcpStream) -> Option<u16> {
        loop {
            if stream.read_buf(&mut self.raw).await.ok()? == 0 {
                return None;
            }
            let end = self.raw.windows(4).position(|window| window == b"\r\n\r\n");
            let Some(end) = end else { continue };
            let head = str::from_utf8(self.raw.get(..end)?).ok()?;
            let status = head.get(9..12)?.parse().ok()?;
            if !head.lines().any(|line| line == "transfer-encoding: chunked") {
                return None;
            }
            self.raw.drain(..end + 4);
            return Some(status);
        }
    }

    /// Takes the frames off that are whole; whether the last of them was among these.
    fn unframe(&mut self) -> Option<bool> {
        let mut rest = self.raw.as_slice();
        let mut is_over = false;
        while let Some(at) = rest.windows(2).position(|window| window == b"\r\n") {
            let size = usize::from_str_radix(str::from_utf8(rest.get(..at)?).ok()?, 16).ok()?;
            let Some(data) = rest.get(at + 2..at + 2 + size) else { break };
            let Some(next) = rest.get(at + 2 + size + 2..) else { break };
            self.text.extend_from_slice(data);
            rest = next;
            is_over = size == 0;
        }
        let left = rest.len();
        self.raw.drain(..self.raw.len() - left);
        Some(is_over)
    }

    /// Reads the events that are whole.
    fn events(&mut self, sent: Instant, heard: &mut StreamSamples) {
        let now = now_micros();
        let mut rest = self.text.as_slice();
        while let Some(at) = rest.windows(2).position(|window| window == b"\n\n") {
            let (event, next) = rest.split_at(at + 2);
            rest = next;
            self.has_done |= event == b"data: [DONE]\n\n";
            let Some(said) = stamp(event) else { continue };
            heard.delays.push(narrow(now.saturating_sub(said)));
            match self.last {
                None => heard.first.push(narrow_all(sent.elapsed().as_micros())),
                Some((last_said, last_read)) => {
                    let waited = now.saturating_sub(last_read);
                    let stall = waited.saturating_sub(said.saturating_sub(last_said));
                    heard.stall = heard.stall.max(stall);
                }
            }
            self.last = Some((said, now));
        }
        let left = rest.len();
        self.text.drain(..self.text.len() - left);
    }
}

/// The moment that an event tells.
fn stamp(event: &[u8]) -> Option<u64> {
    let at = event.windows(BEFORE.len()).position(|window| window == BEFORE)? + BEFORE.len();
    str::from_utf8(event.get(at..at + STAMP_LEN)?).ok()?.parse().ok()
}

fn narrow(micros: u64) -> u32 {
    u32::try_from(micros).unwrap_or(u32::MAX)
}

fn narrow_all(micros: u128) -> u32 {
    u32::try_from(micros).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_events_may_end_anywhere() {
        let event = |stamp: u64| format!("data: {{\"delta\":{{\"content\":\"{stamp} \"}}}}\n\n");
        let text = event(1_741_569_952_000_001) + &event(1_741_569_952_000_005);
        let text = text + "data: [DONE]\n\n";
        for at in 1..text.len() {
            let (one, two) = text.split_at(at);
            let framed = format!("{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n", one.len(), two.len());
            let (mut stream, mut heard) = (StreamReader::default(), StreamSamples::default());
            for byte in framed.bytes() {
                stream.raw.push(byte);
                assert_eq!(stream.unframe(), Some(false));
                stream.events(Instant::now(), &mut heard);
            }
            stream.raw.extend(b"0\r\n\r\n");
            assert_eq!((stream.unframe(), stream.has_done), (Some(true), true));
            assert_eq!((heard.first.len(), heard.delays.len()), (1, 2));
        }
    }

    #[test]
    fn a_flow_is_read_back_as_it_was_told() {
        let heard = StreamSamples { first: vec![3], delays: vec![1, 2, 9], stall: 7 };
        let flow = heard.flow();
        assert_eq!(StreamFigures::read(&flow.to_json()), Some(flow));
        assert_eq!((flow.delay.max, flow.first.p50, flow.stall), (9, 3, 7));
    }
}
