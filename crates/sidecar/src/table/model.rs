//! Every interleaving of a few identical calls around the table: callers that die before their answer and with
//! the answer unread, marked and unmarked retries side by side, requests that are cut, final errors, a sidecar
//! that dies with ends that the journal does not have yet.
//!
//! The world has the knowledge that the table lacks: the logical call of each caller, and the answers that were
//! read. A key that was sent runs once, for ever, and ends in one way: the gateway's promise, not this one's.
//! So a run too many is a key too many.
//!
//! A single loss is forgiven, as in the manual: an app that died with its answer unread and repeats the call without
//! a mark, before its socket's reset is known, is another call.

mod worlds;

use std::time::Duration;

use stateright::{Model, Property};
use uuid::Uuid;

use super::{
    Arrival, BodyDigest, CallEnd, CallTable, CallerId, IdenticalCalls, Moment, Record, Rules,
    SlotAdmission, Stage, TableChange,
};

const BODY: BodyDigest = BodyDigest([7; 32]);
const NOW: Moment = Moment(1_000_000);

/// Rule that a mutant breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutant {
    /// Takes a twin for another call without a look at the sockets.
    LooksAtNothing,
    /// Sends the request before the journal has the key.
    AsksBeforeTheJournal,
    /// Takes a caller that went for one that was served.
    TakesGoneForDelivered,
    /// Drops the slot of a refusal even if an earlier request may have bound it.
    ForgetsCuts,
    /// Takes an error that leaves the key's state unknown for one that binds no key.
    TakesUnsureForUntouched,
    /// Never replays a delivered answer.
    ForgetsDeliveries,
    /// Never repeats a final error.
    ForgetsFailures,
    /// Takes an answer that a socket took for read, even if the socket was reset.
    IgnoresResets,
}

/// End of a try that not every world has: each multiplies the states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// An error that leaves the key's state unknown: with several calls, a cut is as much.
    Doubt,
    /// A final error.
    Failure,
    /// The socket takes the answer, and the app dies before it reads it.
    Unread,
}

/// Worlds to explore.
#[derive(Debug, Clone)]
struct Calls {
    /// Logical calls of the one body: true if the SDK marks the retries.
    marks: &'static [bool],
    /// Tries of each, the first included.
    tries: u8,
    crashes: u8,
    endings: &'static [Ending],
    mutant: Option<Mutant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Try {
    /// No try is under way; so many were made.
    Idle,
    /// A caller hangs on this key.
    Waiting { caller: CallerId, key: Uuid, is_retry: bool },
    /// The socket has taken this answer, and the app has died before it read it.
    Unread { key: Uuid },
    /// The app has read this answer, at a marked retry or not.
    Done { key: Uuid, is_retry: bool },
}

/// End of a run, as every request under its key receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RunEnd {
    /// No caller has received it yet.
    Untold,
    Answer,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    table: CallTable,
    journal: Vec<Record>,
    /// Ends that are on their way to the journal.
    late: Vec<TableChange>,
    calls: Vec<(Try, u8)>,
    /// Calls whose next try is marked: an SDK marks what it tries again by itself.
    marked: Vec<bool>,
    /// Requests that broke off and have not landed.
    astray: Vec<Uuid>,
    /// Callers whose apps have died, or given up, and whose sockets have ended unnoticed.
    dead: Vec<CallerId>,
    /// Sockets that have taken an answer for an app that died, by key: their resets are on their way.
    resets: Vec<Uuid>,
    /// Resets that the sidecar has not lived to know, or to write.
    lost_resets: Vec<Uuid>,
    /// Keys that the gateway has received: each is one run.
    runs: Vec<(Uuid, RunEnd)>,
    next_caller: u64,
    crashes: u8,
    /// Unmarked retries of unread answers that were indistinguishable from calls of their own.
    forgiven: u8,
    /// An end was lost with the sidecar: its answer may be replayed once.
    lost_ends: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// A call begins, or its next try.
    Ask(usize),
    /// The answer goes out, and is read.
    Deliver(usize),
    /// A refusal that binds no key goes out, and is read.
    Refuse(usize),
    /// An error that leaves the key's state unknown goes out, and is read.
    Doubt(usize),
    /// A final error goes out, and is read.
    Fail(usize),
    /// The answer goes out, and the app dies before it reads it.
    DeliverUnread(usize),
    /// The reset of a socket that took an unread answer arrives.
    Reset(usize),
    /// The request of this caller breaks off.
    Cut(usize),
    /// The app of a caller dies, or gives up.
    Die(usize),
    /// The end of a dead one's socket is noticed.
    Notice(usize),
    /// A request that broke off arrives after all.
    Land,
    /// The journal has caught up.
    Flush,
    Crash,
}

