//! Commands of administration after a restore: what the ledger may have lost is not done a second time by a repetition.

use std::time::Duration;

use holdfast_domain::admin::{AccountAction, AccountCommand, AccountRefusal, ApiKeyAction};
use holdfast_domain::credential::{Grant, NewApiKey};
use holdfast_domain::restore::UnknownKeys;
use holdfast_domain::{ApiKeyId, Restores as _, WalletId};
use holdfast_testkit::laws::Commands as _;
use holdfast_testkit::laws::tenant::credential;
use holdfast_testkit::sample;

use crate::administration::{
    act, administer, available, command, deposit, issue, key, make_wallet, referenced,
};
use crate::scratch::{Home, on_every_store};

const HOUR: Duration = Duration::from_secs(3_600);

async fn money_and_keys_are_made_within_a_window_only_by_who_knows_of_it(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let known = command(key(), deposit(sample::fresh(), wallet, 10));
    administer(store, &known).await.unwrap();
    let payment = referenced(wallet, 5, "pay-1");
    act(store, payment.clone()).await.unwrap();
    let restore = store.declare(UnknownKeys::Refuse(HOUR)).await.unwrap();

    let refused = AccountRefusal::LedgerRestored { until: restore.unknown_until };
    let lost = command(key(), deposit(sample::fresh(), wallet, 20));
    assert_eq!(administer(store, &lost).await, Err(refused.clone()));
    assert_eq!(issue(store, wallet, &["bot"]).await, Err(refused));
    // Its key is bound, and its payment is booked.
    assert!(administer(store, &known).await.unwrap().replayed);
    assert!(act(store, payment).await.unwrap().replayed);
    // A change of what is there is no second booking.
    let id = issued_after_restore(home, wallet).await;
    act(store, AccountAction::ApiKey(ApiKeyAction::Suspend(id))).await.unwrap();
    assert_eq!(available(store, wallet).await, 15);

    let aware = AccountCommand { is_after_restore: true, ..lost.clone() };
    assert!(!administer(store, &aware).await.unwrap().replayed);
    // The same request, which has its key now.
    assert!(administer(store, &lost).await.unwrap().replayed);
    store.declare(UnknownKeys::Allow).await.unwrap();
    issue(store, wallet, &["another"]).await.unwrap();
    assert_eq!(available(store, wallet).await, 35);
}

/// An API key that the laws' commands issue, which know of every restore.
async fn issued_after_restore(home: &impl Home, wallet: WalletId) -> ApiKeyId {
    let (id, name) = (sample::fresh(), "aware".to_owned());
    let new = NewApiKey { id, wallet, name, external_id: None, grant: Grant::default() };
    home.store().issue(&new, &credential(id)).await.unwrap();
    id
}

on_every_store! {
    money_and_keys_are_made_within_a_window_only_by_who_knows_of_it,
}
