//! Every interleaving of a few identical calls around the table: callers that die before and after
//! their answer, marked and unmarked retries, asks that are cut, a sidecar that dies with ends that
//! the journal does not have yet.
//!
//! The world knows what the table cannot: which logical call a caller belongs to, and who has read
//! which answer. A key that is asked for runs once, for ever: the gateway's promise, not this
//! one's. So a run too many is a key too many.

use std::time::Duration;

use stateright::{Checker, HasDiscoveries, Model, Property};
use uuid::Uuid;

use super::{
    Admission, Arrival, BodyDigest, CallEnd, CallerId, Change, IdenticalCalls, Moment, Record,
    Rules, Table,
};

const BODY: BodyDigest = BodyDigest([7; 32]);
const NOW: Moment = Moment(1_000_000);

/// Rule that a mutant breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutant {
    /// Takes a twin for another call without a look at the sockets.
    LooksAtNothing,
    /// Asks before the journal has the key.
    AsksBeforeTheJournal,
    /// Takes a caller that went for one that was served.
    TakesGoneForDelivered,
    /// Drops the slot of a refusal whatever was asked before.
    ForgetsCuts,
    /// Takes an error after which nobody knows for one that binds no key.
    TakesUnsureForUntouched,
}

/// Worlds to explore.
#[derive(Debug, Clone)]
struct Calls {
    /// Logical calls of the one body.
    calls: usize,
    /// Tries of each, the first included.
    tries: u8,
    is_marked: bool,
    crashes: u8,
    /// Errors after which nobody knows: where there are several calls, a cut is as much, and enough to explore.
    has_doubts: bool,
    mutant: Option<Mutant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Try {
    /// No try is under way; so many were made.
    Idle,
    /// A caller hangs on this key.
    Waiting { caller: CallerId, key: Uuid, is_retry: bool },
    /// The app has read this answer, at a marked retry or not.
    Done { key: Uuid, is_retry: bool },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    table: Table,
    journal: Vec<Record>,
    /// Ends that are on their way to the journal.
    late: Vec<Change>,
    calls: Vec<(Try, u8)>,
    /// Calls whose next try is marked: an SDK marks what it tries again by itself.
    marked: Vec<bool>,
    /// Asks that broke off and have not landed.
    astray: Vec<Uuid>,
    /// Callers whose apps have died, or given up, and whose sockets have ended unnoticed.
    dead: Vec<CallerId>,
    /// Keys that the gateway has been asked for: each is one run.
    runs: Vec<Uuid>,
    next_caller: u64,
    crashes: u8,
    /// An end was lost with the sidecar: its answer may be replayed once.
    lost_ends: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// A call begins, or its next try.
    Ask(usize),
    /// The answer goes out, and is read.
    Deliver(usize),
    /// A refusal that binds nothing goes out, and is read.
    Refuse(usize),
    /// An error goes out after which nobody knows whether the key is bound, and is read.
    Doubt(usize),
    /// The ask of this caller breaks off.
    Cut(usize),
    /// The app of a caller dies, or gives up.
    Die(usize),
    /// The end of a dead one's socket is noticed.
    Notice(usize),
    /// An ask that broke off arrives after all.
    Land,
    /// The journal has caught up.
    Flush,
    Crash,
}

fn rules() -> Rules {
    Rules { identical: IdenticalCalls::New, window: Duration::from_secs(600) }
}

fn write(journal: &mut Vec<Record>, change: Change) {
    let key = match change {
        Change::Put(record) => record.key,
        Change::Remove(key) => key,
    };
    journal.retain(|record| record.key != key);
    if let Change::Put(record) = change {
        journal.push(record);
        journal.sort_unstable();
    }
}

impl Calls {
    fn ask(&self, world: &mut World, call: usize) {
        let (_, tries) = world.calls[call];
        let caller = CallerId(world.next_caller);
        world.next_caller += 1;
        let fresh = Uuid::from_u128(u128::from(caller.0));
        let is_retry = world.marked[call] && self.is_marked;
        world.marked[call] = true;
        let mut arrival = Arrival { caller, body: BODY, is_retry, has_looked: false, fresh };
        arrival.has_looked = self.mutant == Some(Mutant::LooksAtNothing);
        let record = loop {
            match world.table.arrive(&arrival, NOW) {
                Admission::Slot { record, .. } => break record,
                Admission::Look(callers) => {
                    for gone in callers {
                        if world.dead.contains(&gone) {
                            world.dead.retain(|other| *other != gone);
                            self.leave(world, gone, CallEnd::Gone);
                        }
                    }
                    arrival.has_looked = true;
                }
                Admission::Full => panic!("a full table"),
            }
        };
        let change = Change::Put(record);
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

    fn doubt(&self, world: &mut World, call: usize) -> Option<()> {
        let (Try::Waiting { caller, key, .. }, tries) = world.calls[call] else { return None };
        // It may land yet, as an ask that was cut.
        if !world.astray.contains(&key) {
            world.astray.push(key);
        }
        self.leave(world, caller, CallEnd::Unsure);
        world.calls[call] = (Try::Idle, tries);
        Some(())
    }

    fn leave(&self, world: &mut World, caller: CallerId, end: CallEnd) {
        let end = match (self.mutant, end) {
            (Some(Mutant::TakesGoneForDelivered), CallEnd::Gone) => CallEnd::Delivered,
            (Some(Mutant::TakesUnsureForUntouched), CallEnd::Unsure) => CallEnd::Retryable,
            (_, end) => end,
        };
        world.late.extend(world.table.leave(caller, end, NOW));
    }
}

impl World {
    fn run(&mut self, key: Uuid) {
        if !self.runs.contains(&key) {
            self.runs.push(key);
        }
    }

