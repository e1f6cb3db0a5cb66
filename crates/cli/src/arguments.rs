//! The command line: commands, their arguments, and the text of `--help`. `command` runs them,
//! and the process those that serve.
//!
//! Documentation comments on commands and fields below are that text: operators read them, so they
//! speak of what to write and what it does, not of types.
//!
//! Arguments are read into types of `value` and `grant`, which refuse bad ones with a sentence on
//! what to write; clap adds the argument's name and exits with status 2. Rules that need the
//! configuration or the database are the commands' own.

mod examples;
pub mod export;
pub mod grant;
pub mod key;
pub mod operation;
pub mod person;
pub mod read;
pub mod receipt;
pub mod request;
pub mod restore;
pub mod sidecar;
pub mod usage;
pub mod value;
pub mod wallet;
pub mod webhook;

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use holdfast_accounts::Reason;
use holdfast_domain::admin::audit::TrailHead;
use holdfast_domain::admin::listing;
use uuid::Uuid;

pub use self::examples::{definition, of_process};
pub use self::export::LedgerExport;
pub use self::key::{AdminKey, Issue, Key, KeyChange, KeyFilter, UpdateKey};
pub use self::operation::{Operation, OperationFilter, Show};
pub use self::person::Person;
pub use self::read::Read;
pub use self::receipt::Receipt;
pub use self::request::{Consent, CreationKey, RequestKey, Why};
pub use self::restore::Restore;
pub use self::sidecar::{HangUp, Identical, Sidecar};
pub use self::usage::{Format, Report, UsageBy, UsageCommand};
use self::value::PeriodBound;
pub use self::wallet::{NewPosting, Wallet, WalletChange, WalletFilter};
pub use self::webhook::{Webhook, WebhookChange, WebhookVerb};
use crate::failure::{CommandFailure, Result};

const AFTER_HELP: &str = "\
Without a command it serves. Without a configuration file it runs on the embedded default: SQLite in \
./holdfast-data/, the simulated provider as holdfast/sim-1 and holdfast/sim-tools, on port 8080 of this machine.

HOLDFAST_CONFIG names the configuration file unless --config does. HOLDFAST_LISTEN, HOLDFAST_ADMIN_LISTEN \
and HOLDFAST_DATABASE_URL override server.listen, admin.listen and database.url, and the OTEL_* variables of \
OpenTelemetry [telemetry].

--server, or HOLDFAST_SERVER, names the administration of a server: an https:// address, or http:// on this \
machine. All commands but serve, sidecar, migrate, backup, restore, receipt, check-config, usage exclude-costs, \
completions and manual then work over the network, with an admin key from HOLDFAST_ADMIN_KEY, or from the file that HOLDFAST_ADMIN_KEY_FILE \
names.

Exit status: 0 done, 1 failed, 2 wrong usage or configuration.";

/// Heading of the options that every command has.
const GLOBAL: &str = "Global options";

/// An OpenAI-compatible gateway for prepaid inference: a request key runs and is charged at most
/// once.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, after_help = AFTER_HELP)]
pub struct Cli {
    /// Configuration file (TOML) [env: HOLDFAST_CONFIG]
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub config: Option<PathBuf>,
    /// Address of a server's administration, to work there; `holdfast --help` has its keys [env: HOLDFAST_SERVER]
    #[arg(long, global = true, value_name = "URL", help_heading = GLOBAL)]
    pub server: Option<String>,
    /// Print JSON: one object, or an array for lists; a failure on standard error as an object too
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// A command: of a process, of the files and the database of an installation, or of the administration.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(flatten)]
    Process(ProcessCommand),
    #[command(flatten)]
    Maintenance(MaintenanceCommand),
    #[command(flatten)]
    Admin(Box<AdminCommand>),
}

/// Commands that the process itself runs: serving, and the check before it.
#[derive(Debug, Subcommand)]
pub enum ProcessCommand {
    /// Serve the API until SIGTERM or SIGINT, then let running operations finish; SIGHUP, or a change of the
    /// configuration file, reloads it
    Serve {
        /// Serve a SQLite file although its ledger was copied to a server: only after that copy was given up, because
        /// two databases that both serve sell the same balance twice
        #[arg(long)]
        again: bool,
    },
    /// Serve local clients: give each chat completion a request key, and repeat failed calls under it
    ///
    /// A client that cannot create request keys uses the sidecar's address with /v1 as its base URL, and its own
    /// API key. There is no configuration file.
    Sidecar(Box<Sidecar>),
    /// Check the configuration and report every mistake with its file and line
    CheckConfig(ConfigChecks),
}

