//! The command line: commands, their arguments, and the text of `--help`. `command` runs them.
//!
//! Documentation comments on commands and fields below are that text: operators read them, so they
//! speak of what to write and what it does, not of types.
//!
//! Arguments are read into types of `value` and `grant`, which refuse bad ones with a sentence on
//! what to write; clap adds the argument's name and exits with status 2. Rules that need the
//! configuration or the database are the commands' own.

pub(crate) mod grant;
pub(crate) mod value;

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Parser, Subcommand, ValueEnum};
use holdfast_domain::Currency;
use holdfast_store::statement;
use uuid::Uuid;

use self::grant::{Expiry, Models, Span, SpendCap};
use self::value::{Amount, Correction, Name, OperationName, PeriodBound, Reason, Reference};
use crate::failure::CommandFailure;

const AFTER_HELP: &str = "\
Without a command it serves. Without a configuration file it runs on what is built in: SQLite in \
./holdfast-data/, the simulated provider as holdfast/sim-1 and holdfast/sim-tools, on port 8080 of this machine.

HOLDFAST_CONFIG names the configuration file where --config does not. HOLDFAST_LISTEN and \
HOLDFAST_DATABASE_URL override server.listen and database.url.

Exit status: 0 done, 1 failed, 2 wrong usage or configuration.";

