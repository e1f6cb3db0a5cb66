//! Laws of upkeep: what is due, what runs here, and the content that may go.
//!
//! An operation that is due and not listed would keep its hold for ever; one that is listed and not due costs a
//! read, for it is judged before a row is written. A purge takes only sealed content, and never that of an
//! unsettled operation.
//!
//! # Panics
//!
//! A law panics on a store that breaks it, or whose port fails.
//!
//! ```
//! use holdfast_testkit::{MemoryJournal, laws::upkeep};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! upkeep::due_are_the_recorded_and_the_orphaned(&MemoryJournal::new()).await;
//! # }
//! ```
#![expect(clippy::panic, clippy::unwrap_used, reason = "a law that fails panics")]

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_domain::operation::{Lease, Node, Operation};
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode, LeasedOperation, PendingWork, WorkKind};
use holdfast_domain::{Event, OperationId, Timestamp};

use super::Stores;
use super::tenant::{Tenant, answer_for, finish, give_up, not_run, record, refuse};
use crate::sample;

/// Reads of a clock that does not move before a law gives up.
const READS_MAX: u32 = 1_000_000;

/// A read shows the current row of the owner's node name: its holder, or none.
pub async fn a_load_shows_the_owners_lease(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    assert_eq!(tenant.load(operation.id).await.lease, Some(tenant.lease.clone()));
    let next = Node { incarnation: sample::fresh(), ..tenant.lease.node.clone() };
    stores.nodes().heartbeat(&next, sample::LEASE, LeaseMode::Take).await.unwrap();
    assert_eq!(tenant.load(operation.id).await.lease.map(|lease| lease.node), Some(next.clone()));
    stores.nodes().leave(&next).await.unwrap();
    assert_eq!(tenant.load(operation.id).await.lease, None);
}

/// Due are the recorded, and the leased whose deadline has passed or whose node is missing, expired or
/// superseded; no operation that is well or has ended.
pub async fn due_are_the_recorded_and_the_orphaned(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    let admit = async |lease: &Lease, time: Duration| {
        tenant.admit(&tenant.claim().lease(lease.clone()).time(time).build()).await
    };
    let live = tenant.lease.clone();
    admit(&live, sample::TIME).await;
    let ends: [fn(&Operation) -> Event; 4] = [not_run, refuse, give_up, |o| finish(o, 1, 1)];
    for end in ends {
        // Past its deadline as well, so that the phase alone keeps it off the list.
        let ended = admit(&live, Duration::ZERO).await;
        tenant.step(ended.id, end(&ended)).await;
    }
    let mut due = BTreeSet::new();
    let recorded = admit(&live, sample::TIME).await;
    tenant.step(recorded.id, record(&recorded, 1, 1)).await;
    due.insert(recorded.id);

    // Each of these nodes is a tenant's own: live at the claim, and then no more.
    let expired = Tenant::new(stores, 0).await.lease;
    due.insert(admit(&expired, sample::TIME).await.id);
    stores.nodes().heartbeat(&expired.node, Duration::ZERO, LeaseMode::Renew).await.unwrap();
    let missing = Tenant::new(stores, 0).await.lease;
    due.insert(admit(&missing, sample::TIME).await.id);
    stores.nodes().leave(&missing.node).await.unwrap();
    let superseded = Tenant::new(stores, 0).await.lease;
    due.insert(admit(&superseded, sample::TIME).await.id);
    let next = Node { incarnation: sample::fresh(), ..superseded.node };
    stores.nodes().heartbeat(&next, sample::LEASE, LeaseMode::Take).await.unwrap();
    let late = admit(&live, Duration::ZERO).await;
    due.insert(late.id);
    until_after(&tenant, late.deadline).await;

    let found: BTreeSet<OperationId> =
        stores.journal().due(100).await.unwrap().into_iter().collect();
    assert_eq!(found, due);
}

/// A heartbeat reports what its own node leases, and what is due at any. It may report more than waits, and never less.
pub async fn a_heartbeat_reports_the_work_that_waits(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    let (owner, other) = (tenant.lease.node.clone(), Tenant::new(stores, 0).await.lease.node);
    let recorded = tenant.admit(&tenant.claim().build()).await;
    assert!(beat(stores, &owner).await.has(WorkKind::Leased));
    tenant.step(recorded.id, record(&recorded, 1, 1)).await;
    assert!(beat(stores, &other).await.has(WorkKind::Due), "a recorded operation");
    tenant.step(recorded.id, Event::Settle).await;
    tenant.admit(&tenant.claim().build()).await;
    stores.nodes().leave(&owner).await.unwrap();
    assert!(beat(stores, &other).await.has(WorkKind::Due), "an operation of a node that is gone");
}

async fn beat(stores: &dyn Stores, node: &Node) -> PendingWork {
    match stores.nodes().heartbeat(node, sample::LEASE, LeaseMode::Renew).await.unwrap() {
        HeartbeatOutcome::Held { pending, .. } => pending,
        lost @ HeartbeatOutcome::Lost { .. } => panic!("the name should be held: {lost:?}"),
    }
}

