//! Fields of postings, wallets, API keys and requests that the audit log tells of, each changed by hand alone: no sum shows
//! them, and each is mended again before the next.

use std::time::Duration;

use holdfast_domain::admin::{
    AccountAction, ApiKeyAction, ApiKeyPatch, DepositReference, NewPosting, PostingDetails,
    WalletAction,
};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::limits::{CountLimit, SpendLimit, SpendWindow};
use holdfast_domain::{Micros, Timestamp, WalletId};
use holdfast_testkit::laws::tenant::credential;
use holdfast_testkit::sample;

use super::broken::{BrokenRow, finds_each};
use crate::administration::{act, issue, make_wallet};
use crate::scratch::Home;

const TABLES: [&str; 6] =
    ["wallets", "postings", "posting_details", "api_keys", "credentials", "admin_requests"];

/// Posting of a wallet with all that may be said beside it.
fn detailed(wallet: WalletId, kind: PostingKind) -> AccountAction {
    let reference = match kind {
        PostingKind::Deposit => Some(DepositReference::new("stripe", "pi_7")),
        PostingKind::Refund(_) | PostingKind::Adjustment(_) => None,
    };
    let posting = Posting::new(sample::fresh(), wallet, kind, Micros::new(500)).unwrap();
    let details = PostingDetails {
        reference,
        reason: Some("paid".to_owned()),
        note: Some("invoice 7".to_owned()),
    };
    AccountAction::Post(NewPosting { posting, details, allowance: None, currency: None })
}

/// A wallet with a deposit and an adjustment; an API key with every limit, which was rotated, one that was revoked, and
/// one with none. A wallet that was closed with its key.
async fn fill(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    for kind in [PostingKind::Deposit, PostingKind::Adjustment("goodwill".to_owned())] {
        act(store, detailed(wallet, kind)).await.unwrap();
    }
    let keys = issue(store, wallet, &["one", "two", "three"]).await.unwrap();
    let (api_key, grace) = (keys[0], Duration::from_secs(60));
    let patch = ApiKeyPatch {
        external_id: Some(Some("seat 1".to_owned())),
        counts: [
            (CountLimit::RequestsPerMinute, Some(9)),
            (CountLimit::TokensPerMinute, Some(900)),
            (CountLimit::Concurrency, Some(3)),
        ]
        .into(),
        spend: Some(Some(SpendLimit { micros: Micros::new(700), window: SpendWindow::Day })),
        models: Some(Some([sample::model().into()].into())),
        ends_at: Some(Some(Timestamp::from_micros(4_000_000_000_000_000))),
        ..ApiKeyPatch::default()
    };
    let edit = AccountAction::ApiKey(ApiKeyAction::Edit {
        api_key,
        wallet,
        patch,
        expected: None,
        is_bounded: false,
    });
    act(store, edit).await.unwrap();
    let credential = credential(api_key);
    let rotate = AccountAction::ApiKey(ApiKeyAction::Rotate {
        credential,
        wallet,
        grace,
        is_bounded: false,
    });
    act(store, rotate).await.unwrap();
    act(store, AccountAction::ApiKey(ApiKeyAction::Suspend(api_key))).await.unwrap();
    act(store, AccountAction::ApiKey(ApiKeyAction::Resume(api_key))).await.unwrap();
    act(store, AccountAction::ApiKey(ApiKeyAction::Revoke(keys[1]))).await.unwrap();
    let closed = make_wallet(store, "closed").await;
    issue(store, closed, &["of a closed wallet"]).await.unwrap();
    act(store, AccountAction::Wallet(WalletAction::Close(closed))).await.unwrap();
}

const POSTINGS: &[BrokenRow] = &[
    (
        "UPDATE posting_details SET source = 'paypal' WHERE source = 'stripe'",
        "posting",
        "its source is paypal, it was made with stripe by row 2",
    ),
    (
        "UPDATE posting_details SET external_reference = 'pi_8' WHERE source = 'stripe'",
        "posting",
        "its external_reference is pi_8, it was made with pi_7 by row 2",
    ),
    (
        "UPDATE posting_details SET reason = 'owed' WHERE source = 'stripe'",
        "posting",
        "its reason is owed, it was made with paid by row 2",
    ),
    (
        "UPDATE posting_details SET note = 'invoice 8' WHERE source = 'stripe'",
        "posting",
        "its note is invoice 8, it was made with invoice 7 by row 2",
    ),
    (
        "UPDATE posting_details SET note = NULL WHERE source IS NULL",
        "posting",
        "its note is none, it was made with invoice 7 by row 3",
    ),
    (
        "DELETE FROM posting_details WHERE source = 'stripe'",
        "posting",
        "its source is none, it was made with stripe by row 2",
    ),
    (
        "UPDATE postings SET reason = 'theft' WHERE kind = 'adjustment'",
        "posting",
        "its reason is theft, it was made with goodwill by row 3",
    ),
    (
        "UPDATE postings SET created_at = 7 WHERE kind = 'deposit'",
        "posting",
        "it was made at 7, row 2 of the audit log has at",
    ),
];

