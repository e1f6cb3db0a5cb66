//! Rows as literals in the text of a statement, for those that take no values beside it. Integers that are
//! there and blobs of one length can be written so, nothing else: no text of a caller comes near a statement.

use std::fmt::Write as _;

use super::{Rows, int};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl Rows {
    /// Writes what [`super::Columns::table`] names, each after a comma. Quoted by dollars a backslash is one,
    /// whatever the server's settings are.
    pub(in crate::postgres) fn write_literals(&self, text: &mut String) {
        debug_assert!(self.names.is_empty());
        debug_assert!(self.blobs.columns.is_empty() && self.texts.columns.is_empty());
        for cells in &self.ints.columns {
            debug_assert_eq!(cells.len(), self.count * int(0).len(), "none is missing");
            text.push_str(", $${");
            for (at, cell) in cells.as_chunks::<12>().0.iter().enumerate() {
                let [_, _, _, _, value @ ..] = *cell;
                let comma = if at == 0 { "" } else { "," };
                // A string takes all that is written.
                let _: Result<(), _> = write!(text, "{comma}{}", i64::from_be_bytes(value));
            }
            text.push_str("}$$");
        }
        for cells in &self.fixed.columns {
            text.push_str(r", $$\x");
            push_hex(text, cells);
            text.push_str("$$");
        }
    }
}

/// Two digits for each byte.
pub(in crate::postgres) fn push_hex(text: &mut String, bytes: &[u8]) {
    text.reserve(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(DIGITS.get(usize::from(digit)).map_or('?', |digit| char::from(*digit)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_blobs_are_written_column_by_column() {
        let mut rows = Rows::default();
        rows.row().int(1).int(i64::MIN).fixed(b"\x00\x0f").fixed(b"\xa9");
        rows.row().int(-2).int(i64::MAX).fixed(b"\x80\xff").fixed(b"'");
        let mut text = String::new();
        rows.write_literals(&mut text);
        assert_eq!(
            text,
            r", $${1,-2}$$, $${-9223372036854775808,9223372036854775807}$$, $$\x000f80ff$$, $$\xa927$$"
        );
    }
}
