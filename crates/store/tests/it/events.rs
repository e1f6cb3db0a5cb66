//! Events: one for each thing that happened, written with it, on both databases.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use holdfast_domain::admin::event::{
    EventFilter, EventKind, EventKinds, EventRecord, SpendLimitReached,
};
use holdfast_domain::admin::listing::{Order, PageRequest};
use holdfast_domain::admin::ports::EventOutbox as _;
use holdfast_domain::admin::{
    AccountAction, ApiKeyAction, NewPosting, PostingDetails, WalletAction, WalletPatch,
};
use holdfast_domain::admin::{Administration as _, Events as _};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::limits::{SpendLimit, SpendWindow};
use holdfast_domain::{Event, EventId, Journal as _, Micros, OperationId, WalletId};
use holdfast_store::Store;
use holdfast_testkit::laws::tenant::{Tenant, credential, finish, give_up, judged};
use holdfast_testkit::sample;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::administration::{
    act, administer, command, deposit, issue, key, make_wallet, referenced, secret,
};
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};

async fn all(store: &Store) -> Vec<EventRecord> {
    let mut request = PageRequest::first(Order::Oldest, 3);
    let mut events = Vec::new();
    loop {
        let page = store.events(EventFilter::default(), request).await.unwrap();
        events.extend(page.rows);
        let Some(next) = page.next else { break };
        request.after = Some(next);
    }
    events
}

async fn kinds(store: &Store) -> Vec<&'static str> {
    all(store).await.iter().map(|event| event.kind.label()).collect()
}

async fn count(store: &Store, kind: EventKind) -> usize {
    all(store).await.iter().filter(|event| event.kind == kind).count()
}

fn data(event: &EventRecord) -> BTreeMap<String, Value> {
    serde_json::from_str(&event.data).unwrap()
}

fn adjustment(wallet: WalletId, amount: i64) -> AccountAction {
    let kind = PostingKind::Adjustment("a \"mistake\"".to_owned());
    let posting = Posting::new(sample::fresh(), wallet, kind, Micros::new(amount)).unwrap();
    AccountAction::Post(NewPosting {
        posting,
        details: PostingDetails::default(),
        allowance: None,
        currency: None,
    })
}

fn refund(wallet: WalletId, operation: OperationId, amount: i64) -> AccountAction {
    let kind = PostingKind::Refund(operation);
    let posting = Posting::new(sample::fresh(), wallet, kind, Micros::new(amount)).unwrap();
    AccountAction::Post(NewPosting {
        posting,
        details: PostingDetails::default(),
        allowance: None,
        currency: None,
    })
}

/// Threshold of a wallet, in micros.
fn threshold(wallet: WalletId, micros: i64) -> AccountAction {
    let low_balance = Some(Some(Micros::new(micros)));
    let patch = WalletPatch { low_balance, ..WalletPatch::default() };
    AccountAction::Wallet(WalletAction::Edit { wallet, patch, expected: None })
}

