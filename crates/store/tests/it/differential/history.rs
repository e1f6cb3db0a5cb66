//! Random histories: what is done next, in words that every store understands. Which steps make sense
//! is read off the reference; nothing in here has a moment or a version.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::ledger::PostingKind;
use holdfast_domain::limits::{Limits, SpendLimit, SpendWindow};
use holdfast_domain::operation::{Attempt, Node, ProviderRefusal, SendStatus};
use holdfast_domain::ports::LeaseMode;
use holdfast_domain::price::PriceVersion;
use holdfast_domain::{
    ApiKeyId, ClaimId, Incarnation, Micros, OperationId, Phase, PostingId, RequestKey, WalletId,
};
use holdfast_testkit::{Dice, MemoryJournal, sample};

/// Leases that are live to the end of any history.
const LEASE: Duration = Duration::from_secs(3_600);
/// Request keys of one API key.
const KEYS: u64 = 12;

/// One thing that is done.
#[derive(Debug, Clone)]
pub(super) enum HistoryStep {
    Claim {
        claim: Box<ClaimOf>,
        over: Over,
    },
    Event {
        operation: OperationId,
        what: What,
        claim: ClaimId,
        over: Over,
    },
    /// Offers a change again as it was, counted from the newest.
    Again(usize),
    /// Offers a change that was committed again as if it had been judged over the row as it stands.
    Bent(usize),
    Post {
        id: PostingId,
        wallet: WalletId,
        kind: PostingKind,
        amount: i64,
    },
    Beat {
        node: usize,
        span: Duration,
        entry: LeaseMode,
    },
    Leave(usize),
    Due(u32),
    LeasedTo(usize),
    Purge {
        age: Duration,
        limit: u32,
    },
    Create {
        wallet: WalletId,
        name: String,
    },
    Issue {
        key: ApiKeyId,
        wallet: WalletId,
        name: String,
    },
    Revoke(ApiKeyId),
    Pin(Vec<PriceVersion>),
}

/// Over which row an event is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// None, unread.
    Vacant,
    /// As it stands.
    Row,
    /// As it stood when the operation was last looked at.
    Stale,
}

/// A claim without its lease, which each store gives for itself.
#[derive(Debug, Clone)]
pub(super) struct ClaimOf {
    pub(super) api_key: ApiKeyId,
    pub(super) request_key: RequestKey,
    pub(super) request: &'static str,
    pub(super) wallet: WalletId,
    pub(super) claim: ClaimId,
    pub(super) node: usize,
    pub(super) hold: i64,
    pub(super) tokens: u64,
    pub(super) limits: Limits,
    pub(super) time: Duration,
    pub(super) price: PriceVersion,
}

/// What happens to an operation.
#[derive(Debug, Clone)]
pub(super) enum What {
    Finish { input: u64, output: u64, attempts: Arc<[Attempt]> },
    Record { input: u64, output: u64 },
    Settle,
    AskCancel,
    NotRun,
    Refuse(ProviderRefusal),
    GiveUp,
    Reap(Option<Duration>),
    Disown(SendStatus),
}

/// Wallets of the beginning.
pub(super) fn wallets() -> [WalletId; 2] {
    [WalletId::from_u128(1), WalletId::from_u128(2)]
}

/// API keys of the beginning; the first two pay from the first wallet.
pub(super) fn api_keys() -> [ApiKeyId; 3] {
    [11, 12, 13].map(ApiKeyId::from_u128)
}

/// Which wallet each of them is for.
fn payers() -> [(ApiKeyId, WalletId); 3] {
    let ([one, two, three], [first, second]) = (api_keys(), wallets());
    [(one, first), (two, first), (three, second)]
}

/// Two processes of one name and one of another.
pub(super) fn nodes() -> [Node; 3] {
    [("a", 1), ("a", 2), ("b", 1)].map(|(name, incarnation)| Node {
        incarnation: Incarnation::from_u128(incarnation),
        ..sample::node(name)
    })
}

/// One of them.
pub(super) fn nth_node(n: usize) -> Node {
    nodes().into_iter().nth(n).unwrap()
}

/// What the dice have in stock.
#[derive(Debug)]
pub(super) struct History {
    dice: Dice,
    claims: u128,
    /// Postings that were offered, whatever became of them.
    pub(super) postings: Vec<PostingId>,
}

