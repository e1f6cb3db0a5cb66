//! A sale: claim, work and ending of one operation, on a task that nobody drops.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::admin::Directory as _;
use holdfast_domain::conduct::{ClaimError, ClaimOffer, ClaimOutcome, Ending, Rebinding};
use holdfast_domain::credential::ApiKey;
use holdfast_domain::model::FingerprintTerms;
use holdfast_domain::operation::{Binding, Claim, Operation, Owner, Phase, Snapshot};
use holdfast_domain::ports::{PinError, Prices as _, Unavailable, Wallets as _};
use holdfast_domain::usage::{MeterReading, Meters, MetersSource, UsageReasons};
use holdfast_domain::{ApiKeyId, ClaimId, Micros, OperationId, RequestKey};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::membership::{Membership, PAUSE};
use crate::seal::{Seal, result};
use crate::{Holdfast, Inner, Price};

/// Version of the normal form of requests, which is the request itself here.
const FINGERPRINT_VERSION: u16 = 1;
/// Span from the hold to the moment after which anybody may give the operation up.
const TIME: Duration = Duration::from_secs(3_600);

/// Identity of a sale: the same pair is the same sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaleKey {
    /// API key, whose wallet pays.
    pub api_key: ApiKeyId,
    /// Request key of the caller.
    pub request_key: RequestKey,
}

/// Ending of the work.
#[derive(Debug)]
pub enum Work {
    /// Done: charged by these meters at the price, at most the hold.
    Done {
        /// Meters of the work.
        meters: Meters,
        /// The answer, kept for whoever asks again.
        answer: Vec<u8>,
    },
    /// Proven not to have run: nobody pays, and the key may run again.
    NotRun,
    /// Perhaps run, and without an answer: nobody pays, and the key never runs again.
    Unknown,
}

/// State of a sale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sale {
    /// Sold, and paid once.
    Sold {
        /// The answer; `None` once it was deleted.
        answer: Option<Vec<u8>>,
        /// The charge.
        charge: Micros,
        /// True if this call brought it there, and its work ran.
        is_new: bool,
    },
    /// Perhaps run, without an answer: nobody pays, and it never runs again.
    Lost,
    /// Not run; the key may run again after this time.
    NotRun(Duration),
    /// In progress elsewhere, or kept and not paid yet: ask again.
    InProgress,
    /// The key is bound to another request.
    OtherRequest,
}

/// Reason why nothing was sold. The request key is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SellError {
    /// There is no such API key, or it has ended or is suspended.
    #[error("the API key is not in force")]
    Key,
    /// The wallet of the API key is suspended or closed.
    #[error("the wallet is suspended")]
    Wallet,
    /// The lease of this process is lost, or it has ended.
    #[error("this process has no lease")]
    NoLease,
    /// The price is known with other numbers.
    #[error(transparent)]
    Price(#[from] PinError),
    /// The claim was refused: no funds, or a limit.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The store does not work.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The task of the sale has panicked: its key tells what became of it.
    #[error("the task of the sale has ended")]
    Task(#[source] tokio::task::JoinError),
}

impl Holdfast {
    /// Sells the work for this request, once for this key: holds the amount, has the work run, and charges what it
    /// metered. The work is called at most once, after the hold was committed. A dropped future stops nothing.
    ///
    /// # Errors
    ///
    /// A [`SellError`].
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

impl Inner {
    async fn sell<W, F>(&self, order: Order, work: W) -> Result<Sale, SellError>
    where
        W: FnOnce() -> F + Send + 'static,
        F: Future<Output = Work> + Send + 'static,
    {
        let membership = &*self.membership;
        let api_key = self.payer(order.key.api_key).await?;
        membership.store.pin(std::slice::from_ref(&order.price.version)).await?;
        let (lease, now) = membership.lease().ok_or(SellError::NoLease)?;
        let id = OperationId::of(order.key.api_key, order.key.request_key);
        let claim = Claim {
            api_key: order.key.api_key,
            request_key: order.key.request_key,
            wallet: api_key.wallet,
            binding: order.binding,
            model: order.price.product,
            alias: None,
            price: order.price.version,
            hold: order.hold,
            tokens: 0,
            limits: api_key.grant.limits,
            limits_revision: None,
            time: TIME,
            owner: Owner { claim: ClaimId::from(Uuid::new_v4()), node: lease.node.clone() },
            lease,
        };
        let offer = ClaimOffer { claim: &claim, now, rebind: &|_older| Rebinding::Lost };
        let running = RunningSale::begin(membership, id, claim.owner.claim);
        let seal = Arc::clone(&self.seal);
        let run = async |operation: Arc<Operation>| {
            // On a task of its own: work that panics has perhaps run, and its hold does not stay behind.
            let mut tasks = JoinSet::new();
            tasks.spawn(async move { work().await });
            let worked = tasks.join_next().await.and_then(Result::ok).unwrap_or(Work::Unknown);
            (ending(&*seal, &operation, worked), Vec::new())
        };
        let claimed = membership.conduct(&PAUSE).perform(&offer, run).await?;
        drop(running);
        Ok(self.told(claimed))
    }

    /// The API key of a sale, if it may buy now.
    async fn payer(&self, id: ApiKeyId) -> Result<ApiKey, SellError> {
        let store = &self.membership.store;
        let key = store.api_key(id).await?.ok_or(SellError::Key)?;
        let (_, now) = self.membership.lease().ok_or(SellError::NoLease)?;
        if key.has_ended(now) || key.suspended_at.is_some() {
            return Err(SellError::Key);
        }
        let wallet = store.find(key.wallet).await?;
        let may_pay = wallet.is_some_and(|wallet| wallet.suspended_at.is_none());
        if may_pay { Ok(key) } else { Err(SellError::Wallet) }
    }

    fn told(&self, claimed: ClaimOutcome) -> Sale {
        match claimed {
            ClaimOutcome::Ended(found) => self.ended(found.snapshot, found.moved),
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
        // The first stays: of two sales of one key, one has the claim and the other one waits for it.
        membership.running().entry(operation).or_insert(claim);
        Self { membership, operation, claim }
    }
}

impl Drop for RunningSale<'_> {
    fn drop(&mut self) {
        let mut running = self.membership.running();
        if running.get(&self.operation) == Some(&self.claim) {
            running.remove(&self.operation);
        }
    }
}
