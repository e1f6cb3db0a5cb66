//! The tasks that claim, send and conclude, as the conduct does it, one await at a time: between any
//! two of them everybody else has a turn, and a task may never have another one.

use std::sync::Arc;

use holdfast_domain::operation::{
    Claim, Finish, Operation, Phase, ProviderRefusal, Receipt, SealedResult, Snapshot, Transition,
};
use holdfast_domain::ports::CommitError;
use holdfast_domain::{Event, OperationId, decide};
use holdfast_testkit::sample;

use super::world::{Over, World};

/// A task of some process.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) claim: Claim,
    pub(super) stage: Stage,
    /// Whether a byte of it has reached a provider.
    pub(super) has_sent: bool,
}

/// Where a task is.
#[derive(Debug)]
pub(super) enum Stage {
    /// Its claim is under way.
    Claiming { change: Arc<Transition>, before: Option<Box<Operation>>, was_lost: bool },
    /// The claim was committed: it may send.
    Owning(Box<Operation>),
    /// It sends no more, and wants the store to know how it ended.
    Concluding { row: Box<Operation>, ending: Event, pending: Option<Arc<Transition>> },
    /// It has returned, or was lost.
    Gone,
}

impl Task {
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.stage, Stage::Gone)
    }

    fn id(&self) -> OperationId {
        OperationId::of(self.claim.api_key, self.claim.request_key)
    }
}

impl World {
    /// Some task goes on to its next await, or panics.
    pub(super) async fn advance_task(&mut self) {
        let busy = self.tasks.iter().enumerate().filter(|(_, task)| !task.is_gone());
        let busy: Vec<_> = busy.map(|(n, _)| n).collect();
        if let Some(n) = busy.get(self.at(busy.len().max(1))).copied() {
            let task = &self.tasks[n];
            // A task whose commit is uncertain is followed to its verdict.
            let may_stop =
                matches!(task.stage, Stage::Owning(_) | Stage::Concluding { pending: None, .. });
            self.say(&format!("{}: {} goes on", task.id(), task.claim.owner.claim));
            if may_stop && self.one_in(12) {
                self.tasks[n].stage = Stage::Gone;
                self.note("it stops".to_owned());
                return;
            }
            self.advance(n).await;
        }
    }

    pub(super) async fn advance(&mut self, n: usize) {
        let stage = std::mem::replace(&mut self.tasks[n].stage, Stage::Gone);
        self.tasks[n].stage = match stage {
            Stage::Claiming { change, before, was_lost } => {
                self.offer_claim(n, change, before, was_lost).await
            }
            Stage::Owning(row) => self.send(n, row),
            Stage::Concluding { row, ending, pending } => {
                self.conclude(n, row, ending, pending).await
            }
            Stage::Gone => Stage::Gone,
        };
    }

    async fn offer_claim(
        &mut self,
        n: usize,
        change: Arc<Transition>,
        before: Option<Box<Operation>>,
        was_lost: bool,
    ) -> Stage {
        match self.offer(&change).await {
            Ok(receipt) => {
                let row = applied(&change, before.as_deref(), receipt).unwrap();
                Stage::Owning(Box::new(row))
            }
            Err(CommitError::Uncertain(_)) => Stage::Claiming { change, before, was_lost: true },
            Err(CommitError::Unavailable(_) | CommitError::Overloaded) if was_lost => {
                Stage::Claiming { change, before, was_lost }
            }
            Err(CommitError::Conflict) => match self.mine(n).await {
                Some(row) => {
                    self.note("found its lost claim".to_owned());
                    Stage::Owning(Box::new(row))
                }
                None => Stage::Gone,
            },
            Err(
                CommitError::InsufficientFunds
                | CommitError::FundsHeld { .. }
                | CommitError::LimitsEdited
                | CommitError::LimitReached(_)
                | CommitError::Collision
                | CommitError::TooLarge
                | CommitError::Unavailable(_)
                | CommitError::Overloaded,
            ) => Stage::Gone,
        }
    }

