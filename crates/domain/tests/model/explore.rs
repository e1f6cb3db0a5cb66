//! The model: every step that anything can take in a world. Tasks are in [`crate::tasks`], the store
//! in [`crate::store`]; here is who may do what when, and what happens around the tasks.

use holdfast_domain::operation::{Disown, SendStatus};
use holdfast_domain::{ClaimId, Event, Refusal, Snapshot, Transition};
use stateright::{Model, Property};

use crate::configuration::{Configuration, Guarantee, May, Spec};
use crate::invariants::{INVARIANTS, Invariant};
use crate::mutants::{Mutant, release};
use crate::rows::{GRACE, Rows};
use crate::tasks::{died, panicked};
use crate::world::{
    Ghost, Health, Hold, INSTANTS, Lease, MINUTES, NodeRow, OPERATIONS, PROCESSES, Process, Row,
    Run, Stage, Stand, TASKS, Task, Telling, Wallet, World,
};

/// A configuration to be explored, as it is or with something broken on purpose.
pub(crate) struct Explorer {
    pub(crate) configuration: Configuration,
    pub(crate) mutants: Vec<Mutant>,
    pub(crate) rows: Rows,
    /// What every state keeps.
    pub(crate) kept: Vec<Invariant>,
    /// What some state has to be.
    pub(crate) reached: Vec<Invariant>,
}

/// One step. Tasks, processes, operations and names go by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// A task offers what it has to offer, and hears the verdict.
    Offer(u8),
    /// A task offers it, and the answer is lost.
    Lose(u8),
    /// A lost offer lands, or is refused unheard.
    Land(u8),
    /// A task reads its row and judges its claim anew.
    Look(u8),
    Send(u8, Run),
    /// A task ends without sending (again).
    Refrain(u8),
    /// A task panics before it sends; it is caught.
    Panic(u8),
    Answered(u8, Outcome),
    /// A task that finds that its caller asked to cancel cuts its call short.
    Cut(u8, AnswerPart),
    /// A task dies.
    Die(u8),
    /// A process dies.
    Crash(u8),
    /// A process takes its name.
    Enter(u8),
    Renew(u8),
    /// A process gives its name back.
    Leave(u8),
    /// A name's lease goes on: it ends, then the grace passes.
    Expire(u8),
    PassDeadline(u8),
    Reap(u8),
    Disown(u8),
    Settle(u8),
    AskCancel(u8),
    Purge(u8),
    Break,
    Mend,
    /// The clock goes on.
    Tick,
    /// What only a mutant does: a task sends before it owns anything.
    SendEarly(u8),
    /// What only a mutant does: a hold ends by itself.
    TimeOutHold(u8),
    /// What only a mutant does: the provider is asked for a record of the run.
    AskProvider(u8),
}

/// How a provider's answer ends an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Finished,
    NotRun,
    Refused,
    Unknown,
}

/// What had arrived of an answer as its call was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerPart {
    Nothing,
    Something,
}

impl Explorer {
    pub(crate) fn new(configuration: Configuration) -> Self {
        let rows = Rows::new(&configuration);
        let is_promised =
            |(name, _): &&Invariant| configuration.guarantee == Guarantee::OneRun || *name != "I1";
        let kept = INVARIANTS.iter().filter(is_promised).copied().collect();
        Self { configuration, mutants: Vec::new(), rows, kept, reached: Vec::new() }
    }

    pub(crate) fn has(&self, mutant: Mutant) -> bool {
        self.mutants.contains(&mutant)
    }

    pub(crate) fn spec(&self, task: u8) -> &Spec {
        &self.configuration.tasks[usize::from(task)]
    }

    pub(crate) fn snapshot(&self, world: &World, operation: u8, row: Option<&Row>) -> Snapshot {
        self.rows.snapshot(world, &self.configuration.processes, operation, row)
    }

    /// The production's `decide`, unless it is to be broken.
    pub(crate) fn decide(&self, snapshot: &Snapshot, event: Event) -> Result<Transition, Refusal> {
        if self.mutants.is_empty() {
            holdfast_domain::decide(snapshot, event)
        } else {
            self.decide_with_mutants(snapshot.clone(), event)
        }
    }

