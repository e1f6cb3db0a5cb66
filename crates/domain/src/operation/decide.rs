//! The judge of every event over every phase. Pure: it awaits no future and reads no clock, and it names every
//! pair, so that a new phase or event does not compile before each of its pairs is decided.
//!
//! ```text
//!      event      guard                               row after   hold
//! T1   Claim      no row; no window; own lease live   leased      taken
//! T7   Claim      open, same request, no window,      leased      taken anew, generation + 1
//!                 not too soon
//! T2   Finish     leased, and the claim is mine       completed   captured: charge, and rest back
//! T2a  Record     as T2                               recorded    stays
//! T2b  Settle     recorded; any process               completed   as T2
//! T2c  AskCancel  leased, no earlier request         leased      stays
//! T3   NotRun     as T2                               open        released
//! T4   Refuse     as T2                               refused     released
//! T5   GiveUp     as T2                               abandoned   lapses
//! T5′  AskCancel  open                                abandoned   none: it went back with T3
//! T6   Reap       leased; owner gone or time over     abandoned   lapses
//! T6   Disown     as T2, by the claim's own process   as T3 or T5
//! ```
//!
//! Funds and limits are not judged here: no snapshot could promise that they are still there at the
//! commit. A [`Transition`] carries them to the store, which judges them as it writes.
//!
//! The window is that of a restore ([`restore`](crate::restore)). Its claim has it from the row of its API key, so no
//! claim outside of a window reads anything for it; the store's check of the limits' revision proves that the row has
//! not changed since.
//!
//! Never: a dead owner read as *not run*; an ending refused for a limit; a reap of what is
//! recorded; a hold or a counter that a cancel of an open operation gives back once more.

use std::sync::Arc;

use super::{
    Admission, Attempt, Claim, Disown, Effect, Event, Finish, GenerationStart, Lease, Operation,
    Phase, SendStatus, Snapshot, Transition,
};
use crate::billing::UsageRecord;
use crate::ledger::Funds;
use crate::limits::Reservation;
use crate::{ClaimId, Micros, OperationId, Timestamp};

/// Reason why an event has no effect. For a claim it names the alternative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The key is bound to another request: a conflict without any effect.
    #[error("the key is bound to another request")]
    OtherRequest,
    /// Final answer exists: replay it.
    #[error("the operation has ended")]
    Ended,
    /// Leased: attach to its run, or reap it if that is allowed.
    #[error("the operation is leased")]
    Leased,
    /// Result without a settlement: settle it first.
    #[error("the operation waits for its settlement")]
    Recorded,
    /// Open: there is no run that the event could be about.
    #[error("the operation is not running")]
    NotRunning,
    /// The claim is not the one on the row: stop at once.
    #[error("the operation is owned by another claim")]
    NotOwner,
    /// Claim id of an earlier generation: a claim is offered for one generation only.
    #[error("the claim id was used before")]
    ClaimUsed,
    /// Open, and its next generation may not begin yet: see [`Operation::reopens_in`].
    #[error("the operation was reopened too often to be reopened now")]
    TooSoon,
    /// The ledger was restored, and the key is unknown or open in the copy: it may have run since the copy was made.
    #[error("the ledger was restored, and the key may have run before")]
    LedgerRestored,
    /// Lease of the claiming process is not live: it must not start anything.
    #[error("this node's lease is not live")]
    LeaseLost,
    /// Owner may still be alive: leave it alone.
    #[error("the operation's owner may still be alive")]
    OwnerAlive,
    /// The caller has requested it already: no row is written, so that repeated requests never delay its
    /// owner's own change.
    #[error("the operation's caller has requested its cancellation already")]
    CancelAsked,
    /// There is no row.
    #[error("there is no such operation")]
    Missing,
}

