//! Rules broken on purpose. Each must break an invariant, or else another rule covers it, and then
//! both together must: a checker that finds nothing here would find nothing anywhere.

use holdfast_domain::operation::{Disown, Effect, Finish};
use holdfast_domain::{ClaimId, Event, Phase, Refusal, Snapshot, Timestamp, Transition, decide};

use crate::explore::{Action, Explorer};
use crate::rows::NOW;
use crate::world::{Hold, Offer, Row, Stage, Stand, Word, World};

/// A broken rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    // What a task does.
    SendsBeforeCommit,
    OwnsByNodeAndNumber,
    RedispatchesAfterLostLease,
    NextRouteAfterUnknown,
    NextRouteAfterUncertainNotRun,
    NotRunAfterUnknown,
    LoserReleasesSharedHold,
    AnswersWhileUncertain,
    LoserAnswersItsResult,
    /// The loop offers its word again over whatever row it meets. `decide` refuses it all the same.
    LoopDoesNotLook,
    // What a process does.
    ReopensWithoutProviderRecord,
    NoDisown,
    /// A process takes the claims of its name for its own, and what it has forgotten for not sent.
    DisownByName,
    SettleForDeadNodesOnly,
    // What `decide` judges.
    FinishWithoutPhase,
    NotRunWithoutPhase,
    GiveUpWithoutPhase,
    SettleWithoutPhase,
    FinishWithoutClaim,
    NotRunWithoutClaim,
    GiveUpWithoutClaim,
    ReapReadAsNotRun,
    NotRunForgetsTheCancel,
    /// The cancel of an open operation gives back what T3 gave back.
    CancelGivesBackAgain,
    /// It is judged over the open row, and written over the row of the next run.
    CancelOverwritesTheRun,
    ReapFromRecorded,
    NoDeadline,
    ReopenKeepsClaim,
    ClaimMayRepeat,
    GiveUpGivesBack,
    /// The request of a later generation, too.
    NotRunGivesBackAgain,
    ReopenAtOnce,
    // What the store enforces.
    HoldTimesOut,
    PurgedRowIgnoresClaims,
    StoreIgnoresVersions,
    StoreIgnoresBounds,
    StoreIgnoresPermanentIds,
}

impl Explorer {
    pub(crate) fn with(mut self, mutants: &[Mutant]) -> Self {
        self.mutants = mutants.to_vec();
        self
    }

    /// `decide` with some of its guards removed: it is shown what they would have wanted to see.
    pub(crate) fn decide_with_mutants(
        &self,
        mut snapshot: Snapshot,
        event: Event,
    ) -> Result<Transition, Refusal> {
        let Some(operation) = &mut snapshot.operation else { return decide(&snapshot, event) };
        let event = self.without_claim(event, operation.owner.claim);
        let is_own = speaker(&event) == Some(operation.owner.claim);
        let blind = match event {
            Event::Finish(_) | Event::Record(_) => self.has(Mutant::FinishWithoutPhase) && is_own,
            Event::NotRun { .. } => self.has(Mutant::NotRunWithoutPhase) && is_own,
            Event::GiveUp { .. } => self.has(Mutant::GiveUpWithoutPhase) && is_own,
            Event::Reap { .. } => {
                let recorded = matches!(operation.phase, Phase::Recorded(_));
                self.has(Mutant::ReapFromRecorded) && recorded
            }
            Event::Claim(_)
            | Event::Settle
            | Event::AskCancel
            | Event::Refuse { .. }
            | Event::Disown(_) => false,
        };
        if blind {
            operation.phase = Phase::Leased;
        }
        if let (Event::Settle, Phase::Completed { usage, .. }) = (&event, &operation.phase)
            && self.has(Mutant::SettleWithoutPhase)
        {
            operation.phase = Phase::Recorded(usage.clone());
        }
        let is_rerun = operation.generation > 1 && operation.phase == Phase::Leased;
        if matches!(event, Event::AskCancel) && is_rerun && self.has(Mutant::CancelOverwritesTheRun)
        {
            operation.phase = Phase::Open;
        }
        if matches!(event, Event::Claim(_)) && self.has(Mutant::ClaimMayRepeat) {
            operation.owner.claim = ClaimId::from_u128(u128::MAX);
        }
        let is_reap = matches!(event, Event::Reap { .. });
        if is_reap && self.has(Mutant::NoDeadline) {
            operation.deadline = NOW;
        }
        if self.has(Mutant::NotRunForgetsTheCancel) && matches!(event, Event::NotRun { .. }) {
            operation.cancel_asked = false;
        }
        if matches!(event, Event::Claim(_)) && self.has(Mutant::ReopenAtOnce) {
            operation.admitted_at = Timestamp::from_micros(0);
        }
        let gives_back = match event {
            Event::GiveUp { .. } => self.has(Mutant::GiveUpGivesBack),
            Event::NotRun { .. } => self.has(Mutant::NotRunGivesBackAgain),
            Event::AskCancel => {
                self.has(Mutant::CancelGivesBackAgain) && operation.phase == Phase::Open
            }
            Event::Claim(_)
            | Event::Finish(_)
            | Event::Record(_)
            | Event::Settle
            | Event::Refuse { .. }
            | Event::Reap { .. }
            | Event::Disown(_) => false,
        };
        let all = operation.reserved.not_run_moves(operation.hold, 1);
        let mut transition = decide(&snapshot, event)?;
        if gives_back {
            transition.counters = all;
        }
        if is_reap && self.has(Mutant::ReapReadAsNotRun) {
            transition.effect = Effect::Open { attempts: [].into() };
        }
        Ok(transition)
    }

