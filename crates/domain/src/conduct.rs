//! The loop over the ports: claims an operation, has it run, and brings its ending to the store,
//! with every lost race handled once, here, and every lost commit in `offering`.
//!
//! ```text
//! claim:     decide ─▶ commit ─┬─ committed ─▶ mine: run it
//!              ▲               ├─ conflict ──▶ load, judge again
//!              │               └─ lost ──────▶ the same change again, until there is a verdict
//!              └─ in the way: settle a recorded one (T2b), reap one without an owner (T6)
//! conclude:  decide ─▶ commit, until the store takes it or the row shows that it cannot stand
//! ```
//!
//! A commit whose answer was lost is neither done nor undone: it may land yet, and an old row that is merely
//! read proves nothing. So the same change is offered again, unchanged, until the store answers committed or
//! conflict; a claim is mine only if the row then carries my claim id.
//!
//! Never: a provider call before the commit of the claim has come back; a loser that releases the
//! winner's hold; an answer that is not the row's.
//!
//! Async without a runtime. It never spawns: the caller decides which task outlives which. No future in here is
//! cancel safe once a claim was offered; run it on a task that is never dropped.
//!
//! ```
//! use holdfast_domain::conduct::{ClaimError, ClaimOutcome, Conduct, Ending};
//! use holdfast_testkit::{Fault, MemoryJournal, NoPause, sample};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ClaimError> {
//! let journal = MemoryJournal::with_funds(1_000);
//! let conduct = Conduct { journal: &journal, pause: &NoPause, orphan_grace: None };
//!
//! // The answer to the first commit is lost: the same change is offered again, and the work runs once.
//! journal.fail_next([Fault::Landed]);
//! let claim = sample::claim().hold(100).build();
//! let work = async |_operation| (sample::finished(20, 10), Vec::new());
//! conduct.perform(&sample::order(&claim), work).await?;
//!
//! // Another task with the same key gets the stored answer. Its own work is not called.
//! let again = sample::claim().hold(100).claim_id(sample::fresh()).build();
//! let repeated = async |_operation| -> (Ending, Vec<_>) { unreachable!("it has run") };
//! let outcome = conduct.perform(&sample::order(&again), repeated).await?;
//! let ClaimOutcome::Ended(found) = outcome else { unreachable!("it has ended") };
//! assert_eq!(found.snapshot.result, Some(sample::result("answer")));
//! assert_eq!(journal.wallet(sample::WALLET).unwrap().available.get(), 970);
//! # Ok(())
//! # }
//! ```

mod clocks;
mod concluding;
mod offering;
mod purging;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use self::clocks::ClockSkew;
pub use self::concluding::{Conclusion, Ending};
use self::offering::Verdict;
pub use self::purging::{PurgeOutcome, Purges};
use self::upkeep::EventOutcome;
pub use self::upkeep::Reconciliation;
use crate::debug_as;
use crate::limits::CounterReadings;
use crate::operation::{
    Attempt, Binding, Claim, Event, Operation, Phase, Refusal, Snapshot, Transition, decide,
};
use crate::ports::{CommitError, Journal, Pause, Unavailable};
use crate::secret::BodyDigest;
use crate::{ClaimId, OperationId, Timestamp};

/// Races that one claim may lose before it fails with [`ClaimError::Contended`]. Each lost race means that another
/// owner moved the operation on.
const RACES_MAX: u32 = 16;

/// Loop that carries decisions to a journal. Holds no state: cheap to make for every call.
#[derive(Clone, Copy)]
pub struct Conduct<'a> {
    /// Journal that they are committed to.
    pub journal: &'a dyn Journal,
    /// Wait between two offers.
    pub pause: &'a dyn Pause,
    /// Grace of [`Event::Reap`].
    pub orphan_grace: Option<Duration>,
}

debug_as!(Conduct<'_> as it: "Conduct(orphan_grace: {:?})", it.orphan_grace);

/// Claim to be offered, with the means to compare it with an older binding.
#[derive(Clone, Copy)]
pub struct ClaimOffer<'a> {
    /// Claim that T1 or T7 would write.
    pub claim: &'a Claim,
    /// Latest possible moment of the database's clock: only this process's own lease is judged by it.
    pub now: Timestamp,
    /// Binds the request again under the terms and the model of this row, for comparison.
    pub rebind: &'a (dyn Fn(&Operation) -> Rebinding + Send + Sync),
}

