//! Rows that were changed by hand so that all sums fit, and that the audit log says otherwise: postings along with
//! the wallet's balance, the terms of wallets and API keys, and what administration never made.

use std::time::Duration;

use holdfast_domain::admin::Directory as _;
use holdfast_domain::admin::{
    AccountAction, ApiKeyAction, NewPosting, PostingDetails, WalletAction, WalletPatch,
};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::limits::{SpendLimit, SpendWindow};
use holdfast_domain::{Micros, PostingId, WalletId};
use holdfast_testkit::laws::tenant::{Tenant, credential, finish};
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
    let refund =
        AccountAction::Post(NewPosting { posting, details, allowance: None, currency: None });
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
    finds(home, gone, "row 7 of the audit log made it, and it does not exist").await;
}

async fn refunds_that_were_moved_where_they_fit_are_found(home: &impl Home) {
    let moved = "UPDATE postings SET operation_id = (SELECT id FROM operations WHERE seq = 2)
        WHERE kind = 'refund'";
    finds(home, moved, "its operation_id is").await;
    let turned = "UPDATE postings SET kind = 'adjustment', reason = 'because', operation_id = NULL
        WHERE kind = 'refund'";
    finds_kind(home, turned).await;
}

async fn terms_of_wallets_that_were_changed_by_hand_are_found(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let key_spend = SpendLimit { micros: Micros::new(700), window: SpendWindow::Month };
    let patch = WalletPatch { key_spend: Some(Some(key_spend)), ..WalletPatch::default() };
    act(store, AccountAction::Wallet(WalletAction::Edit { wallet, patch, expected: None }))
        .await
        .unwrap();
    act(store, AccountAction::Wallet(WalletAction::Suspend(wallet))).await.unwrap();
    let closed = make_wallet(store, "closed").await;
    act(store, AccountAction::Wallet(WalletAction::Close(closed))).await.unwrap();
    let broken = [
        (
            "key_spend = 7000 WHERE name = 'acme'",
            "its key_spend_micros is 7000, row 2 of the audit log",
        ),
        ("key_spend_window = 'day' WHERE name = 'acme'", "its key_spend_window is day"),
        ("suspended_at = NULL WHERE name = 'acme'", "its suspended_at is none"),
        ("closed_at = NULL WHERE name = 'closed'", "its closed_at is none"),
        ("low_balance = 1 WHERE name = 'closed'", "its low_balance_micros is 1"),
    ];
    assert_eq!(home.store().verify().await.unwrap().mismatches, [], "as it was written");
    let mut raw = Raw::reckless(home).await;
    for (set, _) in broken {
        raw.run(&format!("UPDATE wallets SET {set}")).await;
    }
    let found = home.store().verify().await.unwrap().mismatches;
    let told: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), broken.len(), "{told:#?}");
    for (set, sentence) in broken {
        let is_told = told.iter().any(|it| it.starts_with("wallet") && it.contains(sentence));
        assert!(is_told, "{set}: {told:#?}");
    }
}

/// Breaks a book with keys and postings of administration, and expects a mismatch that says this.
async fn finds_any<H: Home>(_: &H, sql: &str, sentence: &str) -> Vec<String> {
    let home = H::make().await;
    fill(&home).await;
    let wallet = wallet_of(&home).await;
    let keys = issue(home.store(), wallet, &["one", "two"]).await.unwrap();
    let (credential, grace) = (credential(keys[0]), Duration::from_secs(60));
    let rotate = AccountAction::ApiKey(ApiKeyAction::Rotate {
        credential,
        wallet,
        grace,
        is_bounded: false,
    });
    act(home.store(), rotate).await.unwrap();
    assert_eq!(home.store().verify().await.unwrap().mismatches, [], "as it was written");
    Raw::reckless(&home).await.run(sql).await;
    let found = home.store().verify().await.unwrap().mismatches;
    let told: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|it| it.contains(sentence)), "{sql}: {told:#?}");
    told
}

