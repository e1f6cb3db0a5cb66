//! Changes on their way to a writer, whatever the database: jobs, verdicts, and the rule by which a batch is made.
//!
//! A job lives from its caller's offer to its verdict:
//!
//! ```text
//! new -> queued -> in flight -> answer(verdict)
//!           |          |
//!           drop       drop
//!      Unavailable   Uncertain
//! ```
//!
//! A writer that dies drops its jobs, and each drop reports what is certain: a queued change has not happened, one
//! in flight may have. A job must never be dropped as queued once its COMMIT may have been sent.
//!
//! A batch (`take_batch`) has one change of an operation, keeps the order of arrival for those that share one, and
//! is bounded: `BATCH_MAX` changes, `BATCH_BYTES_MAX` of sealed results besides its last change. A change above
//! `ALONE_BYTES`, or one that failed by itself before (`Quarantine`, `MISFITS_MAX` operations), has a batch of its
//! own, so that it undoes no other change.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_domain::OperationId;
use holdfast_domain::operation::{Effect, Receipt, Transition};
use holdfast_domain::ports::{Cause, CommitError};
use tokio::sync::oneshot;

use crate::metrics;

/// Changes that one transaction commits at most.
pub(crate) const BATCH_MAX: usize = 512;
/// Sealed bytes that one transaction writes at most, besides those of its last change.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// A change that writes more than this has a transaction of its own.
const ALONE_BYTES: usize = BATCH_BYTES_MAX;
/// Changes that failed in a batch of their own, which a writer remembers at most.
const MISFITS_MAX: usize = 1_024;

/// Operations whose changes have failed in a batch of their own. They are offered again and again, and would undo a
/// batch each time: they are kept out of it.
#[derive(Debug, Default)]
pub(crate) struct Quarantine(BTreeSet<OperationId>);

impl Quarantine {
    /// Keeps changes that failed by themselves out of batches from now on.
    pub(crate) fn note(&mut self, alone: &[Job]) {
        if self.0.len() >= MISFITS_MAX {
            // All of them at once: a misfit that comes again costs one batch, and is noted anew.
            self.0.clear();
        }
        self.0.extend(alone.iter().map(|job| job.change.operation));
    }

    fn has(&self, change: &Transition) -> bool {
        self.0.contains(&change.operation)
    }
}

/// A change on its way to the writer. Dropped without a verdict it reports what is certain then: a queued one has
/// not happened, one in hand may have.
#[derive(Debug)]
pub(crate) struct Job {
    change: Arc<Transition>,
    offered: Instant,
    to: Option<oneshot::Sender<CommitResult>>,
    is_in_hand: bool,
}

pub(crate) type CommitResult = Result<Receipt, CommitError>;

/// Cause in the verdict of a job that the writer dropped.
#[derive(Debug, thiserror::Error)]
#[error("the writer has ended")]
pub(crate) struct WriterEnded;

/// Error of a batch, shared by the verdicts of all its callers.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the database did not commit")]
struct SharedError<E: std::error::Error + 'static>(#[source] Arc<E>);

impl Job {
    pub(crate) fn new(change: Arc<Transition>) -> (Self, oneshot::Receiver<CommitResult>) {
        // One verdict each: the writer's send to a caller that went away has no effect.
        let (to, verdict) = oneshot::channel();
        (Self { change, offered: Instant::now(), to: Some(to), is_in_hand: false }, verdict)
    }

    pub(crate) fn change(&self) -> &Transition {
        &self.change
    }

    /// Time since the caller's offer, the wait in the queue included.
    pub(crate) fn age(&self) -> Duration {
        self.offered.elapsed()
    }

    /// True for a change that may be turned away as `Overloaded`: it has not begun, and its caller may come again.
    /// A change that brings an operation further is never turned away: funds are held until it is done, and there
    /// are no more of those than claims that were let in.
    pub(crate) fn is_claim(&self) -> bool {
        match self.change.effect {
            Effect::Admit(_) | Effect::Reopen(_) => true,
            Effect::Complete { .. }
            | Effect::Record { .. }
            | Effect::Settle
            | Effect::AskCancel
            | Effect::Cancel
            | Effect::Open { .. }
            | Effect::Refuse { .. }
            | Effect::Abandon { .. } => false,
        }
    }

    /// Marks whether a transaction that writes it is in progress.
    pub(crate) const fn set_in_flight(&mut self, is_in_hand: bool) {
        self.is_in_hand = is_in_hand;
    }

    pub(crate) fn answer(mut self, verdict: CommitResult) {
        metrics::committed(&verdict);
        self.send(verdict);
    }

    fn send(&mut self, verdict: CommitResult) {
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
        // Metrics count verdicts of a writer only: a drop is none.
        self.send(Err(if self.is_in_hand {
            CommitError::Uncertain(cause)
        } else {
            CommitError::Unavailable(cause)
        }));
    }
}