async fn each_change_is_told_once_with_the_members_of_its_kind(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let request = key();
    let deposited = command(request, referenced(wallet, 1_000, "pay-1"));
    for _again in 0..3 {
        administer(store, &deposited).await.unwrap();
    }
    let restarted = home.again().await;
    administer(&restarted, &deposited).await.unwrap();
    restarted.close().await.unwrap();
    let keys = issue(store, wallet, &["one", "two"]).await.unwrap();
    let grace = Duration::from_secs(60);
    for action in [
        threshold(wallet, 10),
        adjustment(wallet, 5),
        adjustment(wallet, -1_000),
        adjustment(wallet, -1),
        AccountAction::ApiKey(ApiKeyAction::Suspend(keys[0])),
        AccountAction::ApiKey(ApiKeyAction::Suspend(keys[0])),
        AccountAction::ApiKey(ApiKeyAction::Resume(keys[0])),
        AccountAction::ApiKey(ApiKeyAction::Rotate {
            credential: credential(keys[0]),
            wallet,
            grace,
            is_bounded: false,
        }),
        AccountAction::ApiKey(ApiKeyAction::Revoke(keys[0])),
        AccountAction::ApiKey(ApiKeyAction::Revoke(keys[0])),
        AccountAction::Wallet(WalletAction::Suspend(wallet)),
        AccountAction::Wallet(WalletAction::Resume(wallet)),
        adjustment(wallet, -4),
        AccountAction::Wallet(WalletAction::Close(wallet)),
        AccountAction::Wallet(WalletAction::Close(wallet)),
    ] {
        act(store, action).await.unwrap();
    }
    let events = all(store).await;
    let told: Vec<_> = events.iter().map(|event| event.kind.label()).collect();
    let expected = "wallet.credited api_key.issued api_key.issued wallet.credited wallet.debited \
        wallet.low wallet.debited api_key.suspended api_key.resumed api_key.rotated \
        api_key.revoked wallet.suspended wallet.resumed wallet.debited wallet.closed \
        api_key.revoked";
    assert_eq!(told.join(" "), expected, "what changed nothing and what was repeated is not told");
    for event in &events {
        let members: BTreeSet<_> = data(event).into_keys().collect();
        let expected = event.kind.members().iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(members, expected, "{event:?}");
        assert_eq!(event.wallet, Some(wallet));
        assert_eq!(store.event(event.id).await.unwrap().as_ref(), Some(event));
    }
    let first = data(&events[0]);
    assert_eq!(first["amount_micros"], 1_000);
    assert_eq!(first["available_micros"], 1_000);
    assert_eq!((&first["source"], &first["currency"]), (&"stripe".into(), &"USD".into()));
    let low = data(&events[5]);
    assert_eq!((&low["available_micros"], &low["currency"]), (&5.into(), &"USD".into()));
    assert_eq!(data(&events[4])["reason"], "a \"mistake\"");
    assert_eq!(store.event(EventId::from_u128(404)).await.unwrap(), None);
}

async fn a_refusal_is_told_only_of_a_reference_and_once(home: &impl Home) {
    let store = home.store();
    let (ours, theirs) = (make_wallet(store, "ours").await, make_wallet(store, "theirs").await);
    let booked = act(store, referenced(ours, 10, "pay-1")).await.unwrap();
    act(store, referenced(ours, 10, "pay-1")).await.unwrap();
    let head = store.trail_head().await.unwrap();
    let conflict = command(key(), referenced(theirs, 10, "pay-1"));
    store.rehearse(&conflict, &secret()).await.unwrap_err();
    assert_eq!(count(store, EventKind::DepositConflict).await, 0, "a rehearsal writes nothing");
    for _again in 0..2 {
        administer(store, &conflict).await.unwrap_err();
        act(store, referenced(ours, 11, "pay-1")).await.unwrap_err();
    }
    act(store, adjustment(ours, -11)).await.unwrap_err();
    act(store, deposit(sample::fresh(), WalletId::from_u128(404), 1)).await.unwrap_err();
    assert_eq!(store.trail_head().await.unwrap(), head, "a refusal binds nothing");
    let events = all(store).await;
    assert_eq!(events.len(), 2, "{events:?}");
    let told = data(&events[1]);
    assert_eq!((events[1].kind, events[1].wallet), (EventKind::DepositConflict, None));
    assert_eq!(told["wallet_id"], theirs.to_string());
    assert_eq!(told["deposit_wallet_id"], ours.to_string());
    let booked = holdfast_domain::PostingId::from_bytes(booked.things[0].id());
    assert_eq!(told["deposit_id"], booked.to_string());
    assert_eq!((&told["deposit_amount_micros"], &told["amount_micros"]), (&10.into(), &10.into()));
    act(store, referenced(ours, 7, "pay-2")).await.unwrap();
    act(store, referenced(ours, 8, "pay-2")).await.unwrap_err();
    assert_eq!(count(store, EventKind::DepositConflict).await, 2, "one for each reference");
}

