//! Printing of answers: a table on a terminal, lines with tabs into a pipe or a file, JSON where
//! that was asked for. Answers go to standard output, everything else to standard error.

use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::Context;
use comfy_table::{Table, presets};
use serde::Serialize;

use crate::failure::{CommandFailure, Result};

/// Format of the answers on standard output.
#[derive(Debug, Clone, Copy)]
pub enum Output {
    Table,
    Plain,
    Json,
}

impl Output {
    pub fn new(json: bool) -> Self {
        if json {
            Self::Json
        // A pipe gets tabs: `cut` and `awk` split them, where padded columns would need a parser.
        } else if io::stdout().is_terminal() {
            Self::Table
        } else {
            Self::Plain
        }
    }

    /// Prints an object: its JSON, or a line for each field with its name.
    pub fn object(self, view: &impl Serialize, fields: &[(&str, String)]) -> Result {
        let rows: Vec<_> =
            fields.iter().map(|(name, value)| [(*name).to_owned(), value.clone()]).collect();
        self.print(view, None, &rows)
    }

    /// Several things of one kind.
    pub fn list(
        self,
        views: &[impl Serialize],
        head: impl AsRef<[&'static str]>,
        rows: &[impl AsRef<[String]>],
    ) -> Result {
        self.sheet(&views, head, rows)
    }

    /// Prints an object whose parts are the rows of a table.
    pub fn sheet(
        self,
        view: &impl Serialize,
        head: impl AsRef<[&'static str]>,
        rows: &[impl AsRef<[String]>],
    ) -> Result {
        self.print(view, Some(head.as_ref()), rows)
    }

    fn print(
        self,
        view: &impl Serialize,
        head: Option<&[&str]>,
        rows: &[impl AsRef<[String]>],
    ) -> Result {
        let text = match self {
            Self::Json => String::from_utf8_lossy(&holdfast_wire::api::render(view)).into_owned(),
            Self::Plain => {
                let head = head.map(|head| head.join("\t"));
                let lines = head.into_iter().chain(rows.iter().map(|row| row.as_ref().join("\t")));
                lines.collect::<Vec<_>>().join("\n")
            }
            Self::Table => {
                let mut table = Table::new();
                table.load_style(presets::NOTHING);
                if let Some(head) = head {
                    table.set_header(head.iter().map(|name| name.to_uppercase()));
                }
                for row in rows {
                    table.add_row(row.as_ref());
                }
                table.trim_fmt()
            }
        };
        line(&text)
    }
}

/// Prints a line at once.
pub fn line(line: &str) -> Result {
    text(&format!("{line}\n"))
}

/// Prints a text as it stands, at once.
pub fn text(text: &str) -> Result {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        // Rust ignores SIGPIPE, so a reader that has gone shows as an error of the write.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(CommandFailure::NobodyReads),
        written => Ok(written.context("standard output cannot be written")?),
    }
}

/// Tells a person something beside the answer. Where standard error is gone there is nobody to
/// tell.
pub fn note(text: &str) {
    // Not `eprintln!`, which panics where standard error is closed.
    let told = writeln!(io::stderr().lock(), "{text}");
    drop(told);
}
