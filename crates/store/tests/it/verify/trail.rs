//! Rows that were changed by hand so that all sums fit, and that the trail says otherwise: postings along with
//! the wallet's balance, and the terms of API keys.

use holdfast_domain::account::{AccountAction, ApiKeyPatch, NewPosting, PostingDetails};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::{Micros, PostingId};
use holdfast_testkit::laws::tenant::{Tenant, finish};
use holdfast_testkit::sample;

use crate::administration::{act, deposit, issue, make_wallet};
use crate::raw::Raw;
use crate::scratch::Home;

/// A wallet with two deposits, and two charges of which one was refunded; all of it by administration.
async fn fill(home: &impl Home) {
    let wallet = make_wallet(home.store(), "acme").await;
    for amount in [500, 70] {
        act(home.store(), deposit(sample::fresh(), wallet, amount)).await.unwrap();
    }
    let tenant = Tenant::new(home, 10_000).await;
    let mut charged = Vec::new();
    for _ in 0..2 {
        let operation = tenant.admit(&tenant.claim().build()).await;
        tenant.step(operation.id, finish(&operation, 20, 10)).await;
        charged.push(operation.id);
    }
    let id: PostingId = sample::fresh();
    let refund = PostingKind::Refund(charged[0]);
    let posting = Posting::new(id, tenant.wallet, refund, Micros::new(5)).unwrap();
    let details = PostingDetails::default();
    let refund = AccountAction::Post(NewPosting { posting, details, allowance: None });
    act(home.store(), refund).await.unwrap();
}

async fn finds<H: Home>(_: &H, sql: &str, sentence: &str) {
    let home = H::make().await;
    fill(&home).await;
    let found = home.store().verify().await.unwrap();
    assert_eq!(found.mismatches, [], "as it was written");
    Raw::reckless(&home).await.run(sql).await;
    let found = home.store().verify().await.unwrap();
    let told: Vec<String> = found.mismatches.iter().map(ToString::to_string).collect();
    assert!(
        matches!(told.as_slice(), [one] if one.starts_with("posting") && one.contains(sentence)),
        "{sql}: {told:?}"
    );
}

async fn postings_that_were_changed_with_their_balances_are_found(home: &impl Home) {
    let raised = "UPDATE postings SET amount = 600 WHERE amount = 500;
        UPDATE wallets SET available = available + 100 WHERE name = 'acme'";
    finds(home, raised, "its amount_micros is 600, it was made with 500 by row 2").await;
    // The last one: there is no gap behind it.
    let gone = "DELETE FROM postings WHERE kind = 'refund';
        UPDATE wallets SET available = available - 5 WHERE name <> 'acme'";
    finds(home, gone, "row 4 of the trail made it, and it is not there").await;
}

async fn refunds_that_were_moved_where_they_fit_are_found(home: &impl Home) {
    let moved = "UPDATE postings SET operation_id = (SELECT id FROM operations WHERE seq = 2)
        WHERE kind = 'refund'";
    finds(home, moved, "its operation_id is").await;
    let turned = "UPDATE postings SET kind = 'adjustment', reason = 'because', operation_id = NULL
        WHERE kind = 'refund'";
    finds_kind(home, turned).await;
}

/// Keys that were issued, edited, suspended, resumed and revoked, one of them with its wallet.
async fn fill_keys(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let other = make_wallet(store, "other").await;
    let keys = issue(store, wallet, &["one", "two", "three"]).await.unwrap();
    let patch = ApiKeyPatch { concurrency: Some(Some(3)), ..ApiKeyPatch::default() };
    let api_key = keys[0];
    let edit =
        AccountAction::EditApiKey { api_key, wallet, patch, expected: None, is_bounded: false };
    act(store, edit).await.unwrap();
    act(store, AccountAction::SuspendApiKey(keys[0])).await.unwrap();
    act(store, AccountAction::ResumeApiKey(keys[0])).await.unwrap();
    act(store, AccountAction::RevokeApiKey(keys[1])).await.unwrap();
    issue(store, other, &["of a closed wallet"]).await.unwrap();
    act(store, AccountAction::CloseWallet(other)).await.unwrap();
}

async fn terms_of_api_keys_that_were_changed_by_hand_are_found(home: &impl Home) {
    fill_keys(home).await;
    assert_eq!(home.store().verify().await.unwrap().mismatches, [], "as it was written");
    let mut raw = Raw::reckless(home).await;
    for (broken, mended, sentence) in [
        (
            "UPDATE api_keys SET concurrency = 4 WHERE name = 'one'",
            "UPDATE api_keys SET concurrency = 3 WHERE name = 'one'",
            "its concurrency is 4, row 6 of the trail says 3",
        ),
        (
            "UPDATE api_keys SET concurrency = NULL WHERE name = 'one'",
            "UPDATE api_keys SET concurrency = 3 WHERE name = 'one'",
            "its concurrency is nothing",
        ),
        (
            "UPDATE api_keys SET wallet_id = (SELECT id FROM wallets WHERE name = 'other')
             WHERE name = 'three'",
            "UPDATE api_keys SET wallet_id = (SELECT id FROM wallets WHERE name = 'acme')
             WHERE name = 'three'",
            "its wallet_id is",
        ),
        (
            "UPDATE api_keys SET revoked_at = NULL WHERE name = 'two'",
            "",
            "its revoked_at is nothing",
        ),
    ] {
        raw.run(broken).await;
        let found = home.store().verify().await.unwrap().mismatches;
        let told: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(
            matches!(&*told, [one] if one.starts_with("API key") && one.contains(sentence)),
            "{broken}: {told:?}"
        );
        if !mended.is_empty() {
            raw.run(mended).await;
        }
    }
}

/// A kind has its operation along: both differ.
async fn finds_kind<H: Home>(_: &H, sql: &str) {
    let home = H::make().await;
    fill(&home).await;
    Raw::reckless(&home).await.run(sql).await;
    let found = home.store().verify().await.unwrap();
    let told: Vec<&str> = found.mismatches.iter().map(|it| &*it.sentence).collect();
    let [kind, operation] = <[&str; 2]>::try_from(told).unwrap();
    assert!(kind.starts_with("its kind is adjustment, it was made with refund"), "{kind}");
    assert!(operation.starts_with("its operation_id is nothing"), "{operation}");
}

crate::scratch::on_every_store! {
    postings_that_were_changed_with_their_balances_are_found,
    refunds_that_were_moved_where_they_fit_are_found,
    terms_of_api_keys_that_were_changed_by_hand_are_found,
}