async fn what_was_rolled_back_is_not_told_and_what_races_is_told_once(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let mut raw = Raw::open(home).await;
    // The request key is bound after the event: the transaction ends there.
    let (lock, unlock) = match &raw {
        Raw::File(_) => (
            "CREATE TRIGGER refused BEFORE INSERT ON admin_requests
             BEGIN SELECT RAISE(ABORT, 'as asked'); END",
            "DROP TRIGGER refused",
        ),
        Raw::Server(_) => (
            "ALTER TABLE admin_requests ADD CONSTRAINT refused CHECK (actor = '') NOT VALID",
            "ALTER TABLE admin_requests DROP CONSTRAINT refused",
        ),
    };
    raw.run(lock).await;
    let racing = command(key(), referenced(wallet, 5, "pay-1"));
    store.administer(&racing, &secret()).await.unwrap_err();
    raw.run(unlock).await;
    assert_eq!(raw.number("SELECT count(*) FROM events").await, 0);
    let other = home.again().await;
    let mut racers = JoinSet::new();
    for n in 0..16 {
        let (store, racing) = (if n % 2 == 0 { store } else { &other }.clone(), racing.clone());
        racers.spawn(async move { administer(&store, &racing).await.unwrap() });
    }
    racers.join_all().await;
    other.close().await.unwrap();
    assert_eq!(kinds(store).await, ["wallet.credited"]);
}

/// Charges in micros of `finish` with these meters are what the sample price makes of them; here it
/// is read back from the wallet.
async fn race(home: &impl Home, tenant: &Tenant<'_>, count: usize) {
    let (own, other) = (home.store().clone(), home.again().await);
    let mut racers = JoinSet::new();
    for n in 0..count {
        let store = if n % 2 == 0 { own.clone() } else { other.clone() };
        let claim = tenant.claim().hold(20).build();
        racers.spawn(async move {
            let admission = sample::admission(&claim);
            store.commit(admission).await.unwrap();
            let id = OperationId::of(claim.api_key, claim.request_key);
            let snapshot = store.load(id).await.unwrap();
            let operation = snapshot.operation.clone().unwrap();
            store.commit(judged(&snapshot, finish(&operation, 5, 5))).await.unwrap();
        });
    }
    racers.join_all().await;
    other.close().await.unwrap();
}

async fn a_low_wallet_is_told_once_between_two_postings_however_many_race(home: &impl Home) {
    let store = home.store();
    let tenant = Tenant::new(home, 1_000).await;
    race(home, &tenant, 8).await;
    let charged = (1_000 - tenant.balances().await.0) / 8;
    assert!(charged > 0);
    // The threshold lies in the midst of what the next ones are charged.
    let low = 1_000 - 16 * charged;
    act(store, threshold(tenant.wallet, low)).await.unwrap();
    assert_eq!(count(store, EventKind::WalletLow).await, 0);
    for round in 1..=3 {
        race(home, &tenant, 24).await;
        let (available, held) = tenant.balances().await;
        assert!(available + held < low);
        assert_eq!(count(store, EventKind::WalletLow).await, round);
        race(home, &tenant, 4).await;
        assert_eq!(count(store, EventKind::WalletLow).await, round, "it was low already");
        act(store, deposit(sample::fresh(), tenant.wallet, 28 * charged)).await.unwrap();
        assert_eq!(count(store, EventKind::WalletLow).await, round, "postings raise it again");
    }
    let told = all(store).await.into_iter().find(|it| it.kind == EventKind::WalletLow).unwrap();
    let told = data(&told);
    let amount = |name: &str| told[name].as_i64().unwrap();
    // The very change that crossed: one charge below the threshold at most.
    let sum = amount("available_micros") + amount("held_micros");
    assert!(sum < low && sum >= low - charged, "{told:?}");
    assert_eq!(told["currency"], "USD");
    assert!(store.verify().await.unwrap().mismatches.is_empty());
}

