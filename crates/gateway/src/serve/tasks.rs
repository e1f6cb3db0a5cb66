//! Background tasks of the gateway: their names and supervision.
//!
//! A panic ends its task only. The process goes on, because operations must; the log names the work that is not done
//! until the next start.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_engine::ServingConfig;
use holdfast_store::verify::AuditOptions;
use holdfast_webhooks::Deliverer;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::app::App;
use super::jobs::JobRunner;
use super::reload::Reloader;
use super::signals::Signals;
use super::{facts, roots, summing, trail};

/// Background task, with its name in the log.
pub(super) type NamedTask = (&'static str, BoxFuture<'static, ()>);

/// Interval between two upkeeps of the metrics: until then histograms keep every sample.
const UPKEEP: Duration = Duration::from_secs(5);

impl App {
    /// Tasks of their own: a connection and a signal never wait for a reload or a job. SIGHUP means a reload if there
    /// is a file to read again.
    pub(super) fn tasks(self: &Arc<Self>, signals: &mut Signals) -> Vec<NamedTask> {
        let store = || self.store.clone();
        let end = || self.shutdown.clone();
        let mut tasks: Vec<NamedTask> = vec![
            ("jobs", self.job_runner().run(end()).boxed()),
            ("audit log", trail::run(store(), self.accounts.clone(), end()).boxed()),
            ("webhooks", self.deliverer().run(end()).boxed()),
            ("settings", self.settings.keeper(store(), self.node.clone()).run(end()).boxed()),
            ("facts", facts::run(store(), end()).boxed()),
            ("usage sums", summing::run(store(), end()).boxed()),
            ("ledger roots", roots::run(store(), Arc::clone(&self.signer), end()).boxed()),
            ("providers", prepare(self.engine.serving(), end()).boxed()),
            ("metrics", run_metrics_upkeep(self.metrics.clone(), end()).boxed()),
        ];
        let reloader = Reloader::new(self);
        let reloader = reloader.and_then(|reloader| Some((reloader, signals.take_hangup()?)));
        if let Some((reloader, hangup)) = reloader {
            tasks.push(("configuration", reloader.run(hangup, end()).boxed()));
        }
        tasks
    }

    /// Runner of jobs, as this node.
    fn job_runner(&self) -> JobRunner {
        JobRunner {
            store: self.store.clone(),
            owner: self.node.clone(),
            pending: self.engine.pending_work(),
            options: AuditOptions {
                secrets: self.secrets.all().into(),
                ..AuditOptions::keeping(self.config.retention.results)
            },
        }
    }

    /// Deliverer of events to webhooks, as this node.
    fn deliverer(&self) -> Deliverer {
        Deliverer {
            deliveries: Arc::new(self.store.clone()),
            sender: Arc::clone(&self.receivers.sender),
            allowed: self.receivers.allowed.clone(),
            secrets: self.secrets.all().into(),
            owner: self.node.clone(),
            pending: self.engine.pending_work(),
        }
    }
}

/// Runs the tasks until each has ended.
pub(super) async fn run(tasks: Vec<NamedTask>) {
    let mut running = JoinSet::new();
    for (task, work) in tasks {
        running.spawn(async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                tracing::error!(task, "a task panicked: its work is not done until the next start");
            }
        });
    }
    while running.join_next().await.is_some() {}
}

/// Lets each provider read from its server the properties that calls depend on.
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

/// Keeps the histograms small.
async fn run_metrics_upkeep(metrics: PrometheusHandle, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(UPKEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => metrics.run_upkeep(),
            () = shutdown.cancelled() => return,
        }
    }
}
