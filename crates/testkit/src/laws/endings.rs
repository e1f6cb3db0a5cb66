//! Laws of what follows a claim: each change writes the rows that [`Transition::apply`] predicts,
//! once.
//!
//! A law steps an operation through its transitions and compares after each one the row, the sealed
//! result, the wallet and the book with the change. Every change over an older version, and every
//! permanent id that exists, must be refused and leave no trace: that is all that stands between
//! two tasks and two charges.
//!
//! [`Transition::apply`]: holdfast_domain::operation::Transition::apply
//!
//! # Panics
//!
//! A law panics on a store that breaks it, or whose port fails.
//!
//! ```
//! use holdfast_testkit::{MemoryJournal, laws::endings};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! endings::concurrent_endings_settle_once(&MemoryJournal::new()).await;
//! # }
//! ```
#![expect(clippy::unwrap_used, reason = "a law that fails panics")]

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::operation::{
    Disown, Effect, Operation, Phase, Receipt, SendStatus, Snapshot, Transition, Version,
};
use holdfast_domain::ports::CommitError;
use holdfast_domain::{Event, OperationId, Refusal, Timestamp, decide};

use super::Stores;
use super::tenant::{Tenant, finish, give_up, judged, not_run, operation_change, record, refuse};
use crate::join::join_all;
use crate::sample;

/// T1 and T2: the charge goes to revenue, the rest of the hold comes back.
pub async fn a_result_completes_and_settles(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let claim = tenant.claim().hold(100).build();
    let vacant = tenant.load(OperationId::of(claim.api_key, claim.request_key)).await;
    assert_eq!((vacant.operation.as_ref(), vacant.result.as_ref()), (None, None));
    let admitted = tenant.commit_as_predicted(&vacant, &sample::admission(&claim)).await;
    assert_eq!(tenant.balances().await, (900, 100));
    let completed = tenant.step(admitted.id, finish(&admitted, 20, 10)).await;
    assert_eq!(completed.phase.usage().unwrap().charge.get(), 30);
    assert_eq!(tenant.balances().await, (970, 0));
    // The whole hold may be charged, and more than that is not.
    // 1,000 tokens at a micro each over a hold of 100.
    let all = tenant.admit(&tenant.claim().hold(100).build()).await;
    let all = tenant.step(all.id, finish(&all, 1_000, 0)).await;
    assert_eq!(all.phase.usage().unwrap().shortfall.get(), 900);
    assert_eq!(tenant.balances().await, (870, 0));
}

/// A run free of charge completes all the same, and no transfer of zero is written.
pub async fn a_result_of_nothing_moves_nothing_to_revenue(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    for hold in [100, 0] {
        let admitted = tenant.admit(&tenant.claim().hold(hold).build()).await;
        tenant.step(admitted.id, finish(&admitted, 0, 0)).await;
        assert_eq!(tenant.balances().await, (1_000, 0));
    }
}

/// T2a and T2b: the result stays with its hold until it is settled.
pub async fn a_recorded_result_is_settled_later(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let admitted = tenant.admit(&tenant.claim().build()).await;
    let recorded = tenant.step(admitted.id, record(&admitted, 20, 10)).await;
    assert!(matches!(recorded.phase, Phase::Recorded(_)));
    assert_eq!(tenant.balances().await, (900, 100));
    tenant.step(admitted.id, Event::Settle).await;
    assert_eq!(tenant.balances().await, (970, 0));
}

/// T2c: a request to cancel only marks the row; its owner still ends it.
pub async fn a_cancelled_operation_is_only_marked(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let admitted = tenant.admit(&tenant.claim().build()).await;
    let asked = tenant.step(admitted.id, Event::AskCancel).await;
    assert!(asked.cancel_asked);
    assert_eq!(tenant.balances().await, (900, 100));
    let completed = tenant.step(admitted.id, finish(&admitted, 1, 1)).await;
    assert!(completed.cancel_asked);
    let unsent = tenant.admit(&tenant.claim().build()).await;
    tenant.step(unsent.id, Event::AskCancel).await;
    let ended = tenant.step(unsent.id, not_run(&unsent)).await;
    assert!(matches!(ended.phase, Phase::Abandoned { .. }), "it is not to run again");
}

