//! The driver of the table: the one lock around it, callers that come and go, and the journal that
//! hears of each change.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::TcpStream;
use uuid::Uuid;

use crate::journal::{Journal, NotWritten};
use crate::peek::has_hung_up;
use crate::table::{
    Admission, Arrival, BodyDigest, CallEnd, CallerId, Change, Moment, Record, Rules, Stage, Table,
};

/// Pause before the second look at the sockets of twins: the end of a client's connection that is
/// on its way has arrived by then.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Looks at them before a twin counts as another call.
const LOOKS: u32 = 2;

/// All slots of a sidecar, with whoever hangs on them.
#[derive(Debug)]
pub(crate) struct Desk {
    state: Mutex<DeskState>,
    journal: Journal,
}

#[derive(Debug)]
struct DeskState {
    table: Table,
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

impl Desk {
    pub(crate) fn new(rules: Rules, journal: Journal, records: Vec<Record>) -> Self {
        let table = Table::restore(rules, records, now());
        let state = DeskState { table, sockets: BTreeMap::new(), next: 0 };
        Self { state: Mutex::new(state), journal }
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
        for look in 1.. {
            let twins = match self.arrive(&arrival, socket) {
                Admission::Slot { record, evicted } => {
                    let attendance = Attendance {
                        desk: Arc::clone(self),
                        caller: arrival.caller,
                        key: record.key,
                        end: CallEnd::Gone,
                        on_hang_up: None,
                    };
                    evicted.into_iter().for_each(|old| self.journal.note(Change::Remove(old)));
                    let written = self.journal.put(record).await;
                    written.map_err(|NotWritten| NoSlot::NotWritten)?;
                    return Ok(attendance);
                }
                Admission::Full => return Err(NoSlot::Full),
                Admission::Look(twins) => twins,
            };
            if look > 1 {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            self.look(&twins);
            arrival.has_looked = look >= LOOKS;
        }
        Err(NoSlot::Full)
    }

    fn number(&self) -> CallerId {
        let mut state = self.lock();
        state.next += 1;
        CallerId(state.next)
    }

    fn arrive(&self, arrival: &Arrival, socket: &Arc<TcpStream>) -> Admission {
        let mut state = self.lock();
        let admission = state.table.arrive(arrival, now());
        if let Admission::Slot { .. } = admission {
            state.sockets.insert(arrival.caller, Arc::downgrade(socket));
        }
        admission
    }

    /// Looks at the sockets of callers: who has hung up has left.
    fn look(&self, callers: &[CallerId]) {
        for caller in callers {
            let socket = self.lock().sockets.get(caller).and_then(Weak::upgrade);
            if socket.is_none_or(|socket| has_hung_up(&socket)) {
                self.leave(*caller, CallEnd::Gone);
            }
        }
    }

    /// An ask for this caller broke off, and may have arrived.
    fn cut(&self, caller: CallerId) {
        self.lock().table.cut(caller);
    }

    /// A caller leaves; true where it leaves an orphan.
    fn leave(&self, caller: CallerId, end: CallEnd) -> bool {
        let change = {
            let mut state = self.lock();
            state.sockets.remove(&caller);
            state.table.leave(caller, end, now())
        };
        change.into_iter().for_each(|change| self.journal.note(change));
        matches!(change, Some(Change::Put(record)) if record.stage == Stage::Open)
    }

    /// Drops what nobody asks for any more.
    pub(crate) fn sweep(&self) {
        let old = self.lock().table.sweep(now());
        old.into_iter().for_each(|record| self.journal.note(Change::Remove(record)));
    }

    /// Writes the last ends. Whoever leaves after this is not written any more.
    pub(crate) fn close(self) {
        self.journal.close();
    }

    /// Lock of the table, held for no await.
    fn lock(&self) -> MutexGuard<'_, DeskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller that hangs on a slot. Dropping it without [`Self::finish`] says that it went.
pub(crate) struct Attendance {
    desk: Arc<Desk>,
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

    /// An ask broke off after some of it may have arrived.
    pub(crate) fn cut(&self) {
        self.desk.cut(self.caller);
    }

    /// Sets the end of the call, for when its answer was taken.
    pub(crate) const fn set_end(&mut self, end: CallEnd) {
        self.end = end;
    }

    /// Sets what is done where the caller goes and nobody else hangs on its slot.
    pub(crate) fn on_hang_up(&mut self, work: HangUpWork) {
        self.on_hang_up = Some(work);
    }

    /// The answer was taken: the caller leaves with the end that was set.
    pub(crate) fn finish(mut self) -> Option<TakenAnswer> {
        self.on_hang_up = None;
        self.desk.leave(self.caller, self.end);
        match self.end {
            CallEnd::Delivered => Some(TakenAnswer { desk: Arc::clone(&self.desk), key: self.key }),
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
        // After `finish` it has left already, and this changes nothing.
        let is_orphaned = self.desk.leave(self.caller, CallEnd::Gone);
        if let Some(work) = self.on_hang_up.take()
            && is_orphaned
        {
            work();
        }
    }
}

/// Answer that a socket has taken.
pub(crate) struct TakenAnswer {
    desk: Arc<Desk>,
    key: Uuid,
}

impl fmt::Debug for TakenAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TakenAnswer")
    }
}

impl TakenAnswer {
    /// The socket was reset: nobody has read the answer.
    pub(crate) fn reset(self) {
        let change = self.desk.lock().table.reset(self.key, now());
        change.into_iter().for_each(|change| self.desk.journal.note(change));
    }
}

fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
