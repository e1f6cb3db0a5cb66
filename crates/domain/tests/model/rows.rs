//! Between the model's small rows and the domain's own types: what is explored is small, what is
//! judged is what production judges. Nothing here decides.

use std::time::Duration;

use holdfast_domain::billing::UsageRecord;
use holdfast_domain::limits::{Limits, Reservation, SpendLimit, SpendWindow};
use holdfast_domain::model::{FingerprintTerms, PublicModelId};
use holdfast_domain::operation::{
    Binding, Claim, Finish, Lease, Node, Operation, Owner, Phase, ProviderRefusal, SealedResult,
    Version,
};
use holdfast_domain::price::{PriceVersion, PriceVersionId, UnitPrices};
use holdfast_domain::secret::{BodyDigest, Fingerprint, ServerSecretId};
use holdfast_domain::usage::{MeterKind, MeterReading, Meters, MetersSource, UsageReasons};
use holdfast_domain::{
    ApiKeyId, ClaimId, CredentialId, Currency, Event, Incarnation, Micros, NodeName, OperationId,
    RequestKey, Snapshot, Timestamp, WalletId,
};

use crate::configuration::Configuration;
use crate::world::{Content, INSTANTS, Lease as LeaseState, Request, Row, Stand, Word, World};

/// The beginning of a minute.
const MINUTE: i64 = 9_960;
/// The first instant of the database's clock. But for the few others what it is compared with moves.
pub(crate) const NOW: Timestamp = at_second(MINUTE + 59);
pub(crate) const GRACE: Duration = Duration::from_secs(60);
const TIME: Duration = Duration::from_secs(660);
const OVERDUE: Timestamp = at_second(MINUTE + 58);
const LEASED_UNTIL: Timestamp = at_second(MINUTE + 90);
/// What every claim reserves, where tokens are limited.
pub(crate) const TOKENS: u8 = 2;
const API_KEY: ApiKeyId = ApiKeyId::from_u128(1);
const WALLET: WalletId = WalletId::from_u128(2);
const LIMITS: Limits = Limits {
    requests_per_minute: None,
    tokens_per_minute: None,
    concurrency: Some(9),
    spend: Some(SpendLimit { micros: Micros::new(99), window: SpendWindow::Total }),
};

/// The database's clock at one of the model's instants.
pub(crate) fn instant(n: u8) -> Timestamp {
    at_second(MINUTE + i64::from(INSTANTS[usize::from(n)]))
}

const fn at_second(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000)
}

/// What the rows have in common, made once.
pub(crate) struct Rows {
    model: PublicModelId,
    price: PriceVersion,
    nodes: Vec<Node>,
    keys: Vec<RequestKey>,
    ids: Vec<OperationId>,
    limits: Limits,
}

impl Rows {
    pub(crate) fn new(configuration: &Configuration) -> Self {
        let model = PublicModelId::try_from("holdfast/model").unwrap();
        let currency: Currency = "USD".parse().unwrap();
        // A micro for a token of output: a charge is a number of tokens.
        let rate = |kind| if kind == MeterKind::Output { 1_000_000 } else { 0 };
        let price = PriceVersion {
            id: PriceVersionId::new(&model, currency, "2026-01-01T00:00:00Z"),
            currency,
            tariff: UnitPrices::from_fn(rate).unwrap().into(),
        };
        let node = |(incarnation, name): (u128, &u8)| Node {
            name: NodeName::try_from(format!("node-{name}").as_str()).unwrap(),
            incarnation: Incarnation::from_u128(incarnation),
        };
        let nodes = (0..).zip(&configuration.processes).map(node).collect();
        let key = |n: u8| format!("00000000-0000-4000-8000-00000000000{n}").parse().unwrap();
        let keys: Vec<RequestKey> = (0..2).map(key).collect();
        let ids = keys.iter().map(|key| OperationId::of(API_KEY, *key)).collect();
        let requests_per_minute = configuration.requests_per_minute.map(u64::from);
        let tokens_per_minute = requests_per_minute.map(|requests| requests * u64::from(TOKENS));
        let limits = Limits { requests_per_minute, tokens_per_minute, ..LIMITS };
        Self { model, price, nodes, keys, ids, limits }
    }

