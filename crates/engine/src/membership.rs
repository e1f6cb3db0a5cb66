//! Membership of this process among those that share its database: the lease of its name, and the two background
//! tasks that keep shared rows in order for as long as it lives.
//!
//! ```text
//! heartbeat  ── renews ──► node row ── reports ─► work that waits ── reads ──► operations leased to this node
//! reconciler ── if reported: due operations ── deletes ► results past their time
//!            ── writes ──► notices
//! requests   ── call ────► conduct: one operation is judged, reaped or settled
//! ```
//!
//! Every change of an operation's row goes through the domain's [`Conduct`], which is made here because its guards
//! are this process's own knowledge: whether other nodes' dead leases may be believed, and whether a task of this
//! process is alive. Leases and clocks carry only liveness; safety rests on claim ids and guarded writes.
//!
//! Both tasks begin anew if they panic, and end after the operations, so that a draining process keeps its lease
//! until its last ending is committed.

mod backoff;
mod heartbeat;
mod node_lease;
mod notices;
mod reaped;
mod reconciler;
mod stuck_detector;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use holdfast_domain::admin::ports::EventOutbox;
use holdfast_domain::conduct::{Conduct, Reconciliation};
use holdfast_domain::operation::{Disown, Node, Phase, SendStatus, Snapshot};
use holdfast_domain::ports::{Journal, Nodes, PendingWork, Unavailable};
use holdfast_domain::{ErrorChain, OperationId, Timestamp};
use holdfast_failpoint::{Fault, is_broken};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::backoff::BackOff;
use self::node_lease::NodeLease;
pub use self::node_lease::StartError;
use self::notices::Notices;
use self::reaped::ReapedOperations;
use crate::authentication::Authentication;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::statistics::{LeaseState, StatisticsWriter};
use crate::tape::RunRegistry;

/// Membership of this process: its node lease, and its work on the rows that all nodes share.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) node: NodeLease,
    /// Background tasks: heartbeat, reconciler, and polls of rows that run elsewhere.
    pub(crate) keepers: TaskTracker,
    /// Signal that ends the background tasks, after all operations have ended.
    pub(crate) background: CancellationToken,
    /// Notices of refused claims and of the reconciler, which the reconciler writes to the outbox.
    pub(crate) notices: Notices,
    /// Operations that were given up here, whose runs elsewhere are to be ended.
    pub(crate) reaped: ReapedOperations,
    /// Report of the last heartbeat. A new report is sent even if it is the same.
    pub(crate) pending: watch::Sender<PendingWork>,
    journal: Arc<dyn Journal>,
    nodes: Arc<dyn Nodes>,
    events: Arc<dyn EventOutbox>,
    statistics: Arc<StatisticsWriter>,
    running: Arc<RunRegistry>,
    metrics: Arc<Metrics>,
    heartbeat: Duration,
    orphan_grace: Duration,
    /// Retention of sealed results, which a reload may change.
    retention: Mutex<Duration>,
}

impl LeaseState for Membership {
    fn node(&self) -> &Node {
        self.node.node()
    }

    fn now(&self) -> Timestamp {
        self.node.now()
    }
}