/// Takes the longest batch in the order of arrival; a second change of one operation waits for the next. A change
/// that is large, or that failed before, has a batch of its own.
pub(crate) fn take_batch(arrived: &mut VecDeque<Job>, misfits: &Quarantine) -> Vec<Job> {
    let mut operations = BTreeSet::new();
    let mut batch = Vec::with_capacity(arrived.len().min(BATCH_MAX));
    let mut bytes: usize = 0;
    let mut is_closed = false;
    let mut later = VecDeque::new();
    while let Some(job) = arrived.pop_front() {
        let operation = job.change.operation;
        let free = !operations.contains(&operation);
        let its_bytes = sealed_bytes(&job.change);
        let is_alone = its_bytes > ALONE_BYTES || misfits.has(&job.change);
        // Bytes are compared before this change is added: the last one may go over.
        let fits = batch.len() < BATCH_MAX && bytes < BATCH_BYTES_MAX && !is_closed;
        if free && fits && (batch.is_empty() || !is_alone) {
            bytes = bytes.saturating_add(its_bytes);
            // A large change closes its own batch; one that comes later waits for a batch of its
            // own.
            is_closed = is_alone;
            batch.push(job);
        } else {
            later.push_back(job);
        }
        // A change that waits makes those wait that come after it: their order is the order of
        // arrival.
        operations.insert(operation);
    }
    *arrived = later;
    batch
}

/// Answers each of these jobs with one failure, which they share.
pub(crate) fn answer_all<E: std::error::Error + Send + Sync + 'static>(
    jobs: impl IntoIterator<Item = Job>,
    error: E,
    verdict: impl Fn(Cause) -> CommitError,
) {
    let shared = Arc::new(error);
    for job in jobs {
        job.answer(Err(verdict(Box::new(SharedError(Arc::clone(&shared))))));
    }
}

/// The length of the result that a change writes.
pub(crate) fn sealed_bytes(change: &Transition) -> usize {
    change.result().map_or(0, |it| it.sealed.len())
}

#[cfg(test)]
mod tests {
    use holdfast_testkit::sample;

    use super::*;

    fn admission(n: u64) -> Arc<Transition> {
        sample::admission(&sample::claim().request_key(sample::request_key(n)).build())
    }

    fn arrived(changes: impl IntoIterator<Item = Arc<Transition>>) -> VecDeque<Job> {
        changes.into_iter().map(|change| Job::new(change).0).collect()
    }

    #[tokio::test]
    async fn a_writer_that_dies_says_what_is_certain() {
        let (queued, verdict) = Job::new(admission(1));
        drop(queued);
        let verdict = verdict.await.unwrap();
        assert!(matches!(verdict, Err(CommitError::Unavailable(_))), "{verdict:?}");
        let (mut in_hand, verdict) = Job::new(admission(1));
        in_hand.set_in_flight(true);
        drop(in_hand);
        let verdict = verdict.await.unwrap();
        assert!(matches!(verdict, Err(CommitError::Uncertain(_))), "{verdict:?}");
    }

    #[test]
    fn a_batch_has_one_change_of_a_subject_and_keeps_the_order_of_the_rest() {
        let changes =
            [admission(1), admission(2), admission(1), admission(3), admission(1), admission(3)];
        let mut arrived = arrived(changes.iter().map(Arc::clone));
        let mut batches = Vec::new();
        while !arrived.is_empty() {
            let batch = take_batch(&mut arrived, &Quarantine::default());
            let place = |job: &Job| changes.iter().position(|c| Arc::ptr_eq(c, &job.change));
            batches.push(batch.iter().filter_map(place).collect::<Vec<_>>());
        }
        assert_eq!(batches, [vec![0, 1, 3], vec![2, 5], vec![4]]);
    }

    #[test]
    fn a_batch_has_an_end() {
        let mut arrived = arrived((0..600).map(admission));
        assert_eq!(take_batch(&mut arrived, &Quarantine::default()).len(), BATCH_MAX);
        assert_eq!(take_batch(&mut arrived, &Quarantine::default()).len(), 600 - BATCH_MAX);
    }

    /// A change that writes a result of so many bytes.
    fn result(n: u64, bytes: usize) -> Arc<Transition> {
        let admission = admission(n);
        let refusal = holdfast_domain::operation::ProviderRefusal::Request;
        let mut result = sample::result("");
        result.sealed = vec![0; bytes].into();
        let effect = Effect::Refuse { refusal, result, attempts: Arc::default() };
        Arc::new(Transition { effect, ..(*admission).clone() })
    }

    #[test]
    fn what_is_large_or_did_not_fit_before_is_in_nobody_elses_batch() {
        let mut misfits = Quarantine::default();
        misfits.note(&[Job::new(admission(3)).0]);
        let large = result(1, ALONE_BYTES + 1);
        let mut arrived = arrived([admission(0), large, admission(2), admission(3), admission(4)]);
        let batches: Vec<_> =
            [(); 4].map(|()| take_batch(&mut arrived, &misfits).len()).into_iter().collect();
        assert_eq!(batches, [3, 1, 1, 0]);
        for n in 0..2 * u64::try_from(MISFITS_MAX).unwrap() {
            misfits.note(&[Job::new(admission(n)).0]);
        }
        assert!(misfits.0.len() <= MISFITS_MAX, "{}", misfits.0.len());
    }

    #[test]
    fn a_batch_of_large_results_has_an_end_too() {
        let mut arrived = arrived((0..5).map(|n| result(n, BATCH_BYTES_MAX / 2)));
        assert_eq!(
            [(); 3].map(|()| take_batch(&mut arrived, &Quarantine::default()).len()),
            [2, 2, 1]
        );
    }
}
