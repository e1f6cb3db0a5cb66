//! A store as the domain asks for one: it judges the version, the bounds and the permanent ids, in
//! this order, writes all or nothing, and decides nothing. It also keeps the ghosts.

use holdfast_domain::ledger::{Funds, TransferKind};
use holdfast_domain::limits::{Counter, CounterReadings};
use holdfast_domain::operation::{Disown, Effect, Operation, Receipt, SendStatus, Transition};
use holdfast_domain::{Event, Micros, Timestamp};

use crate::explore::Explorer;
use crate::mutants::Mutant;
use crate::rows::{TOKENS, content, instant, timeless};
use crate::world::{Ghost, Health, Hold, INSTANTS, MINUTES, Offer, Row, Stand, World, minute};

/// How many seconds after the admission of the generations one to three the next one may begin.
const REOPEN_WAITS: [u8; 3] = [0, 0, 2];

/// What the store says of a change.
pub(crate) enum Verdict {
    Committed(Row),
    Conflict,
    /// The wallet, a counter or a permanent id forbids it.
    Refused,
}

impl Explorer {
    /// Judges an event over the row as it stands and commits what follows: what a reconciler, a
    /// heartbeat or a look-up does. Reading and writing in one step loses no behaviour: if the row
    /// moved in between the commit would be refused, and a lease that came back in between is as good
    /// as one that came back after.
    pub(crate) fn act(&self, world: &mut World, operation: u8, event: Event) -> Option<()> {
        let row = world.row(operation);
        let snapshot = self.snapshot(world, operation, row.as_ref());
        let proven = is_proof(&event);
        let transition = self.decide(&snapshot, event).ok()?;
        match self.commit(world, operation, &transition, proven) {
            Verdict::Committed(_) => Some(()),
            Verdict::Conflict | Verdict::Refused => None,
        }
    }

    /// Commits what a task offers; `None` where `decide` refuses it.
    pub(crate) fn take(&self, world: &mut World, task: u8, offer: &Offer) -> Option<Verdict> {
        let operation = self.spec(task).operation;
        let snapshot = self.snapshot(world, operation, offer.seen.as_ref());
        let event = self.rows.event(&self.configuration, task, offer.word);
        let proven = is_proof(&event);
        let transition = self.decide(&snapshot, event).ok()?;
        Some(self.commit(world, operation, &transition, proven))
    }

    /// Whether an offer can still be committed some day: versions never come back.
    pub(crate) fn may_land(&self, world: &World, task: u8, offer: &Offer) -> bool {
        let row = world.row(self.spec(task).operation);
        let version = |row: &Row| row.version;
        self.has(Mutant::StoreIgnoresVersions)
            || row.as_ref().map(version) == offer.seen.as_ref().map(version)
    }

    /// Judges and writes one change. `proven`: it says that nothing ran.
    fn commit(
        &self,
        world: &mut World,
        operation: u8,
        transition: &Transition,
        proven: bool,
    ) -> Verdict {
        let before = world.row(operation);
        if self.has(Mutant::PurgedRowIgnoresClaims)
            && let Some(purged) = before.filter(|row| row.charge().is_some())
            && purged.content.is_none()
            && transition.expected.is_none()
        {
            return Verdict::Committed(purged);
        }
        let before = before.map(|row| self.rows.operation(operation, &row));
        let version = before.as_ref().map(|operation| operation.version);
        if version != transition.expected && !self.has(Mutant::StoreIgnoresVersions) {
            return Verdict::Conflict;
        }
        if !self.stands(world, operation, transition) {
            return Verdict::Refused;
        }
        let at = instant(world.clock);
        let receipt =
            Receipt { version: transition.version(), at, counters: CounterReadings::default() };
        let Some(after) = transition.apply(before.as_ref(), receipt) else {
            return Verdict::Conflict;
        };
        let row = self.write(world, operation, &after, transition);
        if self.configuration.requests_per_minute.is_some() {
            count(world.ghost(operation), &row, transition, proven);
        }
        for task in self.configuration.numbers() {
            let limbo = world.limbo[usize::from(task)];
            if limbo.is_some_and(|offer| !self.may_land(world, task, &offer)) {
                world.limbo[usize::from(task)] = None;
            }
        }
        Verdict::Committed(row)
    }

    /// The bounds and the permanent ids.
    fn stands(&self, world: &World, operation: u8, transition: &Transition) -> bool {
        if transition.funds == Funds::Unmoved {
            return true;
        }
        let wallet = &world.wallet;
        let (available, held) = moves(transition.funds);
        let counted = |counter| match counter {
            Counter::Concurrency => wallet.running,
            Counter::SpendTotal => wallet.spend,
            Counter::Requests => wallet.requests[window(world, transition)],
            Counter::Tokens => wallet.tokens[window(world, transition)],
            Counter::SpendDay | Counter::SpendMonth => 0,
        };
        let within = wallet.available + available >= 0
            && wallet.held + held >= 0
            && transition.counters.iter().all(|moved| {
                let reached = i64::from(counted(moved.counter)) + moved.amount;
                moved.bound.is_none_or(|bound| reached <= bound)
            });
        let ghost = &world.ghosts[usize::from(operation)];
        let is_new = ghost.lines & lines(transition) == 0;
        wallet.health != Health::Broken
            && (within || self.has(Mutant::StoreIgnoresBounds))
            && (is_new || self.has(Mutant::StoreIgnoresPermanentIds))
    }

