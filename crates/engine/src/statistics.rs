//! Statistics of this process: collected in memory by requests, added to the store once a second by one task.
//!
//! ```text
//! request ─ note ─▶ collector ── every second, and at the end of a drain ──▶ port: a batch per transaction
//!                       ▲                                                      │
//!                       └────────────── put back: the store took no row ───────┘
//! ```
//!
//! Each kind of statistics is a collector with its own bounds and a method of the port. A request pays for a lock
//! and a row in memory, and does not wait; one that is not refused pays nothing.
//!
//! Rules for a write that fails:
//!
//! | failure | consequence |
//! |---|---|
//! | outage | put back and written with the next ones, within its bounds; the other batches are tried |
//! | a row that the store refuses | the batch is dropped, with a warning: it would fail each time |
//! | an answer that was lost | the batch may count twice |
//! | no answer | the next write waits for it: a write whose future is dropped may still be in the store's queue, and a copy of it would count twice |
//! | no answer in a drain | the writes that are left are given up after [`DRAIN_MAX`] |
//!
//! A collector that is full puts the excess into a number that the log shows, or drops it. A process that is killed
//! loses the last second.

mod refusals;
mod routes;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use holdfast_domain::operation::Node;
use holdfast_domain::ports::{AdditionError, Statistics, Unavailable};
use holdfast_domain::{ErrorChain, Timestamp};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::refusals::RefusalCollector;
pub use self::refusals::RefusalFacts;
pub(crate) use self::routes::{AttemptFacts, RouteCollector};
use crate::live_config::LiveConfig;

/// Interval between two additions to the store.
const INTERVAL: Duration = Duration::from_secs(1);

/// Time that a drain waits for statistics: supervisors give the whole of it some 40 seconds.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// Rows that one commit of a purge deletes: few enough not to hold up others.
const PURGED_PER_COMMIT: u32 = 256;
/// Commits of one purge; the rest is for the next one.
const PURGE_COMMITS_MAX: u32 = 64;

/// Lease of this process, under which it reports its circuit breakers. The membership has the statistics too, so they
/// refer to it by this trait, and weakly.
pub(crate) trait LeaseState: fmt::Debug + Send + Sync {
    fn node(&self) -> &Node;
    /// The database's clock.
    fn now(&self) -> Timestamp;
}

/// Collectors of this process, and the store that they are added to.
#[derive(Debug)]
pub(crate) struct StatisticsWriter {
    port: Arc<dyn Statistics>,
    /// Lease under which breakers are reported, and the configuration that has them.
    watched: OnceLock<(Weak<dyn LeaseState>, Arc<LiveConfig>)>,
    /// Attempts on routes.
    routes: Arc<RouteCollector>,
    /// Requests of known API keys that were refused.
    pub(crate) refusals: RefusalCollector,
    /// Lock of the flush: one at a time.
    writing: AsyncMutex<()>,
    /// Cancelled by a drain that has waited for long enough: no row is written from then on.
    given_up: CancellationToken,
    /// True while the store takes no row, which is logged once.
    is_failing: AtomicBool,
    /// Retention of hours, which a reload may change.
    retention: Mutex<Duration>,
}

impl StatisticsWriter {
    pub(crate) fn new(
        port: Arc<dyn Statistics>,
        retention: Duration,
        routes: Arc<RouteCollector>,
    ) -> Self {
        Self {
            port,
            routes,
            watched: OnceLock::new(),
            refusals: RefusalCollector::default(),
            writing: AsyncMutex::new(()),
            given_up: CancellationToken::new(),
            is_failing: AtomicBool::new(false),
            retention: Mutex::new(retention),
        }
    }

    /// Reports the breakers of the live configuration from now on. They are made after the statistics.
    pub(crate) fn watch_breakers(&self, lease: Weak<dyn LeaseState>, live: &Arc<LiveConfig>) {
        self.watched.get_or_init(|| (lease, Arc::clone(live)));
    }

    /// Sets the retention of hours, also of those that are kept already.
    pub(crate) fn keep(&self, time: Duration) {
        *self.retention.lock().unwrap_or_else(PoisonError::into_inner) = time;
    }

    /// Deletes hours past their retention, a few a commit. Cancel safe: each commit is complete by itself.
    pub(crate) async fn purge(&self) -> Result<(), Unavailable> {
        let age = *self.retention.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows: u64 = 0;
        for _commit in 0..PURGE_COMMITS_MAX {
            let deleted = self.port.purge_hours(age, PURGED_PER_COMMIT).await?;
            rows = rows.saturating_add(deleted);
            if deleted == 0 {
                break;
            }
        }
        if rows > 0 {
            tracing::info!(rows, "deleted old hours of statistics");
        }
        Ok(())
    }