    /// Calls a provider, and the next one after proof that the first did not run it.
    fn send(&mut self, n: usize, row: Box<Operation>) -> Stage {
        let claim = row.owner.claim;
        let attempts = sample::attempts();
        let (input, output) = (self.dice.roll(120), self.dice.roll(60));
        let asked = self.journal.operation(row.id);
        let asked = asked.is_some_and(|it| it.owner.claim == claim && it.cancel_asked);
        let outcome = if asked && self.one_in(2) {
            self.note("cut short".to_owned());
            // Before it sends, with nothing received, with something.
            self.pick(&[9, 5, 0])
        } else {
            self.dice.roll(10)
        };
        let task = &mut self.tasks[n];
        let ghost = self.ghosts.entry(row.id).or_default();
        if outcome == 9 {
            // It gives up before it sends: a drain, or no route.
            let ending = Event::NotRun { claim, attempts: [].into() };
            return Stage::Concluding { row, ending, pending: None };
        }
        task.has_sent = true;
        ghost.is_mixed_up |= !row.binding.is_same_request(&task.claim.binding);
        let ending = match outcome {
            0..4 => {
                ghost.runs += 1;
                let metered = sample::metered(input, output);
                ghost.metered.push(metered);
                let result = sample::result(&format!("the answer of {claim}"));
                Event::Finish(Finish { claim, metered, result, attempts })
            }
            4 => {
                let refusal = ProviderRefusal::ContextLength;
                let result = sample::result(&format!("the refusal of {claim}"));
                Event::Refuse { claim, refusal, result, attempts }
            }
            5 => {
                ghost.runs += 1;
                Event::GiveUp { claim, attempts }
            }
            6 => {
                self.note("next route".to_owned());
                return Stage::Owning(row);
            }
            _ => Event::NotRun { claim, attempts },
        };
        if row.generation > 1 && ghost.runs == 1 {
            self.note("ran after a reopening".to_owned());
        }
        Stage::Concluding { row, ending, pending: None }
    }

    async fn conclude(
        &mut self,
        n: usize,
        row: Box<Operation>,
        ending: Event,
        pending: Option<Arc<Transition>>,
    ) -> Stage {
        let was_lost = pending.is_some();
        let change = match pending {
            Some(change) => change,
            None => {
                let now = row.admitted_at;
                let operation = Some(row.as_ref().clone());
                let over = Snapshot { operation, result: None, lease: None, now };
                Arc::new(decide(&over, ending.clone()).unwrap())
            }
        };
        match self.offer(&change).await {
            Ok(receipt) => {
                let after = applied(&change, Some(&*row), receipt).unwrap();
                self.tell(after, content(&change));
                Stage::Gone
            }
            Err(CommitError::Uncertain(_)) => {
                Stage::Concluding { row, ending, pending: Some(change) }
            }
            Err(CommitError::Unavailable(_) | CommitError::Overloaded) => {
                Stage::Concluding { row, ending, pending: was_lost.then_some(change) }
            }
            Err(CommitError::Conflict) => match self.mine(n).await {
                Some(row) => Stage::Concluding { row: Box::new(row), ending, pending: None },
                None => {
                    self.tell_what_stands(n, &ending).await;
                    Stage::Gone
                }
            },
            // The settling half is refused: the result is kept without it.
            Err(
                CommitError::InsufficientFunds
                | CommitError::FundsHeld { .. }
                | CommitError::LimitsEdited
                | CommitError::LimitReached(_)
                | CommitError::Collision
                | CommitError::TooLarge,
            ) => Stage::Concluding { row, ending: unsettled(ending), pending: None },
        }
    }

    /// The row, where this task owns it.
    async fn mine(&mut self, n: usize) -> Option<Operation> {
        let (id, claim) = (self.tasks[n].id(), self.tasks[n].claim.owner.claim);
        let row = self.snapshot(id, Over::Row).await.operation?;
        (row.owner.claim == claim && row.phase == Phase::Leased).then_some(row)
    }

    /// An owner that came too late tells what the row says, not what it has itself.
    async fn tell_what_stands(&mut self, n: usize, ending: &Event) {
        let (id, claim) = (self.tasks[n].id(), self.tasks[n].claim.owner.claim);
        let Snapshot { operation, result, .. } = self.snapshot(id, Over::Row).await;
        let row = operation.unwrap();
        let is_kept = row.owner.claim == claim && row.phase.usage().is_some();
        if matches!(ending, Event::Finish(_) | Event::Record(_)) && !is_kept {
            self.note("result came too late".to_owned());
        }
        self.tell(row, result);
    }

    fn tell(&mut self, row: Operation, result: Option<SealedResult>) {
        if row.phase.finished_at().is_some() {
            self.ghosts.entry(row.id).or_default().told.push((row.phase, result));
        }
    }
}

fn applied(change: &Transition, before: Option<&Operation>, receipt: Receipt) -> Option<Operation> {
    change.apply(before, receipt)
}

fn content(change: &Transition) -> Option<SealedResult> {
    change.result().cloned()
}

fn unsettled(ending: Event) -> Event {
    match ending {
        Event::Finish(finish) => Event::Record(finish),
        ending @ (Event::Claim(_)
        | Event::Record(_)
        | Event::Settle
        | Event::AskCancel
        | Event::NotRun { .. }
        | Event::Refuse { .. }
        | Event::GiveUp { .. }
        | Event::Reap { .. }
        | Event::Disown(_)) => ending,
    }
}
