//! Changes of wallets that somebody else keeps locked: a process that was stopped in the middle of a
//! batch, or a hand at the SQL prompt. They wait here, on a connection of their own, so that nobody
//! waits with them; whoever comes for such a wallet meanwhile comes after them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_domain::WalletId;
use holdfast_domain::ports::CommitError;
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::job::Job;

/// Where such changes go.
pub(super) struct LockQueue {
    to: mpsc::Sender<Job>,
    counts: Arc<WalletCounts>,
}

/// Where they arrive.
pub(super) struct LockedJobs {
    pub(super) jobs: mpsc::Receiver<Job>,
    pub(super) counts: Arc<WalletCounts>,
}

/// There is no room aside.
#[derive(Debug, thiserror::Error)]
#[error("too many changes wait for locked wallets")]
struct QueueFull;

/// How many changes of each wallet are here.
#[derive(Default)]
pub(super) struct WalletCounts(Mutex<BTreeMap<WalletId, usize>>);

/// A way aside, with room for so many changes, and where they arrive.
pub(super) fn channel(room: usize) -> (LockQueue, LockedJobs) {
    let (to, jobs) = mpsc::channel(room);
    let counts = Arc::<WalletCounts>::default();
    (LockQueue { to, counts: Arc::clone(&counts) }, LockedJobs { jobs, counts })
}

impl LockQueue {
    /// Takes what would come between changes that are here already.
    pub(super) fn divert(&self, arrived: &mut VecDeque<Job>) {
        if self.counts.lock().is_empty() {
            return;
        }
        let (aside, on) = arrived
            .drain(..)
            .partition::<VecDeque<Job>, _>(|job| self.counts.has(job.change().wallet()));
        *arrived = on;
        self.push(aside);
    }

    pub(super) fn push(&self, jobs: impl IntoIterator<Item = Job>) {
        for job in jobs {
            let wallet = job.change().wallet();
            self.counts.add(wallet);
            if let Err(TrySendError::Full(job) | TrySendError::Closed(job)) = self.to.try_send(job)
            {
                self.counts.take(wallet);
                job.answer(Err(CommitError::Unavailable(Box::new(QueueFull))));
            }
        }
    }
}

impl WalletCounts {
    fn add(&self, wallet: WalletId) {
        *self.lock().entry(wallet).or_default() += 1;
    }

    pub(super) fn take(&self, wallet: WalletId) {
        let mut counts = self.lock();
        if let Some(count) = counts.get_mut(&wallet) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&wallet);
            }
        }
    }

    fn has(&self, wallet: WalletId) -> bool {
        self.lock().contains_key(&wallet)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<WalletId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
