//! What waits for the writer: changes, and errands, which are all else that is written. Callers put in
//! and are answered later; the writer takes out whatever is there. It wakes the writer only where the
//! writer sleeps, and bounds what waits: a change that finds no room is `Overloaded` at once.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use holdfast_domain::ledger::PostingKind;
use holdfast_domain::operation::{Change, Receipt};
use holdfast_domain::ports::CommitError;
use holdfast_domain::{OperationId, PostingId};
use tokio::sync::oneshot;

use super::errand::Errand;
use crate::metrics;

/// Changes that one transaction commits at most.
pub(super) const BATCH_MAX: usize = 512;
/// Sealed bytes that one transaction writes at most, beside those of its last change.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// A change on its way to the writer. Dropped without a verdict it says what is certain then: nothing
/// happened to one that was still queued, anything may have happened to one in hand.
#[derive(Debug)]
pub(super) struct Job {
    change: Arc<Change>,
    to: Option<oneshot::Sender<Verdict>>,
    is_in_hand: bool,
}

pub(super) type Verdict = Result<Receipt, CommitError>;

/// Why a job got no verdict.
#[derive(Debug, thiserror::Error)]
#[error("the writer has ended")]
pub(super) struct WriterEnded;

/// What callers have put in and the writer has not taken out.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    arrival: Condvar,
    jobs_max: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    errands: VecDeque<Errand>,
    is_closed: bool,
    /// Whether the writer sleeps, and an arrival must wake it.
    is_writer_asleep: bool,
}

/// What the writer has taken out and not done yet.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    pub(super) jobs: VecDeque<Job>,
    pub(super) errands: VecDeque<Errand>,
}

impl Job {
    pub(super) fn new(change: Arc<Change>) -> (Self, oneshot::Receiver<Verdict>) {
        let (to, verdict) = oneshot::channel();
        (Self { change, to: Some(to), is_in_hand: false }, verdict)
    }

    pub(super) fn change(&self) -> &Change {
        &self.change
    }

    /// Says whether a transaction is being tried that writes it.
    pub(super) const fn set_in_hand(&mut self, is_in_hand: bool) {
        self.is_in_hand = is_in_hand;
    }

    pub(super) fn answer(mut self, verdict: Verdict) {
        metrics::committed(&verdict);
        self.send(verdict);
    }

    fn send(&mut self, verdict: Verdict) {
        if let Some(to) = self.to.take()
            && to.send(verdict).is_err()
        {
            tracing::trace!("the caller of a commit went away");
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let cause = Box::new(WriterEnded);
        self.send(Err(if self.is_in_hand {
            CommitError::Uncertain(cause)
        } else {
            CommitError::Unavailable(cause)
        }));
    }
}

impl Queue {
    pub(super) fn new(jobs_max: usize) -> Self {
        Self { waiting: Mutex::default(), arrival: Condvar::new(), jobs_max: jobs_max.max(1) }
    }

    /// Puts a change in, or says that there is no room. After the close nothing happens to it.
    pub(super) fn offer(&self, job: Job) {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return;
        }
        if waiting.jobs.len() >= self.jobs_max {
            drop(waiting);
            job.answer(Err(CommitError::Overloaded));
            return;
        }
        waiting.jobs.push_back(job);
        self.wake(waiting);
    }

    /// Puts an errand in; after the close it is dropped. Whoever sends many makes room for each.
    pub(super) fn send(&self, errand: Errand) {
        let mut waiting = self.lock();
        if !waiting.is_closed {
            waiting.errands.push_back(errand);
            self.wake(waiting);
        }
    }

    /// Takes in nothing more. What waits is still done.
    pub(super) fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        self.wake(waiting);
    }

    /// Closes, and drops what waits.
    pub(super) fn abandon(&self) {
        self.close();
        let (jobs, errands) = {
            let mut waiting = self.lock();
            (std::mem::take(&mut waiting.jobs), std::mem::take(&mut waiting.errands))
        };
        drop(jobs);
        drop(errands);
    }

    /// Sleeps until something waits. `false`: nothing does, and nothing more will come.
    pub(super) fn wait(&self) -> bool {
        let mut waiting = self.lock();
        loop {
            if !waiting.jobs.is_empty() || !waiting.errands.is_empty() {
                return true;
            }
            if waiting.is_closed {
                return false;
            }
            waiting.is_writer_asleep = true;
            waiting = self.arrival.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.is_writer_asleep = false;
        }
    }

    /// How many changes wait.
    pub(super) fn jobs(&self) -> usize {
        self.lock().jobs.len()
    }

    /// Takes out all errands, and changes for a batch.
    pub(super) fn take(&self, arrived: &mut Arrived) {
        let mut waiting = self.lock();
        arrived.errands.append(&mut waiting.errands);
        let room = BATCH_MAX.saturating_sub(arrived.jobs.len()).min(waiting.jobs.len());
        arrived.jobs.extend(waiting.jobs.drain(..room));
    }

    fn wake(&self, waiting: MutexGuard<'_, Waiting>) {
        let is_asleep = waiting.is_writer_asleep;
        drop(waiting);
        if is_asleep {
            self.arrival.notify_one();
        }
    }

    /// A panic under this lock leaves the queues whole.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Arrived {
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.errands.is_empty()
    }

    /// The longest batch in the order of arrival; a second change of one subject waits for the next.
    pub(super) fn batch(&mut self) -> Vec<Job> {
        let mut subjects = BTreeSet::new();
        let mut batch = Vec::with_capacity(self.jobs.len().min(BATCH_MAX));
        let mut bytes: usize = 0;
        let mut later = VecDeque::new();
        while let Some(job) = self.jobs.pop_front() {
            let concerned = subjects_of(&job.change);
            let free = !concerned.iter().flatten().any(|subject| subjects.contains(subject));
            if free && batch.len() < BATCH_MAX && bytes < BATCH_BYTES_MAX {
                bytes = bytes.saturating_add(sealed_bytes(&job.change));
                batch.push(job);
            } else {
                later.push_back(job);
            }
            // Whoever waits makes those wait who come after.
            subjects.extend(concerned.into_iter().flatten());
        }
        self.jobs = later;
        batch
    }
}

