//! The commands, a module each. All work beside a running `serve`, on the same database.

mod admin_key;
mod book;
mod check;
mod key;
mod migrate;
mod operation;
mod pages;
mod reconcile;
mod usage;
mod wallet;

use crate::cli::{Cli, Command, Ledger, Operation, UsageCommand};
use crate::failure::CommandFailure;
use crate::output::Output;
use crate::{database, serve};
use holdfast_config::Config;
use holdfast_store::verify::AuditOptions;

/// Does what was asked for.
pub(crate) async fn run(cli: Cli) -> Result<(), CommandFailure> {
    let output = Output::new(cli.json);
    let file = holdfast_config::file(cli.config.as_deref());
    let config = holdfast_config::load(file.as_deref());
    match cli.command {
        Some(Command::CheckConfig { probe }) => check::run(output, config, file, probe).await,
        Some(Command::Migrate(migrate)) => migrate::run(output, &config?, &migrate).await,
        None | Some(Command::Serve) => serve::run(config?).await,
        Some(Command::Wallet(command)) => {
            let config = config?;
            with_store(&config, async |store| wallet::run(output, &config, store, command).await)
                .await
        }
        Some(Command::Key(command)) => {
            let config = config?;
            with_store(&config, async |store| key::run(output, &config, store, command).await).await
        }
        Some(Command::AdminKey(command)) => {
            let config = config?;
            let run = async |store: &_| admin_key::run(output, &config, store, command).await;
            with_store(&config, run).await
        }
        Some(Command::Operation(Operation::Cancel { operation, reason, request })) => {
            let config = config?;
            let cancel = async |store: &_| {
                let asked = (operation.operation(), &reason, request);
                operation::cancel(output, &config, store, asked).await
            };
            with_store(&config, cancel).await
        }
        Some(Command::Operation(Operation::Show(show))) => {
            with_store(&config?, async |store| operation::show(output, store, show).await).await
        }
        Some(Command::Operation(Operation::List { stale, limit })) => {
            with_store(&config?, async |store| operation::list(output, store, stale, limit).await)
                .await
        }
        Some(Command::Operation(Operation::Reconcile)) => {
            let config = config?;
            with_store(&config, async |store| reconcile::run(output, &config, store).await).await
        }
        Some(Command::Usage(UsageCommand::Report(report))) => {
            with_store(&config?, async |store| usage::report(output, store, report).await).await
        }
        Some(Command::Ledger(Ledger::Verify { progress, since })) => {
            let config = config?;
            let kept = config.retention.results;
            let secrets = database::known_secrets(&config).into();
            let options = AuditOptions { retention: kept, secrets, since };
            with_store(&config, async |store| book::verify(output, store, options, progress).await)
                .await
        }
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
