//! What stands beside the audit log: the refunds of an actor in a day, refused attempts, and addresses.

use std::time::Duration;

use holdfast_domain::admin::Administration as _;
use holdfast_domain::admin::audit::RefusedAttempts;
use holdfast_domain::admin::{
    AccountAction, AccountCommand, AccountReceipt, AccountRefusal, ActorId, NewPosting,
    PostingDetails, UseCase,
};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::{AdminKeyId, Journal as _, Micros};
use holdfast_store::Store;
use holdfast_testkit::laws::tenant::{Tenant, finish};
use holdfast_testkit::sample;

use crate::administration::{act, administer, command, key, make_wallet, referenced};
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};

const fn actor(n: u128) -> ActorId {
    ActorId::AdminKey(AdminKeyId::from_u128(n))
}

async fn of(
    store: &Store,
    actor: ActorId,
    action: AccountAction,
) -> Result<AccountReceipt, AccountRefusal> {
    administer(store, &AccountCommand { actor, ..command(key(), action) }).await
}

async fn refunds_of_an_actor_end_at_their_allowance_of_the_day(home: &impl Home) {
    let (tenant, store) = (Tenant::new(home, 100_000).await, home.store());
    let admitted = tenant.admit(&tenant.claim().hold(100).build()).await;
    let completed = tenant.step(admitted.id, finish(&admitted, 20, 10)).await;
    let charge = completed.phase.charge().unwrap();
    assert!(charge > Micros::new(20), "{charge}");
    let refund = |micros: i64, allowance: Option<i64>| {
        let (id, kind) = (sample::fresh(), PostingKind::Refund(completed.id));
        let posting = Posting::new(id, tenant.wallet, kind, Micros::new(micros)).unwrap();
        let allowance = allowance.map(Micros::new);
        AccountAction::Post(NewPosting {
            posting,
            details: PostingDetails::default(),
            allowance,
            currency: None,
        })
    };
    let spent = |allowance, left| {
        let [allowance, left] = [allowance, left].map(Micros::new);
        Err(AccountRefusal::AllowanceSpent { allowance, left })
    };
    assert_eq!(of(store, actor(1), refund(1, Some(0))).await, spent(0, 0), "nobody has set one");
    of(store, actor(1), refund(3, Some(5))).await.unwrap();
    assert_eq!(of(store, actor(1), refund(3, Some(5))).await, spent(5, 2));
    of(store, actor(1), refund(2, Some(5))).await.unwrap();
    assert_eq!(of(store, actor(1), refund(1, Some(5))).await, spent(5, 0));
    // Somebody else has their own, and whoever has none is bound by the charge alone.
    of(store, actor(2), refund(3, Some(5))).await.unwrap();
    of(store, actor(1), refund(1, None)).await.unwrap();
    // A day later.
    let mut raw = Raw::reckless(home).await;
    raw.run("UPDATE audit SET created_at = created_at - 86400000000").await;
    of(store, actor(1), refund(5, Some(5))).await.unwrap();
    assert_eq!(of(store, actor(1), refund(1, Some(5))).await, spent(5, 0));
}

async fn refused_attempts_are_added_up_by_the_hour(home: &impl Home) {
    let store = home.store();
    let refused = |n, use_case, attempts| RefusedAttempts { actor: actor(n), use_case, attempts };
    let first = [refused(1, UseCase::WalletCreate, 2), refused(2, UseCase::WalletCreate, 3)];
    store.count_refused(&first).await.unwrap();
    store.count_refused(&[refused(1, UseCase::WalletCreate, 5)]).await.unwrap();
    let mut raw = Raw::open(home).await;
    let own = format!("FROM refused_attempts WHERE actor = '{}'", actor(1));
    // Two rows where an hour has begun in between.
    let attempts = format!("SELECT CAST(sum(attempts) AS bigint) {own}");
    assert_eq!(raw.number(&attempts).await, 7);
    assert_eq!(raw.number(&format!("SELECT count(*) {own} AND hour % 3600000000 = 0")).await, {
        raw.number(&format!("SELECT count(*) {own}")).await
    });
}

async fn addresses_and_counts_are_deleted_after_90_days(home: &impl Home) {
    const DAY: i64 = 86_400_000_000;
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    for n in 0..3 {
        act(store, referenced(wallet, 1, &format!("pay-{n}"))).await.unwrap();
    }
    let attempts =
        RefusedAttempts { actor: actor(1), use_case: UseCase::WalletCreate, attempts: 1 };
    store.count_refused(&[attempts]).await.unwrap();
    let mut raw = Raw::reckless(home).await;
    let purge = async || store.purge(Duration::from_secs(1), 10).await.unwrap();
    let left = async |raw: &mut Raw| {
        let addresses = raw.number("SELECT count(*) FROM audit_addresses").await;
        (addresses, raw.number("SELECT count(*) FROM refused_attempts").await)
    };
    purge().await;
    assert_eq!(left(&mut raw).await, (4, 1));
    let old = 90 * DAY + DAY;
    raw.run(&format!("UPDATE audit SET created_at = created_at - {old} WHERE seq <= 2")).await;
    raw.run(&format!("UPDATE refused_attempts SET hour = hour - {old}")).await;
    purge().await;
    assert_eq!(left(&mut raw).await, (2, 0));
    assert_eq!(raw.number("SELECT count(*) FROM audit").await, 4, "the trail itself stays");
}

on_every_store! {
    refunds_of_an_actor_end_at_their_allowance_of_the_day,
    refused_attempts_are_added_up_by_the_hour,
    addresses_and_counts_are_deleted_after_90_days,
}
