//! The gateway process: start, wiring, telemetry, and the commands that run it. No decision about operations or
//! money is made here.

mod check;
mod core_dump;
mod reports;
mod serve;
mod sidecar;
mod telemetry;

use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::error::ErrorKind;
use tokio::runtime::Builder;

use holdfast_cli::arguments::{self, AdminCommand, Cli, Command, Ledger, ProcessCommand};
use holdfast_cli::failure::{CommandFailure, Status};
use holdfast_cli::output::{self, Output};
use holdfast_cli::{ConfigFile, PlaceFlags, administer, maintain};
use holdfast_config::SecretUse;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Time by which blocking work without a waiting task may delay the end of the process.
const LINGER: Duration = Duration::from_millis(200);

/// Niceness of an audit, which may take minutes on the processors that serve.
const AUDIT_NICE: i32 = 10;

fn main() -> ExitCode {
    // The only one who could have installed another is this line; later ones find it.
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    if provider.install_default().is_err() {
        output::note("error: TLS was set up twice");
        return Status::Failed.into();
    }
    let cli = match arguments::of_process() {
        Ok(cli) => cli,
        Err(answer) => return refused(&answer),
    };
    let is_json = cli.json;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                output::error(is_json, failure.code(), &message);
            }
            failure.exit_code()
        }
    }
}

/// Prints what clap answers in place of a command: help, the version, or a mistake in the arguments.
fn refused(answer: &clap::Error) -> ExitCode {
    let is_json = holdfast_config::arguments().take_while(|it| it != "--").any(|it| it == "--json");
    if answer.use_stderr() && is_json {
        let text = answer.to_string();
        // The text of a missing subcommand is the whole help.
        let message = if answer.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            "a subcommand is missing"
        } else {
            text.strip_prefix("error: ").unwrap_or(&text).trim_end()
        };
        output::error(is_json, "bad_usage", message);
    } else if answer.print().is_err() {
        return Status::Failed.into();
    }
    u8::try_from(answer.exit_code()).map_or_else(|_too_large| Status::Usage.into(), ExitCode::from)
}

/// A runtime of one thread on one core, on which sharing work between threads only costs time; else one thread
/// a core.
fn builder() -> Builder {
    match available_parallelism() {
        Ok(n_cores) if n_cores.get() == 1 => Builder::new_current_thread(),
        Ok(_) | Err(_) => Builder::new_multi_thread(),
    }
}

fn run(cli: Cli) -> Result<(), CommandFailure> {
    if let Some(Command::Admin(command)) = &cli.command
        && matches!(**command, AdminCommand::Ledger(Ledger::Verify { .. }))
    {
        // Before there are threads, which inherit it.
        if let Err(error) = rustix::process::nice(AUDIT_NICE) {
            output::note(&format!("the audit does not step back for others: {error}"));
        }
    }
    let runtime = builder().enable_all().build();
    let runtime = runtime.context("the runtime cannot be started")?;
    let outcome = runtime.block_on(command(cli));
    // A look at a file system that hangs must not keep the process from its end.
    runtime.shutdown_timeout(LINGER);
    outcome
}

async fn command(cli: Cli) -> Result<(), CommandFailure> {
    let output = Output::new(cli.json);
    let place = PlaceFlags { config: cli.config, server: cli.server };
    match cli.command.unwrap_or(Command::Process(ProcessCommand::Serve { again: false })) {
        Command::Process(command) => process(output, place, command).await,
        Command::Maintenance(command) => maintain(output, place, command).await,
        Command::Admin(command) => administer(output, place, *command).await,
    }
}

/// Runs a command that serves, or looks before it.
async fn process(
    output: Output,
    place: PlaceFlags,
    command: ProcessCommand,
) -> Result<(), CommandFailure> {
    match command {
        // Of no database and no server: HOLDFAST_CONFIG and HOLDFAST_SERVER are not for it.
        ProcessCommand::Sidecar(order) => {
            if place.config.is_some() || place.server.is_some() || order.hidden.names_gateway() {
                return Err(CommandFailure::Usage(anyhow!(
                    "sidecar takes neither --config nor --server: name the gateway with --upstream"
                )));
            }
            sidecar::run(*order).await
        }
        ProcessCommand::Serve { again } => {
            let instead =
                "it starts a gateway on this machine: leave --server and HOLDFAST_SERVER out";
            let serve = async |file: ConfigFile| {
                Box::pin(serve::run(file.load(SecretUse::All)?, again)).await
            };
            place.here("serve", instead, serve).await
        }
        ProcessCommand::CheckConfig(checks) => {
            let instead = "run it where the file is, with --config";
            let check = async |file: ConfigFile| {
                check::run(output, file.load(SecretUse::All), file.0, &checks).await
            };
            place.here("check-config", instead, check).await
        }
    }
}
