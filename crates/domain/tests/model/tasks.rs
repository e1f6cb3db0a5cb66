//! The steps of a task: the loop of [`holdfast_domain::conduct`], cut at every await. What a verdict
//! makes it do is mirrored here; whether an event may happen is asked of `decide` alone.

use holdfast_domain::Refusal;

use crate::configuration::{Guarantee, May};
use crate::explore::{Action, AnswerPart, Explorer, Outcome};
use crate::mutants::Mutant;
use crate::store::Verdict;
use crate::world::{Answer, Offer, Row, Run, Stage, Stand, Task, Telling, Word, World, minute};

impl Explorer {
    pub(crate) fn task_actions(&self, world: &World, task: u8, actions: &mut Vec<Action>) {
        let limbo = world.limbo[usize::from(task)];
        if limbo.is_some() {
            actions.push(Action::Land(task));
        }
        if !world.is_up(self.spec(task).process) {
            return;
        }
        let may = |may| self.configuration.may(may);
        let stage = world.stage(task);
        let owns = match stage {
            Stage::Claiming(_) | Stage::Concluding(..) => {
                actions.push(Action::Offer(task));
                if may(May::LoseCommits) && limbo.is_none() {
                    actions.push(Action::Lose(task));
                }
                // A task that dies before it owns anything has done nothing.
                let is_mine = self.row_of(world, task).is_some_and(|row| row.claim == task);
                is_mine || limbo.is_some()
            }
            Stage::Looking => {
                actions.push(Action::Look(task));
                false
            }
            Stage::Owning(_) => {
                if world.tasks[usize::from(task)].routes < self.configuration.routes {
                    actions.extend([Action::Send(task, Run::Runs), Action::Send(task, Run::Never)]);
                }
                actions.push(Action::Refrain(task));
                if may(May::Die) {
                    actions.push(Action::Panic(task));
                }
                true
            }
            Stage::Calling(_, run) => {
                self.answers(task, run, actions);
                if may(May::Cancel) {
                    actions.push(Action::Cut(task, AnswerPart::Nothing));
                    actions.push(Action::Cut(task, AnswerPart::Something));
                }
                true
            }
            Stage::Done { .. } | Stage::Dead { .. } | Stage::Gone => false,
        };
        if may(May::Die) && owns {
            actions.push(Action::Die(task));
        }
    }

    fn answers(&self, task: u8, run: Run, actions: &mut Vec<Action>) {
        actions.push(Action::Answered(task, Outcome::Unknown));
        match run {
            Run::Runs => actions.push(Action::Answered(task, Outcome::Finished)),
            Run::Never => {
                actions.push(Action::Answered(task, Outcome::NotRun));
                if self.configuration.may(May::Refuse) {
                    actions.push(Action::Answered(task, Outcome::Refused));
                }
            }
        }
    }

    pub(crate) fn land(&self, world: &mut World, task: u8) -> Option<()> {
        let offer = world.limbo[usize::from(task)].take()?;
        // Nobody hears the verdict.
        self.take(world, task, &offer);
        Some(())
    }

    pub(crate) fn send(&self, world: &mut World, task: u8, run: Run) -> Option<()> {
        let Stage::Owning(row) = world.stage(task) else { return None };
        self.run(world, task, run);
        world.task(task).stage = Stage::Calling(row, run);
        Some(())
    }

    pub(crate) fn refrain(&self, world: &mut World, task: u8) -> Option<()> {
        let Stage::Owning(row) = world.stage(task) else { return None };
        // Under `one-charge` an earlier attempt may have run: then nothing is proven.
        let unknown = world.task(task).unknown && !self.has(Mutant::NotRunAfterUnknown);
        conclude(world, task, row, if unknown { Word::GiveUp } else { Word::NotRun });
        Some(())
    }

    /// The request leaves the process. What is sent may run from now on.
    pub(crate) fn run(&self, world: &mut World, task: u8, run: Run) {
        let admitted = self.row_of(world, task).map(|row| minute(row.admitted));
        let is_limited = self.configuration.requests_per_minute.is_some();
        let ghost = world.ghost(self.spec(task).operation);
        match run {
            Run::Runs => {
                ghost.runs = 3.min(ghost.runs + 1);
                if let Some(minute) = admitted.filter(|_minute| is_limited) {
                    ghost.runs_in[minute] += 1;
                }
            }
            Run::Never => {}
        }
        world.task(task).sent = true;
    }