/// Commands of the files and the database of an installation on this machine.
#[derive(Debug, Subcommand)]
pub enum MaintenanceCommand {
    /// Create and upgrade the tables, revert a migration, or copy the ledger to PostgreSQL
    #[command(subcommand)]
    Migrate(Migrate),
    /// Copy the database file as it is at one moment, with the server secret, also while it is served
    ///
    /// FILE is created for its owner only, and so is FILE.secret, if the configuration names no secrets. Neither
    /// may exist yet. A PostgreSQL database is backed up by its own means.
    Backup {
        /// Name of the copy
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Verify a copy, and put it at the path of the configured database, which must not exist yet
    ///
    /// The exit status is 1 if the copy's ledger does not balance, or its secret is missing; then no file is
    /// written. Request keys that were bound after the copy was made are not in it. For the API keys of the copy they
    /// are refused for a window, with 409 ledger_restored; API keys that are issued after the restore run at once.
    Restore(Restore),
    /// Signed receipts, verified without a server and without a database
    #[command(subcommand)]
    Receipt(Receipt),
    /// Print the completions of these commands for a shell
    Completions {
        /// Shell that reads them
        shell: Shell,
    },
    /// Write a manual page for each command
    Manual {
        /// Existing folder for the pages
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

/// Commands of the administration.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Prepaid balances
    #[command(subcommand)]
    Wallet(Wallet),
    /// API keys
    #[command(subcommand)]
    Key(Key),
    /// Keys of the administration, for people and programs that run the service
    #[command(subcommand)]
    AdminKey(AdminKey),
    /// People who sign in to the console, and their roles
    #[command(subcommand)]
    Person(Person),
    /// Paid operations, one for each request key
    #[command(subcommand)]
    Operation(Operation),
    /// Usage and charges
    #[command(subcommand)]
    Usage(UsageCommand),
    /// The ledger of all transfers
    #[command(subcommand)]
    Ledger(Ledger),
    /// Receivers of events, by signed requests
    #[command(subcommand)]
    Webhook(Webhook),
    #[command(flatten)]
    Read(Read),
}

#[derive(Debug, Subcommand)]
pub enum Migrate {
    /// Apply every missing migration; creates the database if none exists
    Up,
    /// Revert the last migration, WITH ALL DATA in the tables that it created
    Down {
        /// Delete the wallets, API keys and operations in them for good
        #[arg(long)]
        yes: bool,
    },
    /// List the migrations and when each was applied
    Status,
    /// Copy the ledger of a SQLite file, which no gateway serves meanwhile, into an empty PostgreSQL database that
    /// `migrate up` has prepared; afterwards only the copy is served
    Copy {
        /// Database of the copy: postgres://OWNER@HOST/DATABASE?sslmode=verify-full, with the password of PGPASSWORD
        #[arg(long, value_name = "URL")]
        to: String,
    },
}

/// Checks beyond the configuration itself.
#[derive(Debug, Args)]
pub struct ConfigChecks {
    /// Also compare with the database, which has to exist: find settings that a reload or a start would refuse, and
    /// change nothing
    #[arg(long)]
    pub database: bool,
    /// Also request each provider's list of models, and call each route once for a few tokens, which the provider
    /// may bill; report the result of each and its cause
    #[arg(long)]
    pub probe: bool,
}

/// A span of time.
#[derive(Debug, Clone, Copy, Args)]
pub struct PeriodArguments {
    /// From this moment on: a date, in UTC, or RFC 3339 [default: the beginning]
    #[arg(long, value_name = "MOMENT")]
    from: Option<PeriodBound>,
    /// Before this moment: a date, in UTC, or RFC 3339 [default: now]
    #[arg(long, value_name = "MOMENT")]
    to: Option<PeriodBound>,
}

impl PeriodArguments {
    pub fn period(self) -> Result<listing::Period> {
        let (from, to) = (self.from.map(PeriodBound::at), self.to.map(PeriodBound::at));
        if from.zip(to).is_some_and(|(from, to)| from >= to) {
            return Err(CommandFailure::Usage(anyhow!(
                "--from must be before --to, which is not included"
            )));
        }
        Ok(listing::Period { from, to })
    }
}

#[derive(Debug, Subcommand)]
pub enum Ledger {
    /// Recompute every balance and check every invariant; exit status 1 on any mismatch
    Verify {
        /// Print the end of each part of the audit; without --json the progress is always printed
        #[arg(long)]
        progress: bool,
        /// Head of the audit log that an earlier verification printed: the audit log must still go through it
        #[arg(long, value_name = "SEQ:MAC")]
        since: Option<TrailHead>,
        /// Idempotency key of the job on a server, not an API key: a repetition with the same key starts no other job
        /// [default: a new UUIDv4, printed]
        #[arg(long = "key", value_name = "UUID", value_parser = value::posting_key)]
        key: Option<Uuid>,
        /// Reason for the audit log of the server: 1 to 200 printable characters
        #[arg(long, value_name = "TEXT")]
        reason: Option<Reason>,
    },
    /// List the signed roots of the ledger, newest first; with --json as `receipt verify` takes each of them
    Roots {
        #[command(flatten)]
        rows: read::Rows,
    },
    /// Export every payment and every charge of a period, for an accountant
    ///
    /// A row is a deposit, a refund, an adjustment or a charge, in units of its currency, on the UTC day on which it
    /// was booked. The last row is `closing` with the number of rows: a file without it is incomplete.
    Export(LedgerExport),
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;
    use holdfast_accounts::INTERFACES;

    use super::*;

    #[track_caller]
    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    const UNDERSTOOD: &[&str] = &[
        "holdfast",
        "holdfast serve --config h.toml",
        "holdfast check-config --json",
        "holdfast check-config --probe",
        "holdfast restore /var/backups/holdfast.db --json",
        "holdfast restore --check /var/backups/holdfast.db",
        "holdfast restore monday.db --unknown-since refuse --window 2h",
        "holdfast restore --declare --unknown-since allow",
        "holdfast wallet create acme --currency EUR",
        "holdfast wallet deposit acme 10.00",
        "holdfast wallet deposit acme 10 --key 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast wallet refund 7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11 0.25",
        "holdfast wallet refund chatcmpl_7f2c1a9e5b7d8c3e9a510f8e6d2b4c11 0.25 --key 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast wallet adjust acme -2.50 --reason goodwill",
        "holdfast wallet adjust acme 2.5 --reason goodwill --key 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "holdfast wallet deposit acme 10 --source stripe --reference pi_1 --note invoice-7",
        "holdfast wallet update acme --name acme-2 --key-spend 25.00/month",
        "holdfast wallet create acme --key-spend 25.00/month --reason new",
        "holdfast wallet deposit acme 10 --dry-run",
        "holdfast wallet adjust acme -2.50 --reason goodwill --dry-run",
        "holdfast wallet list --name acme --external-id c-17 --state suspended --available-from 1",
        "holdfast key update laptop --rpm 60 --tpm none --all-models --no-expires",
        "holdfast key update laptop --external-id c-17 --balance hidden --reason moved",
        "holdfast key update laptop --no-external-id --balance shown",
        "holdfast key list --name laptop --wallet acme --state in_force --model a/b",
        "holdfast key issue --wallet acme --from names --secrets keys --dry-run",
        "holdfast key revoke laptop --reason stolen",
        "holdfast admin-key issue --name me --role owner",
        "holdfast person invite ada@example.com --role holder_admin --wallet acme",
        "holdfast person list --limit 3",
        "holdfast person end 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 --erase",
        "holdfast operation cancel 7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11 --reason runaway",
        "holdfast operation reconcile 7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11 --reason gone",
        "holdfast wallet list",
        "holdfast wallet ledger acme",
        "holdfast wallet ledger acme --from 2026-11-01 --to 2026-11-20T09:30:00Z --limit 5",
        "holdfast usage report",
        "holdfast usage report --from 2026-11-01 --to 2026-12-01 --by key --format csv",
        "holdfast usage report --by model --json",
        "holdfast usage report --by hour,route --wallet acme --key bot --model a/b --route x/y",
        "holdfast usage report --by month,wallet",
        "holdfast key issue --wallet acme",
        "holdfast key issue --wallet acme --name laptop --json",
        "holdfast key issue --wallet acme --expires 30d --models a/b,c/d --hide-balance",
        "holdfast key issue --wallet acme --spend-limit 25.00/month --rpm 60 --tpm 90000",
        "holdfast key issue --wallet acme --concurrency 3 --expires 2027-01-31T00:00:00Z",
        "holdfast key list",
        "holdfast key rotate laptop --grace 0s",
        "holdfast operation show 7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11",
        "holdfast operation list --stale",
        "holdfast wallet create acme --low-balance 5.00",
        "holdfast wallet update acme --no-low-balance",
        "holdfast wallet list --available-from 0 --available-below 5.00 --limit 3",
        "holdfast key list --wallet acme --limit 3",
        "holdfast operation list --running --wallet acme --key bot --model a/b --from 2026-11-01",
        "holdfast operation list --status completed --charge-from 0.1 --charge-to 1 --limit 5",
        "holdfast event list --wallet acme --kind wallet.low",
        "holdfast audit list --actor local --use-case wallet.suspend --limit 5",
        "holdfast admin-key list --all",
        "holdfast price list --model a/b --currency USD",
        "holdfast webhook create https://a.example.com/in --wallet acme --kind wallet.low --kind wallet.credited",
        "holdfast webhook resend 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
    ];

    #[test]
    fn every_form_of_a_command_is_understood() {
        for line in UNDERSTOOD {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line));
        }
    }

