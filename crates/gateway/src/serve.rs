//! `holdfast serve`: puts the process together, runs it until it is told to end, and lets
//! operations finish.
//!
//! Start, in this order: signals, the lock of the database, listeners, the store, secrets, prices,
//! the engine. Each step may refuse, and the early ones change nothing, so that a taken port or a
//! second process on one file leaves no trace.
//!
//! End: for `server.drain_delay` the process says that it is not ready and serves everything, then
//! admission stops, operations have `server.drain` to finish, then connections end, then the database is
//! closed. A second signal ends the process at once; the next start reaps what ran.
//!
//! The process also ends by itself, with a failure, when it must not go on: its writer ended,
//! another process took its node name, or the database file was replaced.

mod administration;
mod facts;
mod files;
mod greeting;
mod jobs;
mod listeners;
mod reload;
mod settings;
mod signals;
mod start;
mod summing;
mod supervisor;
mod trail;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use holdfast_accounts::Accounts;
use holdfast_domain::ErrorChain;
use holdfast_domain::operation::Node;
use holdfast_engine::{Engine, Secrets, ServingConfig};
use holdfast_http::{Admin, Departure, LiveOptions, Ports, PublicApi};
use holdfast_store::verify::AuditOptions;
use holdfast_store::{ServeLock, Store};
use holdfast_webhooks::{Deliverer, Receivers};
use metrics_exporter_prometheus::PrometheusHandle;
use sd_notify::NotifyState;
use tokio::signal::unix::Signal;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use self::administration::{DoorParts, Doors, EngineOffers};
pub(crate) use self::files::allow_sidecar;
use self::jobs::JobRunner;
pub(crate) use self::listeners::listen;
use self::listeners::{Addresses, Listeners};
use self::reload::Reloader;
use self::settings::{SettingsKeeper, settings};
pub(crate) use self::signals::Signals;
pub(crate) use self::start::receivers;
use crate::accounts;
use crate::database;
use crate::failure::{CommandFailure, Status};
use crate::output::line;
use crate::reports::StoreReports;
use crate::telemetry::{self, Exporter};
use holdfast_config::Config;

/// Between two upkeeps of the metrics: until then histograms keep every sample.
const UPKEEP: Duration = Duration::from_secs(5);
/// Time after the delay in which what is on its way is served still: whoever sent it did not know.
const LINGER: Duration = Duration::from_secs(2);
/// Time for the database to close. Every answer that was sent is committed by then: a time-out
/// gives up the folding of the log, and endings that the store did not take, which the next start
/// sees to.
const CLOSE: Duration = Duration::from_secs(10);

/// Serves until SIGTERM, SIGINT (without a configuration file also SIGHUP) or another process of
/// its name; a second signal ends it at once.
pub(crate) async fn run(config: Config) -> Result<(), CommandFailure> {
    let log = telemetry::log(&config.log)?;
    let metrics = telemetry::metrics()?;
    start::guard_secrets(&config);
    let mut signals = Signals::listen().context("signals cannot be received")?;
    start::refuse_missing(&config).context("serve was not started")?;
    // Before anything is written: it proves that nobody else serves this file. A server's database
    // may have several.
    let lock = Arc::new(ServeLock::take(&config.database).context("serve was not started")?);
    let listeners = Listeners::bind(&config)?;
    let addresses = listeners.addresses()?;
    let Addresses { public, admin, node, .. } = addresses;
    let store = start::store(&config, Arc::clone(&lock)).await?;
    let secrets = database::secrets(&config, &store, |told| tracing::error!("{told}")).await?;
    start::pin_prices(&config, &store).await?;
    if config.file.is_none() {
        greeting::first_start(&config, &store, &secrets, (public, admin)).await?;
    }
    // Made before the engine takes the node's name: a provider that cannot be made leaves no lease behind.
    let serving = start::serving(&config, None)?;
    let live = Arc::new(LiveOptions::new(start::listening(&config)));
    let receivers = receivers(&config)?;
    let accounts = accounts::bounded(accounts::over(&store, &secrets), &config)
        .with_support_refunds(config.roles.support_refunds.clone())
        .judging(Arc::new(receivers.clone()));
    let identity = start::Identity::new(&config, node)?;
    let deliverer = deliverer(&store, &receivers, &secrets, &identity.node);
    let jobs = job_runner(&config, &store, &secrets, &identity.node);
    let (tracer, exporter) = start::traces(&config, &identity)?;
    let (source, settings) =
        settings(&config, secrets.first().settings_key(), &store, &identity.node);
    let engine = start::engine(&config, &store, secrets, identity, serving).await?;
    let accounts = accounts.serving(Arc::new(EngineOffers(Arc::clone(&engine))));
    let shutdown = CancellationToken::new();
    let departure = Departure::ending_with(&shutdown);
    let (reports, on) = (Arc::new(StoreReports(store.clone())), Arc::clone(&live));
    let ports = Ports { engine: Arc::clone(&engine), reports, tracer };
    let api = PublicApi::new(ports, on, departure.clone());
    let parts = DoorParts {
        config: &config,
        accounts: accounts.clone(),
        addresses: &addresses,
        api: &api,
        engine: &engine,
    };
    let doors = parts.open();
    let gateway = Gateway {
        drain: config.server.drain,
        drain_delay: config.server.drain_delay,
        departure,
        admin_token: config.admin.as_ref().map(|admin| admin.token.expose().to_owned()),
        doors,
        api,
        store,
        engine,
        live,
        metrics,
        shutdown,
        lock,
    };
    let parts = reload::LiveParts {
        engine: Arc::clone(&gateway.engine),
        http: Arc::clone(&gateway.live),
        allowed: receivers.allowed,
        log,
        settings: source,
    };
    let reloader = Reloader::new(config, gateway.store.clone(), parts);
    let reloading = reloader.and_then(|reloader| Some((reloader, signals.take_hangup()?)));
    // Last: scripts wait for this line, and connect after it.
    announce(&addresses)?;
    let beside = Beside { reloading, jobs, deliverer, accounts, settings };
    gateway.run(listeners, beside, exporter, &mut signals).await
}