    /// What a read of the store shows. `row` may be older than the world.
    pub(crate) fn snapshot(
        &self,
        world: &World,
        names: &[u8],
        operation: u8,
        row: Option<&Row>,
    ) -> Snapshot {
        let now = instant(world.clock);
        let Some(row) = row else { return Snapshot::vacant(now) };
        let name = names[usize::from(row.process)];
        let lease = world.leases[usize::from(name)].map(|found| Lease {
            node: self.nodes[usize::from(found.process)].clone(),
            ends_at: match found.lease {
                LeaseState::Live => LEASED_UNTIL,
                LeaseState::Ended => at_second(MINUTE + 50),
                LeaseState::PastGrace => at_second(MINUTE - 90),
            },
        });
        let operation = Some(self.operation(operation, row));
        let result = row.content.map(sealed);
        Snapshot { operation, result, lease, now }
    }

    /// The domain's operation of a row.
    pub(crate) fn operation(&self, operation: u8, row: &Row) -> Operation {
        let at = usize::from(operation);
        let hold = Micros::new(i64::from(row.hold));
        let usage = |meter: u8| UsageRecord::of(metered(meter), &self.price, hold);
        let phase = match row.stand {
            Stand::Leased => Phase::Leased,
            Stand::Recorded(meter) => Phase::Recorded(usage(meter)),
            Stand::Open => Phase::Open,
            Stand::Completed(meter) => Phase::Completed { usage: usage(meter), finished_at: NOW },
            Stand::Refused => {
                Phase::Refused { refusal: ProviderRefusal::Request, finished_at: NOW }
            }
            Stand::Abandoned | Stand::Cancelled => Phase::Abandoned { finished_at: NOW },
        };
        let reserved = Reservation::for_limits(&self.limits, u64::from(TOKENS));
        Operation {
            id: self.ids[at],
            api_key: API_KEY,
            request_key: self.keys[at],
            wallet: WALLET,
            binding: binding(row.request),
            model: self.model.clone(),
            alias: None,
            price: self.price.clone(),
            generation: u32::from(row.generation),
            hold,
            reserved: if row.stand == Stand::Cancelled {
                reserved.as_cancelled_open()
            } else {
                reserved
            },
            owner: self.owner(row.claim, row.process),
            created_at: NOW,
            admitted_at: instant(row.admitted),
            deadline: if row.overdue { OVERDUE } else { instant(row.admitted).after(TIME) },
            cancel_asked: row.cancel_asked,
            attempts: [].into(),
            phase,
            version: Version::new(u32::from(row.version)),
        }
    }

    /// The row of a domain's operation. What it leaves out never differs: the store checks that.
    pub(crate) fn row(&self, operation: &Operation, content: Option<Content>) -> Row {
        let meter = |usage: &UsageRecord| small(usage.metered.meters.count(MeterKind::Output));
        let stand = match &operation.phase {
            Phase::Leased => Stand::Leased,
            Phase::Recorded(usage) => Stand::Recorded(meter(usage)),
            Phase::Open => Stand::Open,
            Phase::Completed { usage, .. } => Stand::Completed(meter(usage)),
            Phase::Refused { .. } => Stand::Refused,
            Phase::Abandoned { .. } if operation.is_cancelled_open() => Stand::Cancelled,
            Phase::Abandoned { .. } => Stand::Abandoned,
        };
        let process = self.nodes.iter().position(|node| *node == operation.owner.node).unwrap();
        let admitted = (0..).take(INSTANTS.len()).find(|n| instant(*n) == operation.admitted_at);
        Row {
            stand,
            generation: small(u64::from(operation.generation)),
            claim: operation.owner.claim.to_bytes()[15],
            process: u8::try_from(process).unwrap(),
            hold: u8::try_from(operation.hold.get()).unwrap(),
            admitted: admitted.unwrap(),
            overdue: operation.deadline < NOW,
            cancel_asked: operation.cancel_asked,
            request: if operation.binding == binding(Request::This) {
                Request::This
            } else {
                Request::Another
            },
            version: small(u64::from(operation.version.get())),
            content,
        }
    }