async fn a_hold_and_a_release_are_not_low_and_an_empty_wallet_is(home: &impl Home) {
    let store = home.store();
    let tenant = Tenant::new(home, 100).await;
    act(store, threshold(tenant.wallet, 100)).await.unwrap();
    let held = tenant.admit(&tenant.claim().hold(100).build()).await;
    assert_eq!(tenant.balances().await, (0, 100));
    tenant.step(held.id, give_up(&held)).await;
    assert_eq!(count(store, EventKind::WalletLow).await, 0, "nothing was taken");
    act(store, threshold(tenant.wallet, 0)).await.unwrap();
    act(store, adjustment(tenant.wallet, -99)).await.unwrap();
    assert_eq!(count(store, EventKind::WalletLow).await, 0);
    act(store, adjustment(tenant.wallet, -1)).await.unwrap();
    assert_eq!(count(store, EventKind::WalletLow).await, 1);
    tenant.post(PostingKind::Deposit, 100).await.unwrap();
    // By the batch's own posting as well.
    let kind = PostingKind::Adjustment("taken".to_owned());
    tenant.post(kind, -100).await.unwrap();
    assert_eq!(count(store, EventKind::WalletLow).await, 2);
}

async fn endings_of_operations_are_told(home: &impl Home) {
    let store = home.store();
    let tenant = Tenant::new(home, 1_000).await;
    let abandoned = tenant.admit(&tenant.claim().hold(70).build()).await;
    tenant.step(abandoned.id, give_up(&abandoned)).await;
    let paid = tenant.admit(&tenant.claim().hold(70).build()).await;
    let reaped = tenant.admit(&tenant.claim().hold(30).time(Duration::ZERO).build()).await;
    tenant.step(paid.id, finish(&paid, 5, 5)).await;
    tenant.step(reaped.id, Event::Reap { orphan_grace: None }).await;
    act(store, refund(tenant.wallet, paid.id, 1)).await.unwrap();
    act(store, refund(tenant.wallet, paid.id, 2)).await.unwrap();
    // Behind those of the tenant's key and deposit.
    let events = all(store).await.split_off(2);
    let told: Vec<_> = events.iter().map(|event| event.kind.label()).collect();
    let expected = "operation.abandoned operation.abandoned operation.refunded operation.refunded";
    assert_eq!(told.join(" "), expected);
    let first = data(&events[0]);
    assert_eq!(first["operation_id"], abandoned.id.to_string());
    assert_eq!((&first["hold_micros"], &first["currency"]), (&70.into(), &"USD".into()));
    assert_eq!(data(&events[3])["refunded_micros"], 3);
    for event in &events {
        let members: BTreeSet<_> = data(event).into_keys().collect();
        let expected = event.kind.members().iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(members, expected, "{event:?}");
    }
}

async fn what_was_noticed_is_told_once_for_a_window(home: &impl Home) {
    let store = home.store();
    let tenant = Tenant::new(home, 1_000).await;
    let limit = |micros, window| SpendLimit { micros: Micros::new(micros), window };
    let reached = SpendLimitReached {
        api_key: tenant.api_key,
        wallet: tenant.wallet,
        currency: sample::usd(),
        limit: limit(100, SpendWindow::Day),
        at: sample::NOW,
    };
    let later = SpendLimitReached { at: sample::NOW.after(Duration::from_secs(60)), ..reached };
    let tomorrow =
        SpendLimitReached { at: sample::NOW.after(Duration::from_secs(86_400)), ..reached };
    for told in [reached, later, reached, tomorrow] {
        store.record(&[told.event()]).await.unwrap();
    }
    let higher = SpendLimitReached { limit: limit(200, SpendWindow::Day), ..reached };
    store.record(&[higher.event(), higher.event()]).await.unwrap();
    // Behind those of the tenant's key and deposit.
    assert_eq!(kinds(store).await[2..], ["api_key.limit_reached"; 3]);
    let first = data(&all(store).await[2]);
    assert_eq!((&first["spend_window"], &first["spend_micros"]), (&"day".into(), &100.into()));
}

async fn nothing_is_written_that_nobody_could_want(home: &impl Home) {
    let store = home.store();
    store.list_events(None);
    store.send_events(EventKinds::NONE);
    let tenant = Tenant::new(home, 1_000).await;
    let low = EventKinds::NONE.with(EventKind::WalletLow);
    for (webhooks, expected) in [(EventKinds::NONE, &[][..]), (low, &["wallet.low"])] {
        store.list_events(None);
        store.send_events(webhooks);
        act(store, AccountAction::Wallet(WalletAction::Suspend(tenant.wallet))).await.unwrap();
        act(store, AccountAction::Wallet(WalletAction::Resume(tenant.wallet))).await.unwrap();
        let given_up = tenant.admit(&tenant.claim().hold(10).build()).await;
        tenant.step(given_up.id, give_up(&given_up)).await;
        act(store, threshold(tenant.wallet, tenant.balances().await.0)).await.unwrap();
        let paid = tenant.admit(&tenant.claim().hold(20).build()).await;
        tenant.step(paid.id, finish(&paid, 5, 5)).await;
        assert_eq!(kinds(store).await, expected);
        act(store, deposit(sample::fresh(), tenant.wallet, 1_000)).await.unwrap();
    }
}

