//! Arguments of `holdfast wallet`: create, list, show, change, suspend, resume and close wallets, and their
//! postings and statements.
//!
//! An amount is a decimal of the wallet's currency. In a change a missing option keeps the setting, and `--no-…`
//! removes it.
//!
//! A command that moves money or closes a wallet has a request key and a dry run: a user can check the effect
//! first, and repeat a command whose answer was lost.

use clap::{Args, Subcommand};
use holdfast_accounts::{ExternalId, Name, Note, Reason, Reference, Source, verbs};
use holdfast_domain::{Currency, Micros};
use uuid::Uuid;

use super::export::WholeFile;
use super::grant::SpendCap;
use super::read::ColumnChoice;
use super::request::VerbOrder;
use super::value::{self, Amount, Correction, OperationName};
use super::{Consent, CreationKey, PeriodArguments, RequestKey, Why};

#[derive(Debug, Subcommand)]
pub enum Wallet {
    /// Create an empty wallet
    Create {
        /// A unique name of 1 to 64 printable characters
        name: Name,
        /// Currency, for ever: three capital letters
        #[arg(long, value_name = "CODE", default_value = "USD")]
        currency: Currency,
        /// Id in another system, such as your customers' database; unique
        #[arg(long, value_name = "ID")]
        external_id: Option<ExternalId>,
        /// Low balance threshold: the event wallet.low is sent when less than this is left, active holds included;
        /// 0 sends it when the wallet is empty
        #[arg(long, value_name = "AMOUNT")]
        low_balance: Option<Micros>,
        /// Most that a key may spend that is issued by neither an owner nor the holder's administrator:
        /// AMOUNT/total, AMOUNT/day or AMOUNT/month [default: they issue none]
        #[arg(long, value_name = "AMOUNT/WINDOW")]
        key_spend: Option<SpendCap>,
        #[command(flatten)]
        why: Why,
    },
    #[command(flatten)]
    Change(WalletChange),
    #[command(flatten)]
    Post(NewPosting),
    /// Show a posting by its id, which is its key
    Posting {
        /// Id of the posting
        #[arg(value_name = "UUID", value_parser = value::posting_key)]
        id: Uuid,
    },
    /// Show a wallet and its balance
    Show {
        /// Id or name of the wallet
        wallet: Reference,
    },
    /// List all wallets, oldest first
    List(WalletFilter),
    /// Print a wallet's statement: the opening balance, each transfer, oldest first, and the closing balance
    Ledger {
        /// Id or name of the wallet
        wallet: Reference,
        #[command(flatten)]
        period: PeriodArguments,
        /// At most this many transfers in a table, the last ones: the opening balance is after the others
        #[arg(long, value_name = "N", default_value_t = 1_000, conflicts_with_all = ["csv", "jsonl", "output"])]
        limit: u32,
        #[command(flatten)]
        file: WholeFile,
        #[command(flatten)]
        columns: ColumnChoice,
    },
}

/// Wallets that a list is of: all filters apply.
#[derive(Debug, Args)]
pub struct WalletFilter {
    /// Only the one of this name
    #[arg(long, value_parser = Name::sought)]
    pub name: Option<Name>,
    /// Only the one with this id in another system
    #[arg(long, value_name = "ID", value_parser = ExternalId::sought)]
    pub external_id: Option<ExternalId>,
    /// Only those in this state
    #[arg(long, value_parser = ["active", "suspended", "closed"])]
    pub state: Option<String>,
    /// Only those with at least so much available
    #[arg(long, value_name = "AMOUNT")]
    pub available_from: Option<Micros>,
    /// Only those with less than this available
    #[arg(long, value_name = "AMOUNT")]
    pub available_below: Option<Micros>,
    /// At most this many, the newest [default: all]
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    #[command(flatten)]
    pub columns: ColumnChoice,
}

