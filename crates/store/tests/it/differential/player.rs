//! Does what a history says on one store, and tells the verdicts in words in which no clock is left.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::admin::ports::CommandError;
use holdfast_domain::credential::Grant;
use holdfast_domain::ledger::Posting;
use holdfast_domain::limits::{Counter, CounterMove, ReachedLimit};
use holdfast_domain::operation::{Disown, Effect, Finish, Lease, Operation, Receipt, Transition};
use holdfast_domain::ports::{CommitError, HeartbeatOutcome, LeaseMode, NewApiKey};
use holdfast_domain::{
    ApiKeyId, ClaimId, Event, Micros, OperationId, Phase, Snapshot, Timestamp, WalletId, decide,
};
use holdfast_testkit::commands::CommandResult;
use holdfast_testkit::laws::tenant::answer;
use holdfast_testkit::{Stores, sample};

use super::history::{ClaimOf, HistoryStep, Over, What, nth_node, wallets};

/// Changes of either kind that can be offered again.
const CHANGES_KEPT: usize = 6;
/// How often a clock that does not move is read.
const READS_MAX: u32 = 1_000_000;

pub(super) struct Player<'a> {
    pub(super) stores: &'a dyn Stores,
    /// What the store has stamped, in order: a moment is told by its place in here.
    moments: Vec<Timestamp>,
    last: Option<Timestamp>,
    leases: BTreeMap<usize, Lease>,
    seen: BTreeMap<OperationId, Snapshot>,
    offered: VecDeque<Arc<Transition>>,
    committed: VecDeque<Arc<Transition>>,
}

impl<'a> Player<'a> {
    pub(super) fn new(stores: &'a dyn Stores) -> Self {
        Self {
            stores,
            moments: Vec::new(),
            last: None,
            leases: BTreeMap::new(),
            seen: BTreeMap::new(),
            offered: VecDeque::new(),
            committed: VecDeque::new(),
        }
    }

    /// Does a step and tells what the store says.
    pub(super) async fn play(&mut self, step: &HistoryStep) -> String {
        self.wait().await;
        match step {
            HistoryStep::Claim { claim, over } => {
                let id = OperationId::of(claim.api_key, claim.request_key);
                let event = self.claim(claim);
                self.judge(id, event, *over).await
            }
            HistoryStep::Event { operation, what, claim, over } => {
                self.judge(*operation, event(what, *claim), *over).await
            }
            HistoryStep::Again(back) => match self.offered.get(*back).cloned() {
                Some(change) => self.offer(change).await,
                None => "nothing was offered".to_owned(),
            },
            HistoryStep::Bent(back) => match self.committed.get(*back).cloned() {
                Some(change) => self.bend(&change).await,
                None => "nothing was committed".to_owned(),
            },
            HistoryStep::Post { id, wallet, kind, amount } => {
                let (kind, amount) = (kind.clone(), Micros::new(*amount));
                let posting = Posting { id: *id, wallet: *wallet, kind, amount };
                let posted = self.stores.commands().post(&posting).await;
                self.told(posted)
            }
            HistoryStep::Beat { node, span, entry } => self.beat(*node, *span, *entry).await,
            HistoryStep::Leave(node) => {
                self.stores.nodes().leave(&nth_node(*node)).await.unwrap();
                "left".to_owned()
            }
            HistoryStep::Due(limit) => {
                format!("{:?}", self.stores.journal().due(*limit).await.unwrap())
            }
            HistoryStep::LeasedTo(node) => {
                let node = &nth_node(*node);
                let mut leased = self.stores.journal().leased_to(node).await.unwrap();
                leased.sort_unstable();
                format!("{leased:?}")
            }
            HistoryStep::Purge { age, limit } => {
                format!("{} purged", self.stores.journal().purge(*age, *limit).await.unwrap())
            }
            HistoryStep::Create { wallet, name } => {
                let commands = self.stores.commands();
                let created = commands.create_wallet(*wallet, name, sample::usd()).await;
                self.told(created)
            }
            HistoryStep::Issue { key, wallet, name } => self.issue(*key, *wallet, name).await,
            HistoryStep::Revoke(key) => {
                let revoked = self.stores.commands().revoke(*key).await;
                self.told(revoked)
            }
            HistoryStep::Pin(versions) => {
                format!("{:?}", self.stores.prices().unwrap().pin(versions).await)
            }
        }
    }

