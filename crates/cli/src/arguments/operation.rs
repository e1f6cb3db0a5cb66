//! Arguments of `holdfast operation`.

use clap::{Args, Subcommand, ValueEnum};
use holdfast_accounts::{Reason, Reference};
use holdfast_domain::Micros;
use uuid::Uuid;

use super::read::{ColumnChoice, Rows};
use super::value::{self, OperationName};
use super::{PeriodArguments, RequestKey};

#[derive(Debug, Subcommand)]
pub enum Operation {
    /// Show an operation: its state, charge, attempts and node; never its content
    Show(Show),
    /// List operations, newest first
    List(Box<OperationFilter>),
    /// Prove that an operation is in a signed root of the ledger; with --json as `receipt verify --proof` takes it
    Proof {
        /// Operation id or completion id
        #[arg(value_name = "OPERATION")]
        operation: OperationName,
    },
    /// Active holds, by currency
    Held {
        #[command(flatten)]
        columns: ColumnChoice,
    },
    /// Cancel a running operation; the text that has arrived is kept and charged
    Cancel {
        /// Operation id or completion id
        #[arg(value_name = "OPERATION")]
        operation: OperationName,
        /// Reason for the audit log: 1 to 200 printable characters
        #[arg(long, value_name = "TEXT")]
        reason: Reason,
        #[command(flatten)]
        request: RequestKey,
    },
    /// End the operations that a dead process left behind, as far as the rules allow it now: one, or all that are due
    Reconcile {
        /// Operation id or completion id [default: all that are due]
        #[arg(value_name = "OPERATION")]
        operation: Option<OperationName>,
        /// Reason for the audit log: 1 to 200 printable characters
        #[arg(long, value_name = "TEXT", requires = "operation")]
        reason: Option<Reason>,
        /// Idempotency key of this change, not an API key: a repetition with the same key changes nothing [default: a new
        /// UUIDv4, printed]
        #[arg(long, value_name = "UUID", value_parser = value::posting_key, requires = "operation")]
        key: Option<Uuid>,
    },
}

#[derive(Debug, Args)]
pub struct Show {
    /// Operation id or completion id; with --api-key the Idempotency-Key of the request
    #[arg(value_name = "ID")]
    pub id: OperationName,
    /// Id or name of the API key that sent the request
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<Reference>,
}

/// Operations that a list is of: all filters apply.
#[derive(Debug, Args)]
pub struct OperationFilter {
    /// Only those whose owner may be gone or whose settlement is missing
    #[arg(long, conflicts_with = "running")]
    pub stale: bool,
    /// Only those that run
    #[arg(long)]
    pub running: bool,
    /// Only those that this wallet pays for: its id or name
    #[arg(long, value_name = "WALLET")]
    pub wallet: Option<Reference>,
    /// Filter by API key: its id or name
    #[arg(long, value_name = "KEY")]
    pub key: Option<Reference>,
    /// Only those of this model: its public id
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// Only those in this status
    #[arg(long, value_enum)]
    pub status: Option<OperationStatus>,
    /// Only completed ones with at least this charge
    #[arg(long, value_name = "AMOUNT")]
    pub charge_from: Option<Micros>,
    /// Only completed ones with less than this charge
    #[arg(long, value_name = "AMOUNT")]
    pub charge_to: Option<Micros>,
    /// Only those created in this period
    #[command(flatten)]
    pub created: PeriodArguments,
    #[command(flatten)]
    pub rows: Rows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OperationStatus {
    /// A process runs it
    Leased,
    /// Its answer is stored, and is to be settled
    Recorded,
    /// Ended without an answer, and may run once more
    Open,
    /// Answered and charged
    Completed,
    /// Answered with an error
    Refused,
    /// Outcome unknown
    Abandoned,
}
