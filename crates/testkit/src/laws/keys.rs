//! API keys, wallets and prices: what is made once, found again, and never silently replaced.
#![expect(clippy::unwrap_used, reason = "a law that fails panics")]

use holdfast_domain::limits::{Limits, SpendLimit, SpendWindow};
use holdfast_domain::ports::{CommitError, CreateError, NewApiKey, PinError};
use holdfast_domain::{ApiKeyId, Micros, OperationId, WalletId};
use uuid::Uuid;

use super::Stores;
use super::tenant::{Tenant, credential};
use crate::join::join_all;
use crate::sample;

/// What was issued is found by its credential, as it was issued, and listed.
pub async fn an_issued_key_is_found_by_its_credential(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 0).await;
    let spend = SpendLimit { micros: Micros::new(25_000_000), window: SpendWindow::Month };
    let all = Limits {
        requests_per_minute: Some(60),
        tokens_per_minute: Some(1 << 40),
        concurrency: Some(3),
        spend: Some(spend),
    };
    let mut issued = Vec::new();
    for limits in [all, Limits::default()] {
        let new = NewApiKey { limits, ..new_key(tenant.wallet, &name("key")) };
        let credential = credential(new.id);
        let key = stores.keys().unwrap().issue(&new, &credential).await.unwrap();
        assert_eq!((key.id, key.wallet), (new.id, new.wallet));
        assert_eq!((&key.name, key.limits, key.revoked_at), (&new.name, new.limits, None));
        let known = stores.keys().unwrap().credential(credential.id).await.unwrap().unwrap();
        assert!(known.now >= key.created_at);
        assert_eq!((&known.credential, &known.api_key), (&credential, &key));
        issued.push(key);
    }
    let listed = stores.keys().unwrap().list().await.unwrap();
    assert_eq!(listed.iter().map(|key| key.id).next(), Some(tenant.api_key), "oldest first");
    assert_eq!(listed.into_iter().skip(1).collect::<Vec<_>>(), issued);
    assert_eq!(stores.keys().unwrap().credential(sample::fresh()).await.unwrap(), None);
}

/// A key is issued on a wallet that exists.
pub async fn a_key_needs_its_wallet(stores: &dyn Stores) {
    let new = new_key(sample::fresh(), &name("key"));
    let credential = credential(new.id);
    let refused = stores.keys().unwrap().issue(&new, &credential).await;
    assert!(matches!(refused, Err(CreateError::NoWallet)), "{refused:?}");
    assert_eq!(stores.keys().unwrap().list().await.unwrap(), []);
    assert_eq!(stores.keys().unwrap().credential(credential.id).await.unwrap(), None);
}

/// Neither a name nor an id is given twice, and a refused key leaves nothing behind.
pub async fn names_of_keys_are_taken_once(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 0).await;
    let first = new_key(tenant.wallet, &name("key"));
    let key = stores.keys().unwrap().issue(&first, &credential(first.id)).await.unwrap();
    let same_name = new_key(tenant.wallet, &first.name);
    let same_id = NewApiKey { id: first.id, ..new_key(tenant.wallet, &name("key")) };
    for new in [same_name, same_id] {
        let credential = credential(new.id);
        let refused = stores.keys().unwrap().issue(&new, &credential).await;
        assert!(matches!(refused, Err(CreateError::NameTaken)), "{refused:?}");
        assert_eq!(stores.keys().unwrap().credential(credential.id).await.unwrap(), None);
    }
    assert_eq!(stores.keys().unwrap().list().await.unwrap().last(), Some(&key));
}

/// Of many keys of one name that are issued at once, one is.
pub async fn concurrent_issues_of_a_name_make_one_key(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 0).await;
    let name = name("key");
    let issues = (0..5).map(|_| async {
        let new = new_key(tenant.wallet, &name);
        stores.keys().unwrap().issue(&new, &credential(new.id)).await
    });
    let issued = join_all(issues).await;
    assert_eq!(issued.iter().filter(|issued| issued.is_ok()).count(), 1, "{issued:?}");
    assert_eq!(stores.keys().unwrap().list().await.unwrap().len(), 2);
}

