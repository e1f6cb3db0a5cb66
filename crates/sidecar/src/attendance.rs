//! The driver of the table: the one lock around it, callers that come and go, and the journal that gets each
//! change.
//!
//! ```text
//! admit ─▶ lock: table, then the journal's queue ─▶ the row is kept ─▶ Attendance ─┬─ finish ─▶ TakenAnswer
//!    └─ twins of the body: peek at their sockets, twice, 20 ms apart               └─ drop: the caller went
//! ```
//!
//! The journal gets the changes under the table's lock: in another order than the table's, it might have an
//! active slot as delivered, and a sidecar that is killed would give its call a second key.
//!
//! Never: an await, a peek at a socket or a cancellation under the lock, which all calls share; a byte of a call
//! before its row is kept.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::net::TcpStream;
use uuid::Uuid;

use crate::journal::{Journal, JournalFile, NotWritten, RowReceipt};
use crate::peek::has_hung_up;
use crate::table::{
    Arrival, BodyDigest, CallEnd, CallTable, CallerId, Moment, Record, Rules, SlotAdmission, Stage,
    TableChange,
};

/// Pause before the second look at the sockets of twins: the end of a client's connection that is
/// on its way has arrived by then.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Looks at them before a twin counts as another call.
const LOOKS: u32 = 2;

/// All slots of a sidecar, with the callers that wait on them.
#[derive(Debug)]
pub(crate) struct SlotRegistry {
    /// Held while a change enters the journal's queue, so that both have the same order.
    state: Mutex<RegistryState>,
    journal: Journal,
    clock: Clock,
}

/// Clock of one process: the machine's at its start, and what has passed since. A machine's clock that is set
/// while calls run would end their windows, or make old answers young.
#[derive(Debug, Clone, Copy)]
struct Clock {
    start: Moment,
    since: Instant,
}

#[derive(Debug)]
struct RegistryState {
    table: CallTable,
    sockets: BTreeMap<CallerId, Weak<TcpStream>>,
    /// The number of the next caller.
    next: u64,
}

/// Reason for which a call got no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSlot {
    Full,
    NotWritten,
}

/// Numbers of slots and callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotCounts {
    /// Slots that are attended or orphaned.
    pub(crate) open: u64,
    /// Slots that failed or were delivered.
    pub(crate) ended: u64,
    pub(crate) callers: u64,
}

/// Reply to an arrival that the journal has received.
enum SlotAssignment {
    /// The call's key, and its row on the way into the journal.
    Slot(Uuid, RowReceipt),
    /// Callers whose sockets are to be looked at first.
    Look(Vec<CallerId>),
    Full,
}

impl SlotRegistry {
    pub(crate) fn new(rules: Rules, journal: Journal, records: Vec<Record>) -> Self {
        let clock = Clock::start();
        let table = CallTable::restore(rules, records, clock.now());
        let state = RegistryState { table, sockets: BTreeMap::new(), next: 0 };
        Self { state: Mutex::new(state), journal, clock }
    }

