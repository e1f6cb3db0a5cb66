//! The journal's port, with what can be wrong about it: changes bent before they are written, and
//! verdicts that are not the store's to give.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::ledger::{Account, Funds, Posting, PostingKind};
use holdfast_domain::limits::{Counter, CounterMove, CounterReadings};
use holdfast_domain::operation::{
    Effect, GenerationStart, Node, Operation, Receipt, SealedResult, Snapshot, Transition, Version,
};
use holdfast_domain::ports::{
    CommitError, LeasedOperation, LedgerEntry, LedgerSource, Unavailable,
};
use holdfast_domain::price::PriceVersionId;
use holdfast_domain::{ApiKeyId, Journal, Micros, OperationId, Phase, Timestamp, WalletId};
use holdfast_testkit::laws::Lists as _;
use holdfast_testkit::{Commands as _, sample};

use super::BrokenJournal;
use super::defect::Defect;

/// What a defect remembers.
#[derive(Default)]
pub(super) struct DefectState {
    results: BTreeMap<OperationId, SealedResult>,
    /// Counters that the starts of operations reserved of.
    reserved: BTreeMap<OperationId, BTreeSet<Counter>>,
    /// Transfers that nobody made.
    pub(super) entries: Vec<(WalletId, LedgerEntry)>,
}

#[async_trait]
impl Journal for BrokenJournal {
    async fn load(&self, operation: OperationId) -> Result<Snapshot, Unavailable> {
        let mut snapshot = self.inner.load(operation).await?;
        let Some(row) = &mut snapshot.operation else { return Ok(snapshot) };
        if self.has(Defect::ErrorsAreForgotten) && matches!(row.phase, Phase::Refused { .. }) {
            snapshot.result = None;
        }
        if self.has(Defect::AttemptsAreForgotten) {
            row.attempts = Arc::default();
        }
        if self.has(Defect::AdmissionsStand) {
            row.admitted_at = row.created_at;
        }
        if self.has(Defect::SupersededLeasesAreHidden) {
            snapshot.lease = snapshot.lease.filter(|lease| lease.node == row.owner.node);
        }
        if self.has(Defect::PurgedResultsStay) {
            snapshot.result = self.kept().results.get(&operation).cloned();
        }
        Ok(snapshot)
    }

    async fn clock(&self) -> Result<Timestamp, Unavailable> {
        let now = self.inner.clock().await?;
        let behind = now.as_micros().saturating_sub(3_600_000_000);
        Ok(if self.has(Defect::TheClockIsAnother) { Timestamp::from_micros(behind) } else { now })
    }

    async fn commit(&self, change: Arc<Transition>) -> Result<Receipt, CommitError> {
        if self.has(Defect::FundsBeforeConflict) && self.lacks(&change) {
            return Err(CommitError::InsufficientFunds);
        }
        let bent = self.bent(&change).await;
        match self.write(bent.clone()).await {
            Ok(receipt) => Ok(self.told(&bent, receipt)),
            Err(error) => self.unlike(&change, error).await,
        }
    }

    async fn due(&self, limit: u32) -> Result<Vec<OperationId>, Unavailable> {
        let limit = if self.has(Defect::DueIsUnlimited) { u32::MAX } else { limit };
        let mut due = Vec::new();
        for id in self.inner.due(limit).await? {
            let Snapshot { operation, lease, now, .. } = self.inner.load(id).await?;
            let is_only_expired = operation.zip(lease).is_some_and(|(row, lease)| {
                row.phase == Phase::Leased && lease.node == row.owner.node && now <= row.deadline
            });
            if !(is_only_expired && self.has(Defect::ExpiredLeasesAreNotDue)) {
                due.push(id);
            }
        }
        Ok(due)
    }