async fn a_list_has_the_events_of_a_wallet_and_of_a_kind(home: &impl Home) {
    let store = home.store();
    let (ours, theirs) = (make_wallet(store, "ours").await, make_wallet(store, "theirs").await);
    for wallet in [ours, theirs, ours, theirs, ours] {
        act(store, deposit(sample::fresh(), wallet, 10)).await.unwrap();
        act(store, adjustment(wallet, -1)).await.unwrap();
    }
    let list = async |filter: EventFilter| {
        let mut request = PageRequest::first(Order::Newest, 2);
        let mut seen = Vec::new();
        loop {
            let page = store.events(filter, request).await.unwrap();
            seen.extend(page.rows);
            let Some(next) = page.next else { break seen };
            request.after = Some(next);
        }
    };
    let wallet = Some(ours);
    let of_wallet = list(EventFilter { wallet, kind: None }).await;
    assert_eq!(of_wallet.len(), 6);
    assert!(of_wallet.iter().all(|event| event.wallet == wallet));
    assert!(of_wallet.iter().rev().is_sorted_by_key(|event| event.created_at), "newest first");
    let kind = Some(EventKind::WalletDebited);
    let of_kind = list(EventFilter { wallet: None, kind }).await;
    assert_eq!(of_kind.len(), 5);
    let of_both = list(EventFilter { wallet, kind }).await;
    let expected: Vec<_> = of_kind.iter().filter(|event| event.wallet == wallet).cloned().collect();
    assert_eq!(of_both, expected);
    assert_eq!(list(EventFilter::default()).await.len(), 10);
}

async fn a_purge_takes_old_events_that_were_fanned_out_or_that_nobody_is_sent(home: &impl Home) {
    const WEEK: Duration = Duration::from_secs(7 * 86_400);
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    for _ in 0..3 {
        act(store, deposit(sample::fresh(), wallet, 10)).await.unwrap();
        act(store, adjustment(wallet, -1)).await.unwrap();
    }
    let webhooks = EventKinds::NONE.with(EventKind::WalletDebited);
    store.list_events(Some(WEEK));
    store.send_events(webhooks);
    let purge = async || {
        for _ in 0..3 {
            store.purge(Duration::from_secs(86_400), 2).await.unwrap();
        }
        kinds(store).await
    };
    assert_eq!(purge().await.len(), 6, "they are young");
    let mut raw = Raw::open(home).await;
    let aged = WEEK.as_micros();
    raw.run(&format!("UPDATE events SET created_at = created_at - {aged}")).await;
    assert_eq!(purge().await, ["wallet.debited"; 3], "those are still to be sent");
    let is_true = match &raw {
        Raw::File(_) => "1",
        Raw::Server(_) => "TRUE",
    };
    raw.run(&format!("UPDATE events SET is_fanned_out = {is_true}")).await;
    assert_eq!(purge().await.len(), 0);
}

on_every_store! {
    each_change_is_told_once_with_the_members_of_its_kind,
    a_refusal_is_told_only_of_a_reference_and_once,
    what_was_rolled_back_is_not_told_and_what_races_is_told_once,
    a_low_wallet_is_told_once_between_two_postings_however_many_race,
    a_hold_and_a_release_are_not_low_and_an_empty_wallet_is,
    endings_of_operations_are_told,
    what_was_noticed_is_told_once_for_a_window,
    nothing_is_written_that_nobody_could_want,
    a_list_has_the_events_of_a_wallet_and_of_a_kind,
    a_purge_takes_old_events_that_were_fanned_out_or_that_nobody_is_sent,
}
