//! Ids of a span, and the `traceparent` header that brings a caller's.
//!
//! The header is read by W3C's Trace Context, level 2, and strictly: anything else is no header. `tracestate`
//! and baggage are never read.

use std::fmt;

/// Bytes of a header of version 00.
const LEN: usize = 55;
const SAMPLED: u8 = 1;

/// Id of a trace; never all zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(pub(super) [u8; 16]);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Id of a span in its trace; never all zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpanId(pub(super) [u8; 8]);

/// A span as others refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanContext {
    /// Trace that it belongs to.
    pub trace: TraceId,
    pub(super) span: SpanId,
    pub(super) is_sampled: bool,
}

impl SpanContext {
    /// Reads the value of a `traceparent` header; `None` if it is malformed.
    #[must_use]
    pub fn parse(header: &[u8]) -> Option<Self> {
        let (head, rest) = header.split_at_checked(LEN)?;
        let [version] = hex(head.get(..2)?)?;
        // A later version may have more after a dash; of 00 nothing follows, and ff is none.
        let is_whole = rest.is_empty() || (version > 0 && rest.first() == Some(&b'-'));
        let dashes = [2, 35, 52].iter().all(|at| head.get(*at) == Some(&b'-'));
        if version == u8::MAX || !is_whole || !dashes {
            return None;
        }
        let (trace, span) = (hex::<16>(head.get(3..35)?)?, hex::<8>(head.get(36..52)?)?);
        let [flags] = hex(head.get(53..)?)?;
        let is_valid = trace != [0; 16] && span != [0; 8];
        let is_sampled = flags & SAMPLED != 0;
        is_valid.then_some(Self { trace: TraceId(trace), span: SpanId(span), is_sampled })
    }
}

/// Bytes of a text of lower-case hexadecimal digits, exactly `N`.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _other => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn read(header: &str) -> Option<(String, bool)> {
        let context = SpanContext::parse(header.as_bytes())?;
        Some((context.trace.to_string(), context.is_sampled))
    }

    #[test]
    fn a_header_is_read_strictly() {
        let trace = "0af7651916cd43dd8448eb211c80319c".to_owned();
        assert_eq!(read(GOOD), Some((trace.clone(), true)));
        assert_eq!(read(&GOOD.replace("-01", "-02")), Some((trace.clone(), false)));
        let later = GOOD.replacen("00", "cc", 1);
        assert_eq!(read(&later), Some((trace.clone(), true)));
        assert_eq!(read(&format!("{later}-what-comes-later")), Some((trace, true)));
    }

    #[test]
    fn what_is_malformed_is_no_header() {
        for bad in [
            String::new(),
            GOOD.replacen("00", "ff", 1),
            GOOD.replacen("00", "0", 1),
            GOOD.to_uppercase(),
            GOOD.replace('-', "_"),
            GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            GOOD.replace("b7ad6b7169203331", "b7ad6b716920333g"),
            GOOD[..LEN - 1].to_owned(),
            format!("{GOOD}-more"),
            format!("{GOOD} "),
            format!("{}more", GOOD.replacen("00", "cc", 1)),
            "é".repeat(LEN),
        ] {
            assert_eq!(read(&bad), None, "{bad}");
        }
    }
}
