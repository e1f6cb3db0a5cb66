//! What a history consists of: processes with their tasks, everybody else who may touch an operation,
//! and a store that breaks on demand. Nobody in here looks at the rows to know what is right.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::limits::{Limits, SpendLimit, SpendWindow};
use holdfast_domain::operation::{
    Claim, Disown, Effect, Finish, Lease, Node, Operation, Phase, ProviderRefusal, Receipt,
    SealedResult, SendStatus, Snapshot, Transition,
};
use holdfast_domain::ports::{CommitError, HeartbeatOutcome, LeaseMode, LeasedOperation};
use holdfast_domain::{
    ApiKeyId, ClaimId, Event, Incarnation, Journal, Micros, Nodes, OperationId, PostingId,
    Timestamp, WalletId, decide,
};
use holdfast_testkit::laws::Lists as _;
use holdfast_testkit::{Commands as _, Dice, Fault, MemoryJournal, sample};

use super::invariants::Ghost;
use super::tasks::{Stage, Task};

/// How long results are kept.
pub(super) const RETENTION: Duration = Duration::from_secs(300);
const GRACE: Duration = Duration::from_secs(60);
/// Request keys of one API key.
const KEYS: u64 = 3;
/// Changes that may be offered again.
const OFFERED_KEPT: usize = 24;
/// Looks at what is due, by far more than there are operations and faults.
const LOOKS_MAX: usize = 200;

/// A process: one incarnation of a name, and the lease that it knows of.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) node: Node,
    pub(super) lease: Option<Lease>,
}

/// One history.
#[derive(Debug)]
pub(super) struct World {
    pub(super) journal: MemoryJournal,
    pub(super) dice: Dice,
    pub(super) processes: Vec<Process>,
    pub(super) tasks: Vec<Task>,
    pub(super) ghosts: BTreeMap<OperationId, Ghost>,
    /// Every posting that was offered, whatever became of it.
    pub(super) postings: Vec<PostingId>,
    /// What was done, for people.
    pub(super) trail: Vec<String>,
    /// What came of it.
    pub(super) happened: BTreeSet<String>,
    offered: Vec<Arc<Transition>>,
    /// Operations as somebody saw them once.
    seen: BTreeMap<OperationId, Snapshot>,
    ids: u128,
}

/// Over which row an event is judged.
#[derive(Debug, Clone, Copy)]
pub(super) enum Over {
    /// None, unread.
    Vacant,
    /// As it stands.
    Row,
    /// As it stood at some time.
    Stale,
}

fn wallets() -> [WalletId; 2] {
    [WalletId::from_u128(1), WalletId::from_u128(2)]
}

/// API keys with their wallets and limits.
fn api_keys() -> [(ApiKeyId, WalletId, Limits); 3] {
    let [first, second] = wallets();
    let spend = Some(SpendLimit { micros: Micros::new(250), window: SpendWindow::Total });
    let running = Some(2);
    [
        (ApiKeyId::from_u128(11), first, Limits::default()),
        (ApiKeyId::from_u128(12), first, Limits { concurrency: running, ..Limits::default() }),
        (
            ApiKeyId::from_u128(13),
            second,
            Limits { concurrency: running, spend, ..Limits::default() },
        ),
    ]
}

impl World {
    /// Two wallets with some money, and three processes, two of which have one name.
    pub(super) async fn new(seed: u64) -> Self {
        let journal = MemoryJournal::new();
        for (wallet, name) in wallets().into_iter().zip(["first", "second"]) {
            journal.create_wallet(wallet, name, sample::usd()).await.unwrap();
        }
        let mut world = Self {
            journal,
            dice: Dice::new(seed),
            processes: Vec::new(),
            tasks: Vec::new(),
            ghosts: BTreeMap::new(),
            postings: Vec::new(),
            trail: Vec::new(),
            happened: BTreeSet::new(),
            offered: Vec::new(),
            seen: BTreeMap::new(),
            ids: 0,
        };
        for name in ["a", "a", "b"] {
            let node = world.new_node(name);
            world.processes.push(Process { node, lease: None });
        }
        for wallet in wallets() {
            world.post(wallet, PostingKind::Deposit, 400).await;
        }
        world.beat(0).await;
        world.beat(2).await;
        world
    }

