//! The gateway process: arguments, commands, wiring, telemetry. Nothing is decided here.

mod accounts;
mod cli;
mod command;
mod core_dump;
mod database;
mod door;
mod failure;
mod node;
mod output;
mod provider;
mod reports;
mod secret;
mod serve;
mod telemetry;
mod view;

use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use tokio::runtime::Builder;

use crate::cli::{AdminCommand, Cli, Command, Ledger};
use crate::failure::{CommandFailure, Status};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Time that blocking work which nobody awaits may hold up the end of the process.
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
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => {
            let code = u8::try_from(answer.exit_code()).unwrap_or(2);
            return if answer.print().is_ok() { code.into() } else { Status::Failed.into() };
        }
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                output::note(&format!("error: {message}"));
            }
            failure.exit_code()
        }
    }
}

/// A runtime of one thread on one core, where sharing work between threads only costs time; else
/// one thread a core.
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
    let outcome = runtime.block_on(command::run(cli));
    // A look at a file system that hangs must not keep the process from its end.
    runtime.shutdown_timeout(LINGER);
    outcome
}