    async fn leased_to(&self, node: &Node) -> Result<Vec<LeasedOperation>, Unavailable> {
        if self.has(Defect::AskingIsNotListed) {
            let leased = self.inner.leased_to(node).await?.into_iter();
            return Ok(leased
                .map(|leased| LeasedOperation { cancel_asked: false, ..leased })
                .collect());
        }
        if !self.has(Defect::IncarnationsAreMixedUp) {
            return self.inner.leased_to(node).await;
        }
        let operations = self.inner.operations().into_iter();
        let leased = operations.filter(|row| row.phase == Phase::Leased);
        let by_name = leased.filter(|row| row.owner.node.name == node.name);
        Ok(by_name.map(|row| LeasedOperation::from(&row)).collect())
    }

    async fn purge(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        let age = if self.has(Defect::YoungResultsArePurged) { Duration::ZERO } else { age };
        let limit = if self.has(Defect::PurgeIsUnlimited) { u32::MAX } else { limit };
        self.inner.purge(age, limit).await
    }
}

impl BrokenJournal {
    async fn write(&self, transition: Transition) -> Result<Receipt, CommitError> {
        self.inner.commit(Arc::new(transition)).await
    }

    fn now(&self) -> Receipt {
        Receipt {
            version: Version::FIRST,
            at: self.inner.now(),
            counters: CounterReadings::default(),
        }
    }

    pub(super) async fn make(&self, wallet: WalletId) {
        if self.inner.wallet(wallet).is_none() {
            self.inner.create_wallet(wallet, &wallet.to_string(), sample::usd()).await.unwrap();
        }
    }

    /// Whether the wallet has less than a claim wants to hold.
    fn lacks(&self, transition: &Transition) -> bool {
        let Funds::Hold(hold) = transition.funds else { return false };
        self.inner.wallet(transition.wallet).is_none_or(|wallet| wallet.available < hold)
    }

    /// What is written instead of a change.
    async fn bent(&self, transition: &Transition) -> Transition {
        let mut bent = transition.clone();
        self.bend_counters(&mut bent);
        self.give_back_more(&mut bent);
        self.bend_effect(&mut bent);
        if self.has(Defect::ClaimsMakeWallets) {
            self.make(bent.wallet).await;
        }
        if self.has(Defect::WalletsAreMixedUp)
            && let Some(oldest) = self.inner.all_wallets().await.first()
        {
            bent.wallet = oldest.id;
        }
        bent
    }

    fn bend_counters(&self, bent: &mut Transition) {
        if self.has(Defect::SeedsLeaveNoBit) {
            let mut kept = self.kept();
            if bent.start().is_some() {
                let reserved = bent.counters.iter().map(|moved| moved.counter).collect();
                kept.reserved.insert(bent.operation, reserved);
            } else if let Some(reserved) = kept.reserved.get(&bent.operation) {
                bent.counters.retain(|moved| reserved.contains(&moved.counter));
            }
        }
        for moved in &mut bent.counters {
            if self.has(Defect::BoundsAreIgnored) {
                moved.bound = None;
            }
            if self.has(Defect::CorrectionsAreRefused) {
                moved.bound.get_or_insert(0);
            }
        }
        if self.has(Defect::CorrectionsGoToNow) {
            bent.admitted_at = None;
        }
        if self.has(Defect::KeysCountTogether) {
            bent.api_key = ApiKeyId::from_u128(1);
        }
        let ends_free = matches!(bent.funds, Funds::Release(_) | Funds::Lapse(_));
        let settles = matches!(bent.funds, Funds::Capture { .. });
        if (ends_free && self.has(Defect::CountersAreNotGivenBack))
            || (settles && self.has(Defect::CountersAreNotCorrected))
        {
            bent.counters.clear();
        }
    }

