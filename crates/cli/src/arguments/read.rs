//! Arguments of the commands that read: lists, newest first, and single resources.
//!
//! Each list has its filters, `--limit` and the choice of columns ([`Rows`]). Filters are those of the API, and all
//! of them apply. A filter that names a wallet or a key accepts its name as well; the command looks its id up.
//!
//! The names of commands and options are an interface: scripts use them.

use clap::{Args, Subcommand, ValueEnum};
use holdfast_accounts::Reference;
use uuid::Uuid;

use super::value;
use super::{PeriodArguments, Why};

/// Columns of a list.
#[derive(Debug, Clone, Default, Args)]
pub struct ColumnChoice {
    /// Only these columns, in this order: names with a comma between
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',')]
    pub columns: Option<Vec<String>>,
    /// All columns, also on a narrow terminal
    #[arg(long, conflicts_with = "columns")]
    pub wide: bool,
}

impl ColumnChoice {
    /// True if no option was given.
    pub(crate) const fn is_default(&self) -> bool {
        self.columns.is_none() && !self.wide
    }
}

/// Rows and columns of a list.
#[derive(Debug, Clone, Args)]
pub struct Rows {
    /// At most this many rows; of a list by time the newest
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub limit: u32,
    #[command(flatten)]
    pub columns: ColumnChoice,
}

/// Commands that read, and one that takes back what waits.
#[derive(Debug, Subcommand)]
pub enum Read {
    /// Deposits, adjustments and refunds
    #[command(subcommand)]
    Posting(Posting),
    /// Recorded events
    #[command(subcommand)]
    Event(EventCommand),
    /// Requests that were refused
    #[command(subcommand)]
    Refusal(RefusalCommand),
    /// Verifications of the ledger by servers
    #[command(subcommand)]
    Job(JobCommand),
    /// The audit log: every change with its actor and reason
    #[command(subcommand)]
    Audit(Audit),
    /// Models on offer
    #[command(subcommand)]
    Model(Model),
    /// Versions of prices
    #[command(subcommand)]
    Price(PriceCommand),
    /// Processes that serve this database
    #[command(subcommand)]
    Node(NodeCommand),
    /// Routes of providers, with their errors and latencies
    #[command(subcommand)]
    Route(RouteCommand),
}

#[derive(Debug, Subcommand)]
pub enum Posting {
    /// List postings of one kind, newest first
    List {
        /// Kind of the postings
        #[arg(long, value_enum)]
        kind: PostingKind,
        /// Only those of this wallet: its id or name
        #[arg(long, value_name = "WALLET")]
        wallet: Option<Reference>,
        #[command(flatten)]
        rows: Rows,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PostingKind {
    /// Payments into a wallet
    Deposit,
    /// Corrections of a balance
    Adjustment,
    /// Returned charges
    Refund,
}

#[derive(Debug, Subcommand)]
pub enum EventCommand {
    /// List events, newest first
    List {
        /// Only those of this wallet: its id or name
        #[arg(long, value_name = "WALLET")]
        wallet: Option<Reference>,
        /// Only those of this kind, like wallet.low
        #[arg(long)]
        kind: Option<String>,
        #[command(flatten)]
        rows: Rows,
    },
    /// Show an event
    Show {
        /// Id of the event
        #[arg(value_name = "UUID", value_parser = value::id)]
        id: Uuid,
    },
}

#[derive(Debug, Subcommand)]
pub enum RefusalCommand {
    /// List refused requests, newest first: of each API key the last 100, and the last 10 of each code
    List {
        /// Only the request with this x-request-id; not together with other filters
        #[arg(long, value_name = "UUID", value_parser = value::id, conflicts_with_all = ["wallet", "key", "code", "from", "to"])]
        request_id: Option<Uuid>,
        #[command(flatten)]
        filter: RefusalFilter,
        #[command(flatten)]
        rows: Rows,
    },
    /// Count all refused requests by hour and code, newest hour first
    Hours {
        #[command(flatten)]
        filter: RefusalFilter,
        #[command(flatten)]
        rows: Rows,
    },
}

/// Filter of refused requests.
#[derive(Debug, Args)]
pub struct RefusalFilter {
    /// Only requests of this wallet: its id or name
    #[arg(long, value_name = "WALLET")]
    pub wallet: Option<Reference>,
    /// Only requests of this API key: its id or name
    #[arg(long, value_name = "KEY")]
    pub key: Option<Reference>,
    /// Only requests with this error code, like insufficient_funds
    #[arg(long)]
    pub code: Option<String>,
    #[command(flatten)]
    pub period: PeriodArguments,
}

#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// List jobs, newest first; the oldest of those that have ended are not kept
    List {
        #[command(flatten)]
        rows: Rows,
    },
    /// Show a job with its progress and findings
    Show {
        /// Id of the job
        #[arg(value_name = "UUID", value_parser = value::id)]
        id: Uuid,
    },
    /// Cancel a job that is queued; one that a server has begun goes on
    Cancel {
        /// Id of the job
        #[arg(value_name = "UUID", value_parser = value::id)]
        id: Uuid,
        #[command(flatten)]
        why: Why,
    },
}

#[derive(Debug, Subcommand)]
pub enum Audit {
    /// List rows of the audit log, newest first
    List {
        /// Filter by resource, like wallet:7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11
        #[arg(long, value_name = "KIND:ID")]
        thing: Option<String>,
        /// Only those of this actor: local, or admin_key: or person: and its id
        #[arg(long)]
        actor: Option<String>,
        /// Only those of this use case, like wallet.suspend
        #[arg(long)]
        use_case: Option<String>,
        #[command(flatten)]
        rows: Rows,
    },
}

#[derive(Debug, Subcommand)]
pub enum Model {
    /// List the models that a server serves, with their routes; with direct database access the configured ones
    List {
        #[command(flatten)]
        rows: Rows,
    },
}

#[derive(Debug, Subcommand)]
pub enum PriceCommand {
    /// List price versions by model and currency, the latest first: those to come, in force and past
    List {
        /// Only those of this model: its public id
        #[arg(long, value_name = "ID")]
        model: Option<String>,
        /// Only those in this currency
        #[arg(long, value_name = "CODE")]
        currency: Option<String>,
        #[command(flatten)]
        rows: Rows,
    },
}

#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// List the nodes: names of processes, and whether each is alive
    List {
        #[command(flatten)]
        rows: Rows,
    },
}

#[derive(Debug, Subcommand)]
pub enum RouteCommand {
    /// List routes with their attempts, latencies and last errors of 24 hours
    List {
        #[command(flatten)]
        rows: Rows,
    },
    /// Show a route with its last 20 failures
    Show {
        /// Name of the route: the configured provider and its model
        name: String,
    },
}
