//! A sale: claim, work and ending of one operation, on a task that is never dropped.
//!
//! ```text
//! load ─┬─ bound: settle or reap if that is allowed ─▶ Sale, without a look at the payer
//!       └─ open or none ─▶ payer, price ─▶ claim ─▶ work, once ─▶ ending, until the store takes it ─▶ Sale
//! ```
//!
//! The future that a caller holds only waits for that task: dropped after the claim, it would leave a hold without an
//! ending. The work runs on a further task, so that a panic in it is an unknown outcome and not a lost sale.
//!
//! Never: work before the hold is committed, or near the end of the lease; a second run of work whose outcome is
//! unknown; an answer in a log, which `Debug` keeps out.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use holdfast_domain::conduct::{ClaimError, ClaimOffer, ClaimOutcome, Ending, Rebinding};
use holdfast_domain::limits::Limits;
use holdfast_domain::model::FingerprintTerms;
use holdfast_domain::operation::{Binding, Claim, ClaimTerms, Operation, Phase, Snapshot};
use holdfast_domain::ports::{
    CommitError, Journal as _, PinError, Prices as _, Unavailable, Wallets as _,
};
use holdfast_domain::usage::{MeterReading, Meters, MetersSource, UsageReasons};
use holdfast_domain::{ApiKeyId, ClaimId, Micros, OperationId, RequestKey, Timestamp, WalletId};
use holdfast_store::ApiKeyReading;
use tokio::task::JoinSet;
use tokio::time::timeout;
use uuid::Uuid;

use crate::membership::{Membership, PAUSE};
use crate::seal::{Seal, result};
use crate::{Holdfast, Inner, Price};

/// Version of the normal form of requests, which is the request itself here.
const FINGERPRINT_VERSION: u16 = 1;
/// Time of the work. Longer work is ended, and its sale is lost.
const WORK_MAX: Duration = Duration::from_secs(3_600);
/// Span from the hold to the moment after which any process may give the operation up: the work has ended by then.
const TIME: Duration = Duration::from_secs(3_600 + 60);
/// Offers of a claim whose limits were edited meanwhile.
const OFFERS_MAX: u32 = 4;

/// Identity of a sale: the same pair is the same sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaleKey {
    /// API key, whose wallet pays.
    pub api_key: ApiKeyId,
    /// Request key of the caller.
    pub request_key: RequestKey,
}

/// Ending of the work.
pub enum Work {
    /// Done: charged by these meters at the price, at most the hold.
    Done {
        /// Meters of the work.
        meters: Meters,
        /// The answer, kept for later requests with the same key.
        answer: Vec<u8>,
    },
    /// Proven not to have run: no charge, and the key may run again.
    NotRun,
    /// Perhaps run, and without an answer: no charge, and the key never runs again.
    Unknown,
}

/// State of a sale.
#[derive(Clone, PartialEq, Eq)]
pub enum Sale {
    /// Sold, and paid once.
    Sold {
        /// The answer; `None` once it was deleted, or if the cipher does not open it.
        answer: Option<Vec<u8>>,
        /// The charge.
        charge: Micros,
        /// True if the work of this call ran.
        is_new: bool,
    },
    /// Perhaps run, without an answer: no charge, and it never runs again.
    Lost,
    /// Not run; the key may run again after this time.
    NotRun(Duration),
    /// In progress in another process, or kept and not paid yet: repeat the request.
    InProgress,
    /// The key is bound to another request.
    OtherRequest,
}

impl fmt::Debug for Work {
    /// Never the answer: it may be sealed in the database.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done { meters, answer } => {
                let mut shown = f.debug_struct("Done");
                shown.field("meters", meters).field("answer_bytes", &answer.len()).finish()
            }
            Self::NotRun => f.write_str("NotRun"),
            Self::Unknown => f.write_str("Unknown"),
        }
    }
}

