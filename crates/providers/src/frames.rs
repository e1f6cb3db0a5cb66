//! AWS's event stream: frames with checksums, headers and a payload, read as they come.
//!
//! ```text
//! length u32 │ header length u32 │ CRC-32 of both │ headers │ payload │ CRC-32 of all before
//! └──────────────── PRELUDE, 12 bytes ───────────┘                     └── CHECKSUM, 4 bytes
//! ```
//!
//! Both checksums are verified, the first before the length is believed: a wrong length would wait
//! for bytes that never come. An exception is an event of the name `error`.
//!
//! Limits: a frame is at most `bytes_max` long, by its own word, before it has come. The meaning of
//! a payload is the kind's.

use std::ops::ControlFlow;

use holdfast_domain::ports::UnreadableReason;
use holdfast_wire::sse::Event;

/// Two lengths and their checksum.
const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;

/// A stream of frames, as far as it has come. A frame that its end cuts is none.
pub(crate) struct Frames {
    bytes_max: usize,
    /// Beginning of a frame that is not whole yet.
    buffer: Vec<u8>,
}

impl Frames {
    /// At the start of a stream whose frames are at most so long.
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self { bytes_max, buffer: Vec::new() }
    }

    /// Bytes of a frame that is not whole yet.
    pub(crate) const fn unread(&self) -> usize {
        self.buffer.len()
    }

    /// Hands each frame that the next bytes end to `take`, by the type of its event, until that returns that it
    /// was the last. An exception is called `error`.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(Event<'_>) -> Result<ControlFlow<()>, UnreadableReason>,
    ) -> Result<ControlFlow<()>, UnreadableReason> {
        self.buffer.extend_from_slice(bytes);
        let mut rest = self.buffer.as_slice();
        while let Some((frame, after)) = first(rest, self.bytes_max)? {
            rest = after;
            let event = Event { name: frame.name, data: frame.payload, last_id: b"" };
            if take(event)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let read = self.buffer.len().saturating_sub(rest.len());
        self.buffer.drain(..read);
        Ok(ControlFlow::Continue(()))
    }
}

/// A whole frame.
#[derive(Debug, PartialEq, Eq)]
struct Frame<'a> {
    name: &'a [u8],
    payload: &'a [u8],
}

/// The first frame and the bytes after it; `None` if it has not come whole.
fn first(bytes: &[u8], bytes_max: usize) -> Result<Option<(Frame<'_>, &[u8])>, UnreadableReason> {
    let Some(prelude) = bytes.get(..PRELUDE) else { return Ok(None) };
    let [length, header_length, sum] = [0, 4, 8].map(|at| number(prelude, at).unwrap_or(0));
    let lengths = prelude.get(..8).ok_or(UnreadableReason::Framing)?;
    let size = |number: u32| usize::try_from(number).map_err(|_huge| UnreadableReason::Framing);
    let (length, header_length) = (size(length)?, size(header_length)?);
    // First of all: until the lengths are proven, none of them may decide how long to wait.
    if checksum(lengths) != sum {
        return Err(UnreadableReason::Framing);
    }
    if length > bytes_max {
        return Err(UnreadableReason::LongEvent);
    }
    let Some((frame, after)) = bytes.split_at_checked(length) else { return Ok(None) };
    let end = length.checked_sub(CHECKSUM).ok_or(UnreadableReason::Framing)?;
    let (checked, sum) = frame.split_at_checked(end).ok_or(UnreadableReason::Framing)?;
    if number(sum, 0) != Some(checksum(checked)) {
        return Err(UnreadableReason::Framing);
    }
    let checked = checked.get(PRELUDE..).ok_or(UnreadableReason::Framing)?;
    let (headers, payload) =
        checked.split_at_checked(header_length).ok_or(UnreadableReason::Framing)?;
    Ok(Some((Frame { name: name(headers)?, payload }, after)))
}

