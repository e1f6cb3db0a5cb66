//! Everything that is SQLite's: connections and their settings, the writer and its statements, the
//! ports' statements that write.

mod administration;
pub mod backup;
mod batch;
mod checkpoint;
mod clock;
pub(crate) mod connect;
mod endings;
mod nodes;
mod notifier;
#[cfg(test)]
pub(crate) mod plans;
mod prices;
mod purges;
mod queue;
pub(crate) mod readers;
mod recorded;
mod statements;
mod transfers;
mod usage;
mod write_task;
mod writer;

use std::path::Path;
use std::sync::Arc;

use holdfast_domain::Timestamp;
use holdfast_domain::admin::report::{EXPORTS_AT_ONCE, REPORTS_AT_ONCE};
use holdfast_domain::operation::{Receipt, Transition};
use holdfast_domain::ports::{CommitError, Unavailable};
use rusqlite::Transaction;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::clock::Clock;
use self::connect::DatabaseFile;
use self::queue::Queue;
use self::readers::FileReaders;
use self::write_task::{WriteError, WriteTask};
use crate::batch::job::{Job, WriterEnded};
use crate::error::{OpenError, unavailable};
use crate::lock;
use crate::options::{AUDITS, GLANCES, Options, SUMMING};
use crate::transaction::event::SharedInterest;

/// Heartbeats, administration and purges that wait for the writer at most; more wait for room.
const WRITE_TASKS_MAX: usize = 64;

/// SQLite holds a row of 1,000,000,000 bytes at most, and this process takes that setting as it is: a result with
/// the rest of its row.
pub(crate) const RESULT_BYTES_MAX: usize = 1_000_000_000 - (1 << 20);

/// A database file and what writes it.
#[derive(Debug)]
pub(crate) struct Sqlite {
    file: DatabaseFile,
    queue: Arc<Queue>,
    room: Arc<Semaphore>,
    clock: Arc<Clock>,
    interest: SharedInterest,
    ended: CancellationToken,
}

impl Sqlite {
    /// Starts the writer of a file, and waits until it can write; gives the connections that read,
    /// those for short reads, for audits, for reports, for the summing and for
    /// exports, too.
    pub(crate) async fn open(
        path: &Path,
        options: &Options,
        tasks: &TaskTracker,
    ) -> Result<(Self, [FileReaders; 6]), OpenError> {
        connect::check_library().map_err(OpenError::Connect)?;
        lock::hold(path, options.lock.as_deref()).map_err(OpenError::Lock)?;
        let (busy_timeout, lock) = (options.busy_timeout, options.lock.clone());
        let file = DatabaseFile { path: path.to_owned(), busy_timeout, lock };
        // Before the others: log and index are noted of the first.
        let keeper = file.clone();
        let kept = tokio::task::spawn_blocking(move || keeper.keep()).await;
        kept.map_err(|error| OpenError::Writer(error.into()))?.map_err(OpenError::Writer)?;
        let opened = Self {
            file,
            queue: Arc::new(Queue::new(options.commit_queue)),
            room: Arc::new(Semaphore::new(WRITE_TASKS_MAX)),
            clock: Arc::default(),
            interest: options.interest.clone(),
            ended: CancellationToken::new(),
        };
        writer::start(&opened, tasks).await.map_err(OpenError::Writer)?;
        let is_serving = opened.file.lock.is_some();
        // A process that serves opens all of them now: one that is opened later would make a log anew that was removed
        // meanwhile. A command opens one for results and lists, and the other pools with their first read: each
        // connection reads the whole schema, and most commands use the first one only.
        let first = if is_serving { options.readers } else { 1 };
        let whole = |most| FileReaders::new(path, busy_timeout, (most, most));
        let pools = [
            FileReaders::new(path, busy_timeout, (first, options.readers)),
            whole(GLANCES),
            whole(AUDITS),
            whole(u32::from(REPORTS_AT_ONCE)),
            whole(SUMMING),
            whole(u32::from(EXPORTS_AT_ONCE)),
        ];
        let opened_now = if is_serving { pools.len() } else { 1 };
        for readers in pools.iter().take(opened_now) {
            readers.open().await.map_err(OpenError::Connect)?;
        }
        Ok((opened, pools))
    }

    /// Accepts no more changes; the writer ends after the queued ones.
    pub(crate) fn finish(&self) {
        self.queue.close();
    }

    /// Completes after the last write: the writer has drained, or it is gone.
    pub(crate) async fn closed(&self) {
        self.ended.cancelled().await;
    }

    /// Leaves the file in order, after the writer has ended.
    pub(crate) async fn close(&self) -> Result<(), Unavailable> {
        let file = self.file.clone();
        let folded = tokio::task::spawn_blocking(move || file.leave()).await;
        folded.map_err(unavailable)?.map_err(unavailable)
    }

    /// Queues a change for the writer and waits for its verdict.
    pub(crate) async fn offer(&self, change: Arc<Transition>) -> Result<Receipt, CommitError> {
        let (job, verdict) = Job::new(change);
        self.queue.offer(job);
        // Lost without a verdict, which the drop of a job should not allow: its outcome is uncertain.
        let ended = |_closed| Err(CommitError::Uncertain(Box::new(WriterEnded)));
        verdict.await.unwrap_or_else(ended)
    }

    /// Has the writer do this in a transaction of its own, between two batches. It happens whether or
    /// not the caller waits for it.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>, Timestamp) -> Result<T, WriteError> + Send + 'static,
    ) -> Result<T, WriteError> {
        // Before the queue, and given back when the task is done: so many are queued at most.
        let room = Arc::clone(&self.room).acquire_owned().await;
        let room = room.map_err(|_closed| WriteError::NotTried)?;
        let (to, outcome) = oneshot::channel();
        self.queue.send(WriteTask::new(work, to, room));
        outcome.await.map_err(|_dropped| WriteError::NotTried)?
    }

    /// The clock as a read sees it.
    pub(crate) fn seen(&self, now: Timestamp) -> Timestamp {
        self.clock.read(now)
    }
}

impl Drop for Sqlite {
    /// The writer ends with the last clone of the store, if it was not closed.
    fn drop(&mut self) {
        self.finish();
    }
}
