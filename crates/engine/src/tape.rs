//! The tape that a run is followed by: what stage it is in and, at last, how it ended. Any number of
//! readers follow one tape; none of them can slow it. What the run says meanwhile is on its [`Track`].

mod log;
mod running;
mod track;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use holdfast_domain::operation::{Binding, Snapshot};
use holdfast_domain::{ClaimId, OperationId};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

pub(crate) use self::running::{Registered, Running};
pub(crate) use self::track::{Closing, Follower, Track};
use crate::options::Options;
use crate::rates::Rates;
use crate::reply::Failure;

/// Where a run is.
#[derive(Debug, Clone)]
enum Stage {
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
    Unbound(Failure),
    /// The key is bound, and this is what its row says.
    Row {
        /// Read after the last guarded write.
        snapshot: Arc<Snapshot>,
        /// The content before it was sealed, where this run made it.
        body: Option<Bytes>,
        /// Whether this run wrote it.
        ran: bool,
        /// What the API key's limits stand at after it, where this run claimed.
        rates: Rates,
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
pub(crate) enum Followed {
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
    track: Option<Track>,
    /// A std mutex: never held across an await.
    stage: Mutex<Stage>,
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
pub(crate) enum Stop {
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
    fn new(operation: OperationId, claim: ClaimId, binding: Binding, track: Option<Track>) -> Self {
        Self {
            operation,
            claim,
            binding,
            offered: Instant::now(),
            deadline: OnceLock::new(),
            track,
            stage: Mutex::new(Stage::Offered),
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
        let reader = Reader(Arc::clone(self));
        let before = self.readers.fetch_add(1, Ordering::Relaxed);
        (before < readers_max).then_some(reader)
    }

    /// Whether this run has bound the key: before that, another request may yet get it.
    pub(crate) fn is_admitted(&self) -> bool {
        matches!(*self.stage(), Stage::LetGo | Stage::Running | Stage::Settling(_))
    }

    /// Lets go of a claim that was committed after everybody was told to come again, or had hung up:
    /// what the store had in hand for so long must not run, and cost, as soon as it gets better. In time,
    /// a claim runs for those as well who hung up. Readers that come later see that it was let go.
    pub(crate) fn let_go(&self) -> bool {
        // Whoever was told has waited for so long: none began before the tape.
        if self.offered.elapsed() < Options::COMMIT_WAIT {
            return false;
        }
        let mut stage = self.stage();
        // Under the lock: a reader is counted before it looks at the stage.
        if self.readers.load(Ordering::Relaxed) > 0 {
            return false;
        }
        *stage = Stage::LetGo;
        drop(stage);
        self.judged.notify_waiters();
        true
    }

    /// The claim was committed.
    pub(crate) fn running(&self) {
        *self.stage() = Stage::Running;
        self.judged.notify_waiters();
    }

    /// Completes when the store has judged the run's claim. Cancel safe.
    pub(crate) async fn judged(&self) {
        loop {
            // Before the look: whatever comes after it is heard.
            let judged = self.judged.notified();
            if !matches!(*self.stage(), Stage::Offered) {
                return;
            }
            judged.await;
        }
    }

    pub(crate) fn track(&self) -> Option<&Track> {
        self.track.as_ref()
    }

    /// Completes when somebody wants the run to end. Cancel safe.
    pub(crate) async fn stopped(&self) -> Stop {
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
    pub(crate) fn stop(&self) -> Option<Stop> {
        let [caller, operator] = &self.stops;
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        if is_set(caller) {
            return Some(Stop::Caller);
        }
        is_set(operator).then_some(Stop::Operator)
    }

    fn end_early(&self, stop: Stop) {
        let [caller, operator] = &self.stops;
        let flag = match stop {
            Stop::Caller => caller,
            Stop::Operator => operator,
        };
        flag.store(true, Ordering::Release);
        self.stopping.notify_waiters();
    }

    /// From now on a provider may have seen the request.
    pub(crate) fn sending(&self) {
        self.sent.store(true, Ordering::Release);
    }

    /// The run is over and its ending is offered to the store.
    pub(crate) fn settling(&self) {
        *self.stage() = Stage::Settling(Instant::now());
        self.track().into_iter().for_each(Track::over);
    }

    /// The end. A second end changes nothing: the first was told to readers.
    pub(crate) fn end(&self, outcome: Outcome) {
        {
            let mut stage = self.stage();
            if matches!(*stage, Stage::Ended(_)) {
                return;
            }
            *stage = Stage::Ended(outcome);
        }
        self.judged.notify_waiters();
        self.over.notify_waiters();
        self.track().into_iter().for_each(Track::over);
    }

    fn ended(&self) -> bool {
        matches!(*self.stage(), Stage::Ended(_))
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// What the run says while it runs, if that is kept.
    pub(crate) fn track(&self) -> Option<&Track> {
        self.0.track()
    }

    /// Completes when the run has bound the key; never where its claim was not taken, which its end tells.
    /// Cancel safe.
    pub(crate) async fn admitted(&self) {
        self.0.judged().await;
        if !self.0.is_admitted() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the store has judged the run's claim, at most until `patience`, and says whether
    /// that bound the key to the run's request. `None`: there is no verdict yet. Cancel safe.
    pub(crate) async fn is_bound(&self, patience: Instant) -> Option<bool> {
        let limit = patience.min(Instant::now() + Options::COMMIT_WAIT);
        timeout_at(limit, self.0.judged()).await.ok()?;
        Some(match &*self.0.stage() {
            Stage::LetGo | Stage::Running | Stage::Settling(_) => true,
            Stage::Ended(outcome) => {
                matches!(outcome, Outcome::GivenBack | Outcome::Row { ran: true, .. })
            }
            Stage::Offered => false,
        })
    }

    /// Whether the run was given up for want of readers before this one came.
    pub(crate) fn is_let_go(&self) -> bool {
        matches!(*self.0.stage(), Stage::LetGo | Stage::Ended(Outcome::GivenBack))
    }

    /// Follows the tape to its end, at most until `patience`. Cancel safe.
    pub(crate) async fn follow(&self, patience: Option<Instant>) -> Followed {
        let begun = Instant::now();
        let mut now = begun;
        loop {
            // Before the look: whatever comes after it is heard.
            let over = self.0.over.notified();
            let (store, silent) = match &*self.0.stage() {
                Stage::Ended(outcome) => return Followed::Ended(outcome.clone()),
                Stage::Offered | Stage::LetGo => (Some(begun), Followed::Unclaimed),
                Stage::Settling(since) => (Some(begun.max(*since)), Followed::Unsettled),
                Stage::Running => (None, Followed::StillRunning),
            };
            let store = store.map(|since| since + Options::COMMIT_WAIT);
            let store_first = match (store, patience) {
                (Some(store), Some(patience)) => store <= patience,
                (Some(_), None) => true,
                (None, _) => false,
            };
            let limit = if store_first { store } else { patience };
            if limit.is_some_and(|limit| limit <= now) {
                return if store_first { silent } else { Followed::StillRunning };
            }
            // Nobody is woken by a stage before the last: it is found in time by looking again.
            let look = now + Options::COMMIT_WAIT;
            let look = limit.map_or(look, |limit| limit.min(look));
            drop(timeout_at(look, over).await);
            now = Instant::now();
        }
    }
}