fn rules() -> Rules {
    Rules { identical: IdenticalCalls::New, window: Duration::from_secs(600) }
}

fn write(journal: &mut Vec<Record>, change: TableChange) {
    let (key, born) = match change {
        TableChange::Put(Record { key, born, .. }) | TableChange::Remove { key, born } => {
            (key, born)
        }
    };
    journal.retain(|record| (record.key, record.born) != (key, born));
    if let TableChange::Put(record) = change {
        journal.push(record);
        journal.sort_unstable();
    }
}

impl Calls {
    fn send(&self, world: &mut World, call: usize) {
        let (_, tries) = world.calls[call];
        let caller = CallerId(world.next_caller);
        world.next_caller += 1;
        let fresh = Uuid::from_u128(u128::from(caller.0));
        let is_retry = world.marked[call] && self.marks[call];
        world.marked[call] = true;
        let mut arrival = Arrival { caller, body: BODY, is_retry, has_looked: false, fresh };
        arrival.has_looked = self.mutant == Some(Mutant::LooksAtNothing);
        let record = loop {
            match world.table.arrive(&arrival, NOW) {
                SlotAdmission::Slot { record, .. } => break record,
                SlotAdmission::Look(callers) => {
                    for gone in callers {
                        if world.dead.contains(&gone) {
                            world.dead.retain(|other| *other != gone);
                            self.leave(world, gone, CallEnd::Gone);
                        }
                    }
                    arrival.has_looked = true;
                }
                SlotAdmission::Full => panic!("a full table"),
            }
        };
        // Its own answer is the unread one, or it swapped keys with the call whose answer is.
        let is_unknown = !world.resets.is_empty() || !world.lost_resets.is_empty();
        if record.key == fresh && !is_retry && tries > 0 && is_unknown {
            world.forgiven += 1;
        }
        let change = TableChange::Put(record);
        if self.mutant == Some(Mutant::AsksBeforeTheJournal) {
            world.late.push(change);
        } else {
            // In their order: what is late comes first.
            for earlier in std::mem::take(&mut world.late) {
                write(&mut world.journal, earlier);
            }
            write(&mut world.journal, change);
        }
        world.calls[call] = (Try::Waiting { caller, key: record.key, is_retry }, tries + 1);
    }

    /// Ends the try of a caller that receives this end.
    fn deliver(&self, world: &mut World, call: usize, end: CallEnd) -> Option<()> {
        let (Try::Waiting { caller, key, is_retry }, tries) = world.calls[call] else {
            return None;
        };
        let next = match end {
            CallEnd::Delivered => {
                world.run(key, RunEnd::Answer);
                Try::Done { key, is_retry }
            }
            CallEnd::Final => {
                world.run(key, RunEnd::Error);
                Try::Idle
            }
            CallEnd::Unsure => {
                world.go_astray(key);
                Try::Idle
            }
            CallEnd::Refused | CallEnd::Retryable | CallEnd::Gone => Try::Idle,
        };
        // No SDK repeats a final refusal: a caller that does begins anew.
        if matches!(end, CallEnd::Refused | CallEnd::Final) {
            world.marked[call] = false;
        }
        self.leave(world, caller, end);
        self.forget(world, key, end);
        world.calls[call] = (next, tries);
        Some(())
    }