/// Runner of jobs, as this node.
fn job_runner(config: &Config, store: &Store, secrets: &Secrets, node: &Node) -> JobRunner {
    JobRunner {
        store: store.clone(),
        owner: node.clone(),
        options: AuditOptions {
            secrets: secrets.all().into(),
            ..AuditOptions::keeping(config.retention.results)
        },
    }
}

/// Whoever delivers events to webhooks, as this node.
fn deliverer(store: &Store, receivers: &Receivers, secrets: &Secrets, node: &Node) -> Deliverer {
    Deliverer {
        deliveries: Arc::new(store.clone()),
        sender: Arc::clone(&receivers.sender),
        allowed: receivers.allowed.clone(),
        secrets: secrets.all().into(),
        owner: node.clone(),
    }
}

/// Work beside the listeners, each a task of its own.
struct Beside {
    reloading: Option<(Reloader, Signal)>,
    jobs: JobRunner,
    accounts: Accounts,
    deliverer: Deliverer,
    settings: SettingsKeeper,
}

/// Has each provider learn of its server what calls depend on.
async fn prepare(serving: Arc<ServingConfig>, shutdown: CancellationToken) {
    let preparing = async {
        for provider in serving.providers.values() {
            provider.prepare().await;
        }
    };
    tokio::select! {
        () = preparing => {}
        () = shutdown.cancelled() => {}
    }
}

/// A running gateway: everything that serving, draining and closing need.
struct Gateway {
    drain: Duration,
    drain_delay: Duration,
    departure: Departure,
    admin_token: Option<String>,
    doors: Doors,
    api: PublicApi,
    store: Store,
    lock: Arc<ServeLock>,
    engine: Arc<Engine>,
    live: Arc<LiveOptions>,
    metrics: PrometheusHandle,
    /// Ends the listeners, after the operations have ended.
    shutdown: CancellationToken,
}

impl Gateway {
    async fn run(
        self,
        listeners: Listeners,
        beside: Beside,
        exporter: Option<Exporter>,
        signals: &mut Signals,
    ) -> Result<(), CommandFailure> {
        let mut serving = pin!(self.serve(listeners, beside));
        let ended = tokio::select! {
            () = &mut serving => return Err(anyhow!("the listeners ended by themselves").into()),
            ended = self.wait_for_end(signals) => ended,
        };
        supervisor::tell(NotifyState::Stopping);
        tracing::info!(delay = ?self.drain_delay, patience = ?self.drain, "draining");
        // A second signal must end even a drain that hangs, so both are awaited side by side.
        let drained = async {
            // Answers go out while operations finish; connections end after them.
            let ((), failure) = tokio::join!(serving, async {
                let failure = if ended.is_ok() { self.depart().await } else { None };
                self.drain().await;
                failure
            });
            // After the connections, whose requests have ended with them.
            if let Some(exporter) = exporter {
                exporter.close().await;
            }
            self.close().await;
            failure
        };
        tokio::select! {
            failure = drained => failure.map_or(ended, Err),
            () = signals.next() => {
                tracing::error!("a second signal: ended at once, what ran is reaped at the next start");
                Err(CommandFailure::Told(Status::Failed))
            }
        }
    }