    pub(crate) fn answered(&self, world: &mut World, task: u8, outcome: Outcome) -> Option<()> {
        let Stage::Calling(row, run) = world.stage(task) else { return None };
        let operation = self.spec(task).operation;
        world.ghost(operation).provider_knows |= run == Run::Runs;
        let next_route = |world: &mut World, unknown| {
            let task = world.task(task);
            task.routes += 1;
            task.unknown |= unknown;
            task.stage = Stage::Owning(row);
        };
        match outcome {
            Outcome::Finished => conclude(world, task, row, Word::Finish),
            Outcome::Refused => conclude(world, task, row, Word::Refuse),
            Outcome::NotRun => next_route(world, false),
            Outcome::Unknown => {
                let goes_on = self.configuration.guarantee == Guarantee::OneCharge
                    || self.has(Mutant::NextRouteAfterUnknown);
                if goes_on {
                    next_route(world, true);
                } else if self.has(Mutant::NotRunAfterUnknown) {
                    conclude(world, task, row, Word::NotRun);
                } else {
                    conclude(world, task, row, Word::GiveUp);
                }
            }
        }
        Some(())
    }

    /// The owner sees the wish on its row. What a model has said by then was run, and is paid.
    pub(crate) fn cut(&self, world: &mut World, task: u8, received: AnswerPart) -> Option<()> {
        let Stage::Calling(row, run) = world.stage(task) else { return None };
        let stands = self.row_of(world, task)?;
        if !(self.is_own(&stands, task) && stands.cancel_asked) {
            return None;
        }
        let word = match (received, run) {
            (AnswerPart::Something, Run::Runs) => Word::Finish,
            (AnswerPart::Something, Run::Never) => return None,
            (AnswerPart::Nothing, _) => Word::GiveUp,
        };
        conclude(world, task, row, word);
        Some(())
    }

    /// A verdict is heard. By then an earlier offer, whose answer was lost, has landed or never will:
    /// the store waits for the lost transaction's locks.
    pub(crate) fn offer(&self, world: &mut World, task: u8) -> Option<()> {
        if !self.configuration.may(May::LandAfterVerdict) {
            world.limbo[usize::from(task)] = None;
        }
        let offer = offered(world.stage(task))?;
        let verdict = self.take(world, task, &offer);
        match world.stage(task) {
            Stage::Claiming(_) => self.heard_of_claim(world, task, verdict?),
            Stage::Concluding(..) => return self.heard_of_conclusion(world, task, verdict),
            Stage::Looking
            | Stage::Owning(_)
            | Stage::Calling(..)
            | Stage::Done { .. }
            | Stage::Dead { .. }
            | Stage::Gone => return None,
        }
        Some(())
    }

    pub(crate) fn lose(&self, world: &mut World, task: u8) -> Option<()> {
        let offer = offered(world.stage(task))?;
        if !self.may_land(world, task, &offer) {
            return None;
        }
        world.limbo[usize::from(task)] = Some(offer);
        self.lost_with_mutants(world, task, &offer);
        Some(())
    }

    fn heard_of_claim(&self, world: &mut World, task: u8, verdict: Verdict) {
        let sent = world.task(task).sent;
        let stage = match verdict {
            Verdict::Committed(row) if sent => Stage::Calling(row.remembered(), Run::Runs),
            Verdict::Committed(row) => Stage::Owning(row.remembered()),
            Verdict::Conflict => {
                self.loses_with_mutants(world, task);
                Stage::Looking
            }
            Verdict::Refused => Stage::Done { late: false },
        };
        world.task(task).stage = stage;
    }

    /// Reads the row and judges the claim over it; settles or reaps what stands in the way.
    pub(crate) fn look(&self, world: &mut World, task: u8) -> Option<()> {
        let operation = self.spec(task).operation;
        let row = world.row(operation)?;
        let snapshot = self.snapshot(world, operation, Some(&row));
        let claim = self.rows.event(&self.configuration, task, Word::Claim);
        let ended = Stage::Done { late: false };
        world.task(task).stage = match self.decide(&snapshot, claim) {
            Ok(_) => Stage::Claiming(Some(row.remembered())),
            Err(Refusal::Ended) => {
                self.tell(world, task, &row);
                ended
            }
            Err(Refusal::Recorded) => match self.settle(world, operation) {
                Some(()) => Stage::Looking,
                None => ended,
            },
            Err(Refusal::Leased) if self.is_own(&row, task) => Stage::Owning(row.remembered()),
            Err(Refusal::Leased) => {
                if let Some(taken) = self.redispatched(world, task, row) {
                    taken
                } else {
                    // Reaped, or still in progress: the caller waits.
                    self.reap(world, operation)?;
                    Stage::Looking
                }
            }
            Err(
                Refusal::OtherRequest
                | Refusal::ClaimUsed
                | Refusal::TooSoon
                | Refusal::LedgerRestored
                | Refusal::LeaseLost
                | Refusal::NotRunning
                | Refusal::NotOwner
                | Refusal::OwnerAlive
                | Refusal::CancelAsked
                | Refusal::Missing,
            ) => ended,
        };
        Some(())
    }

