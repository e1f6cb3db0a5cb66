//! Commands of administration: judged, done once, and told in a chained trail, on both databases.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use holdfast_domain::admin::audit::TrailHead;
use holdfast_domain::admin::ports::CommandError;
use holdfast_domain::admin::{
    AccountAction, AccountCommand, AccountReceipt, AccountRefusal, ActorId, ApiKeyAction,
    ApiKeyPatch, CanonicalDigest, DepositReference, NewPosting, PostingDetails, RequestBinding,
    ResourceId, WalletAction, WalletBounds, WalletPatch, WalletRecord,
};
use holdfast_domain::admin::{Administration as _, Directory as _};
use holdfast_domain::credential::Grant;
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::limits::Limits;
use holdfast_domain::ports::NewApiKey;
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{
    AdminKeyId, ApiKeyId, ApiKeys as _, CommandKey, Micros, PostingId, Timestamp, WalletId,
};
use holdfast_store::Store;
use holdfast_store::verify::AuditOptions;
use holdfast_testkit::laws::tenant::{Tenant, credential, finish};
use holdfast_testkit::sample;
use tokio::task::JoinSet;

use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};

pub(crate) fn secret() -> ServerSecret {
    sample::secret()
}

pub(crate) fn key() -> CommandKey {
    sample::fresh()
}

pub(crate) fn command(key: CommandKey, action: AccountAction) -> AccountCommand {
    // As a door would: another action is another request.
    let mut hasher = DefaultHasher::new();
    format!("{action:?}").hash(&mut hasher);
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&hasher.finish().to_be_bytes());
    AccountCommand {
        is_after_restore: false,
        bounds: WalletBounds::DEFAULT,
        actor: ActorId::Local,
        address: Some("192.0.2.1".to_owned()),
        request: RequestBinding { key, digest, canonical: Some(CanonicalDigest::new(digest)) },
        reason: Some("because".to_owned()),
        action,
    }
}

pub(crate) async fn administer(
    store: &Store,
    command: &AccountCommand,
) -> Result<AccountReceipt, AccountRefusal> {
    let done = store.administer(command, &secret()).await;
    let refusal = |error| match error {
        CommandError::Refused(refusal) => Some(refusal),
        CommandError::Unavailable(_) | CommandError::Uncertain(_) => None,
    };
    done.map_err(|error| refusal(error).unwrap())
}

pub(crate) async fn act(
    store: &Store,
    action: AccountAction,
) -> Result<AccountReceipt, AccountRefusal> {
    administer(store, &command(key(), action)).await
}