    /// Does one thing.
    pub(super) async fn step(&mut self) {
        match self.dice.roll(100) {
            0..18 => self.claim().await,
            18..56 => self.advance_task().await,
            56..60 => self.meddle().await,
            60..63 => self.offer_again().await,
            63..67 => {
                let grace = self.pick(&[None, Some(Duration::ZERO), Some(GRACE)]);
                self.happens(Event::Reap { orphan_grace: grace }).await;
            }
            67..70 => self.happens(Event::Settle).await,
            70..72 => self.happens(Event::AskCancel).await,
            72..81 => self.disown().await,
            81..84 => self.post_something().await,
            84..89 => {
                let process = self.at(3);
                self.beat(process).await;
            }
            89..91 => self.crash().await,
            91..93 => {
                let purged = self.journal.purge(RETENTION, 2).await.unwrap();
                self.say(&format!("{purged} purged"));
            }
            93..96 => {
                let seconds = self.pick(&[1, 10, 10, 70, 310, 700]);
                self.journal.advance(Duration::from_secs(seconds));
                self.say(&format!("{seconds} s pass"));
            }
            96 => {
                let wallet = self.pick(&wallets());
                self.journal.break_wallet(wallet);
                self.say(&format!("{wallet} breaks"));
            }
            97 => wallets().into_iter().for_each(|wallet| self.journal.repair_wallet(wallet)),
            _ => {
                let faults = [
                    Fault::Unavailable,
                    Fault::Overloaded,
                    Fault::Landed,
                    Fault::NotLanded,
                    Fault::LandsLate,
                    Fault::LandsLate,
                ];
                let fault = self.pick(&faults);
                self.journal.fail_next([fault]);
                self.say(&format!("the next commit: {fault:?}"));
            }
        }
    }

    /// L1: no task does anything any more, wallets are well, time passes. What is left are reaping and
    /// settling.
    pub(super) async fn come_to_rest(&mut self) {
        self.tasks.clear();
        wallets().into_iter().for_each(|wallet| self.journal.repair_wallet(wallet));
        for _look in 0..LOOKS_MAX {
            self.journal.advance(sample::TIME);
            self.beat(0).await;
            for id in self.journal.due(u32::MAX).await.unwrap() {
                let snapshot = self.journal.load(id).await.unwrap();
                let reap = Event::Reap { orphan_grace: Some(GRACE) };
                let is_recorded =
                    snapshot.operation.as_ref().is_some_and(|it| it.phase.usage().is_some());
                self.judge(&snapshot, if is_recorded { Event::Settle } else { reap }).await;
            }
        }
    }

    /// Whether nothing runs, waits or holds money.
    pub(super) async fn rests(&self) -> bool {
        let held = self.journal.all_wallets().await.into_iter().map(|it| it.held);
        let rows = self.journal.operations();
        held.into_iter().all(|held| held == Micros::ZERO)
            && rows.iter().all(|row| row.phase == Phase::Open || row.phase.finished_at().is_some())
            && self.journal.due(1).await.unwrap().is_empty()
    }

    /// What the end of a step shows, for the list of what happened.
    pub(super) fn notes(&mut self, row: &Operation, result: Option<&SealedResult>) {
        let has_ended = matches!(row.phase, Phase::Completed { .. } | Phase::Refused { .. });
        let usage = row.phase.usage();
        let notes = [
            (row.generation == 3, "generation 3"),
            (has_ended && result.is_none(), "expired"),
            (has_ended && row.cancel_asked, "ended with an answer after a cancel"),
            (usage.is_some_and(|usage| usage.shortfall > Micros::ZERO), "shortfall"),
        ];
        for (_, note) in notes.into_iter().filter(|(is_so, _)| *is_so) {
            self.happened.insert(note.to_owned());
        }
    }

