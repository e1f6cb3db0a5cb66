//! The life of one paid operation: its phases, who owns it, and what it is bound to.
//!
//! [`decide`] is the only place where an operation changes; [`situation`] says in the specification's
//! words where one stands. No row made of this can hold a prompt or an answer: this module does not
//! know requests.

mod change;
mod decide;
mod event;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

pub use self::change::{Admission, Change, Effect, GenerationStart, Receipt, Transition};
pub use self::decide::{Refusal, decide};
pub use self::event::{Claim, Disown, Event, Finish, SendStatus};
use crate::limits::{CounterMove, Reservation};
use crate::model::{FingerprintTerms, PublicModelId};
use crate::price::PriceVersion;
use crate::secret::{BodyDigest, Fingerprint};
use crate::usage::UsageRecord;
use crate::{
    ApiKeyId, ClaimId, CredentialId, Incarnation, Micros, NodeName, OperationId, RequestKey,
    Timestamp, WalletId,
};

/// An operation as its row tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Derived from the API key and the request key.
    pub id: OperationId,
    /// The scope of the request key.
    pub api_key: ApiKeyId,
    /// The caller's `Idempotency-Key`.
    pub request_key: RequestKey,
    /// Who pays.
    pub wallet: WalletId,
    /// The request that the key is bound to.
    pub binding: Binding,
    /// The public model id that was asked for.
    pub model: PublicModelId,
    /// The prices in force at the admission of this generation.
    pub price: PriceVersion,
    /// Number of its hold, from one.
    pub generation: u32,
    /// What this generation reserves or reserved.
    pub hold: Micros,
    /// What this generation reserves or reserved of its API key's limits.
    pub reserved: Reservation,
    /// The last task that claimed it.
    pub owner: Owner,
    /// When the key was bound.
    pub created_at: Timestamp,
    /// When this generation was admitted.
    pub admitted_at: Timestamp,
    /// When whoever meets it may reap it, however alive its node looks.
    pub deadline: Timestamp,
    /// Whether its caller asked to have it cancelled.
    pub cancel_asked: bool,
    /// What was tried in the last generation that ended with its owner's word.
    pub attempts: Arc<[Attempt]>,
    /// Where it stands.
    pub phase: Phase,
    /// One more at every change.
    pub version: Version,
}

/// The longest that an open operation waits for its next generation.
const REOPEN_WAIT_MAX: Duration = Duration::from_secs(60);

impl Operation {
    /// How long until its next generation may begin, once it is open. After the first two at once: a
    /// client's own few retries are not held up. Then each waits twice as long as the one before it,
    /// 2 s at first and 60 s at most, from the admission of the last: every generation writes rows that
    /// stay for ever, whoever retries how often.
    #[must_use]
    pub fn reopens_in(&self, now: Timestamp) -> Duration {
        let wait = match 1_u64.checked_shl(self.generation.saturating_sub(2)) {
            Some(0 | 1) => Duration::ZERO,
            Some(seconds) => Duration::from_secs(seconds).min(REOPEN_WAIT_MAX),
            None => REOPEN_WAIT_MAX,
        };
        // A clock that was set back may be before the admission.
        self.admitted_at.after(wait).since(now).min(wait)
    }

    /// What its ending corrects of what this generation has reserved of its API key's limits; nothing
    /// until it ends. An abandoned row does not tell whether anything was sent: it is taken for sent.
    #[must_use]
    pub fn corrections(&self) -> Vec<CounterMove> {
        match &self.phase {
            Phase::Leased | Phase::Recorded(_) => Vec::new(),
            Phase::Completed { usage, .. } => self.settlement_moves(usage),
            Phase::Open => self.reserved.not_run_moves(self.hold, self.generation),
            Phase::Refused { .. } | Phase::Abandoned { .. } => {
                self.reserved.release_moves(self.hold)
            }
        }
    }

    /// An upper bound of what its run may have cost the operator without a charge, where it was refused
    /// or abandoned: its hold. Reported, never charged.
    #[must_use]
    pub const fn exposure(&self) -> Option<Micros> {
        match self.phase {
            Phase::Refused { .. } | Phase::Abandoned { .. } => Some(self.hold),
            Phase::Leased | Phase::Recorded(_) | Phase::Open | Phase::Completed { .. } => None,
        }
    }