    /// Gives more back than an ending gives, of an operation that is limited.
    fn give_back_more(&self, bent: &mut Transition) {
        let is_limited = !bent.counters.is_empty();
        let more = match bent.effect {
            Effect::Abandon { .. } if self.has(Defect::AbandonedIsNotCounted) => {
                (Counter::Requests, -1)
            }
            Effect::Open { .. } if self.has(Defect::TokensAreGivenBackTwice) => {
                (Counter::Tokens, -100)
            }
            Effect::Open { .. }
                if self.has(Defect::RetriesAreNotCounted) && bent.generation > 1 =>
            {
                (Counter::Requests, -1)
            }
            Effect::Admit(_)
            | Effect::Reopen(_)
            | Effect::Complete { .. }
            | Effect::Record { .. }
            | Effect::Settle
            | Effect::AskCancel
            | Effect::Cancel
            | Effect::Open { .. }
            | Effect::Refuse { .. }
            | Effect::Abandon { .. } => return,
        };
        let (counter, amount) = more;
        if is_limited {
            bent.counters.push(CounterMove { counter, amount, bound: None });
        }
    }

    fn bend_effect(&self, bent: &mut Transition) {
        let row = self.inner.operation(bent.operation);
        let is_settled = matches!(bent.effect, Effect::Settle);
        if is_settled && self.has(Defect::SettlingMovesNothing) {
            bent.funds = Funds::Unmoved;
        }
        if matches!(bent.funds, Funds::Hold(_)) && self.has(Defect::HoldsAreNotMoved) {
            bent.funds = Funds::Unmoved;
        }
        if let Funds::Capture { hold, charge } = &mut bent.funds
            && self.has(Defect::RestsAreKept)
        {
            *charge = *hold;
        }
        if let (Effect::Abandon { attempts }, true) =
            (&bent.effect, self.has(Defect::GivenUpIsOpen))
        {
            bent.effect = Effect::Open { attempts: Arc::clone(attempts) };
        }
        if let (Effect::Admit(admission), true) =
            (&mut bent.effect, self.has(Defect::AliasesAreLost))
        {
            admission.alias = None;
        }
        let Some(Operation { hold, price, .. }) = row else { return };
        if matches!(bent.effect, Effect::AskCancel) && self.has(Defect::AskingReleasesTheHold) {
            bent.funds = Funds::Release(hold);
        }
        if matches!(bent.effect, Effect::Cancel) && self.has(Defect::CancellingReleasesTheHold) {
            bent.funds = Funds::Release(hold);
        }
        if let Effect::Reopen(start) = &mut bent.effect
            && self.has(Defect::ReopeningKeepsThePrice)
        {
            start.price = price;
        }
    }

    /// What is said of a change that was written.
    fn told(&self, transition: &Transition, receipt: Receipt) -> Receipt {
        if let Some(result) = transition.result() {
            self.kept().results.insert(transition.operation, result.clone());
        }
        if let Funds::Capture { charge: Micros::ZERO, .. } = transition.funds
            && self.has(Defect::NothingIsTransferred)
        {
            let entry = LedgerEntry {
                at: receipt.at,
                source: LedgerSource::Operation(transition.operation, transition.generation),
                kind: "settle",
                debit: Account::Held,
                credit: Account::Revenue,
                amount: Micros::ZERO,
            };
            self.kept().entries.push((transition.wallet, entry));
        }
        let Receipt { mut version, mut at, counters: mut tally } = receipt;
        if self.has(Defect::VersionsStand) {
            version = Version::FIRST;
        }
        if self.has(Defect::ReceiptsAreBehind) {
            at = Timestamp::from_micros(at.as_micros() - 3_600_000_000);
        }
        if self.has(Defect::ReceiptsTellNoCounters) {
            tally = CounterReadings::default();
        }
        Receipt { version, at, counters: tally }
    }