    async fn issue(&mut self, id: ApiKeyId, wallet: WalletId, name: &str) -> String {
        let new = NewApiKey {
            id,
            wallet,
            name: name.to_owned(),
            external_id: None,
            grant: Grant::default(),
        };
        let issued = self.stores.commands().issue(&new, &super::rows::credential_of(id)).await;
        self.told(issued)
    }

    /// Verdict on a command. A row that a table refuses is a failure, in each store's own words.
    fn told(&mut self, done: CommandResult) -> String {
        match done {
            Ok(receipt) => {
                self.stamped(receipt.at);
                format!("{:?}, replayed: {}", receipt.things, receipt.replayed)
            }
            Err(CommandError::Refused(refusal)) => format!("{refusal:?}"),
            Err(CommandError::Unavailable(_) | CommandError::Uncertain(_)) => "failed".to_owned(),
        }
    }

    fn stamped(&mut self, at: Timestamp) {
        self.moments.push(at);
        self.last = Some(at);
    }

    /// Which of the store's events this is the moment of.
    pub(super) fn place(&self, at: Timestamp) -> Timestamp {
        let place = self.moments.iter().position(|moment| *moment == at);
        Timestamp::from_micros(place.map_or(-1, |place| i64::try_from(place).unwrap()))
    }

    /// A row without a clock in it.
    pub(super) fn placed(&self, mut row: Operation) -> Operation {
        let deadline = row.deadline.as_micros() - row.admitted_at.as_micros();
        row.deadline = Timestamp::from_micros(deadline);
        row.created_at = self.place(row.created_at);
        row.admitted_at = self.place(row.admitted_at);
        match &mut row.phase {
            Phase::Completed { finished_at, .. }
            | Phase::Refused { finished_at, .. }
            | Phase::Abandoned { finished_at } => *finished_at = self.place(*finished_at),
            Phase::Leased | Phase::Recorded(_) | Phase::Open => {}
        }
        row
    }

    /// A lease without a clock in it.
    pub(super) fn placed_lease(&self, lease: Lease) -> Lease {
        Lease { ends_at: self.place(lease.ends_at), ..lease }
    }

    /// Whether a counter stands at exactly this. It leaves an operation behind.
    pub(super) async fn has_used(&self, api_key: ApiKeyId, counter: Counter, used: i64) -> bool {
        let offer = async |bound: i64| {
            let claim = sample::claim()
                .api_key(api_key)
                .wallet(wallets()[0])
                .request_key(sample::fresh_request_key())
                .hold(0)
                .build();
            let admission = sample::admission(&claim);
            let transition = &*admission;
            let counters = vec![CounterMove { counter, amount: 0, bound: Some(bound) }];
            let probe = Transition { counters, ..transition.clone() };
            Some(self.stores.journal().commit(Arc::new(probe)).await)
        };
        let below = offer(used - 1).await;
        matches!(below, Some(Err(CommitError::LimitReached(_))))
            && matches!(offer(used).await, Some(Ok(_)))
    }

    /// Until the store's clock is past everything that it has stamped: two moments are never one.
    async fn wait(&self) {
        for _read in 0..READS_MAX {
            let now = self.stores.journal().load(sample::fresh()).await.unwrap().now;
            if self.last.is_none_or(|last| last < now) {
                return;
            }
        }
        assert_eq!(self.last, None, "the store's clock does not move");
    }

    fn claim(&self, of: &ClaimOf) -> Event {
        let node = nth_node(of.node);
        let never = Lease { node, ends_at: Timestamp::from_micros(0) };
        let lease = self.leases.get(&of.node).cloned().unwrap_or(never);
        let claim = sample::claim()
            .api_key(of.api_key)
            .request_key(of.request_key)
            .request(of.request)
            .wallet(of.wallet)
            .claim_id(of.claim)
            .lease(lease)
            .hold(of.hold)
            .tokens(of.tokens)
            .limits(of.limits)
            .time(of.time)
            .price(of.price.clone());
        Event::Claim(Box::new(claim.build()))
    }