    /// What a settlement by this usage corrects.
    fn settlement_moves(&self, usage: &UsageRecord) -> Vec<CounterMove> {
        let meters = &usage.metered.meters;
        let tokens = meters.prompt_tokens().saturating_add(meters.completion_tokens());
        self.reserved.settlement_moves(self.hold, usage.charge, tokens)
    }
}

/// Where an operation stands. The hold is active in `Leased` and `Recorded`, captured in `Completed`,
/// released in the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// One task owns it; the provider may have been called.
    Leased,
    /// The result is durable and its settlement was refused or interrupted. Its only exit is `Completed`.
    Recorded(UsageRecord),
    /// Proven not run: the same key and request may run again.
    Open,
    /// Settled; replayable.
    Completed {
        /// The billing fact.
        usage: UsageRecord,
        /// When it was settled.
        finished_at: Timestamp,
    },
    /// The provider's definitive refusal; replayable.
    Refused {
        /// What was refused.
        refusal: ProviderRefusal,
        /// When.
        finished_at: Timestamp,
    },
    /// Outcome unknown for good; not charged.
    Abandoned {
        /// When.
        finished_at: Timestamp,
    },
}

impl Phase {
    /// The name in rows and answers.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Leased => "leased",
            Self::Recorded(_) => "recorded",
            Self::Open => "open",
            Self::Completed { .. } => "completed",
            Self::Refused { .. } => "refused",
            Self::Abandoned { .. } => "abandoned",
        }
    }

    /// Whether the hold still reserves funds.
    #[must_use]
    pub const fn holds(&self) -> bool {
        matches!(self, Self::Leased | Self::Recorded(_))
    }

    /// The billing fact, where there is one.
    #[must_use]
    pub const fn usage(&self) -> Option<&UsageRecord> {
        match self {
            Self::Recorded(usage) | Self::Completed { usage, .. } => Some(usage),
            Self::Leased | Self::Open | Self::Refused { .. } | Self::Abandoned { .. } => None,
        }
    }

    /// What the caller pays: nothing for what was not run, was refused or has an unknown outcome.
    /// `None` as long as it runs.
    #[must_use]
    pub const fn charge(&self) -> Option<Micros> {
        match self {
            Self::Recorded(usage) | Self::Completed { usage, .. } => Some(usage.charge),
            Self::Open | Self::Refused { .. } | Self::Abandoned { .. } => Some(Micros::ZERO),
            Self::Leased => None,
        }
    }

    /// When it ended, where it has.
    #[must_use]
    pub const fn finished_at(&self) -> Option<Timestamp> {
        match self {
            Self::Completed { finished_at, .. }
            | Self::Refused { finished_at, .. }
            | Self::Abandoned { finished_at } => Some(*finished_at),
            Self::Leased | Self::Recorded(_) | Self::Open => None,
        }
    }
}

/// What a provider definitively refused. Its own words are not kept: they may quote the prompt or
/// name the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderRefusal {
    /// Something about the request, or its content.
    Request,
    /// The prompt does not fit into the model's context.
    ContextLength,
}

impl ProviderRefusal {
    /// The name in rows.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::ContextLength => "context_length",
        }
    }
}

/// Counts the changes of a row, from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u32);

impl Version {
    /// The version of a new row.
    pub const FIRST: Self = Self(1);

    /// The version with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The version after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// The request that a key is bound to.
///
/// ```
/// use holdfast_testkit::sample;
///
/// let bound = sample::binding("hello", sample::terms());
/// assert!(bound.is_same_request(&sample::binding("hello", sample::terms())));
/// assert!(!bound.is_same_request(&sample::binding("goodbye", sample::terms())));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// What the two hashes were computed under.
    pub terms: FingerprintTerms,
    /// Keyed hash of the normalized request and the contract.
    pub fingerprint: Fingerprint,
    /// Keyed hash of the raw body.
    pub body_digest: BodyDigest,
}

impl Binding {
    /// Whether both stand for one request: the same bytes, else the same fingerprint under the same
    /// terms.
    #[must_use]
    pub fn is_same_request(&self, other: &Self) -> bool {
        let same_body = self.terms.server_secret == other.terms.server_secret
            && self.body_digest == other.body_digest;
        same_body || (self.terms == other.terms && self.fingerprint == other.fingerprint)
    }
}