/// Never more than the limit, and none twice.
pub async fn due_ends_at_its_limit(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    for _ in 0..5 {
        let operation = tenant.admit(&tenant.claim().build()).await;
        tenant.step(operation.id, record(&operation, 1, 1)).await;
    }
    for (limit, found) in [(0, 0), (1, 1), (4, 4), (5, 5), (100, 5)] {
        let due = stores.journal().due(limit).await.unwrap();
        assert_eq!(due.len(), found);
        assert_eq!(due.into_iter().collect::<BTreeSet<_>>().len(), found);
    }
}

/// The running operations of one process with their claims and their callers' wishes: not those of
/// another incarnation, not those that have ended.
pub async fn leased_to_lists_the_running_claims_of_one_process(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    let mine = tenant.lease.clone();
    let namesake = Node { incarnation: sample::fresh(), ..mine.node.clone() };
    // The same name with another incarnation: no process of ours.
    let theirs = Lease { node: namesake.clone(), ..mine.clone() };
    let mut running = BTreeSet::new();
    for _ in 0..3 {
        let operation = tenant.admit(&tenant.claim().build()).await;
        running.insert(LeasedOperation::from(&operation));
    }
    let asked = tenant.admit(&tenant.claim().build()).await;
    let asked = tenant.step(asked.id, Event::AskCancel).await;
    running.insert(LeasedOperation::from(&asked));
    let other = tenant.admit(&tenant.claim().lease(theirs).build()).await;
    let ends: [fn(&Operation) -> Event; 3] = [not_run, give_up, |o| record(o, 1, 1)];
    for end in ends {
        let ended = tenant.admit(&tenant.claim().build()).await;
        tenant.step(ended.id, end(&ended)).await;
    }
    let found = async |node: &Node| -> BTreeSet<_> {
        stores.journal().leased_to(node).await.unwrap().into_iter().collect()
    };
    assert_eq!(found(&mine.node).await, running);
    assert_eq!(found(&namesake).await, [LeasedOperation::from(&other)].into());
}

/// The sealed content goes; row, wallet and book stay as they are.
pub async fn purge_takes_the_content_and_nothing_else(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    let ends: [fn(&Operation) -> Event; 2] = [|o| finish(o, 20, 10), refuse];
    let mut ended = Vec::new();
    for end in ends {
        let operation = tenant.admit(&tenant.claim().build()).await;
        ended.push(tenant.step(operation.id, end(&operation)).await);
    }
    for operation in &ended {
        until_after(&tenant, operation.phase.finished_at().unwrap()).await;
    }
    let book = tenant.entries().await;
    assert_eq!(stores.journal().purge(Duration::ZERO, 1).await.unwrap(), 1, "at most its limit");
    assert_eq!(stores.journal().purge(Duration::ZERO, 9).await.unwrap(), 1, "the other one");
    assert_eq!(stores.journal().purge(Duration::ZERO, 9).await.unwrap(), 0, "nothing twice");
    for operation in ended {
        let purged = tenant.load(operation.id).await;
        assert_eq!((purged.operation, purged.result), (Some(operation), None));
    }
    assert_eq!(tenant.entries().await, book);
    tenant.balances().await;
}

/// Young results stay, and the result of an unsettled operation stays at any age.
pub async fn purge_takes_only_what_has_ended_long_enough_ago(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    let young = tenant.admit(&tenant.claim().build()).await;
    let young = tenant.step(young.id, finish(&young, 1, 1)).await;
    until_after(&tenant, young.phase.finished_at().unwrap()).await;
    assert_eq!(stores.journal().purge(Duration::from_secs(3_600), 9).await.unwrap(), 0);
    // Not ended, so never old enough: its content is the answer that its settlement will need.
    let recorded = tenant.admit(&tenant.claim().build()).await;
    tenant.step(recorded.id, record(&recorded, 1, 1)).await;
    assert_eq!(stores.journal().purge(Duration::ZERO, 9).await.unwrap(), 1, "the young one");
    assert_eq!(tenant.load(recorded.id).await.result, Some(answer_for(tenant.api_key)));
}

/// The clock alone is between the reads around it, and no receipt after it is before it.
pub async fn the_clock_is_that_of_reads_and_receipts(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let before = tenant.load(sample::fresh()).await.now;
    let clock = stores.journal().clock().await.unwrap();
    let after = tenant.load(sample::fresh()).await.now;
    assert!(before <= clock && clock <= after, "{before:?} {clock:?} {after:?}");
    // Purges compare it with moments on rows: another clock would delete too early or never.
    let operation = tenant.admit(&tenant.claim().build()).await;
    assert!(operation.admitted_at >= clock);
}

/// Reads until the store's clock is past a moment.
async fn until_after(tenant: &Tenant<'_>, at: Timestamp) {
    for _ in 0..READS_MAX {
        if tenant.load(sample::fresh()).await.now > at {
            return;
        }
    }
    assert_eq!(Some(at), None, "the store's clock does not move");
}
