//! Table of slots: which request key a call gets. A slot is one key and one logical call of one body. This is a
//! state machine without clock, sockets or disk. Its driver reports arrivals, departures, the state of sockets
//! and the time, and writes the returned changes to the journal.
//!
//! ```text
//!             arrive                         leave
//! (no slot) ─────────▶ attended ──┬─ the answer was taken ─────────▶ delivered ─┐
//!                         ▲       ├─ a final error was taken ──────▶ failed ────┤
//!                         │       ├─ gone, or sent a retry hint ───▶ orphaned   │
//!                         │       └─ refused before a key was bound▶ (no slot)  │
//!                         └──────────────── arrive, by the rules ◀──────────────┘
//! ```
//!
//! A caller with a body takes, in this order: its oldest orphan; as a marked retry its latest slot that failed
//! or was delivered within [`REPLAY_TIME`], then its oldest attended one; as any caller its failed slot that
//! was requested within [`FAILED_TIME`]; if identical calls share, its oldest attended one; else a new slot. A
//! failed slot is given for [`FAILED_TIME_MAX`] at most. Before an attended slot counts as another caller's,
//! the driver checks the sockets of its callers ([`SlotAdmission::Look`]).
//!
//! Never: a slot that leaves while a caller waits on it, or a key for a second logical call while the first
//! one's answer is on its way.

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use uuid::Uuid;

/// Time in which a marked retry gets what failed or was delivered before.
pub(crate) const REPLAY_TIME: Duration = Duration::from_secs(120);
/// Time since the last request of a failed slot in which any call with the same body gets its error again:
/// clients that retry a final error retry faster than this.
pub(crate) const FAILED_TIME: Duration = Duration::from_secs(60);
/// Time since the first error of a failed slot after which its body is a new call, however often it was requested.
pub(crate) const FAILED_TIME_MAX: Duration = Duration::from_secs(600);
/// The most slots; beyond, the one that ended longest ago goes for a new one.
pub(crate) const SLOTS_MAX: usize = 65_536;

/// Keyed digest of a call: its credential, upstream, path and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BodyDigest(pub(crate) [u8; 32]);

/// Milliseconds since 1970. Of two in one process the later is never less; another process's may be ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Moment(pub(crate) u64);

impl Moment {
    /// Time since an earlier moment.
    fn since(self, earlier: Self) -> Duration {
        // A moment of another process may be ahead: then no time has passed, so that a slot stays
        // longer. Ended early, its call would get a second key.
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// A request of the client, while it is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CallerId(pub(crate) u64);

/// Meaning of identical calls at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdenticalCalls {
    /// Each is a call of its own.
    New,
    /// All of them are one call.
    Attach,
}

/// Rules of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Rules {
    pub(crate) identical: IdenticalCalls,
    /// Time that a slot stays after a caller was last seen.
    pub(crate) window: Duration,
}

/// A call that has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) caller: CallerId,
    pub(crate) body: BodyDigest,
    /// Marked by its SDK as a retry.
    pub(crate) is_retry: bool,
    /// The sockets of the body's callers were looked at, twice.
    pub(crate) has_looked: bool,
    /// Key of a new slot, if the arrival gets one.
    pub(crate) fresh: Uuid,
}

/// Reply to an arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SlotAdmission {
    /// The call's key, the row that the journal must have before a byte goes out, and the row of a
    /// slot that had to go for it.
    Slot { record: Record, evicted: Option<Record> },
    /// Callers whose sockets are to be checked before the arrival is judged again.
    Look(Vec<CallerId>),
    /// There is no room: every slot may still be needed.
    Full,
}

/// End of a request, as its client saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CallEnd {
    /// The socket took the answer.
    Delivered,
    /// The socket took an error that every later try under the key gets too.
    Final,
    /// The socket took an error after which the same key may fare better, and the key is not bound.
    Retryable,
    /// As `Retryable`, but the key may be bound.
    Unsure,
    /// The socket took a refusal that binds no key.
    Refused,
    /// The caller went before the end of its answer was written.
    Gone,
}

/// Stage of a slot, as the journal keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Stage {
    /// Attended if a caller waits on it, else orphaned.
    Open,
    Failed,
    Delivered,
}

