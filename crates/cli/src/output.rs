//! Printing of answers: a table on a terminal, lines with tabs into a pipe or a file, JSON on request. Answers go
//! to standard output, all other text to standard error.

use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::Context;
use comfy_table::{Table, presets};
use serde::Serialize;
use serde_json::json;

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
        match self {
            Self::Json => json(view),
            Self::Plain => {
                let lines = fields.iter().map(|(name, value)| format!("{name}\t{value}"));
                line(&lines.collect::<Vec<_>>().join("\n"))
            }
            Self::Table => {
                let mut table = Table::new();
                table.load_style(presets::NOTHING);
                table.add_rows(fields.iter().map(|(name, value)| [*name, value.as_str()]));
                line(&table.trim_fmt())
            }
        }
    }
}

/// Prints a view as JSON.
pub fn json(view: &impl Serialize) -> Result {
    line(&String::from_utf8_lossy(&holdfast_wire::api::render(view)))
}

/// Prints a line at once.
pub fn line(line: &str) -> Result {
    text(&format!("{line}\n"))
}

/// Prints a text as it is, at once.
pub fn text(text: &str) -> Result {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        // Rust ignores SIGPIPE, so a reader that has gone shows as an error of the write.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(CommandFailure::NobodyReads),
        written => Ok(written.context("standard output cannot be written")?),
    }
}

/// Prints an error: a line for people, or the object `{"error":{"code":…,"message":…}}`.
pub fn error(is_json: bool, code: &str, message: &str) {
    if is_json {
        let body = json!({ "error": { "code": code, "message": message } });
        note(&String::from_utf8_lossy(&holdfast_wire::api::render(&body)));
    } else {
        note(&format!("error: {message}"));
    }
}

/// Shows a question, whose answer is typed in the same line.
pub(crate) fn prompt(question: &str) -> Result {
    let mut terminal = io::stderr().lock();
    let shown = write!(terminal, "{question}").and_then(|()| terminal.flush());
    Ok(shown.context("standard error cannot be written")?)
}

/// Prints a note for a person, apart from the answer. If standard error is gone it has no reader.
pub fn note(text: &str) {
    // Not `eprintln!`, which panics if standard error is closed.
    let written = writeln!(io::stderr().lock(), "{text}");
    drop(written);
}
