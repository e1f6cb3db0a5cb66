//! Arguments of `holdfast usage`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use holdfast_accounts::{Reason, Reference};

use super::PeriodArguments;
use super::read::ColumnChoice;

#[derive(Debug, Subcommand)]
pub enum UsageCommand {
    /// Sum the operations that finished in a period, each currency by itself
    ///
    /// Refunds count for the operation that they are of, whenever they were made. Amounts are decimal
    /// units in a table, micros in CSV and JSON. A cost or margin that is not known is `-`, null in
    /// JSON.
    Report(Box<Report>),
    /// Take provider costs above 1,000,000 units of the currency out of the sums, with direct database access
    ExcludeCosts {
        /// Count the operations, and change nothing
        #[arg(long)]
        dry_run: bool,
        /// Reason, for the audit log: 1 to 200 printable characters
        #[arg(long, value_name = "TEXT")]
        reason: Option<Reason>,
    },
}

#[derive(Debug, Args)]
pub struct Report {
    #[command(flatten)]
    pub period: PeriodArguments,
    /// Group of a row: one of these, or two with a comma between
    #[arg(long, value_enum, value_delimiter = ',', value_name = "A[,B]", default_value = "day")]
    pub by: Vec<UsageBy>,
    /// Only operations of this wallet: its id or name
    #[arg(long, value_name = "WALLET")]
    pub wallet: Option<Reference>,
    /// Only operations of this API key: its id or name
    #[arg(long, value_name = "KEY")]
    pub key: Option<Reference>,
    /// Only operations of this model: its public id
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// Only operations whose last route this is: provider/model, as `operation show` names it
    #[arg(long, value_name = "ROUTE")]
    pub route: Option<String>,
    /// Format of the output [default: a table on a terminal, else lines with tabs]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Write the complete file to this path: CSV, or JSON lines with --format jsonl [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub columns: ColumnChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UsageBy {
    /// An hour, in UTC
    Hour,
    /// A day, in UTC
    Day,
    /// A month, in UTC
    Month,
    /// A model
    Model,
    /// An API key
    Key,
    /// A wallet
    Wallet,
    /// A route: the one that was tried last
    Route,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For spreadsheets: RFC 4180, all rows, and a last one `closing` with their number
    Csv,
    /// For programs: a JSON object on each line, the last one `closing` with their number
    Jsonl,
    /// The same as --json
    Json,
}