/// Row of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Record {
    pub(crate) key: Uuid,
    pub(crate) body: BodyDigest,
    pub(crate) stage: Stage,
    /// Beginning of the slot, by which the oldest is known.
    pub(crate) born: Moment,
    /// The last moment at which a caller was seen.
    pub(crate) seen: Moment,
}

/// Change for the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TableChange {
    Put(Record),
    Remove { key: Uuid, born: Moment },
}

impl TableChange {
    /// The row that it is about.
    pub(crate) const fn row(&self) -> (Moment, Uuid) {
        match *self {
            Self::Put(Record { key, born, .. }) | Self::Remove { key, born } => (born, key),
        }
    }
}

impl Record {
    /// The change that takes the row out.
    pub(crate) const fn removal(&self) -> TableChange {
        TableChange::Remove { key: self.key, born: self.born }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Slot {
    record: Record,
    callers: BTreeSet<CallerId>,
    /// Some request under the key may have arrived, and no refusal proves that none will.
    may_be_bound: bool,
    /// A caller has had the answer since the slot was last taken.
    was_delivered: bool,
    /// The first of its final errors, which bounds the time for which it is given again.
    failed_at: Option<Moment>,
}

impl Rules {
    /// Time for which a marked retry gets an end again.
    fn replay_time(self) -> Duration {
        self.window.min(REPLAY_TIME)
    }

    /// True if no call can get the slot any more.
    fn is_over(self, slot: &Slot, now: Moment) -> bool {
        let time = match slot.record.stage {
            Stage::Open => self.window,
            Stage::Failed | Stage::Delivered => self.replay_time(),
        };
        !slot.is_attended() && now.since(slot.record.seen) >= time
    }
}

impl Slot {
    fn is_orphan(&self) -> bool {
        self.record.stage == Stage::Open && self.callers.is_empty()
    }

    fn is_attended(&self) -> bool {
        !self.callers.is_empty()
    }

    /// False for a failed slot whose error was given for the longest time.
    fn may_repeat(&self, now: Moment) -> bool {
        self.failed_at.is_none_or(|failed| now.since(failed) < FAILED_TIME_MAX)
    }

    /// True if the slot is failed or delivered: no caller waits on it, and the next one that takes it opens it.
    fn has_ended(&self) -> bool {
        self.record.stage != Stage::Open
    }

    /// Place among the body's slots of its stage: the open by their birth, the others by their end.
    fn place(&self) -> (Stage, (Moment, Uuid)) {
        let Record { key, stage, born, seen, .. } = self.record;
        match stage {
            Stage::Open => (stage, (born, key)),
            Stage::Failed | Stage::Delivered => (stage, (seen, key)),
        }
    }
}

/// Slots of one body, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct BodySlots(BTreeMap<Stage, BTreeSet<(Moment, Uuid)>>);

impl BodySlots {
    fn of(&self, stage: Stage) -> impl DoubleEndedIterator<Item = (Moment, Uuid)> {
        self.0.get(&stage).into_iter().flatten().copied()
    }

    /// The slots of this end that were seen within `time`, the latest first.
    fn latest(
        &self,
        stage: Stage,
        time: Duration,
        now: Moment,
    ) -> impl Iterator<Item = (Moment, Uuid)> {
        self.of(stage).rev().take_while(move |(seen, _)| now.since(*seen) < time)
    }
}

/// All slots of a sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CallTable {
    rules: Rules,
    slots: BTreeMap<Uuid, Slot>,
    bodies: BTreeMap<BodyDigest, BodySlots>,
    /// Slots that have ended, by when a caller was seen last.
    ended: BTreeSet<(Moment, Uuid)>,
    /// The slot that each caller hangs on.
    callers: BTreeMap<CallerId, Uuid>,
}

impl CallTable {
    /// A table as a journal has left it. Callers of open slots are gone since, and the moment at which they
    /// were last seen is unknown. No moment is later than now, even if the clock was then.
    pub(crate) fn restore(rules: Rules, records: Vec<Record>, now: Moment) -> Self {
        let mut table = Self {
            rules,
            slots: BTreeMap::new(),
            bodies: BTreeMap::new(),
            ended: BTreeSet::new(),
            callers: BTreeMap::new(),
        };
        for mut record in records {
            match record.stage {
                Stage::Open => record.seen = now,
                Stage::Failed | Stage::Delivered => record.seen = record.seen.min(now),
            }
            table.put(Slot {
                record,
                callers: BTreeSet::new(),
                // The journal does not keep which requests were sent. Taken as unsent, a refusal
                // after the restart would drop the key of a call that may have run.
                may_be_bound: true,
                was_delivered: false,
                // The journal has the last request alone: the longest time begins anew.
                failed_at: (record.stage == Stage::Failed).then_some(record.seen),
            });
        }
        table
    }