impl fmt::Debug for Sale {
    /// Never the answer: it may be sealed in the database.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sold { answer, charge, is_new } => {
                let mut shown = f.debug_struct("Sold");
                shown.field("answer_bytes", &answer.as_ref().map(Vec::len));
                shown.field("charge", charge).field("is_new", is_new).finish()
            }
            Self::Lost => f.write_str("Lost"),
            Self::NotRun(wait) => f.debug_tuple("NotRun").field(wait).finish(),
            Self::InProgress => f.write_str("InProgress"),
            Self::OtherRequest => f.write_str("OtherRequest"),
        }
    }
}

/// Reason for which no sale was made. The request key is as it was, but for [`SellError::Task`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SellError {
    /// There is no such API key, or it has ended or is suspended.
    #[error("the API key is not in force")]
    Key,
    /// The wallet of the API key is suspended or closed.
    #[error("the wallet is suspended")]
    Wallet,
    /// The allow-list of the API key does not have the product.
    #[error("the API key may not buy this product")]
    Product,
    /// The price is in another currency than the wallet.
    #[error("the wallet has another currency than the price")]
    Currency,
    /// The hold is below zero.
    #[error("a hold is not below zero")]
    Hold,
    /// The lease of this process is lost, or it has ended.
    #[error("this process has no lease")]
    NoLease,
    /// The price is known with other numbers.
    #[error(transparent)]
    Price(#[from] PinError),
    /// The claim was refused: no funds, a limit, or the window of a restore.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The store does not work.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The task of the sale has panicked: its key holds the outcome.
    #[error("the task of the sale has ended")]
    Task(#[source] tokio::task::JoinError),
}

impl Holdfast {
    /// Sells the work for this request, once for this key: holds the amount, has the work run, and charges what
    /// it metered. The work is called at most once, after the hold was committed, and has an hour. A dropped
    /// future stops no sale. A request that was sold is answered even if its API key, wallet or price has
    /// changed since.
    ///
    /// # Errors
    ///
    /// [`SellError::Key`], [`SellError::Wallet`] and [`SellError::Product`] if the API key, its wallet or its allow-list
    /// forbids the sale, [`SellError::Currency`], [`SellError::Hold`] and [`SellError::Price`] for an amount that cannot
    /// be charged, [`SellError::Claim`] without funds, above a limit or within the window of a restore,
    /// [`SellError::NoLease`] and [`SellError::Unavailable`] if this process or the store cannot sell now. None of them
    /// ran the work. [`SellError::Task`] if the sale itself broke off: repeat the request to read what became of it.
    #[expect(clippy::too_many_arguments, reason = "a sale has five parts, and each is one")]
    pub fn sell<W, F>(
        &self,
        key: SaleKey,
        request: &[u8],
        price: &Price,
        hold: Micros,
        work: W,
    ) -> impl Future<Output = Result<Sale, SellError>> + Send + use<W, F>
    where
        W: FnOnce() -> F + Send + 'static,
        F: Future<Output = Work> + Send + 'static,
    {
        let (inner, order) = (Arc::clone(&self.inner), self.order(key, request, price, hold));
        async move {
            let tracked = inner.membership.sales.clone();
            let sale = async move { inner.sell(order, work).await };
            // On the tracker that `close` waits for: a caller that drops the future leaves the sale
            // running, and its hold gets an ending.
            tracked.spawn(sale).await.map_err(SellError::Task)?
        }
    }

    fn order(&self, key: SaleKey, request: &[u8], price: &Price, hold: Micros) -> Order {
        let secret = &self.inner.secret;
        let terms = FingerprintTerms {
            server_secret: secret.id(),
            fingerprint_version: FINGERPRINT_VERSION,
            contract: 1,
        };
        let fingerprint = secret.fingerprint_key(key.api_key).digest(request);
        let body_digest = secret.body_digest_key(key.api_key).digest(request);
        let binding = Binding { terms, fingerprint, body_digest };
        Order { key, binding, price: price.clone(), hold }
    }
}

/// Order of a sale, before its claim.
struct Order {
    key: SaleKey,
    binding: Binding,
    price: Price,
    hold: Micros,
}

/// Payer of a sale, with its limits as they were read.
struct Payer {
    wallet: WalletId,
    limits: Limits,
    limits_revision: u64,
    unknown_until: Option<Timestamp>,
}

impl Inner {
    async fn sell<W, F>(&self, order: Order, work: W) -> Result<Sale, SellError>
    where
        W: FnOnce() -> F + Send + 'static,
        F: Future<Output = Work> + Send + 'static,
    {
        if order.hold < Micros::ZERO {
            return Err(SellError::Hold);
        }
        let membership = &*self.membership;
        let id = OperationId::of(order.key.api_key, order.key.request_key);
        // Before the payer is judged: a sale that was made is answered even if its key, wallet or
        // price is not in force any more.
        let found = membership.store.load(id).await?;
        if let Some(row) = found.operation.as_ref().filter(|row| row.phase != Phase::Open) {
            if !row.binding.is_same_request(&order.binding) {
                return Ok(Sale::OtherRequest);
            }
            // Reaped or settled where that is allowed. No claim is offered: the operation may open meanwhile, and its
            // payer is not judged here.
            let alive = membership.running().get(&id).copied();
            let found = membership.conduct(&PAUSE).reconcile_while_running(id, alive).await?;
            return Ok(self.ended(found.snapshot, false));
        }
        let payer = self.payer(&order).await?;
        // Before the claim: a price that is known with other numbers must be refused while no money
        // is held.
        membership.store.pin(std::slice::from_ref(&order.price.version)).await?;
        self.claim(id, order, payer, work).await
    }

    async fn claim<W, F>(
        &self,
        id: OperationId,
        order: Order,
        payer: Payer,
        work: W,
    ) -> Result<Sale, SellError>
    where
        W: FnOnce() -> F + Send + 'static,
        F: Future<Output = Work> + Send + 'static,
    {
        let membership = &*self.membership;
        let (lease, mut now) = membership.lease().ok_or(SellError::NoLease)?;
        let terms = ClaimTerms {
            wallet: payer.wallet,
            model: order.price.product.clone(),
            price: order.price.version.clone(),
            hold: order.hold,
            time: TIME,
        };
        let key = (order.key.api_key, order.key.request_key);
        let mut claim = Claim::new(key, order.binding, terms, Uuid::new_v4().into(), lease)
            .limited(payer.limits, payer.limits_revision, 0)
            .after_restore(payer.unknown_until);
        let (running, has_run) = (OnceLock::new(), AtomicBool::new(false));
        let (seal, mut work) = (Arc::clone(&self.seal), Some(work));
        for offer in 1..=OFFERS_MAX {
            let owner = claim.owner.claim;
            let run = async |operation: Arc<Operation>| {
                // From here on the claim is this sale's, until its ending is committed.
                running.get_or_init(|| RunningSale::begin(membership, id, owner));
                // The commit may have waited for the store: near the end of the lease no work
                // begins, or another process could give up what this one is about to run.
                let work = work.take().filter(|_work| membership.may_begin());
                let Some(work) = work else { return (Ending::NotRun, Vec::new()) };
                has_run.store(true, Ordering::Relaxed);
                let seal = Arc::clone(&seal);
                // On a task of its own: work or a cipher that panics has perhaps run, and its hold does not stay behind.
                let mut tasks = JoinSet::new();
                tasks.spawn(async move {
                    let worked = timeout(WORK_MAX, work()).await.unwrap_or(Work::Unknown);
                    ending(&*seal, &operation, worked)
                });
                let ended = tasks.join_next().await.and_then(Result::ok);
                (ended.unwrap_or(Ending::Unknown), Vec::new())
            };
            let rebind = |_older: &Operation| Rebinding::Lost;
            let offered = ClaimOffer { claim: &claim, now, rebind: &rebind };
            let claimed = membership.conduct(&PAUSE).perform(&offered, run).await;
            // Only this refusal is offered again: no row was written, and the edited limits may
            // still allow the claim.
            let is_outdated = matches!(claimed, Err(ClaimError::Commit(CommitError::LimitsEdited)));
            if !is_outdated || offer == OFFERS_MAX {
                return Ok(self.sale_of(claimed?, has_run.into_inner()));
            }
            let payer = self.payer(&order).await?;
            claim = claim
                .limited(payer.limits, payer.limits_revision, 0)
                .after_restore(payer.unknown_until);
            now = membership.lease().ok_or(SellError::NoLease)?.1;
        }
        Ok(Sale::InProgress)
    }

    /// The payer of a sale that is not made yet, if it may buy now.
    async fn payer(&self, order: &Order) -> Result<Payer, SellError> {
        let store = &self.membership.store;
        let found = store.api_key_at_revision(order.key.api_key).await?;
        let reading = found.ok_or(SellError::Key)?;
        let ApiKeyReading { api_key: key, limits_revision, unknown_until } = reading;
        let (_, now) = self.membership.lease().ok_or(SellError::NoLease)?;
        if key.has_ended(now) || key.suspended_at.is_some() {
            return Err(SellError::Key);
        }
        if !key.grant.allows(&order.price.product) {
            return Err(SellError::Product);
        }
        let wallet = store.find(key.wallet).await?.filter(|wallet| wallet.suspended_at.is_none());
        let wallet = wallet.ok_or(SellError::Wallet)?;
        if wallet.currency != order.price.version.currency {
            return Err(SellError::Currency);
        }
        let limits = key.grant.limits;
        Ok(Payer { wallet: wallet.id, limits, limits_revision, unknown_until })
    }

    fn sale_of(&self, claimed: ClaimOutcome, has_run: bool) -> Sale {
        match claimed {
            ClaimOutcome::Ended(found) => self.ended(found.snapshot, found.moved && has_run),
            ClaimOutcome::TooSoon(snapshot) => self.ended(*snapshot, false),
            ClaimOutcome::Mine(..) | ClaimOutcome::InProgress(_) | ClaimOutcome::Recorded(_) => {
                Sale::InProgress
            }
            ClaimOutcome::OtherRequest => Sale::OtherRequest,
        }
    }

    fn ended(&self, snapshot: Snapshot, is_new: bool) -> Sale {
        let Snapshot { operation: Some(row), result, now, .. } = snapshot else {
            return Sale::InProgress;
        };
        match &row.phase {
            Phase::Completed { usage, .. } => {
                let charge = usage.charge;
                let open = |kept: holdfast_domain::operation::SealedResult| {
                    self.seal.open(&row, kept.nonce, &kept.sealed)
                };
                Sale::Sold { answer: result.and_then(open), charge, is_new }
            }
            Phase::Open => Sale::NotRun(row.reopens_in(now)),
            Phase::Refused { .. } | Phase::Abandoned { .. } => Sale::Lost,
            Phase::Leased | Phase::Recorded(_) => Sale::InProgress,
        }
    }
}

fn ending(seal: &dyn Seal, operation: &Operation, work: Work) -> Ending {
    match work {
        Work::Done { meters, answer } => {
            let metered = MeterReading {
                meters,
                source: MetersSource::Estimated,
                reasons: UsageReasons::NONE,
                provider_cost: None,
            };
            Ending::Finished { metered, result: result(seal, operation, answer) }
        }
        Work::NotRun => Ending::NotRun,
        Work::Unknown => Ending::Unknown,
    }
}

/// A sale whose task is alive: no look of this process gives it up.
struct RunningSale<'a> {
    membership: &'a Membership,
    operation: OperationId,
    claim: ClaimId,
}

impl<'a> RunningSale<'a> {
    fn begin(membership: &'a Membership, operation: OperationId, claim: ClaimId) -> Self {
        membership.running().insert(operation, claim);
        Self { membership, operation, claim }
    }
}

impl Drop for RunningSale<'_> {
    fn drop(&mut self) {
        let mut running = self.membership.running();
        // A later claim of the same operation may have taken the entry: it is alive, and stays.
        if running.get(&self.operation) == Some(&self.claim) {
            running.remove(&self.operation);
        }
    }
}
