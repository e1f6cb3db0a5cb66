//! Tapes: how the run of one operation is followed, by any number of readers, none of whom can slow it.
//!
//! ```text
//! Offered ──► Running ──► Settling ──► Ended(outcome)
//!    │  └───► LetGo ─────────────────► Ended(given back)
//!    └───────────────────────────────► Ended(unbound, elsewhere, other request, a row)
//! ```
//!
//! The run sets the stage and never awaits a reader. Readers look at the stage and wait for one of two signals:
//! `judged`, the store's verdict of the claim, which few wait for; and `over`, the end, which most wait for. They are
//! apart so that a claim that commits does not wake thousands who can do nothing yet. Text goes on its [`ChunkLog`].
//!
//! - The first end stands: it was told to readers. A second one changes nothing.
//! - A reader is registered for a signal before it looks at the stage. The other way round, an end between the two
//!   would wake nobody, and the reader would wait for its whole patience.
//! - A tape never says that the key is free while its claim may still be committed: a reader that gave up on a silent
//!   store ([`Options::COMMIT_WAIT`], 10 s) hears that the store did not answer, not that nothing runs.
//! - A stop is a wish: the run ends as its row allows, and the caller's wish goes before the operator's, because what a
//!   caller cancels is charged for what arrived and what a process cuts is not.

mod chunk_log;
mod compact_log;
mod registry;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use holdfast_domain::operation::{Binding, Snapshot};
use holdfast_domain::{ClaimId, OperationId};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

pub(crate) use self::chunk_log::{ChunkLog, ClosingChunks, Follower};
pub(crate) use self::registry::{Registration, RunRegistry};
use crate::failure::RequestFailure;
use crate::options::Options;
use crate::rate_limit::RateLimitStatus;

/// Where a run is.
#[derive(Debug, Clone)]
enum RunStage {
    /// Its claim waits for the store's verdict: the key may not be bound.
    Offered,
    /// Its claim came too late for everybody: it is given back, and whoever comes now claims anew.
    LetGo,
    /// It is this process's, and the model may be running.
    Running,
    /// Its ending waits for the store, since then.
    Settling(Instant),
    /// Over.
    Ended(Outcome),
}

/// How a run ended.
#[derive(Clone)]
pub(crate) enum Outcome {
    /// The claim was not committed; the key is as it was before.
    Unbound(RequestFailure),
    /// The key is bound, and this is what its row says.
    Row {
        /// Read after the last guarded write.
        snapshot: Arc<Snapshot>,
        /// The content before it was sealed, where this run made it.
        body: Option<Bytes>,
        /// Whether this run wrote it.
        ran: bool,
        /// What the API key's limits stand at after it, where this run claimed.
        rates: RateLimitStatus,
    },
    /// Its claim came too late for everybody, and was given back.
    GivenBack,
    /// Another process runs it.
    Elsewhere,
    /// The key is bound to another request.
    OtherRequest,
    /// The task died; heartbeat or reconciler will resolve the operation.
    Lost,
}

impl fmt::Debug for Outcome {
    /// Without what was said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbound(failure) => write!(f, "Unbound({failure:?})"),
            Self::Row { snapshot, body, ran, rates } => {
                let body = body.as_ref().map(Bytes::len);
                write!(f, "Row({snapshot:?}, {body:?} bytes, ran: {ran}, {rates:?})")
            }
            Self::GivenBack => f.write_str("GivenBack"),
            Self::Elsewhere => f.write_str("Elsewhere"),
            Self::OtherRequest => f.write_str("OtherRequest"),
            Self::Lost => f.write_str("Lost"),
        }
    }
}

/// What a reader gets.
#[derive(Debug)]
pub(crate) enum FollowOutcome {
    /// It is over.
    Ended(Outcome),
    /// The reader's patience ended first.
    StillRunning,
    /// The store did not judge the claim in time: whether the key is bound is not known.
    Unclaimed,
    /// The store did not take the ending in time.
    Unsettled,
}

