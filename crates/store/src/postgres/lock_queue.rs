//! Queue of changes whose wallet another session keeps locked: a process that was stopped in the middle of a batch,
//! or an operator at the SQL prompt. They wait here, for a connection of their own (`lock_worker`), so that no
//! other change waits with them.
//!
//! The order within a wallet stays: while one of its changes is here (`WalletCounts`), every later change of that
//! wallet is diverted and comes after it. A change is counted before it is sent and discounted after its verdict:
//! discounted earlier, a later change could pass it on the writer.
//!
//! The queue is bounded. A change that finds no room is `Unavailable`, and has not happened: the writer must never
//! wait for room here, or one locked wallet would stop all of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_domain::WalletId;
use holdfast_domain::ports::CommitError;
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::batch::job::Job;

/// Writer's end of the queue: takes changes of locked wallets, and never waits.
pub(super) struct LockQueue {
    to: mpsc::Sender<Job>,
    counts: Arc<WalletCounts>,
}

/// Worker's end of the queue: the changes, and the counts that it takes down again.
pub(super) struct LockedJobs {
    pub(super) jobs: mpsc::Receiver<Job>,
    pub(super) counts: Arc<WalletCounts>,
}

/// Refusal of a change for which the queue has no room.
#[derive(Debug, thiserror::Error)]
#[error("too many changes wait for locked wallets")]
struct QueueFull;

/// Number of changes in the queue or in the worker's hands, by wallet; a wallet without any has no
/// entry.
#[derive(Default)]
pub(super) struct WalletCounts(Mutex<BTreeMap<WalletId, usize>>);

/// Both ends of a queue with room for this many changes.
pub(super) fn channel(room: usize) -> (LockQueue, LockedJobs) {
    let (to, jobs) = mpsc::channel(room);
    let counts = Arc::<WalletCounts>::default();
    (LockQueue { to, counts: Arc::clone(&counts) }, LockedJobs { jobs, counts })
}

impl LockQueue {
    /// Moves changes of wallets that are already in the queue from the batch to be, in their order.
    pub(super) fn divert(&self, arrived: &mut VecDeque<Job>) {
        // The usual case: no batch looks up each of its wallets because one was locked last week.
        if self.counts.lock().is_empty() {
            return;
        }
        let (aside, on) = arrived
            .drain(..)
            .partition::<VecDeque<Job>, _>(|job| self.counts.has(job.change().wallet));
        *arrived = on;
        self.push(aside);
    }

    pub(super) fn push(&self, jobs: impl IntoIterator<Item = Job>) {
        for job in jobs {
            let wallet = job.change().wallet;
            // Before it is sent: the worker may be done with it before `try_send` returns.
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
        // Counts stay whole across a panic: each change of them is one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