/// Decides what an event does to an operation. A store may refuse the outcome only for what no snapshot can
/// promise: the version, the revision of the limits, balances and counters, permanent ids, the size of a result
/// ([`CommitError`](crate::ports::CommitError)).
///
/// # Errors
///
/// A [`Refusal`] if the event has no effect: its variant is the reason, [`Refusal::Missing`] for any event but a claim
/// without a row.
///
/// # Panics
///
/// If a claim's hold is negative: it would pay the caller, so a wrong computation stops here.
pub fn decide(snapshot: &Snapshot, event: Event) -> Result<Transition, Refusal> {
    let Some(operation) = &snapshot.operation else {
        return match event {
            Event::Claim(claim) => admit(claim, snapshot.now),
            Event::Finish(_)
            | Event::Record(_)
            | Event::Settle
            | Event::AskCancel
            | Event::NotRun { .. }
            | Event::Refuse { .. }
            | Event::GiveUp { .. }
            | Event::Reap { .. }
            | Event::Disown(_) => Err(Refusal::Missing),
        };
    };
    match event {
        Event::Claim(claim) => claim_bound(operation, claim, snapshot.now),
        Event::Finish(finish) => {
            owned(operation, finish.claim)?;
            Ok(complete(operation, finish))
        }
        Event::Record(finish) => {
            owned(operation, finish.claim)?;
            Ok(record(operation, finish))
        }
        // No claim to show: what is recorded is complete but for its settlement, whoever writes
        // that.
        Event::Settle => settle(operation),
        Event::AskCancel => request_cancel(operation),
        Event::NotRun { claim, attempts } => {
            owned(operation, claim)?;
            Ok(not_run(operation, attempts))
        }
        Event::Refuse { claim, refusal, result, attempts } => {
            owned(operation, claim)?;
            Ok(release(operation, Effect::Refuse { refusal, result, attempts }))
        }
        Event::GiveUp { claim, attempts } => {
            owned(operation, claim)?;
            Ok(release(operation, Effect::Abandon { attempts }))
        }
        Event::Reap { orphan_grace } => {
            leased(operation)?;
            let now = snapshot.now;
            // The deadline reaps whatever the leases say: a live node may have lost or hung the
            // task.
            let dead = owner_is_gone(operation, snapshot.lease.as_ref(), now, orphan_grace);
            if !dead && now <= operation.deadline {
                return Err(Refusal::OwnerAlive);
            }
            // Nothing about a dead owner proves that it had not sent: never read it as not run.
            Ok(release(operation, Effect::Abandon { attempts: Arc::default() }))
        }
        Event::Disown(Disown { claim, sent }) => {
            owned(operation, claim)?;
            // Only the process that made the claim id can know that no byte of it was sent.
            let attempts: Arc<[Attempt]> = Arc::default();
            Ok(match sent {
                SendStatus::Never => not_run(operation, attempts),
                SendStatus::Perhaps => release(operation, Effect::Abandon { attempts }),
            })
        }
    }
}

/// T1: no row yet.
fn admit(claim: Box<Claim>, now: Timestamp) -> Result<Transition, Refusal> {
    refuse_within_window(&claim, now)?;
    // What is leased through a dead lease is anybody's to reap: begin nothing under one.
    if !claim.lease.is_live(&claim.owner.node, now) {
        return Err(Refusal::LeaseLost);
    }
    let counters = claim.limits.reservations(claim.hold, claim.tokens);
    let hold = claim.hold;
    Ok(Transition {
        operation: OperationId::of(claim.api_key, claim.request_key),
        api_key: claim.api_key,
        wallet: claim.wallet,
        expected: None,
        claim: None,
        generation: 1,
        funds: Funds::Hold(hold),
        counters,
        // The store stamps the admission; the counters move in the windows of that moment.
        admitted_at: None,
        effect: Effect::Admit(Box::new(Admission {
            request_key: claim.request_key,
            binding: claim.binding,
            model: claim.model.clone(),
            alias: claim.alias.clone(),
            start: start(claim),
        })),
    })
}