    /// The words of every command of administration, as clap has them.
    pub(crate) fn commands(command: &clap::Command, before: &str, found: &mut BTreeSet<String>) {
        for sub in command.get_subcommands() {
            let words = format!("{before} {}", sub.get_name()).trim().to_owned();
            if sub.has_subcommands() {
                commands(sub, &words, found);
            } else {
                found.insert(words);
            }
        }
    }

    #[test]
    fn every_command_is_of_a_use_case_and_every_use_case_has_one() {
        let mut found = BTreeSet::new();
        commands(&Cli::command(), "", &mut found);
        // They are about a file, a process or a database, and need no role.
        let beside = "serve,sidecar,check-config,migrate up,migrate down,migrate status,migrate copy,backup,restore,\
                      receipt verify,completions,manual";
        for words in beside.split(',') {
            assert!(found.remove(words), "{words}");
        }
        let commands_of_interfaces = INTERFACES.iter().flat_map(|row| row.commands.clone());
        assert_eq!(commands_of_interfaces.collect::<BTreeSet<_>>(), found);
        let without = INTERFACES.iter().filter(|row| row.commands.is_empty());
        let without: Vec<_> = without.map(|row| row.use_case.label()).collect();
        // Acts of people in a browser, and a note of the process.
        assert_eq!(without, ["person.accept", "person.password", "person.sign_in_failed"]);
    }