    /// Keys of the answers that served calls have read, but for marked retries: these may share.
    fn answers(&self) -> Vec<Uuid> {
        let done = self.calls.iter().filter_map(|(one, _)| match one {
            Try::Done { key, is_retry: false } => Some(*key),
            Try::Idle | Try::Waiting { .. } | Try::Done { .. } => None,
        });
        done.collect()
    }
}

impl Model for Calls {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            table: Table::restore(rules(), Vec::new(), NOW),
            journal: Vec::new(),
            late: Vec::new(),
            calls: vec![(Try::Idle, 0); self.calls],
            marked: vec![false; self.calls],
            astray: Vec::new(),
            dead: Vec::new(),
            runs: Vec::new(),
            next_caller: 1,
            crashes: 0,
            lost_ends: 0,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (call, (one, tries)) in world.calls.iter().enumerate() {
            match one {
                Try::Idle if *tries < self.tries => actions.push(Action::Ask(call)),
                Try::Idle | Try::Done { .. } => {}
                Try::Waiting { key, .. } => {
                    actions.extend([Action::Deliver(call), Action::Die(call), Action::Cut(call)]);
                    if self.has_doubts {
                        actions.push(Action::Doubt(call));
                    }
                    if !world.runs.contains(key) {
                        actions.push(Action::Refuse(call));
                    }
                }
            }
        }
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
            Action::Ask(call) => self.ask(&mut world, call),
            Action::Deliver(call) => {
                let (Try::Waiting { caller, key, is_retry }, tries) = world.calls[call] else {
                    return None;
                };
                world.run(key);
                self.leave(&mut world, caller, CallEnd::Delivered);
                world.calls[call] = (Try::Done { key, is_retry }, tries);
            }
            Action::Refuse(call) => {
                let (Try::Waiting { caller, .. }, tries) = world.calls[call] else { return None };
                self.leave(&mut world, caller, CallEnd::Refused);
                // No SDK tries that again: whoever does begins anew.
                world.marked[call] = false;
                world.calls[call] = (Try::Idle, tries);
            }
            Action::Doubt(call) => self.doubt(&mut world, call)?,
            Action::Cut(call) => {
                let (Try::Waiting { caller, key, .. }, _) = world.calls[call] else { return None };
                // It may arrive yet.
                if !world.astray.contains(&key) {
                    world.astray.push(key);
                }
                if self.mutant != Some(Mutant::ForgetsCuts) {
                    world.table.cut(caller);
                }
            }
            Action::Die(call) => {
                let (Try::Waiting { caller, key, .. }, tries) = world.calls[call] else {
                    return None;
                };
                world.run(key);
                world.dead.push(caller);
                world.calls[call] = (Try::Idle, tries);
            }
            Action::Notice(dead) => {
                let caller = world.dead.remove(dead);
                self.leave(&mut world, caller, CallEnd::Gone);
            }
            Action::Land => {
                let key = world.astray.pop()?;
                world.run(key);
            }
            Action::Flush => {
                for change in std::mem::take(&mut world.late) {
                    write(&mut world.journal, change);
                }
            }
            Action::Crash => {
                let is_end = |change: &Change| match change {
                    Change::Put(record) => record.stage != super::Stage::Open,
                    Change::Remove(_) => true,
                };
                let lost = world.late.iter().filter(|change| is_end(change)).count();
                world.lost_ends += u8::try_from(lost).ok()?;
                world.late.clear();
                world.dead.clear();
                world.crashes += 1;
                world.table = Table::restore(rules(), world.journal.clone(), NOW);
                for (one, _) in &mut world.calls {
                    if let Try::Waiting { key, .. } = *one {
                        if !world.runs.contains(&key) {
                            world.runs.push(key);
                        }
                        *one = Try::Idle;
                    }
                }
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            // As many runs as logical calls at most, however often each was tried.
            Property::always("no second run", |_, world: &World| {
                let begun = world.calls.iter().filter(|(_, tries)| *tries > 0).count();
                world.runs.len() <= begun
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
                world.calls.iter().filter(|it| is_done(it)).count() == model.calls
            }),
        ]
    }
}

fn two(is_marked: bool) -> Calls {
    Calls { calls: 2, tries: 2, is_marked, crashes: 1, has_doubts: false, mutant: None }
}

/// Long enough for an error, a refusal and an answer.
fn one() -> Calls {
    Calls { calls: 1, tries: 3, has_doubts: true, ..two(false) }
}

#[track_caller]
fn check(calls: Calls, states_min: usize) {
    let checker = calls.checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    let broken: Vec<_> = checker
        .discoveries()
        .into_iter()
        .filter(|(name, _)| name.starts_with("no "))
        .map(|(name, path)| (name, path.into_actions()))
        .collect();
    assert!(broken.is_empty(), "{broken:?}");
    checker.assert_any_discovery("all are served");
    // Fewer were a model in which something cannot happen any more.
    let states = checker.unique_state_count();
    assert!(states >= states_min, "{states} states, of {states_min} at least");
}

#[track_caller]
fn breaks(mutant: Mutant, is_marked: bool) {
    breaks_in(Calls { mutant: Some(mutant), ..two(is_marked) });
}

#[track_caller]
fn breaks_in(model: Calls) {
    let mutant = model.mutant;
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.discovery("no second run").is_some(), "{mutant:?} breaks nothing");
}

#[test]
fn marked_retries_never_run_twice_and_no_answer_is_withheld() {
    check(two(true), 90_000);
}

#[test]
fn unmarked_retries_never_run_twice_before_the_answer_was_read() {
    check(two(false), 69_000);
}

#[test]
fn one_that_is_tried_three_times_runs_once() {
    check(one(), 340);
}

#[test]
fn three_at_once_have_three_answers() {
    check(Calls { calls: 3, tries: 1, crashes: 0, ..two(false) }, 310_000);
}

#[test]
fn a_twin_that_looks_at_no_socket_runs_a_retry_twice() {
    breaks(Mutant::LooksAtNothing, false);
}

#[test]
fn a_key_that_the_journal_has_not_got_runs_twice() {
    breaks(Mutant::AsksBeforeTheJournal, true);
}

#[test]
fn a_caller_that_went_is_not_one_that_was_served() {
    breaks(Mutant::TakesGoneForDelivered, false);
}

#[test]
fn a_refusal_after_a_cut_proves_nothing() {
    breaks(Mutant::ForgetsCuts, true);
}

#[test]
fn a_refusal_after_nobody_knew_proves_nothing() {
    breaks_in(Calls { mutant: Some(Mutant::TakesUnsureForUntouched), ..one() });
}