    /// A new task wants to run something.
    async fn claim(&mut self) {
        let (api_key, wallet, limits) = self.pick(&api_keys());
        let request_key = sample::request_key(self.dice.roll(KEYS));
        let id = OperationId::of(api_key, request_key);
        let process = self.at(3);
        let Process { node, lease } = &self.processes[process];
        let never = Lease { node: node.clone(), ends_at: Timestamp::from_micros(0) };
        let lease = lease.clone().unwrap_or(never);
        // A claim that landed late and was disowned meanwhile is offered once more.
        let open = self.journal.operation(id).filter(|row| row.phase == Phase::Open);
        let claim_id = match open {
            Some(row) if self.one_in(6) => row.owner.claim,
            Some(_) | None => ClaimId::from_u128(self.new_id()),
        };
        let prices = [sample::price(), sample::priced("2026-02-01T00:00:00Z", 2_000_000)];
        let price = match self.dice.roll(30) {
            0 => sample::priced("2026-02-01T00:00:00Z", 3_000_000),
            _ => self.pick(&prices),
        };
        let request = if self.one_in(8) { "another" } else { "the one" };
        let claim = sample::claim()
            .api_key(api_key)
            .wallet(wallet)
            .limits(limits)
            .request_key(request_key)
            .request(request)
            .claim_id(claim_id)
            .lease(lease)
            .price(price)
            .hold(1 + i64::try_from(self.dice.roll(150)).unwrap())
            .build();
        self.say(&format!("{id} is claimed by {claim_id} of process {process}: {request}"));
        let over = self.pick(&[Over::Vacant, Over::Row, Over::Row, Over::Row, Over::Stale]);
        let snapshot = self.snapshot(id, over).await;
        self.begin(claim, snapshot).await;
    }

    async fn begin(&mut self, claim: Claim, snapshot: Snapshot) {
        match decide(&snapshot, Event::Claim(Box::new(claim.clone()))) {
            Ok(transition) => {
                let change = Arc::new(transition);
                let before = snapshot.operation.map(Box::new);
                let stage = Stage::Claiming { change, before, was_lost: false };
                self.tasks.push(Task { claim, stage, has_sent: false });
                self.advance(self.tasks.len() - 1).await;
            }
            Err(refusal) => self.note(format!("{refusal:?}")),
        }
    }

    /// Something happens to an operation that needs no owner.
    async fn happens(&mut self, event: Event) {
        let id = self.operation();
        let over = self.pick(&[Over::Row, Over::Row, Over::Stale]);
        let snapshot = self.snapshot(id, over).await;
        self.say(&format!("{id}: {event:?}"));
        self.judge(&snapshot, event).await;
    }

    /// Somebody speaks for an operation that is another's now.
    async fn meddle(&mut self) {
        let id = self.operation();
        let snapshot = self.snapshot(id, Over::Row).await;
        let used: Vec<_> = self.tasks.iter().map(|task| task.claim.owner.claim).collect();
        let claim = match used.get(self.at(used.len().max(1))) {
            Some(claim) if !self.one_in(3) => *claim,
            Some(_) | None => ClaimId::from_u128(self.new_id()),
        };
        if snapshot.operation.as_ref().is_some_and(|row| row.owner.claim == claim) {
            return;
        }
        let (metered, result) = (sample::metered(1, 1), sample::result("of nobody"));
        let attempts: Arc<[_]> = [].into();
        let finish =
            Finish { claim, metered, result: result.clone(), attempts: Arc::clone(&attempts) };
        let refusal = ProviderRefusal::Request;
        let events = [
            Event::Finish(finish.clone()),
            Event::Record(finish),
            Event::NotRun { claim, attempts: Arc::clone(&attempts) },
            Event::Refuse { claim, refusal, result, attempts: Arc::clone(&attempts) },
            Event::GiveUp { claim, attempts },
            Event::Disown(Disown { claim, sent: SendStatus::Never }),
        ];
        let event = self.pick(&events);
        self.say(&format!("{id}: a stranger's {event:?}"));
        self.judge(&snapshot, event).await;
    }