/// Claim of a bound key, which T7 or a refusal answers: in this order, so that a bound key never reveals its state to
/// a different request.
fn claim_bound(
    operation: &Operation,
    claim: Box<Claim>,
    now: Timestamp,
) -> Result<Transition, Refusal> {
    // Before the phase: another request learns nothing of the one that the key is bound to.
    if !operation.binding.is_same_request(&claim.binding) {
        return Err(Refusal::OtherRequest);
    }
    match &operation.phase {
        Phase::Completed { .. } | Phase::Refused { .. } | Phase::Abandoned { .. } => {
            Err(Refusal::Ended)
        }
        Phase::Recorded(_) => Err(Refusal::Recorded),
        // Alive or not is no question of a claim: its caller attaches, or offers a reap.
        Phase::Leased => Err(Refusal::Leased),
        // Equal bytes name a model by an alias that leads elsewhere by now. What ran or may have run keeps its
        // answer; a new run would be of another model than the key is bound to.
        Phase::Open if operation.model != claim.model => Err(Refusal::OtherRequest),
        Phase::Open => reopen(operation, claim, now),
    }
}

/// T7: everything that concerns money is taken anew, as T1 would take it now.
fn reopen(operation: &Operation, claim: Box<Claim>, now: Timestamp) -> Result<Transition, Refusal> {
    // The commit of this claim landed late and was disowned meanwhile: its id is used up.
    if operation.owner.claim == claim.owner.claim {
        return Err(Refusal::ClaimUsed);
    }
    // The copy has it as not run: a later generation may have run, and be lost.
    refuse_within_window(&claim, now)?;
    if !claim.lease.is_live(&claim.owner.node, now) {
        return Err(Refusal::LeaseLost);
    }
    if !operation.reopens_in(now).is_zero() {
        return Err(Refusal::TooSoon);
    }
    Ok(Transition {
        generation: operation.generation.saturating_add(1),
        funds: Funds::Hold(claim.hold),
        counters: claim.limits.reservations(claim.hold, claim.tokens),
        admitted_at: None,
        // The rest comes from the row: id, API key and wallet do not change with the generation.
        ..unmoved(operation, Effect::Reopen(Box::new(start(claim))))
    })
}

/// Refuses a new run of an API key whose request keys a restore may have lost.
fn refuse_within_window(claim: &Claim, now: Timestamp) -> Result<(), Refusal> {
    if claim.unknown_until.is_some_and(|until| now < until) {
        return Err(Refusal::LedgerRestored);
    }
    Ok(())
}

fn start(claim: Box<Claim>) -> GenerationStart {
    assert!(claim.hold >= Micros::ZERO, "a hold is never negative");
    GenerationStart {
        owner: claim.owner,
        price: claim.price,
        hold: claim.hold,
        reserved: Reservation::for_limits(&claim.limits, claim.tokens),
        limits_revision: claim.limits_revision,
        time: claim.time,
    }
}

/// T2: never refused for a limit.
fn complete(operation: &Operation, finish: Finish) -> Transition {
    // Priced by the operation's own copy: prices that changed since are not this caller's.
    let usage = UsageRecord::of(finish.metered, &operation.price, operation.hold);
    let Finish { result, attempts, .. } = finish;
    Transition {
        funds: Funds::Capture { hold: operation.hold, charge: usage.charge },
        counters: operation.settlement_moves(&usage),
        ..unmoved(operation, Effect::Complete { usage, result, attempts })
    }
}

/// T2a: everything but the settling half.
fn record(operation: &Operation, finish: Finish) -> Transition {
    let usage = UsageRecord::of(finish.metered, &operation.price, operation.hold);
    let Finish { result, attempts, .. } = finish;
    unmoved(operation, Effect::Record { usage, result, attempts })
}

/// T2b: the settling half, by any process. The charge is the recorded one: no run is priced twice.
fn settle(operation: &Operation) -> Result<Transition, Refusal> {
    match &operation.phase {
        Phase::Recorded(usage) => Ok(Transition {
            funds: Funds::Capture { hold: operation.hold, charge: usage.charge },
            counters: operation.settlement_moves(usage),
            ..unmoved(operation, Effect::Settle)
        }),
        Phase::Leased => Err(Refusal::Leased),
        Phase::Open => Err(Refusal::NotRunning),
        Phase::Completed { .. } | Phase::Refused { .. } | Phase::Abandoned { .. } => {
            Err(Refusal::Ended)
        }
    }
}