    /// Drops a slot that has ended, if a mutant forgets it.
    fn forget(&self, world: &mut World, key: Uuid, end: CallEnd) {
        let is_forgotten = match self.mutant {
            Some(Mutant::ForgetsDeliveries) => end == CallEnd::Delivered,
            Some(Mutant::ForgetsFailures) => end == CallEnd::Final,
            Some(_) | None => false,
        };
        if is_forgotten {
            world.late.extend(world.table.remove(key).map(|slot| slot.record.removal()));
        }
    }

    fn leave(&self, world: &mut World, caller: CallerId, end: CallEnd) {
        let end = match (self.mutant, end) {
            (Some(Mutant::TakesGoneForDelivered), CallEnd::Gone) => CallEnd::Delivered,
            (Some(Mutant::TakesUnsureForUntouched), CallEnd::Unsure) => CallEnd::Retryable,
            (_, end) => end,
        };
        world.late.extend(world.table.leave(caller, end, NOW));
    }

    fn crash(world: &mut World) -> Option<()> {
        let is_end = |change: &TableChange| match change {
            TableChange::Put(record) => record.stage != Stage::Open,
            TableChange::Remove { .. } => true,
        };
        let lost = world.late.iter().filter(|change| is_end(change)).count();
        world.lost_ends += u8::try_from(lost).ok()?;
        let is_delivered = |key: Uuid| {
            world.journal.iter().any(|it| it.key == key && it.stage == Stage::Delivered)
        };
        let lost = world.calls.iter().filter_map(|(one, _)| match one {
            Try::Unread { key } if is_delivered(*key) => Some(*key),
            Try::Idle | Try::Waiting { .. } | Try::Unread { .. } | Try::Done { .. } => None,
        });
        world.lost_resets.extend(lost);
        world.resets.clear();
        world.late.clear();
        world.dead.clear();
        world.crashes += 1;
        world.table = CallTable::restore(rules(), world.journal.clone(), NOW);
        for at in 0..world.calls.len() {
            if let Try::Waiting { key, .. } = world.calls[at].0 {
                world.run(key, RunEnd::Untold);
                world.calls[at].0 = Try::Idle;
            }
        }
        Some(())
    }
}

impl World {
    fn end_of(&self, key: Uuid) -> Option<RunEnd> {
        self.runs.iter().find(|(run, _)| *run == key).map(|(_, end)| *end)
    }

    fn run(&mut self, key: Uuid, end: RunEnd) {
        match self.runs.iter_mut().find(|(run, _)| *run == key) {
            Some((_, known)) if *known == RunEnd::Untold => *known = end,
            Some(_) => {}
            None => self.runs.push((key, end)),
        }
    }

    /// A request under this key may arrive yet.
    fn go_astray(&mut self, key: Uuid) {
        if !self.astray.contains(&key) {
            self.astray.push(key);
        }
    }

    /// Keys of the answers that served calls have read, but for marked retries: these may share.
    fn answers(&self) -> Vec<Uuid> {
        let done = self.calls.iter().filter_map(|(one, _)| match one {
            Try::Done { key, is_retry: false } => Some(*key),
            Try::Idle | Try::Waiting { .. } | Try::Unread { .. } | Try::Done { .. } => None,
        });
        done.collect()
    }
}

impl Calls {
    /// Ends that a try may have under a key whose run has come to this.
    fn ends_of(&self, run: Option<RunEnd>, call: usize, actions: &mut Vec<Action>) {
        actions.extend([Action::Die(call), Action::Cut(call)]);
        if run != Some(RunEnd::Error) {
            actions.push(Action::Deliver(call));
        }
        if run.is_none() {
            actions.push(Action::Refuse(call));
        }
        for ending in self.endings {
            match ending {
                Ending::Doubt => actions.push(Action::Doubt(call)),
                Ending::Failure if run != Some(RunEnd::Answer) => actions.push(Action::Fail(call)),
                Ending::Unread if run != Some(RunEnd::Error) => {
                    actions.push(Action::DeliverUnread(call));
                }
                Ending::Failure | Ending::Unread => {}
            }
        }
    }
}

