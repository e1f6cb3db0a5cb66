//! The operation: one API key and one request key, one run, at most one charge.
//!
//! ```text
//! T1 ─▶ leased ─┬─ T3 ─────▶ open        not run; hold released; T7 leases it again
//!               ├─ T2 ─────▶ completed   hold captured; replayable
//!               ├─ T2a ────▶ recorded    result kept, hold active; its only exit: T2b ─▶ completed
//!               ├─ T4 ─────▶ refused     hold released; replayable
//!               └─ T5, T6 ─▶ abandoned   hold released; outcome unknown for good
//!    open ───── T5′ ────▶ abandoned   cancelled without an active run: it did not run, and never will
//! ```
//!
//! The numbers are those of the table of transitions in `docs/explanation/operation-lifecycle.md`. [`decide`] is the only place in
//! which an operation changes. Safety rests on three mechanisms: the compare-and-set of version and claim
//! ([`Transition::matches_row`]), the claim id, and the permanent ids. Leases and clocks carry liveness alone,
//! so [`situation`] computes who looks dead and no row stores it.
//!
//! Never: a prompt or an answer in a row (this module does not know requests; a result is sealed
//! before it gets here), and never a way back from an ending.

mod change;
mod decide;
mod event;
mod status;

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

pub use self::change::{Admission, Effect, GenerationStart, Receipt, Transition};
pub use self::decide::{Refusal, decide};
pub use self::event::{Claim, ClaimTerms, Disown, Event, Finish, SendStatus};
pub use self::status::OperationStatus;
use crate::billing::UsageRecord;
use crate::debug_as;
use crate::limits::{CounterMove, Reservation};
use crate::model::{FingerprintTerms, ModelAlias, PublicModelId};
use crate::price::PriceVersion;
use crate::secret::{BodyDigest, Fingerprint};
use crate::{
    ApiKeyId, ClaimId, CredentialId, Incarnation, Micros, NodeName, OperationId, RequestKey,
    Timestamp, WalletId,
};

/// Row of an operation. Amounts are in the currency of `price`, moments are the database's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Function of the API key and the request key: [`OperationId::of`].
    pub id: OperationId,
    /// The scope of the request key.
    pub api_key: ApiKeyId,
    /// The caller's `Idempotency-Key`.
    pub request_key: RequestKey,
    /// Wallet that pays.
    pub wallet: WalletId,
    /// The request that the key is bound to.
    pub binding: Binding,
    /// The requested public model id.
    pub model: PublicModelId,
    /// Alias that the binding request named the model by, as its answer does; `None` for the id.
    pub alias: Option<ModelAlias>,
    /// The prices in force at the admission of this generation.
    pub price: PriceVersion,
    /// Number of its hold: 1 at first, one more at every reopening (T7).
    pub generation: u32,
    /// Amount that this generation holds, or held until its ending.
    pub hold: Micros,
    /// Share of its API key's limits that this generation reserved.
    pub reserved: Reservation,
    /// Task that claimed this generation; it stays on the row after the ending.
    pub owner: Owner,
    /// Moment of T1, which bound the key.
    pub created_at: Timestamp,
    /// Moment of this generation's T1 or T7; its counters move in the windows of this moment.
    pub admitted_at: Timestamp,
    /// Moment after which any process may reap it, even if its node looks alive.
    pub deadline: Timestamp,
    /// Set once its caller requested its cancellation (T2c); never unset.
    pub cancel_asked: bool,
    /// Attempts as the owner reported them with its ending; empty while leased and after a reap.
    pub attempts: Arc<[Attempt]>,
    /// Phase: decides which events may change it.
    pub phase: Phase,
    /// Number of the row's changes: what the next change expects to find.
    pub version: Version,
}

/// The longest that an open operation waits for its next generation.
const REOPEN_WAIT_MAX: Duration = Duration::from_secs(60);

impl Operation {
    /// Name of the model as the binding request wrote it: an answer's `model`.
    #[must_use]
    pub fn written_model(&self) -> &str {
        self.alias.as_ref().map_or_else(|| self.model.as_str(), ModelAlias::as_str)
    }

    /// Time until the next generation may begin, once it is open: zero after generations 1 and 2, so that a
    /// client's own few retries are not held up; then 2^(generation − 2) s, 60 s at most, from the admission of
    /// the last. Every generation writes rows that stay for ever, so retries are bounded for every client.
    #[must_use]
    pub fn reopens_in(&self, now: Timestamp) -> Duration {
        // Generations 1 and 2 both shift by 0, which is 1 here and no wait. Generation 66 and later
        // would shift all 64 bits out: `None`, the longest wait.
        let wait = match 1_u64.checked_shl(self.generation.saturating_sub(2)) {
            Some(0 | 1) => Duration::ZERO,
            Some(seconds) => Duration::from_secs(seconds).min(REOPEN_WAIT_MAX),
            None => REOPEN_WAIT_MAX,
        };
        // A clock that was set back may be before the admission.
        self.admitted_at.after(wait).since(now).min(wait)
    }

