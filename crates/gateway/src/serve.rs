//! `holdfast serve`: opens the parts of a gateway, runs it until a signal ends it, and lets operations finish.
//!
//! ```text
//! App::open ─▶ tasks, listeners ─▶ signal ─▶ depart ─▶ drain ─▶ connections end ─▶ spans exported ─▶ store closed
//! ```
//!
//! End: for `server.drain_delay` the process is not ready and serves everything, then admission stops, operations have
//! `server.drain` to finish, then connections end, then the database is closed. A second signal ends the process at
//! once; the next start reaps the operations that ran.
//!
//! The process also ends by itself, with a failure, if it must not go on: its writer ended, another process took its
//! node name, or the database file was replaced.

mod administration;
mod app;
mod banner;
mod facts;
mod files;
mod jobs;
mod listeners;
mod prices;
mod reload;
mod roots;
mod settings;
mod signals;
mod start;
mod summing;
mod supervisor;
mod tasks;
mod trail;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use holdfast_config::Config;
use holdfast_domain::ErrorChain;
use holdfast_http::Admin;
use sd_notify::NotifyState;

use self::administration::Doors;
use self::app::App;
pub(crate) use self::files::allow_sidecar;
pub(crate) use self::listeners::listen;
use self::listeners::{Addresses, Listeners};
pub(crate) use self::signals::Signals;
use crate::telemetry;
use holdfast_cli::failure::{CommandFailure, Status};
use holdfast_cli::output::line;

/// Time after the delay in which requests on their way are still served: their senders did not know of the end.
const LINGER: Duration = Duration::from_secs(2);
/// Time for the database to close. Every answer that was sent is committed by then: a time-out
/// gives up the folding of the log, and endings that the store did not take, which the next start
/// sees to.
const CLOSE: Duration = Duration::from_secs(10);

/// Serves until SIGTERM, SIGINT (without a configuration file also SIGHUP) or another process of its name; a second
/// signal ends it at once. A file whose ledger was copied to a server is refused, unless it is served `again`.
pub(crate) async fn run(config: Config, again: bool) -> Result<(), CommandFailure> {
    let mut signals = Signals::listen().context("signals cannot be received")?;
    let (app, listeners, exporter) = App::open(config, again).await?;
    let app = Arc::new(app);
    let doors = Doors::open(&app);
    let tasks = app.tasks(&mut signals);
    // Last: scripts wait for this line, and connect after it.
    announce(&app.addresses)?;
    let mut serving = pin!(async { tokio::join!(app.listen(listeners, doors), tasks::run(tasks)) });
    let ended = tokio::select! {
        ((), ()) = &mut serving => return Err(anyhow!("the listeners ended by themselves").into()),
        ended = app.wait_for_end(&mut signals) => ended,
    };
    supervisor::notify(NotifyState::Stopping);
    let (delay, patience) = (app.config.server.drain_delay, app.config.server.drain);
    tracing::info!(?delay, ?patience, "draining");
    // A second signal must end even a drain that hangs, so both are awaited side by side.
    let drained = async {
        // Answers go out while operations finish; connections end after them.
        let (_served, failure) = tokio::join!(serving, async {
            let failure = if ended.is_ok() { app.depart().await } else { None };
            app.drain().await;
            failure
        });
        // After the connections, whose requests have ended with them.
        if let Some(exporter) = exporter {
            exporter.close().await;
        }
        app.close().await;
        failure
    };
    tokio::select! {
        failure = drained => failure.map_or(ended, Err),
        () = signals.next() => {
            tracing::error!("a second signal: ended at once; the next start ends the running operations");
            Err(CommandFailure::Told(Status::Failed))
        }
    }
}

