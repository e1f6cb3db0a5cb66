//! Tapes: how the run of one operation is followed, by any number of readers, none of whom can slow it.
//!
//! ```text
//! Offered ──► Running ──► Settling ──► Ended(outcome)
//!    │  └───► LetGo ─────────────────► Ended(given back)
//!    └───────────────────────────────► Ended(unbound, elsewhere, other request, a row)
//! ```
//!
//! The run sets the stage and never awaits a reader. Readers read the stage and wait for one of two signals:
//! `judged`, the store's verdict of the claim, which few wait for; and `over`, the end, which most wait for. They
//! are separate so that a claim that commits does not wake thousands who can do nothing yet. Text goes on its
//! [`ChunkLog`].
//!
//! - The first end is final: readers may have it already. A second one has no effect.
//! - A reader is registered for a signal before it reads the stage. In the other order, an end between the two
//!   would wake no reader, and that one would wait for its whole timeout.
//! - A tape never reports the key as free while its claim may still be committed: a reader that gave up on a silent
//!   store ([`Options::COMMIT_WAIT`], 10 s) gets the failure that the store did not answer, not that there is no
//!   run.
//! - A stop is a wish: the run ends as its row allows, and the caller's wish goes before the operator's, because a
//!   caller's cancel is charged for the text that arrived and a cut by a process is not.

mod chunk_log;
mod compact_log;
mod registry;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use holdfast_domain::model::{ModelAlias, PublicModelId};
use holdfast_domain::operation::{Binding, Snapshot};
use holdfast_domain::private::Private;
use holdfast_domain::{ClaimId, OperationId};
use holdfast_telemetry::traces::SpanContext;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

pub(crate) use self::chunk_log::{ChunkLog, ClosingChunks, Follower};
pub(crate) use self::registry::{NewRun, Registration, RunRegistry};
use crate::authentication::BoundRequest;
use crate::failure::RequestFailure;
use crate::options::Options;
use crate::rate_limit::RateLimitStatus;

/// Stage of a run, which only moves forward.
#[derive(Debug, Clone)]
enum RunStage {
    /// Claim offered: the store has not judged it, and the key may not be bound.
    Offered,
    /// Claim committed too late for every caller, and being given back: a new caller claims anew.
    LetGo,
    /// Claim committed for this process; the model may be running.
    Running,
    /// Ending offered to the store, since this instant.
    Settling(Instant),
    /// Ended, for good: readers may have the outcome.
    Ended(Outcome),
}

/// Outcome of a run, shared by all its readers.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// Claim not committed, with its failure; the key is as it was before.
    Unbound(RequestFailure),
    /// Key bound, and its row as the store has it.
    Row {
        /// Row as it was read after the last guarded write.
        snapshot: Arc<Snapshot>,
        /// Plaintext body, if this run made it: it spares readers the opening of the seal.
        body: Option<Private<Bytes>>,
        /// `true` if this run wrote the row, `false` if it found it.
        ran: bool,
        /// Rate-limit status of the API key after the ending, if this run claimed.
        rates: RateLimitStatus,
    },
    /// Claim committed too late for every caller, and given back as *not run*.
    GivenBack,
    /// Operation leased by another process, whose row is to be followed.
    Elsewhere,
    /// The key is bound to another request.
    OtherRequest,
    /// The task died; heartbeat or reconciler will resolve the operation.
    Lost,
}

/// Result of following a tape.
#[derive(Debug)]
pub(crate) enum FollowOutcome {
    /// Run ended, with its outcome.
    Ended(Outcome),
    /// Wait of the reader ended first, and the run goes on.
    StillRunning,
    /// Claim not judged by the store within `COMMIT_WAIT`: the key may or may not be bound.
    Unclaimed,
    /// Ending not taken by the store within `COMMIT_WAIT`.
    Unsettled,
}

/// Tape of one run of one operation in this process: its stage, its readers, its stop flags.
#[derive(Debug)]
pub(crate) struct Tape {
    pub(crate) operation: OperationId,
    pub(crate) claim: ClaimId,
    /// Digest and fingerprint of the claiming request, by which later requests are compared.
    pub(crate) binding: Binding,
    model: PublicModelId,
    alias: Option<ModelAlias>,
    /// Span of the claiming request, to which the spans of later ones are linked.
    pub(crate) span: Option<SpanContext>,
    /// Creation time of the tape, earlier than any reader's.
    offered: Instant,
    /// Time after which its task counts as dead; set once, when the task begins.
    deadline: OnceLock<Instant>,
    /// Log of its chunks; `None` if the first caller did not request a stream.
    chunk_log: Option<ChunkLog>,
    /// Stage, under a std mutex that is never held across an await.
    stage: Mutex<RunStage>,
    /// Signal of the store's verdict on the claim.
    judged: Notify,
    /// Signal of the end, and of no event before it: most readers wait only for this.
    over: Notify,
    readers: AtomicUsize,
    sent: AtomicBool,
    /// Stop flags: by the caller, by the operator. Never reset.
    stops: [AtomicBool; 2],
    stopping: Notify,
}

