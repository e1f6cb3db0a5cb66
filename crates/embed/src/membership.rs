//! Lease of this process, renewed by a heartbeat, and the reconciler of what others left.
//!
//! ```text
//! heartbeat   every third of the lease: renew ─┬─ held ─▶ sales may begin until it ends
//!                                              └─ lost ─▶ no sale begins any more
//! reconciler  with every heartbeat: due operations ─▶ settled or given up
//!             once a minute: answers past their time ─▶ deleted
//! ```
//!
//! An operation whose sale runs here is never recovered, even if the database's clock is past its lease. Leases
//! of others are believed dead only after a whole lease in touch with the database: its outage looks like the
//! death of all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_domain::conduct::{Conduct, PurgeOutcome, Purges};
use holdfast_domain::operation::{Lease, Node};
use holdfast_domain::ports::{HeartbeatOutcome, Journal as _, LeaseMode, Nodes as _, Unavailable};
use holdfast_domain::{ClaimId, ErrorChain, OperationId, Timestamp};
use holdfast_store::Store;
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Length of the lease, and the interval of heartbeats.
const LEASE: Duration = Duration::from_secs(15);
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Time before the end of the lease from which no work begins.
const MARGIN: Duration = Duration::from_secs(5);
/// Time after the end of a dead lease for which its operations are left alone.
const ORPHAN_GRACE: Duration = Duration::from_secs(45);
/// Operations that one look takes.
const SCAN_BATCH: u32 = 256;

pub(crate) struct Membership {
    pub(crate) store: Store,
    pub(crate) node: Node,
    /// Active sales: the end of the process waits for them.
    pub(crate) sales: TaskTracker,
    beat: Mutex<Option<Beat>>,
    running: Mutex<HashMap<OperationId, ClaimId>>,
}

/// Last heartbeat that was acknowledged.
#[derive(Clone)]
struct Beat {
    lease: Lease,
    now: Timestamp,
    sent: Instant,
    /// Heartbeats were acknowledged without a gap of a lease since then.
    in_touch_since: Instant,
}

impl Membership {
    /// Takes the name of the node; `None` if another process has it.
    pub(crate) async fn enter(
        store: Store,
        node: Node,
        mode: LeaseMode,
    ) -> Result<Option<Self>, Unavailable> {
        let sales = TaskTracker::new();
        let (beat, running) = (Mutex::new(None), Mutex::new(HashMap::new()));
        let membership = Self { store, node, sales, beat, running };
        let is_held = membership.beat_once(mode).await?;
        Ok(is_held.then_some(membership))
    }

    /// The lease, with the latest moment that the clock of the database can show; `None` once it is lost.
    pub(crate) fn lease(&self) -> Option<(Lease, Timestamp)> {
        let beat = locked(&self.beat).clone()?;
        let now = beat.now.after(beat.sent.elapsed());
        Some((beat.lease, now))
    }

    /// Begins no sale any more.
    pub(crate) fn end(&self) {
        *locked(&self.beat) = None;
    }

