//! Laws of node names: who has one, until when, and who may take it.
//!
//! A name belongs to one incarnation at a time. A start takes a free or an expired one, a heartbeat renews only
//! its own row, and a superseded incarnation stays so.
//!
//! # Panics
//!
//! A law panics on a store that breaks it, or whose port fails.
//!
//! ```
//! use holdfast_testkit::{MemoryJournal, laws::nodes};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! nodes::one_of_many_starts_takes_an_expired_name(&MemoryJournal::new()).await;
//! # }
//! ```
#![expect(clippy::unwrap_used, clippy::panic, reason = "a law that fails panics")]

use std::time::Duration;

use holdfast_domain::operation::{Lease, Node};
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode};
use holdfast_domain::{NodeAddress, NodeName, Timestamp};
use uuid::Uuid;

use super::Stores;
use crate::join::join_all;
use crate::sample;

/// A start takes a free or expired name, and waits for a live one.
pub async fn a_name_is_taken_when_its_lease_has_expired(stores: &dyn Stores) {
    let first = node(&name());
    let second = node(first.name.as_str());
    let (lease, now) = held(beat(stores, &first, sample::LEASE, LeaseMode::TakeExpired).await);
    assert_eq!(lease, Lease { node: first.clone(), ends_at: now.after(sample::LEASE) });
    assert_eq!(
        lost(beat(stores, &second, sample::LEASE, LeaseMode::TakeExpired).await),
        Some(lease)
    );
    // Its own name it may take again, and let it expire at once.
    let (expired, _) = held(beat(stores, &first, Duration::ZERO, LeaseMode::TakeExpired).await);
    assert_eq!(expired.node, first);
    let (lease, _) = held(beat(stores, &second, sample::LEASE, LeaseMode::TakeExpired).await);
    assert_eq!(lease.node, second);
}

/// A name is taken even if its row is held, if other evidence proves that its holder is gone.
pub async fn a_taken_name_is_taken_whoever_had_it(stores: &dyn Stores) {
    let first = node(&name());
    let second = node(first.name.as_str());
    held(beat(stores, &first, sample::LEASE, LeaseMode::Take).await);
    let (lease, now) = held(beat(stores, &second, sample::LEASE, LeaseMode::Take).await);
    assert_eq!(lease, Lease { node: second.clone(), ends_at: now.after(sample::LEASE) });
    assert_eq!(lost(beat(stores, &first, sample::LEASE, LeaseMode::Renew).await), Some(lease));
}

/// A heartbeat renews its own row, expired or not, and no other; a row that is gone stays gone.
pub async fn a_node_renews_only_its_own_row(stores: &dyn Stores) {
    let first = node(&name());
    assert_eq!(lost(beat(stores, &first, sample::LEASE, LeaseMode::Renew).await), None);
    held(beat(stores, &first, Duration::ZERO, LeaseMode::Take).await);
    let (lease, now) = held(beat(stores, &first, sample::LEASE, LeaseMode::Renew).await);
    assert_eq!(lease.ends_at, now.after(sample::LEASE));
    let other = node(&name());
    held(beat(stores, &other, sample::LEASE, LeaseMode::Take).await);
    let second = node(first.name.as_str());
    assert_eq!(lost(beat(stores, &second, sample::LEASE, LeaseMode::Renew).await), Some(lease));
}

/// A single one of many starts that find an expired row has the name.
pub async fn one_of_many_starts_takes_an_expired_name(stores: &dyn Stores) {
    let old = node(&name());
    // A lease of no time has expired by the next reading of the clock.
    held(beat(stores, &old, Duration::ZERO, LeaseMode::Take).await);
    let starts: Vec<Node> = (0..8).map(|_| node(old.name.as_str())).collect();
    let beats = starts.iter().map(|node| beat(stores, node, sample::LEASE, LeaseMode::TakeExpired));
    let beats = join_all(beats).await;
    let held = beats.iter().filter(|beat| matches!(beat, HeartbeatOutcome::Held { .. })).count();
    assert_eq!(held, 1, "{beats:?}");
}

/// Leaving removes a process's own row and no other's.
pub async fn only_its_own_process_leaves(stores: &dyn Stores) {
    let first = node(&name());
    let second = node(first.name.as_str());
    held(beat(stores, &first, sample::LEASE, LeaseMode::Take).await);
    stores.nodes().leave(&second).await.unwrap();
    held(beat(stores, &first, sample::LEASE, LeaseMode::Renew).await);
    stores.nodes().leave(&first).await.unwrap();
    assert_eq!(lost(beat(stores, &first, sample::LEASE, LeaseMode::Renew).await), None);
    stores.nodes().leave(&first).await.unwrap();
    held(beat(stores, &second, sample::LEASE, LeaseMode::TakeExpired).await);
}

/// An address is that of the incarnation which has set it, for as long as it has the name.
pub async fn an_address_is_its_own_process_s(stores: &dyn Stores) {
    let first = node(&name());
    let second = node(first.name.as_str());
    let (ours, theirs) = (address("first:8082"), address("second:8082"));
    let nodes = stores.nodes();
    held(beat(stores, &first, sample::LEASE, LeaseMode::Take).await);
    assert_eq!(nodes.address(&first).await.unwrap(), None);
    nodes.advertise(&first, &ours).await.unwrap();
    nodes.advertise(&second, &theirs).await.unwrap();
    held(beat(stores, &first, sample::LEASE, LeaseMode::Renew).await);
    assert_eq!(nodes.address(&first).await.unwrap(), Some(ours));
    // Set by an incarnation without the name: not kept.
    assert_eq!(nodes.address(&second).await.unwrap(), None);
    held(beat(stores, &second, sample::LEASE, LeaseMode::Take).await);
    assert_eq!(nodes.address(&first).await.unwrap(), None);
    assert_eq!(nodes.address(&second).await.unwrap(), None, "not what its name's last owner told");
    nodes.advertise(&second, &theirs).await.unwrap();
    assert_eq!(nodes.address(&second).await.unwrap(), Some(theirs));
    nodes.leave(&second).await.unwrap();
    assert_eq!(nodes.address(&second).await.unwrap(), None);
}

async fn beat(
    stores: &dyn Stores,
    node: &Node,
    lease: Duration,
    entry: LeaseMode,
) -> HeartbeatOutcome {
    stores.nodes().heartbeat(node, lease, entry).await.unwrap()
}

#[track_caller]
fn held(beat: HeartbeatOutcome) -> (Lease, Timestamp) {
    match beat {
        HeartbeatOutcome::Held { lease, now, .. } => (lease, now),
        HeartbeatOutcome::Lost { .. } => panic!("the name should be held: {beat:?}"),
    }
}

#[track_caller]
fn lost(beat: HeartbeatOutcome) -> Option<Lease> {
    match beat {
        HeartbeatOutcome::Lost { lease, .. } => lease,
        HeartbeatOutcome::Held { .. } => panic!("the name should be lost: {beat:?}"),
    }
}

fn name() -> String {
    Uuid::new_v4().simple().to_string()
}

fn address(text: &str) -> NodeAddress {
    NodeAddress::try_from(text).unwrap()
}

/// A new process of this name.
fn node(name: &str) -> Node {
    Node { name: NodeName::try_from(name).unwrap(), incarnation: sample::fresh() }
}