    /// Has an event speak for the row's claim, whoever says it.
    fn without_claim(&self, event: Event, claim: ClaimId) -> Event {
        match event {
            Event::Finish(finish) if self.has(Mutant::FinishWithoutClaim) => {
                Event::Finish(Finish { claim, ..finish })
            }
            Event::Record(finish) if self.has(Mutant::FinishWithoutClaim) => {
                Event::Record(Finish { claim, ..finish })
            }
            Event::NotRun { attempts, claim: _ } if self.has(Mutant::NotRunWithoutClaim) => {
                Event::NotRun { claim, attempts }
            }
            Event::GiveUp { attempts, claim: _ } if self.has(Mutant::GiveUpWithoutClaim) => {
                Event::GiveUp { claim, attempts }
            }
            event @ (Event::Claim(_)
            | Event::Finish(_)
            | Event::Record(_)
            | Event::Settle
            | Event::AskCancel
            | Event::NotRun { .. }
            | Event::Refuse { .. }
            | Event::GiveUp { .. }
            | Event::Reap { .. }
            | Event::Disown(_)) => event,
        }
    }

    /// Whether a task takes a leased row for its own.
    pub(crate) fn is_own(&self, row: &Row, task: u8) -> bool {
        // Two tasks of one process that offer a claim for the same generation are one owner to it.
        let by_node = row.process == self.spec(task).process;
        row.claim == task || (self.has(Mutant::OwnsByNodeAndNumber) && by_node)
    }

    /// A task takes a row over whose owner's lease is lost, and means to run it again.
    pub(crate) fn redispatched(&self, world: &mut World, task: u8, row: Row) -> Option<Stage> {
        if !self.has(Mutant::RedispatchesAfterLostLease) || self.is_leased(world, &row) {
            return None;
        }
        let process = self.spec(task).process;
        let row = Row { claim: task, process, version: row.version + 1, ..row };
        world.rows[usize::from(self.spec(task).operation)] = Some(row);
        Some(Stage::Owning(row.remembered()))
    }

    /// What a task does wrong when the answer to an offer is lost.
    pub(crate) fn lost_with_mutants(&self, world: &mut World, task: u8, offer: &Offer) {
        match (offer.word, offer.seen) {
            (Word::Finish, _) if self.has(Mutant::AnswersWhileUncertain) => {
                self.tell_own_result(world, task);
            }
            (Word::NotRun, Some(row)) if self.has(Mutant::NextRouteAfterUncertainNotRun) => {
                world.task(task).stage = Stage::Owning(row);
            }
            (_, _) => {}
        }
    }

    /// What a task does wrong when another claim was first.
    pub(crate) fn loses_with_mutants(&self, world: &mut World, task: u8) {
        if self.has(Mutant::LoserReleasesSharedHold) {
            release(world, self.spec(task).operation);
        }
    }

    pub(crate) fn forbidden_actions(&self, world: &World, actions: &mut Vec<Action>) {
        if self.has(Mutant::SendsBeforeCommit) {
            let early = |task: &u8| {
                let sent = world.tasks[usize::from(*task)].sent;
                matches!(world.stage(*task), Stage::Claiming(_)) && !sent
            };
            let tasks = self.configuration.numbers().filter(early);
            actions.extend(tasks.map(Action::SendEarly));
        }
        for operation in 0..self.configuration.n_operations() {
            if self.has(Mutant::HoldTimesOut) {
                actions.push(Action::TimeOutHold(operation));
            }
            if self.has(Mutant::ReopensWithoutProviderRecord) {
                actions.push(Action::AskProvider(operation));
            }
        }
    }

    /// Asks the provider about an orphan, and believes it when it has no record yet.
    pub(crate) fn ask_provider(&self, world: &mut World, operation: u8) -> Option<()> {
        let row = world.row(operation).filter(|row| row.stand == Stand::Leased)?;
        if self.is_leased(world, &row) || world.ghost(operation).provider_knows {
            return None;
        }
        let claim = ClaimId::from_u128(u128::from(row.claim));
        self.act(world, operation, Event::NotRun { claim, attempts: [].into() })
    }
}

/// Whose word an event is.
fn speaker(event: &Event) -> Option<ClaimId> {
    match event {
        Event::Finish(Finish { claim, .. })
        | Event::Record(Finish { claim, .. })
        | Event::NotRun { claim, .. }
        | Event::Refuse { claim, .. }
        | Event::GiveUp { claim, .. }
        | Event::Disown(Disown { claim, .. }) => Some(*claim),
        Event::Claim(_) | Event::Settle | Event::AskCancel | Event::Reap { .. } => None,
    }
}

/// Gives an active hold back without asking the operation.
pub(crate) fn release(world: &mut World, operation: u8) {
    if let Hold::Active(hold) = world.ghost(operation).hold {
        world.wallet.available += i16::from(hold);
        world.wallet.held -= i16::from(hold);
        world.ghost(operation).hold = Hold::Released;
    }
}