    pub(crate) fn running(&self) -> MutexGuard<'_, HashMap<OperationId, ClaimId>> {
        locked(&self.running)
    }

    /// True if work may begin: the lease lasts for longer than [`MARGIN`].
    pub(crate) fn may_begin(&self) -> bool {
        let beat = locked(&self.beat);
        // From the moment of sending: the database began the lease no earlier, so this process
        // stops first.
        beat.as_ref().is_some_and(|beat| beat.sent.elapsed() < LEASE.saturating_sub(MARGIN))
    }

    /// Conduct over the store. Leases of others are believed dead only while the own one is live, and after a whole
    /// lease in touch.
    pub(crate) fn conduct<'a>(&'a self, pause: &'a Pause) -> Conduct<'a> {
        let beat = locked(&self.beat);
        // After an outage of the database every lease looks dead, also of processes that run on.
        let believes = beat.as_ref().is_some_and(|beat| {
            beat.sent.elapsed() < LEASE && beat.in_touch_since.elapsed() >= LEASE
        });
        let orphan_grace = believes.then_some(ORPHAN_GRACE);
        Conduct { journal: &self.store, pause, orphan_grace }
    }

    /// Renews the lease until the end.
    pub(crate) async fn beat(self: Arc<Self>, ends: CancellationToken) {
        let mut ticks = interval(HEARTBEAT);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while next(&mut ticks, &ends).await {
            match self.beat_once(LeaseMode::Renew).await {
                Ok(true) => {}
                Ok(false) => {
                    tracing::error!(node = %self.node.name, "the lease of this process is lost: it sells no more");
                    return;
                }
                Err(error) => tracing::warn!(error = %ErrorChain(&error), "heartbeat failed"),
            }
        }
    }

    async fn beat_once(&self, mode: LeaseMode) -> Result<bool, Unavailable> {
        // Before it is sent: the lease begins no earlier.
        let sent = Instant::now();
        let outcome = self.store.heartbeat(&self.node, LEASE, mode).await?;
        let mut held = locked(&self.beat);
        // One that has ended meanwhile does not begin again by a late answer.
        let has_ended = mode == LeaseMode::Renew && held.is_none();
        let (beat, is_held) = match outcome {
            HeartbeatOutcome::Held { lease, now, .. } => {
                let before = held.as_ref().filter(|before| before.sent.elapsed() < LEASE);
                let in_touch_since = before.map_or(sent, |before| before.in_touch_since);
                (Some(Beat { lease, now, sent, in_touch_since }), true)
            }
            HeartbeatOutcome::Lost { .. } => (None, false),
        };
        if !has_ended {
            *held = beat;
        }
        Ok(is_held)
    }

    /// Settles and gives up what is due, and deletes old answers if a retention is set, until the end. The first pass is made in any case.
    pub(crate) async fn reconcile(
        self: Arc<Self>,
        retention: Option<Duration>,
        ends: CancellationToken,
    ) {
        let begun = Instant::now();
        let mut ticks = interval_at(begun + HEARTBEAT, HEARTBEAT);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut purges, mut purged) = (Purges::default(), None::<Instant>);
        loop {
            if let Err(error) = self.reconcile_once().await {
                tracing::warn!(error = %ErrorChain(&error), "reconciling failed");
            }
            if let Some(retention) = retention
                && purged.is_none_or(|at| at.elapsed() >= Purges::INTERVAL)
            {
                let outcome = purges.run(&self.store, retention, || begun.elapsed()).await;
                // More answers become old in a minute than one purge may delete.
                let is_all = outcome.as_ref().map_or(true, |outcome| outcome.is_all);
                purged = is_all.then(Instant::now);
                log_purge(outcome);
            }
            if !next(&mut ticks, &ends).await {
                return;
            }
        }
    }

    async fn reconcile_once(&self) -> Result<(), Unavailable> {
        // The first error ends the pass: the rest is due again at the next heartbeat.
        for operation in self.store.due(SCAN_BATCH).await? {
            let alive = self.running().get(&operation).copied();
            self.conduct(&PAUSE).reconcile_while_running(operation, alive).await?;
        }
        Ok(())
    }
}

/// Logs a purge that failed, or met a jump of the database's clock.
fn log_purge(outcome: Result<PurgeOutcome, Unavailable>) {
    match outcome {
        Ok(PurgeOutcome { skew: Some(skew), is_known_skew: false, .. }) => {
            tracing::error!(?skew, "the database's clock has jumped: old answers are kept");
        }
        Ok(outcome) if outcome.deleted > 0 => {
            tracing::info!(answers = outcome.deleted, "old answers deleted");
        }
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(error = %ErrorChain(&error), "deleting old answers failed");
        }
    }
}

/// Pause between two offers.
pub(crate) type Pause = fn(u32) -> tokio::time::Sleep;

pub(crate) const PAUSE: Pause =
    |attempt| tokio::time::sleep(Duration::from_millis(50).saturating_mul(attempt.min(40)));

/// Waits for the next tick; false at the end.
async fn next(ticks: &mut tokio::time::Interval, ends: &CancellationToken) -> bool {
    tokio::select! {
        _ = ticks.tick() => true,
        () = ends.cancelled() => false,
    }
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