/// Whose an operation is: the claim id decides, the node says through whom it is leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Made by the task that claimed it.
    pub claim: ClaimId,
    /// The process of that task.
    pub node: Node,
}

/// One running process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Its configured or made-up name.
    pub name: NodeName,
    /// Which of the processes that ever had the name.
    pub incarnation: Incarnation,
}

/// The row of a node name: who has the name, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Who has the name.
    pub node: Node,
    /// By the database's clock.
    pub ends_at: Timestamp,
}

impl Lease {
    /// Whether `node` still leases its operations through this row.
    #[must_use]
    pub fn is_live(&self, node: &Node, now: Timestamp) -> bool {
        self.node == *node && now < self.ends_at
    }
}

/// A result as it reaches storage: sealed under a key that only its caller's credential yields.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedResult {
    /// The credential that opens it.
    pub credential: CredentialId,
    /// The layout of what is sealed.
    pub format: u8,
    /// Random, never reused under one key.
    pub nonce: [u8; 12],
    /// Ciphertext and tag.
    pub sealed: Arc<[u8]>,
    /// Bytes of it that a load left where they are: `sealed` is empty then, and
    /// [`Journal::result`](crate::Journal::result) reads them. 0: it is all here.
    pub withheld: usize,
}

impl std::fmt::Debug for SealedResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.sealed.len().max(self.withheld);
        write!(f, "SealedResult({bytes} bytes for {})", self.credential)
    }
}

/// One try at a route, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The configured provider and its model.
    pub route: Arc<str>,
    /// What came of it: `finished`, or the label of a failure.
    pub class: Cow<'static, str>,
    /// How long it took.
    pub latency: Duration,
    /// Whether the provider may bill it.
    pub may_be_billed: bool,
    /// Why its answer could not be read, in words of ours; nothing where the class says it all.
    pub reason: Option<Cow<'static, str>>,
}

/// What one read of the store shows: everything that [`decide`] may look at.
///
/// ```
/// use holdfast_domain::{Event, Refusal, Snapshot, decide};
/// use holdfast_testkit::sample;
///
/// // Nothing stands in the way of a claim where the key is not bound; there is nothing to settle.
/// let vacant = Snapshot::vacant(sample::NOW);
/// assert!(decide(&vacant, Event::Claim(Box::new(sample::claim().build()))).is_ok());
/// assert_eq!(decide(&vacant, Event::Settle).unwrap_err(), Refusal::Missing);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The row; `None` when the key is not bound.
    pub operation: Option<Operation>,
    /// The sealed content, while it is kept.
    pub result: Option<SealedResult>,
    /// The row of the owner's node name.
    pub lease: Option<Lease>,
    /// The database's clock.
    pub now: Timestamp,
}

impl Snapshot {
    /// What a claim is judged over before anything was read: no row.
    #[must_use]
    pub const fn vacant(now: Timestamp) -> Self {
        Self { operation: None, result: None, lease: None, now }
    }
}

/// Where an operation stands, in the specification's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Situation {
    /// Proven not run.
    NotStarted,
    /// Its owner is alive.
    InProgress,
    /// Its owner may be gone, or its settlement is missing: it wants to be reconciled.
    Stale,
    /// It has its final answer.
    Completed,
}

impl Situation {
    /// The name in answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::InProgress => "in_progress",
            Self::Stale => "stale",
            Self::Completed => "completed",
        }
    }
}

/// Where an operation stands, given the row of its node's name. Computed, never stored.
#[must_use]
pub fn situation(operation: &Operation, lease: Option<&Lease>, now: Timestamp) -> Situation {
    match &operation.phase {
        Phase::Open => Situation::NotStarted,
        Phase::Leased => {
            if lease.is_some_and(|lease| lease.is_live(&operation.owner.node, now)) {
                Situation::InProgress
            } else {
                Situation::Stale
            }
        }
        Phase::Recorded(_) => Situation::Stale,
        Phase::Completed { .. } | Phase::Refused { .. } | Phase::Abandoned { .. } => {
            Situation::Completed
        }
    }
}