/// T5′: the row ends and no money moves, for T3 gave all back; the key never runs again. Against T7 the second
/// of the two is a conflict, and a cancel that is judged again marks the next run to end.
pub async fn a_cancelled_open_operation_ends_and_moves_nothing(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let again = tenant.claim();
    let reopen = || Event::Claim(Box::new(again.clone().claim_id(sample::fresh()).build()));
    let admitted = tenant.admit(&again.clone().build()).await;
    tenant.step(admitted.id, not_run(&admitted)).await;
    let open = tenant.load(admitted.id).await;
    let entries = tenant.entries().await.len();
    let change = judged(&open, Event::AskCancel);
    assert!(operation_change(&change).counters.is_empty(), "T3 gave them back");
    let ended = tenant.step(admitted.id, Event::AskCancel).await;
    assert!(matches!(ended.phase, Phase::Abandoned { .. }) && ended.is_cancelled_open());
    assert_eq!((ended.cancel_asked, ended.exposure()), (false, None));
    assert_eq!((tenant.entries().await.len(), tenant.balances().await), (entries, (1_000, 0)));
    // An offer again after a lost COMMIT, and a T7 that was judged before.
    conflicts(&tenant, &change).await;
    conflicts(&tenant, &judged(&open, reopen())).await;
    let seen = tenant.load(admitted.id).await;
    assert_eq!(decide(&seen, reopen()).err(), Some(Refusal::Ended), "its row answers");

    let again = tenant.claim();
    let admitted = tenant.admit(&again.clone().build()).await;
    tenant.step(admitted.id, not_run(&admitted)).await;
    let late = judged(&tenant.load(admitted.id).await, Event::AskCancel);
    let claim = again.claim_id(sample::fresh()).build();
    let running = tenant.step(admitted.id, Event::Claim(Box::new(claim))).await;
    conflicts(&tenant, &late).await;
    let asked = tenant.step(running.id, Event::AskCancel).await;
    assert_eq!((&asked.phase, asked.cancel_asked), (&Phase::Leased, true));
}

/// T4: the sealed error is kept, the hold comes back.
pub async fn a_refused_operation_keeps_its_error(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let admitted = tenant.admit(&tenant.claim().build()).await;
    tenant.step(admitted.id, refuse(&admitted)).await;
    assert_eq!(tenant.balances().await, (1_000, 0));
}

/// T5: the hold comes back, and no part of it is kept.
pub async fn a_given_up_operation_is_abandoned(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let admitted = tenant.admit(&tenant.claim().build()).await;
    tenant.step(admitted.id, give_up(&admitted)).await;
    assert_eq!(tenant.balances().await, (1_000, 0));
}

/// T3 and T7: another claim, price, hold, deadline and node; the same operation.
pub async fn an_open_operation_runs_again_as_its_next_generation(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let claim = tenant.claim();
    let first = tenant.admit(&claim.clone().build()).await;
    let open = tenant.step(first.id, not_run(&first)).await;
    assert_eq!((open.phase, open.generation), (Phase::Open, 1));
    assert_eq!(tenant.balances().await, (1_000, 0));
    let dearer = sample::priced("2026-02-01T00:00:00Z", 2_000_000);
    let other = Tenant::new(stores, 0).await;
    let again = claim
        .claim_id(sample::fresh())
        .hold(250)
        .price(dearer.clone())
        .time(Duration::from_secs(9))
        .lease(other.lease.clone())
        .build();
    let second = tenant.step(first.id, Event::Claim(Box::new(again.clone()))).await;
    assert_eq!((second.generation, second.owner.clone()), (2, again.owner));
    assert_eq!((second.hold.get(), second.price.clone()), (250, dearer));
    assert_eq!(second.created_at, first.created_at);
    assert_eq!(tenant.balances().await, (750, 250));
    // Open again, and run to its end: the charge is that of the third generation alone.
    let third = tenant.step(second.id, not_run(&second)).await;
    let claim = tenant.claim().request_key(third.request_key).build();
    let third = tenant.step(third.id, Event::Claim(Box::new(claim))).await;
    tenant.step(third.id, finish(&third, 30, 30)).await;
    assert_eq!(tenant.balances().await, (940, 0));
}