/// One run of one operation in this process.
#[derive(Debug)]
pub(crate) struct Tape {
    pub(crate) operation: OperationId,
    pub(crate) claim: ClaimId,
    /// What the claim was offered with.
    pub(crate) binding: Binding,
    /// When, before anybody waited for it.
    offered: Instant,
    /// From when on its task is not believed to be alive.
    deadline: OnceLock<Instant>,
    /// What it says while it runs, where its first caller wanted to hear that.
    track: Option<ChunkLog>,
    /// A std mutex: never held across an await.
    stage: Mutex<RunStage>,
    /// Wakes whoever waits for the store's verdict of the claim.
    judged: Notify,
    /// Wakes whoever waits for the end, and for nothing before it: most of those who follow do.
    over: Notify,
    readers: AtomicUsize,
    sent: AtomicBool,
    /// Who wants it to end, and how whoever runs it hears of that.
    stops: [AtomicBool; 2],
    stopping: Notify,
}

/// Who wants a run to end before its provider has said everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// Its caller; the row says so.
    Caller,
    /// The operator, whose process ends.
    Operator,
}

/// One reader of a tape, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reader(Arc<Tape>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Tape {
    fn new(
        operation: OperationId,
        claim: ClaimId,
        binding: Binding,
        track: Option<ChunkLog>,
    ) -> Self {
        Self {
            operation,
            claim,
            binding,
            offered: Instant::now(),
            deadline: OnceLock::new(),
            track,
            stage: Mutex::new(RunStage::Offered),
            judged: Notify::new(),
            over: Notify::new(),
            readers: AtomicUsize::new(0),
            sent: AtomicBool::new(false),
            stops: [AtomicBool::new(false), AtomicBool::new(false)],
            stopping: Notify::new(),
        }
    }

    /// Its task says when it is over at the latest. A second word changes nothing.
    pub(crate) fn ends_by(&self, deadline: Instant) {
        self.deadline.get_or_init(|| deadline);
    }

    /// Becomes a reader; `None` when there are too many.
    pub(crate) fn read(self: &Arc<Self>, readers_max: usize) -> Option<Reader> {
        // Counted before it is compared, and given back by the drop: of two that come for the last place one gets it.
        let reader = Reader(Arc::clone(self));
        let before = self.readers.fetch_add(1, Ordering::Relaxed);
        (before < readers_max).then_some(reader)
    }

    /// Whether this run has bound the key: before that, another request may yet get it.
    pub(crate) fn is_admitted(&self) -> bool {
        matches!(*self.stage(), RunStage::LetGo | RunStage::Running | RunStage::Settling(_))
    }

    /// Lets go of a claim that was committed after everybody was told to come again, or had hung up:
    /// what the store had in hand for so long must not run, and cost, as soon as it gets better. In time,
    /// a claim runs for those as well who hung up. Readers that come later see that it was let go.
    pub(crate) fn try_release(&self) -> bool {
        // Whoever was told has waited for so long: none began before the tape.
        if self.offered.elapsed() < Options::COMMIT_WAIT {
            return false;
        }
        let mut stage = self.stage();
        // Under the lock: a reader is counted before it looks at the stage.
        if self.readers.load(Ordering::Relaxed) > 0 {
            return false;
        }
        *stage = RunStage::LetGo;
        // Whoever is woken looks at the stage at once.
        drop(stage);
        self.judged.notify_waiters();
        true
    }

    /// The claim was committed.
    pub(crate) fn set_running(&self) {
        *self.stage() = RunStage::Running;
        self.judged.notify_waiters();
    }

    /// Completes when the store has judged the run's claim. Cancel safe.
    pub(crate) async fn wait_judged(&self) {
        loop {
            // Before the look: whatever comes after it is heard.
            let judged = self.judged.notified();
            if !matches!(*self.stage(), RunStage::Offered) {
                return;
            }
            judged.await;
        }
    }

    pub(crate) fn chunk_log(&self) -> Option<&ChunkLog> {
        self.track.as_ref()
    }

    /// Completes when somebody wants the run to end. Cancel safe.
    pub(crate) async fn wait_stop(&self) -> StopCause {
        loop {
            // Before the look: whatever comes after it is heard.
            let stopping = self.stopping.notified();
            if let Some(stop) = self.stop() {
                return stop;
            }
            stopping.await;
        }
    }

    /// Who wants the run to end; of both, its caller.
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
        flag.store(true, Ordering::Release);
        self.stopping.notify_waiters();
    }

    /// From now on a provider may have seen the request.
    pub(crate) fn set_sending(&self) {
        self.sent.store(true, Ordering::Release);
    }

    /// The run is over and its ending is offered to the store.
    pub(crate) fn set_settling(&self) {
        // The time of the stage: a reader waits for the store from here on, not from when it came.
        *self.stage() = RunStage::Settling(Instant::now());
        self.chunk_log().into_iter().for_each(ChunkLog::close);
    }

    /// The end. A second end changes nothing: the first was told to readers.
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
    /// What the run says while it runs, if that is kept.
    pub(crate) fn chunk_log(&self) -> Option<&ChunkLog> {
        self.0.chunk_log()
    }

    /// Completes when the run has bound the key; never where its claim was not taken, which its end tells.
    /// Cancel safe.
    pub(crate) async fn wait_admitted(&self) {
        self.0.wait_judged().await;
        if !self.0.is_admitted() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the store has judged the run's claim, at most until `patience`, and says whether
    /// that bound the key to the run's request. `None`: there is no verdict yet. Cancel safe.
    pub(crate) async fn is_bound(&self, patience: Instant) -> Option<bool> {
        let limit = patience.min(Instant::now() + Options::COMMIT_WAIT);
        timeout_at(limit, self.0.wait_judged()).await.ok()?;
        Some(match &*self.0.stage() {
            RunStage::LetGo | RunStage::Running | RunStage::Settling(_) => true,
            RunStage::Ended(outcome) => {
                matches!(outcome, Outcome::GivenBack | Outcome::Row { ran: true, .. })
            }
            RunStage::Offered => false,
        })
    }

    /// Whether the run was given up for want of readers before this one came.
    pub(crate) fn is_released(&self) -> bool {
        matches!(*self.0.stage(), RunStage::LetGo | RunStage::Ended(Outcome::GivenBack))
    }

    /// Follows the tape to its end, at most until `patience`. Cancel safe.
    pub(crate) async fn follow(&self, patience: Option<Instant>) -> FollowOutcome {
        let begun = Instant::now();
        let mut now = begun;
        loop {
            // Before the look: whatever comes after it is heard.
            let over = self.0.over.notified();
            let (store, silent) = match &*self.0.stage() {
                RunStage::Ended(outcome) => return FollowOutcome::Ended(outcome.clone()),
                // From when this reader came: one that joins a claim which has waited for long has its own ten seconds.
                RunStage::Offered | RunStage::LetGo => (Some(begun), FollowOutcome::Unclaimed),
                RunStage::Settling(since) => (Some(begun.max(*since)), FollowOutcome::Unsettled),
                RunStage::Running => (None, FollowOutcome::StillRunning),
            };
            let store = store.map(|since| since + Options::COMMIT_WAIT);
            let store_first = match (store, patience) {
                (Some(store), Some(patience)) => store <= patience,
                (Some(_), None) => true,
                (None, _) => false,
            };
            let limit = if store_first { store } else { patience };
            if limit.is_some_and(|limit| limit <= now) {
                return if store_first { silent } else { FollowOutcome::StillRunning };
            }
            // Nobody is woken by a stage before the last: it is found in time by looking again.
            let look = now + Options::COMMIT_WAIT;
            let look = limit.map_or(look, |limit| limit.min(look));
            drop(timeout_at(look, over).await);
            now = Instant::now();
        }
    }
}
