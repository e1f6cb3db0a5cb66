//! Arguments of files that have all rows of a period.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use holdfast_accounts::Reference;
use holdfast_wire::file::FileFormat;

use super::PeriodArguments;
use crate::failure::{CommandFailure, Result};
use crate::file_output::FileOutput;
use crate::output::Output;

/// A file instead of a table.
#[derive(Debug, Args)]
pub struct WholeFile {
    /// All transfers as CSV (RFC 4180), amounts in micros, and a last row `closing` with their number
    #[arg(long, conflicts_with_all = ["jsonl", "columns", "wide"])]
    csv: bool,
    /// All transfers as JSON lines, the last one `closing` with their number
    #[arg(long, conflicts_with_all = ["columns", "wide"])]
    jsonl: bool,
    /// Write the complete file to this path, in place of an existing one [default: standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl WholeFile {
    /// The file; `None` for a table.
    pub(crate) fn create(self, output: Output) -> Result<Option<FileOutput>> {
        let Self { csv, jsonl, output: path } = self;
        let format = match (csv, jsonl) {
            (true, _) => FileFormat::Csv,
            (false, true) => FileFormat::JsonLines,
            (false, false) if path.is_some() => FileFormat::Csv,
            (false, false) => return Ok(None),
        };
        if matches!(output, Output::Json) {
            return Err(CommandFailure::Usage(anyhow!(
                "--json prints JSON: leave it out or leave --csv, --jsonl and --output out"
            )));
        }
        FileOutput::create(path.as_deref(), format).map(Some)
    }
}

/// Arguments of `holdfast ledger export`.
#[derive(Debug, Args)]
pub struct LedgerExport {
    #[command(flatten)]
    pub period: PeriodArguments,
    /// Only this wallet: its id or name [default: all wallets]
    #[arg(long, value_name = "WALLET")]
    pub wallet: Option<Reference>,
    /// Format of the file
    #[arg(long, value_enum, default_value = "csv")]
    pub format: ExportFormat,
    /// Write the complete file to this path, in place of an existing one [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// For spreadsheets: RFC 4180
    Csv,
    /// For programs: a JSON object on each line
    Jsonl,
}

impl From<ExportFormat> for FileFormat {
    fn from(format: ExportFormat) -> Self {
        match format {
            ExportFormat::Csv => Self::Csv,
            ExportFormat::Jsonl => Self::JsonLines,
        }
    }
}
