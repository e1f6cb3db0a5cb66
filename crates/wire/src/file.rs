//! Files of the ledger and of usage, a row at a time: CSV for spreadsheets, JSON lines for programs, from one list of cells.
//!
//! ```text
//! columns ─▶ rows … ─▶ closing row with the number of rows
//! ```
//!
//! The closing row is the last one. A file without it is incomplete: its export was interrupted.
//!
//! Never: a text that people chose as a formula, an amount as a float.

mod check;
mod ledger;
mod statement;
mod usage;

use serde_json::{Map, Value};

pub use self::check::{FileCheck, FileFault};
pub use self::ledger::LedgerFileRows;
pub use self::statement::StatementFileRows;
pub use self::usage::{CostColumns, UsageFileRows, group_name};
use crate::csv::{DASH, chosen, record};

/// Kind of the first row of a statement.
const OPENING: &str = "opening";
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
    /// A dash in CSV, null in JSON.
    Unknown,
    Truth(bool),
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

    /// The line above the rows, if the format has one.
    fn head(self, columns: &[&str]) -> String {
        match self {
            Self::Csv => record(columns.iter().copied()),
            Self::JsonLines => String::new(),
        }
    }

    fn line(self, columns: &[&str], cells: impl IntoIterator<Item = FileCell>) -> String {
        match self {
            Self::Csv => {
                let texts = cells.into_iter().map(|cell| match cell {
                    FileCell::Nothing => String::new(),
                    FileCell::Unknown => DASH.to_owned(),
                    FileCell::Truth(truth) => truth.to_string(),
                    FileCell::Text(text) => text,
                    FileCell::Chosen(text) => chosen(&text),
                    FileCell::Number(number) => number.to_string(),
                    FileCell::Count(count) => count.to_string(),
                });
                record(texts.collect::<Vec<_>>().iter().map(String::as_str))
            }
            Self::JsonLines => {
                let values = cells.into_iter().map(|cell| match cell {
                    FileCell::Nothing | FileCell::Unknown => Value::Null,
                    FileCell::Truth(truth) => truth.into(),
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
