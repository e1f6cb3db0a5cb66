//! What a judged event does to the rows. A store writes it as it stands and decides nothing.

use std::sync::Arc;
use std::time::Duration;

use super::{Attempt, Binding, Operation, Owner, Phase, ProviderRefusal, SealedResult, Version};
use crate::ledger::{Funds, Posting};
use crate::limits::{CounterMove, CounterReadings, Reservation};
use crate::model::PublicModelId;
use crate::price::PriceVersion;
use crate::usage::UsageRecord;
use crate::{ApiKeyId, ClaimId, Micros, OperationId, RequestKey, Timestamp, WalletId};

/// What a journal commits, all of it or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "always behind an Arc, and postings are rare")]
pub enum Change {
    /// An operation's.
    Operation(Transition),
    /// Money that moves by itself.
    Posting(Posting),
}

impl Change {
    /// Whose money it may move; changes of one wallet are committed in one order.
    #[must_use]
    pub const fn wallet(&self) -> WalletId {
        match self {
            Self::Operation(transition) => transition.wallet,
            Self::Posting(posting) => posting.wallet,
        }
    }
}

/// A judged change of an operation. It carries spans, never moments: the store stamps those with the
/// database's clock as it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// Which operation.
    pub operation: OperationId,
    /// Its API key, whose counters move.
    pub api_key: ApiKeyId,
    /// Its wallet, also when no money moves.
    pub wallet: WalletId,
    /// The version that was judged; `None`: there must be no row.
    pub expected: Option<Version>,
    /// The claim that the judged row showed. A row of another claim is another one, whatever its version: the one
    /// that was judged is lost, and somebody has begun anew.
    pub claim: Option<ClaimId>,
    /// The generation that the effect belongs to.
    pub generation: u32,
    /// What becomes of the row.
    pub effect: Effect,
    /// What becomes of the wallet.
    pub funds: Funds,
    /// What becomes of the API key's counters.
    pub counters: Vec<CounterMove>,
    /// In whose windows the counters move: those of the admission, or of now where it is `None`.
    pub admitted_at: Option<Timestamp>,
}

/// What becomes of an operation's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// T1: a new row.
    Admit(Box<Admission>),
    /// T7: the next generation of an open one.
    Reopen(Box<GenerationStart>),
    /// T2: settled, with the result.
    Complete {
        /// The billing fact.
        usage: UsageRecord,
        /// The sealed answer.
        result: SealedResult,
        /// What was tried.
        attempts: Arc<[Attempt]>,
    },
    /// T2a: the result without the settlement.
    Record {
        /// The billing fact.
        usage: UsageRecord,
        /// The sealed answer.
        result: SealedResult,
        /// What was tried.
        attempts: Arc<[Attempt]>,
    },
    /// T2b: the settlement of what was recorded.
    Settle,
    /// The wish to cancel.
    AskCancel,
    /// T3: open again.
    Open {
        /// What was tried.
        attempts: Arc<[Attempt]>,
    },
    /// T4: refused for good.
    Refuse {
        /// What was refused.
        refusal: ProviderRefusal,
        /// The sealed error.
        result: SealedResult,
        /// What was tried.
        attempts: Arc<[Attempt]>,
    },
    /// T5, T6: given up.
    Abandon {
        /// What was tried, where the owner says so itself.
        attempts: Arc<[Attempt]>,
    },
}

/// What a new row is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// The caller's `Idempotency-Key`.
    pub request_key: RequestKey,
    /// The request.
    pub binding: Binding,
    /// The public model id.
    pub model: PublicModelId,
    /// Its first generation.
    pub start: GenerationStart,
}

/// What every generation takes anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationStart {
    /// Who claimed it.
    pub owner: Owner,
    /// The prices in force.
    pub price: PriceVersion,
    /// What is held.
    pub hold: Micros,
    /// What is reserved of the limits.
    pub reserved: Reservation,
    /// From admission to the deadline.
    pub time: Duration,
}

/// What a store says of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The version that it wrote; the first for a posting.
    pub version: Version,
    /// The database's clock as it wrote.
    pub at: Timestamp,
    /// What the counters that it moved stand at after it.
    pub counters: CounterReadings,
}

impl Transition {
    /// The version that this change writes.
    #[must_use]
    pub fn version(&self) -> Version {
        self.expected.map_or(Version::FIRST, Version::next)
    }

