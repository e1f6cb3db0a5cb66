//! Parts of a gateway, opened once in the order of what each leaves behind.
//!
//! ```text
//! log, metrics ─▶ lock ─▶ sockets ─▶ store ─▶ secrets ─▶ prices ─▶ first start ─▶ providers ─▶ engine ─▶ API
//! ```
//!
//! Each part may refuse, and then no later one is opened: a taken port or a second process on one file leaves no trace.
//! The engine takes the node's name, so it comes after every provider could be made. No connection is accepted here.

use std::sync::Arc;

use anyhow::Context;
use holdfast_accounts::Accounts;
use holdfast_config::Config;
use holdfast_domain::operation::Node;
use holdfast_engine::{Engine, Secrets};
use holdfast_http::{Departure, LiveOptions, Ports, PublicApi};
use holdfast_receipts::key::Signer;
use holdfast_store::{ServeLock, Store};
use holdfast_webhooks::Receivers;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;

use super::listeners::{Addresses, Listeners};
use super::settings::SettingsSource;
use super::{banner, prices, start};
use crate::reports::StoreReports;
use crate::telemetry::{self, Exporter, LogLevel};
use holdfast_bootstrap::{accounts, database};
use holdfast_cli::failure::CommandFailure;

/// Gateway of one process: everything that serving, reloading, draining and closing share.
pub(super) struct App {
    /// Configuration of the start.
    pub(super) config: Config,
    pub(super) addresses: Addresses,
    pub(super) log: LogLevel,
    pub(super) metrics: PrometheusHandle,
    pub(super) lock: Arc<ServeLock>,
    pub(super) store: Store,
    pub(super) secrets: Secrets,
    pub(super) signer: Arc<Signer>,
    pub(super) node: Node,
    pub(super) receivers: Receivers,
    pub(super) settings: SettingsSource,
    pub(super) accounts: Accounts,
    pub(super) engine: Arc<Engine>,
    /// Limits of the public listener, which a reload replaces.
    pub(super) live: Arc<LiveOptions>,
    pub(super) api: PublicApi,
    pub(super) departure: Departure,
    /// Ends the listeners and the tasks, after the operations have ended.
    pub(super) shutdown: CancellationToken,
}

impl App {
    /// Opens the parts. The run consumes the sockets and the exporter of spans, so they are returned beside them.
    pub(super) async fn open(
        config: Config,
        again: bool,
    ) -> Result<(Self, Listeners, Option<Exporter>), CommandFailure> {
        let log = telemetry::log(&config.log)?;
        let metrics = telemetry::metrics()?;
        start::report_faults();
        start::guard_secrets(&config);
        start::refuse_missing(&config).context("serve was not started")?;
        // Before anything is written: the lock of a file proves that no other process serves it. A server's database
        // may have several.
        let lock = Arc::new(ServeLock::take(&config.database).context("serve was not started")?);
        let listeners = Listeners::bind(&config)?;
        // After the ports: a start that fails for one of them must not take the mark away.
        start::refuse_copied(&config, again).context("serve was not started")?;
        let addresses = listeners.addresses()?;
        let store = start::store(&config, Arc::clone(&lock)).await?;
        let secrets =
            database::secrets(&config, &store, |warning| tracing::error!("{warning}")).await?;
        prices::pin(&config, &store).await?;
        if config.file.is_none() {
            let reached_at = (addresses.public, addresses.admin);
            banner::first_start(&config, &store, &secrets, reached_at).await?;
        }
        // Before the engine takes the node's name: a provider that cannot be made leaves no lease behind.
        let serving = start::serving(&config, None)?;
        let live = Arc::new(LiveOptions::new(start::listening(&config)));
        let receivers = holdfast_bootstrap::receivers(&config)?;
        let node = start::node(&config)?;
        let (tracer, exporter) = start::traces(&config, &node)?;
        let settings = SettingsSource::new(&config, secrets.first().settings_key());
        let engine = start::engine((&config, &store), &secrets, &node, addresses.node, serving);
        let engine = engine.await?;
        let accounts = accounts::configured(accounts::over(&store, &secrets), &config)
            .with_support_refunds(config.roles.support_refunds.clone())
            .judging(Arc::new(receivers.clone()))
            .serving(Arc::new(start::EngineOffers(Arc::clone(&engine))));
        let shutdown = CancellationToken::new();
        let departure = Departure::ending_with(&shutdown);
        let reports = Arc::new(StoreReports(store.clone()));
        let signer =
            Arc::new(start::signer(&store, &secrets).await.context("serve was not started")?);
        let ports =
            Ports { engine: Arc::clone(&engine), reports, signer: Arc::clone(&signer), tracer };
        let api = PublicApi::new(ports, Arc::clone(&live), departure.clone());
        let app = Self {
            config,
            addresses,
            log,
            metrics,
            lock,
            store,
            secrets,
            signer,
            node,
            receivers,
            settings,
            accounts,
            engine,
            live,
            api,
            departure,
            shutdown,
        };
        Ok((app, listeners, exporter))
    }
}