    /// Adds what was collected once a second, until the background ends.
    pub(crate) async fn run(self: Arc<Self>, background: CancellationToken) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _tick = ticks.tick() => {}
                () = background.cancelled() => return,
            }
            tokio::select! {
                // A flush that can end goes to its end.
                biased;
                () = self.flush() => {}
                () = self.given_up(&background) => return,
            }
        }
    }

    /// Completes once a drain waits for no write any more.
    async fn given_up(&self, background: &CancellationToken) {
        let ended = async {
            background.cancelled().await;
            sleep(DRAIN_MAX).await;
        };
        tokio::select! {
            biased;
            () = self.given_up.cancelled() => {}
            () = ended => {}
        }
    }

    /// Adds what was collected, in a drain: for [`DRAIN_MAX`], and not once more if the store did not answer by then.
    /// Not cancel safe: a dropped future loses batches.
    pub(crate) async fn flush_at_end(&self) {
        if self.given_up.is_cancelled() {
            return;
        }
        if timeout(DRAIN_MAX, self.flush()).await.is_err() {
            self.given_up.cancel();
            tracing::warn!("the store is silent: the last statistics are not written");
        }
    }

    /// Adds what was collected. Not cancel safe: a dropped future loses batches.
    async fn flush(&self) {
        let _turn = self.writing.lock().await;
        // Each is tried, even if another one fails.
        let outcomes = [
            self.flush_refusals().await,
            self.flush_hours().await,
            self.flush_failures().await,
            self.flush_breakers().await,
        ];
        let flushed: Result<(), Unavailable> = outcomes.into_iter().collect();
        let was_failing = self.is_failing.swap(flushed.is_err(), Ordering::Relaxed);
        match flushed {
            Ok(()) if was_failing => tracing::info!("statistics are written again"),
            Ok(()) => {}
            Err(error) if was_failing => {
                tracing::debug!(error = %ErrorChain(&error), "statistics are still not written");
            }
            Err(error) => {
                tracing::warn!(
                    error = %ErrorChain(&error),
                    "statistics were not written: they are kept within bounds until the store takes them"
                );
            }
        }
    }

    async fn flush_hours(&self) -> Result<(), Unavailable> {
        let hours = Arc::new(self.routes.take_hours());
        if hours.is_empty() {
            return Ok(());
        }
        let added = outage(self.port.add_route_hours(Arc::clone(&hours)).await);
        added.inspect_err(|_outage| self.routes.put_hours_back(hours.to_vec()))
    }

    async fn flush_failures(&self) -> Result<(), Unavailable> {
        let failures = Arc::new(self.routes.take_failures());
        if failures.is_empty() {
            return Ok(());
        }
        let added = outage(self.port.add_route_failures(Arc::clone(&failures)).await);
        added.inspect_err(|_outage| self.routes.put_failures_back(failures.to_vec()))
    }

    async fn flush_breakers(&self) -> Result<(), Unavailable> {
        let Some((lease, live)) = self.watched.get() else { return Ok(()) };
        let Some(lease) = lease.upgrade() else { return Ok(()) };
        if let Some(breakers) = self.routes.breakers(&live.get().offers(), lease.now()) {
            self.port.set_route_states(lease.node(), &breakers).await?;
            self.routes.set_written(breakers);
        }
        Ok(())
    }

    async fn flush_refusals(&self) -> Result<(), Unavailable> {
        let collected = self.refusals.take();
        if collected.uncounted > 0 {
            tracing::warn!(
                requests = collected.uncounted,
                "more requests were refused than are counted at once: these are in no statistics"
            );
        }
        let mut flushed = Ok(());
        for (keys, batch) in collected.into_batches() {
            if let Err(error) = outage(self.port.add_refusals(Arc::new(batch)).await) {
                self.refusals.put_back(keys.into_iter());
                flushed = Err(error);
            }
        }
        flushed
    }
}

/// Outage of the store, for which a batch is put back. A batch that the store refuses is dropped here.
fn outage(added: Result<(), AdditionError>) -> Result<(), Unavailable> {
    match added {
        Ok(()) => Ok(()),
        Err(AdditionError::Unavailable(error)) => Err(error),
        Err(error @ AdditionError::Misfit(_)) => {
            tracing::warn!(error = %ErrorChain(&error), "statistics were dropped: the store refuses them");
            Ok(())
        }
    }
}
