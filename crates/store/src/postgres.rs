//! Everything that is PostgreSQL's: connections and their settings, the writer and its statements,
//! the ports' statements that write.
//!
//! Several processes may work on one database at once. What they write is kept apart by the locks of
//! wallets, and by the versions of operations.

mod arrays;
mod batch;
pub(crate) mod connect;
mod journal;
mod keys;
mod nodes;
mod pack;
mod prices;
mod statements;
mod wallets;
mod writer;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use holdfast_domain::Timestamp;
use holdfast_domain::operation::{Change, Receipt};
use holdfast_domain::ports::CommitError;
use sea_orm::DatabaseConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, PgPool};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::batch::Memory;
use self::connect::CLOCK;
use self::writer::Writer;
use crate::job::{Job, WriterEnded};
use crate::{OpenError, Options};

/// Connections beside those of readers: one for a heartbeat, one for whatever else is written.
const WRITERS: u32 = 2;

/// A database of a server, and what writes it.
pub(crate) struct Postgres {
    pool: PgPool,
    jobs: mpsc::Sender<Job>,
    tasks: TaskTracker,
    /// Ends the writer with the last clone of the store, where nobody closed it.
    closing: DropGuard,
}

impl Postgres {
    /// Starts the writer on the current runtime, as a task among these; gives the connections that
    /// read, too.
    pub(crate) async fn open(
        url: &PgConnectOptions,
        options: &Options,
        tasks: &TaskTracker,
    ) -> Result<(Self, DatabaseConnection), OpenError> {
        let lock_timeout = options.busy_timeout;
        let connections = options.readers.max(1).saturating_add(WRITERS);
        let db = connect::pool(url, lock_timeout, connections).await.map_err(OpenError::Connect)?;
        let connection = writer::connect(url, lock_timeout).await;
        let connection = connection.map_err(|error| OpenError::Writer(Box::new(error)))?;
        let closing = CancellationToken::new();
        let (jobs, queue) = mpsc::channel(options.commit_queue.max(1));
        let writer = Writer {
            url: url.clone(),
            lock_timeout,
            closing: closing.clone(),
            connection: Some(connection),
            memory: Memory::default(),
        };
        tasks.spawn(writer.run(queue));
        let pool = db.get_postgres_connection_pool().clone();
        let closing = closing.drop_guard();
        Ok((Self { pool, jobs, tasks: tasks.clone(), closing }, db))
    }

    /// Takes in nothing more; the writer ends when what waits is committed.
    pub(crate) fn finish(&self) {
        self.closing.token().cancel();
    }

    /// Completes when nothing is committed any more.
    pub(crate) async fn closed(&self) {
        self.jobs.closed().await;
    }

    /// Queues a change for the writer and waits for its verdict.
    pub(crate) async fn offer(&self, change: Arc<Change>) -> Result<Receipt, CommitError> {
        let (job, verdict) = Job::new(change);
        match self.jobs.try_send(job) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(job)) if job.is_claim() => {
                job.answer(Err(CommitError::Overloaded));
            }
            // What is dropped there, or while it waits for room, says that nothing happened.
            Err(mpsc::error::TrySendError::Full(job)) => drop(self.jobs.send(job).await),
            Err(mpsc::error::TrySendError::Closed(job)) => drop(job),
        }
        let ended = |_closed| Err(CommitError::Uncertain(Box::new(WriterEnded)));
        verdict.await.unwrap_or_else(ended)
    }

    /// Does this on a connection of the pool, to its end whether or not the caller waits for it: a
    /// statement that is dropped halfway may have happened, and leaves its connection behind.
    async fn run<T, W>(&self, work: W) -> Result<T, sqlx::Error>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, sqlx::Error>>
            + Send
            + 'static,
    {
        let pool = self.pool.clone();
        let running = self.tasks.spawn(async move {
            let mut connection = pool.acquire().await?;
            work(&mut connection).await
        });
        running.await.map_err(|_panic_or_end| sqlx::Error::WorkerCrashed)?
    }

    /// Does this in a transaction, which says its isolation whatever the server's default is. It
    /// happens whether or not the caller waits for it.
    async fn write<T, W>(&self, work: W) -> Result<T, sqlx::Error>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut PgConnection, Timestamp) -> BoxFuture<'c, Result<T, sqlx::Error>>
            + Send
            + 'static,
    {
        let pool = self.pool.clone();
        let running = self.tasks.spawn(async move {
            let mut transaction = pool.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
            let clock = sqlx::query_scalar(AssertSqlSafe(format!("SELECT {CLOCK}")));
            let now = clock.fetch_one(&mut *transaction).await?;
            let value = work(&mut transaction, Timestamp::from_micros(now)).await?;
            transaction.commit().await?;
            Ok(value)
        });
        running.await.map_err(|_panic_or_end| sqlx::Error::WorkerCrashed)?
    }
}
