//! The one task that writes: takes what callers have queued, commits it in batches, answers each.
//!
//! It owns its connection for ever, so no transaction hangs on a caller's future: a dropped caller
//! drops its answer only. It never waits to make a batch larger; it only lets those callers run who
//! were answered by the batch before.

use std::collections::{BTreeSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::limits::Counter;
use holdfast_domain::operation::{Change, Receipt};
use holdfast_domain::ports::{Cause, CommitError};
use holdfast_domain::{OperationId, PostingId, Timestamp};
use sea_orm::DatabaseConnection;
use sqlx::error::ErrorKind;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Executor};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub(crate) use super::batch::Memory;
use super::batch::{self, Failure};
use super::clock::Clock;
use super::connect::{CLOCK, CONSTRAINT, primary_code};
use super::records::{NUMS, ROWS_MAX};
use crate::metrics;

/// Changes that one transaction commits at most. Their transfers and counters fit into the records.
const BATCH_MAX: usize = 512;
/// Sealed bytes that one transaction writes at most, beside those of its last change.
const BATCH_BYTES_MAX: usize = 16 << 20;
/// Each change moves every counter at most once: more than there are of anything else.
const _: () = assert!(BATCH_MAX * Counter::ALL.len() <= ROWS_MAX);
/// How often callers may run before a batch is closed.
const YIELDS: usize = 3;

/// A change on its way to the writer.
#[derive(Debug)]
pub(crate) struct Job {
    change: Arc<Change>,
    answer: Answer,
}

/// Something else to write: administration, heartbeats, purges. It answers for itself, and says
/// whether the connection is still good.
pub(crate) type Errand =
    Box<dyn for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Kept> + Send>;

/// Whether a connection can be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Good,
    Broken,
}

/// Owes one caller a verdict. One that is dropped without says what is certain then: nothing happened
/// to a change that was still queued, anything may have happened to one in hand.
#[derive(Debug)]
struct Answer {
    to: Option<oneshot::Sender<Result<Receipt, CommitError>>>,
    in_hand: bool,
}

/// Why a job got no verdict.
#[derive(Debug, thiserror::Error)]
#[error("the writer has ended")]
pub(crate) struct WriterEnded;