    /// Corrections that the ending makes to the reservations of this generation in its API key's limits; empty
    /// until it ends. An abandoned row does not show whether the request was sent: it is taken for sent.
    #[must_use]
    pub fn corrections(&self) -> Vec<CounterMove> {
        match &self.phase {
            Phase::Leased | Phase::Recorded(_) => Vec::new(),
            Phase::Completed { usage, .. } => self.settlement_moves(usage),
            Phase::Open => self.reserved.not_run_moves(self.hold, self.generation),
            Phase::Abandoned { .. } if self.is_cancelled_open() => {
                self.reserved.not_run_moves(self.hold, self.generation)
            }
            Phase::Refused { .. } | Phase::Abandoned { .. } => {
                self.reserved.release_moves(self.hold)
            }
        }
    }

    /// Upper bound of what the run may have cost the operator without a charge: the hold of a
    /// refused or abandoned operation, `None` for any other and for one that was cancelled while it
    /// was open. Reported, never charged.
    #[must_use]
    pub const fn exposure(&self) -> Option<Micros> {
        match self.phase {
            Phase::Abandoned { .. } if self.is_cancelled_open() => None,
            Phase::Refused { .. } | Phase::Abandoned { .. } => Some(self.hold),
            Phase::Leased | Phase::Recorded(_) | Phase::Open | Phase::Completed { .. } => None,
        }
    }

    /// True for an operation that was cancelled while it was open (T5′): it did not run.
    #[must_use]
    pub const fn is_cancelled_open(&self) -> bool {
        matches!(self.phase, Phase::Abandoned { .. }) && self.reserved.is_cancelled_open()
    }

    /// Corrections of a settlement by this usage: the reservation becomes what was used.
    fn settlement_moves(&self, usage: &UsageRecord) -> Vec<CounterMove> {
        let meters = &usage.metered.meters;
        let tokens = meters.prompt_tokens().saturating_add(meters.completion_tokens());
        self.reserved.settlement_moves(self.hold, usage.charge, tokens)
    }
}

/// Phase of an operation. The hold is active in `Leased` and `Recorded`, captured in `Completed`,
/// released in the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Owned by one task; the provider may have been called.
    Leased,
    /// The result is durable and its settlement was refused or interrupted. `Completed` is its only
    /// exit: a result is never thrown away.
    Recorded(UsageRecord),
    /// Proven not run: the same key and request may run again.
    Open,
    /// Settled; replayable.
    Completed {
        /// The billing fact.
        usage: UsageRecord,
        /// Moment of the settlement.
        finished_at: Timestamp,
    },
    /// The provider's definitive refusal; replayable.
    Refused {
        /// Reason of the refusal, without the provider's words.
        refusal: ProviderRefusal,
        /// Moment of T4.
        finished_at: Timestamp,
    },
    /// Outcome unknown for good; not charged.
    Abandoned {
        /// Moment of T5 or T6.
        finished_at: Timestamp,
    },
}

impl Phase {
    /// The status that it is.
    #[must_use]
    pub const fn status(&self) -> OperationStatus {
        match self {
            Self::Leased => OperationStatus::Leased,
            Self::Recorded(_) => OperationStatus::Recorded,
            Self::Open => OperationStatus::Open,
            Self::Completed { .. } => OperationStatus::Completed,
            Self::Refused { .. } => OperationStatus::Refused,
            Self::Abandoned { .. } => OperationStatus::Abandoned,
        }
    }

    /// The name in rows and answers.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        self.status().label()
    }

    /// True while the hold reserves funds.
    #[must_use]
    pub const fn holds(&self) -> bool {
        matches!(self, Self::Leased | Self::Recorded(_))
    }

    /// The billing fact, if there is one.
    #[must_use]
    pub const fn usage(&self) -> Option<&UsageRecord> {
        match self {
            Self::Recorded(usage) | Self::Completed { usage, .. } => Some(usage),
            Self::Leased | Self::Open | Self::Refused { .. } | Self::Abandoned { .. } => None,
        }
    }

    /// Amount that the caller pays: zero for what was not run, was refused or has an unknown
    /// outcome. `None` as long as it runs.
    #[must_use]
    pub const fn charge(&self) -> Option<Micros> {
        match self {
            // Recorded too: its only exit is to be completed, by this charge.
            Self::Recorded(usage) | Self::Completed { usage, .. } => Some(usage.charge),
            Self::Open | Self::Refused { .. } | Self::Abandoned { .. } => Some(Micros::ZERO),
            Self::Leased => None,
        }
    }

    /// Moment of the final ending; `None` in `Leased`, `Recorded` and `Open`, which have none.
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

/// Reason of a provider's definitive refusal. Its own words are not kept: they may quote the prompt
/// or name the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderRefusal {
    /// The request is invalid, or its content is refused.
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

