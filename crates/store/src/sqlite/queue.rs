//! The writer's queue: changes of the journal, and write tasks, which are all other writes. Callers put changes in
//! and are answered later; the writer takes out all that are there.
//!
//! Bounds: a claim that finds `jobs_max` changes waiting is answered `Overloaded` at once. Endings are always let
//! in: funds are held until they are written, and there are no more of them than claims were let in. Cancels and
//! postings are let in as well, each with a caller that waits for it. Write tasks are bounded by their permits.
//!
//! Waking: a caller notifies only a writer that sleeps. The flag is read and set under the lock of the queues, so
//! that an arrival is seen before the writer sleeps, or wakes it.
//!
//! Closing: after [`Queue::close`] no change is accepted, and the queued ones are still written; after
//! [`Queue::abandon`] they are dropped, which reports each of them as not run.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use holdfast_domain::ports::CommitError;

use super::write_task::WriteTask;
use crate::batch::job::{BATCH_MAX, Job};

/// Changes and write tasks that callers have put in and the writer has not taken out.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<QueueState>,
    arrival: Condvar,
    jobs_max: usize,
}

#[derive(Debug, Default)]
struct QueueState {
    jobs: VecDeque<Job>,
    tasks: VecDeque<WriteTask>,
    is_closed: bool,
    /// Set while the writer sleeps: an arrival must wake it.
    is_writer_asleep: bool,
}

/// Changes and write tasks that the writer has taken out and not done yet.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    pub(super) jobs: VecDeque<Job>,
    pub(super) tasks: VecDeque<WriteTask>,
}

impl Queue {
    pub(super) fn new(jobs_max: usize) -> Self {
        Self { waiting: Mutex::default(), arrival: Condvar::new(), jobs_max: jobs_max.max(1) }
    }

    /// Puts a change in, or refuses a claim if there is no room. After the close a change is dropped.
    pub(super) fn offer(&self, job: Job) {
        let mut waiting = self.lock();
        if waiting.is_closed {
            // Its drop reports it: it has not happened.
            return;
        }
        if waiting.jobs.len() >= self.jobs_max && job.is_claim() {
            // Answered outside of the lock: the answer wakes another task.
            drop(waiting);
            job.answer(Err(CommitError::Overloaded));
            return;
        }
        waiting.jobs.push_back(job);
        self.wake(waiting);
    }

    /// Puts a write task in; after the close it is dropped. A sender of many makes room for each.
    pub(super) fn send(&self, task: WriteTask) {
        let mut waiting = self.lock();
        if !waiting.is_closed {
            waiting.tasks.push_back(task);
            self.wake(waiting);
        }
    }

    /// Accepts no more changes. Queued ones are still written.
    pub(super) fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        self.wake(waiting);
    }

    /// Closes, and drops what waits.
    pub(super) fn abandon(&self) {
        self.close();
        let (jobs, tasks) = {
            let mut waiting = self.lock();
            // Taken out first: each drop answers a caller, which must not happen under the lock.
            (std::mem::take(&mut waiting.jobs), std::mem::take(&mut waiting.tasks))
        };
        drop(jobs);
        drop(tasks);
    }

    /// Sleeps until the queue has work. `false`: it is empty and closed.
    pub(super) fn wait(&self) -> bool {
        let mut waiting = self.lock();
        loop {
            if !waiting.jobs.is_empty() || !waiting.tasks.is_empty() {
                return true;
            }
            if waiting.is_closed {
                return false;
            }
            // In a loop: a condition variable may wake without a cause.
            waiting.is_writer_asleep = true;
            waiting = self.arrival.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.is_writer_asleep = false;
        }
    }

    /// Number of changes that wait.
    pub(super) fn jobs(&self) -> usize {
        self.lock().jobs.len()
    }

    /// Takes out all write tasks, and changes for a batch.
    pub(super) fn take(&self, arrived: &mut Backlog) {
        let mut waiting = self.lock();
        arrived.tasks.append(&mut waiting.tasks);
        // No more than a batch takes: what waits here still counts against the bound of claims.
        let room = BATCH_MAX.saturating_sub(arrived.jobs.len()).min(waiting.jobs.len());
        arrived.jobs.extend(waiting.jobs.drain(..room));
    }

    fn wake(&self, waiting: MutexGuard<'_, QueueState>) {
        let is_asleep = waiting.is_writer_asleep;
        // Unlocked before the call: a writer that wakes would find the lock taken.
        drop(waiting);
        if is_asleep {
            self.arrival.notify_one();
        }
    }

    /// A panic under this lock leaves the queues whole.
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.tasks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use holdfast_domain::operation::{Effect, Transition};
    use holdfast_testkit::sample;

    use super::*;

    fn admission(n: u64) -> Arc<Transition> {
        sample::admission(&sample::claim().request_key(sample::request_key(n)).build())
    }

    fn ending(n: u64) -> Arc<Transition> {
        let admission = admission(n);
        let effect = Effect::Abandon { attempts: Arc::default() };
        Arc::new(Transition { effect, ..(*admission).clone() })
    }

    #[tokio::test]
    async fn what_is_abandoned_did_not_happen() {
        let (queue, (queued, verdict)) = (Queue::new(9), Job::new(admission(1)));
        queue.offer(queued);
        queue.abandon();
        let verdict = verdict.await.unwrap();
        assert!(matches!(verdict, Err(CommitError::Unavailable(_))), "{verdict:?}");
    }

    #[tokio::test]
    async fn what_finds_no_room_or_comes_too_late_is_told_so_at_once() {
        let queue = Queue::new(2);
        let [first, second, third] = [1, 2, 3].map(|n| {
            let (job, verdict) = Job::new(admission(n));
            queue.offer(job);
            verdict
        });
        let verdict = third.await.unwrap();
        assert!(matches!(verdict, Err(CommitError::Overloaded)), "{verdict:?}");
        let (ending, ended) = Job::new(ending(1));
        queue.offer(ending);
        queue.close();
        let (late, verdict) = Job::new(admission(4));
        queue.offer(late);
        let verdict = verdict.await.unwrap();
        assert!(matches!(verdict, Err(CommitError::Unavailable(_))), "{verdict:?}");
        assert!(queue.wait(), "what was queued before is still done");
        let mut taken = Backlog::default();
        queue.take(&mut taken);
        assert_eq!(taken.jobs.len(), 3, "an ending finds room");
        assert!(!queue.wait(), "nothing more comes");
        drop((first, second, ended));
    }
}