impl Model for Calls {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            table: CallTable::restore(rules(), Vec::new(), NOW),
            journal: Vec::new(),
            late: Vec::new(),
            calls: vec![(Try::Idle, 0); self.marks.len()],
            marked: vec![false; self.marks.len()],
            astray: Vec::new(),
            dead: Vec::new(),
            resets: Vec::new(),
            lost_resets: Vec::new(),
            runs: Vec::new(),
            next_caller: 1,
            crashes: 0,
            forgiven: 0,
            lost_ends: 0,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (call, (one, tries)) in world.calls.iter().enumerate() {
            match one {
                Try::Idle | Try::Unread { .. } if *tries < self.tries => {
                    actions.push(Action::Ask(call));
                }
                Try::Idle | Try::Unread { .. } | Try::Done { .. } => {}
                Try::Waiting { key, .. } => self.ends_of(world.end_of(*key), call, actions),
            }
        }
        actions.extend((0..world.resets.len()).map(Action::Reset));
        actions.extend((0..world.dead.len()).map(Action::Notice));
        if !world.astray.is_empty() {
            actions.push(Action::Land);
        }
        if !world.late.is_empty() {
            actions.push(Action::Flush);
        }
        if world.crashes < self.crashes {
            actions.push(Action::Crash);
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        match action {
            Action::Ask(call) => self.send(&mut world, call),
            Action::Deliver(call) => self.deliver(&mut world, call, CallEnd::Delivered)?,
            Action::Refuse(call) => self.deliver(&mut world, call, CallEnd::Refused)?,
            Action::Doubt(call) => self.deliver(&mut world, call, CallEnd::Unsure)?,
            Action::Fail(call) => self.deliver(&mut world, call, CallEnd::Final)?,
            Action::DeliverUnread(call) => {
                self.deliver(&mut world, call, CallEnd::Delivered)?;
                let (Try::Done { key, .. }, tries) = world.calls[call] else { return None };
                world.calls[call] = (Try::Unread { key }, tries);
                world.resets.push(key);
            }
            Action::Reset(at) => {
                let key = world.resets.remove(at);
                if self.mutant != Some(Mutant::IgnoresResets) {
                    world.late.extend(world.table.reset(key, NOW));
                }
            }
            Action::Cut(call) => {
                let (Try::Waiting { caller, key, .. }, _) = world.calls[call] else { return None };
                world.go_astray(key);
                if self.mutant != Some(Mutant::ForgetsCuts) {
                    world.table.cut(caller);
                }
            }
            Action::Die(call) => {
                let (Try::Waiting { caller, key, .. }, tries) = world.calls[call] else {
                    return None;
                };
                world.run(key, RunEnd::Untold);
                world.dead.push(caller);
                world.calls[call] = (Try::Idle, tries);
            }
            Action::Notice(dead) => {
                let caller = world.dead.remove(dead);
                self.leave(&mut world, caller, CallEnd::Gone);
            }
            Action::Land => {
                let key = world.astray.pop()?;
                world.run(key, RunEnd::Untold);
            }
            Action::Flush => {
                for change in std::mem::take(&mut world.late) {
                    write(&mut world.journal, change);
                }
            }
            Action::Crash => Self::crash(&mut world)?,
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            // As many runs as logical calls at most, however often each was tried.
            Property::always("no second run", |_, world: &World| {
                let begun = world.calls.iter().filter(|(_, tries)| *tries > 0).count();
                world.runs.len() <= begun + usize::from(world.forgiven)
            }),
            // Two calls that were served have two answers, but for marked retries, which rather share
            // one than run twice, and for ends that were lost.
            Property::always("no answer withheld", |_, world: &World| {
                let answers = world.answers();
                let distinct = answers.iter().collect::<std::collections::BTreeSet<_>>().len();
                answers.len() - distinct <= usize::from(world.lost_ends)
            }),
            Property::sometimes("all are served", |model: &Calls, world: &World| {
                let is_done = |(one, _): &(Try, u8)| matches!(one, Try::Done { .. });
                world.calls.iter().filter(|it| is_done(it)).count() == model.marks.len()
            }),
        ]
    }
}
