//! The one task of a process that commits changes: takes the queued changes, commits them in batches, and answers
//! each caller.
//!
//! ```text
//! queue -> gather (YIELDS turns) -> divert locked wallets -> take_batch -> try_batch
//!                                                                             |
//!      Answered: every job has a verdict  <-----------------------------------+
//!      Bad:      halved until the change that does not fit stands alone  <----+
//!      Locked:   changes of locked wallets go aside, the rest again  <--------+
//! ```
//!
//! It owns its connection for ever, so no transaction depends on a caller's future: a dropped caller drops its
//! answer only. It never waits to make a batch larger; it only lets those callers run who were answered by the
//! batch before. A lone caller so pays for no timer, and a crowd shares a flush.
//!
//! All changes wait behind one batch. So a lock is waited for `LOCK_WAIT` at most, a race is tried `TRIES` times
//! before the batch is halved, and while the server cannot be reached all that have come are turned away after one
//! attempt of `CONNECT`, not after one attempt each.
//!
//! It must never answer `Unavailable` once COMMIT may have arrived: that is `Uncertain`, and the connection is
//! dropped.

use std::collections::{BTreeSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use holdfast_domain::WalletId;
use holdfast_domain::operation::Transition;
use holdfast_domain::ports::{Cause, CommitError};
use sqlx::postgres::PgConnection;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::batch::{self, BatchCache};
use super::begin::{self, BatchStart};
use super::connect;
use super::error::{BatchError, has_code, is_lost, is_row_mismatch};
use super::lock_queue::LockQueue;
use super::servers::{Primary, Servers};
use super::session::{rollback, within};
use crate::batch::job::{BATCH_MAX, Job, Quarantine, answer_all, take_batch};
use crate::metrics;
use crate::transaction::event::SharedInterest;

/// Turns that callers get before a batch is closed: enough for those who were just answered to come
/// again, without a timer.
const YIELDS: usize = 3;
/// Attempts at a batch that lost a race to another process, before it is halved.
const TRIES: usize = 4;
/// Longest wait of a batch for one lock, before the changes that need it go aside: all changes wait with it.
const LOCK_WAIT: Duration = Duration::from_millis(250);
/// Timeout of connecting, session settings included.
const CONNECT: Duration = Duration::from_secs(5);

/// SQLSTATE of a row that a CHECK constraint refuses, such as a balance below zero.
const CHECK: &str = "23514";

/// Commits batches on a connection of its own. It is not shown: the address may hold a password.
pub(super) struct Writer {
    servers: Servers,
    lock_timeout: Duration,
    connection: Option<PgConnection>,
    /// Generation of the connection's server.
    generation: u64,
    memory: BatchCache,
    pub(super) misfits: Quarantine,
    /// Set when the last attempt to connect led to no server that writes: waiting changes are turned away, and this
    /// is checked after each batch.
    pub(super) is_cut_off: bool,
}

/// The server was not reached.
#[derive(Debug, thiserror::Error)]
#[error("the database server cannot be reached")]
pub(super) struct UnreachableServer;

/// Outcome of an attempt at a batch: answered, or jobs that come back to be tried another way.
pub(super) enum BatchOutcome {
    /// Everybody has a verdict.
    Answered,
    /// Jobs of which at least one does not fit: the batch was not committed, and halves are tried.
    Bad(Vec<Job>, sqlx::Error),
    /// Jobs of which at least one needs a locked row: the batch was not committed, and they go aside.
    Locked(Vec<Job>, sqlx::Error),
}

/// Writes until the store closes and the queue is drained.
pub(super) async fn run(
    mut writer: Writer,
    mut jobs: mpsc::Receiver<Job>,
    aside: LockQueue,
    closing: CancellationToken,
) {
    let mut arrived = VecDeque::new();
    loop {
        let mut taken = Vec::new();
        tokio::select! {
            () = closing.cancelled(), if !jobs.is_closed() => jobs.close(),
            count = jobs.recv_many(&mut taken, BATCH_MAX) => {
                if count == 0 {
                    return;
                }
            }
        }
        if taken.is_empty() {
            continue;
        }
        arrived.extend(taken);
        gather(&mut jobs, &mut arrived).await;
        loop {
            aside.divert(&mut arrived);
            if arrived.is_empty() {
                break;
            }
            let batch = take_batch(&mut arrived, &writer.misfits);
            writer.guarded(async |writer| writer.commit_batch(batch, &aside).await).await;
            if writer.is_cut_off {
                turn_away(&mut jobs, &mut arrived);
            }
        }
    }
}

impl Writer {
    pub(super) fn new(
        servers: &Servers,
        lock_timeout: Duration,
        interest: &SharedInterest,
    ) -> Self {
        Self {
            servers: servers.clone(),
            lock_timeout,
            connection: None,
            generation: 0,
            memory: BatchCache::new(interest.clone()),
            misfits: Quarantine::default(),
            is_cut_off: false,
        }
    }

    /// Connects a writer for all wallets, which waits for none of their locks for long.
    pub(super) async fn connected(
        servers: &Servers,
        lock_timeout: Duration,
        interest: &SharedInterest,
    ) -> Result<Self, sqlx::Error> {
        let mut writer = Self::new(servers, lock_timeout.min(LOCK_WAIT), interest);
        let primary = connect(servers, writer.lock_timeout).await?;
        (writer.connection, writer.generation) = (Some(primary.connection), primary.generation);
        Ok(writer)
    }

    /// A panic in there loses the answers of the batch in hand, which becomes `Uncertain`, and no more.
    pub(super) async fn guarded(&mut self, work: impl AsyncFnOnce(&mut Self)) {
        if AssertUnwindSafe(work(self)).catch_unwind().await.is_err() {
            tracing::error!("the writer panicked over a batch");
            // The panic may have left a transaction open on it: closing undoes that.
            self.connection = None;
        }
    }

    /// A change that does not fit the tables must not take the others with it: a failed batch is halved until that
    /// change is by itself. Changes of wallets that another session keeps locked go aside.
    async fn commit_batch(&mut self, batch: Vec<Job>, aside: &LockQueue) {
        let mut waiting = vec![batch];
        while let Some(batch) = waiting.pop() {
            match self.try_batch(batch).await {
                BatchOutcome::Answered => {}
                BatchOutcome::Bad(alone, error) if alone.len() <= 1 => {
                    self.misfits.note(&alone);
                    reject_alone(alone, error);
                }
                BatchOutcome::Bad(several, _error) => waiting.extend(split_half(several)),
                BatchOutcome::Locked(mut batch, error) => {
                    // The server names no lock that it waited for: a second query, which waits for none, finds
                    // whose wallets they are.
                    let held = self.held(&batch).await;
                    let is_held = |job: &mut Job| held.contains(&job.change().wallet);
                    let kept: Vec<Job> = batch.extract_if(.., is_held).collect();
                    tracing::info!(%error, changes = kept.len(), "another session keeps wallets locked");
                    if kept.is_empty() {
                        // It is another row, or a whole table: there they are tried wallet by
                        // wallet.
                        aside.push(batch);
                    } else {
                        aside.push(kept);
                        waiting.push(batch);
                    }
                }
            }
        }
    }

    /// The wallets of these that another session has locked; none if that cannot be read.
    async fn held(&mut self, batch: &[Job]) -> BTreeSet<WalletId> {
        let Some(connection) = &mut self.connection else { return BTreeSet::new() };
        let wallets = batch.iter().map(|job| job.change().wallet).collect();
        match begin::held(connection, &wallets).await {
            Ok(held) => held,
            Err(error) => {
                self.undo(&error).await;
                BTreeSet::new()
            }
        }
    }

    /// Tries until no other session's change is in the way.
    pub(super) async fn try_batch(&mut self, mut batch: Vec<Job>) -> BatchOutcome {
        if batch.is_empty() {
            return BatchOutcome::Answered;
        }
        metrics::waited(batch.iter().map(Job::age).max());
        let started = Instant::now();
        let mut tries = TRIES;
        loop {
            // From here on a dropped job says `Uncertain`: its COMMIT may have arrived.
            for job in &mut batch {
                job.set_in_flight(true);
            }
            let changes: Vec<&Transition> = batch.iter().map(Job::change).collect();
            let failure = match self.commit_changes(&changes).await {
                Ok(verdicts) => {
                    metrics::batch(batch.len(), started.elapsed());
                    for (job, verdict) in batch.into_iter().zip(verdicts) {
                        job.answer(verdict.map_err(CommitError::from));
                    }
                    return BatchOutcome::Answered;
                }
                Err(failure) => failure,
            };
            // Undone for sure: a job that is dropped while it waits for the next try says so.
            if !matches!(failure, BatchError::Uncertain(_)) {
                for job in &mut batch {
                    job.set_in_flight(false);
                }
            }
            match failure {
                // What misled is forgotten, so this comes once.
                BatchError::Misled(error) => self.undo(&error).await,
                BatchError::Changed(error) => {
                    self.undo(&error).await;
                    tries = tries.saturating_sub(1);
                    if tries == 0 {
                        return BatchOutcome::Bad(batch, error);
                    }
                }
                BatchError::Refused(error) => {
                    self.undo(&error).await;
                    return BatchOutcome::Bad(batch, error);
                }
                BatchError::Locked(error) => {
                    self.undo(&error).await;
                    return BatchOutcome::Locked(batch, error);
                }
                BatchError::Unavailable(error) => {
                    tracing::warn!(%error, "a batch was not committed");
                    self.undo(&error).await;
                    answer_all(batch, error, CommitError::Unavailable);
                    return BatchOutcome::Answered;
                }
                BatchError::Uncertain(error) => {
                    tracing::error!(%error, "a commit is uncertain");
                    self.connection = None;
                    answer_all(batch, error, CommitError::Uncertain);
                    return BatchOutcome::Answered;
                }
            }
        }
    }

    /// A connection whose server does not confirm that it is outside of a transaction is given up: the server ends
    /// the transaction on it.
    async fn undo(&mut self, error: &sqlx::Error) {
        if let Some(mut connection) = self.connection.take()
            && !is_lost(error)
            && rollback(&mut connection).await.is_ok()
        {
            self.connection = Some(connection);
        }
    }

    async fn commit_changes(
        &mut self,
        changes: &[&Transition],
    ) -> Result<batch::Verdicts, BatchError> {
        let begun = self.begin(changes).await?;
        match &mut self.connection {
            Some(connection) => batch::commit(connection, &mut self.memory, begun, changes).await,
            None => Err(BatchError::Unavailable(sqlx::Error::WorkerCrashed)),
        }
    }

    /// Begins a transaction for these changes. A kept connection may have ended while it was idle: then on another
    /// one.
    async fn begin(&mut self, changes: &[&Transition]) -> Result<BatchStart, BatchError> {
        let Self { memory, lock_timeout, .. } = self;
        // One of an earlier generation may lead to a primary that was replaced.
        let is_current = self.generation == self.servers.generation();
        if let Some(mut kept) = self.connection.take().filter(|_| is_current) {
            match batch::begin(&mut kept, memory, changes, *lock_timeout).await {
                Err(error) if !begin::is_statement_error(&error) => {
                    tracing::info!(%error, "the writer connects anew");
                }
                begun => {
                    self.connection = Some(kept);
                    return begun.map_err(BatchError::before_commit);
                }
            }
        }
        // Until the new connection has begun a batch.
        self.is_cut_off = true;
        // The new server may be another one, which has lost the last commits.
        memory.change_connection();
        let connected = connect(&self.servers, *lock_timeout).await;
        let Primary { mut connection, generation, .. } =
            connected.map_err(BatchError::Unavailable)?;
        let begun = batch::begin(&mut connection, memory, changes, *lock_timeout).await;
        if begun.as_ref().err().is_none_or(begin::is_statement_error) {
            self.is_cut_off = false;
            (self.connection, self.generation) = (Some(connection), generation);
        }
        begun.map_err(BatchError::before_commit)
    }
}

/// Halves a batch, the later half first: batches are taken from the end.
pub(super) fn split_half(mut batch: Vec<Job>) -> [Vec<Job>; 2] {
    // A batch has one change of an operation: no half needs what the other one writes.
    let later = batch.split_off(batch.len() / 2);
    [later, batch]
}

/// A connection for a writer; a server that does not answer is as good as none.
async fn connect(servers: &Servers, lock_timeout: Duration) -> Result<Primary, sqlx::Error> {
    within(CONNECT, connect::writer(servers, lock_timeout)).await
}

/// Turns away all changes that have come by now: none waits for one attempt to connect after the other.
fn turn_away(jobs: &mut mpsc::Receiver<Job>, arrived: &mut VecDeque<Job>) {
    while let Ok(job) = jobs.try_recv() {
        arrived.push_back(job);
    }
    answer_all(arrived.drain(..), UnreachableServer, CommitError::Unavailable);
}

/// Takes in what has arrived, and what those send who were answered last.
async fn gather(jobs: &mut mpsc::Receiver<Job>, arrived: &mut VecDeque<Job>) {
    for _ in 0..YIELDS {
        // The callers run now, on this thread or another: what they send joins this batch and its
        // flush.
        tokio::task::yield_now().await;
        while arrived.len() < BATCH_MAX
            && let Ok(job) = jobs.try_recv()
        {
            arrived.push_back(job);
        }
    }
}

/// A change that failed by itself and does not fit the tables. The cause is its hold, its ending or its settlement
/// that exists already, a row that is another one, or a reason that was not foreseen: none of them goes away by
/// itself, and a result whose settlement is refused is recorded. The rest is about the server.
pub(super) fn reject_alone(alone: Vec<Job>, error: sqlx::Error) {
    tracing::error!(%error, "a change does not fit the tables");
    let constraint = error.as_database_error().and_then(|refusal| refusal.constraint());
    // The table's bound decides about a balance, whatever the judge decided.
    let is_of_wallet = matches!(constraint, Some("wallet_available" | "wallet_held"));
    let verdict: fn(Cause) -> CommitError = if is_of_wallet && has_code(&error, &[CHECK]) {
        |_cause| CommitError::InsufficientFunds
    } else if is_row_mismatch(&error) || has_code(&error, &["22", "23"]) {
        |_cause| CommitError::Collision
    } else {
        CommitError::Unavailable
    };
    answer_all(alone, error, verdict);
}