    /// The row of a process's node name.
    pub(crate) fn node_row<'a>(
        &self,
        world: &'a mut World,
        process: u8,
    ) -> &'a mut Option<NodeRow> {
        let name = self.configuration.processes[usize::from(process)];
        &mut world.leases[usize::from(name)]
    }

    /// Whether a row's process has its name and a live lease.
    pub(crate) fn is_leased(&self, world: &World, row: &Row) -> bool {
        let name = self.configuration.processes[usize::from(row.process)];
        let live = NodeRow { process: row.process, lease: Lease::Live };
        world.leases[usize::from(name)] == Some(live)
    }

    /// T6: the deadline of a row may pass at any moment, and reaping follows the production's rule.
    pub(crate) fn reap(&self, world: &mut World, operation: u8) -> Option<()> {
        self.act(world, operation, Event::Reap { orphan_grace: Some(GRACE) })
    }

    /// T2b.
    pub(crate) fn settle(&self, world: &mut World, operation: u8) -> Option<()> {
        let row = world.row(operation)?;
        if self.has(Mutant::SettleForDeadNodesOnly) && self.is_leased(world, &row) {
            return None;
        }
        self.act(world, operation, Event::Settle)
    }

    /// A live process gives up a claim that is leased to it and that no task of it runs. It registers
    /// a claim before it offers it, so one look is enough here: looking twice is a redundant guard.
    pub(crate) fn disown(&self, world: &mut World, operation: u8) -> Option<()> {
        let row = world.row(operation)?;
        let by = if self.has(Mutant::DisownByName) {
            (*self.node_row(world, row.process))?.process
        } else {
            row.process
        };
        if !world.is_up(by) || self.has(Mutant::NoDisown) {
            return None;
        }
        let sent = match world.stage(row.claim) {
            Stage::Dead { sent: false } => SendStatus::Never,
            Stage::Dead { sent: true } | Stage::Done { .. } => SendStatus::Perhaps,
            Stage::Gone if self.has(Mutant::DisownByName) => SendStatus::Never,
            Stage::Gone
            | Stage::Claiming(_)
            | Stage::Looking
            | Stage::Owning(_)
            | Stage::Calling(..)
            | Stage::Concluding(..) => return None,
        };
        let claim = ClaimId::from_u128(u128::from(row.claim));
        self.act(world, operation, Event::Disown(Disown { claim, sent }))
    }

    fn crash(&self, world: &mut World, process: u8) {
        world.processes[usize::from(process)] = Process::Down;
        for task in self.configuration.numbers() {
            let ended = matches!(world.stage(task), Stage::Done { .. });
            if self.spec(task).process == process && !ended {
                *world.task(task) = Task::at(Stage::Gone);
            }
        }
    }

    fn enter(&self, world: &mut World, process: u8) {
        world.processes[usize::from(process)] = Process::Up;
        *self.node_row(world, process) = Some(NodeRow { process, lease: Lease::Live });
    }

    /// Whether any of this may happen to a row is asked of `decide`.
    fn operation_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let may = |may| self.configuration.may(may);
        for operation in 0..self.configuration.n_operations() {
            let Some(row) = world.row(operation) else { continue };
            actions.extend([
                Action::Reap(operation),
                Action::Disown(operation),
                Action::Settle(operation),
            ]);
            if may(May::Cancel) && !row.cancel_asked {
                actions.push(Action::AskCancel(operation));
            }
            let is_leased = row.stand == Stand::Leased;
            if may(May::PassDeadline) && is_leased && !row.overdue {
                actions.push(Action::PassDeadline(operation));
            }
            let is_ended = matches!(row.stand, Stand::Completed(_) | Stand::Refused);
            if may(May::Purge) && is_ended && row.content.is_some() {
                actions.push(Action::Purge(operation));
            }
        }
    }

    fn process_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let may = |may| self.configuration.may(may);
        for (process, name) in (0..).zip(&self.configuration.processes) {
            let row = world.leases[usize::from(*name)];
            let is_taken =
                row.is_some_and(|row| row.lease == Lease::Live && world.is_up(row.process));
            let has_name = row.is_some_and(|row| row.process == process);
            match world.processes[usize::from(process)] {
                Process::Waiting => {
                    if !is_taken {
                        actions.push(Action::Enter(process));
                    }
                }
                Process::Up => {
                    if may(May::Crash) {
                        actions.push(Action::Crash(process));
                    }
                    if may(May::Expire) && has_name {
                        actions.push(Action::Renew(process));
                    }
                    if may(May::Leave) && has_name {
                        actions.push(Action::Leave(process));
                    }
                }
                Process::Down => {}
            }
            if may(May::Expire) && has_name {
                actions.push(Action::Expire(*name));
            }
        }
        if may(May::Break) {
            match world.wallet.health {
                Health::Well => actions.push(Action::Break),
                Health::Broken => actions.push(Action::Mend),
                Health::Mended => {}
            }
        }
    }
}