    /// What is said and done where a change of an operation should be refused.
    async fn unlike(
        &self,
        transition: &Transition,
        error: CommitError,
    ) -> Result<Receipt, CommitError> {
        let again = transition.clone();
        match error {
            CommitError::Conflict => self.unlike_a_conflict(again).await,
            CommitError::FundsHeld { .. } if self.has(Defect::HeldFundsAreLost) => {
                Err(CommitError::InsufficientFunds)
            }
            CommitError::InsufficientFunds | CommitError::FundsHeld { .. } => {
                let without = Transition { funds: Funds::Hold(Micros::ZERO), ..again };
                if self.has(Defect::HoldsMayBeMissing) {
                    return self.write(without).await;
                }
                if self.has(Defect::RefusedClaimsBind) {
                    self.write(without).await?;
                }
                Err(error)
            }
            CommitError::LimitReached(mut reached) => {
                if self.has(Defect::FundsBeforeLimits) && self.lacks(transition) {
                    return Err(CommitError::InsufficientFunds);
                }
                let counter = reached.counter;
                if self.has(Defect::LimitsAreMisnamed) {
                    let is_requests = counter == Counter::Requests;
                    reached.counter = if is_requests { Counter::Tokens } else { Counter::Requests };
                }
                if self.has(Defect::RefusalsTellOneCounter) {
                    let used = reached.counters.used(counter).unwrap_or(0);
                    reached.counters = CounterReadings::default().with(counter, used);
                }
                Err(CommitError::LimitReached(reached))
            }
            CommitError::LimitsEdited
                if self.has(Defect::StaleLimitsPass) || self.has(Defect::RestoresAreOverlooked) =>
            {
                self.write(unread(again)).await
            }
            CommitError::LimitsEdited => Err(CommitError::LimitsEdited),
            CommitError::Collision => {
                if self.has(Defect::PermanentIdsRepeat) {
                    return self.write(Transition { generation: 1_000, ..again }).await;
                }
                if self.has(Defect::ClaimsChangePrices) {
                    return self.write(renamed(again)).await;
                }
                Err(CommitError::Collision)
            }
            error @ (CommitError::TooLarge
            | CommitError::Overloaded
            | CommitError::Unavailable(_)
            | CommitError::Uncertain(_)) => Err(error),
        }
    }

    async fn unlike_a_conflict(&self, again: Transition) -> Result<Receipt, CommitError> {
        let row = self.inner.operation(again.operation);
        let claim = again.start().map(|start| start.owner.claim);
        match &again.effect {
            Effect::Admit(_) if self.has(Defect::LosersAreToldTheyWon) => return Ok(self.now()),
            Effect::Admit(_) if self.has(Defect::LosersStayReserved) => {
                self.write(Transition { operation: sample::fresh(), ..again }).await?;
            }
            Effect::Admit(_) if self.has(Defect::OffersAgainPass) => {
                if row.map(|row| row.owner.claim) == claim {
                    return Ok(self.now());
                }
            }
            Effect::Complete { usage, .. } if self.has(Defect::LosersAreCharged) => {
                let kind = PostingKind::Adjustment("the charge".to_owned());
                let amount = usage.charge.negated();
                let (id, wallet) = (sample::fresh(), again.wallet);
                self.inner.post(&Posting { id, wallet, kind, amount }).await.unwrap();
            }
            Effect::Admit(_)
            | Effect::Reopen(_)
            | Effect::Complete { .. }
            | Effect::Record { .. }
            | Effect::Settle
            | Effect::AskCancel
            | Effect::Cancel
            | Effect::Open { .. }
            | Effect::Refuse { .. }
            | Effect::Abandon { .. } => {
                if self.has(Defect::StaleVersionsPass) {
                    let expected = row.map(|row| row.version);
                    return self.write(Transition { expected, ..again }).await;
                }
            }
        }
        Err(CommitError::Conflict)
    }
}

/// The start without the revision of its limits.
fn unread(mut transition: Transition) -> Transition {
    match &mut transition.effect {
        Effect::Admit(admission) => admission.start.limits_revision = None,
        Effect::Reopen(start) => start.limits_revision = None,
        Effect::Complete { .. }
        | Effect::Record { .. }
        | Effect::Settle
        | Effect::AskCancel
        | Effect::Cancel
        | Effect::Open { .. }
        | Effect::Refuse { .. }
        | Effect::Abandon { .. } => {}
    }
    transition
}

/// The same claim, with its prices under another name.
fn renamed(mut claim: Transition) -> Transition {
    if let Effect::Admit(admission) = &mut claim.effect {
        let GenerationStart { price, .. } = &mut admission.start;
        price.id = PriceVersionId::from_stored(&format!("{}, again", price.id));
    }
    claim
}
