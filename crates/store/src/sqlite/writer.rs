//! The writer thread of SQLite: takes queued changes, commits them in batches, answers each.
//!
//! ```text
//! queue -> gather -> one write task -> one batch -> verdicts -> rest of a checkpoint -> queue
//! ```
//!
//! Ownership: the thread owns its connection, so no transaction depends on a caller's future. A dropped caller
//! loses only its verdict; its change is committed all the same.
//!
//! Batches: the thread never waits to make a batch larger. It yields, so that callers answered by the last batch
//! can queue their next change; without that they fall apart into two alternating half batches, and each of them
//! pays for an fsync of its own.
//!
//! Failures: a batch that does not fit the tables is tried again change by change. After any other failure, an
//! uncertain COMMIT, or a panic, the connection is dropped and the cache emptied. A change whose COMMIT failed is
//! answered `Uncertain`, and never tried again here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use holdfast_domain::operation::Transition;
use holdfast_domain::ports::{Cause, CommitError};
use rusqlite::Connection;
use tokio::sync::oneshot;
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

use super::Sqlite;
use super::batch::{self, BatchCache, BatchError};
use super::checkpoint::{Checkpointer, WalState};
use super::connect::{CONSTRAINT, DatabaseFile, TOO_BIG};
use super::notifier::VerdictNotifier;
use super::queue::{Backlog, Queue};
use super::statements::Statements;
use super::write_task::{ConnectionState, WriteError};
use crate::batch::job::{BATCH_MAX, Job, Quarantine, answer_all, take_batch};
use crate::metrics;

/// Yields before a batch is closed, at most; the first one without a new change ends them.
const YIELDS_MAX: usize = 8;

/// Starts the thread and waits until it can write.
pub(super) async fn start(of: &Sqlite, tasks: &TaskTracker) -> Result<(), Cause> {
    let Sqlite { file, queue, room: _, clock, interest, ended } = of;
    let (opened, is_open) = oneshot::channel();
    let life = WriterGuard { queue: Arc::clone(queue), _ended: ended.clone().drop_guard() };
    let (file, interest) = (file.clone(), interest.clone());
    let memory = BatchCache::new(Arc::clone(clock), interest);
    let notifier = VerdictNotifier::start(tasks);
    thread::Builder::new().name("holdfast-writer".to_owned()).spawn(move || {
        let (connection, outcome) = match file.open() {
            Ok(connection) => (Some(connection), Ok(())),
            Err(error) => (None, Err(error)),
        };
        if opened.send(outcome).is_ok()
            && let Some(connection) = connection
        {
            let (log, arrived) = (Arc::default(), Backlog::default());
            let misfits = Quarantine::default();
            WriterThread { life, file, log, memory, misfits, arrived, notifier }.run(connection);
        }
    })?;
    Ok(is_open.await??)
}

/// Closes the queue and drops what waits when the thread ends, by return or by panic.
#[derive(Debug)]
struct WriterGuard {
    queue: Arc<Queue>,
    _ended: DropGuard,
}

impl Drop for WriterGuard {
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

/// Outcome of an attempt at a batch.
enum BatchOutcome {
    /// Everybody has a verdict.
    Answered(ConnectionState),
    /// A batch that was not committed, because one of its changes does not fit.
    Bad(Vec<Job>, WriteError),
}

/// The thread's own.
struct WriterThread {
    arrived: Backlog,
    notifier: VerdictNotifier,
    memory: BatchCache,
    misfits: Quarantine,
    file: DatabaseFile,
    log: Arc<WalState>,
    life: WriterGuard,
}

impl WriterThread {
    /// Writes until the store closes and the queues are drained.
    fn run(mut self, connection: Connection) {
        let checkpoints = Checkpointer::start(self.file.clone(), Arc::clone(&self.log));
        let mut kept = Some(connection);
        while !self.arrived.is_empty() || self.life.queue.wait() {
            let opened = kept.take().map_or_else(|| self.open(), Ok);
            // A panic drops the connection, which rolls back; the loop goes on with another one.
            let session = |connection: Connection| self.write_until_broken(&connection);
            match catch_unwind(AssertUnwindSafe(|| opened.and_then(session))) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.reject_arrivals(error.into()),
                // It lost the answers of the batch in hand, which became `Uncertain`, and no more.
                Err(_panic) => {
                    tracing::error!("the writer panicked over a batch or a write task");
                }
            }
        }
        drop(kept);
        checkpoints.stop();
    }

    /// Another connection may open another file, restored by hand: no value that was read through the one before is
    /// trusted.
    fn open(&mut self) -> rusqlite::Result<Connection> {
        self.memory.forget();
        self.file.open()
    }