    /// Gives a call its key, which the journal has when this returns. Cancel safe: a caller that
    /// goes meanwhile leaves its slot.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        body: BodyDigest,
        is_retry: bool,
        socket: &Arc<TcpStream>,
    ) -> Result<Attendance, NoSlot> {
        let mut arrival = Arrival {
            caller: self.number(),
            body,
            is_retry,
            has_looked: false,
            fresh: Uuid::new_v4(),
        };
        // Ends after the second look: an arrival that has looked is not sent back to look again.
        for look in 1.. {
            let twins = match self.arrive(&arrival, socket) {
                SlotAssignment::Slot(key, row) => {
                    // Before the row is awaited: a caller that goes meanwhile drops it, and leaves.
                    let attendance = Attendance {
                        registry: Arc::clone(self),
                        caller: arrival.caller,
                        key,
                        end: CallEnd::Gone,
                        on_hang_up: None,
                    };
                    return match row.kept().await {
                        Ok(()) => Ok(attendance),
                        Err(NotWritten) => {
                            self.withdraw(arrival.caller);
                            Err(NoSlot::NotWritten)
                        }
                    };
                }
                SlotAssignment::Full => return Err(NoSlot::Full),
                SlotAssignment::Look(twins) => twins,
            };
            if look > 1 {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            self.look(&twins);
            arrival.has_looked = look >= LOOKS;
        }
        // Never reached: the loop has no end.
        Err(NoSlot::Full)
    }

    fn number(&self) -> CallerId {
        let mut state = self.lock();
        state.next += 1;
        CallerId(state.next)
    }

    fn arrive(&self, arrival: &Arrival, socket: &Arc<TcpStream>) -> SlotAssignment {
        let mut state = self.lock();
        match state.table.arrive(arrival, self.clock.now()) {
            SlotAdmission::Slot { record, evicted } => {
                state.sockets.insert(arrival.caller, Arc::downgrade(socket));
                evicted.into_iter().for_each(|old| self.journal.note(old.removal()));
                SlotAssignment::Slot(record.key, self.journal.put(record))
            }
            SlotAdmission::Look(twins) => SlotAssignment::Look(twins),
            SlotAdmission::Full => SlotAssignment::Full,
        }
    }

    /// Looks at the sockets of callers: who has hung up has left.
    fn look(&self, callers: &[CallerId]) {
        for caller in callers {
            // The lock is released before the peek: every call of the sidecar waits for it, and
            // `leave` takes it again. A socket that is dropped has no client any more.
            let socket = self.lock().sockets.get(caller).and_then(Weak::upgrade);
            if socket.is_none_or(|socket| has_hung_up(&socket)) {
                self.leave(*caller, CallEnd::Gone);
            }
        }
    }

    /// A request for this caller broke off, and may have arrived.
    fn cut(&self, caller: CallerId) {
        self.lock().table.cut(caller);
    }

    /// A caller whose row was not kept leaves: no byte was sent for it, and a slot that it began goes with it.
    fn withdraw(&self, caller: CallerId) {
        let mut state = self.lock();
        state.sockets.remove(&caller);
        match state.table.leave(caller, CallEnd::Refused, self.clock.now()) {
            Some(change @ TableChange::Put(_)) => self.journal.note(change),
            // An unwritten row need not be taken out. If there was a row of an earlier try, it is an orphan
            // whose key no gateway has seen.
            Some(TableChange::Remove { .. }) | None => {}
        }
    }

    /// A caller leaves; true if it leaves an orphan.
    fn leave(&self, caller: CallerId, end: CallEnd) -> bool {
        let mut state = self.lock();
        state.sockets.remove(&caller);
        let change = state.table.leave(caller, end, self.clock.now());
        change.into_iter().for_each(|change| self.journal.note(change));
        matches!(change, Some(TableChange::Put(record)) if record.stage == Stage::Open)
    }

    /// Drops the slots that no call can take any more.
    pub(crate) fn sweep(&self) {
        let mut state = self.lock();
        let old = state.table.sweep(self.clock.now());
        old.into_iter().for_each(|record| self.journal.note(record.removal()));
    }

    pub(crate) fn count(&self) -> SlotCounts {
        let state = self.lock();
        let ((open, ended), callers) = (state.table.count(), state.sockets.len());
        drop(state);
        let [open, ended, callers] =
            [open, ended, callers].map(|count| u64::try_from(count).unwrap_or(u64::MAX));
        SlotCounts { open, ended, callers }
    }

    /// The journal's file as it was opened, if there is one.
    pub(crate) fn journal_file(&self) -> Option<JournalFile> {
        self.journal.file()
    }

    /// Writes the last ends. The end of a caller that leaves after this is not written any more.
    pub(crate) async fn close(self) {
        self.journal.close().await;
    }

    /// Lock of the table, held for no await.
    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller that waits on a slot. Dropping it without [`Self::finish`] means that the caller went.
pub(crate) struct Attendance {
    registry: Arc<SlotRegistry>,
    caller: CallerId,
    key: Uuid,
    end: CallEnd,
    on_hang_up: Option<HangUpWork>,
}

/// Work that a hang-up causes.
pub(crate) type HangUpWork = Box<dyn FnOnce() + Send + Sync>;

impl fmt::Debug for Attendance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attendance({:?}, {:?})", self.caller, self.end)
    }
}

impl Attendance {
    pub(crate) const fn key(&self) -> Uuid {
        self.key
    }

    /// A request broke off after some of it may have arrived.
    pub(crate) fn cut(&self) {
        self.registry.cut(self.caller);
    }

    /// Sets the end of the call, for when its answer was taken.
    pub(crate) const fn set_end(&mut self, end: CallEnd) {
        self.end = end;
    }

    /// Sets the work to do if the caller goes and no other caller waits on its slot.
    pub(crate) fn on_hang_up(&mut self, work: HangUpWork) {
        self.on_hang_up = Some(work);
    }

    /// The answer was taken: the caller leaves with the end that was set.
    pub(crate) fn finish(mut self) -> Option<TakenAnswer> {
        // The drop that follows must not cancel an operation whose answer was taken.
        self.on_hang_up = None;
        self.registry.leave(self.caller, self.end);
        match self.end {
            CallEnd::Delivered => {
                Some(TakenAnswer { registry: Arc::clone(&self.registry), key: self.key })
            }
            CallEnd::Final
            | CallEnd::Retryable
            | CallEnd::Unsure
            | CallEnd::Refused
            | CallEnd::Gone => None,
        }
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        // After `finish` it has left already, and this has no effect.
        let is_orphaned = self.registry.leave(self.caller, CallEnd::Gone);
        if let Some(work) = self.on_hang_up.take()
            && is_orphaned
        {
            work();
        }
    }
}