/// An error that several callers are told of.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the database did not commit")]
struct Shared(#[source] Arc<sqlx::Error>);

impl Job {
    pub(crate) fn new(
        change: Arc<Change>,
    ) -> (Self, oneshot::Receiver<Result<Receipt, CommitError>>) {
        let (to, verdict) = oneshot::channel();
        (Self { change, answer: Answer { to: Some(to), in_hand: false } }, verdict)
    }

    /// Answers in the writer's place.
    pub(crate) fn refuse(self, verdict: CommitError) {
        self.answer.give(Err(verdict));
    }
}

impl Answer {
    fn give(mut self, verdict: Result<Receipt, CommitError>) {
        metrics::committed(&verdict);
        self.send(verdict);
    }

    fn send(&mut self, verdict: Result<Receipt, CommitError>) {
        if let Some(to) = self.to.take()
            && to.send(verdict).is_err()
        {
            tracing::trace!("the caller of a commit went away");
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let cause = Box::new(WriterEnded);
        self.send(Err(if self.in_hand {
            CommitError::Uncertain(cause)
        } else {
            CommitError::Unavailable(cause)
        }));
    }
}

/// What the writer needs to live.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) pool: DatabaseConnection,
    /// Counted up at every commit, for the checkpointer.
    pub(crate) commits: Arc<AtomicU64>,
    pub(crate) closing: CancellationToken,
    pub(crate) connection: Option<SqliteConnection>,
    pub(crate) memory: Memory,
}

impl Writer {
    /// Writes until the store closes and both queues are drained.
    pub(crate) async fn run(
        mut self,
        mut jobs: mpsc::Receiver<Job>,
        mut errands: mpsc::Receiver<Errand>,
    ) {
        let closing = self.closing.clone();
        let mut arrived = VecDeque::new();
        let (mut jobs_open, mut errands_open) = (true, true);
        while jobs_open || errands_open {
            let mut taken = Vec::new();
            tokio::select! {
                () = closing.cancelled(), if !jobs.is_closed() => {
                    jobs.close();
                    errands.close();
                }
                count = jobs.recv_many(&mut taken, BATCH_MAX), if jobs_open => {
                    jobs_open = count > 0;
                }
                errand = errands.recv(), if errands_open => match errand {
                    Some(errand) => self.run_errand(errand).await,
                    None => errands_open = false,
                },
            }
            if taken.is_empty() {
                continue;
            }
            arrived.extend(taken);
            gather(&mut jobs, &mut arrived).await;
            while !arrived.is_empty() {
                self.run_batch(take_batch(&mut arrived)).await;
            }
        }
    }

    async fn run_errand(&mut self, errand: Errand) {
        let work = async {
            match self.connect().await {
                Ok(connection) => errand(connection).await,
                Err(error) => {
                    tracing::error!(%error, "cannot connect");
                    Kept::Broken
                }
            }
        };
        match AssertUnwindSafe(work).catch_unwind().await {
            Ok(Kept::Good) => {
                self.commits.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Kept::Broken) => self.connection = None,
            Err(_panic) => {
                tracing::error!("an errand of the writer panicked");
                self.connection = None;
            }
        }
    }

    /// A panic in here loses the answers of the batch in hand, which says `Uncertain`, and no more.
    async fn run_batch(&mut self, batch: Vec<Job>) {
        let work = AssertUnwindSafe(self.commit_batch(batch));
        if work.catch_unwind().await.is_err() {
            tracing::error!("the writer panicked over a batch");
            self.connection = None;
        }
    }

    async fn commit_batch(&mut self, mut batch: Vec<Job>) {
        for job in &mut batch {
            job.answer.in_hand = true;
        }
        match self.try_batch(batch).await {
            Tried::Answered => {}
            // One of them does not fit the tables: it must not take the others with it.
            Tried::Bad(batch, _) if batch.len() > 1 => {
                for job in batch {
                    if let Tried::Bad(alone, error) = self.try_batch(vec![job]).await {
                        answer_bad(alone, error);
                    }
                }
            }
            Tried::Bad(alone, error) => answer_bad(alone, error),
        }
    }

    async fn try_batch(&mut self, batch: Vec<Job>) -> Tried {
        let started = Instant::now();
        let changes: Vec<Arc<Change>> = batch.iter().map(|job| Arc::clone(&job.change)).collect();
        let verdicts = match self.commit_changes(&changes).await {
            Ok(verdicts) => verdicts,
            Err(Failure::Constraint(error)) => return Tried::Bad(batch, error),
            Err(Failure::Unavailable(error)) => {
                self.connection = None;
                tracing::warn!(
                    %error,
                    "a batch was not committed"
                );
                answer_all(batch, error, CommitError::Unavailable);
                return Tried::Answered;
            }
            Err(Failure::Uncertain(error)) => {
                self.connection = None;
                tracing::error!(%error, "a commit is uncertain");
                answer_all(batch, error, CommitError::Uncertain);
                return Tried::Answered;
            }
        };
        metrics::batch(batch.len(), started.elapsed());
        self.commits.fetch_add(1, Ordering::Relaxed);
        for (job, verdict) in batch.into_iter().zip(verdicts) {
            job.answer.give(verdict.map_err(CommitError::from));
        }
        Tried::Answered
    }

    async fn commit_changes(
        &mut self,
        changes: &[Arc<Change>],
    ) -> Result<batch::Verdicts, Failure> {
        self.connect().await.map_err(Failure::Unavailable)?;
        match &mut self.connection {
            Some(connection) => batch::commit(connection, &mut self.memory, changes).await,
            None => Err(Failure::Unavailable(sqlx::Error::WorkerCrashed)),
        }
    }

    async fn connect(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.pool).await?,
        };
        Ok(self.connection.insert(connection))
    }
}

/// A transaction that does this and answers with what came of it.
pub(crate) fn errand<T, W>(
    clock: Arc<Clock>,
    work: W,
    to: oneshot::Sender<Result<T, sqlx::Error>>,
) -> Errand
where
    T: Send + 'static,
    W: for<'c> FnOnce(&'c mut SqliteConnection, Timestamp) -> BoxFuture<'c, Result<T, sqlx::Error>>
        + Send
        + 'static,
{
    Box::new(move |connection| {
        Box::pin(async move {
            let outcome = transaction(connection, &clock, work).await;
            let kept = match &outcome {
                Ok(_) => Kept::Good,
                Err(error) if primary_code(error) == Some(CONSTRAINT) => Kept::Good,
                Err(_) => Kept::Broken,
            };
            if to.send(outcome).is_err() {
                tracing::trace!("whoever sent an errand went away");
            }
            kept
        })
    })
}

async fn transaction<T, W>(
    connection: &mut SqliteConnection,
    clock: &Clock,
    work: W,
) -> Result<T, sqlx::Error>
where
    W: for<'c> FnOnce(&'c mut SqliteConnection, Timestamp) -> BoxFuture<'c, Result<T, sqlx::Error>>,
{
    connection.execute("BEGIN IMMEDIATE").await?;
    let run = async {
        let sql = AssertSqlSafe(format!("SELECT {CLOCK}"));
        let now: i64 = sqlx::query_scalar(sql).fetch_one(&mut *connection).await?;
        let value = work(connection, clock.stamp(Timestamp::from_micros(now))).await?;
        connection.execute("COMMIT").await?;
        Ok(value)
    };
    let outcome = run.await;
    if outcome.is_err() {
        batch::rollback(connection).await?;
    }
    outcome
}