    /// Writes as long as the connection is good. An error: it could not be used at all.
    fn write_until_broken(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut statements = Statements::prepare(connection)?;
        let mut kept = ConnectionState::Good;
        while kept == ConnectionState::Good && (!self.arrived.is_empty() || self.life.queue.wait())
        {
            self.gather();
            // One task a round: neither many tasks nor a full queue of changes starves the other. A heartbeat waits
            // for one batch at most, and a batch for one task.
            if let Some(task) = self.arrived.tasks.pop_front() {
                kept = task.run(connection, &self.memory.clock, &self.file);
                self.log.committed();
            }
            if kept == ConnectionState::Good && !self.arrived.jobs.is_empty() {
                let batch = take_batch(&mut self.arrived.jobs, &self.misfits);
                kept = self.commit_batch(&mut statements, batch);
            }
            if kept == ConnectionState::Broken {
                self.file.rescue();
            }
            // Here no transaction is open: SQLite refuses a checkpoint inside of one.
            if kept == ConnectionState::Good {
                self.log.finish(connection);
            }
        }
        Ok(())
    }

    /// Takes in what has arrived, and what those send who were answered last.
    fn gather(&mut self) {
        let mut waiting = 0;
        for _ in 0..YIELDS_MAX {
            let now = self.life.queue.jobs();
            if now == waiting || now >= BATCH_MAX {
                break;
            }
            waiting = now;
            thread::yield_now();
        }
        self.life.queue.take(&mut self.arrived);
    }

    /// Rejects the waiting changes: there is no connection for them.
    fn reject_arrivals(&mut self, error: WriteError) {
        tracing::error!(%error, "the database cannot be opened for writing");
        self.life.queue.take(&mut self.arrived);
        self.arrived.tasks.clear();
        answer_all(self.arrived.jobs.drain(..), error, CommitError::Unavailable);
    }

    fn commit_batch(
        &mut self,
        statements: &mut Statements<'_>,
        batch: Vec<Job>,
    ) -> ConnectionState {
        let (batch, error) = match self.try_batch(statements, batch) {
            BatchOutcome::Answered(kept) => return kept,
            BatchOutcome::Bad(batch, error) => (batch, error),
        };
        if batch.len() <= 1 {
            self.reject_alone(batch, error);
            return ConnectionState::Good;
        }
        // One of them does not fit the tables: it must not take the others with it.
        let mut batch = batch.into_iter();
        while let Some(job) = batch.next() {
            match self.try_batch(statements, vec![job]) {
                BatchOutcome::Answered(ConnectionState::Good) => {}
                BatchOutcome::Answered(ConnectionState::Broken) => {
                    let later = std::mem::take(&mut self.arrived.jobs);
                    self.arrived.jobs = batch.chain(later).collect();
                    return ConnectionState::Broken;
                }
                BatchOutcome::Bad(alone, error) => self.reject_alone(alone, error),
            }
        }
        ConnectionState::Good
    }

    fn reject_alone(&mut self, alone: Vec<Job>, error: WriteError) {
        self.misfits.note(&alone);
        reject_alone(alone, error);
    }

    fn try_batch(&mut self, statements: &mut Statements<'_>, mut batch: Vec<Job>) -> BatchOutcome {
        let started = Instant::now();
        for job in &mut batch {
            // Set before the first statement: a panic from here on must be answered `Uncertain`.
            job.set_in_flight(true);
        }
        metrics::waited(batch.iter().map(Job::age).max());
        let changes: Vec<&Transition> = batch.iter().map(Job::change).collect();
        let committed = batch::commit(statements, &mut self.memory, &changes);
        // After COMMIT and before the answers: a log without a name is lost with this process.
        let committed = committed.and_then(|verdicts| match self.file.check() {
            Ok(()) => Ok(verdicts),
            Err(lost) => Err(BatchError::Uncertain(lost.into())),
        });
        match committed {
            Ok(verdicts) => {
                metrics::batch(batch.len(), started.elapsed());
                self.log.committed();
                let verdicts = verdicts.into_iter().map(|it| it.map_err(CommitError::from));
                // Answered after COMMIT only: `synchronous` is FULL, so the verdict is on the disk.
                self.notifier.send(batch.into_iter().zip(verdicts).collect());
                BatchOutcome::Answered(ConnectionState::Good)
            }
            Err(BatchError::Constraint(error)) => {
                // Rolled back for certain: a job dropped from here on did not happen.
                for job in &mut batch {
                    job.set_in_flight(false);
                }
                BatchOutcome::Bad(batch, error)
            }
            Err(BatchError::Unavailable(error)) => {
                tracing::warn!(%error, "a batch was not committed");
                answer_all(batch, error, CommitError::Unavailable);
                BatchOutcome::Answered(ConnectionState::Broken)
            }
            Err(BatchError::Uncertain(error)) => {
                tracing::error!(%error, "a commit is uncertain");
                answer_all(batch, error, CommitError::Uncertain);
                BatchOutcome::Answered(ConnectionState::Broken)
            }
        }
    }
}

