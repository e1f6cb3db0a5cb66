//! Events: all that can happen to an operation, and what each brings along.
//!
//! The events of an owner (T2, T2a, T3 to T5 and a disown) carry its claim id, which the guard compares with
//! the row's. Events of any process (T2b, T2c, a reap) carry none.

use std::sync::Arc;
use std::time::Duration;

use super::{Attempt, Binding, Lease, Owner, ProviderRefusal, SealedResult};
use crate::limits::Limits;
use crate::model::{ModelAlias, PublicModelId};
use crate::price::PriceVersion;
use crate::usage::MeterReading;
use crate::{ApiKeyId, ClaimId, Micros, RequestKey, Timestamp, WalletId};

/// Event that changes an operation. The numbers are those of the table of transitions in
/// `docs/explanation/operation-lifecycle.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// T1, T7: a task claims it for a run.
    Claim(Box<Claim>),
    /// T2: its owner has a result.
    Finish(Finish),
    /// T2a: its owner has a result, and the store refused to settle it.
    Record(Finish),
    /// T2b: any process settles the recorded result.
    Settle,
    /// T2c, first half: its caller requests its end. The rest is its owner's event.
    AskCancel,
    /// T3: its owner knows that no attempt of this generation ran. Abandoned all the same if it was to be
    /// cancelled.
    NotRun {
        /// The owner's claim.
        claim: ClaimId,
        /// Attempts of this generation.
        attempts: Arc<[Attempt]>,
    },
    /// T4: the provider refused it for good.
    Refuse {
        /// The owner's claim.
        claim: ClaimId,
        /// Reason of the refusal.
        refusal: ProviderRefusal,
        /// The sealed error.
        result: SealedResult,
        /// Attempts of this generation.
        attempts: Arc<[Attempt]>,
    },
    /// T5: its owner knows that no result can come any more.
    GiveUp {
        /// The owner's claim.
        claim: ClaimId,
        /// Attempts of this generation.
        attempts: Arc<[Attempt]>,
    },
    /// T6: a process found its owner gone.
    Reap {
        /// Time after the end of a dead lease for which its operations are left alone. `None`: no
        /// lease counts as dead now, because this process has only just come back itself.
        orphan_grace: Option<Duration>,
    },
    /// T6 by its own process: no task here runs the claim.
    Disown(Disown),
}

/// Claim of a task to run an operation: what T1 and T7 write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The scope of the request key.
    pub api_key: ApiKeyId,
    /// The caller's `Idempotency-Key`.
    pub request_key: RequestKey,
    /// Wallet that pays.
    pub wallet: WalletId,
    /// The request.
    pub binding: Binding,
    /// The public model id.
    pub model: PublicModelId,
    /// Alias that the request names the model by; `None` for its id.
    pub alias: Option<ModelAlias>,
    /// The prices in force now.
    pub price: PriceVersion,
    /// Upper bound of the charge under those prices; never negative.
    pub hold: Micros,
    /// Upper bound of its prompt and completion tokens.
    pub tokens: u64,
    /// The API key's limits.
    pub limits: Limits,
    /// Revision of the wallet's limits that those were read at; `None`: it is not compared.
    pub limits_revision: Option<u64>,
    /// End of the window of a restore, within which no unknown key of this API key runs; `None` outside of one.
    pub unknown_until: Option<Timestamp>,
    /// Span from admission to the deadline.
    pub time: Duration,
    /// Claiming task: a claim id that was never offered for another generation.
    pub owner: Owner,
    /// The row of the owner's node as its last acknowledged heartbeat left it.
    pub lease: Lease,
}

/// Product, price and payer of a claim, with the bounds of its charge and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimTerms {
    /// Wallet that pays.
    pub wallet: WalletId,
    /// The public model id, or another product.
    pub model: PublicModelId,
    /// The prices in force now.
    pub price: PriceVersion,
    /// Upper bound of the charge under those prices; never negative.
    pub hold: Micros,
    /// Span from admission to the deadline.
    pub time: Duration,
}

impl Claim {
    /// Claim for this pair of API key and request key, under no limit. The owner is a task of the node that has the
    /// lease.
    #[must_use]
    pub fn new(
        (api_key, request_key): (ApiKeyId, RequestKey),
        binding: Binding,
        terms: ClaimTerms,
        claim: ClaimId,
        lease: Lease,
    ) -> Self {
        let ClaimTerms { wallet, model, price, hold, time } = terms;
        Self {
            api_key,
            request_key,
            wallet,
            binding,
            model,
            alias: None,
            price,
            hold,
            tokens: 0,
            limits: Limits::default(),
            limits_revision: None,
            unknown_until: None,
            time,
            owner: Owner { claim, node: lease.node.clone() },
            lease,
        }
    }

    /// The same claim under the limits of its API key, read at this revision, and of at most so many tokens.
    #[must_use]
    pub const fn limited(mut self, limits: Limits, revision: u64, tokens: u64) -> Self {
        (self.limits, self.limits_revision, self.tokens) = (limits, Some(revision), tokens);
        self
    }

    /// The same claim by an API key within the window of a restore; `None`: there is none.
    #[must_use]
    pub const fn after_restore(mut self, unknown_until: Option<Timestamp>) -> Self {
        self.unknown_until = unknown_until;
        self
    }

    /// The same claim, whose request has the model's alias.
    #[must_use]
    pub fn by_alias(mut self, alias: Option<ModelAlias>) -> Self {
        self.alias = alias;
        self
    }
}

/// Result of a run, as its owner offers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The owner's claim.
    pub claim: ClaimId,
    /// Meters of the run.
    pub metered: MeterReading,
    /// The sealed answer. Its content includes the charge of these meters.
    pub result: SealedResult,
    /// Attempts of this generation.
    pub attempts: Arc<[Attempt]>,
}

/// Disowning of a claim by the process that made it: no task of that process runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disown {
    /// The claim.
    pub claim: ClaimId,
    /// Knowledge of whether the claim can have reached a provider.
    pub sent: SendStatus,
}

/// Knowledge that a process has of a claim that it made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendStatus {
    /// Remembered, and no byte of it was sent: proof that there was no run.
    Never,
    /// Anything else: it may have run.
    Perhaps,
}