    /// What a task's word is to the domain. `claim`: the claim id that it speaks for.
    pub(crate) fn event(&self, configuration: &Configuration, task: u8, word: Word) -> Event {
        let claim = ClaimId::from_u128(u128::from(task));
        let spec = &configuration.tasks[usize::from(task)];
        let content = Content { credential: spec.credential, author: task };
        let attempts = [].into();
        let finish = || Finish {
            claim,
            metered: metered(spec.metered),
            result: sealed(content),
            attempts: [].into(),
        };
        match word {
            Word::Claim => Event::Claim(Box::new(self.claim(configuration, task))),
            Word::Finish => Event::Finish(finish()),
            Word::Record => Event::Record(finish()),
            Word::NotRun => Event::NotRun { claim, attempts },
            Word::Refuse => {
                let refusal = ProviderRefusal::Request;
                Event::Refuse { claim, refusal, result: sealed(content), attempts }
            }
            Word::GiveUp => Event::GiveUp { claim, attempts },
        }
    }

    /// A process believes its own lease for ever: a lease carries no safety.
    fn claim(&self, configuration: &Configuration, task: u8) -> Claim {
        let spec = &configuration.tasks[usize::from(task)];
        let owner = self.owner(task, spec.process);
        Claim {
            api_key: API_KEY,
            request_key: self.keys[usize::from(spec.operation)],
            wallet: WALLET,
            binding: binding(spec.request),
            model: self.model.clone(),
            alias: None,
            price: self.price.clone(),
            hold: Micros::new(i64::from(spec.hold)),
            tokens: u64::from(TOKENS),
            limits: self.limits,
            limits_revision: None,
            unknown_until: None,
            time: TIME,
            lease: Lease { node: owner.node.clone(), ends_at: LEASED_UNTIL },
            owner,
        }
    }

    fn owner(&self, task: u8, process: u8) -> Owner {
        let node = self.nodes[usize::from(process)].clone();
        Owner { claim: ClaimId::from_u128(u128::from(task)), node }
    }
}

/// An operation without the moments that no rule looks at: a row does not keep them.
pub(crate) fn timeless(mut operation: Operation) -> Operation {
    operation.created_at = NOW;
    match &mut operation.phase {
        Phase::Completed { finished_at, .. }
        | Phase::Refused { finished_at, .. }
        | Phase::Abandoned { finished_at } => *finished_at = NOW,
        Phase::Leased | Phase::Recorded(_) | Phase::Open => {}
    }
    operation
}

/// The content of a sealed result.
pub(crate) fn content(result: &SealedResult) -> Content {
    Content { credential: result.credential.to_bytes()[15], author: result.sealed[0] }
}

fn sealed(content: Content) -> SealedResult {
    SealedResult {
        credential: CredentialId::from_u128(u128::from(content.credential)),
        format: 1,
        nonce: [0; 12],
        sealed: [content.author].into(),
        withheld: 0,
    }
}

fn binding(request: Request) -> Binding {
    let byte = match request {
        Request::This => 1,
        Request::Another => 2,
    };
    let server_secret = ServerSecretId::from_bytes([0; 8]);
    Binding {
        terms: FingerprintTerms { server_secret, fingerprint_version: 1, contract: 1 },
        fingerprint: Fingerprint::from_bytes([byte; 32]),
        body_digest: BodyDigest::from_bytes([byte; 32]),
    }
}

fn metered(tokens: u8) -> MeterReading {
    let meters = Meters::text(0, u64::from(tokens)).unwrap();
    MeterReading {
        meters,
        source: MetersSource::Reported,
        reasons: UsageReasons::NONE,
        provider_cost: None,
    }
}

fn small(number: u64) -> u8 {
    u8::try_from(number).unwrap()
}
