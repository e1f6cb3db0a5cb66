//! `holdfast sidecar`: arguments into options, the listener, and the end by a signal.
//!
//! Mistakes of the arguments are reported before a socket is bound or a file created.

use std::path::Path;

use anyhow::{Context, anyhow};
use holdfast_config::{LogConfig, LogFormat};
use holdfast_sidecar::{HangUpPolicy, IdenticalCalls, JournalOptions, Options, Sidecar};
use tokio_util::sync::CancellationToken;

use crate::core_dump;
use crate::serve::{Signals, allow_sidecar, listen, print};
use crate::telemetry;
use holdfast_cli::arguments::{self, HangUp, Identical};
use holdfast_cli::failure::{CommandFailure, Status};

/// Name that stands for no journal.
const NO_JOURNAL: &str = "none";

/// Serves until SIGTERM, SIGINT or SIGHUP (unless it was ignored at the start, as by `nohup`), then lets answers in flight finish; a second signal ends
/// it at once.
pub(crate) async fn run(order: arguments::Sidecar) -> Result<(), CommandFailure> {
    let address = order.listen;
    if !address.ip().to_canonical().is_loopback() && !order.listen_anyway {
        return Err(CommandFailure::Usage(anyhow!(
            "--listen {address} is reached from other machines, and the clients' credentials would cross \
             the network in plain text: listen on 127.0.0.1 or [::1], or add --listen-anyway"
        )));
    }
    let options = options(order)?;
    telemetry::log(&LogConfig { format: LogFormat::Pretty, level: "info".to_owned() })?;
    if !options.upstream.has_api_path() {
        tracing::warn!(
            "the URL of --upstream does not end with /v1, so that clients get 404 unless the gateway's API is there: \
             add /v1 to it"
        );
    }
    core_dump::forbid();
    allow_sidecar();
    let mut signals = Signals::listen().context("signals cannot be received")?;
    // Before the journal is made: a taken port leaves no trace.
    let listener = listen(address).with_context(|| {
        format!("cannot listen on {address}: set --listen to an address that is free")
    })?;
    let address = listener.local_addr().context("no local address")?;
    let sidecar = Sidecar::open(options).context("the sidecar was not started")?;
    print(&format!("holdfast sidecar listens on http://{address}"))?;
    let shutdown = CancellationToken::new();
    let mut serving = std::pin::pin!(holdfast_sidecar::serve(listener, sidecar, shutdown.clone()));
    tokio::select! {
        ended = &mut serving => return Ok(ended.context("the sidecar ended by itself")?),
        () = signals.next() => shutdown.cancel(),
    }
    tracing::info!("draining");
    tokio::select! {
        ended = serving => Ok(ended.context("the sidecar ended by itself")?),
        () = signals.next() => Err(CommandFailure::Told(Status::Failed)),
    }
}

fn options(order: arguments::Sidecar) -> Result<Options, CommandFailure> {
    let proxies = holdfast_config::proxies()
        .map_err(|(name, why)| CommandFailure::Usage(anyhow!("{name} is {why}")))?;
    let has_journal = order.journal != Path::new(NO_JOURNAL);
    if order.sync && !has_journal {
        return Err(CommandFailure::Usage(anyhow!(
            "--sync requires a journal, and --journal none has none: remove one of them"
        )));
    }
    let journal = JournalOptions { path: order.journal, is_synced: order.sync };
    Ok(Options {
        upstream: order.upstream,
        proxies,
        journal: has_journal.then_some(journal),
        identical: match order.identical {
            Identical::New => IdenticalCalls::New,
            Identical::Attach => IdenticalCalls::Attach,
        },
        window: order.window.duration(),
        hang_up: match order.on_hangup {
            HangUp::Run => HangUpPolicy::Run,
            HangUp::Cancel => HangUpPolicy::Cancel,
        },
        patience: order.patience.duration(),
        hosts: order.hosts,
        origins: order.origins,
    })
}