/// Cause of a stop before the provider has sent its whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// Cancel by the caller, marked on the row: what arrived is kept and charged.
    Caller,
    /// Drain deadline of the operator: half an answer has no charge.
    Operator,
}

/// Reader of a tape, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Reader(Arc<Tape>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Tape {
    fn new(operation: OperationId, new: NewRun) -> Self {
        let NewRun { claim, binding, model, alias, chunk_log, span } = new;
        Self {
            operation,
            claim,
            binding,
            model,
            alias,
            span,
            offered: Instant::now(),
            deadline: OnceLock::new(),
            chunk_log,
            stage: Mutex::new(RunStage::Offered),
            judged: Notify::new(),
            over: Notify::new(),
            readers: AtomicUsize::new(0),
            sent: AtomicBool::new(false),
            stops: [AtomicBool::new(false), AtomicBool::new(false)],
            stopping: Notify::new(),
        }
    }

    /// Request that the key is bound to if the claim is committed.
    pub(crate) fn bound_request(&self) -> BoundRequest<'_> {
        let Self { binding, model, alias, .. } = self;
        BoundRequest { binding, model, alias: alias.as_ref() }
    }

    /// Sets the deadline of the task; only the first call counts.
    pub(crate) fn ends_by(&self, deadline: Instant) {
        self.deadline.get_or_init(|| deadline);
    }

    /// Adds a reader; `None` if the tape has `readers_max` already.
    pub(crate) fn read(self: &Arc<Self>, readers_max: usize) -> Option<Reader> {
        // Counted before it is compared, and given back by the drop: of two that come for the last place one gets it.
        let reader = Reader(Arc::clone(self));
        let before = self.readers.fetch_add(1, Ordering::Relaxed);
        (before < readers_max).then_some(reader)
    }

    /// True if the key is bound to this run. Before that another request may yet get it.
    pub(crate) fn has_bound_key(&self) -> bool {
        matches!(*self.stage(), RunStage::LetGo | RunStage::Running | RunStage::Settling(_))
    }

    /// Releases a claim that was committed later than `COMMIT_WAIT` and has no reader: a store that recovers must
    /// not start, and charge for, runs without a waiting caller. A claim that commits in time runs even if its
    /// callers hung up. A later reader sees that it was let go.
    pub(crate) fn try_release(&self) -> bool {
        // A reader that gave up has waited for so long: none began before the tape.
        if self.offered.elapsed() < Options::COMMIT_WAIT {
            return false;
        }
        let mut stage = self.stage();
        // Under the lock: a reader is counted before it reads the stage.
        if self.readers.load(Ordering::Relaxed) > 0 {
            return false;
        }
        *stage = RunStage::LetGo;
        // A woken reader reads the stage at once.
        drop(stage);
        self.judged.notify_waiters();
        true
    }

    /// Moves to `Running`: the claim was committed.
    pub(crate) fn set_running(&self) {
        *self.stage() = RunStage::Running;
        self.judged.notify_waiters();
    }

    /// Waits until the store has judged the claim. Cancel safe.
    pub(crate) async fn wait_judged(&self) {
        loop {
            // Before the stage is read: every later change wakes it.
            let judged = self.judged.notified();
            if !matches!(*self.stage(), RunStage::Offered) {
                return;
            }
            judged.await;
        }
    }

    pub(crate) fn chunk_log(&self) -> Option<&ChunkLog> {
        self.chunk_log.as_ref()
    }

    /// Waits for a stop, and returns its cause. Cancel safe.
    pub(crate) async fn wait_stop(&self) -> StopCause {
        loop {
            // Before the stop is read: every later change wakes it.
            let stopping = self.stopping.notified();
            if let Some(stop) = self.stop() {
                return stop;
            }
            stopping.await;
        }
    }

    /// Cause of the stop, if one was requested; the caller's goes before the operator's.
    pub(crate) fn stop(&self) -> Option<StopCause> {
        let [caller, operator] = &self.stops;
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        if is_set(caller) {
            return Some(StopCause::Caller);
        }
        is_set(operator).then_some(StopCause::Operator)
    }

    fn end_early(&self, stop: StopCause) {
        let [caller, operator] = &self.stops;
        let flag = match stop {
            StopCause::Caller => caller,
            StopCause::Operator => operator,
        };
        // The flag before the signal: a task that is woken, or registers late, finds it set.
        flag.store(true, Ordering::Release);
        self.stopping.notify_waiters();
    }

    /// Marks that a provider may have seen the request: from now on no one may disown it as *not
    /// run*.
    pub(crate) fn set_sending(&self) {
        self.sent.store(true, Ordering::Release);
    }

    /// Moves to `Settling`: the ending is offered to the store, and the log is closed.
    pub(crate) fn set_settling(&self) {
        // The time of the stage: a reader waits for the store from here on, not from when it came.
        *self.stage() = RunStage::Settling(Instant::now());
        self.chunk_log().into_iter().for_each(ChunkLog::close);
    }

    /// Ends the tape. Only the first outcome counts, because readers may have it already.
    pub(crate) fn end(&self, outcome: Outcome) {
        {
            let mut stage = self.stage();
            if matches!(*stage, RunStage::Ended(_)) {
                return;
            }
            *stage = RunStage::Ended(outcome);
        }
        self.judged.notify_waiters();
        self.over.notify_waiters();
        self.chunk_log().into_iter().for_each(ChunkLog::close);
    }

    fn has_ended(&self) -> bool {
        matches!(*self.stage(), RunStage::Ended(_))
    }

    fn stage(&self) -> MutexGuard<'_, RunStage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// Log of the run's chunks, if its first caller requested a stream.
    pub(crate) fn chunk_log(&self) -> Option<&ChunkLog> {
        self.0.chunk_log()
    }

    /// Waits until the run has bound the key. Never completes if the claim was not taken: the tape's end has that.
    /// Cancel safe.
    pub(crate) async fn wait_bound(&self) {
        self.0.wait_judged().await;
        if !self.0.has_bound_key() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for the store's verdict on the claim, at most until `wait_until` and `COMMIT_WAIT`. `Some(true)`: the
    /// key is bound to this run's request. `None`: no verdict yet. Cancel safe.
    pub(crate) async fn is_bound(&self, wait_until: Instant) -> Option<bool> {
        let limit = wait_until.min(Instant::now() + Options::COMMIT_WAIT);
        timeout_at(limit, self.0.wait_judged()).await.ok()?;
        Some(match &*self.0.stage() {
            RunStage::LetGo | RunStage::Running | RunStage::Settling(_) => true,
            RunStage::Ended(outcome) => {
                matches!(outcome, Outcome::GivenBack | Outcome::Row { ran: true, .. })
            }
            RunStage::Offered => false,
        })
    }

    /// True if the claim was released for want of readers before this one came: it should try again as a new
    /// request.
    pub(crate) fn is_released(&self) -> bool {
        matches!(*self.0.stage(), RunStage::LetGo | RunStage::Ended(Outcome::GivenBack))
    }

    /// Follows the tape to its end, at most until `wait_until`, and no longer than `COMMIT_WAIT` for a store that
    /// does not answer. Cancel safe.
    pub(crate) async fn follow(&self, wait_until: Option<Instant>) -> FollowOutcome {
        let begun = Instant::now();
        let mut now = begun;
        loop {
            // Before the stage is read: every later change wakes it.
            let over = self.0.over.notified();
            let (store, silent) = match &*self.0.stage() {
                RunStage::Ended(outcome) => return FollowOutcome::Ended(outcome.clone()),
                // From when this reader came: one that joins a claim which has waited for long has its own ten seconds.
                RunStage::Offered | RunStage::LetGo => (Some(begun), FollowOutcome::Unclaimed),
                RunStage::Settling(since) => (Some(begun.max(*since)), FollowOutcome::Unsettled),
                RunStage::Running => (None, FollowOutcome::StillRunning),
            };
            let store = store.map(|since| since + Options::COMMIT_WAIT);
            let store_first = match (store, wait_until) {
                (Some(store), Some(wait_until)) => store <= wait_until,
                (Some(_), None) => true,
                (None, _) => false,
            };
            let limit = if store_first { store } else { wait_until };
            if limit.is_some_and(|limit| limit <= now) {
                return if store_first { silent } else { FollowOutcome::StillRunning };
            }
            // A stage before the last wakes no reader: it is found in time by reading again.
            let look = now + Options::COMMIT_WAIT;
            let look = limit.map_or(look, |limit| limit.min(look));
            drop(timeout_at(look, over).await);
            now = Instant::now();
        }
    }
}