    /// Serves the listeners until `shutdown`, takes other configurations, does jobs, delivers to
    /// webhooks, and keeps the metrics small.
    async fn serve(&self, listeners: Listeners, beside: Beside) {
        let public = holdfast_http::serve(listeners.public, self.api.clone());
        let holders = async {
            if let (Some(listener), Some(pages)) = (listeners.console, &self.doors.holders) {
                holdfast_http::serve_holders(listener, pages.clone(), self.shutdown.clone()).await;
            }
        };
        let admin = async {
            if let (Some(listener), Some(token)) = (listeners.admin, &self.admin_token) {
                let (metrics, store) = (self.metrics.clone(), self.store.clone());
                let metrics = telemetry::rendered(metrics, store, Arc::clone(&self.engine));
                let engine = Arc::clone(&self.engine);
                let administration = self.doors.administration.clone();
                let admin = Admin { token: token.clone(), metrics, engine, administration };
                holdfast_http::serve_admin(listener, admin, self.shutdown.clone()).await;
            }
        };
        let nodes = async {
            if let Some(listener) = listeners.node {
                let (engine, live) = (Arc::clone(&self.engine), Arc::clone(&self.live));
                holdfast_http::serve_nodes(listener, engine, live, self.shutdown.clone()).await;
            }
        };
        // Tasks of their own: what is accepted and what is signalled never waits for a reload or a
        // job.
        let mut tasks = JoinSet::new();
        if let Some((reloader, hangup)) = beside.reloading {
            tasks.spawn(reloader.run(hangup, self.shutdown.clone()));
        }
        tasks.spawn(beside.jobs.run(self.shutdown.clone()));
        let trail = trail::run(self.store.clone(), beside.accounts, self.shutdown.clone());
        tasks.spawn(trail);
        tasks.spawn(beside.deliverer.run(self.shutdown.clone()));
        tasks.spawn(beside.settings.run(self.shutdown.clone()));
        tasks.spawn(facts::run(self.store.clone(), self.shutdown.clone()));
        tasks.spawn(summing::run(self.store.clone(), self.shutdown.clone()));
        tasks.spawn(prepare(self.engine.serving(), self.shutdown.clone()));
        let tasks = async { while tasks.join_next().await.is_some() {} };
        tokio::join!(public, admin, holders, nodes, tasks, self.upkeep());
    }

    async fn upkeep(&self) {
        let mut ticks = tokio::time::interval(UPKEEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.metrics.run_upkeep(),
                () = self.shutdown.cancelled() => return,
            }
        }
    }

    /// Waits for the end: `Ok` after a signal, a failure where the process must not go on.
    async fn wait_for_end(&self, signals: &mut Signals) -> Result<(), CommandFailure> {
        tokio::select! {
            () = signals.next() => Ok(()),
            failure = self.wait_for_failure() => Err(failure),
        }
    }

    /// Sends whoever comes elsewhere, while everything is served: for the delay by readiness and the
    /// answers, then for a moment more, because some are on their way. Ends where the process must not
    /// go on.
    async fn depart(&self) -> Option<CommandFailure> {
        if self.drain_delay.is_zero() {
            return None;
        }
        self.engine.announce_end();
        self.departure.announce();
        let served = async {
            tokio::time::sleep(self.drain_delay).await;
            self.departure.close_idle();
            tokio::time::sleep(LINGER).await;
        };
        tokio::select! {
            () = served => None,
            failure = self.wait_for_failure() => Some(failure),
        }
    }

    /// Completes where the process must not go on.
    async fn wait_for_failure(&self) -> CommandFailure {
        tokio::select! {
            () = self.store.closed() => CommandFailure::Failed(anyhow!(
                "the database is written no more: its writer has ended by itself"
            )),
            () = self.engine.superseded() => CommandFailure::Failed(anyhow!(
                "another process has taken this one's node name: two must not run as one"
            )),
            lost = self.lock.lost() => {
                tracing::error!(%lost, "what is served is not what was opened: no more requests are let in");
                CommandFailure::Failed(anyhow::Error::from(lost))
            }
        }
    }

    /// Lets operations finish, then their connections.
    async fn drain(&self) {
        self.engine.stop_admitting();
        let finished = self.engine.drain(self.drain).await;
        tracing::info!(finished, "operations have ended");
        // After the operations: their answers go out on connections that this ends.
        self.shutdown.cancel();
    }

    async fn close(&self) {
        match tokio::time::timeout(CLOSE, self.store.clone().close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %ErrorChain(&error), "the database was not closed in order: nothing is lost");
            }
            Err(_elapsed) => tracing::warn!("the database does not close: nothing is lost"),
        }
        tracing::info!("ended");
    }
}

/// Says where callers connect, once they can, and has the supervisor know.
fn announce(addresses: &Addresses) -> Result<(), CommandFailure> {
    if let Some(admin) = addresses.admin {
        say(&format!("holdfast admin listens on http://{admin}"))?;
    }
    if let Some(console) = addresses.console {
        say(&format!("holdfast console listens on http://{console}"))?;
    }
    if let Some(node) = addresses.node {
        say(&format!("holdfast node listens on http://{node}"))?;
    }
    say(&format!("holdfast listens on http://{}", addresses.public))?;
    tracing::info!(listen = %addresses.public, version = env!("CARGO_PKG_VERSION"), "serving");
    supervisor::tell(NotifyState::Ready);
    Ok(())
}

/// Prints a line; a server goes on when nobody reads it.
pub(crate) fn say(text: &str) -> Result<(), CommandFailure> {
    match line(text) {
        Err(CommandFailure::NobodyReads) => Ok(()),
        printed => printed,
    }
}
