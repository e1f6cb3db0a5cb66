//! What ends with something else: the keys of a wallet that is closed, and admin keys whose end has
//! come, which hold neither a name nor the last owner's place.

use std::time::Duration;

use holdfast_domain::admin::{
    AccountAction, AccountReceipt, AccountRefusal, ActorId, AdminCredential, AdminKey,
    AdminKeyAction, ApiKeyAction, Reach, ResourceId, Role, WalletAction,
};
use holdfast_domain::admin::{Administration as _, Directory as _};
use holdfast_domain::{AdminKeyId, Journal as _, Timestamp};
use holdfast_store::Store;
use holdfast_store::verify::Mismatch;
use holdfast_testkit::laws::tenant::credential;
use holdfast_testkit::sample;

use crate::administration::{act, command, issue, key, make_wallet, secret};
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};

async fn a_closed_wallet_has_a_row_of_the_trail_for_each_key_that_it_revokes(home: &impl Home) {
    // More than one statement of rows.
    const KEYS: usize = 205;
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let names: Vec<String> = (0..KEYS).map(|n| format!("key {n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let keys = issue(store, wallet, &names).await.unwrap();
    let long_ago = keys[0];
    act(store, AccountAction::ApiKey(ApiKeyAction::Revoke(long_ago))).await.unwrap();
    let before = store.trail_head().await.unwrap();
    let close = command(key(), AccountAction::Wallet(WalletAction::Close(wallet)));
    let closed = store.administer(&close, &secret()).await.unwrap();
    assert_eq!(closed.things, [ResourceId::Wallet(wallet)], "and not ten thousand keys");
    let after = store.trail_head().await.unwrap();
    assert_eq!(after.seq - before.seq, u64::try_from(KEYS).unwrap(), "the wallet, and all but one");
    let mut raw = Raw::open(home).await;
    let told = format!(
        "SELECT count(DISTINCT thing_id) FROM audit WHERE seq > {} AND thing_kind = 'api_key'
         AND use_case = 'wallet.close' AND changes LIKE '%revoked_at%'",
        before.seq
    );
    assert_eq!(raw.number(&told).await, i64::try_from(KEYS).unwrap() - 1);
    let addresses =
        format!("SELECT count(*) FROM audit_addresses WHERE audit_seq > {}", before.seq);
    assert_eq!(raw.number(&addresses).await, i64::try_from(KEYS).unwrap());
    let told = "SELECT count(DISTINCT id) FROM events WHERE kind = 'api_key.revoked'";
    assert_eq!(raw.number(told).await, i64::try_from(KEYS).unwrap(), "the one before, and each");
    let revoked = store.api_key(keys[1]).await.unwrap().unwrap();
    assert_eq!((revoked.revoked_at, revoked.edited), (Some(closed.at), 1));
    // Once more it is closed already.
    act(store, AccountAction::Wallet(WalletAction::Close(wallet))).await.unwrap();
    assert_eq!(store.trail_head().await.unwrap(), after);
    assert_eq!(raw.number(told).await, i64::try_from(KEYS).unwrap());
    assert_eq!(store.verify().await.unwrap().mismatches, []);
}

async fn admin_key(
    store: &Store,
    name: &str,
    ends_at: Option<Timestamp>,
) -> Result<(AdminKeyId, AccountReceipt), AccountRefusal> {
    let id = sample::fresh();
    let key = AdminKey {
        id,
        name: name.to_owned(),
        role: Role::Owner,
        reach: Reach::All,
        ends_at,
        created_at: Timestamp::from_micros(0),
        created_by: ActorId::Local,
        revoked_at: None,
    };
    let credential = AdminCredential {
        id: sample::fresh(),
        admin_key: id,
        verifier: credential(sample::fresh()).verifier,
        server_secret: secret().id(),
        ends_at: None,
    };
    Ok((id, act(store, AccountAction::AdminKey(AdminKeyAction::Issue(key, credential))).await?))
}

/// The key of an owner, without an end.
pub(crate) async fn owner_key(store: &Store, name: &str) -> AdminKeyId {
    admin_key(store, name, None).await.unwrap().0
}

async fn an_owner_whose_end_comes_is_no_reason_to_let_the_last_one_go(home: &impl Home) {
    let store = home.store();
    let revoke = |it| AccountAction::AdminKey(AdminKeyAction::Revoke(it));
    let (lasting, _) = admin_key(store, "lasting", None).await.unwrap();
    let soon = store.clock().await.unwrap().after(Duration::from_secs(3_600));
    let (ending, _) = admin_key(store, "ending", Some(soon)).await.unwrap();
    assert_eq!(act(store, revoke(lasting)).await, Err(AccountRefusal::LastOwner));
    admin_key(store, "successor", None).await.unwrap();
    act(store, revoke(lasting)).await.unwrap();
    act(store, revoke(ending)).await.unwrap();
}

async fn the_name_of_an_admin_key_is_free_when_its_end_has_come(home: &impl Home) {
    let store = home.store();
    admin_key(store, "alice", None).await.unwrap();
    let taken = admin_key(store, "alice", None).await;
    assert_eq!(taken, Err(AccountRefusal::NameTaken("alice".to_owned())));
    let soon = store.clock().await.unwrap().after(Duration::from_secs(3_600));
    let (ended, _) = admin_key(store, "bob", Some(soon)).await.unwrap();
    let taken = admin_key(store, "bob", None).await;
    assert_eq!(taken, Err(AccountRefusal::NameTaken("bob".to_owned())));
    let mut raw = Raw::open(home).await;
    raw.run("UPDATE admin_keys SET ends_at = 1 WHERE name = 'bob'").await;
    let before = store.trail_head().await.unwrap();
    let (next, made) = admin_key(store, "bob", None).await.unwrap();
    assert_eq!(made.things, [ResourceId::AdminKey(next)], "the answer names the key that was made");
    assert_eq!(store.trail_head().await.unwrap().seq, before.seq + 2, "both are told");
    let id: String = ended.to_bytes().iter().map(|byte| format!("{byte:02X}")).collect();
    let hex = match &raw {
        Raw::File(_) => "hex(id)",
        Raw::Server(_) => "upper(encode(id, 'hex'))",
    };
    let revoked =
        format!("SELECT count(*) FROM admin_keys WHERE {hex} = '{id}' AND revoked_at IS NOT NULL");
    assert_eq!(raw.number(&revoked).await, 1);
    // The end came by hand, and nothing else did.
    let found = store.verify().await.unwrap().mismatches;
    let is_that = |it: &Mismatch| it.sentence.starts_with("its ends_at is 1, row");
    assert!(matches!(&*found, [one] if is_that(one)), "{found:?}");
}

on_every_store! {
    a_closed_wallet_has_a_row_of_the_trail_for_each_key_that_it_revokes,
    an_owner_whose_end_comes_is_no_reason_to_let_the_last_one_go,
    the_name_of_an_admin_key_is_free_when_its_end_has_come,
}