impl History {
    pub(super) fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed), claims: 0, postings: Vec::new() }
    }

    /// What every history begins with.
    pub(super) fn beginning() -> Vec<HistoryStep> {
        let [first, second] = wallets();
        let wallets = [(first, "first"), (second, "second")]
            .map(|(wallet, name)| HistoryStep::Create { wallet, name: name.to_owned() });
        let keys = payers().map(|(key, wallet)| HistoryStep::Issue {
            key,
            wallet,
            name: format!("of {key}"),
        });
        let beat = |node| HistoryStep::Beat { node, span: LEASE, entry: LeaseMode::Take };
        wallets.into_iter().chain(keys).chain([beat(0), beat(2)]).collect()
    }

    /// Every operation that there may be.
    pub(super) fn operations() -> Vec<OperationId> {
        let of = |key| (0..KEYS).map(move |n| OperationId::of(key, sample::request_key(n)));
        api_keys().into_iter().flat_map(of).collect()
    }

    /// The next step.
    pub(super) fn next(&mut self, memory: &MemoryJournal) -> HistoryStep {
        let span = |is_long| if is_long { LEASE } else { Duration::ZERO };
        match self.dice.roll(40) {
            0..10 => self.claim(memory),
            10..23 => self.event(memory),
            23..25 => HistoryStep::Again(self.at(6)),
            25..27 => HistoryStep::Bent(self.at(6)),
            27..32 => self.post(memory),
            32..34 => {
                let entries = [LeaseMode::Take, LeaseMode::TakeExpired, LeaseMode::Renew];
                let (node, entry) = (self.at(3), self.pick(&entries));
                HistoryStep::Beat { node, span: span(self.dice.roll(4) > 0), entry }
            }
            34 => HistoryStep::Leave(self.at(3)),
            35 => HistoryStep::Due(self.pick(&[0, 2, 100])),
            36 => HistoryStep::LeasedTo(self.at(3)),
            37 => {
                HistoryStep::Purge { age: span(self.dice.roll(2) > 0), limit: self.pick(&[0, 100]) }
            }
            38 => match self.dice.roll(3) {
                0 => HistoryStep::Create { wallet: self.wallet(), name: self.name() },
                1 => HistoryStep::Issue {
                    key: ApiKeyId::from_u128(u128::from(14 + self.dice.roll(3))),
                    wallet: self.wallet(),
                    name: self.name(),
                },
                _two => {
                    HistoryStep::Revoke(ApiKeyId::from_u128(u128::from(12 + self.dice.roll(6))))
                }
            },
            _last => {
                let n = 1 + self.at(2);
                HistoryStep::Pin((0..n).map(|_| self.price()).collect())
            }
        }
    }

    fn claim(&mut self, memory: &MemoryJournal) -> HistoryStep {
        let (mut api_key, wallet) = self.pick(&payers());
        let mut request_key = sample::request_key(self.dice.roll(KEYS));
        // What is open is rare, and is to run again.
        let open = memory.operations().into_iter().find(|row| row.phase == Phase::Open);
        if let Some(open) = open.filter(|_open| self.dice.roll(2) == 0) {
            (api_key, request_key) = (open.api_key, open.request_key);
        }
        let bound = memory.operation(OperationId::of(api_key, request_key));
        // A bound key is mostly claimed by the task that has it, or by a new one.
        let claim = match bound {
            Some(row) if self.dice.roll(4) == 0 => row.owner.claim,
            Some(_) | None => self.claim_id(),
        };
        let is_lost = self.dice.roll(20) == 0;
        let missing = WalletId::from_u128(9);
        let time = if self.dice.roll(5) == 0 { Duration::ZERO } else { LEASE };
        let price = if self.dice.roll(4) == 0 { self.price() } else { sample::price() };
        let claim = ClaimOf {
            api_key,
            request_key,
            request: if self.dice.roll(8) == 0 { "another" } else { "the one" },
            wallet: if is_lost { missing } else { wallet },
            claim,
            node: self.at(3),
            hold: i64::try_from(self.dice.roll(200)).unwrap(),
            tokens: self.dice.roll(200),
            limits: self.limits(),
            time,
            price,
        };
        let over = self.pick(&[Over::Vacant, Over::Row, Over::Row, Over::Row, Over::Stale]);
        HistoryStep::Claim { claim: Box::new(claim), over }
    }

    fn event(&mut self, memory: &MemoryJournal) -> HistoryStep {
        let some = self.at(36);
        // Most of what happens, happens to what runs.
        let active = memory.operations().into_iter().filter(|row| row.phase.holds());
        let active: Vec<_> = active.map(|row| row.id).collect();
        let any = History::operations();
        let operation = match active.get(some % active.len().max(1)) {
            Some(id) if self.dice.roll(5) > 0 => *id,
            Some(_) | None => self.pick(&any),
        };
        let row = memory.operation(operation);
        let claim = match &row {
            Some(row) if self.dice.roll(8) > 0 => row.owner.claim,
            Some(_) | None => self.claim_id(),
        };
        let is_recorded = row.is_some_and(|row| matches!(row.phase, Phase::Recorded(_)));
        let what = if is_recorded && self.dice.roll(2) == 0 { What::Settle } else { self.what() };
        let over = self.pick(&[Over::Row, Over::Row, Over::Row, Over::Row, Over::Stale]);
        HistoryStep::Event { operation, what, claim, over }
    }

    fn what(&mut self) -> What {
        let (input, output) = (self.dice.roll(150), self.dice.roll(60));
        match self.dice.roll(12) {
            0..3 => {
                let attempts = if input % 2 == 0 { sample::attempts() } else { Arc::default() };
                What::Finish { input, output, attempts }
            }
            3..5 => What::Record { input, output },
            5 => What::AskCancel,
            6..8 => What::NotRun,
            8 => {
                What::Refuse(self.pick(&[ProviderRefusal::Request, ProviderRefusal::ContextLength]))
            }
            9 => What::GiveUp,
            10 => What::Reap(self.pick(&[None, Some(Duration::ZERO)])),
            _last => What::Disown(self.pick(&[SendStatus::Never, SendStatus::Perhaps])),
        }
    }

    fn post(&mut self, memory: &MemoryJournal) -> HistoryStep {
        let is_again = self.dice.roll(6) == 0;
        let earlier = self.at(self.postings.len().max(1));
        let id = match self.postings.get(earlier) {
            Some(id) if is_again => *id,
            Some(_) | None => PostingId::from_u128(self.next_number()),
        };
        self.postings.push(id);
        let wallet = if self.dice.roll(12) == 0 { self.wallet() } else { self.pick(&wallets()) };
        let paid = |row: &holdfast_domain::Operation| row.phase.usage().is_some();
        let charged: Vec<_> = memory.operations().into_iter().filter(paid).collect();
        let some = self.at(charged.len().max(1));
        let amount = i64::try_from(self.dice.roll(400)).unwrap();
        let (wallet, kind, amount) = match (self.dice.roll(6), charged.get(some)) {
            (0..2, Some(row)) => (row.wallet, PostingKind::Refund(row.id), amount / 4),
            (2, _) => {
                let of_nobody = self.pick(&History::operations());
                (wallet, PostingKind::Refund(of_nobody), amount)
            }
            (3, _) => (wallet, PostingKind::Adjustment("drift, “quoted”".to_owned()), 100 - amount),
            (4, _) => (wallet, PostingKind::Deposit, amount - 20),
            (_, _) => (wallet, PostingKind::Deposit, amount),
        };
        // What is held needs room as well.
        let beside_available = memory
            .wallet(wallet)
            .filter(|wallet| wallet.held.get() > 0)
            .map(|wallet| i64::MAX - wallet.available.get());
        let amount = match (self.dice.roll(40), beside_available) {
            (0, _) => i64::MAX,
            (1..3, Some(amount)) => amount,
            (_, _) => amount,
        };
        HistoryStep::Post { id, wallet, kind, amount }
    }

    fn limits(&mut self) -> Limits {
        let spend = |window| Some(SpendLimit { micros: Micros::new(150), window });
        let window = self.pick(&[SpendWindow::Total, SpendWindow::Day, SpendWindow::Month]);
        let none = Limits::default();
        match self.dice.roll(10) {
            0 => Limits { requests_per_minute: Some(2), ..none },
            1 => Limits { tokens_per_minute: Some(150), ..none },
            2 => Limits { concurrency: Some(1), ..none },
            3 | 7 => Limits { spend: spend(window), ..none },
            4..7 => Limits {
                requests_per_minute: Some(8),
                tokens_per_minute: Some(900),
                concurrency: Some(3),
                spend: spend(window),
            },
            _none => none,
        }
    }

    /// Two versions, one with tiers, sometimes with other numbers than before.
    fn price(&mut self) -> PriceVersion {
        let from = self.pick(&["2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"]);
        let is_flat = from.starts_with("2026-01");
        match (self.dice.roll(10), is_flat) {
            (0, _) => sample::priced(from, 7),
            (_, true) => sample::priced(from, 1_000_000),
            (_, false) => sample::tiered(from, 1_300_001),
        }
    }

    /// One that exists, or not, or not yet.
    fn wallet(&mut self) -> WalletId {
        WalletId::from_u128(u128::from(1 + self.dice.roll(4)))
    }

    fn name(&mut self) -> String {
        self.pick(&["first", "third", "fourth", "fifth"]).to_owned()
    }

    fn claim_id(&mut self) -> ClaimId {
        ClaimId::from_u128(self.next_number())
    }

    fn next_number(&mut self) -> u128 {
        self.claims += 1;
        1_000 + self.claims
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of.get(self.at(of.len())).unwrap().clone()
    }

    fn at(&mut self, sides: usize) -> usize {
        let sides = u64::try_from(sides).unwrap();
        usize::try_from(self.dice.roll(sides)).unwrap()
    }
}