    /// A process gives up what none of its tasks runs.
    async fn disown(&mut self) {
        let process = self.at(3);
        let node = self.processes[process].node.clone();
        for LeasedOperation { operation: id, claim, .. } in
            self.journal.leased_to(&node).await.unwrap()
        {
            let task = self.tasks.iter().find(|task| task.claim.owner.claim == claim);
            if task.is_some_and(|task| !task.is_gone()) {
                continue;
            }
            // A task that is known and gone has sent or has not; of others nothing is known.
            let sent = match task {
                Some(task) if !task.has_sent => SendStatus::Never,
                Some(_) | None => SendStatus::Perhaps,
            };
            self.say(&format!("{id}: {claim} is disowned, sent {sent:?}"));
            let snapshot = self.snapshot(id, Over::Row).await;
            if self.judge(&snapshot, Event::Disown(Disown { claim, sent })).await {
                self.note(format!("disowned as {} sent", format!("{sent:?}").to_lowercase()));
                // Whoever opened this one again would run it a second time.
                if self.ghosts.get(&id).is_some_and(|ghost| ghost.runs > 0) {
                    self.note("disowned after a run".to_owned());
                }
            }
        }
    }

    /// A power cut: the process and its tasks are gone, another one begins under the name.
    async fn crash(&mut self) {
        let process = self.at(3);
        let old = self.processes[process].node.clone();
        self.tasks.retain(|task| task.claim.owner.node != old);
        let node = self.new_node(old.name.as_str());
        self.processes[process] = Process { node, lease: None };
        self.say(&format!("process {process} crashes"));
        if self.one_in(4) {
            self.journal.leave(&old).await.unwrap();
        }
    }

    async fn beat(&mut self, process: usize) {
        let entry = self.pick(&[LeaseMode::Take, LeaseMode::TakeExpired, LeaseMode::Renew]);
        let Process { node, lease } = &mut self.processes[process];
        match self.journal.heartbeat(node, sample::LEASE, entry).await.unwrap() {
            HeartbeatOutcome::Held { lease: held, .. } => *lease = Some(held),
            HeartbeatOutcome::Lost { .. } => {}
        }
        self.say(&format!("process {process} beats: {entry:?}"));
    }

    async fn post_something(&mut self) {
        let wallet = self.pick(&wallets());
        let completed: Vec<_> = self.journal.operations().into_iter().map(|row| row.id).collect();
        let amount = 1 + i64::try_from(self.dice.roll(80)).unwrap();
        let of = completed.get(self.at(completed.len().max(1)));
        let (kind, amount) = match (self.dice.roll(3), of) {
            (0, Some(id)) => (PostingKind::Refund(*id), amount),
            (1, _) => (PostingKind::Adjustment("a test's".to_owned()), 40 - amount),
            (_, _) => (PostingKind::Deposit, amount),
        };
        self.post(wallet, kind, amount).await;
    }

    async fn post(&mut self, wallet: WalletId, kind: PostingKind, amount: i64) {
        let known = self.postings.last().copied();
        let id = match known {
            Some(id) if self.one_in(6) => id,
            Some(_) | None => PostingId::from_u128(self.new_id()),
        };
        self.postings.retain(|known| *known != id);
        self.postings.push(id);
        let posting = Posting { id, wallet, kind, amount: Micros::new(amount) };
        self.say(&format!("{posting:?}"));
        // Refused or lost: whoever posts looks at the wallet.
        let posted = self.journal.post(&posting).await;
        if posted.is_ok_and(|done| !done.replayed) {
            self.happened.insert(label_of(&posting.kind).to_owned());
        }
    }

