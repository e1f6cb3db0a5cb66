//! Where it is kept: operations, holds, the book, wallets, API keys, prices and node leases, on
//! SQLite. [`Store`] fulfils the storage ports of `holdfast-domain`; what only the command line
//! reads are methods of its own.
//!
//! It decides nothing about operations. It enforces three things over what a transaction has read:
//! the version is the one that was judged, balances and counters stay within bounds, permanent ids do
//! not repeat. The tables repeat that as constraints.
//!
//! Everything that knows a dialect is in `sqlite`; judging and the mapping of rows are the same for
//! all.

mod judge;
mod lock;
mod metrics;
pub mod migrate;
pub mod report;
mod rows;
mod sqlite;
pub mod statement;
mod url;
pub mod usage;
pub mod verify;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures_util::future::BoxFuture;
use holdfast_domain::Timestamp;
use holdfast_domain::operation::{Change, Receipt};
use holdfast_domain::ports::{Cause, CommitError, Unavailable};
use sea_orm::{ConnectionTrait, DatabaseConnection, QueryResult, Value};
use sqlx::sqlite::SqliteConnection;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

pub use crate::lock::{LockError, ServeLock};
pub use crate::migrate::SchemaError;
use crate::sqlite::clock::Clock;
pub use crate::sqlite::connect::ConnectError;
use crate::sqlite::writer::{Errand, Job, Memory, Writer, WriterEnded};
use crate::sqlite::{checkpoint, connect, writer};
pub use crate::url::{BadDatabaseUrl, DatabaseUrl};

/// Heartbeats, administration and purges that wait for the writer at most; more wait for room.
const ERRANDS_MAX: usize = 64;

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which file it is.
    pub url: DatabaseUrl,
    /// Commits that may wait for the writer; the next one is `Overloaded`.
    pub commit_queue: usize,
    /// Connections that read.
    pub readers: u32,
    /// How long a write waits while another process writes, before it is `Unavailable`.
    pub busy_timeout: Duration,
}

impl Options {
    /// The usual settings, for a database at this URL.
    #[must_use]
    pub const fn new(url: DatabaseUrl) -> Self {
        Self { url, commit_queue: 4_096, readers: 4, busy_timeout: Duration::from_secs(5) }
    }
}

/// Why a store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// What is there is not what this program works with.
    #[error(transparent)]
    Schema(SchemaError),
    /// It cannot be connected to.
    #[error("the database cannot be opened")]
    Connect(#[source] ConnectError),
    /// The writer cannot be set up.
    #[error("the database cannot be written")]
    Writer(#[source] Cause),
}

/// An open database. Clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    readers: DatabaseConnection,
    writers: DatabaseConnection,
    jobs: mpsc::Sender<Job>,
    errands: mpsc::Sender<Errand>,
    clock: Arc<Clock>,
    tasks: TaskTracker,
    /// Ends the tasks with the last clone, where nobody closed the store.
    closing: DropGuard,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    /// Opens a database that `holdfast migrate up` has made ready, and starts its writer on the
    /// current runtime.
    ///
    /// # Errors
    ///
    /// Where the file is missing, is not ours, or has another schema; where it cannot be opened.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        metrics::describe();
        let path = options.url.file();
        check(&options.url, options.busy_timeout).await.map_err(OpenError::Schema)?;
        let busy = options.busy_timeout;
        let writers = connect::writers(path, busy).await.map_err(OpenError::Connect)?;
        let readers =
            connect::readers(path, busy, options.readers).await.map_err(OpenError::Connect)?;
        let cause = |error: sqlx::Error| OpenError::Writer(Box::new(error));
        let connection = writer::connect(&writers).await.map_err(cause)?;

        let closing = CancellationToken::new();
        let clock = Arc::new(Clock::default());
        let commits = Arc::new(AtomicU64::new(0));
        let tasks = TaskTracker::new();
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
        tasks.close();
        let closing = closing.drop_guard();
        let inner = Inner { readers, writers, jobs, errands, clock, tasks, closing };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Takes in nothing more, commits what waits, folds the log into the database file and closes
    /// it. Not cancel safe: a dropped future leaves the rest to the end of the process.
    ///
    /// # Errors
    ///
    /// Where the log could not be folded in or a connection not be closed. Nothing is lost by that.
    pub async fn close(self) -> Result<(), Unavailable> {
        self.inner.closing.token().cancel();
        self.inner.tasks.wait().await;
        let folded = self.inner.writers.execute_unprepared("PRAGMA wal_checkpoint(TRUNCATE)").await;
        self.inner.readers.close_by_ref().await.map_err(unavailable)?;
        self.inner.writers.close_by_ref().await.map_err(unavailable)?;
        folded.map(drop).map_err(unavailable)
    }

    /// Completes when nothing is written any more: the store was closed, or its writer ended by
    /// itself and every later write fails.
    pub async fn closed(&self) {
        self.inner.jobs.closed().await;
    }

    /// Queues a change for the writer and waits for its verdict.
    pub(crate) async fn offer(&self, change: Arc<Change>) -> Result<Receipt, CommitError> {
        let (job, verdict) = Job::new(change);
        match self.inner.jobs.try_send(job) {
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
    pub(crate) async fn write<T, W>(&self, work: W) -> Result<T, sqlx::Error>
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
        let errand = writer::errand(Arc::clone(&self.inner.clock), work, to);
        let ended = || sqlx::Error::WorkerCrashed;
        self.inner.errands.send(errand).await.map_err(|_closed| ended())?;
        outcome.await.map_err(|_dropped| ended())?
    }

    pub(crate) async fn query<const N: usize>(
        &self,
        sql: &str,
        values: [Value; N],
    ) -> Result<Vec<QueryResult>, Unavailable> {
        let statement = sqlite::statement(sql, values);
        self.inner.readers.query_all_raw(statement).await.map_err(unavailable)
    }

    /// The clock as a read sees it.
    pub(crate) fn seen(&self, now: Timestamp) -> Timestamp {
        self.inner.clock.read(now)
    }

    /// Runs to its end whether or not the caller waits for it.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.inner.tasks.spawn(work)
    }

    pub(crate) fn readers(&self) -> &DatabaseConnection {
        &self.inner.readers
    }
}

/// Looks at the schema through a connection that cannot write: a file that is refused stays as it is.
async fn check(url: &DatabaseUrl, busy_timeout: Duration) -> Result<(), SchemaError> {
    migrate::exists(url)?;
    let path = url.file();
    let reader = connect::readers(path, busy_timeout, 1).await.map_err(migrate::foreign(path))?;
    let checked = migrate::check(&reader, path).await;
    reader.close().await.map_err(SchemaError::Failed)?;
    checked
}

pub(crate) fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> Unavailable {
    Unavailable(Box::new(error))
}