    fn write(
        &self,
        world: &mut World,
        operation: u8,
        after: &Operation,
        transition: &Transition,
    ) -> Row {
        let before = world.row(operation);
        let kept = before.and_then(|row| row.content);
        let mut row = self.rows.row(after, transition.result().map(content).or(kept));
        if self.mutants.is_empty() {
            let kept = self.rows.operation(operation, &row);
            assert_eq!(timeless(after.clone()), timeless(kept), "a row leaves something out");
        }
        let written = row;
        if let (Effect::Reopen(_), Some(before)) = (&transition.effect, before)
            && self.has(Mutant::ReopenKeepsClaim)
        {
            row.claim = before.claim;
        }
        let window = window(world, transition);
        if let (Effect::Reopen(_), Some(before)) = (&transition.effect, before) {
            let second = |at: u8| INSTANTS[usize::from(at)];
            let wait = REOPEN_WAITS[usize::from(before.generation) - 1];
            let is_hasty = second(row.admitted) < second(before.admitted) + wait;
            world.ghost(operation).hasty |= is_hasty;
        }
        world.rows[usize::from(operation)] = Some(row);
        let (available, held) = moves(transition.funds);
        world.wallet.available += available;
        world.wallet.held += held;
        for moved in &transition.counters {
            let amount = i16::try_from(moved.amount).unwrap();
            match moved.counter {
                Counter::Concurrency => world.wallet.running += amount,
                Counter::SpendTotal => world.wallet.spend += amount,
                Counter::Requests => world.wallet.requests[window] += amount,
                Counter::Tokens => world.wallet.tokens[window] += amount,
                Counter::SpendDay | Counter::SpendMonth => {}
            }
        }
        remember(world.ghost(operation), &row, transition);
        written
    }
}

/// Whether an event says that nothing of this generation ran.
fn is_proof(event: &Event) -> bool {
    matches!(event, Event::NotRun { .. } | Event::Disown(Disown { sent: SendStatus::Never, .. }))
}

/// In which minute the counters of a change move.
fn window(world: &World, transition: &Transition) -> usize {
    let begins = |at: Timestamp| Counter::Requests.window(at);
    let at = begins(transition.admitted_at.unwrap_or(instant(world.clock)));
    let mut instants = (0..).take(INSTANTS.len());
    instants.find(|n| begins(instant(*n)) == at).map_or(MINUTES - 1, minute)
}

/// What an operation counts by the minute: the specification's table, by what happened to it.
fn count(ghost: &mut Ghost, row: &Row, transition: &Transition, proven: bool) {
    let minute = minute(row.admitted);
    let (requests, tokens) = (&mut ghost.requests[minute], &mut ghost.tokens[minute]);
    match transition.effect {
        Effect::Admit(_) | Effect::Reopen(_) => {
            *requests += 1;
            *tokens += i16::from(TOKENS);
        }
        Effect::Complete { .. } | Effect::Settle => {
            if let Stand::Completed(metered) = row.stand {
                *tokens += i16::from(metered) - i16::from(TOKENS);
            }
        }
        Effect::Open { .. } | Effect::Abandon { .. } if proven => {
            *tokens -= i16::from(TOKENS);
            *requests -= i16::from(row.generation == 1);
        }
        Effect::Record { .. }
        | Effect::AskCancel
        | Effect::Cancel
        | Effect::Open { .. }
        | Effect::Refuse { .. }
        | Effect::Abandon { .. } => {}
    }
}

/// What the ghosts learn of a change.
fn remember(ghost: &mut Ghost, row: &Row, transition: &Transition) {
    ghost.lines |= lines(transition);
    ghost.generation = ghost.generation.max(row.generation);
    ghost.bound = ghost.bound.or(Some(row.request));
    match transition.funds {
        Funds::Unmoved => {}
        Funds::Hold(hold) => ghost.hold = Hold::Active(tiny(hold)),
        Funds::Release(_) | Funds::Lapse(_) => ghost.hold = Hold::Released,
        Funds::Capture { hold, charge } => {
            ghost.hold = Hold::Captured(tiny(hold));
            ghost.captured += i16::from(tiny(charge));
            ghost.settlements += 1;
        }
    }
    match transition.effect {
        Effect::Complete { .. } | Effect::Record { .. } => ghost.usages += 1,
        Effect::Admit(_)
        | Effect::Reopen(_)
        | Effect::Settle
        | Effect::AskCancel
        | Effect::Cancel
        | Effect::Open { .. }
        | Effect::Refuse { .. }
        | Effect::Abandon { .. } => {}
    }
}

/// One bit for each line that a change adds to the book.
fn lines(transition: &Transition) -> u32 {
    let generation = transition.generation.min(5) * 5;
    transition.funds.transfers().fold(0, |bits, transfer| {
        let kind = match transfer.kind {
            TransferKind::Hold => 0,
            TransferKind::Settle => 1,
            TransferKind::Rest => 2,
            TransferKind::Release => 3,
            TransferKind::Lapse => 4,
        };
        bits | 1 << (generation + kind)
    })
}

fn moves(funds: Funds) -> (i16, i16) {
    let moves = funds.balance_change();
    let small = |micros: Micros| i16::try_from(micros.get()).unwrap();
    (small(moves.available), small(moves.held))
}

fn tiny(micros: Micros) -> u8 {
    u8::try_from(micros.get()).unwrap()
}
