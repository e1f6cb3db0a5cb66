//! The commands, a module each. All work during a running `serve`, on the same database; those of administration
//! work over the network as well.
//!
//! ```text
//! place ─┬─ a server ───▶ AdminClient over the network ─┐
//!        │                                       ├─▶ all of administration
//!        └─ a database ─┬▶ AdminClient in this process ─┘
//!                       └▶ the store itself ─────▶ migrate, backup, and whole ledgers:
//!                                                  audits, corrections, reconciliation
//! ```

mod admin_key;
mod backup;
mod book;
mod context;
mod exclusion;
mod key;
mod ledger;
mod lookup;
mod manual;
mod migrate;
mod operation;
mod person;
mod read;
mod receipt;
mod reconcile;
mod resource_view;
mod usage;
mod verify;
mod wallet;
mod webhook;

use std::path::PathBuf;

use anyhow::anyhow;
use holdfast_bootstrap::database;
use holdfast_config::{BadConfig, CommandPlace, Config, SecretUse, admin_key};
use holdfast_store::{OpenError, SchemaError};

pub(crate) use self::context::CommandContext;
use self::context::{LocalLedger, RequiredSecrets};
pub(crate) use self::wallet::members;
use crate::admin_client::AdminClient;
use crate::arguments::{AdminCommand, Ledger, MaintenanceCommand, Receipt, UsageCommand};
use crate::failure::{CommandFailure, Result};
use crate::output::Output;

/// Runs a command of the files and the database of this machine.
///
/// # Errors
///
/// A [`CommandFailure`], with the exit status of the process.
pub async fn maintain(output: Output, place: PlaceFlags, command: MaintenanceCommand) -> Result {
    const WITH_DATABASE: &str = "run it with direct database access, with --config";
    match command {
        MaintenanceCommand::Completions { shell } => manual::completions(shell),
        MaintenanceCommand::Manual { folder } => manual::pages(&folder),
        MaintenanceCommand::Receipt(Receipt::Verify { file, keys, proof }) => {
            receipt::verify(output, (&file, proof.as_deref()), &keys)
        }
        MaintenanceCommand::Migrate(order) => {
            let migrate = async |file: ConfigFile| {
                migrate::run(output, &file.load(SecretUse::Database)?, &order).await
            };
            place.here("migrate", WITH_DATABASE, migrate).await
        }
        MaintenanceCommand::Backup { file: copy } => {
            let backup = async |file: ConfigFile| {
                backup::backup(output, &file.load(SecretUse::Book)?, &copy).await
            };
            place.here("backup", WITH_DATABASE, backup).await
        }
        MaintenanceCommand::Restore(order) => {
            let unknown = order.unknown_keys()?;
            let restore = async |file: ConfigFile| match &order.file {
                // The database is there already: no secret is needed for the mark.
                None => backup::declare(output, &file.load(SecretUse::Database)?, unknown).await,
                Some(copy) if order.check => {
                    backup::check(output, &file.load(SecretUse::Book)?, copy).await
                }
                Some(copy) => {
                    backup::restore(output, &file.load(SecretUse::Book)?, copy, unknown).await
                }
            };
            place.here("restore", WITH_DATABASE, restore).await
        }
    }
}

/// Runs a command of the administration, on a server or on the database of a configuration.
///
/// # Errors
///
/// A [`CommandFailure`], with the exit status of the process.
pub async fn administer(output: Output, place: PlaceFlags, command: AdminCommand) -> Result {
    let required = RequiredSecrets::of(&command);
    match place.resolve()? {
        CommandPlace::Server(url) => {
            if matches!(command, AdminCommand::Usage(UsageCommand::ExcludeCosts { .. })) {
                return Err(exclusion::local_only());
            }
            // Only here: a command with direct database access must not fail for a key that it does
            // not use.
            let client = AdminClient::network(url, &admin_key()?)?;
            admin_command(&CommandContext { output, client, local: None }, command).await
        }
        CommandPlace::Database(file) => {
            if let AdminCommand::Ledger(verification) = &command {
                verify::refuse_job_options(verification)?;
            }
            let run = async |file: ConfigFile| {
                let config = file.load(required.secrets())?;
                with_store(&config, async |store| {
                    let client = required.client(&config, store).await?;
                    let local = Some(LocalLedger { config: &config, store });
                    admin_command(&CommandContext { output, client, local }, command).await
                })
                .await
            };
            ConfigFile(file).advise(run).await
        }
    }
}

