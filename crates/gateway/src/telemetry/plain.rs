//! Plain texts of log lines: printable ASCII that no form of a line escapes.

/// Place of a text in a line. More is escaped in quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    Quoted,
    Bare,
}

/// True for printable ASCII without what is escaped within quotes. All bytes, eight at a time: most values are too
/// short for more at once, and to stop at the first would be to look at one after the other.
#[inline]
pub(super) fn is_plain(bytes: &[u8], quoting: Quoting) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [b' '; 8];
    for (to, byte) in last.iter_mut().zip(rest) {
        *to = *byte;
    }
    let first = marks_of(last, quoting);
    words.iter().fold(first, |marks, word| marks | marks_of(*word, quoting)) & HIGHS == 0
}

/// True for a line of printable ASCII. A line is long enough for many bytes at once.
pub(super) fn is_printable(line: &[u8]) -> bool {
    line.iter().fold(true, |all, byte| all & matches!(byte, b' '..=b'~'))
}

const ONES: u64 = u64::MAX / 255;
const HIGHS: u64 = ONES << 7;

/// A word with the highest bit set in some byte if any of these bytes is not plain. A carry or a borrow comes only from
/// a byte that is marked itself.
#[inline]
const fn marks_of(bytes: [u8; 8], quoting: Quoting) -> u64 {
    let word = u64::from_le_bytes(bytes);
    // Beyond ASCII; 0x7f, which is 0x80 then; below a space.
    let bare = word | word.wrapping_add(ONES) | word.wrapping_sub(ONES * 0x20);
    match quoting {
        Quoting::Bare => bare,
        Quoting::Quoted => {
            let (quotes, slashes) = (word ^ (ONES * 0x22), word ^ (ONES * 0x5c));
            bare | quotes.wrapping_sub(ONES) & !quotes | slashes.wrapping_sub(ONES) & !slashes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_that_is_escaped_is_found_at_every_place() {
        for byte in u8::MIN..=u8::MAX {
            for (length, at) in (1..20).flat_map(|length| (0..length).map(move |at| (length, at))) {
                let mut bytes = vec![b'a'; length];
                bytes[at] = byte;
                let is_printable = (b' '..=b'~').contains(&byte);
                let is_escaped = matches!(byte, b'"' | b'\\');
                assert_eq!(is_plain(&bytes, Quoting::Bare), is_printable, "{bytes:?}");
                assert_eq!(super::is_printable(&bytes), is_printable, "{bytes:?}");
                assert_eq!(is_plain(&bytes, Quoting::Quoted), is_printable && !is_escaped);
            }
        }
        assert!(is_plain(b"", Quoting::Quoted));
    }
}