    async fn offer_again(&mut self) {
        let n = self.at(self.offered.len().max(1));
        if let Some(change) = self.offered.get(n).cloned() {
            self.say(&format!("offered again: {change:?}"));
            drop(self.offer(&change).await);
        }
    }

    /// Judges an event and offers what follows; whether that was committed.
    pub(super) async fn judge(&mut self, snapshot: &Snapshot, event: Event) -> bool {
        match decide(snapshot, event) {
            Ok(transition) => self.offer(&Arc::new(transition)).await.is_ok(),
            Err(refusal) => {
                self.note(format!("{refusal:?}"));
                false
            }
        }
    }

    /// Offers a change, and keeps it to be offered again.
    pub(super) async fn offer(&mut self, change: &Arc<Transition>) -> Result<Receipt, CommitError> {
        if self.offered.len() == OFFERED_KEPT {
            drop(self.offered.remove(0));
        }
        self.offered.push(Arc::clone(change));
        let verdict = self.journal.commit(Arc::clone(change)).await;
        self.note(match &verdict {
            Ok(_) => label(change).to_owned(),
            Err(CommitError::Unavailable(_)) => "Unavailable".to_owned(),
            Err(CommitError::Uncertain(_)) => "Uncertain".to_owned(),
            Err(CommitError::LimitReached(reached)) => {
                format!("LimitReached({:?})", reached.counter)
            }
            Err(error) => format!("{error:?}"),
        });
        verdict
    }

    pub(super) async fn snapshot(&mut self, id: OperationId, over: Over) -> Snapshot {
        let row = self.journal.load(id).await.unwrap();
        let stale = self.seen.get(&id).cloned();
        if self.one_in(3) {
            self.seen.insert(id, row.clone());
        }
        match over {
            Over::Vacant => Snapshot::vacant(row.now),
            Over::Row => row,
            Over::Stale => stale.unwrap_or(row),
        }
    }

    fn operation(&mut self) -> OperationId {
        let (api_key, ..) = self.pick(&api_keys());
        OperationId::of(api_key, sample::request_key(self.dice.roll(KEYS)))
    }

    fn new_node(&mut self, name: &str) -> Node {
        Node { incarnation: Incarnation::from_u128(self.new_id()), ..sample::node(name) }
    }

    fn new_id(&mut self) -> u128 {
        self.ids += 1;
        self.ids
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.at(from.len())].clone()
    }

    pub(super) fn at(&mut self, n: usize) -> usize {
        usize::try_from(self.dice.roll(u64::try_from(n).unwrap())).unwrap()
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.dice.roll(n) == 0
    }

    pub(super) fn say(&mut self, what: &str) {
        self.trail.push(what.to_owned());
    }

    /// Adds what came of a step to its line.
    pub(super) fn note(&mut self, what: String) {
        if let Some(step) = self.trail.last_mut() {
            *step = format!("{step} -> {what}");
        }
        self.happened.insert(what);
    }
}

fn label(change: &Transition) -> &'static str {
    match change.effect {
        Effect::Admit(_) => "Admit",
        Effect::Reopen(_) => "Reopen",
        Effect::Complete { .. } => "Complete",
        Effect::Record { .. } => "Record",
        Effect::Settle => "Settle",
        Effect::AskCancel => "AskCancel",
        Effect::Cancel => "Cancel",
        Effect::Open { .. } => "Open",
        Effect::Refuse { .. } => "Refuse",
        Effect::Abandon { .. } => "Abandon",
    }
}

const fn label_of(kind: &PostingKind) -> &'static str {
    match kind {
        PostingKind::Deposit => "Deposit",
        PostingKind::Refund(_) => "Refund",
        PostingKind::Adjustment(_) => "Adjustment",
    }
}