    /// Whether a row of this version and claim, or that there is none, is what was judged.
    #[must_use]
    pub fn matches_row(&self, row: Option<(Version, ClaimId)>) -> bool {
        self.expected.zip(self.claim) == row
    }

    /// The row after this change, from the row before it and what the store stamped. `None` when the
    /// change is of another kind than the row: it was not judged over it.
    #[must_use]
    pub fn apply(&self, before: Option<&Operation>, receipt: Receipt) -> Option<Operation> {
        match (&self.effect, before) {
            (Effect::Admit(admission), None) => Some(self.admitted(admission, receipt)),
            (Effect::Admit(_), Some(_)) | (_, None) => None,
            (_, Some(before)) => {
                let mut after = before.clone();
                self.apply_to(&mut after, receipt)?;
                Some(after)
            }
        }
    }

    /// Makes the row before this change the row after it, as [`Self::apply`] does. `None`: it is
    /// another kind of row, and stays as it was.
    pub(crate) fn apply_to(&self, after: &mut Operation, receipt: Receipt) -> Option<()> {
        let at = receipt.at;
        match &self.effect {
            Effect::Admit(_) => return None,
            Effect::Reopen(start) => {
                after.generation = self.generation;
                after.owner = start.owner.clone();
                after.price = start.price.clone();
                after.hold = start.hold;
                after.reserved = start.reserved;
                after.admitted_at = at;
                after.deadline = at.after(start.time);
                after.attempts = Arc::default();
                after.phase = Phase::Leased;
            }
            Effect::Complete { usage, attempts, .. } => {
                after.phase = Phase::Completed { usage: usage.clone(), finished_at: at };
                after.attempts = Arc::clone(attempts);
            }
            Effect::Record { usage, attempts, .. } => {
                after.phase = Phase::Recorded(usage.clone());
                after.attempts = Arc::clone(attempts);
            }
            Effect::Settle => {
                let usage = after.phase.usage()?.clone();
                after.phase = Phase::Completed { usage, finished_at: at };
            }
            Effect::AskCancel => after.cancel_asked = true,
            Effect::Open { attempts } => {
                after.phase = Phase::Open;
                after.attempts = Arc::clone(attempts);
            }
            Effect::Refuse { refusal, attempts, .. } => {
                after.phase = Phase::Refused { refusal: *refusal, finished_at: at };
                after.attempts = Arc::clone(attempts);
            }
            Effect::Abandon { attempts } => {
                after.phase = Phase::Abandoned { finished_at: at };
                after.attempts = Arc::clone(attempts);
            }
        }
        after.version = receipt.version;
        Some(())
    }

    /// The sealed content that this change stores.
    #[must_use]
    pub const fn result(&self) -> Option<&SealedResult> {
        match &self.effect {
            Effect::Complete { result, .. }
            | Effect::Record { result, .. }
            | Effect::Refuse { result, .. } => Some(result),
            Effect::Admit(_)
            | Effect::Reopen(_)
            | Effect::Settle
            | Effect::AskCancel
            | Effect::Open { .. }
            | Effect::Abandon { .. } => None,
        }
    }

    /// What this change takes anew, where it begins a generation.
    #[must_use]
    pub fn start(&self) -> Option<&GenerationStart> {
        match &self.effect {
            Effect::Admit(admission) => Some(&admission.start),
            Effect::Reopen(start) => Some(start),
            Effect::Complete { .. }
            | Effect::Record { .. }
            | Effect::Settle
            | Effect::AskCancel
            | Effect::Open { .. }
            | Effect::Refuse { .. }
            | Effect::Abandon { .. } => None,
        }
    }

    fn admitted(&self, admission: &Admission, receipt: Receipt) -> Operation {
        let (start, at) = (&admission.start, receipt.at);
        Operation {
            id: self.operation,
            api_key: self.api_key,
            request_key: admission.request_key,
            wallet: self.wallet,
            binding: admission.binding,
            model: admission.model.clone(),
            price: start.price.clone(),
            generation: self.generation,
            hold: start.hold,
            reserved: start.reserved,
            owner: start.owner.clone(),
            created_at: at,
            admitted_at: at,
            deadline: at.after(start.time),
            cancel_asked: false,
            attempts: Arc::default(),
            phase: Phase::Leased,
            version: receipt.version,
        }
    }
}