    fn heard_of_conclusion(
        &self,
        world: &mut World,
        task: u8,
        verdict: Option<Verdict>,
    ) -> Option<()> {
        let Stage::Concluding(row, word) = world.stage(task) else { return None };
        match verdict {
            Some(Verdict::Committed(written)) => {
                // What the row says, without reading it again.
                self.tell(world, task, &written);
                *world.task(task) = Task::at(Stage::Done { late: false });
            }
            Some(Verdict::Conflict) => match self.row_of(world, task) {
                Some(row) if self.goes_on(&row, task) => conclude(world, task, row, word),
                Some(_) | None => self.stand_by_row(world, task, word),
            },
            // The settling half does not go through: keep the result, settle it later.
            Some(Verdict::Refused) => match word {
                Word::Finish => conclude(world, task, row, Word::Record),
                Word::Claim | Word::Record | Word::NotRun | Word::Refuse | Word::GiveUp => {
                    return None;
                }
            },
            None => self.stand_by_row(world, task, word),
        }
        Some(())
    }

    /// The row decides; a result that it does not show came too late.
    fn stand_by_row(&self, world: &mut World, task: u8, word: Word) {
        let row = self.row_of(world, task);
        let kept = row.is_some_and(|row| row.claim == task && row.charge().is_some());
        let late = matches!(word, Word::Finish | Word::Record) && !kept;
        if late && self.has(Mutant::LoserAnswersItsResult) {
            self.tell_own_result(world, task);
        } else if let Some(row) = row {
            self.tell(world, task, &row);
        }
        *world.task(task) = Task::at(Stage::Done { late });
    }

    /// Whether the row is still one that the loop offers its word for.
    fn goes_on(&self, row: &Row, task: u8) -> bool {
        let holds = row.stand == Stand::Leased && self.is_own(row, task);
        holds || self.has(Mutant::LoopDoesNotLook)
    }

    fn row_of(&self, world: &World, task: u8) -> Option<Row> {
        world.row(self.spec(task).operation)
    }

    fn tell(&self, world: &mut World, task: u8, row: &Row) {
        let spec = self.spec(task);
        if let Some(answer) = row.answer(spec.credential) {
            world.tell(spec.operation, spec.credential, answer);
            if row.request != spec.request {
                world.ghost(spec.operation).telling = Telling::Leaked;
            }
        }
    }

    pub(crate) fn tell_own_result(&self, world: &mut World, task: u8) {
        let spec = self.spec(task);
        let charge = spec.metered.min(spec.hold);
        let answer = Answer::Result { author: task, charge };
        world.tell(spec.operation, spec.credential, answer);
    }
}

/// A task panics before it sends; it is caught, and nothing is claimed to be proven.
pub(crate) fn panicked(world: &mut World, task: u8) -> Option<()> {
    let Stage::Owning(row) = world.stage(task) else { return None };
    conclude(world, task, row, Word::GiveUp);
    Some(())
}

/// A task dies; its process remembers whether it had sent anything.
pub(crate) fn died(world: &mut World, task: u8) {
    let sent = world.task(task).sent;
    *world.task(task) = Task::at(Stage::Dead { sent });
}

/// What a task offers at this stage.
fn offered(stage: Stage) -> Option<Offer> {
    match stage {
        Stage::Claiming(seen) => Some(Offer { seen, word: Word::Claim }),
        Stage::Concluding(row, word) => Some(Offer { seen: Some(row), word }),
        Stage::Looking
        | Stage::Owning(_)
        | Stage::Calling(..)
        | Stage::Done { .. }
        | Stage::Dead { .. }
        | Stage::Gone => None,
    }
}

/// From here on a task never sends again; of its attempts only `sent` still matters.
fn conclude(world: &mut World, task: u8, row: Row, word: Word) {
    let sent = world.task(task).sent;
    let stage = Stage::Concluding(row.remembered(), word);
    *world.task(task) = Task { sent, ..Task::at(stage) };
}