/// An OpenAI-compatible gateway for prepaid inference: a request key runs and is charged at most
/// once.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// Configuration file (TOML) [env: HOLDFAST_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON: one object, or an array for lists
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the API until SIGTERM or SIGINT, then let running operations finish; SIGHUP, or a change of
    /// the configuration file, has it read again
    Serve,
    /// Check the configuration and report every mistake with its file and line
    CheckConfig {
        /// Also ask each provider for its list of models, and call each route once for a few tokens, which
        /// the provider may bill; say what works, what does not, and why
        #[arg(long)]
        probe: bool,
    },
    /// Prepare the database for this version, or take a step back
    #[command(subcommand)]
    Migrate(Migrate),
    /// Prepaid balances
    #[command(subcommand)]
    Wallet(Wallet),
    /// API keys
    #[command(subcommand)]
    Key(Key),
    /// Paid operations: what became of a request key
    #[command(subcommand)]
    Operation(Operation),
    /// What was used and charged
    #[command(subcommand)]
    Usage(UsageCommand),
    /// The book of all transfers
    #[command(subcommand)]
    Ledger(Ledger),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Migrate {
    /// Apply every missing migration; makes the database if there is none
    Up,
    /// Take the last migration back, WITH ALL DATA in the tables that it made
    Down {
        /// Delete the wallets, API keys and operations in them for good
        #[arg(long)]
        yes: bool,
    },
    /// List the migrations and when each was applied
    Status,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Wallet {
    /// Create an empty wallet
    Create {
        /// A unique name of 1 to 64 printable characters
        name: Name,
        /// Its currency for ever: three capital letters
        #[arg(long, value_name = "CODE", default_value = "USD")]
        currency: Currency,
    },
    /// Add funds
    Deposit {
        /// Id or name of the wallet
        wallet: Reference,
        /// Units of its currency with at most six decimals, like 10.00
        #[arg(allow_negative_numbers = true)]
        amount: Amount,
        /// Names this deposit: the same one again changes nothing [default: a new UUIDv4, printed]
        #[arg(long, value_name = "UUID", value_parser = value::posting_key)]
        key: Option<Uuid>,
    },
    /// Give back a part of what a completed operation was charged, at most all of it
    Refund {
        /// Operation id or completion id
        #[arg(value_name = "OPERATION")]
        operation: OperationName,
        /// Units of the wallet's currency with at most six decimals, like 0.25
        #[arg(allow_negative_numbers = true)]
        amount: Amount,
        /// Names this refund: the same one again changes nothing [default: a new UUIDv4, printed]
        #[arg(long, value_name = "UUID", value_parser = value::posting_key)]
        key: Option<Uuid>,
    },
    /// Correct what is available, up or down; it cannot overdraw
    Adjust {
        /// Id or name of the wallet
        wallet: Reference,
        /// Units of its currency with at most six decimals: 2.50 gives, -2.50 takes
        #[arg(allow_negative_numbers = true)]
        amount: Correction,
        /// Why, for the book: 1 to 200 printable characters
        #[arg(long, value_name = "TEXT")]
        reason: Reason,
        /// Names this adjustment: the same one again changes nothing [default: a new UUIDv4, printed]
        #[arg(long, value_name = "UUID", value_parser = value::posting_key)]
        key: Option<Uuid>,
    },
    /// Show a wallet and its balance
    Show {
        /// Id or name of the wallet
        wallet: Reference,
    },
    /// List all wallets, oldest first
    List,
    /// A wallet's statement: what it had, each transfer, oldest first, what it has then
    Ledger {
        /// Id or name of the wallet
        wallet: Reference,
        #[command(flatten)]
        period: Period,
        /// At most this many transfers, the last ones: the opening balance is after the others
        #[arg(long, value_name = "N", default_value_t = 1_000)]
        limit: u32,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Issue an API key and print it, once
    Issue(Issue),
    /// List all API keys, oldest first; never their secrets
    List,
    /// Add a credential to an API key, print it, once, and let the earlier ones end
    Rotate {
        /// Id or name of the API key
        key: Reference,
        /// How long the earlier credentials are still accepted: a whole number and s, m, h or d
        #[arg(long, value_name = "SPAN", default_value = "24h")]
        grace: Span,
    },
    /// End an API key for good; running operations finish, stored results become unreadable
    Revoke {
        /// Id or name of the API key
        key: Reference,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Issue {
    /// Id or name of the wallet that pays
    #[arg(long)]
    pub(crate) wallet: Reference,
    /// A unique name of 1 to 64 printable characters [default: made from its id]
    #[arg(long)]
    pub(crate) name: Option<Name>,
    /// When it ends, also after a rotation: a date like 2027-01-31 (its first moment in UTC), a moment
    /// of RFC 3339, or a span from now like 30d or 24h [default: never]
    #[arg(long, value_name = "MOMENT|SPAN")]
    pub(crate) expires: Option<Expiry>,
    /// The only models that it may use: their public ids with commas between [default: all]
    #[arg(long, value_name = "ID,…")]
    pub(crate) models: Option<Models>,
    /// What it may spend: AMOUNT/total, AMOUNT/day or AMOUNT/month (UTC), like 25.00/month
    #[arg(long, value_name = "AMOUNT/WINDOW")]
    pub(crate) spend_limit: Option<SpendCap>,
    /// Requests a minute that it may run
    #[arg(long, value_name = "N", value_parser = grant::count, allow_negative_numbers = true)]
    pub(crate) rpm: Option<u64>,
    /// Tokens a minute that it may use, prompt and completion together
    #[arg(long, value_name = "N", value_parser = grant::count, allow_negative_numbers = true)]
    pub(crate) tpm: Option<u64>,
    /// Operations that it may run at once
    #[arg(long, value_name = "N", value_parser = grant::count, allow_negative_numbers = true)]
    pub(crate) concurrency: Option<u64>,
    /// Do not show the wallet's balance to its bearer
    #[arg(long)]
    pub(crate) hide_balance: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Operation {
    /// Show an operation: its state, charge, attempts and node; never its content
    Show(Show),
    /// List operations, newest first
    List {
        /// Only those whose owner may be gone or whose settlement is missing
        #[arg(long)]
        stale: bool,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 1_000)]
        limit: u32,
    },
    /// Bring what a dead process left to rest, as far as the rules allow it now
    Reconcile,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Operation id or completion id; with --api-key the Idempotency-Key of the request
    #[arg(value_name = "ID")]
    pub(crate) id: OperationName,
    /// Id or name of the API key that sent the request
    #[arg(long, value_name = "KEY")]
    pub(crate) api_key: Option<Reference>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UsageCommand {
    /// Sum the operations that finished in a period, each currency by itself
    ///
    /// Refunds count for the operation that they are of, whenever they were made. Amounts are decimal
    /// units in a table, micros in CSV and JSON.
    Report(Report),
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) period: Period,
    /// What a row is
    #[arg(long, value_enum, default_value_t = UsageBy::Day)]
    pub(crate) by: UsageBy,
    /// How it is printed [default: a table on a terminal, else lines with tabs]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UsageBy {
    /// A day, in UTC
    Day,
    /// A model
    Model,
    /// An API key
    Key,
    /// A wallet
    Wallet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For spreadsheets: RFC 4180
    Csv,
    /// The same as --json
    Json,
}

/// A span of time.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Period {
    /// From this moment on: a date, in UTC, or RFC 3339 [default: the beginning]
    #[arg(long, value_name = "MOMENT")]
    from: Option<PeriodBound>,
    /// Before this moment: a date, in UTC, or RFC 3339 [default: now]
    #[arg(long, value_name = "MOMENT")]
    to: Option<PeriodBound>,
}

impl Period {
    pub(crate) fn period(self) -> Result<statement::Period, CommandFailure> {
        let (from, to) = (self.from.map(PeriodBound::at), self.to.map(PeriodBound::at));
        if from.zip(to).is_some_and(|(from, to)| from >= to) {
            return Err(CommandFailure::Usage(anyhow!(
                "--from must be before --to, which is not included"
            )));
        }
        Ok(statement::Period { from, to })
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Ledger {
    /// Recompute every balance and check every invariant; exit status 1 on any mismatch
    Verify {
        /// Say how far it is, once a second, also where standard error is no terminal
        #[arg(long)]
        progress: bool,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[track_caller]
    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_of_the_manual_is_understood() {
        for line in [
            "holdfast",
            "holdfast serve --config h.toml",
            "holdfast check-config --json",
            "holdfast check-config --probe",
            "holdfast migrate up",
            "holdfast migrate down",
            "holdfast migrate down --yes",
            "holdfast migrate status",
            "holdfast wallet create acme --currency EUR",
            "holdfast wallet deposit acme 10.00",
            "holdfast wallet deposit acme 10 --key 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
            "holdfast wallet refund 7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11 0.25",
            "holdfast wallet refund chatcmpl_7f2c1a9e5b7d8c3e9a510f8e6d2b4c11 0.25 --key 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
            "holdfast wallet adjust acme -2.50 --reason goodwill",
            "holdfast wallet adjust acme 2.5 --reason goodwill --key 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
            "holdfast wallet show acme",
            "holdfast wallet list",
            "holdfast wallet ledger acme",
            "holdfast wallet ledger acme --from 2026-11-01 --to 2026-11-20T09:30:00Z --limit 5",
            "holdfast usage report",
            "holdfast usage report --from 2026-11-01 --to 2026-12-01 --by key --format csv",
            "holdfast usage report --by model --json",
            "holdfast key issue --wallet acme",
            "holdfast key issue --wallet acme --name laptop --json",
            "holdfast key issue --wallet acme --expires 30d --models a/b,c/d --hide-balance",
            "holdfast key issue --wallet acme --spend-limit 25.00/month --rpm 60 --tpm 90000",
            "holdfast key issue --wallet acme --concurrency 3 --expires 2027-01-31T00:00:00Z",
            "holdfast key list",
            "holdfast key rotate laptop",
            "holdfast key rotate laptop --grace 0s",
            "holdfast key revoke laptop",
            "holdfast operation show 7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11",
            "holdfast operation show chatcmpl_7f2c1a9e5b7d8c3e9a510f8e6d2b4c11",
            "holdfast operation show --api-key laptop 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
            "holdfast operation list --stale",
            "holdfast operation reconcile",
            "holdfast ledger verify",
        ] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line));
        }
    }

    #[test]
    fn wrong_usage_exits_with_2() {
        for line in [
            "holdfast nonsense",
            "holdfast wallet",
            "holdfast wallet create 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
            "holdfast wallet create acme --currency usd",
            "holdfast wallet deposit acme 0",
            "holdfast wallet deposit acme -1",
            "holdfast wallet deposit acme 1.0000001",
            "holdfast wallet deposit acme 1 --key seven",
            "holdfast wallet refund seven 1",
            "holdfast wallet refund 7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11 -1",
            "holdfast wallet adjust acme -2.50",
            "holdfast wallet adjust acme 0 --reason goodwill",
            "holdfast wallet adjust acme -0.00 --reason goodwill",
            "holdfast wallet adjust acme -1.0000001 --reason goodwill",
            "holdfast wallet adjust acme 1 --reason=",
            "holdfast wallet ledger acme --from yesterday",
            "holdfast usage",
            "holdfast usage report --by hour",
            "holdfast usage report --format xml",
            "holdfast usage report --from 2026-13-01",
            "holdfast key issue",
            "holdfast key issue --wallet acme --rpm 0",
            "holdfast key issue --wallet acme --tpm -1",
            "holdfast key issue --wallet acme --concurrency many",
            "holdfast key rotate",
            "holdfast key rotate laptop --grace soon",
            "holdfast operation show seven",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }
}