/// What no two changes of a batch may share.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Operation(OperationId),
    Posting(PostingId),
}

fn subjects_of(change: &Change) -> [Option<Subject>; 2] {
    match change {
        Change::Operation(transition) => [Some(Subject::Operation(transition.operation)), None],
        Change::Posting(posting) => {
            let refunded = match &posting.kind {
                PostingKind::Refund(operation) => Some(Subject::Operation(*operation)),
                PostingKind::Deposit | PostingKind::Adjustment(_) => None,
            };
            [Some(Subject::Posting(posting.id)), refunded]
        }
    }
}

fn sealed_bytes(change: &Change) -> usize {
    match change {
        Change::Operation(transition) => transition.result().map_or(0, |it| it.sealed.len()),
        Change::Posting(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use holdfast_domain::Micros;
    use holdfast_domain::ledger::Posting;
    use holdfast_domain::operation::{Effect, Transition};
    use holdfast_testkit::sample;

    use super::*;

    fn admission(n: u64) -> Arc<Change> {
        sample::admission(&sample::claim().request_key(sample::request_key(n)).build())
    }

    fn refund(id: u128, operation: OperationId) -> Arc<Change> {
        let (wallet, amount) = (sample::WALLET, Micros::new(1));
        let kind = PostingKind::Refund(operation);
        Arc::new(Change::Posting(Posting { id: PostingId::from_u128(id), wallet, kind, amount }))
    }

    fn arrived(changes: impl IntoIterator<Item = Arc<Change>>) -> Arrived {
        let jobs = changes.into_iter().map(|change| Job::new(change).0).collect();
        Arrived { jobs, errands: VecDeque::new() }
    }

    #[tokio::test]
    async fn a_writer_that_dies_says_what_is_certain() {
        let (queue, (queued, verdict)) = (Queue::new(9), Job::new(admission(1)));
        queue.offer(queued);
        queue.abandon();
        let verdict = verdict.await.unwrap();
        assert!(matches!(verdict, Err(CommitError::Unavailable(_))), "{verdict:?}");
        let (mut in_hand, verdict) = Job::new(admission(1));
        in_hand.set_in_hand(true);
        drop(in_hand);
        let verdict = verdict.await.unwrap();
        assert!(matches!(verdict, Err(CommitError::Uncertain(_))), "{verdict:?}");
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
        queue.close();
        let (late, verdict) = Job::new(admission(4));
        queue.offer(late);
        let verdict = verdict.await.unwrap();
        assert!(matches!(verdict, Err(CommitError::Unavailable(_))), "{verdict:?}");
        assert!(queue.wait(), "what was queued before is still done");
        let mut taken = Arrived::default();
        queue.take(&mut taken);
        assert_eq!(taken.jobs.len(), 2);
        assert!(!queue.wait(), "nothing more comes");
        drop((first, second));
    }

    #[test]
    fn a_batch_has_one_change_of_a_subject_and_keeps_the_order_of_the_rest() {
        let of = |n| OperationId::of(sample::API_KEY, sample::request_key(n));
        let changes = [
            admission(1),
            admission(2),
            admission(1),
            refund(7, of(1)),
            refund(8, of(3)),
            refund(8, of(4)),
            admission(4),
            admission(5),
        ];
        let mut arrived = arrived(changes.iter().map(Arc::clone));
        let mut batches = Vec::new();
        while !arrived.is_empty() {
            let batch = arrived.batch();
            let place = |job: &Job| changes.iter().position(|c| Arc::ptr_eq(c, &job.change));
            batches.push(batch.iter().filter_map(place).collect::<Vec<_>>());
        }
        // The sixth waits for the fifth, whose posting it repeats, and makes the seventh wait.
        assert_eq!(batches, [vec![0, 1, 4, 7], vec![2, 5], vec![3, 6]]);
    }

    #[test]
    fn a_batch_has_an_end() {
        let mut arrived = arrived((0..600).map(admission));
        assert_eq!(arrived.batch().len(), BATCH_MAX);
        assert_eq!(arrived.batch().len(), 600 - BATCH_MAX);
    }

    #[test]
    fn a_batch_of_large_results_has_an_end_too() {
        let result = |n| {
            let admission = admission(n);
            let Change::Operation(transition) = &*admission else { return admission };
            let refusal = holdfast_domain::operation::ProviderRefusal::Request;
            let mut result = sample::result("");
            result.sealed = vec![0; BATCH_BYTES_MAX / 2];
            let effect = Effect::Refuse { refusal, result, attempts: Vec::new() };
            Arc::new(Change::Operation(Transition { effect, ..transition.clone() }))
        };
        let mut arrived = arrived((0..5).map(result));
        assert_eq!([(); 3].map(|()| arrived.batch().len()), [2, 2, 1]);
    }
}
