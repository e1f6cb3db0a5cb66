//! What can happen to an operation.

use std::sync::Arc;
use std::time::Duration;

use super::{Attempt, Binding, Lease, Owner, ProviderRefusal, SealedResult};
use crate::limits::Limits;
use crate::model::PublicModelId;
use crate::price::PriceVersion;
use crate::usage::MeterReading;
use crate::{ApiKeyId, ClaimId, Micros, RequestKey, WalletId};

/// Something that asks an operation to change. The numbers are those of the table of transitions in
/// `docs/architecture.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// T1, T7: a task wants to run it.
    Claim(Box<Claim>),
    /// T2: its owner has a result.
    Finish(Finish),
    /// T2a: its owner has a result, and the store refused to settle it.
    Record(Finish),
    /// T2b: somebody settles what was recorded.
    Settle,
    /// T2c, first half: its caller wants it to end. What follows is its owner's word.
    AskCancel,
    /// T3: its owner knows that no attempt of this generation ran. T5 where it was to be cancelled.
    NotRun {
        /// The owner's claim.
        claim: ClaimId,
        /// What was tried.
        attempts: Arc<[Attempt]>,
    },
    /// T4: the provider refused it for good.
    Refuse {
        /// The owner's claim.
        claim: ClaimId,
        /// What was refused.
        refusal: ProviderRefusal,
        /// The sealed error.
        result: SealedResult,
        /// What was tried.
        attempts: Arc<[Attempt]>,
    },
    /// T5: its owner knows that no result can come any more.
    GiveUp {
        /// The owner's claim.
        claim: ClaimId,
        /// What was tried.
        attempts: Arc<[Attempt]>,
    },
    /// T6: somebody found its owner gone.
    Reap {
        /// How long after the end of a dead lease its operations are left alone. `None`: not at all
        /// now, because this process has only just come back itself.
        orphan_grace: Option<Duration>,
    },
    /// T6 by its own process: no task here runs the claim.
    Disown(Disown),
}

/// A task's wish to run an operation: what T1 and T7 write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The scope of the request key.
    pub api_key: ApiKeyId,
    /// The caller's `Idempotency-Key`.
    pub request_key: RequestKey,
    /// Who pays.
    pub wallet: WalletId,
    /// The request.
    pub binding: Binding,
    /// The public model id.
    pub model: PublicModelId,
    /// The prices in force now.
    pub price: PriceVersion,
    /// An upper bound of the charge under those prices.
    pub hold: Micros,
    /// An upper bound of its tokens.
    pub tokens: u64,
    /// The API key's limits.
    pub limits: Limits,
    /// From admission to the deadline.
    pub time: Duration,
    /// Who wants it: a claim id that was never offered for another generation.
    pub owner: Owner,
    /// The row of the owner's node as its last acknowledged heartbeat left it.
    pub lease: Lease,
}

/// A result, as its owner offers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The owner's claim.
    pub claim: ClaimId,
    /// What it used up.
    pub metered: MeterReading,
    /// The sealed answer. It tells the charge that these meters make.
    pub result: SealedResult,
    /// What was tried.
    pub attempts: Arc<[Attempt]>,
}

/// A process gives up a claim of its own that no task of it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disown {
    /// The claim.
    pub claim: ClaimId,
    /// Whether the claim can have reached a provider.
    pub sent: SendStatus,
}

/// What a process knows of a claim that it made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendStatus {
    /// It remembers the claim and knows that no byte of it was sent.
    Never,
    /// Anything else.
    Perhaps,
}