    /// Judges an event and offers what follows.
    async fn judge(&mut self, id: OperationId, event: Event, over: Over) -> String {
        let row = self.stores.journal().load(id).await.unwrap();
        let stale = self.seen.insert(id, row.clone());
        let mut snapshot = match over {
            Over::Vacant => Snapshot::vacant(row.now),
            Over::Row => row,
            Over::Stale => stale.unwrap_or(row),
        };
        // How long an open operation has to wait is asked of clocks that do not go alike.
        if let (Event::Claim(_), Some(row)) = (&event, &mut snapshot.operation) {
            row.admitted_at = Timestamp::from_micros(0);
        }
        match decide(&snapshot, event) {
            Ok(transition) => {
                let change = Arc::new(transition);
                self.offered.push_front(Arc::clone(&change));
                self.offered.truncate(CHANGES_KEPT);
                self.offer(change).await
            }
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    /// A permanent id that exists stops its effect even where the version is right.
    async fn bend(&mut self, change: &Transition) -> String {
        let transition = change;
        let row = self.stores.journal().load(transition.operation).await.unwrap().operation;
        let is_new = matches!(transition.effect, Effect::Admit(_));
        if is_new || transition.funds.transfers().next().is_none() {
            return "nothing permanent".to_owned();
        }
        let expected = row.map(|row| row.version);
        self.offer(Arc::new(Transition { expected, ..transition.clone() })).await
    }

    async fn offer(&mut self, change: Arc<Transition>) -> String {
        match self.stores.journal().commit(Arc::clone(&change)).await {
            Ok(Receipt { version, at, counters: tally }) => {
                self.stamped(at);
                self.committed.push_front(Arc::clone(&change));
                self.committed.truncate(CHANGES_KEPT);
                let admitted_at = change.admitted_at.map(|at| self.place(at));
                let told = Transition { admitted_at, ..(*change).clone() };
                format!("{version:?}, {tally:?}: {told:?}")
            }
            Err(CommitError::LimitReached(reached)) => {
                format!("{:?}", ReachedLimit { at: Timestamp::from_micros(0), ..reached })
            }
            Err(error) => format!("{error:?}"),
        }
    }

    async fn beat(&mut self, node: usize, span: Duration, entry: LeaseMode) -> String {
        match self.stores.nodes().heartbeat(&nth_node(node), span, entry).await.unwrap() {
            HeartbeatOutcome::Held { lease, now, .. } => {
                self.stamped(now);
                self.moments.push(lease.ends_at);
                self.leases.insert(node, lease.clone());
                format!("held: {:?}", self.placed_lease(lease))
            }
            HeartbeatOutcome::Lost { lease, .. } => {
                format!("lost: {:?}", lease.map(|lease| self.placed_lease(lease)))
            }
        }
    }
}

fn event(what: &What, claim: ClaimId) -> Event {
    let finish = |input, output, attempts| {
        let (metered, result) = (sample::metered(input, output), answer());
        Finish { claim, metered, result, attempts }
    };
    let attempts = sample::attempts();
    match what.clone() {
        What::Finish { input, output, attempts } => Event::Finish(finish(input, output, attempts)),
        What::Record { input, output } => Event::Record(finish(input, output, attempts)),
        What::Settle => Event::Settle,
        What::AskCancel => Event::AskCancel,
        What::NotRun => Event::NotRun { claim, attempts },
        What::Refuse(refusal) => {
            Event::Refuse { claim, refusal, result: sample::result("an error"), attempts }
        }
        What::GiveUp => Event::GiveUp { claim, attempts },
        What::Reap(orphan_grace) => Event::Reap { orphan_grace },
        What::Disown(sent) => Event::Disown(Disown { claim, sent }),
    }
}