/// Answer that a socket has taken.
pub(crate) struct TakenAnswer {
    registry: Arc<SlotRegistry>,
    key: Uuid,
}

impl fmt::Debug for TakenAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TakenAnswer")
    }
}

impl TakenAnswer {
    /// The socket was reset: its client has not read the answer.
    pub(crate) fn reset(self) {
        let mut state = self.registry.lock();
        let change = state.table.reset(self.key, self.registry.clock.now());
        change.into_iter().for_each(|change| self.registry.journal.note(change));
    }
}

impl Clock {
    fn start() -> Self {
        // A clock before 1970 counts as 1970: `CallTable::restore` keeps no moment later than now.
        let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: Moment(millis(start)), since: Instant::now() }
    }

    fn now(self) -> Moment {
        Moment(self.start.0.saturating_add(millis(self.since.elapsed())))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Barrier;
    use std::sync::mpsc::channel;
    use std::thread;

    use tokio::net::TcpListener;

    use super::*;
    use crate::journal::FULL;
    use crate::table::IdenticalCalls;

    const ROUNDS: usize = 20_000;

    #[tokio::test]
    async fn a_call_whose_row_is_not_kept_leaves_no_slot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        Journal::open(&path, false).unwrap().0.close().await;
        rusqlite::Connection::open(&path).unwrap().execute_batch(FULL).unwrap();
        let (journal, records) = Journal::open(&path, false).unwrap();
        let window = Duration::from_secs(86_400);
        let rules = Rules { identical: IdenticalCalls::New, window };
        let registry = Arc::new(SlotRegistry::new(rules, journal, records));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = Arc::new(TcpStream::connect(listener.local_addr().unwrap()).await.unwrap());
        let refused = registry.admit(BodyDigest([3; 32]), false, &socket).await.unwrap_err();
        assert_eq!(refused, NoSlot::NotWritten);
        let mut state = registry.lock();
        assert!(state.sockets.is_empty());
        assert_eq!(state.table.sweep(Moment(u64::MAX)), [], "it could not go for its window");
    }

    /// Again and again, one thread ends a call as another one retries it.
    #[tokio::test]
    async fn the_journal_hears_of_changes_in_the_order_of_the_table() {
        let folder = tempfile::tempdir().unwrap();
        let [path, copy] = ["journal.db", "copy.db"].map(|name| folder.path().join(name));
        let (journal, records) = Journal::open(&path, false).unwrap();
        let window = Duration::from_secs(86_400);
        let rules = Rules { identical: IdenticalCalls::Attach, window };
        let registry = Arc::new(SlotRegistry::new(rules, journal, records));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (_client, socket) = (listener.accept().await.unwrap(), Arc::new(socket));
        let mut attended = Vec::new();
        let (endings, ends) = channel::<Attendance>();
        let together = Arc::new(Barrier::new(2));
        let start = Arc::clone(&together);
        let ending = thread::spawn(move || {
            for first in ends {
                start.wait();
                drop(first.finish());
                start.wait();
            }
        });
        for round in 0..ROUNDS {
            let mut body = [0; 32];
            body[..8].copy_from_slice(&round.to_be_bytes());
            let body = BodyDigest(body);
            let mut first = registry.admit(body, false, &socket).await.unwrap();
            first.set_end(CallEnd::Delivered);
            endings.send(first).unwrap();
            let (caller, fresh) = (registry.number(), Uuid::new_v4());
            let retry = Arrival { caller, body, is_retry: true, has_looked: true, fresh };
            together.wait();
            let SlotAssignment::Slot(key, _row) = registry.arrive(&retry, &socket) else {
                panic!("no slot")
            };
            attended.push(key);
            together.wait();
        }
        drop(endings);
        ending.join().unwrap();
        // What a kill leaves now: the last row is kept, and with it all that came before.
        registry.admit(BodyDigest([255; 32]), false, &socket).await.unwrap();
        for end in ["", "-wal"] {
            let name = |path: &Path| format!("{}{end}", path.display());
            std::fs::copy(name(&path), name(&copy)).unwrap();
        }
        let (_copy, records) = Journal::open(&copy, false).unwrap();
        let stages: BTreeMap<_, _> = records.into_iter().map(|it| (it.key, it.stage)).collect();
        for key in &attended {
            assert_eq!(stages[key], Stage::Open);
        }
    }
}
