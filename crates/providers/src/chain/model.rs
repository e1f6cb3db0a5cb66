//! Every interleaving of one operation's attempts with a gateway behind: requests that arrive late or never,
//! answers that are cut, a proxy in between that answers in its place, a server that ignores keys.
//!
//! The world keeps what the asking gateway cannot see: what is still on its way, and what runs. A
//! server that keeps keys runs each of them once, which is its own promise and has its own model.
//! The verdicts are production's.

use holdfast_domain::ports::{CallFailure, UnknownReason};
use holdfast_wire::error::Code;
use stateright::{Checker, HasDiscoveries, Model, Property};

use super::verdict::{Ask, AskOutcome, Echo, Verdict, judge};

/// Generations of the operation, each with a key of its own.
const GENERATIONS: usize = 2;
/// Attempts of one generation.
const ASKS: u8 = 3;

/// Rule that a mutant breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutant {
    /// Believes after a second attempt that there was no run.
    NotRunAfterSecondAsk,
    /// Believes a proof that does not echo the key.
    ProofWithoutEcho,
    /// Repeats a request at a server that has not shown that it keeps keys.
    AsksWhoIgnoresKeys,
    /// Repeats a request under another key.
    AsksUnderAnotherKey,
    /// Believes a node that drains, which has not looked for the key.
    DrainingIsProof,
}

/// Worlds to explore.
#[derive(Debug, Clone, Copy)]
struct Chain {
    keeps_keys: bool,
    mutant: Option<Mutant>,
}

/// Stage of the operation at the calling gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    /// About to send.
    Asking(Ask),
    /// Waits for the answer to an attempt.
    Waiting(Ask),
    /// T3: the caller may come again.
    Open,
    /// T2, which the caller pays.
    Answered,
    /// T4 or T5, without a charge.
    Unpaid,
}

/// State of a key at the called gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Free,
    Running,
    Completed,
    /// Outcome unknown for good, uncharged.
    Abandoned,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    stage: Stage,
    generation: usize,
    asks: u8,
    keys: [Key; GENERATIONS],
    /// Requests on their way, by the number of their key.
    mail: Vec<usize>,
    runs: u8,
    charges: u8,
    was_asked_again: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChainAction {
    Send,
    /// No connection came about.
    SendNothing,
    /// A request arrives, and its key runs or has run.
    Arrive(usize),
    /// The newest request arrives while its key is free, and is turned away.
    TurnAway,
    /// A run ends, with an answer or with an unknown outcome.
    Finish(usize, Key),
    /// The called gateway answers by the state of the key.
    Reply,
    /// A node of it that drains answers, to a try of a proxy that tries twice.
    ReplyDraining,
    /// A proxy in between answers in its place.
    ReplyInItsPlace,
    Cut,
    TimeUp,
    /// The caller sends the request again after T3.
    Reopen,
}

impl Chain {
    fn judge(&self, attempt: Ask, outcome: AskOutcome) -> Verdict {
        let attempt = match self.mutant {
            Some(Mutant::NotRunAfterSecondAsk) => Ask::First,
            Some(_) | None => attempt,
        };
        let outcome = match (self.mutant, outcome) {
            (Some(Mutant::ProofWithoutEcho), AskOutcome::Error(code, Echo::Absent)) => {
                AskOutcome::Error(code, Echo::Judged)
            }
            (Some(Mutant::DrainingIsProof), AskOutcome::Error(Some(Code::Draining), echo)) => {
                AskOutcome::Error(Some(Code::Overloaded), echo)
            }
            (_, outcome) => outcome,
        };
        judge(attempt, outcome)
    }

    /// Takes the outcome of a waiting attempt.
    fn conclude(&self, world: &mut World, attempt: Ask, outcome: AskOutcome) {
        let may_repeat = self.keeps_keys || self.mutant == Some(Mutant::AsksWhoIgnoresKeys);
        world.stage = match self.judge(attempt, outcome) {
            Verdict::Answered => Stage::Answered,
            Verdict::Ended(CallFailure::NotRun(_)) => Stage::Open,
            Verdict::AskAgain(_) if may_repeat && world.asks < ASKS => {
                if self.mutant == Some(Mutant::AsksUnderAnotherKey) {
                    world.generation = (world.generation + 1).min(GENERATIONS - 1);
                }
                Stage::Asking(Ask::Again)
            }
            Verdict::Ended(CallFailure::Refused(_) | CallFailure::Unknown(_))
            | Verdict::AskAgain(_) => Stage::Unpaid,
        };
    }

    fn arrive(&self, world: &mut World, mail: usize) {
        let key = world.mail.remove(mail);
        if world.keys[key] == Key::Free || !self.keeps_keys {
            world.keys[key] = Key::Running;
            world.runs += 1;
        }
    }
}

impl World {
    fn waiting(&self) -> Option<Ask> {
        match self.stage {
            Stage::Waiting(attempt) => Some(attempt),
            Stage::Asking(_) | Stage::Open | Stage::Answered | Stage::Unpaid => None,
        }
    }

    /// The newest request, if it has not arrived.
    fn newest_mail(&self) -> Option<usize> {
        self.mail.iter().rposition(|key| *key == self.generation)
    }

    /// Answer of the called gateway; `None` while it has none.
    fn reply(&self) -> Option<AskOutcome> {
        let own = |code| AskOutcome::Error(Some(code), Echo::Judged);
        match self.keys[self.generation] {
            Key::Free => None,
            Key::Running => Some(own(Code::OperationInProgress)),
            Key::Completed => Some(AskOutcome::Completion),
            Key::Abandoned => Some(own(Code::OutcomeUnknown)),
        }
    }
}

