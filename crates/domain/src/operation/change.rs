//! A judged event on its way to the rows. A store writes it as it is and makes no decision.
//!
//! A [`Transition`] has three parts that are committed together or not at all: an [`Effect`] on the operation's
//! row, [`Funds`] for its wallet and the ledger, and [`CounterMove`]s for its API key. A store enforces three
//! rules: the row is still the one that was judged ([`Transition::matches_row`]), no balance or bounded counter
//! leaves its bounds, no permanent id repeats.
//!
//! Times are spans: the store stamps the moments with the database's clock as it writes, and returns them in a
//! [`Receipt`]. [`Transition::apply`] makes of both the row that was written, so that an owner knows it without
//! a read.

use std::sync::Arc;
use std::time::Duration;

use super::{Attempt, Binding, Operation, Owner, Phase, ProviderRefusal, SealedResult, Version};
use crate::billing::UsageRecord;
use crate::ledger::Funds;
use crate::limits::{CounterMove, CounterReadings, Reservation};
use crate::model::{ModelAlias, PublicModelId};
use crate::price::PriceVersion;
use crate::{ApiKeyId, ClaimId, Micros, OperationId, RequestKey, Timestamp, WalletId};

/// Judged change of an operation, which a journal commits, all of it or none. It carries spans, never moments:
/// the store stamps those with the database's clock as it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The operation.
    pub operation: OperationId,
    /// API key of the operation, whose counters move.
    pub api_key: ApiKeyId,
    /// Wallet of the operation, also when no money moves.
    pub wallet: WalletId,
    /// Version that was judged; `None`: there must be no row.
    pub expected: Option<Version>,
    /// Claim that the judged row showed. A row of another claim is another one, even with the same version: the
    /// one that was judged is lost, and another claim has begun anew.
    pub claim: Option<ClaimId>,
    /// The generation that the effect belongs to.
    pub generation: u32,
    /// Effect on the row.
    pub effect: Effect,
    /// Effect on the wallet and the book.
    pub funds: Funds,
    /// Effect on the API key's counters.
    pub counters: Vec<CounterMove>,
    /// Moment in whose windows the counters move: that of the admission; `None`: now.
    pub admitted_at: Option<Timestamp>,
}

/// Effect of a transition on the operation's row.
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
        /// Attempts of the generation.
        attempts: Arc<[Attempt]>,
    },
    /// T2a: the result without the settlement.
    Record {
        /// The billing fact.
        usage: UsageRecord,
        /// The sealed answer.
        result: SealedResult,
        /// Attempts of the generation.
        attempts: Arc<[Attempt]>,
    },
    /// T2b: the settlement of what was recorded.
    Settle,
    /// T2c: the wish to cancel.
    AskCancel,
    /// T5′: the end of an open operation, which did not run. Its attempts stay.
    Cancel,
    /// T3: open again.
    Open {
        /// Attempts of the generation.
        attempts: Arc<[Attempt]>,
    },
    /// T4: refused for good.
    Refuse {
        /// Reason of the refusal.
        refusal: ProviderRefusal,
        /// The sealed error.
        result: SealedResult,
        /// Attempts of the generation.
        attempts: Arc<[Attempt]>,
    },
    /// T5, T6: given up.
    Abandon {
        /// Attempts of the generation as its owner reports them; empty after a reap or a disown.
        attempts: Arc<[Attempt]>,
    },
}

/// Content of a new row: what the key is bound to for good, and the first generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// The caller's `Idempotency-Key`.
    pub request_key: RequestKey,
    /// The request.
    pub binding: Binding,
    /// The public model id.
    pub model: PublicModelId,
    /// Alias that the request names the model by.
    pub alias: Option<ModelAlias>,
    /// The first generation.
    pub start: GenerationStart,
}

/// Part of a row that every generation takes anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationStart {
    /// Task that claims it.
    pub owner: Owner,
    /// The prices in force.
    pub price: PriceVersion,
    /// Amount that is held.
    pub hold: Micros,
    /// Share of the limits that is reserved.
    pub reserved: Reservation,
    /// Revision of the wallet's limits that it was reserved by. A store that has another one refuses the start;
    /// `None`: it is not compared.
    pub limits_revision: Option<u64>,
    /// Span from admission to the deadline.
    pub time: Duration,
}

/// Receipt of a store for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Version that it wrote; the first for a posting.
    pub version: Version,
    /// The database's clock as the store wrote.
    pub at: Timestamp,
    /// Readings after the commit of the counters that it moved.
    pub counters: CounterReadings,
}

impl Transition {
    /// The version that this change writes.
    #[must_use]
    pub fn version(&self) -> Version {
        self.expected.map_or(Version::FIRST, Version::next)
    }

    /// True if a row of this version and claim, or no row, was the one that was judged.
    #[must_use]
    pub fn matches_row(&self, row: Option<(Version, ClaimId)>) -> bool {
        // Both or neither is there: a judged row has a version and a claim.
        self.expected.zip(self.claim) == row
    }

    /// The row after this change, from the row before it and what the store stamped. `None` when the
    /// change is of another kind than the row: it was not judged over it.
    #[must_use]
    pub fn apply(&self, before: Option<&Operation>, receipt: Receipt) -> Option<Operation> {
        match (&self.effect, before) {
            (Effect::Admit(admission), None) => Some(self.admitted(admission, receipt)),
            // Not what was judged: the caller takes the operation for moved and reads it.
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
                // The hold of the generation before went back when it was proven not run.
                after.hold = start.hold;
                after.reserved = start.reserved;
                after.admitted_at = at;
                after.deadline = at.after(start.time);
                // They were of the generation before, and the store keeps those of the last alone.
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
                // Recorded or nothing: a settlement invents no usage.
                let usage = after.phase.usage()?.clone();
                after.phase = Phase::Completed { usage, finished_at: at };
            }
            // A mark and no phase: what follows is the owner's word.
            Effect::AskCancel => after.cancel_asked = true,
            Effect::Cancel => {
                after.phase = Phase::Abandoned { finished_at: at };
                // T3 gave it back, which the phase of an abandoned row does not show: without the
                // mark it would pass for a reservation that the key still has.
                after.reserved = after.reserved.as_cancelled_open();
            }
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
            | Effect::Cancel
            | Effect::Open { .. }
            | Effect::Abandon { .. } => None,
        }
    }

    /// Start of a generation, if this change begins one.
    #[must_use]
    pub fn start(&self) -> Option<&GenerationStart> {
        match &self.effect {
            Effect::Admit(admission) => Some(&admission.start),
            Effect::Reopen(start) => Some(start),
            Effect::Complete { .. }
            | Effect::Record { .. }
            | Effect::Settle
            | Effect::AskCancel
            | Effect::Cancel
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
            alias: admission.alias.clone(),
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