/// A connection of its own, ready for the scripts.
pub(crate) async fn connect(pool: &DatabaseConnection) -> Result<SqliteConnection, sqlx::Error> {
    let mut connection = pool.get_sqlite_connection_pool().acquire().await?.detach();
    connection.execute(NUMS).await?;
    Ok(connection)
}

/// What became of an attempt at a batch.
enum Tried {
    /// Everybody has a verdict.
    Answered,
    /// Nothing was committed, because of one of these.
    Bad(Vec<Job>, sqlx::Error),
}

/// Takes in what has arrived, and what those send who were answered last.
async fn gather(jobs: &mut mpsc::Receiver<Job>, arrived: &mut VecDeque<Job>) {
    for _ in 0..YIELDS {
        tokio::task::yield_now().await;
        while arrived.len() < BATCH_MAX
            && let Ok(job) = jobs.try_recv()
        {
            arrived.push_back(job);
        }
    }
}

/// What no two changes of a batch may share.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Operation(OperationId),
    Posting(PostingId),
}

/// The longest batch in the order of arrival; a second change of one subject waits for the next.
fn take_batch(arrived: &mut VecDeque<Job>) -> Vec<Job> {
    let mut subjects = BTreeSet::new();
    let mut batch = Vec::new();
    let mut bytes: usize = 0;
    let mut later = VecDeque::new();
    while let Some(job) = arrived.pop_front() {
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
    *arrived = later;
    batch
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

fn answer_all(batch: Vec<Job>, error: sqlx::Error, verdict: impl Fn(Cause) -> CommitError) {
    let shared = Shared(Arc::new(error));
    for job in batch {
        job.answer.give(Err(verdict(Box::new(shared.clone()))));
    }
}

/// A change that was tried alone and does not fit the tables.
fn answer_bad(alone: Vec<Job>, error: sqlx::Error) {
    tracing::error!(%error, "a change does not fit the tables");
    let kind = error.as_database_error().map(|error| (error.kind(), error.message()));
    let verdict: fn(Cause) -> CommitError = match kind {
        // Its hold, its ending or its settlement is there already.
        Some((ErrorKind::UniqueViolation, _)) => |_cause| CommitError::Collision,
        Some((ErrorKind::Other, _)) => |_cause| CommitError::Collision,
        Some((ErrorKind::CheckViolation, check)) if check.contains("wallet_") => {
            |_cause| CommitError::InsufficientFunds
        }
        Some(_) | None => CommitError::Unavailable,
    };
    answer_all(alone, error, verdict);
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

    #[tokio::test]
    async fn a_writer_that_dies_says_what_is_certain() {
        let (queued, verdict) = Job::new(admission(1));
        drop(queued);
        let verdict = verdict.await.unwrap();
        assert!(matches!(verdict, Err(CommitError::Unavailable(_))), "{verdict:?}");
        let (mut in_hand, verdict) = Job::new(admission(1));
        in_hand.answer.in_hand = true;
        drop(in_hand);
        let verdict = verdict.await.unwrap();
        assert!(matches!(verdict, Err(CommitError::Uncertain(_))), "{verdict:?}");
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
        let mut arrived: VecDeque<Job> =
            changes.iter().map(|change| Job::new(Arc::clone(change)).0).collect();
        let mut batches = Vec::new();
        while !arrived.is_empty() {
            let batch = take_batch(&mut arrived);
            let place = |job: &Job| changes.iter().position(|c| Arc::ptr_eq(c, &job.change));
            batches.push(batch.iter().filter_map(place).collect::<Vec<_>>());
        }
        // The sixth waits for the fifth, whose posting it repeats, and makes the seventh wait.
        assert_eq!(batches, [vec![0, 1, 4, 7], vec![2, 5], vec![3, 6]]);
    }

    #[test]
    fn a_batch_has_an_end() {
        let mut arrived: VecDeque<Job> = (0..600).map(|n| Job::new(admission(n)).0).collect();
        assert_eq!(take_batch(&mut arrived).len(), BATCH_MAX);
        assert_eq!(take_batch(&mut arrived).len(), 600 - BATCH_MAX);
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
        let mut arrived: VecDeque<Job> = (0..5).map(|n| Job::new(result(n)).0).collect();
        assert_eq!([(); 3].map(|()| take_batch(&mut arrived).len()), [2, 2, 1]);
    }
}