const API_KEYS: &[BrokenRow] = &[
    (
        "UPDATE api_keys SET name = 'another' WHERE name = 'one'",
        "API key",
        "its name is another, row 4 of the audit log has one",
    ),
    (
        "UPDATE api_keys SET external_id = 'seat 2' WHERE name = 'one'",
        "API key",
        "its external_id is seat 2, row 7 of the audit log has seat 1",
    ),
    (
        "UPDATE api_keys SET requests_per_minute = 10 WHERE name = 'one'",
        "API key",
        "its requests_per_minute is 10, row 7 of the audit log has 9",
    ),
    (
        "UPDATE api_keys SET requests_per_minute = 10 WHERE name = 'three'",
        "API key",
        "its requests_per_minute is 10, row 6 of the audit log has none",
    ),
    (
        "UPDATE api_keys SET tokens_per_minute = NULL WHERE name = 'one'",
        "API key",
        "its tokens_per_minute is none, row 7 of the audit log has 900",
    ),
    (
        "UPDATE api_keys SET concurrency = 4 WHERE name = 'one'",
        "API key",
        "its concurrency is 4, row 7 of the audit log has 3",
    ),
    (
        "UPDATE api_keys SET spend_micros = 7000 WHERE name = 'one'",
        "API key",
        "its spend_micros is 7000, row 7 of the audit log has 700",
    ),
    (
        "UPDATE api_keys SET spend_window = 'month' WHERE name = 'one'",
        "API key",
        "its spend_window is month, row 7 of the audit log has day",
    ),
    (
        "UPDATE api_keys SET models = NULL WHERE name = 'one'",
        "API key",
        "its models is none, row 7 of the audit log has",
    ),
    (
        "UPDATE api_keys SET balance = 'hidden' WHERE name = 'one'",
        "API key",
        "its balance is hidden, row 4 of the audit log has shown",
    ),
    (
        "UPDATE api_keys SET usage = 'wallet' WHERE name = 'one'",
        "API key",
        "its usage is wallet, row 4 of the audit log has key",
    ),
    (
        "UPDATE api_keys SET ends_at = NULL WHERE name = 'one'",
        "API key",
        "its ends_at is none, row 7 of the audit log has",
    ),
    (
        "UPDATE api_keys SET wallet_id = (SELECT id FROM wallets WHERE name = 'closed')
         WHERE name = 'three'",
        "API key",
        "its wallet_id is",
    ),
    (
        "UPDATE api_keys SET suspended_at = 7 WHERE name = 'three'",
        "API key",
        "its suspended_at is 7, row 6 of the audit log has none",
    ),
    (
        "UPDATE api_keys SET revoked_at = NULL WHERE name = 'two'",
        "API key",
        "its revoked_at is none",
    ),
    (
        "UPDATE api_keys SET revoked_at = NULL WHERE name = 'of a closed wallet'",
        "API key",
        "its revoked_at is none",
    ),
    (
        "UPDATE api_keys SET created_at = 7 WHERE name = 'one'",
        "API key",
        "it was made at 7, row 4 of the audit log has at",
    ),
];

/// Of key `one` the first credential ends, and the one that its rotation made does not.
const CREDENTIALS: &[BrokenRow] = &[
    (
        "UPDATE credentials SET created_at = 7 WHERE api_key_id = <one> AND ends_at IS NULL",
        "API key",
        "no row of the audit log made its credential",
    ),
    (
        "UPDATE credentials SET created_at = 7 WHERE api_key_id = <one> AND ends_at IS NOT NULL",
        "API key",
        "no row of the audit log made its credential",
    ),
    (
        "INSERT INTO credentials SELECT <id>, api_key_id, verifier, server_secret, created_at, ends_at
         FROM credentials WHERE api_key_id = <one> AND ends_at IS NOT NULL",
        "API key",
        "no row of the audit log made its credential",
    ),
    (
        "UPDATE credentials SET ends_at = 7 WHERE api_key_id = <one> AND ends_at IS NULL",
        "API key",
        "ends 7, the audit log has never",
    ),
    (
        "UPDATE credentials SET ends_at = ends_at + 1
         WHERE api_key_id = <one> AND ends_at IS NOT NULL",
        "API key",
        "the audit log has",
    ),
    (
        "UPDATE credentials SET ends_at = NULL
         WHERE api_key_id = (SELECT k.id FROM api_keys AS k WHERE k.name = 'two')",
        "API key",
        "ends never, the audit log has",
    ),
];