/// Number of a row's changes, from one.
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

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The version after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        // Saturates where no row gets to: each change is a commit.
        Self(self.0.saturating_add(1))
    }
}

/// Request that a key is bound to: two keyed hashes, by which a reader of the rows alone can confirm no guessed
/// prompt.
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
    /// Terms that the two hashes were computed under.
    pub terms: FingerprintTerms,
    /// Keyed hash of the normalized request and the contract.
    pub fingerprint: Fingerprint,
    /// Keyed hash of the raw body.
    pub body_digest: BodyDigest,
}

impl Binding {
    /// True if both stand for one request: the same bytes under one server secret, else the same fingerprint
    /// under the same terms.
    #[must_use]
    pub fn is_same_request(&self, other: &Self) -> bool {
        // Equal bytes are one request whatever the contract's version: only the key of the digest
        // has to be the same. Fingerprints of different terms say nothing about each other.
        let same_body = self.terms.server_secret == other.terms.server_secret
            && self.body_digest == other.body_digest;
        same_body || (self.terms == other.terms && self.fingerprint == other.fingerprint)
    }
}

/// Task that an operation belongs to: the claim id decides, the node is the one through which it is leased.
/// Never (node, number) alone: two tasks of one process may claim one key at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Claim id, made by that task.
    pub claim: ClaimId,
    /// The process of that task.
    pub node: Node,
}

/// Running process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Name, configured or made up at the start.
    pub name: NodeName,
    /// Incarnation: distinguishes it from all processes that ever had the name.
    pub incarnation: Incarnation,
}

/// Row of a node name: the process that has the name, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Process that has the name.
    pub node: Node,
    /// Moment of its end, by the database's clock; not live at that moment any more.
    pub ends_at: Timestamp,
}

impl Lease {
    /// True while `node` leases its operations through this row: its name, its incarnation, in
    /// time.
    #[must_use]
    pub fn is_live(&self, node: &Node, now: Timestamp) -> bool {
        // The end itself is not live any more: at that moment another process may take the name.
        self.node == *node && now < self.ends_at
    }
}

/// Format of a result that a service which embeds this crate lays out and seals by itself, for no credential of
/// the ledger. The gateway opens none of it, and an audit does not judge its bytes.
pub const OWN_RESULT_FORMAT: u8 = 0;

/// Formats of sealed results that the gateway of this version writes and reads.
pub const RESULT_FORMATS: RangeInclusive<u8> = 1..=2;

/// Length of the tag that every sealed result ends with.
pub const RESULT_TAG_LENGTH: usize = 16;

/// A result as it reaches storage: sealed under a key that only its caller's credential yields.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedResult {
    /// The credential that opens it.
    pub credential: CredentialId,
    /// The layout of what is sealed: of [`RESULT_FORMATS`], or [`OWN_RESULT_FORMAT`].
    pub format: u8,
    /// Random, never reused under one key.
    pub nonce: [u8; 12],
    /// Ciphertext and tag.
    pub sealed: Arc<[u8]>,
    /// Bytes of it that a load left in the store: `sealed` is empty then, and
    /// [`Journal::result`](crate::Journal::result) reads them. 0: it is all here.
    pub withheld: usize,
}

debug_as!(
    SealedResult as it: "SealedResult({} bytes for {})",
    it.sealed.len().max(it.withheld), it.credential,
);

/// Attempt at a route, as its operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The configured provider and its model.
    pub route: Arc<str>,
    /// Outcome: `finished`, or the label of a failure.
    pub class: Cow<'static, str>,
    /// Time that it took.
    pub latency: Duration,
    /// True if the provider may bill it.
    pub may_be_billed: bool,
    /// Reason why its answer could not be read, or the field for which the request was turned away, in words of
    /// ours; `None` if the class is enough.
    pub reason: Option<Cow<'static, str>>,
}

/// Read of the store at one moment: everything that [`decide`] may look at.
///
/// ```
/// use holdfast_domain::{Event, Refusal, Snapshot, decide};
/// use holdfast_testkit::sample;
///
/// // An unbound key is free to claim; there is no result to settle.
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
    /// Snapshot without a row: what a claim is judged over before anything was read. The store's
    /// compare-and-set finds out whether that was true, so a new key costs no read.
    #[must_use]
    pub const fn vacant(now: Timestamp) -> Self {
        Self { operation: None, result: None, lease: None, now }
    }
}

/// Situation of an operation, in the words of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Situation {
    /// Proven not run.
    NotStarted,
    /// Leased, and its owner's lease is live.
    InProgress,
    /// Leased without a live lease, or recorded: it is to be reaped or settled.
    Stale,
    /// Completed, refused or abandoned: its answer is final.
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

/// Situation of an operation, given the row of its node's name. Computed, never stored.
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
        // However alive its owner is: what is missing is the settling half, which is anybody's.
        Phase::Recorded(_) => Situation::Stale,
        Phase::Completed { .. } | Phase::Refused { .. } | Phase::Abandoned { .. } => {
            Situation::Completed
        }
    }
}