impl Model for Explorer {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let mut leases = [None; 2];
        let mut processes = [Process::Waiting; PROCESSES];
        for (process, name) in (0..).zip(&self.configuration.processes) {
            let row = &mut leases[usize::from(*name)];
            if row.is_none() {
                *row = Some(NodeRow { process, lease: Lease::Live });
                processes[usize::from(process)] = Process::Up;
            }
        }
        let mut tasks = [Task::at(Stage::Done { late: false }); TASKS];
        for task in self.configuration.numbers() {
            tasks[usize::from(task)] = Task::at(Stage::Claiming(None));
        }
        let wallet = Wallet {
            available: i16::from(self.configuration.funds),
            held: 0,
            running: 0,
            spend: 0,
            requests: [0; MINUTES],
            tokens: [0; MINUTES],
            health: Health::Well,
        };
        let ghost = Ghost {
            runs: 0,
            provider_knows: false,
            hold: Hold::None,
            captured: 0,
            usages: 0,
            settlements: 0,
            lines: 0,
            generation: 0,
            bound: None,
            told: [None; 2],
            telling: Telling::Consistent,
            requests: [0; MINUTES],
            tokens: [0; MINUTES],
            runs_in: [0; MINUTES],
            hasty: false,
        };
        let (rows, limbo, ghosts) = ([None; OPERATIONS], [None; TASKS], [ghost; OPERATIONS]);
        vec![World { rows, tasks, limbo, leases, processes, wallet, ghosts, clock: 0 }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for task in self.configuration.numbers() {
            self.task_actions(world, task, actions);
        }
        self.operation_actions(world, actions);
        self.process_actions(world, actions);
        let is_last = usize::from(world.clock) + 1 == INSTANTS.len();
        if self.configuration.may(May::Tick) && !is_last {
            actions.push(Action::Tick);
        }
        self.forbidden_actions(world, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = *world;
        let to = &mut next;
        match action {
            Action::Offer(task) => self.offer(to, task)?,
            Action::Lose(task) => self.lose(to, task)?,
            Action::Land(task) => self.land(to, task)?,
            Action::Look(task) => self.look(to, task)?,
            Action::Send(task, run) => self.send(to, task, run)?,
            Action::Refrain(task) => self.refrain(to, task)?,
            Action::Panic(task) => panicked(to, task)?,
            Action::Answered(task, outcome) => self.answered(to, task, outcome)?,
            Action::Cut(task, received) => self.cut(to, task, received)?,
            Action::Die(task) => died(to, task),
            Action::Crash(process) => self.crash(to, process),
            Action::Enter(process) | Action::Renew(process) => self.enter(to, process),
            Action::Leave(process) => *self.node_row(to, process) = None,
            Action::Expire(name) => {
                let row = to.leases[usize::from(name)].as_mut()?;
                row.lease = row.lease.later();
            }
            Action::PassDeadline(operation) => {
                to.rows[usize::from(operation)].as_mut()?.overdue = true;
            }
            Action::Reap(operation) => self.reap(to, operation)?,
            Action::Disown(operation) => self.disown(to, operation)?,
            Action::Settle(operation) => self.settle(to, operation)?,
            Action::AskCancel(operation) => self.act(to, operation, Event::AskCancel)?,
            Action::Purge(operation) => to.rows[usize::from(operation)].as_mut()?.content = None,
            Action::Break => to.wallet.health = Health::Broken,
            Action::Mend => to.wallet.health = Health::Mended,
            Action::Tick => to.clock += 1,
            Action::SendEarly(task) => self.run(to, task, Run::Runs),
            Action::TimeOutHold(operation) => release(to, operation),
            Action::AskProvider(operation) => self.ask_provider(to, operation)?,
        }
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let kept = self.kept.iter().map(|(name, holds)| Property::always(name, *holds));
        let reached = self.reached.iter();
        let reached = reached.map(|(name, holds)| Property::sometimes(name, *holds));
        kept.chain(reached).collect()
    }
}
