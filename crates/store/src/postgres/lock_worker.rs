//! The worker at the end of [`super::lock_queue`]: commits changes of wallets that another session keeps locked, on
//! a connection of its own.
//!
//! ```text
//! take -> the first change of a free wallet, or of a locked one, by turns
//!      -> all of that wallet, as one batch -> TURN for its lock -> verdicts
//!                                              └ still locked: to the end of the line
//! ```
//!
//! A batch here is of one wallet, and waits for its lock for `TURN` at most, so that others come to their turn. A
//! change that did not get its lock is given up from `wait_max` on; one that is queued for a wallet that was found
//! locked, a turn later, untried. While the server cannot be reached all queued changes are turned away at once.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::ports::CommitError;

use super::lock_queue::LockedJobs;
use super::servers::Servers;
use super::writer::{BatchOutcome, UnreachableServer, Writer, reject_alone, split_half};
use crate::batch::job::{Job, answer_all, take_batch};
use crate::transaction::event::SharedInterest;

/// Longest wait of one try for one wallet, before it is the turn of another wallet.
const TURN: Duration = Duration::from_secs(1);

/// Task that commits the changes of locked wallets, one wallet at a time.
pub(super) struct LockQueueWorker {
    writer: Writer,
    queue: LockedJobs,
    /// Longest wait of a change, from its offer: the store's `busy_timeout`.
    wait_max: Duration,
}

/// Failure of a change whose time went by while other wallets had their turns.
#[derive(Debug, thiserror::Error)]
#[error("too many locked wallets were waited for")]
struct LockTimeout;

impl LockQueueWorker {
    pub(super) fn new(
        servers: &Servers,
        queue: LockedJobs,
        wait_max: Duration,
        interest: &SharedInterest,
    ) -> Self {
        Self { writer: Writer::new(servers, wait_max.min(TURN), interest), queue, wait_max }
    }

    /// Goes from wallet to wallet, until the writer has ended and the queue is empty.
    pub(super) async fn run(mut self) {
        let mut waiting: VecDeque<Job> = VecDeque::new();
        // Wallets that the last try has found locked. They and the others take turns.
        let mut locked = BTreeSet::new();
        let mut is_turn_of_locked = false;
        loop {
            self.writer.is_cut_off = false;
            // All at once: only what is here can be sorted by wallet, and come to its turn.
            while let Ok(job) = self.queue.jobs.try_recv() {
                waiting.push_back(job);
            }
            let is_next = |job: &Job| locked.contains(&job.change().wallet) == is_turn_of_locked;
            let next = waiting.iter().position(is_next).unwrap_or_default();
            // A wallet that may be free must not wait behind all that are locked, one `TURN` each.
            is_turn_of_locked = !is_turn_of_locked;
            let Some(first) = waiting.remove(next) else {
                match self.queue.jobs.recv().await {
                    Some(job) => waiting.push_back(job),
                    None => return,
                }
                continue;
            };
            let wallet = Job::change(&first).wallet;
            let (mut its, others) = std::iter::once(first)
                .chain(waiting)
                .partition::<VecDeque<Job>, _>(|job| job.change().wallet == wallet);
            waiting = others;
            let batch = take_batch(&mut its, &self.writer.misfits);
            let count = batch.len();
            let mut left = Vec::new();
            let counts = Arc::clone(&self.queue.counts);
            let wait_max = self.wait_max;
            let was_locked = locked.remove(&wallet);
            self.writer
                .guarded(async |writer| left = commit(writer, batch, wait_max, was_locked).await)
                .await;
            // After the verdicts: until then a change of this wallet is diverted behind them.
            (left.len()..count).for_each(|_answered| counts.take(wallet));
            if !left.is_empty() {
                locked.insert(wallet);
            }
            // In their order, and after the others.
            waiting.extend(left);
            waiting.extend(its);
            if self.writer.is_cut_off {
                waiting.iter().for_each(|job| counts.take(job.change().wallet));
                answer_all(waiting.drain(..), UnreachableServer, CommitError::Unavailable);
                locked.clear();
            }
        }
    }
}

/// Tries to commit these; gives back what waits on.
async fn commit(
    writer: &mut Writer,
    mut batch: Vec<Job>,
    wait_max: Duration,
    was_locked: bool,
) -> Vec<Job> {
    // A lock that was found taken may be again: a change whose time is over is not tried once more.
    // One whose wallet was not found so is, however late: it may be free.
    let is_late = |job: &mut Job| was_locked && job.age() >= wait_max + TURN;
    let late: Vec<Job> = batch.extract_if(.., is_late).collect();
    answer_all(late, LockTimeout, CommitError::Unavailable);
    let mut trying = vec![batch];
    let mut left = Vec::new();
    while let Some(batch) = trying.pop() {
        match writer.try_batch(batch).await {
            BatchOutcome::Answered => {}
            BatchOutcome::Bad(alone, error) if alone.len() <= 1 => {
                writer.misfits.note(&alone);
                reject_alone(alone, error);
            }
            BatchOutcome::Bad(several, _error) => trying.extend(split_half(several)),
            BatchOutcome::Locked(locked, error) => {
                let is_over = |job: &Job| job.age() >= wait_max;
                let (over, on): (Vec<Job>, Vec<Job>) = locked.into_iter().partition(is_over);
                left.extend(on);
                answer_all(over, error, CommitError::Unavailable);
            }
        }
    }
    left
}
