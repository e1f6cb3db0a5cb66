//! Laws of administration through the façade: what is made once, refused, and recorded.

use std::time::Duration;

use holdfast_domain::admin::ports::{Administration as _, CommandError};
use holdfast_domain::admin::{
    AccountAction, AccountCommand, AccountRefusal, ActorId, RequestBinding, WalletAction,
    WalletBounds, WalletPatch, WalletRecord,
};
use holdfast_domain::restore::UnknownKeys;
use holdfast_domain::text::BadName;
use holdfast_domain::{
    ApiKeyId, ApiKeys as _, CommandKey, Currency, Micros, Restores as _, WalletId, Wallets as _,
};
use holdfast_embed::{AccountError, ServerSecret};

use crate::home::Home;
use crate::shop::{SECRET, Shop, grant};

on_both! {
    a_command_again_makes_nothing_new,
    a_deposit_is_of_more_than_nothing_and_to_a_wallet,
    a_key_needs_its_wallet,
    a_known_key_with_another_request_is_a_conflict,
    a_name_is_bounded_and_has_its_normal_form,
    an_issued_key_is_found_by_its_credential,
    names_are_taken_once,
    a_bound_key_is_answered_under_a_name_of_before_the_bound,
    within_the_window_of_a_restore_a_deposit_needs_consent,
}

const FRESH: CommandKey = CommandKey::from_u128(9);
const NO_WALLET: WalletId = WalletId::from_u128(7);

async fn a_command_again_makes_nothing_new(home: Home) {
    let shop = Shop::open(home).await;
    let (key, wallet) = (shop.api_key, shop.wallet);
    let recorded = shop.holdfast.store().trail_head().await.unwrap();
    // Each start gives the same three commands.
    let shop = shop.again().await;
    assert_eq!((shop.api_key, shop.wallet), (key, wallet));
    assert_eq!(shop.balance().await, (Micros::new(10_000_000), Micros::ZERO));
    let again = shop.issue_again().await;
    assert_eq!(again.id, key);
    assert!(again.bearer.is_none(), "no secret is kept");
    assert_eq!(shop.holdfast.store().trail_head().await.unwrap(), recorded);
    shop.end_in_order().await;
}

async fn a_known_key_with_another_request_is_a_conflict(home: Home) {
    let shop = Shop::open(home).await;
    let [make, issue, pay] = [1, 2, 3].map(CommandKey::from_u128);
    let holdfast = &shop.holdfast;
    let euro = "EUR".parse::<Currency>().unwrap();
    for (name, currency) in [("other", Currency::USD), ("acme", euro)] {
        is_conflict(holdfast.create_wallet(make, name, currency).await);
    }
    let all = holdfast_domain::credential::Grant::default();
    for (name, grant) in [("other", grant()), ("main", all)] {
        is_conflict(holdfast.issue_key(issue, shop.wallet, name, grant).await);
    }
    is_conflict(holdfast.deposit(pay, shop.wallet, Micros::new(10_000_001)).await);
    is_conflict(holdfast.deposit(pay, NO_WALLET, Micros::new(10_000_000)).await);
    shop.end_in_order().await;
}

async fn names_are_taken_once(home: Home) {
    let shop = Shop::open(home).await;
    let wallet = shop.holdfast.create_wallet(FRESH, "acme", Currency::USD).await;
    let key = shop.holdfast.issue_key(FRESH, shop.wallet, "main", grant()).await.map(drop);
    for (made, name) in [(wallet.map(drop), "acme"), (key, "main")] {
        let refused = refusal(made);
        assert!(
            matches!(&refused, AccountRefusal::NameTaken(taken) if taken == name),
            "{refused:?}"
        );
    }
    shop.end_in_order().await;
}

async fn a_name_is_bounded_and_has_its_normal_form(home: Home) {
    let shop = Shop::open(home).await;
    let long = "x".repeat(65);
    let id = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
    for (name, expected) in
        [(" ", BadName::Characters), (long.as_str(), BadName::Characters), (id, BadName::LikeAnId)]
    {
        let wallet = shop.holdfast.create_wallet(FRESH, name, Currency::USD).await.map(drop);
        let key = shop.holdfast.issue_key(FRESH, shop.wallet, name, grant()).await.map(drop);
        for refused in [wallet, key] {
            assert!(
                matches!(&refused, Err(AccountError::Name(bad)) if *bad == expected),
                "{refused:?}"
            );
        }
    }
    let typed = " Cafe\u{301} ";
    let wallet = shop.holdfast.create_wallet(FRESH, typed, Currency::USD).await.unwrap();
    assert_eq!(shop.holdfast.store().find(wallet).await.unwrap().unwrap().name, "Café");
    let other = CommandKey::from_u128(10);
    let key = shop.holdfast.issue_key(other, wallet, typed, grant()).await.unwrap();
    let credential = key.bearer.unwrap().id;
    let known = shop.holdfast.store().credential(credential).await.unwrap().unwrap();
    assert_eq!(known.api_key.name, "Café");
    shop.end_in_order().await;
}

