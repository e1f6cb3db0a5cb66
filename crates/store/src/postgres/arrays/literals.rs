//! Rows as literals in the text of a statement, for those that take no values beside it. Integers that are
//! there and blobs of one length can be written so, nothing else: no text of a caller comes near a statement.

use super::Rows;

impl Rows {
    /// Writes what [`super::Columns::table`] names, each after a comma. Quoted by dollars a backslash is one,
    /// whatever the server's settings are.
    pub(in crate::postgres) fn write_literals(&self, text: &mut String) {
        assert!(self.names.is_empty(), "names are sent as values");
        assert!(self.blobs.columns.is_empty(), "blobs of any length are sent as values");
        assert!(self.texts.columns.is_empty(), "texts are sent as values");
        for cells in &self.ints.columns {
            let (cells, rest) = cells.as_chunks::<12>();
            let are_there = rest.is_empty() && cells.len() == self.count;
            assert!(are_there, "an integer that is missing is sent as a value");
            text.push_str(", $${");
            for (at, [_, _, _, _, value @ ..]) in cells.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&i64::from_be_bytes(*value).to_string());
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
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    text.extend(digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "missing")]
    fn an_integer_that_is_missing_is_not_passed_over() {
        let mut rows = Rows::default();
        rows.row().no_int();
        rows.write_literals(&mut String::new());
    }

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