    /// Gives a call its slot.
    pub(crate) fn arrive(&mut self, arrival: &Arrival, now: Moment) -> SlotAdmission {
        let Arrival { caller, body, is_retry, has_looked, fresh } = *arrival;
        let none = BodySlots::default();
        let slots = self.bodies.get(&body).unwrap_or(&none);
        let open = || slots.of(Stage::Open).filter_map(|(_, key)| self.slots.get(&key));
        // Its time is over at once, not when the table is swept.
        let is_due = |slot: &&Slot| slot.is_orphan() && !self.rules.is_over(slot, now);
        let orphan = open().find(is_due).map(|slot| slot.record.key);
        if let Some(key) = orphan {
            return self.take(key, caller, now);
        }
        let attended = open().find(|slot| slot.is_attended()).map(|slot| slot.record.key);
        // A twin whose client has gone unseen would count as another call, and this arrival, its
        // retry perhaps, would be paid for a second time.
        if attended.is_some() && !has_looked {
            return SlotAdmission::Look(
                open().flat_map(|slot| slot.callers.iter().copied()).collect(),
            );
        }
        let again = if is_retry {
            let time = self.rules.replay_time();
            let delivered = slots.latest(Stage::Delivered, time, now).next();
            let ended = self.failed(slots, time, now).max(delivered);
            ended.map(|(_, key)| key).or(attended)
        } else {
            None
        };
        let failed_time = FAILED_TIME.min(self.rules.window);
        let failed = self.failed(slots, failed_time, now).map(|(_, key)| key);
        let shared = match self.rules.identical {
            IdenticalCalls::New => None,
            IdenticalCalls::Attach => attended,
        };
        match again.or(failed).or(shared) {
            Some(key) => self.take(key, caller, now),
            None => self.begin(
                caller,
                Record { key: fresh, body, stage: Stage::Open, born: now, seen: now },
            ),
        }
    }

    /// The failed slot whose error is given again.
    fn failed(&self, slots: &BodySlots, time: Duration, now: Moment) -> Option<(Moment, Uuid)> {
        let may_repeat = |key: &Uuid| self.slots.get(key).is_some_and(|slot| slot.may_repeat(now));
        slots.latest(Stage::Failed, time, now).find(|(_, key)| may_repeat(key))
    }