/// Sets the limits of an API key.
pub(crate) async fn edit_limits(store: &Store, api_key: ApiKeyId, limits: Limits) {
    let wallet = store.api_key(api_key).await.unwrap().unwrap().wallet;
    let patch = ApiKeyPatch {
        counts: limits.counts(),
        spend: Some(limits.spend),
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
}

pub(crate) fn new_wallet(name: &str) -> WalletRecord {
    let wallet = Wallet {
        id: sample::fresh(),
        name: name.to_owned(),
        currency: sample::usd(),
        available: Micros::ZERO,
        held: Micros::ZERO,
        suspended_at: None,
    };
    let created_at = Timestamp::from_micros(0);
    WalletRecord {
        wallet,
        external_id: Some(format!("customer of {name}")),
        low_balance: None,
        key_spend: None,
        edited: 0,
        created_at,
        closed_at: None,
    }
}

pub(crate) async fn make_wallet(store: &Store, name: &str) -> WalletId {
    let made =
        act(store, AccountAction::Wallet(WalletAction::Create(new_wallet(name)))).await.unwrap();
    store.wallet_named(name).await.unwrap().filter(|_| made.things.len() == 1).unwrap().wallet.id
}

pub(crate) fn deposit(id: PostingId, wallet: WalletId, amount: i64) -> AccountAction {
    let posting = Posting::new(id, wallet, PostingKind::Deposit, Micros::new(amount)).unwrap();
    AccountAction::Post(NewPosting {
        posting,
        details: PostingDetails::default(),
        allowance: None,
        currency: None,
    })
}

pub(crate) fn referenced(wallet: WalletId, amount: i64, payment: &str) -> AccountAction {
    let id = sample::fresh();
    let posting = Posting::new(id, wallet, PostingKind::Deposit, Micros::new(amount)).unwrap();
    let reference = DepositReference::new("stripe", payment);
    let details = PostingDetails { reference: Some(reference), ..PostingDetails::default() };
    AccountAction::Post(NewPosting { posting, details, allowance: None, currency: None })
}

pub(crate) async fn available(store: &Store, wallet: WalletId) -> i64 {
    store.wallet_record(wallet).await.unwrap().unwrap().wallet.available.get()
}

async fn a_command_is_done_once_however_often_it_is_sent(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let request = key();
    let id = PostingId::from_bytes(request.to_bytes());
    let first = command(request, deposit(id, wallet, 500));
    assert!(!administer(store, &first).await.unwrap().replayed);
    let head = store.trail_head().await.unwrap();
    for _again in 0..3 {
        let again = administer(store, &first).await.unwrap();
        assert_eq!((again.things, again.replayed), (vec![ResourceId::Posting(id)], true));
    }
    // Another process of the same database, with nothing in memory.
    let restarted = home.again().await;
    assert!(administer(&restarted, &first).await.unwrap().replayed);
    restarted.close().await.unwrap();
    let other = command(request, deposit(id, wallet, 501));
    assert_eq!(administer(store, &other).await, Err(AccountRefusal::RequestKeyConflict));
    // The id of a posting is its request key, whoever sends it.
    let actor = ActorId::AdminKey(AdminKeyId::from_u128(7));
    let elsewhere = AccountCommand { actor, ..first.clone() };
    assert!(administer(store, &elsewhere).await.unwrap().replayed);
    let elsewhere = AccountCommand { actor: ActorId::AdminKey(AdminKeyId::from_u128(8)), ..other };
    let refused = administer(store, &elsewhere).await;
    assert!(matches!(refused, Err(AccountRefusal::PostingConflict(_))), "{refused:?}");
    assert_eq!(available(store, wallet).await, 500);
    assert_eq!(store.trail_head().await.unwrap(), head, "nothing more was done");
    assert!(store.verify().await.unwrap().mismatches.is_empty());
}

async fn of_64_who_race_on_one_request_key_one_does_it(home: &impl Home) {
    let store = home.store();
    let other = home.again().await;
    let wallet = make_wallet(store, "acme").await;
    let request = key();
    let racing = command(request, deposit(PostingId::from_bytes(request.to_bytes()), wallet, 5));
    let mut racers = JoinSet::new();
    for n in 0..64 {
        let store = if n % 2 == 0 { store.clone() } else { other.clone() };
        let racing = racing.clone();
        racers.spawn(async move {
            loop {
                match store.administer(&racing, &secret()).await {
                    // No more than 16 of a process wait: the others come again.
                    Err(CommandError::Unavailable(_)) => tokio::task::yield_now().await,
                    other => return other.unwrap(),
                }
            }
        });
    }
    let done = racers.join_all().await.into_iter();
    let made = done.filter(|receipt| !receipt.replayed).count();
    assert_eq!(made, 1);
    assert_eq!(available(store, wallet).await, 5);
    other.close().await.unwrap();
}

async fn a_refusal_binds_nothing_and_a_rehearsal_writes_nothing(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let head = store.trail_head().await.unwrap();
    let request = key();
    let refused = administer(
        store,
        &command(
            request,
            deposit(PostingId::from_bytes(request.to_bytes()), WalletId::from_u128(404), 5),
        ),
    )
    .await;
    assert_eq!(refused, Err(AccountRefusal::NoWallet));
    let mended = command(request, deposit(PostingId::from_bytes(request.to_bytes()), wallet, 5));
    let rehearsed = store.rehearse(&mended, &secret()).await.unwrap();
    assert!(!rehearsed.replayed);
    assert_eq!(available(store, wallet).await, 0);
    assert_eq!(store.trail_head().await.unwrap(), head);
    assert!(!administer(store, &mended).await.unwrap().replayed, "neither bound the key");
    let rehearsed = store.rehearse(&mended, &secret()).await.unwrap();
    assert!(rehearsed.replayed, "it was done by now");
}

async fn a_payment_from_outside_is_booked_once(home: &impl Home) {
    let store = home.store();
    let (ours, theirs) = (make_wallet(store, "ours").await, make_wallet(store, "theirs").await);
    let made = act(store, referenced(ours, 10, "pay-1")).await.unwrap();
    let again = act(store, referenced(ours, 10, "pay-1")).await.unwrap();
    assert_eq!((again.things, again.replayed), (made.things.clone(), true));
    for other in [referenced(ours, 11, "pay-1"), referenced(theirs, 10, "pay-1")] {
        let refused = act(store, other).await;
        let known = PostingId::from_bytes(made.things[0].id());
        assert_eq!(refused, Err(AccountRefusal::ExternalReferenceConflict(known)));
    }
    act(store, referenced(theirs, 10, "pay-2")).await.unwrap();
    assert_eq!((available(store, ours).await, available(store, theirs).await), (10, 10));
}

async fn funds_stay_within_their_bounds(home: &impl Home) {
    let store = home.store();
    let tenant = Tenant::new(home, 1_000).await;
    let admitted = tenant.admit(&tenant.claim().hold(100).build()).await;
    let completed = tenant.step(admitted.id, finish(&admitted, 20, 10)).await;
    let (operation, charge) = (completed.id, completed.phase.charge().unwrap());
    let refund = |amount: i64| {
        let id = sample::fresh();
        let kind = PostingKind::Refund(operation);
        let posting = Posting::new(id, tenant.wallet, kind, Micros::new(amount)).unwrap();
        AccountAction::Post(NewPosting {
            posting,
            details: PostingDetails::default(),
            allowance: None,
            currency: None,
        })
    };
    act(store, refund(1)).await.unwrap();
    let left = charge.minus(Micros::new(1)).unwrap();
    let refused = act(store, refund(charge.get())).await;
    assert_eq!(refused, Err(AccountRefusal::RefundTooLarge { charge, left }));
    act(store, refund(left.get())).await.unwrap();
    let adjust = |amount: i64| {
        let id = sample::fresh();
        let kind = PostingKind::Adjustment("goodwill".to_owned());
        let posting = Posting::new(id, tenant.wallet, kind, Micros::new(amount)).unwrap();
        AccountAction::Post(NewPosting {
            posting,
            details: PostingDetails::default(),
            allowance: None,
            currency: None,
        })
    };
    let has = available(store, tenant.wallet).await;
    let refused = act(store, adjust(-has - 1)).await;
    assert_eq!(refused, Err(AccountRefusal::InsufficientFunds { available: Micros::new(has) }));
    assert_eq!(act(store, adjust(i64::MAX)).await, Err(AccountRefusal::WalletFull));
    act(store, adjust(-has)).await.unwrap();
    assert!(store.verify().await.unwrap().mismatches.is_empty());
}

async fn a_wallet_is_edited_suspended_and_closed_with_its_keys(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    make_wallet(store, "taken").await;
    let edit = |name: &str, expected| {
        let patch = WalletPatch { name: Some(name.to_owned()), ..WalletPatch::default() };
        AccountAction::Wallet(WalletAction::Edit { wallet, patch, expected })
    };
    let refused = act(store, edit("taken", None)).await;
    assert_eq!(refused, Err(AccountRefusal::NameTaken("taken".to_owned())));
    act(store, edit("renamed", Some(0))).await.unwrap();
    let refused = act(store, edit("late", Some(0))).await;
    assert_eq!(refused, Err(AccountRefusal::EditConflict { edited: 1 }));
    act(store, AccountAction::Wallet(WalletAction::Suspend(wallet))).await.unwrap();
    let suspended = store.wallet_record(wallet).await.unwrap().unwrap();
    assert_eq!((suspended.wallet.name.as_str(), suspended.edited), ("renamed", 2));
    assert!(suspended.wallet.suspended_at.is_some());
    act(store, AccountAction::Wallet(WalletAction::Resume(wallet))).await.unwrap();
    let api_key = issue(store, wallet, &["one", "two"]).await.unwrap();
    act(store, deposit(sample::fresh(), wallet, 5)).await.unwrap();
    let refused = act(store, AccountAction::Wallet(WalletAction::Close(wallet))).await;
    let (available, held) = (Micros::new(5), Micros::ZERO);
    assert_eq!(refused, Err(AccountRefusal::WalletNotEmpty { available, held }));
    let kind = PostingKind::Adjustment("paid out".to_owned());
    let id = sample::fresh();
    let posting = Posting::new(id, wallet, kind, Micros::new(-5)).unwrap();
    let new =
        NewPosting { posting, details: PostingDetails::default(), allowance: None, currency: None };
    act(store, AccountAction::Post(new)).await.unwrap();
    act(store, AccountAction::Wallet(WalletAction::Close(wallet))).await.unwrap();
    for id in api_key {
        assert!(store.api_key(id).await.unwrap().unwrap().revoked_at.is_some());
    }
    for late in [edit("again", None), deposit(sample::fresh(), wallet, 1)] {
        assert_eq!(act(store, late).await, Err(AccountRefusal::WalletClosed));
    }
    assert_eq!(issue(store, wallet, &["three"]).await, Err(AccountRefusal::WalletClosed));
}

pub(crate) async fn issue(
    store: &Store,
    wallet: WalletId,
    names: &[&str],
) -> Result<Vec<ApiKeyId>, AccountRefusal> {
    let keys = names.iter().map(|name| {
        let id = sample::fresh();
        let (name, grant) = ((*name).to_owned(), Grant::default());
        (NewApiKey { id, wallet, name, external_id: None, grant }, credential(id))
    });
    let action = AccountAction::ApiKey(ApiKeyAction::Issue {
        wallet,
        keys: keys.collect(),
        is_bounded: false,
    });
    let done = act(store, action).await?;
    Ok(done.things.iter().map(|thing| ApiKeyId::from_bytes(thing.id())).collect())
}

async fn keys_are_issued_all_or_none_and_changed_until_they_are_revoked(home: &impl Home) {
    let store = home.store();
    let (ours, theirs) = (make_wallet(store, "ours").await, make_wallet(store, "theirs").await);
    let made = issue(store, ours, &["one", "two"]).await.unwrap();
    let (one, two) = (made[0], made[1]);
    issue(store, theirs, &["one"]).await.unwrap();
    for names in [&["three", "two"][..], &["four", "four"]] {
        let refused = issue(store, ours, names).await;
        assert_eq!(refused, Err(AccountRefusal::NameTaken(names[1].to_owned())));
        assert!(store.api_keys_named(names[0], Some(ours)).await.unwrap().is_empty());
    }
    assert_eq!(store.api_keys_named("one", None).await.unwrap().len(), 2);
    act(store, AccountAction::ApiKey(ApiKeyAction::Suspend(one))).await.unwrap();
    assert!(store.api_key(one).await.unwrap().unwrap().suspended_at.is_some());
    act(store, AccountAction::ApiKey(ApiKeyAction::Resume(one))).await.unwrap();
    let added = credential(one);
    let grace = Duration::from_secs(60);
    let rotation = |credential| {
        AccountAction::ApiKey(ApiKeyAction::Rotate {
            credential,
            wallet: ours,
            grace,
            is_bounded: false,
        })
    };
    act(store, rotation(added.clone())).await.unwrap();
    let known = store.credential(added.id).await.unwrap().unwrap();
    assert_eq!((known.api_key.id, known.credential.ends_at), (one, None));
    act(store, AccountAction::ApiKey(ApiKeyAction::Revoke(one))).await.unwrap();
    assert!(store.credential(added.id).await.unwrap().unwrap().has_ended());
    let revoked = [
        AccountAction::ApiKey(ApiKeyAction::Suspend(one)),
        AccountAction::ApiKey(ApiKeyAction::Resume(one)),
    ];
    for late in revoked {
        assert_eq!(act(store, late).await, Err(AccountRefusal::ApiKeyRevoked));
    }
    assert_eq!(act(store, rotation(credential(one))).await, Err(AccountRefusal::ApiKeyEnded));
    assert!(store.api_key(two).await.unwrap().unwrap().revoked_at.is_none());
}

async fn the_trail_has_no_gaps_and_no_row_of_it_changes(home: &impl Home) {
    let store = home.store();
    assert_eq!(store.trail_head().await.unwrap(), TrailHead::EMPTY);
    let wallet = make_wallet(store, "acme").await;
    act(store, AccountAction::Wallet(WalletAction::Suspend(wallet))).await.unwrap();
    let head = store.trail_head().await.unwrap();
    assert_eq!(head.seq, 2);
    act(store, AccountAction::Wallet(WalletAction::Suspend(wallet))).await.unwrap();
    assert_eq!(store.trail_head().await.unwrap(), head, "what changed nothing leaves no row");
    let mut raw = Raw::open(home).await;
    for sql in [
        "UPDATE audit SET reason = 'another' WHERE seq = 1",
        "DELETE FROM audit WHERE seq = 2",
        "UPDATE audit_head SET seq = 1",
        "UPDATE admin_requests SET things = ''",
    ] {
        assert!(raw.try_run(sql).await.is_err(), "{sql}");
    }
    let count = "SELECT count(*) FROM audit_addresses WHERE address = '192.0.2.1'";
    assert_eq!(raw.number(count).await, 2);
}

async fn the_audit_walks_the_trail(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    act(store, AccountAction::Wallet(WalletAction::Suspend(wallet))).await.unwrap();
    let printed = store.trail_head().await.unwrap();
    act(store, AccountAction::Wallet(WalletAction::Resume(wallet))).await.unwrap();
    let options = |secret: ServerSecret, since| AuditOptions {
        secrets: [secret].into(),
        since,
        ..AuditOptions::keeping(Duration::MAX)
    };
    let found = async |options| {
        let found = store.verify_by(options, |_progress| {}).await.unwrap();
        found.mismatches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(found(options(secret(), Some(printed))).await, "");
    let other = ServerSecret::new(b"another secret of theirs").unwrap();
    assert!(found(options(other, None)).await.contains("which is not configured"));
    let elsewhere = TrailHead { mac: [7; 32], ..printed };
    assert!(found(options(secret(), Some(elsewhere))).await.contains("another one than it was"));
    let later = TrailHead { seq: 99, ..printed };
    assert!(found(options(secret(), Some(later))).await.contains("ends at row 3, before row 99"));
    let mut raw = Raw::reckless(home).await;
    for (sql, sentence) in [
        (
            "UPDATE audit SET reason = 'another' WHERE seq = 1",
            "row 1 of its audit log was not written",
        ),
        ("UPDATE audit SET reason = 'because' WHERE seq = 1", ""),
        ("UPDATE audit SET use_case = 'nothing' WHERE seq = 2", "cannot be"),
        ("DELETE FROM audit WHERE seq = 2", "rows of the audit log 2 to 2 are missing"),
        ("DELETE FROM audit WHERE seq = 3", "the latest checksum of its audit log is 3:"),
        ("DELETE FROM audit_head", "the latest checksum of its audit log is missing"),
    ] {
        raw.run(sql).await;
        let said = found(options(secret(), None)).await;
        assert!(said.contains(sentence) && said.is_empty() == sentence.is_empty(), "{sql}: {said}");
    }
}

on_every_store! {
    a_command_is_done_once_however_often_it_is_sent,
    of_64_who_race_on_one_request_key_one_does_it,
    a_refusal_binds_nothing_and_a_rehearsal_writes_nothing,
    a_payment_from_outside_is_booked_once,
    funds_stay_within_their_bounds,
    a_wallet_is_edited_suspended_and_closed_with_its_keys,
    keys_are_issued_all_or_none_and_changed_until_they_are_revoked,
    the_trail_has_no_gaps_and_no_row_of_it_changes,
    the_audit_walks_the_trail,
}