/// T7 has its time: it is counted from the last admission, by the store's clock, and before it no row is
/// written.
pub async fn an_open_operation_waits_for_its_fourth_generation(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let mut operation = tenant.admit(&tenant.claim().build()).await;
    let key = operation.request_key;
    let again = || Event::Claim(Box::new(tenant.claim().request_key(key).build()));
    for _ in 0..2 {
        tenant.step(operation.id, not_run(&operation)).await;
        let before = operation.admitted_at;
        operation = tenant.step(operation.id, again()).await;
        assert!(operation.admitted_at > before, "the time of its next generation begins anew");
    }
    tenant.step(operation.id, not_run(&operation)).await;
    let (open, entries) = (tenant.load(operation.id).await, tenant.entries().await.len());
    let time = operation.admitted_at.after(Duration::from_secs(2));
    for now in [open.now.min(Timestamp::from_micros(time.as_micros() - 1)), time] {
        let judged = decide(&Snapshot { now, ..open.clone() }, again()).err();
        // The node's own lease would be refused by then, which is not tested here.
        let judged = judged.filter(|refusal| *refusal != Refusal::LeaseLost);
        assert_eq!(judged, (now < time).then_some(Refusal::TooSoon), "{now:?} of {time:?}");
    }
    assert_eq!(tenant.load(operation.id).await.operation, open.operation);
    assert_eq!((tenant.entries().await.len(), tenant.balances().await), (entries, (1_000, 0)));
}

/// A change that was judged over an older version of the row is a conflict and leaves no trace.
pub async fn a_stale_version_is_a_conflict_and_changes_nothing(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let leased = tenant.admit(&tenant.claim().build()).await;
    let seen = Snapshot { lease: None, ..tenant.load(leased.id).await };
    // The smallest change there is: no phase, no money, one version.
    tenant.step(leased.id, Event::AskCancel).await;
    let claim = leased.owner.claim;
    let events = [
        finish(&leased, 1, 1),
        record(&leased, 1, 1),
        Event::AskCancel,
        not_run(&leased),
        refuse(&leased),
        give_up(&leased),
        Event::Reap { orphan_grace: None },
        Event::Disown(Disown { claim, sent: SendStatus::Never }),
    ];
    for event in events {
        conflicts(&tenant, &judged(&seen, event)).await;
    }
    let recorded = tenant.step(leased.id, record(&leased, 1, 1)).await;
    let seen = tenant.load(leased.id).await;
    tenant.step(recorded.id, Event::Settle).await;
    conflicts(&tenant, &judged(&seen, Event::Settle)).await;

    let again = tenant.claim();
    let opened = tenant.admit(&again.clone().build()).await;
    tenant.step(opened.id, not_run(&opened)).await;
    let seen = tenant.load(opened.id).await;
    let reopen = |claim| Event::Claim(Box::new(again.clone().claim_id(claim).build()));
    tenant.step(opened.id, reopen(sample::fresh())).await;
    conflicts(&tenant, &judged(&seen, reopen(sample::fresh()))).await;
    // A version that was never written is as stale as an old one.
    let seen = tenant.load(opened.id).await;
    let mut ahead = seen.operation.clone().unwrap();
    ahead.version = Version::new(ahead.version.get() + 1);
    let ahead = Snapshot { operation: Some(ahead), ..seen };
    conflicts(&tenant, &judged(&ahead, Event::AskCancel)).await;
}

/// A single one of many endings for one version is written, even if they differ, and money moves once.
pub async fn concurrent_endings_settle_once(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let leased = tenant.admit(&tenant.claim().build()).await;
    let seen = tenant.load(leased.id).await;
    let events = [
        finish(&leased, 10, 10),
        finish(&leased, 30, 30),
        record(&leased, 10, 10),
        not_run(&leased),
        refuse(&leased),
        give_up(&leased),
    ];
    let changes = events.map(|event| judged(&seen, event));
    let verdicts =
        join_all(changes.iter().map(|change| stores.journal().commit(Arc::clone(change)))).await;
    let won: Vec<(&Arc<Transition>, &Receipt)> = changes
        .iter()
        .zip(&verdicts)
        .filter_map(|(change, verdict)| Some((change, verdict.as_ref().ok()?)))
        .collect();
    assert_eq!(won.len(), 1, "{verdicts:?}");
    for (change, receipt) in won {
        let predicted = operation_change(change).apply(Some(&leased), *receipt);
        let row = tenant.load(leased.id).await.operation;
        assert_eq!(row, predicted);
        let phase = row.unwrap().phase;
        let held = if phase.holds() { 100 } else { 0 };
        // Gone from the wallet: the charge of a settlement, or the hold of what is only recorded.
        let kept =
            if let Phase::Completed { usage, .. } = phase { usage.charge.get() } else { held };
        assert_eq!(tenant.balances().await, (1_000 - kept, held));
    }
}