impl Model for Chain {
    type State = World;
    type Action = ChainAction;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            stage: Stage::Asking(Ask::First),
            generation: 0,
            asks: 0,
            keys: [Key::Free; GENERATIONS],
            mail: Vec::new(),
            runs: 0,
            charges: 0,
            was_asked_again: false,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<ChainAction>) {
        match world.stage {
            Stage::Asking(_) => {
                actions.extend([ChainAction::Send, ChainAction::SendNothing, ChainAction::TimeUp]);
            }
            Stage::Waiting(_) => {
                actions.extend([
                    ChainAction::ReplyInItsPlace,
                    ChainAction::Cut,
                    ChainAction::TimeUp,
                ]);
                let has_arrived = world.newest_mail().is_none();
                if has_arrived && world.reply().is_some() {
                    actions.extend([ChainAction::Reply, ChainAction::ReplyDraining]);
                }
                if !has_arrived && world.keys[world.generation] == Key::Free {
                    actions.push(ChainAction::TurnAway);
                }
            }
            Stage::Open if world.generation + 1 < GENERATIONS => actions.push(ChainAction::Reopen),
            Stage::Open | Stage::Answered | Stage::Unpaid => {}
        }
        actions.extend((0..world.mail.len()).map(ChainAction::Arrive));
        for (number, key) in world.keys.iter().enumerate() {
            if *key == Key::Running {
                let ends = [Key::Completed, Key::Abandoned];
                actions.extend(ends.map(|end| ChainAction::Finish(number, end)));
            }
        }
    }

    fn next_state(&self, last: &World, action: ChainAction) -> Option<World> {
        let mut world = last.clone();
        match action {
            ChainAction::Send | ChainAction::SendNothing => {
                let Stage::Asking(attempt) = world.stage else { return None };
                world.asks += 1;
                world.was_asked_again |= attempt == Ask::Again;
                if action == ChainAction::Send {
                    world.mail.push(world.generation);
                    world.stage = Stage::Waiting(attempt);
                } else {
                    self.conclude(&mut world, attempt, AskOutcome::Unsent);
                }
            }
            ChainAction::Arrive(mail) => self.arrive(&mut world, mail),
            ChainAction::TurnAway => {
                let newest = world.newest_mail()?;
                world.mail.remove(newest);
                let turned_away = AskOutcome::Error(Some(Code::Overloaded), Echo::Judged);
                self.conclude(&mut world, last.waiting()?, turned_away);
            }
            ChainAction::Finish(number, end) => {
                world.keys[number] = end;
                world.charges += u8::from(end == Key::Completed);
            }
            ChainAction::Reply => self.conclude(&mut world, last.waiting()?, last.reply()?),
            ChainAction::ReplyDraining => {
                let drains = AskOutcome::Error(Some(Code::Draining), Echo::Judged);
                self.conclude(&mut world, last.waiting()?, drains);
            }
            ChainAction::ReplyInItsPlace => {
                let other = AskOutcome::Error(Some(Code::UpstreamUnavailable), Echo::Absent);
                self.conclude(&mut world, last.waiting()?, other);
            }
            ChainAction::Cut => {
                self.conclude(&mut world, last.waiting()?, AskOutcome::Lost(UnknownReason::Broken));
            }
            ChainAction::TimeUp => world.stage = Stage::Unpaid,
            ChainAction::Reopen => {
                world.generation += 1;
                world.asks = 0;
                world.stage = Stage::Asking(Ask::First);
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no second run", |_, world: &World| world.runs <= 1),
            Property::always("no second charge", |_, world: &World| world.charges <= 1),
            Property::always("no answer that was not paid for", |_, world: &World| {
                world.stage != Stage::Answered || world.charges == 1
            }),
            // Reached at least once: a model in which no answer ever comes would hold every
            // promise.
            Property::sometimes("answered", |_, world: &World| world.stage == Stage::Answered),
            Property::sometimes("answered at a later ask", |chain: &Chain, world: &World| {
                world.stage == Stage::Answered && (world.was_asked_again || !chain.keeps_keys)
            }),
            Property::sometimes("answered after a proof", |_, world: &World| {
                world.stage == Stage::Answered && world.generation == 1
            }),
        ]
    }
}

#[track_caller]
fn check(keeps_keys: bool, states: usize) {
    let checker = Chain { keeps_keys, mutant: None }.checker();
    let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    checker.assert_properties();
    // Fewer were a model in which something cannot happen any more.
    assert!(checker.unique_state_count() >= states, "{}", checker.unique_state_count());
}

#[track_caller]
fn breaks(mutant: Mutant, keeps_keys: bool) {
    let checker = Chain { keeps_keys, mutant: Some(mutant) }.checker();
    let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.discovery("no second run").is_some(), "{mutant:?} breaks nothing");
}

#[test]
fn whatever_is_lost_on_the_way_nothing_runs_twice() {
    check(true, 128);
}

#[test]
fn a_server_that_ignores_keys_is_asked_once() {
    check(false, 24);
}

#[test]
fn not_run_after_a_second_attempt_runs_twice() {
    breaks(Mutant::NotRunAfterSecondAsk, true);
}

#[test]
fn a_proof_without_the_echo_runs_twice() {
    breaks(Mutant::ProofWithoutEcho, true);
}

#[test]
fn asking_a_server_again_that_ignores_keys_runs_twice() {
    breaks(Mutant::AsksWhoIgnoresKeys, false);
}

#[test]
fn another_key_for_a_later_attempt_runs_twice() {
    breaks(Mutant::AsksUnderAnotherKey, true);
}

#[test]
fn a_proof_of_a_node_that_drains_runs_twice() {
    breaks(Mutant::DrainingIsProof, true);
}
