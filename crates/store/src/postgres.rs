//! The PostgreSQL backend: connections and their settings, the writer and its statements, the ports' statements
//! that write.
//!
//! ```text
//! offer -> jobs (commit_queue) -> writer ---- locked wallets ----> lock_worker
//!                                  1 connection                     1 connection
//! commands: COMMAND_CONNECTIONS                  beats: 1
//! readers: Options::readers        glances: GLANCES
//! audits: AUDITS                   reports: REPORTS_AT_ONCE        summing: SUMMING
//! exports: EXPORTS_AT_ONCE
//! ```
//!
//! Several processes may work on one database at once. Their writes are kept apart by the locks of wallets, and by
//! the versions of operations.

mod administration;
mod arrays;
mod batch;
mod begin;
pub(crate) mod connect;
pub(crate) mod error;
mod lock_queue;
mod lock_worker;
mod nodes;
mod pack;
#[cfg(test)]
mod plans;
mod pool;
mod purges;
mod reads;
mod row_cache;
mod servers;
pub(crate) mod session;
mod statements;
mod usage;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::admin::report::{EXPORTS_AT_ONCE, REPORTS_AT_ONCE};
use holdfast_domain::operation::{Receipt, Transition};
use holdfast_domain::ports::{CommitError, Durability};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::lock_worker::LockQueueWorker;
use self::nodes::WorkReports;
pub(crate) use self::pool::{ConnectionPool, PgReadTransaction};
pub(crate) use self::servers::Servers;
use self::session::{BY_INDEX, COMMAND_STATEMENT, Session};
use self::writer::Writer;
use crate::batch::job::{Job, WriterEnded};
use crate::error::OpenError;
use crate::options::{AUDITS, GLANCES, Options, READ_STATEMENT, SUMMING};
use crate::transaction::event::SharedInterest;

/// Connections for writes other than the changes of operations: administration, price versions, purges.
const COMMAND_CONNECTIONS: u32 = 2;
/// Timeouts of reads and commands, longer than the server lets a statement run: a server that has not answered by
/// then is cut off.
const READ: Duration = Duration::from_secs(12);
const COMMAND_TIMEOUT: Duration = Duration::from_secs(35);
const _: () = assert!(READ.as_secs() > READ_STATEMENT.as_secs());
const _: () = assert!(COMMAND_TIMEOUT.as_secs() > COMMAND_STATEMENT.as_secs());
/// Timeout of a heartbeat: the next one is due by then. One that is given up may still have renewed its lease, which
/// does no harm.
const BEAT: Duration = Duration::from_secs(4);
/// Limit of its statement: half, so that there is time for a second one.
const BEAT_STATEMENT: Duration = Duration::from_secs(2);
const _: () = assert!(BEAT.as_secs() >= 2 * BEAT_STATEMENT.as_secs());

/// PostgreSQL holds a value of 1 GiB at most, and what goes there or is made of it on the way is
/// one too: half of that.
pub(crate) const RESULT_BYTES_MAX: usize = 512 << 20;

/// Database of a server, and the parts of this process that write it.
pub(crate) struct Postgres {
    servers: Servers,
    commands: ConnectionPool,
    /// Connection only for heartbeats: a lease is renewed while all others wait.
    beats: ConnectionPool,
    work_reports: WorkReports,
    jobs: mpsc::Sender<Job>,
    interest: SharedInterest,
    /// Ends the writer with the last clone of the store, if it was not closed.
    closing: DropGuard,
    ended: CancellationToken,
}

impl Postgres {
    /// Starts the writer on the current runtime, as a task among these; gives the connections that
    /// read, those for short reads, for audits, for reports, for the summing and for exports, too.
    pub(crate) async fn open(
        servers: &Servers,
        options: &Options,
        tasks: &TaskTracker,
    ) -> Result<(Self, [ConnectionPool; 6]), OpenError> {
        let lock_timeout = options.busy_timeout;
        let line = |connections, statement_timeout, wait_max, plans| {
            let session = Session { lock_timeout, statement_timeout, plans };
            ConnectionPool::new(servers, session, connections, wait_max, tasks)
        };
        let [readers, glances, audits, reports, summing] =
            [options.readers, GLANCES, AUDITS, u32::from(REPORTS_AT_ONCE), SUMMING]
                .map(|connections| line(connections, READ_STATEMENT, READ, ""));
        // Their pages are ranges of numbers, each found through an index whatever the statistics of the tables.
        let exports = line(u32::from(EXPORTS_AT_ONCE), READ_STATEMENT, READ, BY_INDEX);
        let readers = [readers, glances, audits, reports, summing, exports];
        let commands = line(COMMAND_CONNECTIONS, COMMAND_STATEMENT, COMMAND_TIMEOUT, BY_INDEX);
        let beats = line(1, BEAT_STATEMENT, BEAT, BY_INDEX).without_ping();
        let interest = &options.interest;
        let writer = Writer::connected(servers, lock_timeout, interest).await;
        let writer = writer.map_err(|error| OpenError::Writer(Box::new(error)))?;
        let closing = CancellationToken::new();
        let room = options.commit_queue.max(1);
        let (jobs, queue) = mpsc::channel(room);
        let (aside, locked) = lock_queue::channel(room);
        let waiting = LockQueueWorker::new(servers, locked, lock_timeout, interest);
        tasks.spawn(writer::run(writer, queue, aside, closing.clone()));
        let ended = CancellationToken::new();
        let ending = ended.clone().drop_guard();
        tasks.spawn(async move {
            // It ends last, when the writer has dropped its end of the lock queue: so both are
            // drained.
            waiting.run().await;
            drop(ending);
        });
        let closing = closing.drop_guard();
        let interest = interest.clone();
        let servers = servers.clone();
        let work_reports = WorkReports::default();
        let own = Self { servers, commands, beats, work_reports, jobs, interest, closing, ended };
        Ok((own, readers))
    }

    /// Reach of commits, as it was read last.
    pub(crate) fn durability(&self) -> Durability {
        if self.servers.is_replicated() { Durability::Replicated } else { Durability::Local }
    }

    /// Closes the connections, once they are not used any more.
    pub(crate) async fn close(&self) {
        for line in [&self.commands, &self.beats] {
            line.close().await;
        }
    }

    /// Accepts no more changes; the writer ends when the queued ones are committed.
    pub(crate) fn finish(&self) {
        self.closing.token().cancel();
    }

    /// Completes after the last commit: the writer has drained, or it is gone.
    pub(crate) async fn closed(&self) {
        self.ended.cancelled().await;
    }

    /// Queues a change for the writer and waits for its verdict.
    pub(crate) async fn offer(&self, change: Arc<Transition>) -> Result<Receipt, CommitError> {
        let (job, verdict) = Job::new(change);
        match self.jobs.try_send(job) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(job)) if job.is_claim() => {
                // Only claims: an ending that is turned away would leave its hold standing.
                job.answer(Err(CommitError::Overloaded));
            }
            // A job that is dropped there, or while it waits for room, reports that it has not happened.
            Err(mpsc::error::TrySendError::Full(job)) => drop(self.jobs.send(job).await),
            Err(mpsc::error::TrySendError::Closed(job)) => drop(job),
        }
        // The job was lost without a verdict, which its drop should not allow: its outcome is uncertain.
        let ended = |_closed| Err(CommitError::Uncertain(Box::new(WriterEnded)));
        verdict.await.unwrap_or_else(ended)
    }
}