/// A hold or a settlement that exists is not written again, even if the version is right.
pub async fn a_permanent_id_stops_its_effect(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let claim = tenant.claim();
    let first = tenant.admit(&claim.clone().build()).await;
    tenant.step(first.id, not_run(&first)).await;
    let reopening = claim.claim_id(sample::fresh()).build();
    let seen = tenant.load(first.id).await;
    let reopened = judged(&seen, Event::Claim(Box::new(reopening)));
    // As a task would that reopens without counting: the hold of generation 1 has its transfers.
    let same_hold = Transition { generation: 1, ..operation_change(&reopened).clone() };
    assert_collision(&tenant, same_hold).await;

    let second = tenant.admit(&tenant.claim().build()).await;
    let seen = tenant.load(second.id).await;
    let settled = judged(&seen, finish(&second, 10, 10));
    let second = tenant.commit_as_predicted(&seen, &settled).await;
    // Another operation holds enough, so the wallet's bounds alone would let it pass.
    tenant.admit(&tenant.claim().build()).await;
    // The version is right, so the settlement's id alone is in the way.
    let expected = Some(second.version);
    assert_collision(&tenant, Transition { expected, ..operation_change(&settled).clone() }).await;
}

/// Versions count from one, the clock of receipts and reads does not go back, and moments on a row
/// are those of their receipts.
pub async fn receipts_carry_the_version_and_a_clock_that_never_goes_back(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let claim = tenant.claim().build();
    let id = OperationId::of(claim.api_key, claim.request_key);
    let mut clock = tenant.load(id).await.now;
    let receipt = tenant.offer(&claim).await.unwrap();
    assert_eq!(receipt.version, Version::FIRST);
    assert!(receipt.at >= clock);
    clock = receipt.at;
    let leased: Operation = tenant.load(id).await.operation.unwrap();
    assert_eq!((leased.created_at, leased.admitted_at), (receipt.at, receipt.at));
    assert_eq!(leased.deadline, receipt.at.after(claim.time));
    let events = [Event::AskCancel, record(&leased, 1, 1), Event::Settle];
    for (event, version) in events.into_iter().zip(2_u32..) {
        let receipt = tenant.offer_event(id, event).await.unwrap();
        assert_eq!(receipt.version, Version::new(version));
        assert!(receipt.at >= clock);
        clock = receipt.at;
    }
    let last = tenant.load(id).await;
    assert!(last.now >= clock);
    assert_eq!(last.operation.unwrap().phase.finished_at(), Some(clock));
}

async fn conflicts(tenant: &Tenant<'_>, change: &Arc<Transition>) {
    let refused = changes_nothing(tenant, change).await;
    assert!(matches!(refused, CommitError::Conflict), "{refused:?}");
}

async fn assert_collision(tenant: &Tenant<'_>, transition: Transition) {
    assert!(!matches!(transition.effect, Effect::Admit(_)), "that would be a conflict");
    let refused = changes_nothing(tenant, &Arc::new(transition)).await;
    assert!(matches!(refused, CommitError::Collision), "{refused:?}");
}

async fn changes_nothing(tenant: &Tenant<'_>, change: &Arc<Transition>) -> CommitError {
    let id = operation_change(change).operation;
    let seen = |snapshot: Snapshot| (snapshot.operation, snapshot.result);
    let before = (seen(tenant.load(id).await), tenant.entries().await, tenant.balances().await);
    let refused = tenant.stores.journal().commit(Arc::clone(change)).await.unwrap_err();
    let after = (seen(tenant.load(id).await), tenant.entries().await, tenant.balances().await);
    assert_eq!(before, after, "a refused change leaves no trace");
    refused
}