impl App {
    /// Serves the listeners until the shutdown.
    async fn listen(&self, listeners: Listeners, doors: Doors) {
        let public = holdfast_http::serve(listeners.public, self.api.clone());
        let holders = async {
            if let (Some(listener), Some(pages)) = (listeners.console, doors.holders) {
                holdfast_http::serve_holders(listener, pages, self.shutdown.clone()).await;
            }
        };
        let admin = async {
            if let (Some(listener), Some(settings)) = (listeners.admin, &self.config.admin) {
                let (metrics, store) = (self.metrics.clone(), self.store.clone());
                let admin = Admin {
                    token: settings.token.expose().to_owned(),
                    metrics: telemetry::rendered(metrics, store, Arc::clone(&self.engine)),
                    engine: Arc::clone(&self.engine),
                    administration: doors.administration,
                };
                holdfast_http::serve_admin(listener, admin, self.shutdown.clone()).await;
            }
        };
        let nodes = async {
            if let Some(listener) = listeners.node {
                let (engine, live) = (Arc::clone(&self.engine), Arc::clone(&self.live));
                holdfast_http::serve_nodes(listener, engine, live, self.shutdown.clone()).await;
            }
        };
        tokio::join!(public, admin, holders, nodes);
    }

    /// Waits for the end: `Ok` after a signal, a failure if the process must not go on.
    async fn wait_for_end(&self, signals: &mut Signals) -> Result<(), CommandFailure> {
        tokio::select! {
            () = signals.next() => Ok(()),
            failure = self.wait_for_failure() => Err(failure),
        }
    }

    /// Directs new requests to other nodes, while everything is served: for the delay by readiness and the
    /// answers, then for a moment more, because some are on their way. Ends if the process must not go on.
    async fn depart(&self) -> Option<CommandFailure> {
        if self.config.server.drain_delay.is_zero() {
            return None;
        }
        self.engine.announce_end();
        self.departure.announce();
        let served = async {
            tokio::time::sleep(self.config.server.drain_delay).await;
            self.departure.close_idle();
            tokio::time::sleep(LINGER).await;
        };
        tokio::select! {
            () = served => None,
            failure = self.wait_for_failure() => Some(failure),
        }
    }

    /// Completes if the process must not go on.
    async fn wait_for_failure(&self) -> CommandFailure {
        tokio::select! {
            () = self.store.closed() => CommandFailure::Failed(anyhow!(
                "the database is not written any more: its writer has ended by itself"
            )),
            () = self.engine.superseded() => CommandFailure::Failed(anyhow!(
                "another process has this one's node name: two processes must not share a name"
            )),
            lost = self.lock.lost() => {
                tracing::error!(%lost, "the served database is not the opened one: no more \
                    requests are accepted");
                CommandFailure::Failed(anyhow::Error::from(lost))
            }
        }
    }

    /// Lets operations finish, then their connections.
    async fn drain(&self) {
        self.engine.stop_admitting();
        let finished = self.engine.drain(self.config.server.drain).await;
        tracing::info!(finished, "operations have ended");
        // After the operations: their answers go out on connections that this ends.
        self.shutdown.cancel();
    }

    async fn close(&self) {
        // Requests were refused until their connections ended.
        self.engine.flush_statistics().await;
        match tokio::time::timeout(CLOSE, self.store.clone().close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %ErrorChain(&error), "the database was not closed cleanly: \
                    no data is lost");
            }
            Err(_elapsed) => tracing::warn!("the database does not close: no data is lost"),
        }
        tracing::info!("ended");
    }
}

/// Prints the addresses for callers, once they are open, and notifies the supervisor.
fn announce(addresses: &Addresses) -> Result<(), CommandFailure> {
    if let Some(admin) = addresses.admin {
        print(&format!("holdfast admin listens on http://{admin}"))?;
    }
    if let Some(console) = addresses.console {
        print(&format!("holdfast console listens on http://{console}"))?;
    }
    if let Some(node) = addresses.node {
        print(&format!("holdfast node listens on http://{node}"))?;
    }
    print(&format!("holdfast listens on http://{}", addresses.public))?;
    tracing::info!(listen = %addresses.public, version = env!("CARGO_PKG_VERSION"), "serving");
    supervisor::notify(NotifyState::Ready);
    Ok(())
}

/// Prints a line; a server goes on if its output is closed.
pub(crate) fn print(text: &str) -> Result<(), CommandFailure> {
    match line(text) {
        Err(CommandFailure::NobodyReads) => Ok(()),
        printed => printed,
    }
}