/// Changes of a wallet that is there.
#[derive(Debug, Subcommand)]
pub enum WalletChange {
    /// Change what people set on a wallet
    Update {
        /// Id or name of the wallet
        wallet: Reference,
        /// Another name
        #[arg(long)]
        name: Option<Name>,
        /// Another id in an outer system
        #[arg(long, value_name = "ID", conflicts_with = "no_external_id")]
        external_id: Option<ExternalId>,
        /// Remove the id in another system
        #[arg(long)]
        no_external_id: bool,
        /// Low balance threshold: the event wallet.low is sent when less than this is left, active holds included;
        /// 0 sends it when the wallet is empty
        #[arg(long, value_name = "AMOUNT", conflicts_with = "no_low_balance")]
        low_balance: Option<Micros>,
        /// Remove the low balance threshold
        #[arg(long)]
        no_low_balance: bool,
        /// Highest spend limit of API keys that roles other than owner and holder_admin issue: AMOUNT/total,
        /// AMOUNT/day or AMOUNT/month
        #[arg(long, value_name = "AMOUNT/WINDOW", conflicts_with = "no_key_spend")]
        key_spend: Option<SpendCap>,
        /// From now on roles other than owner and holder_admin issue no API keys
        #[arg(long)]
        no_key_spend: bool,
        #[command(flatten)]
        why: Why,
    },
    #[command(flatten)]
    Verb(WalletVerb),
    /// Close an empty wallet for good, and revoke its API keys
    Close {
        /// Id or name of the wallet
        wallet: Reference,
        /// Check whether it would be closed, without a change
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        consent: Consent,
        #[command(flatten)]
        why: Why,
    },
}

/// Verbs of a wallet.
#[derive(Debug, Subcommand)]
pub enum WalletVerb {
    /// Stop new runs on a wallet; running operations finish, and bound keys still answer
    Suspend {
        /// Id or name of the wallet
        wallet: Reference,
        /// Reason for the audit log: 1 to 200 printable characters
        #[arg(long, value_name = "TEXT")]
        reason: Reason,
        #[command(flatten)]
        key: RequestKey,
    },
    /// Resume new runs on a suspended wallet
    Resume {
        /// Id or name of the wallet
        wallet: Reference,
        #[command(flatten)]
        why: Why,
    },
}

impl WalletVerb {
    /// Row of the verb, its resource, and why.
    pub(crate) fn order(self) -> VerbOrder<Reference> {
        let (verb, subject, why) = match self {
            Self::Suspend { wallet, reason, key: request } => {
                (&verbs::SUSPEND_WALLET, wallet, Why { reason: Some(reason), request })
            }
            Self::Resume { wallet, why } => (&verbs::RESUME_WALLET, wallet, why),
        };
        VerbOrder { verb, subject, consent: None, why }
    }
}

/// Postings to be made.
#[derive(Debug, Subcommand)]
pub enum NewPosting {
    /// Add funds
    Deposit {
        /// Id or name of the wallet
        wallet: Reference,
        /// Units of its currency with at most six decimals, like 10.00
        #[arg(allow_negative_numbers = true)]
        amount: Amount,
        /// System that took the payment; unique together with --reference, without regard to case
        #[arg(long, value_name = "NAME", requires = "reference")]
        source: Option<Source>,
        /// Id of the payment in that system [default: the source cli, and the key]
        #[arg(long, value_name = "ID", requires = "source")]
        reference: Option<ExternalId>,
        /// Reason for the audit log
        #[arg(long, value_name = "TEXT")]
        reason: Option<Reason>,
        /// Note, such as the number of an invoice
        #[arg(long, value_name = "TEXT")]
        note: Option<Note>,
        /// Currency of the amount: refused if the wallet has another one [default: not compared]
        #[arg(long, value_name = "CODE")]
        currency: Option<Currency>,
        /// Show the result without a change
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        key: CreationKey,
    },
    /// Return a part of a completed operation's charge, or all of it
    Refund {
        /// Operation id or completion id
        #[arg(value_name = "OPERATION")]
        operation: OperationName,
        /// Units of the wallet's currency with at most six decimals, like 0.25
        #[arg(allow_negative_numbers = true)]
        amount: Amount,
        /// Reason for the audit log
        #[arg(long, value_name = "TEXT")]
        reason: Option<Reason>,
        /// Note, such as the number of a ticket
        #[arg(long, value_name = "TEXT")]
        note: Option<Note>,
        /// Currency of the amount: refused if the wallet has another one [default: not compared]
        #[arg(long, value_name = "CODE")]
        currency: Option<Currency>,
        /// Show the result without a change
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        key: CreationKey,
    },
    /// Correct what is available, up or down; it cannot overdraw
    Adjust {
        /// Id or name of the wallet
        wallet: Reference,
        /// Units of its currency with at most six decimals: 2.50 adds, -2.50 removes
        #[arg(allow_negative_numbers = true)]
        amount: Correction,
        /// Reason for the ledger: 1 to 200 printable characters
        #[arg(long, value_name = "TEXT")]
        reason: Reason,
        /// Note, such as the number of a ticket
        #[arg(long, value_name = "TEXT")]
        note: Option<Note>,
        /// Currency of the amount: refused if the wallet has another one [default: not compared]
        #[arg(long, value_name = "CODE")]
        currency: Option<Currency>,
        /// Show the result without a change
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        key: CreationKey,
    },
}