/// Parts of a membership: storage ports, and what it shares with the runner.
pub(crate) struct MembershipParts {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) nodes: Arc<dyn Nodes>,
    pub(crate) events: Arc<dyn EventOutbox>,
    pub(crate) statistics: Arc<StatisticsWriter>,
    pub(crate) running: Arc<RunRegistry>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Membership {
    /// Takes the node's name, on the runtime that its heartbeats will use, so that the connection
    /// to the store that is opened for it is driven there too.
    pub(crate) async fn enter(
        parts: MembershipParts,
        options: &Options,
    ) -> Result<Arc<Self>, StartError> {
        let MembershipParts { journal, nodes, events, statistics, running, metrics } = parts;
        let (port, own) = (Arc::clone(&nodes), options.clone());
        let entering = async move {
            let lease = NodeLease::enter(&*port, &own).await?;
            if let Some(relay) = &own.relay {
                // Before any claim: a process that finds a row of this node finds its address as well.
                let advertised = port.advertise(lease.node(), &relay.address).await;
                advertised.map_err(StartError::Unavailable)?;
            }
            Ok(lease)
        };
        let node = match &options.heartbeat_runtime {
            Some(runtime) => {
                let entered = runtime.spawn(entering).await;
                // This task is never aborted: it has panicked, or come to its end.
                entered.unwrap_or_else(|ended| resume_unwind(ended.into_panic()))?
            }
            None => entering.await?,
        };
        Ok(Arc::new(Self {
            node,
            keepers: TaskTracker::new(),
            background: CancellationToken::new(),
            notices: Notices::default(),
            reaped: ReapedOperations::default(),
            pending: watch::Sender::new(PendingWork::ALL),
            journal,
            nodes,
            events,
            statistics,
            running,
            metrics,
            heartbeat: options.heartbeat,
            orphan_grace: options.orphan_grace,
            retention: Mutex::new(options.results),
        }))
    }

    /// Starts heartbeat, reconciler and the writer of statistics.
    pub(crate) fn begin(self: &Arc<Self>, authentication: &Arc<Authentication>, options: &Options) {
        let authentication = Arc::clone(authentication);
        let beat = move |own: Arc<Self>| own.beat(Arc::clone(&authentication));
        let beating = Arc::clone(self).keep("heartbeat", beat);
        match &options.heartbeat_runtime {
            Some(runtime) => self.keepers.spawn_on(beating, runtime),
            None => self.keepers.spawn(beating),
        };
        self.keepers.spawn(Arc::clone(self).keep("reconciler", Self::reconcile));
        let write = |own: Arc<Self>| Arc::clone(&own.statistics).run(own.background.clone());
        self.keepers.spawn(Arc::clone(self).keep("statistics", write));
    }

    /// Runs a background task, and begins it anew after a panic: without it a lease would end
    /// unnoticed.
    async fn keep<F: Future<Output = ()>>(
        self: Arc<Self>,
        name: &'static str,
        task: impl Fn(Arc<Self>) -> F,
    ) {
        while AssertUnwindSafe(task(Arc::clone(&self))).catch_unwind().await.is_err() {
            tracing::error!(task = name, "a background task panicked and begins anew");
            // A task that panics at once must not do so all the time.
            tokio::time::sleep(self.heartbeat).await;
        }
    }

    /// Ends the background tasks, and gives the name back. Not before the operations have ended: their endings
    /// are judged by this node's lease.
    pub(crate) async fn leave(&self) {
        self.background.cancel();
        self.keepers.close();
        self.keepers.wait().await;
        let left = self.nodes.leave(self.node.node());
        match tokio::time::timeout(Options::COMMIT_WAIT, left).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %ErrorChain(&error), "the node's row was not removed: its lease will end");
            }
            Err(_elapsed) => tracing::warn!("the store is silent: the node's lease will end"),
        }
    }

    /// Conduct that carries this process's decisions to the journal. It reaps other nodes' work
    /// only while their dead leases can be believed.
    pub(crate) fn conduct(&self) -> Conduct<'_> {
        let grace = self.orphan_grace;
        Conduct {
            journal: &*self.journal,
            pause: &BackOff,
            orphan_grace: self.node.believes_dead_leases().then_some(grace),
        }
    }

    /// Conduct for one operation: never reaps one that a task of this process runs, however long
    /// the own heartbeats were silent.
    pub(crate) fn conduct_of(&self, id: OperationId) -> Conduct<'_> {
        let conduct = self.conduct();
        let is_here = self.running.find(id).is_some();
        Conduct { orphan_grace: conduct.orphan_grace.filter(|_grace| !is_here), ..conduct }
    }

    /// Reaps or settles one operation if that is allowed, and returns its row; an error after `COMMIT_WAIT` without
    /// a verdict of the store. Cancel safe.
    pub(crate) async fn reconcile_operation(
        &self,
        id: OperationId,
    ) -> Result<Snapshot, Unavailable> {
        if is_broken(Fault::RunAgainAfterTakeover) {
            Box::pin(self.reopen(id)).await?;
        }
        let conduct = self.conduct_of(id);
        let found = conduct.reconcile_while_running(id, self.running.live_claim(id));
        let found = tokio::time::timeout(Options::COMMIT_WAIT, found).await;
        found
            .unwrap_or_else(|elapsed| Err(Unavailable(elapsed.into())))
            .map(|found| self.found(found))
    }

    /// Opens an operation that no task of this process runs, as if its owner had proven that it never sent.
    async fn reopen(&self, id: OperationId) -> Result<(), Unavailable> {
        let snapshot = self.journal.load(id).await?;
        if let Some(row) = snapshot.operation.filter(|row| row.phase == Phase::Leased)
            && self.running.live_claim(id).is_none()
        {
            let disown = Disown { claim: row.owner.claim, sent: SendStatus::Never };
            self.conduct_of(id).disown(id, disown).await?;
        }
        Ok(())
    }

    /// Counts what a reconciliation has brought about, and notes what it gave up.
    pub(crate) fn found(&self, found: Reconciliation) -> Snapshot {
        if let Some(operation) = found.snapshot.operation.as_ref().filter(|_row| found.moved) {
            self.reaped.note(operation);
        }
        self.metrics.count_found(found)
    }

    /// Sets the retention of sealed results, also of those that are kept already.
    pub(crate) fn keep_results(&self, time: Duration) {
        *self.retention.lock().unwrap_or_else(PoisonError::into_inner) = time;
    }

    fn retention(&self) -> Duration {
        *self.retention.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