/// A change that failed by itself and does not fit the tables. The cause is its hold, its ending or its settlement
/// that exists already, a row that is another one, or a reason that was not foreseen: none of them goes away by
/// itself, and a result whose settlement is refused is recorded. The rest is about the database.
fn reject_alone(alone: Vec<Job>, error: WriteError) {
    use rusqlite::ffi::SQLITE_CONSTRAINT_CHECK;
    tracing::error!(%error, "a change does not fit the tables");
    let verdict: fn(Cause) -> CommitError = match error.code() {
        Some(SQLITE_CONSTRAINT_CHECK) if error.to_string().contains("wallet_") => {
            |_cause| CommitError::InsufficientFunds
        }
        Some(TOO_BIG) => |_cause| CommitError::TooLarge,
        Some(code) if code & 0xff == CONSTRAINT => |_cause| CommitError::Collision,
        // No code of SQLite: a statement changed another number of rows than it is for.
        None => |_cause| CommitError::Collision,
        Some(_) => CommitError::Unavailable,
    };
    answer_all(alone, error, verdict);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tempfile::TempDir;

    use super::*;
    use crate::options::Options;
    use crate::schema::Dialect;
    use crate::schema::steps;
    use crate::schema::url::DatabaseUrl;

    async fn store() -> (TempDir, Sqlite) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("holdfast.db");
        Connection::open(&path).unwrap().execute_batch(&steps::schema(Dialect::Sqlite)).unwrap();
        let url = DatabaseUrl::parse(&format!("sqlite://{}", path.display())).unwrap();
        let (store, _readers) =
            Sqlite::open(&path, &Options::new(url), &TaskTracker::new()).await.unwrap();
        (folder, store)
    }

    #[tokio::test]
    async fn a_write_task_that_panics_is_undone_and_takes_nothing_else_with_it() {
        let (_folder, store) = store().await;
        let ran = Arc::new(AtomicBool::new(false));
        let runs = Arc::clone(&ran);
        let panicked: Result<(), _> = store
            .write(move |transaction, _now| {
                transaction
                    .execute("INSERT INTO nodes VALUES ('a', zeroblob(16), 0, NULL, NULL)", [])?;
                runs.store(true, Ordering::Relaxed);
                panic!("as asked")
            })
            .await;
        assert!(matches!(panicked, Err(WriteError::NotTried)), "{panicked:?}");
        assert!(ran.load(Ordering::Relaxed));
        let count = store.write(|transaction, _now| {
            transaction
                .execute("INSERT INTO nodes VALUES ('b', zeroblob(16), 0, NULL, NULL)", [])?;
            let sql = "SELECT group_concat(name) FROM nodes";
            Ok(transaction.query_row(sql, [], |row| row.get::<_, String>(0))?)
        });
        assert_eq!(count.await.unwrap(), "b");
        store.finish();
        store.closed().await;
        let late = store.write(|_transaction, _now| Ok(())).await;
        assert!(matches!(late, Err(WriteError::NotTried)), "{late:?}");
    }

    #[tokio::test]
    async fn the_log_begins_anew_while_commits_follow_each_other_and_not_under_a_reader() {
        let (folder, store) = store().await;
        let make = "CREATE TABLE filler (bytes BLOB)";
        store.write(move |transaction, _now| Ok(transaction.execute_batch(make)?)).await.unwrap();
        let log = folder.path().join("holdfast.db-wal");
        let fill = async |megabytes: u64| {
            for _ in 0..megabytes {
                let sql = "INSERT INTO filler VALUES (zeroblob(1 << 20))";
                let filled =
                    store.write(move |transaction, _now| Ok(transaction.execute(sql, [])?));
                filled.await.unwrap();
            }
            std::fs::metadata(&log).unwrap().len() >> 20
        };
        let reader = Connection::open(folder.path().join("holdfast.db")).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM wallets").unwrap();
        assert!(fill(80).await >= 80, "nothing is taken from under a reader");
        reader.execute_batch("ROLLBACK").unwrap();
        // However fast commits are, and however slow what is carried over: it is over after a few
        // passes.
        let mut filled = 80;
        while fill(20).await >= 80 {
            filled += 20;
            assert!(filled < 4_000, "{filled} MB");
        }
    }

    #[tokio::test]
    async fn settings_are_those_that_commits_rely_on() {
        let (_folder, store) = store().await;
        let settings = [
            ("synchronous", 2),
            ("foreign_keys", 1),
            ("busy_timeout", 5_000),
            ("wal_autocheckpoint", 0),
            ("journal_size_limit", 64 << 20),
            ("cache_size", -8_192),
            ("temp_store", 2),
        ];
        for (name, value) in settings {
            let set = store.write(move |transaction, _now| {
                Ok(transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0))?)
            });
            assert_eq!(set.await.unwrap(), value, "{name}");
        }
    }
}