    /// Number of slots that are open, and that have ended.
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.slots.len().saturating_sub(self.ended.len()), self.ended.len())
    }

    /// A request for this caller broke off after some of it may have arrived, or the gateway does not know if
    /// it bound the key.
    pub(crate) fn cut(&mut self, caller: CallerId) {
        if let Some(slot) = self.callers.get(&caller).and_then(|key| self.slots.get_mut(key)) {
            slot.may_be_bound = true;
        }
    }

    /// A caller leaves its slot; for one that has left already there is no change.
    pub(crate) fn leave(
        &mut self,
        caller: CallerId,
        end: CallEnd,
        now: Moment,
    ) -> Option<TableChange> {
        let key = self.callers.remove(&caller)?;
        let slot = self.slots.get_mut(&key)?;
        slot.callers.remove(&caller);
        match end {
            CallEnd::Delivered => (slot.may_be_bound, slot.was_delivered) = (true, true),
            CallEnd::Final | CallEnd::Gone | CallEnd::Unsure => slot.may_be_bound = true,
            CallEnd::Retryable | CallEnd::Refused => {}
        }
        // No change for the journal: the row is open there, and `restore` sets its moment anew.
        if slot.is_attended() {
            slot.record.seen = now;
            return None;
        }
        // Of several that shared it one has had it: no caller waits for it any more.
        let stage = match end {
            CallEnd::Final => Stage::Failed,
            CallEnd::Refused if !slot.may_be_bound => {
                return self.remove(key).map(|slot| slot.record.removal());
            }
            CallEnd::Delivered
            | CallEnd::Gone
            | CallEnd::Retryable
            | CallEnd::Unsure
            | CallEnd::Refused => {
                if slot.was_delivered {
                    Stage::Delivered
                } else {
                    Stage::Open
                }
            }
        };
        self.set(key, stage, now).map(TableChange::Put)
    }

    /// The socket that took a slot's answer was reset after it: the client has not read the answer.
    pub(crate) fn reset(&mut self, key: Uuid, now: Moment) -> Option<TableChange> {
        let slot = self.slots.get_mut(&key)?;
        slot.was_delivered = false;
        // A caller has taken the slot since: its own end decides.
        if slot.is_attended() || slot.record.stage != Stage::Delivered {
            return None;
        }
        self.set(key, Stage::Open, now).map(TableChange::Put)
    }

    /// Drops the slots whose window has passed, and returns them.
    pub(crate) fn sweep(&mut self, now: Moment) -> Vec<Record> {
        let is_old = |slot: &&Slot| self.rules.is_over(slot, now);
        let old: Vec<Record> = self.slots.values().filter(is_old).map(|it| it.record).collect();
        for record in &old {
            self.remove(record.key);
        }
        old
    }

    fn take(&mut self, key: Uuid, caller: CallerId, now: Moment) -> SlotAdmission {
        // Never without it: keys come from the indexes.
        let Some(slot) = self.slots.get_mut(&key) else { return SlotAdmission::Full };
        // An earlier caller had that answer: this one waits anew, and leaves an orphan if it goes.
        if !slot.is_attended() {
            slot.was_delivered = false;
        }
        slot.callers.insert(caller);
        self.callers.insert(caller, key);
        match self.set(key, Stage::Open, now) {
            Some(record) => SlotAdmission::Slot { record, evicted: None },
            None => SlotAdmission::Full,
        }
    }

    fn begin(&mut self, caller: CallerId, record: Record) -> SlotAdmission {
        let evicted = if self.slots.len() < SLOTS_MAX {
            None
        } else {
            // What may still run is never dropped for room.
            let Some(&(_, oldest)) = self.ended.first() else { return SlotAdmission::Full };
            let evicted = self.remove(oldest).map(|slot| slot.record);
            debug_assert!(evicted.is_some(), "whatever has ended is a slot");
            evicted
        };
        self.callers.insert(caller, record.key);
        self.put(Slot {
            record,
            callers: BTreeSet::from([caller]),
            may_be_bound: false,
            was_delivered: false,
            failed_at: None,
        });
        SlotAdmission::Slot { record, evicted }
    }

    /// Moves a slot to a stage, at which a caller was seen now.
    fn set(&mut self, key: Uuid, stage: Stage, now: Moment) -> Option<Record> {
        // Out of the indexes first: stage and moment are its place in them.
        let mut slot = self.remove(key)?;
        (slot.record.stage, slot.record.seen) = (stage, now);
        match stage {
            Stage::Open => {}
            // The first error counts: otherwise a client that repeats its call extends the time
            // for which it gets that error without end.
            Stage::Failed => slot.failed_at = slot.failed_at.or(Some(now)),
            Stage::Delivered => slot.failed_at = None,
        }
        let record = slot.record;
        self.put(slot);
        Some(record)
    }

    fn put(&mut self, slot: Slot) {
        let (stage, place) = slot.place();
        let body = self.bodies.entry(slot.record.body).or_default();
        body.0.entry(stage).or_default().insert(place);
        if slot.has_ended() {
            self.ended.insert((slot.record.seen, slot.record.key));
        }
        self.slots.insert(slot.record.key, slot);
    }

    fn remove(&mut self, key: Uuid) -> Option<Slot> {
        let slot = self.slots.remove(&key)?;
        self.ended.remove(&(slot.record.seen, key));
        let (stage, place) = slot.place();
        let body = self.bodies.get_mut(&slot.record.body)?;
        if let Some(places) = body.0.get_mut(&stage) {
            places.remove(&place);
            if places.is_empty() {
                body.0.remove(&stage);
            }
        }
        if body.0.is_empty() {
            self.bodies.remove(&slot.record.body);
        }
        Some(slot)
    }
}
