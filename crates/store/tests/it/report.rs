//! What the command line reads: lists, what is outstanding, usage.

use holdfast_domain::ports::Entry;
use holdfast_domain::usage::Kind;
use holdfast_domain::{Micros, OperationId, Timestamp};
use holdfast_store::report::{By, Filter, Scope};
use holdfast_testkit::laws::Stores;
use holdfast_testkit::laws::tenant::{Tenant, finish, record};
use holdfast_testkit::sample;

use crate::scratch::Scratch;

async fn list(scratch: &Scratch, filter: Filter) -> Vec<OperationId> {
    let listed = scratch.store.operations(&filter).await.unwrap();
    listed.into_iter().map(|listed| listed.operation.id).collect()
}

#[tokio::test]
async fn operations_are_listed_newest_first_page_by_page() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.insert(0, tenant.admit(&tenant.claim().build()).await.id);
    }
    let all = Filter { scope: Scope::All, limit: 9, before: None };
    assert_eq!(list(&scratch, all).await, ids);
    let first = Filter { limit: 2, ..all };
    assert_eq!(list(&scratch, first).await, ids[..2]);
    let second = Filter { before: Some(ids[1]), ..first };
    assert_eq!(list(&scratch, second).await, ids[2..4]);
    let unknown = Filter { before: Some(OperationId::from_u128(1)), ..all };
    assert_eq!(list(&scratch, unknown).await, []);
    let listed = scratch.store.operations(&first).await.unwrap();
    let shown = scratch.store.operation(ids[0]).await.unwrap().unwrap();
    assert_eq!(listed[0].operation, shown.operation);
    assert_eq!(listed[0].lease, Some(tenant.lease.clone()));
    assert_eq!(scratch.store.operation(sample::fresh()).await.unwrap(), None);
}

#[tokio::test]
async fn stale_are_the_recorded_and_those_without_a_live_owner() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let other = Tenant::new(&scratch, 0).await;
    let running = tenant.admit(&tenant.claim().build()).await;
    let recorded = tenant.admit(&tenant.claim().build()).await;
    tenant.step(recorded.id, record(&recorded, 1, 1)).await;
    let completed = tenant.admit(&tenant.claim().build()).await;
    tenant.step(completed.id, finish(&completed, 1, 1)).await;
    let orphan = tenant.admit(&tenant.claim().lease(other.lease.clone()).build()).await;
    let stale = Filter { scope: Scope::Stale, limit: 9, before: None };
    assert_eq!(list(&scratch, stale).await, [recorded.id]);
    let zero = std::time::Duration::ZERO;
    scratch.nodes().beat(&other.lease.node, zero, Entry::Renew).await.unwrap();
    assert_eq!(list(&scratch, stale).await, [orphan.id, recorded.id]);

    let outstanding = scratch.store.outstanding().await.unwrap();
    assert_eq!((outstanding.count, outstanding.amount), (3, Micros::new(300)));
    assert_eq!(outstanding.oldest_admitted_at, Some(running.admitted_at));
}

#[tokio::test]
async fn usage_is_summed_by_what_was_asked_for() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    for (input, output) in [(10, 20), (30, 200)] {
        let operation = tenant.admit(&tenant.claim().build()).await;
        tenant.step(operation.id, finish(&operation, input, output)).await;
    }
    let abandoned = tenant.admit(&tenant.claim().build()).await;
    let given_up = holdfast_testkit::laws::tenant::give_up(&abandoned);
    tenant.step(abandoned.id, given_up).await;

    let (from, until) = (Timestamp::from_micros(0), Timestamp::from_micros(i64::MAX));
    let key = tenant.stores.keys().unwrap().list().await.unwrap().remove(0).name;
    let wallet = tenant.wallet().await.name;
    for (by, subject) in [(By::Model, "holdfast/sample"), (By::Key, &key), (By::Wallet, &wallet)] {
        let sums = scratch.store.usage(from, until, by).await.unwrap();
        assert_eq!(sums.len(), 1);
        let sum = sums.first().unwrap();
        assert_eq!((&*sum.subject, sum.currency, sum.operations), (subject, sample::usd(), 2));
        assert_eq!((sum.charge.get(), sum.shortfall.get()), (130, 130));
        assert!(
            sum.meters.contains(&(Kind::Input, 40)) && sum.meters.contains(&(Kind::Request, 2))
        );
    }
    let days = scratch.store.usage(from, until, By::Day).await.unwrap();
    assert!(days.iter().all(|day| day.subject.len() == 10 && day.subject.starts_with("20")));
    assert_eq!(scratch.store.usage(until, until, By::Day).await.unwrap(), []);
    assert_eq!(scratch.store.usage(from, from, By::Model).await.unwrap(), []);
}
