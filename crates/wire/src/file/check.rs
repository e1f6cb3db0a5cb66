//! Check of a file as it comes: the closing row is the last one, and has the number of the rows before it.
//!
//! Never: a file that passes although rows of it are missing.

use serde_json::Value;

use super::{CLOSING, FileFormat, OPENING};

/// Rows of a file so far.
#[derive(Debug)]
pub struct FileCheck {
    format: FileFormat,
    /// True between two quotation marks of CSV, where a line break is text.
    is_quoted: bool,
    /// Record that has not ended yet, and the last one that has.
    record: Vec<u8>,
    last: Vec<u8>,
    records: u64,
    /// Place of the column `kind` in CSV. Cells before it are never quoted.
    kind_at: usize,
    /// Opening rows: one or none.
    openings: u64,
    has_incomplete: bool,
}

/// Fault of a file that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// The last row is not a closing one.
    #[error("its last row is missing")]
    NoClosing,
    /// The closing row has another number.
    #[error("it has {rows} rows, and its last row says {expected}")]
    OtherCount {
        /// Rows that came.
        rows: u64,
        /// Number in the closing row.
        expected: u64,
    },
}

impl FileCheck {
    /// Check of a file that has not begun.
    #[must_use]
    pub const fn new(format: FileFormat) -> Self {
        Self {
            format,
            is_quoted: false,
            record: Vec::new(),
            last: Vec::new(),
            records: 0,
            kind_at: 0,
            openings: 0,
            has_incomplete: false,
        }
    }

    /// Reads the next bytes.
    pub fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.record.push(*byte);
            self.is_quoted ^= self.format == FileFormat::Csv && *byte == b'"';
            if *byte == b'\n' && !self.is_quoted {
                self.end_record();
            }
        }
    }

    fn end_record(&mut self) {
        std::mem::swap(&mut self.record, &mut self.last);
        self.record.clear();
        self.records = self.records.saturating_add(1);
        let text = String::from_utf8_lossy(&self.last);
        if self.format == FileFormat::Csv && self.records == 1 {
            self.kind_at = text.split(',').position(|name| name == "kind").unwrap_or(0);
        }
        // The cell before that of the number of rows, which only the closing row has; text cannot spell it.
        let incomplete = match self.format {
            FileFormat::Csv => text.ends_with(",true,\r\n"),
            FileFormat::JsonLines => text.contains("\"incomplete\":true,"),
        };
        let is_opening = self.records <= 2 && self.kind(&text).is_some_and(|it| it == OPENING);
        self.has_incomplete |= incomplete;
        self.openings = self.openings.saturating_add(u64::from(is_opening));
    }

    /// True if a row of usage is marked as incomplete.
    #[must_use]
    pub const fn has_incomplete(&self) -> bool {
        self.has_incomplete
    }

    /// Judges the file, which has ended.
    ///
    /// # Errors
    ///
    /// [`FileFault`] of a file that is not whole.
    pub fn finish(&self) -> Result<(), FileFault> {
        let text = String::from_utf8_lossy(&self.last);
        let is_closing = self.record.is_empty() && self.kind(&text).is_some_and(|it| it == CLOSING);
        let expected = if is_closing { self.closing_rows(&text) } else { None };
        let expected = expected.ok_or(FileFault::NoClosing)?;
        let has_head = self.format == FileFormat::Csv;
        let others = 1 + u64::from(has_head) + self.openings;
        let rows = self.records.saturating_sub(others);
        if rows == expected { Ok(()) } else { Err(FileFault::OtherCount { rows, expected }) }
    }

    fn kind(&self, text: &str) -> Option<String> {
        match self.format {
            FileFormat::Csv => text.split(',').nth(self.kind_at).map(str::to_owned),
            FileFormat::JsonLines => json(text)?.get("kind")?.as_str().map(str::to_owned),
        }
    }

    fn closing_rows(&self, text: &str) -> Option<u64> {
        match self.format {
            FileFormat::Csv => text.trim_end().rsplit(',').next()?.parse().ok(),
            FileFormat::JsonLines => json(text)?.get("rows")?.as_u64(),
        }
    }
}

/// A row of JSON lines; `None` for a line of which the end is missing.
fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(format: FileFormat, parts: &[&str]) -> Result<(), FileFault> {
        let mut check = FileCheck::new(format);
        parts.iter().for_each(|part| check.read(part.as_bytes()));
        check.finish()
    }

    #[test]
    fn a_file_is_whole_with_its_closing_row_and_as_many_rows_as_that_has() {
        let rows = [
            "day,at,kind,wallet,rows\r\n",
            "d,t,charge,\"a\r\nb\",\r\n",
            "d,t,charge,closing,\r\n",
        ];
        let ledger = rows.concat();
        let whole = |closing: &str| checked(FileFormat::Csv, &[&ledger, closing]);
        assert_eq!(whole(",,closing,,2\r\n"), Ok(()));
        assert_eq!(whole(",,closing,,3\r\n"), Err(FileFault::OtherCount { rows: 2, expected: 3 }));
        for cut in ["", ",,closing,,2", ",,clos"] {
            assert_eq!(whole(cut), Err(FileFault::NoClosing), "{cut}");
        }
        let statement = ["at,kind,rows\r\nt,opening,\r\nt,ho", "ld,\r\nt,closing,1\r\n"];
        assert_eq!(checked(FileFormat::Csv, &statement), Ok(()));
    }

    #[test]
    fn json_lines_are_judged_by_their_members() {
        let lines = |rows: u64| {
            let opening =
                "{\"kind\":\"opening\",\"rows\":null}\n{\"kind\":\"hold\",\"rows\":null}\n";
            checked(
                FileFormat::JsonLines,
                &[opening, &format!("{{\"kind\":\"closing\",\"rows\":{rows}}}\n")],
            )
        };
        assert_eq!(lines(1), Ok(()));
        assert_eq!(lines(2), Err(FileFault::OtherCount { rows: 1, expected: 2 }));
    }
}
