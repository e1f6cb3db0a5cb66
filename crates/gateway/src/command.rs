//! The commands, a module each. All work beside a running `serve`, on the same database; those of
//! administration work over the network as well.
//!
//! ```text
//! place ─┬─ a server ───▶ Door over the network ─┐
//!        │                                       ├─▶ all of administration
//!        └─ a database ─┬▶ Door in this process ─┘
//!                       └▶ the store itself ─────▶ serve, migrate, check-config, backup, and what the store
//!                                                  does in one go: reports, statements, audits
//! ```

mod admin_key;
mod backup;
mod book;
mod check;
mod desk;
mod exclusion;
mod key;
mod manual;
mod migrate;
mod operation;
mod person;
mod read;
mod reconcile;
mod sheet;
mod sidecar;
mod usage;
mod verify;
mod wallet;
mod webhook;

use std::path::PathBuf;

use anyhow::anyhow;
use holdfast_config::{CommandPlace, Config, SecretUse, admin_key};
use holdfast_store::verify::AuditOptions;
use holdfast_store::{OpenError, SchemaError};

pub(crate) use self::desk::Desk;
use self::desk::Need;
pub(crate) use self::wallet::members;
use crate::cli::{Cli, Command, Ledger, Operation, UsageCommand, Wallet};
use crate::door::Door;
use crate::failure::CommandFailure;
use crate::output::Output;
use crate::{database, serve};

/// Does what was asked for.
pub(crate) async fn run(cli: Cli) -> Result<(), CommandFailure> {
    let output = Output::new(cli.json);
    let command = match cli.command {
        // Of no database and no server: what HOLDFAST_CONFIG and HOLDFAST_SERVER name is not for it.
        Some(Command::Sidecar(order)) => {
            if cli.config.is_some() || cli.server.is_some() || order.hidden.names_gateway() {
                return Err(CommandFailure::Usage(anyhow!(
                    "sidecar takes neither --config nor --server: name the gateway with --upstream"
                )));
            }
            return sidecar::run(order).await;
        }
        Some(Command::Completions { shell }) => return manual::completions(shell),
        Some(Command::Manual { folder }) => return manual::pages(&folder),
        command => command.unwrap_or(Command::Serve),
    };
    let need = Need::of(&command);
    match holdfast_config::place(cli.config.as_deref(), cli.server.as_deref())? {
        CommandPlace::Server(url) => {
            if let Some(why) = beside_only(&command) {
                return Err(CommandFailure::Usage(anyhow!("{why}")));
            }
            let door = Door::network(url, &admin_key()?)?;
            administer(&Desk { output, door, config: None }, command).await
        }
        CommandPlace::Database(file) => {
            let is_named = file.is_some();
            let outcome = match need {
                Some(need) => {
                    let config = holdfast_config::load_for(file.as_deref(), need.secrets())?;
                    with_store(&config, async |store| {
                        let door = need.door(&config, store).await?;
                        administer(&Desk { output, door, config: Some(&config) }, command).await
                    })
                    .await
                }
                None => Box::pin(beside(output, file, command)).await,
            };
            outcome.map_err(|failure| if is_named { failure } else { unnamed(failure) })
        }
    }
}

/// The failure of a command that was given no configuration: where no database was found, that is the
/// likely reason, and the advice to make one would lead into a second book.
fn unnamed(failure: CommandFailure) -> CommandFailure {
    let CommandFailure::Failed(error) = &failure else { return failure };
    let is_missing = error.chain().any(|cause| {
        let missing = |error: &SchemaError| matches!(error, SchemaError::Missing(_));
        cause.downcast_ref().is_some_and(missing)
            || cause
                .downcast_ref()
                .is_some_and(|open| matches!(open, OpenError::Schema(error) if missing(error)))
    });
    if !is_missing {
        return failure;
    }
    CommandFailure::Usage(anyhow!(
        "no configuration file is named, and there is no database of the embedded default here: give \
         --config or HOLDFAST_CONFIG, or work in the folder where `holdfast` was started without one"
    ))
}

/// Why a command does not work over the network, and what does; nothing for one that does.
fn beside_only(command: &Command) -> Option<String> {
    let (what, instead) = match command {
        Command::Sidecar(_) => ("sidecar", "leave --server out"),
        Command::Serve => ("serve", "it is what serves: leave --server and HOLDFAST_SERVER out"),
        Command::CheckConfig(_) => ("check-config", "run it where the file is, with --config"),
        Command::Migrate(_) => ("migrate", "run it beside the database, with --config"),
        Command::Completions { .. } => ("completions", "leave --server out"),
        Command::Manual { .. } => ("manual", "leave --server out"),
        Command::Backup { .. } => ("backup", "run it beside the database, with --config"),
        Command::Restore { .. } => ("restore", "run it beside the database, with --config"),
        Command::Usage(UsageCommand::ExcludeCosts { .. }) => {
            ("usage exclude-costs", "run it beside the database, with --config")
        }
        Command::Usage(UsageCommand::Report(_))
        | Command::Ledger(_)
        | Command::Wallet(_)
        | Command::Key(_)
        | Command::AdminKey(_)
        | Command::Person(_)
        | Command::Operation(_)
        | Command::Webhook(_)
        | Command::Read(_) => return None,
    };
    Some(format!("{what} does not work over the network: {instead}"))
}

