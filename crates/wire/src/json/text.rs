//! Strings: borrowed if they have no escapes, else put together from their plain runs.

use std::borrow::Cow;

use super::{BadJson, Fault, Reader, Strictness};

impl<'a> Reader<'a> {
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, BadJson> {
        self.want(b'"')?;
        let first = self.run()?;
        if self.take(b'"') {
            return Ok(Cow::Borrowed(first));
        }
        // Arguments of a call begin with an escape: room for short ones spares their growing.
        let mut text = String::with_capacity(first.len().saturating_mul(2).max(64));
        text.push_str(first);
        while self.take(b'\\') {
            text.push(self.escape()?);
            // Escapes that follow each other have no run between them to look for.
            if self.peek() != Some(b'\\') {
                text.push_str(self.run()?);
            }
        }
        self.want(b'"')?;
        Ok(Cow::Owned(text))
    }

    /// Reads up to a quotation mark or a backslash.
    fn run(&mut self) -> Result<&'a str, BadJson> {
        let from = self.at;
        self.at += plain_prefix(self.rest());
        match self.peek() {
            Some(b'"' | b'\\') => self.since(from),
            Some(_) => Err(self.fault(Fault::Control)),
            None => Err(self.fault(Fault::End)),
        }
    }

    fn escape(&mut self) -> Result<char, BadJson> {
        let letter = self.peek().ok_or(self.fault(Fault::End))?;
        let plain = match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.scalar();
            }
            _ => return Err(self.fault(Fault::Syntax)),
        };
        self.at += 1;
        Ok(plain)
    }

    /// Reads what `\u` announced: four digits, or eight in two escapes.
    fn scalar(&mut self) -> Result<char, BadJson> {
        // Made before the digits are read, so that the fault names the escape and not what follows it.
        let surrogate = self.fault(Fault::Surrogate);
        let first = self.hex()?;
        let code = if (0xd800..0xdc00).contains(&first) {
            self.second_half()?
                .map(|second| 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
        } else {
            Some(first)
        };
        match code.and_then(char::from_u32) {
            Some(scalar) => Ok(scalar),
            None if self.strictness == Strictness::Lenient => Ok(char::REPLACEMENT_CHARACTER),
            None => Err(surrogate),
        }
    }

    /// The other half of a surrogate pair, if it follows; what else follows is left there.
    fn second_half(&mut self) -> Result<Option<u32>, BadJson> {
        let from = self.at;
        if !self.rest().starts_with(b"\\u") {
            return Ok(None);
        }
        self.at += 2;
        // A `\u` that is no low surrogate is another escape: it is left for its own turn.
        let second = Some(self.hex()?).filter(|second| (0xdc00..0xe000).contains(second));
        if second.is_none() {
            self.at = from;
        }
        Ok(second)
    }

    fn hex(&mut self) -> Result<u32, BadJson> {
        let mut code = 0;
        for _ in 0..4 {
            // `to_digit` and no `from_str_radix`, which takes a sign: `\u+123` is no escape.
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or(self.unexpected())?;
            self.at += 1;
        }
        Ok(code)
    }
}

/// Counts the bytes before the first quotation mark, backslash or control character, eight at a time if there
/// are eight. The last eight may be looked at twice, in part.
pub(crate) fn plain_prefix(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (before, word) in words.iter().enumerate() {
        if let Some(at) = first_special(*word) {
            return before * 8 + at;
        }
    }
    // Overlapping the last whole chunk with the tail spares a byte-by-byte end from eight bytes on.
    match bytes.last_chunk::<8>() {
        Some(_) if rest.is_empty() => bytes.len(),
        Some(last) => first_special(*last).map_or(bytes.len(), |at| bytes.len() - 8 + at),
        None => rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len()),
    }
}

/// The first of eight bytes for which [`is_special`] holds. Each subtraction marks such a byte with
/// its highest bit; it may mark others above that one, from which it has borrowed.
#[inline]
fn first_special(bytes: [u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let word = u64::from_le_bytes(bytes);
    let quotes = word ^ (ONES * 0x22);
    // `(x - 1) & !x` sets the high bit of a byte that is zero. Little-endian order makes the lowest
    // marked bit the first byte, and a borrow only runs upwards: the first mark is exact.
    let slashes = word ^ (ONES * 0x5c);
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    let quotes = quotes.wrapping_sub(ONES) & !quotes;
    let slashes = slashes.wrapping_sub(ONES) & !slashes;
    let marked = (controls | quotes | slashes) & HIGHS;
    usize::try_from(marked.trailing_zeros() / 8).ok().filter(|_at| marked != 0)
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_special_one_of_eight_bytes_is_found() {
        for byte in u8::MIN..=u8::MAX {
            for (at, around) in (0..8).flat_map(|at| [b'a', 0xff, 0x20].map(|byte| (at, byte))) {
                let mut bytes = [around; 8];
                bytes[at] = byte;
                let found = first_special(bytes);
                assert_eq!(found, is_special(byte).then_some(at), "{byte:#x} in {around:#x}");
                bytes[at..].fill(byte);
                assert_eq!(first_special(bytes), found, "{byte:#x} after {around:#x}");
            }
        }
    }

    #[test]
    fn the_first_special_byte_ends_the_prefix() {
        for length in 0..40 {
            let mut bytes = vec![b'a'; length];
            assert_eq!(plain_prefix(&bytes), length);
            for at in (0..length).rev() {
                bytes[at] = if at % 2 == 0 { b'"' } else { b'\\' };
                assert_eq!(plain_prefix(&bytes), at, "{length}");
            }
        }
    }
}