/// The type of the event, or `error` for any other message.
fn name(mut headers: &[u8]) -> Result<&[u8], UnreadableReason> {
    let (mut is_event, mut name) = (false, &b""[..]);
    while !headers.is_empty() {
        let header = take(&mut headers, 1)?;
        let length = header.first().copied().map_or(0, usize::from);
        let header = take(&mut headers, length)?;
        let kind = take(&mut headers, 1)?.first().copied();
        let length = match kind {
            Some(0 | 1) => 0,
            Some(2) => 1,
            Some(3) => 2,
            Some(4) => 4,
            Some(5 | 8) => 8,
            Some(6 | 7) => {
                let length = take(&mut headers, 2)?.iter();
                length.fold(0, |length, byte| length * 256 + usize::from(*byte))
            }
            Some(9) => 16,
            Some(_) | None => return Err(UnreadableReason::Framing),
        };
        let value = take(&mut headers, length)?;
        match header {
            b":message-type" => is_event = value == b"event",
            b":event-type" => name = value,
            _ => {}
        }
    }
    Ok(if is_event { name } else { b"error" })
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], UnreadableReason> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or(UnreadableReason::Framing)?;
    *bytes = rest;
    Ok(taken)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

/// CRC-32 as in ISO 3309, a byte at a time.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        (crc >> 8) ^ TABLE.get(usize::from(low ^ byte)).copied().unwrap_or(0)
    })
}

/// CRC-32 of each byte alone, computed when the program is compiled.
static TABLE: [u32; 256] = {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let mut table = [0; 256];
    let (mut rest, mut byte): (&mut [u32], u32) = (&mut table, 0);
    while let Some((entry, others)) = rest.split_first_mut() {
        let (mut crc, mut bit) = (byte, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        *entry = crc;
        rest = others;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with headers of text.
    fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
        let mut said = Vec::new();
        for (name, value) in headers {
            said.push(u8::try_from(name.len()).unwrap());
            said.extend_from_slice(name.as_bytes());
            said.push(7);
            said.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
            said.extend_from_slice(value.as_bytes());
        }
        let header_length = u32::try_from(said.len()).unwrap();
        let length = u32::try_from(said.len() + payload.len() + PRELUDE + CHECKSUM).unwrap();
        let mut frame = [length.to_be_bytes(), header_length.to_be_bytes()].concat();
        frame.extend_from_slice(&checksum(&frame).to_be_bytes());
        frame.extend_from_slice(&said);
        frame.extend_from_slice(payload.as_bytes());
        frame.extend_from_slice(&checksum(&frame).to_be_bytes());
        frame
    }

    const EVENT: [(&str, &str); 2] = [(":event-type", "metadata"), (":message-type", "event")];

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_frame_is_read_when_it_has_come_whole() {
        let two = [frame(&EVENT, "{}"), frame(&[(":message-type", "exception")], "no")].concat();
        let length = frame(&EVENT, "{}").len();
        for cut in 0..length {
            assert_eq!(first(&two[..cut], 1_000), Ok(None), "{cut}");
        }
        let (event, after) = first(&two, 1_000).unwrap().unwrap();
        assert_eq!(event, Frame { name: b"metadata", payload: b"{}" });
        let (exception, after) = first(after, 1_000).unwrap().unwrap();
        assert_eq!(exception, Frame { name: b"error", payload: b"no" });
        assert_eq!(after, b"");
    }

    #[test]
    fn a_frame_with_any_bit_wrong_is_broken_or_waits_for_more() {
        let whole = frame(&EVENT, "{}");
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            assert_eq!(first(&wrong, 1_000), Err(UnreadableReason::Framing), "{at}");
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_broken() {
        let whole = frame(&EVENT, "{}");
        assert!(first(&whole, whole.len()).is_ok());
        assert_eq!(first(&whole, whole.len() - 1), Err(UnreadableReason::LongEvent));
    }
}