/// Commands of administration, through a door.
async fn administer(desk: &Desk<'_>, command: Command) -> Result<(), CommandFailure> {
    match command {
        Command::Wallet(command) => wallet::run(desk, command).await,
        Command::Key(command) => key::run(desk, command).await,
        Command::AdminKey(command) => admin_key::run(desk, command).await,
        Command::Person(command) => person::run(desk, command).await,
        Command::Operation(command) => operation::run(desk, command).await,
        Command::Webhook(command) => webhook::run(desk, command).await,
        Command::Read(command) => read::run(desk, command).await,
        Command::Usage(UsageCommand::Report(report)) => usage::over_network(desk, report).await,
        Command::Ledger(Ledger::Verify { progress, since, key, reason }) => {
            let order = verify::VerificationOrder { progress, since, key, reason };
            verify::run(desk, order).await
        }
        // They have been refused, or are done beside.
        Command::Serve
        | Command::Sidecar(_)
        | Command::CheckConfig(_)
        | Command::Migrate(_)
        | Command::Backup { .. }
        | Command::Restore { .. }
        | Command::Usage(UsageCommand::ExcludeCosts { .. })
        | Command::Completions { .. }
        | Command::Manual { .. } => Ok(()),
    }
}

/// Commands that are about a database or a process of this machine.
async fn beside(
    output: Output,
    file: Option<PathBuf>,
    command: Command,
) -> Result<(), CommandFailure> {
    let load = |uses| holdfast_config::load_for(file.as_deref(), uses);
    match command {
        Command::CheckConfig(checks) => {
            check::run(output, load(SecretUse::All), file, &checks).await
        }
        Command::Migrate(migrate) => {
            migrate::run(output, &load(SecretUse::Database)?, &migrate).await
        }
        Command::Backup { file } => backup::backup(output, &load(SecretUse::Book)?, &file).await,
        Command::Restore { check: true, file } => {
            backup::check(output, &load(SecretUse::Book)?, &file).await
        }
        Command::Restore { check: false, file } => {
            backup::restore(output, &load(SecretUse::Book)?, &file).await
        }
        Command::Serve => serve::run(load(SecretUse::All)?).await,
        Command::Operation(Operation::Reconcile { .. }) => {
            let config = load(SecretUse::Database)?;
            with_store(&config, async |store| reconcile::run(output, &config, store).await).await
        }
        Command::Wallet(Wallet::Ledger { wallet, period, limit, csv }) => {
            let order = wallet::StatementOrder::new(output, period, limit, csv)?;
            with_store(&load(SecretUse::Database)?, async |store| {
                wallet::statement_beside(store, &wallet, &order).await
            })
            .await
        }
        Command::Usage(UsageCommand::Report(report)) => {
            let config = load(SecretUse::Database)?;
            with_store(&config, async |store| usage::beside(output, store, report).await).await
        }
        Command::Usage(UsageCommand::ExcludeCosts { dry_run, reason }) => {
            let config = load(SecretUse::Book)?;
            let order = exclusion::Order { dry_run, reason };
            with_store(&config, async |store| exclusion::run(output, &config, store, order).await)
                .await
        }
        Command::Ledger(Ledger::Verify { progress, since, key, reason }) => {
            if key.is_some() || reason.is_some() {
                return Err(CommandFailure::Usage(anyhow!(
                    "--key and --reason are for the job of a server: leave them out, or say which with \
                     --server"
                )));
            }
            let config = load(SecretUse::Book)?;
            let kept = config.retention.results;
            let secrets = database::known_secrets(&config).into();
            let options = AuditOptions { retention: kept, secrets, since };
            with_store(&config, async |store| book::verify(output, store, options, progress).await)
                .await
        }
        // The others go through a door, or have run.
        Command::Sidecar(_)
        | Command::Completions { .. }
        | Command::Manual { .. }
        | Command::Wallet(_)
        | Command::Key(_)
        | Command::AdminKey(_)
        | Command::Person(_)
        | Command::Operation(_)
        | Command::Webhook(_)
        | Command::Read(_) => Ok(()),
    }
}

/// Opens the store for one command and closes it after it, whatever came of it.
async fn with_store(
    config: &Config,
    work: impl AsyncFnOnce(&holdfast_store::Store) -> Result<(), CommandFailure>,
) -> Result<(), CommandFailure> {
    let store = database::open(config).await?;
    let outcome = work(&store).await;
    let closed = store.close().await;
    outcome?;
    Ok(closed.map_err(anyhow::Error::from)?)
}
