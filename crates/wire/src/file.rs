//! Files of the ledger, a row at a time: CSV for spreadsheets, JSON lines for programs, from one list of cells.
//!
//! ```text
//! columns ─▶ rows … ─▶ closing row with the number of rows
//! ```
//!
//! The closing row is the last one. A file without it is incomplete: its export was interrupted.
//!
//! Never: a text that people chose as a formula, an amount as a float.

mod ledger;
mod statement;

use serde_json::{Map, Value};

pub use self::ledger::LedgerFileRows;
pub use self::statement::StatementFileRows;
use crate::csv::{chosen, record};

/// Kind of the last row of every file.
const CLOSING: &str = "closing";

/// Format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// RFC 4180, with the columns' names above them.
    Csv,
    /// A JSON object on each line.
    JsonLines,
}

/// Cell of a row.
#[derive(Debug, Clone)]
enum FileCell {
    /// Empty in CSV, null in JSON.
    Nothing,
    Text(String),
    /// Text that people chose.
    Chosen(String),
    Number(i64),
    Count(u64),
}

impl FileCell {
    fn text(text: impl ToString) -> Self {
        Self::Text(text.to_string())
    }

    fn some(text: Option<impl ToString>) -> Self {
        text.map_or(Self::Nothing, Self::text)
    }

    fn chosen(text: Option<&str>) -> Self {
        text.map_or(Self::Nothing, |text| Self::Chosen(text.to_owned()))
    }
}

impl FileFormat {
    /// Content type of a file.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::JsonLines => "application/jsonl",
        }
    }

    /// Ending of a file's name.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
        }
    }

    /// True if this is the last line of a whole file.
    #[must_use]
    pub fn is_closing(self, line: &str) -> bool {
        match self {
            Self::Csv => line.split(',').take(3).any(|cell| cell == CLOSING),
            Self::JsonLines => serde_json::from_str::<Value>(line)
                .is_ok_and(|row| row.get("kind").is_some_and(|kind| kind == CLOSING)),
        }
    }

    /// The line above the rows, if the format has one.
    fn head(self, columns: &[&str]) -> String {
        match self {
            Self::Csv => record(columns.iter().copied()),
            Self::JsonLines => String::new(),
        }
    }

    fn line<const N: usize>(self, columns: &[&str; N], cells: [FileCell; N]) -> String {
        match self {
            Self::Csv => {
                let cells = cells.map(|cell| match cell {
                    FileCell::Nothing => String::new(),
                    FileCell::Text(text) => text,
                    FileCell::Chosen(text) => chosen(&text),
                    FileCell::Number(number) => number.to_string(),
                    FileCell::Count(count) => count.to_string(),
                });
                record(cells.iter().map(String::as_str))
            }
            Self::JsonLines => {
                let values = cells.map(|cell| match cell {
                    FileCell::Nothing => Value::Null,
                    FileCell::Text(text) | FileCell::Chosen(text) => text.into(),
                    FileCell::Number(number) => number.into(),
                    FileCell::Count(count) => count.into(),
                });
                let names = columns.iter().map(|name| (*name).to_owned());
                let row: Map<String, Value> = names.zip(values).collect();
                format!("{}\n", Value::Object(row))
            }
        }
    }
}
