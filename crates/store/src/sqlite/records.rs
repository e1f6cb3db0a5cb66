//! Many rows in two binds: fixed-width records in one blob, texts and ciphertexts in another.
//!
//! A statement reads the records through `temp.nums`, a table of the numbers from zero, so that its
//! text is the same for every number of rows and stays prepared. Integers are ASCII digits in a cell of
//! twenty bytes: `substr` on a blob takes the same time wherever it cuts, and `CAST` reads a cell up to
//! the first byte that is no digit.

use std::iter::successors;

use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};

/// Rows that one statement can be fed with: the size of `temp.nums`.
pub(super) const ROWS_MAX: usize = 4_096;
/// Digits of an integer at most, its sign among them.
const DIGITS: usize = 20;
/// What follows the digits of a shorter one.
const PAD: u8 = b'.';

/// Makes and fills the table of numbers that every statement on records reads.
pub(super) const NUMS: &str = "CREATE TEMP TABLE nums (i INTEGER PRIMARY KEY);
INSERT INTO temp.nums WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 4096)
SELECT i FROM n";

/// A column of a record.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell {
    /// A 64-bit integer.
    Int(&'static str),
    /// Exactly so many bytes.
    Fixed(&'static str, usize),
    /// UTF-8 of any length.
    Text(&'static str),
    /// Bytes of any length.
    Bytes(&'static str),
}

/// The shape of records, and where a statement finds its binds: `$first` the records, then the bytes
/// of any length, then the number of records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) first: usize,
    pub(super) cells: &'static [Cell],
}

impl Cell {
    const fn width(self) -> usize {
        match self {
            Self::Int(_) => DIGITS,
            Self::Fixed(_, width) => width,
            Self::Text(_) | Self::Bytes(_) => DIGITS + DIGITS,
        }
    }
}

impl Shape {
    /// The expressions that read a record, each under its name, to stand in
    /// `SELECT … FROM temp.nums AS n WHERE n.i < $count`.
    pub(super) fn select(&self) -> String {
        let width: usize = self.cells.iter().map(|cell| cell.width()).sum();
        let records = self.first;
        let heap = records + 1;
        let mut offset = 1;
        let mut columns = Vec::new();
        for cell in self.cells {
            let bytes =
                |at: usize, len: usize| format!("substr(${records}, {at} + n.i * {width}, {len})");
            let int = |at: usize| format!("CAST({} AS INTEGER)", bytes(at, DIGITS));
            let cut = || format!("substr(${heap}, {}, {})", int(offset), int(offset + DIGITS));
            columns.push(match *cell {
                Cell::Int(name) => format!("{} AS {name}", int(offset)),
                Cell::Fixed(name, len) => format!("{} AS {name}", bytes(offset, len)),
                Cell::Text(name) => format!("CAST({} AS TEXT) AS {name}", cut()),
                Cell::Bytes(name) => format!("{} AS {name}", cut()),
            });
            offset += cell.width();
        }
        let count = self.count();
        format!("SELECT {} FROM temp.nums AS n WHERE n.i < {count}", columns.join(", "))
    }

    /// The bind that holds the number of records.
    pub(super) fn count(&self) -> String {
        format!("${}", self.first + 2)
    }
}

/// Records in the making. Cells are put in the order of the shape.
#[derive(Debug, Default)]
pub(super) struct Records {
    fixed: Vec<u8>,
    heap: Vec<u8>,
    rows: i64,
}

impl Records {
    pub(super) const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub(super) const fn len(&self) -> i64 {
        self.rows
    }

    pub(super) const fn row(&mut self) -> &mut Self {
        self.rows += 1;
        self
    }

    pub(super) fn int(&mut self, value: i64) -> &mut Self {
        let mut cell = [PAD; DIGITS];
        let mut rest = value.unsigned_abs();
        let (sign, digits) = cell.split_at_mut(usize::from(value < 0));
        sign.fill(b'-');
        let count = successors(Some(rest), |rest| Some(rest / 10).filter(|left| *left > 0)).count();
        for digit in digits.iter_mut().take(count).rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
        self.fixed.extend_from_slice(&cell);
        self
    }

    pub(super) fn fixed(&mut self, bytes: &[u8]) -> &mut Self {
        self.fixed.extend_from_slice(bytes);
        self
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let length = |bytes: &[u8]| i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let at = length(&self.heap).saturating_add(1);
        self.heap.extend_from_slice(bytes);
        self.int(at).int(length(bytes))
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// Binds the three values that a [`Shape`] names.
    pub(super) fn bind<'q>(
        self,
        query: Query<'q, Sqlite, SqliteArguments>,
    ) -> Query<'q, Sqlite, SqliteArguments> {
        query.bind(self.fixed).bind(self.heap).bind(self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_is_its_digits_up_to_the_first_other_byte() {
        for value in [0, 7, -7, 10, 99, 100, -1_000, i64::MAX, i64::MIN] {
            let mut records = Records::default();
            records.row().int(value);
            let cell = str::from_utf8(&records.fixed).unwrap();
            assert_eq!(cell.len(), DIGITS);
            assert_eq!(cell.trim_end_matches('.'), value.to_string());
        }
    }
}