async fn a_bound_key_is_answered_under_a_name_of_before_the_bound(home: Home) {
    let shop = Shop::open(home).await;
    let (long, id) = ("x".repeat(65), WalletId::from_u128(8));
    let record = WalletRecord::new(id, long.clone(), Currency::USD, WalletPatch::default());
    let secret = ServerSecret::new(SECRET).unwrap();
    let asked = format!("wallet {} {long}", Currency::USD);
    let digest = secret.body_digest_key(ApiKeyId::from_u128(0)).digest(asked.as_bytes());
    let request = RequestBinding { key: FRESH, digest: digest.to_bytes(), canonical: None };
    let command = AccountCommand {
        is_after_restore: false,
        actor: ActorId::Local,
        address: None,
        request,
        reason: None,
        bounds: WalletBounds::DEFAULT,
        action: AccountAction::Wallet(WalletAction::Create(record)),
    };
    shop.holdfast.store().administer(&command, &secret).await.unwrap();
    let made = shop.holdfast.create_wallet(FRESH, &long, Currency::USD).await.unwrap();
    assert_eq!(made, id);
    shop.end_in_order().await;
}

async fn a_key_needs_its_wallet(home: Home) {
    let shop = Shop::open(home).await;
    let refused = refusal(shop.holdfast.issue_key(FRESH, NO_WALLET, "key", grant()).await);
    assert!(matches!(refused, AccountRefusal::NoWallet), "{refused:?}");
    shop.end_in_order().await;
}

async fn an_issued_key_is_found_by_its_credential(home: Home) {
    let shop = Shop::open(home).await;
    let issued = shop.holdfast.issue_key(FRESH, shop.wallet, "second", grant()).await.unwrap();
    let bearer = issued.bearer.unwrap();
    let known = shop.holdfast.store().credential(bearer.id).await.unwrap().unwrap();
    assert_eq!((known.api_key.id, known.api_key.wallet), (issued.id, shop.wallet));
    assert_eq!(known.api_key.grant, grant());
    let secret = ServerSecret::new(SECRET).unwrap();
    assert_eq!(known.credential.verifier, secret.verifier(&bearer.secret));
    shop.end_in_order().await;
}

async fn a_deposit_is_of_more_than_nothing_and_to_a_wallet(home: Home) {
    let shop = Shop::open(home).await;
    for amount in [0, -1] {
        let refused = shop.holdfast.deposit(FRESH, shop.wallet, Micros::new(amount)).await;
        assert!(matches!(refused, Err(AccountError::Amount(_))), "{refused:?}");
    }
    let refused = refusal(shop.holdfast.deposit(FRESH, NO_WALLET, Micros::new(1)).await);
    assert!(matches!(refused, AccountRefusal::NoWallet), "{refused:?}");
    shop.end_in_order().await;
}

async fn within_the_window_of_a_restore_a_deposit_needs_consent(home: Home) {
    let shop = Shop::open(home).await;
    let window = UnknownKeys::Refuse(Duration::from_secs(3_600));
    shop.holdfast.store().declare(window).await.unwrap();
    let amount = Micros::new(1);
    let refused = refusal(shop.holdfast.deposit(FRESH, shop.wallet, amount).await);
    assert!(matches!(refused, AccountRefusal::LedgerRestored { .. }), "{refused:?}");
    shop.holdfast.after_restore().deposit(FRESH, shop.wallet, amount).await.unwrap();
    shop.end_in_order().await;
}

#[track_caller]
fn refusal<T: std::fmt::Debug>(made: Result<T, AccountError>) -> AccountRefusal {
    let refused = match made {
        Err(AccountError::Command(CommandError::Refused(refused))) => Ok(refused),
        other => Err(other),
    };
    refused.unwrap()
}

#[track_caller]
fn is_conflict<T: std::fmt::Debug>(made: Result<T, AccountError>) {
    let refused = refusal(made);
    assert!(matches!(refused, AccountRefusal::RequestKeyConflict), "{refused:?}");
}
