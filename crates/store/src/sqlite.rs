//! Everything that is SQLite's: connections and their settings, the writer and its scripts, the
//! ports' statements that write.

mod batch;
mod checkpoint;
mod clock;
pub(crate) mod connect;
mod journal;
mod keys;
mod nodes;
mod pack;
#[cfg(test)]
mod plans;
mod prices;
mod records;
mod script;
mod wallets;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_util::future::BoxFuture;
use holdfast_domain::Timestamp;
use holdfast_domain::operation::{Change, Receipt};
use holdfast_domain::ports::{Cause, CommitError, Unavailable};
use sea_orm::{ConnectionTrait, DatabaseConnection};
use sqlx::sqlite::SqliteConnection;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::clock::Clock;
use self::writer::{Errand, Job, Memory, Writer, WriterEnded};
use crate::{OpenError, Options, unavailable};

/// Heartbeats, administration and purges that wait for the writer at most; more wait for room.
const ERRANDS_MAX: usize = 64;

/// A database file and what writes it.
pub(crate) struct Sqlite {
    writers: DatabaseConnection,
    jobs: mpsc::Sender<Job>,
    errands: mpsc::Sender<Errand>,
    clock: Arc<Clock>,
    /// Ends the tasks with the last clone of the store, where nobody closed it.
    closing: DropGuard,
}

impl Sqlite {
    /// Starts the writer of a file on the current runtime, as tasks among these.
    pub(crate) async fn open(
        file: &Path,
        options: &Options,
        tasks: &TaskTracker,
    ) -> Result<Self, OpenError> {
        let writers =
            connect::writers(file, options.busy_timeout).await.map_err(OpenError::Connect)?;
        let cause = |error: sqlx::Error| -> OpenError { OpenError::Writer(Cause::from(error)) };
        let connection = writer::connect(&writers).await.map_err(cause)?;
        let closing = CancellationToken::new();
        let clock = Arc::new(Clock::default());
        let commits = Arc::new(AtomicU64::new(0));
        let (jobs, job_queue) = mpsc::channel(options.commit_queue.max(1));
        let (errands, errand_queue) = mpsc::channel(ERRANDS_MAX);
        let writer = Writer {
            pool: writers.clone(),
            commits: Arc::clone(&commits),
            closing: closing.clone(),
            connection: Some(connection),
            memory: Memory::new(Arc::clone(&clock)),
        };
        tasks.spawn(writer.run(job_queue, errand_queue));
        tasks.spawn(checkpoint::run(writers.clone(), commits, closing.clone()));
        Ok(Self { writers, jobs, errands, clock, closing: closing.drop_guard() })
    }

    /// Takes in nothing more; its tasks end when what waits is committed.
    pub(crate) fn finish(&self) {
        self.closing.token().cancel();
    }

    /// Folds the log into the file and closes it, after its tasks have ended.
    pub(crate) async fn close(&self) -> Result<(), Unavailable> {
        let folded = self.writers.execute_unprepared("PRAGMA wal_checkpoint(TRUNCATE)").await;
        self.writers.close_by_ref().await.map_err(unavailable)?;
        folded.map(drop).map_err(unavailable)
    }

    /// Completes when nothing is written any more.
    pub(crate) async fn closed(&self) {
        self.jobs.closed().await;
    }

    /// Queues a change for the writer and waits for its verdict.
    pub(crate) async fn offer(&self, change: Arc<Change>) -> Result<Receipt, CommitError> {
        let (job, verdict) = Job::new(change);
        match self.jobs.try_send(job) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(job)) => {
                job.refuse(CommitError::Overloaded);
            }
            // Dropped there, it says that nothing happened.
            Err(mpsc::error::TrySendError::Closed(job)) => drop(job),
        }
        let ended = |_closed| Err(CommitError::Uncertain(Box::new(WriterEnded)));
        verdict.await.unwrap_or_else(ended)
    }

    /// Has the writer do this in a transaction of its own, between two batches. It happens whether or
    /// not the caller waits for it.
    async fn write<T, W>(&self, work: W) -> Result<T, sqlx::Error>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(
                &'c mut SqliteConnection,
                Timestamp,
            ) -> BoxFuture<'c, Result<T, sqlx::Error>>
            + Send
            + 'static,
    {
        let (to, outcome) = oneshot::channel();
        let errand = writer::errand(Arc::clone(&self.clock), work, to);
        let ended = || sqlx::Error::WorkerCrashed;
        self.errands.send(errand).await.map_err(|_closed| ended())?;
        outcome.await.map_err(|_dropped| ended())?
    }

    /// The clock as a read sees it.
    pub(crate) fn seen(&self, now: Timestamp) -> Timestamp {
        self.clock.read(now)
    }
}