/// A request that is to be compared with an operation of other terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebinding {
    /// Binding under these terms.
    Bound(Binding),
    /// The terms cannot be met any more. Only equal bytes under the same server secret are still the same
    /// request.
    Lost,
    /// The terms have a fingerprint version of a later release: this process cannot compare. With the digest
    /// of the body, if the server secret is known.
    UnknownVersion(Option<BodyDigest>),
}

debug_as!(ClaimOffer<'_> as it: "{:?}", it.claim);

/// Outcome of a claim.
#[derive(Debug)]
pub enum ClaimOutcome {
    /// The operation is this claim's to run; with the readings of its counters if the store returned them.
    Mine(Box<Operation>, CounterReadings),
    /// The key's operation has ended: its answer is in the snapshot. After [`Conduct::perform`] it may also be
    /// open again, if the run proved that it had not happened.
    Ended(Box<Reconciliation>),
    /// Another claim runs it and may be alive.
    InProgress(Box<Snapshot>),
    /// Result kept, settlement still refused.
    Recorded(Box<Snapshot>),
    /// Open, and may run again after [`Operation::reopens_in`]. No row was written.
    TooSoon(Box<Snapshot>),
    /// The key is bound to another request.
    OtherRequest,
}

/// Reason why a claim had no effect. The key is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The store refused or could not take the claim.
    #[error("the claim was not committed")]
    Commit(#[source] CommitError),
    /// The store could not be read.
    #[error("the operation could not be read")]
    Load(#[source] Unavailable),
    /// Lease of this process is not live: it must not start anything now.
    #[error("this node's lease is not live")]
    LeaseLost,
    /// The ledger was restored, and the key may have run before: nothing runs and nothing is bound until the window
    /// of the restore ends.
    #[error("the ledger was restored, and the key may have run before")]
    LedgerRestored,
    /// The rules refused a claim for a reason that only other events have: a bug in them.
    #[error("a claim was judged as no claim can be")]
    Misjudged(#[source] Refusal),
    /// Others kept moving the operation.
    #[error("the operation kept changing hands")]
    Contended,
    /// The operation was bound by a later release, under a version that is not known here. Neither a conflict
    /// nor a run may follow: only a process of that release can compare.
    #[error("the operation has a fingerprint version of a later release")]
    UnknownVersion,
}

/// A runtime's own timer is one: `|attempt| tokio::time::sleep(STEP * attempt)`.
#[async_trait]
impl<W, F> Pause for W
where
    W: Fn(u32) -> F + Send + Sync,
    F: Future<Output = ()> + Send + 'static,
{
    async fn pause(&self, attempt: u32) {
        self(attempt).await;
    }
}

impl Conduct<'_> {
    /// Claims an operation (T1, T7); settles or reaps an operation in the way if that is allowed. Not cancel
    /// safe: a dropped claim may be committed, and is then reaped as run.
    ///
    /// # Errors
    ///
    /// [`ClaimError::Commit`] if the store refused the claim, [`ClaimError::Load`] if it cannot be read,
    /// [`ClaimError::LeaseLost`], [`ClaimError::LedgerRestored`] and [`ClaimError::UnknownVersion`] if this process may
    /// not claim it now, [`ClaimError::Contended`] after 16 lost races. The key is as it was before.
    pub async fn claim(&self, offer: &ClaimOffer<'_>) -> Result<ClaimOutcome, ClaimError> {
        // Judged over an empty snapshot first: a key is new as a rule, and the commit's
        // compare-and-set is the read. Within the window of a restore the row is read, with the clock of the
        // database that the window ends by: a known key gets its answer there.
        let (mut is_read, mut moved) = (offer.claim.unknown_until.is_some(), false);
        let mut snapshot =
            if is_read { self.load(offer).await? } else { Snapshot::vacant(offer.now) };
        for _race in 0..RACES_MAX {
            let judged = decide(&snapshot, Event::Claim(offer.claim_for(&snapshot)?));
            // Boxed: the future of every claim has room for the largest of these values.
            match judged.map(Arc::new) {
                Ok(change) => {
                    match self.offer_claim(&change, snapshot.operation.as_ref()).await? {
                        OfferOutcome::Mine(row, readings) => {
                            return Ok(ClaimOutcome::Mine(row, readings));
                        }
                        OfferOutcome::Moved => snapshot = self.load(offer).await?,
                        // It may be this very claim that moved it: until that is known, saying
                        // that the key is as it was would leave a run that nobody runs.
                        OfferOutcome::MovedAfterLoss => {
                            snapshot = Box::pin(self.load_with_retries(offer.operation())).await;
                        }
                    }
                }
                // Whether the key is bound is not known yet, and a bound key gets its answer from
                // any process that can read.
                Err(Refusal::LeaseLost) if !is_read => snapshot = self.load(offer).await?,
                Err(Refusal::OtherRequest) => return Ok(ClaimOutcome::OtherRequest),
                Err(Refusal::Ended) => {
                    return Ok(ClaimOutcome::Ended(Box::new(Reconciliation { snapshot, moved })));
                }
                Err(Refusal::Recorded) => {
                    let tried = Box::pin(self.try_event(snapshot, Event::Settle)).await;
                    match tried.map_err(ClaimError::Load)? {
                        EventOutcome::Moved(found) => Reconciliation { snapshot, moved } = found,
                        EventOutcome::Stands(stands) => {
                            return Ok(ClaimOutcome::Recorded(Box::new(stands)));
                        }
                    }
                }
                Err(Refusal::Leased) => {
                    if let Some(operation) = own_operation(&snapshot, offer.claim.owner.claim) {
                        return Ok(ClaimOutcome::Mine(
                            Box::new(operation),
                            CounterReadings::default(),
                        ));
                    }
                    // The owner is somebody else, alive or not: only the judge may say which.
                    let reap = Event::Reap { orphan_grace: self.orphan_grace };
                    let tried = Box::pin(self.try_event(snapshot, reap)).await;
                    match tried.map_err(ClaimError::Load)? {
                        EventOutcome::Moved(found) => Reconciliation { snapshot, moved } = found,
                        EventOutcome::Stands(stands) => {
                            return Ok(ClaimOutcome::InProgress(Box::new(stands)));
                        }
                    }
                }
                // A claim that landed late and was disowned meanwhile: the next one has a new id.
                Err(Refusal::ClaimUsed) => return Err(ClaimError::Contended),
                Err(Refusal::TooSoon) => return Ok(ClaimOutcome::TooSoon(Box::new(snapshot))),
                Err(Refusal::LeaseLost) => return Err(ClaimError::LeaseLost),
                Err(Refusal::LedgerRestored) => return Err(ClaimError::LedgerRestored),
                Err(
                    refusal @ (Refusal::NotRunning
                    | Refusal::NotOwner
                    | Refusal::OwnerAlive
                    | Refusal::CancelAsked
                    | Refusal::Missing),
                ) => return Err(ClaimError::Misjudged(refusal)),
            }
            is_read = true;
        }
        Err(ClaimError::Contended)
    }

    /// Claims, runs and concludes: all that an embedder needs. `run` is called at most once, after
    /// the claim was committed. Not cancel safe.
    ///
    /// # Errors
    ///
    /// As [`Conduct::claim`]: there was no run, and the key is as it was before.
    pub async fn perform<F, R>(
        &self,
        offer: &ClaimOffer<'_>,
        run: R,
    ) -> Result<ClaimOutcome, ClaimError>
    where
        R: FnOnce(Arc<Operation>) -> F,
        F: Future<Output = (Ending, Vec<Attempt>)>,
    {
        let operation = match self.claim(offer).await? {
            // From here on the hold is committed: every way out goes through `conclude`.
            ClaimOutcome::Mine(operation, _readings) => Arc::new(*operation),
            bound @ (ClaimOutcome::Ended(_)
            | ClaimOutcome::InProgress(_)
            | ClaimOutcome::Recorded(_)
            | ClaimOutcome::TooSoon(_)
            | ClaimOutcome::OtherRequest) => return Ok(bound),
        };
        let (ending, attempts) = run(Arc::clone(&operation)).await;
        let Conclusion { snapshot, moved, .. } =
            self.conclude(&operation, &ending, &attempts).await;
        Ok(match snapshot.operation.as_ref().map(|operation| &operation.phase) {
            Some(Phase::Recorded(_)) => {
                ClaimOutcome::Recorded(Box::new(Arc::unwrap_or_clone(snapshot)))
            }
            // Leased again, by another claim: this run's word came too late.
            Some(Phase::Leased) => {
                ClaimOutcome::InProgress(Box::new(Arc::unwrap_or_clone(snapshot)))
            }
            Some(
                Phase::Open
                | Phase::Completed { .. }
                | Phase::Refused { .. }
                | Phase::Abandoned { .. },
            )
            | None => ClaimOutcome::Ended(Box::new(Reconciliation {
                snapshot: Arc::unwrap_or_clone(snapshot),
                moved,
            })),
        })
    }

    /// Offers a claim until there is a verdict.
    async fn offer_claim(
        &self,
        change: &Arc<Transition>,
        before: Option<&Operation>,
    ) -> Result<OfferOutcome, ClaimError> {
        let Verdict { of_store, was_lost } = self.offer(change).await;
        match of_store {
            // No read: the commit was the compare-and-set, so the row is what the change makes.
            Ok(receipt) => Ok(change.apply(before, receipt).map_or(OfferOutcome::Moved, |row| {
                OfferOutcome::Mine(Box::new(row), receipt.counters)
            })),
            Err(CommitError::Conflict) if was_lost => Ok(OfferOutcome::MovedAfterLoss),
            Err(CommitError::Conflict) => Ok(OfferOutcome::Moved),
            Err(
                error @ (CommitError::InsufficientFunds
                | CommitError::FundsHeld { .. }
                | CommitError::LimitsEdited
                | CommitError::LimitReached(_)
                | CommitError::Collision
                | CommitError::TooLarge
                | CommitError::Overloaded
                | CommitError::Unavailable(_)
                | CommitError::Uncertain(_)),
            ) => Err(ClaimError::Commit(error)),
        }
    }

    async fn load(&self, offer: &ClaimOffer<'_>) -> Result<Snapshot, ClaimError> {
        self.journal.load(offer.operation()).await.map_err(ClaimError::Load)
    }
}

/// Outcome of an offered claim.
enum OfferOutcome {
    /// Committed: this claim owns the operation.
    Mine(Box<Operation>, CounterReadings),
    /// The row moved before it: load it.
    Moved,
    /// The row moved, and an answer of the store was lost before that was known.
    MovedAfterLoss,
}

impl ClaimOffer<'_> {
    /// The claim as it is compared with this row: bound under the row's terms and model if they differ.
    fn claim_for(&self, snapshot: &Snapshot) -> Result<Box<Claim>, ClaimError> {
        let mut claim = Box::new(self.claim.clone());
        let Some(operation) = &snapshot.operation else { return Ok(claim) };
        if operation.binding.terms == claim.binding.terms && operation.model == claim.model {
            return Ok(claim);
        }
        match (self.rebind)(operation) {
            Rebinding::Bound(binding) => claim.binding = binding,
            Rebinding::Lost => {}
            // Equal bytes are one request under any version, and get its answer. A new run is left to
            // a process that knows the version.
            Rebinding::UnknownVersion(Some(digest))
                if digest == operation.binding.body_digest && operation.phase != Phase::Open =>
            {
                claim.binding = operation.binding;
            }
            Rebinding::UnknownVersion(_) => return Err(ClaimError::UnknownVersion),
        }
        Ok(claim)
    }

    fn operation(&self) -> OperationId {
        OperationId::of(self.claim.api_key, self.claim.request_key)
    }
}

/// A claim whose commit was lost and found: the row carries my claim id, and has not ended.
fn own_operation(snapshot: &Snapshot, claim: ClaimId) -> Option<Operation> {
    let operation = snapshot.operation.as_ref()?;
    (operation.owner.claim == claim && operation.phase == Phase::Leased).then(|| operation.clone())
}