const WALLETS: &[BrokenRow] = &[
    (
        "UPDATE wallets SET name = 'another' WHERE name = 'acme'",
        "wallet",
        "its name is another, row 1 of the audit log has acme",
    ),
    (
        "UPDATE wallets SET external_id = NULL WHERE name = 'acme'",
        "wallet",
        "its external_id is none, row 1 of the audit log has customer of acme",
    ),
    (
        "UPDATE wallets SET currency = 'EUR' WHERE name = 'acme'",
        "wallet",
        "its currency is EUR, row 1 of the audit log has USD",
    ),
    (
        "UPDATE wallets SET created_at = 7 WHERE name = 'acme'",
        "wallet",
        "it was made at 7, row 1 of the audit log has at",
    ),
];

/// The request of row 1 made the wallet, and that of rows 4 to 6 three API keys.
const REQUESTS: &[BrokenRow] = &[
    (
        "DELETE FROM admin_requests WHERE request_key = <first>",
        "the ledger",
        "the request key of row 1 of its audit log is bound no more",
    ),
    (
        "UPDATE admin_requests SET actor = 'key:<nobody>' WHERE request_key = <first>",
        "the ledger",
        "the request key of row 1 of its audit log is bound no more",
    ),
    (
        "UPDATE admin_requests SET request_key = <id> WHERE request_key = <first>",
        "the ledger",
        "the request key of row 1 of its audit log is bound no more",
    ),
    (
        "UPDATE admin_requests SET digest = <id32> WHERE request_key = <first>",
        "the ledger",
        "the request key of row 1 of its audit log is bound to another request",
    ),
    (
        "UPDATE admin_requests SET created_at = 7 WHERE request_key = <first>",
        "the ledger",
        "the request key of row 1 of its audit log is bound to another request",
    ),
    (
        "UPDATE admin_requests SET things = 'wallet:<nobody>' WHERE request_key = <first>",
        "the ledger",
        "the request key of row 1 of its audit log is bound to another request",
    ),
    (
        "UPDATE admin_requests SET things = things || ',wallet:<nobody>' WHERE request_key = <first>",
        "the ledger",
        "the request key of row 1 of its audit log is bound to another request",
    ),
    (
        "UPDATE admin_requests SET things = 'gift' WHERE request_key = <first>",
        "the ledger",
        "the request key of row 1 of its audit log is bound to what cannot be read",
    ),
    (
        "UPDATE admin_requests SET digest = <id> WHERE request_key = <first>",
        "the ledger",
        "the request key of row 1 of its audit log is bound to what cannot be read",
    ),
    (
        "UPDATE admin_requests SET things = substr(things, 1, 44)
         WHERE request_key = (SELECT a.request_key FROM audit AS a WHERE a.seq = 4)",
        "the ledger",
        "the request key of row 5 of its audit log is bound to another request",
    ),
    (
        "DELETE FROM admin_requests
         WHERE request_key = (SELECT a.request_key FROM audit AS a WHERE a.seq = 4)",
        "the ledger",
        "the request key of row 6 of its audit log is bound no more",
    ),
];

const NAMES: [(&str, &str); 5] = [
    ("<id>", "zeroblob(16)"),
    ("<id32>", "zeroblob(32)"),
    ("<nobody>", "00000000-0000-0000-0000-000000000007"),
    ("<first>", "(SELECT a.request_key FROM audit AS a WHERE a.seq = 1)"),
    ("<one>", "(SELECT k.id FROM api_keys AS k WHERE k.name = 'one')"),
];

async fn each_field_that_the_trail_tells_of_is_compared(home: &impl Home) {
    fill(home).await;
    let broken = [POSTINGS, API_KEYS, CREDENTIALS, WALLETS, REQUESTS].concat();
    finds_each(home, &TABLES, &NAMES, &broken).await;
}

crate::scratch::on_every_store! {
    each_field_that_the_trail_tells_of_is_compared,
}