/// T2c and T5′: a running operation is its owner's to end, an open one has no owner.
fn request_cancel(operation: &Operation) -> Result<Transition, Refusal> {
    // T3 gave back hold and counters. Nothing is left to move: the key ends, and nothing else.
    if operation.phase == Phase::Open {
        return Ok(unmoved(operation, Effect::Cancel));
    }
    leased(operation)?;
    if operation.cancel_asked {
        return Err(Refusal::CancelAsked);
    }
    Ok(unmoved(operation, Effect::AskCancel))
}

/// T4 to T6: the hold goes back; what may have run stays counted.
fn release(operation: &Operation, effect: Effect) -> Transition {
    let hold: Micros = operation.hold;
    Transition {
        funds: given_up(&effect, hold),
        counters: operation.reserved.release_moves(hold),
        ..unmoved(operation, effect)
    }
}

/// T3: the hold and the reservations go back. Abandoned all the same if its caller requested its cancellation:
/// an open operation would run again at the next retry, and clients retry by themselves.
fn not_run(operation: &Operation, attempts: Arc<[Attempt]>) -> Transition {
    let effect = if operation.cancel_asked {
        Effect::Abandon { attempts }
    } else {
        Effect::Open { attempts }
    };
    let counters = operation.reserved.not_run_moves(operation.hold, operation.generation);
    // The ledger records that it did not run, also of what is abandoned.
    let funds = Funds::Release(operation.hold);
    Transition { funds, counters, ..unmoved(operation, effect) }
}

/// Move of the hold that a given-up or refused operation makes. The ledger distinguishes the two: the hold of a
/// run with an unknown outcome lapses, so that no row can pass for *did not run*.
const fn given_up(effect: &Effect, hold: Micros) -> Funds {
    match effect {
        Effect::Abandon { .. } => Funds::Lapse(hold),
        Effect::Admit(_)
        | Effect::Reopen(_)
        | Effect::Complete { .. }
        | Effect::Record { .. }
        | Effect::Settle
        | Effect::AskCancel
        | Effect::Cancel
        | Effect::Open { .. }
        | Effect::Refuse { .. } => Funds::Release(hold),
    }
}

/// The frame of a change to this row that moves no money: the version and the claim that were judged must still
/// be those in the store.
fn unmoved(operation: &Operation, effect: Effect) -> Transition {
    Transition {
        operation: operation.id,
        api_key: operation.api_key,
        wallet: operation.wallet,
        expected: Some(operation.version),
        claim: Some(operation.owner.claim),
        generation: operation.generation,
        effect,
        funds: Funds::Unmoved,
        counters: Vec::new(),
        admitted_at: Some(operation.admitted_at),
    }
}

fn leased(operation: &Operation) -> Result<(), Refusal> {
    match operation.phase {
        Phase::Leased => Ok(()),
        Phase::Recorded(_) => Err(Refusal::Recorded),
        Phase::Open => Err(Refusal::NotRunning),
        Phase::Completed { .. } | Phase::Refused { .. } | Phase::Abandoned { .. } => {
            Err(Refusal::Ended)
        }
    }
}

/// The guard of every event that only the owner may send: leased, and the claim is mine.
fn owned(operation: &Operation, claim: ClaimId) -> Result<(), Refusal> {
    leased(operation)?;
    // After the phase: an owner that comes too late finds how the operation has ended.
    if operation.owner.claim == claim { Ok(()) } else { Err(Refusal::NotOwner) }
}

/// True if the owner cannot come back: its row is missing or another incarnation's (a heartbeat renews its own
/// row only), or its lease ended longer than the grace ago.
fn owner_is_gone(
    operation: &Operation,
    lease: Option<&Lease>,
    now: Timestamp,
    orphan_grace: Option<std::time::Duration>,
) -> bool {
    match lease {
        None => true,
        Some(lease) if lease.node.incarnation != operation.owner.node.incarnation => true,
        // Without a grace this process has only just come back: a database outage makes all nodes
        // look dead, so nobody is reaped for a dead lease now.
        Some(lease) => orphan_grace.is_some_and(|grace| now > lease.ends_at.after(grace)),
    }
}