async fn admin_command(context: &CommandContext<'_>, command: AdminCommand) -> Result {
    match command {
        AdminCommand::Wallet(command) => wallet::run(context, command).await,
        AdminCommand::Key(command) => key::run(context, command).await,
        AdminCommand::AdminKey(command) => admin_key::run(context, command).await,
        AdminCommand::Person(command) => person::run(context, command).await,
        AdminCommand::Operation(command) => operation::run(context, command).await,
        AdminCommand::Webhook(command) => webhook::run(context, command).await,
        AdminCommand::Read(command) => read::run(context, command).await,
        AdminCommand::Usage(UsageCommand::Report(report)) => usage::run(context, *report).await,
        AdminCommand::Usage(UsageCommand::ExcludeCosts { dry_run, reason }) => {
            exclusion::run(context, exclusion::ExclusionOrder { dry_run, reason }).await
        }
        AdminCommand::Ledger(Ledger::Verify { progress, since, key, reason }) => {
            let order = verify::VerificationOrder { progress, since, key, reason };
            verify::run(context, order).await
        }
        AdminCommand::Ledger(Ledger::Roots { rows }) => ledger::roots(context, &rows).await,
        AdminCommand::Ledger(Ledger::Export(order)) => ledger::export(context, order).await,
    }
}

/// Arguments that name the place of a command.
#[derive(Debug)]
pub struct PlaceFlags {
    pub config: Option<PathBuf>,
    pub server: Option<String>,
}

impl PlaceFlags {
    fn resolve(&self) -> Result<CommandPlace> {
        Ok(holdfast_config::place(self.config.as_deref(), self.server.as_deref())?)
    }

    /// Runs a command on this machine. For a server it is refused, with the alternative.
    ///
    /// # Errors
    ///
    /// A [`CommandFailure`]: of the place, or of the command.
    pub async fn here(
        &self,
        name: &str,
        instead: &str,
        run: impl AsyncFnOnce(ConfigFile) -> Result<()>,
    ) -> Result {
        match self.resolve()? {
            CommandPlace::Server(_) => Err(local_only(name, instead)),
            CommandPlace::Database(file) => ConfigFile(file).advise(run).await,
        }
    }
}

/// Path of the configuration; `None` for the embedded default.
#[derive(Debug)]
pub struct ConfigFile(pub Option<PathBuf>);

impl ConfigFile {
    /// Reads the configuration, with the secrets of this use.
    ///
    /// # Errors
    ///
    /// A [`BadConfig`] with all mistakes.
    pub fn load(&self, uses: SecretUse) -> Result<Config, BadConfig> {
        holdfast_config::load_for(self.0.as_deref(), uses)
    }

    /// Runs a command with this configuration.
    async fn advise(self, run: impl AsyncFnOnce(Self) -> Result<()>) -> Result {
        let is_named = self.0.is_some();
        let outcome = Box::pin(run(self)).await;
        outcome.map_err(|failure| if is_named { failure } else { unnamed(failure) })
    }
}

/// Refusal of a command that does not work over the network.
fn local_only(name: &str, instead: &str) -> CommandFailure {
    CommandFailure::Usage(anyhow!("{name} does not work over the network: {instead}"))
}

/// The failure of a command that was given no configuration: if no database was found, that is the likely reason,
/// and the advice to create one would lead to a second ledger.
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

/// Opens the store for one command and closes it after it, on success and on failure.
async fn with_store(
    config: &Config,
    work: impl AsyncFnOnce(&holdfast_store::Store) -> Result<()>,
) -> Result {
    let store = database::open(config).await?;
    let outcome = work(&store).await;
    // Closed after a failure too. The failure of the work is the one that is reported.
    let closed = store.close().await;
    outcome?;
    Ok(closed.map_err(anyhow::Error::from)?)
}
