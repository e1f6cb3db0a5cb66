//! Row poller: waits for operations that another process runs, for all requests that wait for them here.
//!
//! ```text
//! callers ── watch ──► one task an operation ── reconcile, one poll a second (POLL_INTERVAL) ──► row
//!    ▲                          │
//!    └──────────────────────────┘ each poll goes to all who wait
//! ```
//!
//! This process can read only the row. Polls of each caller's own would let retries of one key keep the database's
//! readers from other callers. One poll serves all of them: a thousand who wait cost as much as one.
//!
//! - A task ends with the last who waits, and a later request starts another. The decision whether any request
//!   waits is made under the lock that joins: none can join a task that has decided to end.
//! - A poll reconciles: an owner that died is found out by those who wait for it, not only by the reconciler.
//! - A relay that ends requests a poll at once, because the run has probably ended with it.
//!
//! It never interprets a row for those who wait.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_domain::operation::{Phase, Snapshot};
use holdfast_domain::{ErrorChain, OperationId};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use crate::membership::Membership;

/// Interval between two polls of one row.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Result of the newest poll of a row.
#[derive(Debug, Clone, Default)]
pub(crate) enum PolledRow {
    /// No poll has ended yet.
    #[default]
    Pending,
    /// Row as it was reconciled.
    Row(Arc<Snapshot>),
    /// Row not read, which was logged. Polls go on while any request waits.
    Unreadable,
}

/// Watch of one waiting request on an operation's row; dropping it ends the wait.
pub(crate) type RowWatch = watch::Receiver<PolledRow>;

/// Poller of rows that other processes own, one task a row. A std mutex: never held across an
/// await.
#[derive(Debug)]
pub(crate) struct RowPoller {
    membership: Arc<Membership>,
    looks: Mutex<RowPolls>,
}

/// Poll of one row, shared by all who wait for it.
#[derive(Debug, Default)]
struct RowPoll {
    looks: watch::Sender<PolledRow>,
    /// Signal for a poll at once: the run may have ended just now.
    due: Notify,
}

type RowPolls = HashMap<OperationId, Arc<RowPoll>>;

/// Guard of a poll's place. A request that comes after it is gone starts a poll of its own; one that still waits
/// finds its watch closed.
struct PollGuard<'a> {
    elsewhere: &'a RowPoller,
    id: OperationId,
    waiting: Arc<RowPoll>,
}

impl PollGuard<'_> {
    /// Publishes a poll, and returns whether another one is needed. If no request waits, or `look` is the last, the
    /// place is given up first.
    fn publish(&self, look: PolledRow, is_last: bool) -> bool {
        let goes_on = {
            let mut looks = self.elsewhere.lock();
            // Under the lock that joins: a request either is counted here, or finds no place and
            // starts a poll of its own.
            let goes_on = !is_last && self.waiting.looks.receiver_count() > 0;
            if !goes_on {
                self.leave(&mut looks);
            }
            goes_on
        };
        // After the place is gone: a request that sees the last poll and comes again starts a new task.
        self.waiting.looks.send_replace(look);
        goes_on
    }

    fn leave(&self, looks: &mut RowPolls) {
        if let Entry::Occupied(found) = looks.entry(self.id)
            // Only the own place: a successor may be there by now.
            && Arc::ptr_eq(found.get(), &self.waiting)
        {
            found.remove();
        }
    }
}

impl Drop for PollGuard<'_> {
    fn drop(&mut self) {
        self.leave(&mut self.elsewhere.lock());
    }
}

impl RowPoller {
    pub(crate) fn new(membership: Arc<Membership>) -> Self {
        Self { membership, looks: Mutex::default() }
    }

    /// Count of requests that wait here for runs elsewhere.
    pub(crate) fn waiters(&self) -> usize {
        self.lock().values().map(|waiting| waiting.looks.receiver_count()).sum()
    }

    /// Joins a poll; also returns it if it is new, and has to be started. `None` if `waiters_max` requests wait
    /// already.
    fn join(
        &self,
        id: OperationId,
        waiters_max: usize,
    ) -> Option<(RowWatch, Option<Arc<RowPoll>>)> {
        let mut looks = self.lock();
        match looks.entry(id) {
            Entry::Occupied(found) => {
                let waiting = found.get();
                let looks = &waiting.looks;
                (looks.receiver_count() < waiters_max).then(|| (looks.subscribe(), None))
            }
            Entry::Vacant(place) => {
                let waiting = Arc::<RowPoll>::default();
                place.insert(Arc::clone(&waiting));
                Some((waiting.looks.subscribe(), Some(waiting)))
            }
        }
    }

    /// Requests a poll at once. Requests that come before it begins share it.
    pub(crate) fn poll_now(&self, id: OperationId) {
        if let Some(waiting) = self.lock().get(&id) {
            waiting.due.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, RowPolls> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RowPoller {
    /// Watches an operation's row together with all others who do; `None` if there are `waiters_max`.
    pub(crate) fn watch(self: &Arc<Self>, id: OperationId, waiters_max: usize) -> Option<RowWatch> {
        let (watch, waiting) = self.join(id, waiters_max)?;
        if let Some(waiting) = waiting {
            self.membership.keepers.spawn(Box::pin(Arc::clone(self).poll_row(id, waiting)));
        }
        Some(watch)
    }

    /// Polls until the operation is at rest, no request waits, or the process has drained.
    async fn poll_row(self: Arc<Self>, id: OperationId, waiting: Arc<RowPoll>) {
        let place = PollGuard { elsewhere: &self, id, waiting };
        loop {
            let (look, goes_on) = match self.membership.reconcile_operation(id).await {
                Ok(snapshot) => {
                    let goes_on = is_leased(&snapshot);
                    (PolledRow::Row(Arc::new(snapshot)), goes_on)
                }
                Err(error) => {
                    tracing::warn!(operation.id = %id, error = %ErrorChain(&error), "an operation could not be read");
                    (PolledRow::Unreadable, true)
                }
            };
            if !place.publish(look, !goes_on) {
                return;
            }
            tokio::select! {
                biased;
                () = sleep(POLL_INTERVAL) => {}
                () = place.waiting.due.notified() => {}
                () = self.membership.background.cancelled() => return,
            }
        }
    }
}

pub(crate) fn is_leased(snapshot: &Snapshot) -> bool {
    snapshot.operation.as_ref().is_some_and(|operation| operation.phase == Phase::Leased)
}
