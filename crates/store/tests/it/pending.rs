//! Work that a heartbeat on a server reports: each kind when it waits, and none at rest.

use std::time::Duration;

use holdfast_domain::NodeName;
use holdfast_domain::Nodes;
use holdfast_domain::admin::event::stuck;
use holdfast_domain::admin::job::JobKind;
use holdfast_domain::admin::ports::{Deliveries, EventOutbox, Jobs};
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode, PendingWork, WorkKind};
use holdfast_store::Store;
use holdfast_testkit::laws::tenant::Tenant;
use holdfast_testkit::sample;
use sqlx::Executor;

use crate::server::Server;

const LEASE: Duration = Duration::from_secs(60);

async fn beat(store: &Store, node: &Node) -> PendingWork {
    let pending = match store.heartbeat(node, LEASE, LeaseMode::Renew).await.unwrap() {
        HeartbeatOutcome::Held { pending, .. } => Some(pending),
        HeartbeatOutcome::Lost { .. } => None,
    };
    pending.unwrap()
}

#[tokio::test]
async fn postgres_a_heartbeat_reports_each_kind_of_work_and_none_at_rest() {
    let server = Server::open().await;
    let store = &server.store;
    let node = Node { name: NodeName::try_from("one").unwrap(), incarnation: sample::fresh() };
    store.heartbeat(&node, LEASE, LeaseMode::Take).await.unwrap();
    assert_eq!(beat(store, &node).await, PendingWork::NONE);

    let job = store.start(sample::fresh(), JobKind::Verification, None).await.unwrap();
    assert_eq!(beat(store, &node).await, PendingWork::NONE.with(WorkKind::Job));
    store.claim(&node, LEASE).await.unwrap().unwrap();
    assert_eq!(beat(store, &node).await, PendingWork::NONE, "{} has an owner", job.id);

    let tenant = Tenant::new(&server, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    let outbox = PendingWork::NONE.with(WorkKind::Outbox);
    assert_eq!(beat(store, &node).await, outbox, "a deposit is an event");
    store.fan_out(99).await.unwrap();
    assert_eq!(beat(store, &node).await, PendingWork::NONE, "its owner is alive");
    let leased = PendingWork::NONE.with(WorkKind::Leased);
    assert_eq!(beat(store, &tenant.lease.node).await, leased);
    store.leave(&tenant.lease.node).await.unwrap();
    let due = PendingWork::NONE.with(WorkKind::Due);
    assert_eq!(beat(store, &node).await, due);

    store.record(&[stuck(&operation)]).await.unwrap();
    store.event_written().await;
    assert_eq!(beat(store, &node).await, due.with(WorkKind::Outbox));
    store.fan_out(9).await.unwrap();
    assert_eq!(beat(store, &node).await, due, "no webhook receives it");
}

#[tokio::test]
async fn postgres_a_heartbeat_whose_work_cannot_be_read_renews_the_lease_and_reports_all() {
    let server = Server::open().await;
    let tenant = Tenant::new(&server, 1_000).await;
    let node = &tenant.lease.node;
    let mut raw = server.database.connect().await;
    raw.execute("BEGIN; LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE").await.unwrap();
    assert_eq!(beat(&server.store, node).await, PendingWork::ALL);
    raw.execute("ROLLBACK").await.unwrap();
    assert_eq!(beat(&server.store, node).await, PendingWork::ALL, "it does not look for a while");
}