async fn wallet_of(home: &impl Home) -> WalletId {
    home.store().wallet_named("acme").await.unwrap().unwrap().wallet.id
}

async fn what_administration_never_made_is_found(home: &impl Home) {
    let posting = |wallet: &str| {
        format!(
            "INSERT INTO postings (id, wallet_id, kind, amount, created_at)
             SELECT zeroblob(16), id, 'deposit', 9, 0 FROM wallets WHERE {wallet};
             UPDATE wallets SET available = available + 9 WHERE {wallet};"
        )
    };
    let untold = "no row of the audit log made it, and administration made its wallet";
    finds_any(home, &posting("name = 'acme'"), untold).await;
    let details = "INSERT INTO posting_details (posting_id) VALUES (zeroblob(16))";
    let detailed = format!("{} {details}", posting("name <> 'acme'"));
    finds_any(home, &detailed, "and it has details as administration writes them").await;
    let key = "INSERT INTO api_keys (id, wallet_id, name, balance, created_at)
        SELECT zeroblob(16), id, 'mine', 'shown', 0 FROM wallets WHERE name = 'acme'";
    finds_any(home, key, "no row of the audit log issued it").await;
    let one = "(SELECT id FROM api_keys WHERE name = 'one')";
    let added = format!(
        "INSERT INTO credentials SELECT zeroblob(16), api_key_id, verifier, server_secret,
             created_at, NULL FROM credentials WHERE api_key_id = {one} AND ends_at IS NULL"
    );
    finds_any(home, &added, "no row of the audit log made its credential").await;
    let gone = format!("DELETE FROM credentials WHERE api_key_id = {one} AND ends_at IS NULL");
    finds_any(home, &gone, "it has 1 credentials, rows of the audit log made 2").await;
    let longer = format!("UPDATE credentials SET ends_at = NULL WHERE api_key_id = {one}");
    finds_any(home, &longer, "ends never, the audit log has").await;
    finds_any(home, "UPDATE credentials SET verifier = zeroblob(31)", "or can be none").await;
    for (gone, subject) in [
        ("DELETE FROM api_keys WHERE name = 'two'", "API key"),
        ("DELETE FROM wallets WHERE name = 'acme'", "wallet"),
        (
            "UPDATE audit SET thing_kind = 'operation', thing_id = zeroblob(16)
             WHERE seq = (SELECT max(seq) FROM audit)",
            "operation",
        ),
    ] {
        let sentence = "of the audit log names it, and it does not exist";
        let told = finds_any(home, gone, sentence).await;
        let is_of = |it: &String| it.starts_with(subject) && it.contains(sentence);
        assert!(told.iter().any(is_of), "{gone}: {told:#?}");
    }
    let nobodys = "its result is sealed for a credential without an owner";
    finds_any(home, "UPDATE results SET credential_id = zeroblob(16)", nobodys).await;
    // The format of a service's own results is no way round it: those name no credential at all.
    let own = "UPDATE results SET format = 0, credential_id = randomblob(16)";
    finds_any(home, own, nobodys).await;
}

/// A kind has its operation and its reason along: all three differ.
async fn finds_kind<H: Home>(_: &H, sql: &str) {
    let home = H::make().await;
    fill(&home).await;
    Raw::reckless(&home).await.run(sql).await;
    let found = home.store().verify().await.unwrap();
    let told: Vec<&str> = found.mismatches.iter().map(|it| &*it.sentence).collect();
    let [kind, operation, reason] = <[&str; 3]>::try_from(told).unwrap();
    assert!(kind.starts_with("its kind is adjustment, it was made with refund"), "{kind}");
    assert!(operation.starts_with("its operation_id is none"), "{operation}");
    assert!(reason.starts_with("its reason is because"), "{reason}");
}

crate::scratch::on_every_store! {
    postings_that_were_changed_with_their_balances_are_found,
    terms_of_wallets_that_were_changed_by_hand_are_found,
    what_administration_never_made_is_found,
    refunds_that_were_moved_where_they_fit_are_found,
}
