//! How an engine starts and how it drains.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backoff::BackOff;
use crate::callers::{Callers, Secrets};
use crate::metrics::Metrics;
use crate::nodes::{Membership, StartError};
use crate::options::Options;
use crate::relay::Relays;
use crate::results::ResultLimiter;
use crate::route_complaints::RouteComplaints;
use crate::tape::RunRegistry;
use crate::views::ReadinessCache;
use crate::{Engine, Ports};

impl Engine {
    /// Takes the node's name and starts heartbeat and reconciler.
    ///
    /// # Errors
    ///
    /// A [`StartError`] where the name cannot be taken.
    pub async fn start(
        ports: Ports,
        secrets: Secrets,
        options: Options,
    ) -> Result<Arc<Self>, StartError> {
        let metrics = Metrics::begin();
        let node = enter(&ports, &options).await?;
        let engine = Arc::new(Self {
            ports,
            secrets: Arc::new(secrets),
            kept: Mutex::new(options.results),
            results: ResultLimiter::new(options.result_bytes_per_key, options.result_bytes),
            relays: options.relay.clone().map(Relays::new),
            options,
            pause: BackOff,
            callers: Callers::default(),
            running: RunRegistry::default(),
            answers: Arc::default(),
            route_complaints: RouteComplaints::default(),
            metrics,
            readable: ReadinessCache::default(),
            node,
            tasks: TaskTracker::new(),
            row_poller: crate::row_poller::RowPoller::default(),
            keepers: TaskTracker::new(),
            background: CancellationToken::new(),
            has_lost_commits: AtomicBool::new(false),
            draining: CancellationToken::new(),
            cutting: CancellationToken::new(),
        });
        let beating = keep("heartbeat", Arc::clone(&engine), Self::beat);
        match &engine.options.heartbeat_runtime {
            Some(runtime) => engine.keepers.spawn_on(beating, runtime),
            None => engine.keepers.spawn(beating),
        };
        engine.keepers.spawn(keep("reconciler", Arc::clone(&engine), Self::reconcile));
        Ok(engine)
    }

    /// Completes when another process has taken this one's name: it has to drain.
    pub async fn superseded(&self) {
        self.node.superseded.cancelled().await;
    }

    /// Keeps sealed results for this long from now on, also those that are kept already.
    pub fn keep_results(&self, time: Duration) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = time;
    }

    /// How long sealed results are kept now.
    pub(crate) fn results(&self) -> Duration {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many requests wait for the end of an operation that runs here.
    #[must_use]
    pub fn waiters(&self) -> usize {
        self.running.waiters().saturating_add(self.row_poller.waiters())
    }

    /// Takes nothing new from now on.
    pub fn stop_admitting(&self) {
        self.draining.cancel();
    }

    /// Lets what runs finish until `patience` ends, cuts the rest, commits every ending, and gives
    /// the name back. Says whether everything came to its end by itself.
    pub async fn drain(&self, patience: Duration) -> bool {
        self.stop_admitting();
        self.tasks.close();
        let finished = tokio::time::timeout(patience, self.tasks.wait()).await.is_ok();
        if !finished {
            tracing::warn!(
                operations = self.tasks.len(),
                "drain deadline: cutting what still runs"
            );
            self.running.stop_all();
            self.cutting.cancel();
            let settled = tokio::time::timeout(Options::COMMIT_WAIT, self.tasks.wait()).await;
            if settled.is_err() {
                let operations = self.tasks.len();
                tracing::error!(operations, "the store did not take every ending: reaped later");
            }
        }
        self.background.cancel();
        self.keepers.close();
        self.keepers.wait().await;
        let left = self.ports.nodes.leave(self.node.node());
        match tokio::time::timeout(Options::COMMIT_WAIT, left).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "the node's row was not removed: its lease will end");
            }
            Err(_elapsed) => tracing::warn!("the store is silent: the node's lease will end"),
        }
        finished
    }

    /// Whether this process is about to end.
    pub(crate) fn takes_nothing_new(&self) -> bool {
        self.draining.is_cancelled() || self.node.superseded.is_cancelled()
    }
}

/// Takes the node's name where its heartbeats will run: a connection to the store that is made there is
/// awaited there.
async fn enter(ports: &Ports, options: &Options) -> Result<Membership, StartError> {
    let (nodes, own) = (Arc::clone(&ports.nodes), options.clone());
    let entering = async move {
        let membership = Membership::enter(&*nodes, &own).await?;
        if let Some(relay) = &own.relay {
            let told = nodes.advertise(membership.node(), &relay.address).await;
            told.map_err(StartError::Unavailable)?;
        }
        Ok(membership)
    };
    match &options.heartbeat_runtime {
        Some(runtime) => {
            let entered = runtime.spawn(entering).await;
            entered.unwrap_or_else(|ended| resume_unwind(ended.into_panic()))
        }
        None => entering.await,
    }
}

/// Begins a background task anew where it panics: without it, leases would end unnoticed.
async fn keep<F: Future<Output = ()>>(
    name: &'static str,
    engine: Arc<Engine>,
    task: impl Fn(Arc<Engine>) -> F,
) {
    while AssertUnwindSafe(task(Arc::clone(&engine))).catch_unwind().await.is_err() {
        tracing::error!(task = name, "a background task panicked and begins anew");
        tokio::time::sleep(engine.options.heartbeat).await;
    }
}
