//! Statistics of this process: collected in memory by requests, added to the store once a second by one task.
//!
//! ```text
//! request ─ note ─▶ collector ── every second, and at the end of a drain ──▶ port: a batch per transaction
//!                       ▲                                                      │
//!                       └────────────── put back: the store took nothing ──────┘
//! ```
//!
//! Each kind of statistics is a collector with its own bounds and a method of the port. A request pays for a lock and a
//! row in memory, and waits for nothing; one that is not refused pays nothing.
//!
//! The rule for a write that fails: the batch is put back and written with the next ones, within the bounds of its
//! collector; what exceeds them is dropped, oldest first. A write whose answer was lost may count twice. A process that
//! is killed loses the last second, one that drains nothing.

mod refusals;
mod routes;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use holdfast_domain::operation::Node;
use holdfast_domain::ports::{Statistics, Unavailable};
use holdfast_domain::{ErrorChain, Timestamp};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use self::refusals::RefusalCollector;
pub use self::refusals::RefusalFacts;
pub(crate) use self::routes::{AttemptFacts, RouteCollector};
use crate::live_config::LiveConfig;
use crate::options::Options;

/// Interval between two additions to the store.
const INTERVAL: Duration = Duration::from_secs(1);

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
    /// True while the store takes nothing, which is logged once.
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

    /// Deletes hours past their retention, a few a commit. Cancel safe: each commit stands by itself.
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
                _tick = ticks.tick() => {}
                () = background.cancelled() => return,
            }
            // Not cut by the end: half a flush would write its batch twice. Each write has a timeout.
            self.flush().await;
        }
    }

    /// Adds what was collected. Not cancel safe: a dropped future loses a batch.
    pub(crate) async fn flush(&self) {
        let refusals = self.flush_refusals().await;
        // Each is tried, whatever came of the other.
        let flushed = self.flush_routes().await.and(refusals);
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

    async fn flush_routes(&self) -> Result<(), Unavailable> {
        let hours = Arc::new(self.routes.take_hours());
        if !hours.is_empty()
            && let Err(error) = in_time(self.port.add_route_hours(Arc::clone(&hours))).await
        {
            self.routes.put_hours_back(hours.to_vec());
            return Err(error);
        }
        let failures = Arc::new(self.routes.take_failures());
        if !failures.is_empty()
            && let Err(error) = in_time(self.port.add_route_failures(Arc::clone(&failures))).await
        {
            self.routes.put_failures_back(failures.to_vec());
            return Err(error);
        }
        let Some((lease, live)) = self.watched.get() else { return Ok(()) };
        let Some(lease) = lease.upgrade() else { return Ok(()) };
        if let Some(breakers) = self.routes.breakers(&live.get().offers(), lease.now()) {
            in_time(self.port.set_route_states(lease.node(), &breakers)).await?;
            self.routes.set_written(breakers);
        }
        Ok(())
    }

    async fn flush_refusals(&self) -> Result<(), Unavailable> {
        let collected = self.refusals.take();
        if collected.uncounted > 0 {
            tracing::warn!(
                requests = collected.uncounted,
                "more API keys were refused than are counted at once: these requests are in no statistics"
            );
        }
        let mut batches = collected.into_batches().into_iter();
        while let Some((keys, batch)) = batches.next() {
            if let Err(error) = in_time(self.port.add_refusals(Arc::new(batch))).await {
                let rest = batches.flat_map(|(keys, _batch)| keys);
                self.refusals.put_back(keys.into_iter().chain(rest));
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Bounds a write: a store that is silent must not hold up the next second, or the end.
async fn in_time(write: impl Future<Output = Result<(), Unavailable>>) -> Result<(), Unavailable> {
    timeout(Options::COMMIT_WAIT, write)
        .await
        .unwrap_or_else(|elapsed| Err(Unavailable(elapsed.into())))
}
