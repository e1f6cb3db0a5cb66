//! Rows of a table as lines of PostgreSQL's COPY in text format, and the sum of their digests.
//!
//! Both databases must have one line for one row: the lines of the file are compared with those of the server by their
//! sum, which does not depend on the order of the rows.

use rusqlite::types::ValueRef;

/// Number of rows, and the sum of their digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RowSum {
    pub(super) rows: u64,
    pub(super) digest: u128,
}

impl RowSum {
    pub(super) fn add(&mut self, line: &[u8]) {
        let mut digest = [0; 16];
        blake3::Hasher::new().update(line).finalize_xof().fill(&mut digest);
        self.rows += 1;
        self.digest = self.digest.wrapping_add(u128::from_le_bytes(digest));
    }
}

/// Writes a value as the server writes it itself in the text format of COPY.
pub(super) fn write_value(
    line: &mut String,
    value: ValueRef<'_>,
    is_boolean: bool,
) -> rusqlite::Result<()> {
    match value {
        ValueRef::Null => line.push_str("\\N"),
        ValueRef::Integer(number) if is_boolean => line.push(if number == 0 { 'f' } else { 't' }),
        ValueRef::Integer(number) => line.push_str(&number.to_string()),
        ValueRef::Real(number) => line.push_str(&number.to_string()),
        ValueRef::Text(text) => {
            for character in std::str::from_utf8(text)?.chars() {
                match character {
                    '\\' => line.push_str("\\\\"),
                    '\u{8}' => line.push_str("\\b"),
                    '\u{c}' => line.push_str("\\f"),
                    '\n' => line.push_str("\\n"),
                    '\r' => line.push_str("\\r"),
                    '\t' => line.push_str("\\t"),
                    '\u{b}' => line.push_str("\\v"),
                    other => line.push(other),
                }
            }
        }
        ValueRef::Blob(bytes) => {
            line.push_str("\\\\x");
            for byte in bytes {
                for digit in [byte >> 4, byte & 15] {
                    line.extend(char::from_digit(u32::from(digit), 16));
                }
            }
        }
    }
    Ok(())
}