    #[test]
    fn wrong_usage_exits_with_2() {
        for line in [
            "holdfast nonsense",
            "holdfast backup",
            "holdfast restore",
            "holdfast restore --check",
            "holdfast restore --declare monday.db",
            "holdfast restore --check monday.db --window 1h",
            "holdfast restore monday.db --unknown-since maybe",
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
            "holdfast wallet suspend acme",
            "holdfast wallet deposit acme 10 --source stripe",
            "holdfast wallet update acme --key-spend 1/day --no-key-spend",
            "holdfast key update laptop --rpm 0",
            "holdfast key update laptop --external-id a --no-external-id",
            "holdfast key update laptop --balance secret",
            "holdfast key issue --wallet acme --dry-run",
            "holdfast wallet list --state broke",
            "holdfast operation reconcile --reason gone",
            "holdfast admin-key issue --name me --role root",
            "holdfast person invite ada --role owner",
            "holdfast operation cancel 7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11",
            "holdfast wallet adjust acme 0 --reason goodwill",
            "holdfast wallet adjust acme -0.00 --reason goodwill",
            "holdfast wallet adjust acme -1.0000001 --reason goodwill",
            "holdfast wallet adjust acme 1 --reason=",
            "holdfast wallet ledger acme --from yesterday",
            "holdfast usage",
            "holdfast usage report --by minute",
            "holdfast usage report --format xml",
            "holdfast usage report --from 2026-13-01",
            "holdfast key issue",
            "holdfast key issue --wallet acme --rpm 0",
            "holdfast key issue --wallet acme --tpm -1",
            "holdfast key issue --wallet acme --concurrency many",
            "holdfast key rotate",
            "holdfast key rotate laptop --grace soon",
            "holdfast operation show seven",
            "holdfast operation list --stale --running",
            "holdfast posting list",
            "holdfast event show seven",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }
}