/// Revoking has a moment; a second time changes nothing, and an unknown key has none.
pub async fn a_revoked_key_stays_revoked(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 0).await;
    let new = new_key(tenant.wallet, &name("key"));
    let credential = credential(new.id);
    let key = stores.keys().unwrap().issue(&new, &credential).await.unwrap();
    let since = stores.keys().unwrap().revoke(key.id).await.unwrap();
    assert!(since.is_some_and(|since| since >= key.created_at));
    assert_eq!(stores.keys().unwrap().revoke(key.id).await.unwrap(), since);
    let known = stores.keys().unwrap().credential(credential.id).await.unwrap().unwrap();
    assert_eq!(known.api_key.revoked_at, since);
    assert_eq!(known.credential.ends_at, since, "its credentials end with it");
    let listed = stores.keys().unwrap().list().await.unwrap();
    assert_eq!(listed.last().unwrap().revoked_at, since);
    assert_eq!(listed.first().unwrap().revoked_at, None, "another key is as it was");
    assert_eq!(stores.keys().unwrap().revoke(sample::fresh()).await.unwrap(), None);
}

/// A wallet is empty when it is made, and found and listed as it was made.
pub async fn wallets_are_found_and_listed(stores: &dyn Stores) {
    let mut made = Vec::new();
    for currency in ["USD", "EUR"] {
        let (id, name, currency) = (sample::fresh(), name("wallet"), currency.parse().unwrap());
        let wallet = stores.wallets().create(id, &name, currency).await.unwrap();
        assert_eq!((wallet.id, &wallet.name, wallet.currency), (id, &name, currency));
        assert_eq!((wallet.available, wallet.held), (Micros::ZERO, Micros::ZERO));
        assert_eq!(stores.wallets().find(id).await.unwrap().as_ref(), Some(&wallet));
        assert_eq!(stores.wallets().transfers(id, 9).await.unwrap(), []);
        made.push(wallet);
    }
    assert_eq!(stores.wallets().list().await.unwrap(), made, "oldest first");
    assert_eq!(stores.wallets().find(sample::fresh()).await.unwrap(), None);
}

/// Neither a name nor an id is given twice, at once or later.
pub async fn names_of_wallets_are_taken_once(stores: &dyn Stores) {
    let (id, name) = (sample::fresh::<WalletId>(), name("wallet"));
    let wallet = stores.wallets().create(id, &name, sample::usd()).await.unwrap();
    let other = self::name("wallet");
    for (id, name) in [(sample::fresh(), &name), (id, &other)] {
        let refused = stores.wallets().create(id, name, sample::usd()).await;
        assert!(matches!(refused, Err(CreateError::NameTaken)), "{refused:?}");
    }
    let creates = (0..5).map(|_| stores.wallets().create(sample::fresh(), &other, sample::usd()));
    let created = join_all(creates).await;
    assert_eq!(created.iter().filter(|created| created.is_ok()).count(), 1, "{created:?}");
    let listed = stores.wallets().list().await.unwrap();
    assert_eq!((listed.len(), listed.first()), (2, Some(&wallet)));
}

/// The same numbers may be pinned again; others under a known name are refused, and with them
/// everything that was to be pinned together.
pub async fn prices_never_change(stores: &dyn Stores) {
    let first = sample::priced("2026-03-01T00:00:00Z", 1_000);
    let second = sample::priced("2026-04-01T00:00:00Z", 2_000);
    stores.prices().unwrap().pin(std::slice::from_ref(&first)).await.unwrap();
    let dearer = sample::priced("2026-03-01T00:00:00Z", 1_001);
    let refused = stores.prices().unwrap().pin(&[second, dearer]).await;
    assert!(matches!(&refused, Err(PinError::Conflict(id)) if *id == first.id), "{refused:?}");
    // The second was not pinned: its name is free for other numbers.
    let other_second = sample::priced("2026-04-01T00:00:00Z", 3_000);
    stores.prices().unwrap().pin(&[first.clone(), other_second.clone()]).await.unwrap();
    stores.prices().unwrap().pin(&[other_second, first]).await.unwrap();
}

/// Prices under a known name are those that are known: a claim with other ones is stopped.
pub async fn a_claim_does_not_change_a_known_price(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    tenant.admit(&tenant.claim().build()).await;
    let dearer = sample::priced("2026-01-01T00:00:00Z", 2_000_000);
    assert_eq!(dearer.id, sample::price().id);
    let claim = tenant.claim().price(dearer).build();
    let id = OperationId::of(claim.api_key, claim.request_key);
    let refused = tenant.offer(&claim).await;
    assert!(matches!(refused, Err(CommitError::Collision)), "{refused:?}");
    assert_eq!(tenant.load(id).await.operation, None);
    assert_eq!(tenant.balances().await, (900, 100));
}

fn new_key(wallet: WalletId, name: &str) -> NewApiKey {
    let id: ApiKeyId = sample::fresh();
    NewApiKey { id, wallet, name: name.to_owned(), limits: Limits::default() }
}

fn name(kind: &str) -> String {
    format!("{kind}-{}", Uuid::new_v4().simple())
}
