//! What the command line reads: lists, what is outstanding, what was refunded.

use std::collections::BTreeMap;

use holdfast_domain::admin::Directory as _;
use holdfast_domain::admin::listing::{OperationFilter, Order, PageRequest, Scope};
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::ports::LeaseMode;
use holdfast_domain::{Micros, OperationId};
use holdfast_testkit::laws::tenant::{Tenant, finish, record};

use crate::scratch::Home;

async fn list(home: &impl Home, scope: Scope, limit: u32) -> Vec<OperationId> {
    let filter = OperationFilter { scope, ..OperationFilter::default() };
    let page = home.store().operations(filter, PageRequest::first(Order::Newest, limit));
    page.await.unwrap().rows.into_iter().map(|listed| listed.operation.id).collect()
}

async fn operations_are_listed_newest_first_up_to_a_limit(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.insert(0, tenant.admit(&tenant.claim().build()).await.id);
    }
    assert_eq!(list(home, Scope::All, 9).await, ids);
    assert_eq!(list(home, Scope::All, 2).await, ids[..2]);
    let first = PageRequest::first(Order::Newest, 2);
    let listed = home.store().operations(OperationFilter::default(), first).await.unwrap().rows;
    let shown = tenant.load(ids[0]).await.operation.unwrap();
    assert_eq!(listed[0].operation, shown);
    assert_eq!(listed[0].lease, Some(tenant.lease.clone()));
}

async fn stale_are_the_recorded_and_those_without_a_live_owner(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let other = Tenant::new(home, 0).await;
    let running = tenant.admit(&tenant.claim().build()).await;
    let recorded = tenant.admit(&tenant.claim().build()).await;
    tenant.step(recorded.id, record(&recorded, 1, 1)).await;
    let completed = tenant.admit(&tenant.claim().build()).await;
    tenant.step(completed.id, finish(&completed, 1, 1)).await;
    let orphan = tenant.admit(&tenant.claim().lease(other.lease.clone()).build()).await;
    assert_eq!(list(home, Scope::Stale, 9).await, [recorded.id]);
    assert_eq!(list(home, Scope::Running, 9).await, [orphan.id, recorded.id, running.id]);
    let zero = std::time::Duration::ZERO;
    home.nodes().heartbeat(&other.lease.node, zero, LeaseMode::Renew).await.unwrap();
    assert_eq!(list(home, Scope::Stale, 9).await, [orphan.id, recorded.id]);

    let outstanding = home.store().outstanding().await.unwrap();
    let amounts = BTreeMap::from([(running.price.currency, Micros::new(300))]);
    assert_eq!((outstanding.count, outstanding.amounts), (3, amounts));
    let now = tenant.load(running.id).await.now;
    let age = u64::try_from(now.as_micros() - running.admitted_at.as_micros()).unwrap();
    assert!((1..=age).contains(&u64::try_from(outstanding.oldest_age.as_micros()).unwrap()));
}

async fn refunds_are_summed_by_their_operation(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let operation = tenant.admit(&tenant.claim().build()).await;
        tenant.step(operation.id, finish(&operation, 30, 0)).await;
        ids.push(operation.id);
    }
    for amount in [10, 7] {
        tenant.post(PostingKind::Refund(ids[0]), amount).await.unwrap();
    }
    let refunded = async |id| home.store().refunded(id).await.unwrap().get();
    assert_eq!((refunded(ids[0]).await, refunded(ids[1]).await), (17, 0));
}

crate::scratch::on_every_store! {
    operations_are_listed_newest_first_up_to_a_limit,
    stale_are_the_recorded_and_those_without_a_live_owner,
    refunds_are_summed_by_their_operation,
}
