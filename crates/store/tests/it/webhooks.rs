//! Webhooks and their deliveries: an event is fanned out once to each webhook that wants it, a delivery
//! has one owner at a time, and what follows a try is kept with it.
//!
//! Time is moved in the rows: a pause ends, and a lease, where `next_at` is set back.

mod tries;

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_domain::admin::event::EventKind;
use holdfast_domain::admin::listing::{Order, PageRequest};
use holdfast_domain::admin::ports::{CommandError, DueDelivery};
use holdfast_domain::admin::webhook::{
    DeliveryRecord, DeliveryRoom, DeliveryState, DisableReason, FinishedTry, FollowUp, TakenPlaces,
    TryResult,
};
use holdfast_domain::admin::{
    AccountAction, AccountCommand, AccountReceipt, AccountRefusal, ActorId, RequestBinding,
    WEBHOOKS_MAX, WalletAction, WalletBounds, WebhookAction, WebhookPatch, WebhookRecord,
    WebhookSecret,
};
use holdfast_domain::admin::{Administration as _, Deliveries as _, Webhooks as _};
use holdfast_domain::operation::Node;
use holdfast_domain::private::Private;
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{EventId, NodeName, Timestamp, WalletId, WebhookId};
use holdfast_testkit::join::join_all;
use holdfast_testkit::sample;

use crate::administration::make_wallet;
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};

const LEASE: Duration = Duration::from_secs(60);

fn secret() -> ServerSecret {
    ServerSecret::new(b"the secret of these tests").unwrap()
}

fn node(name: &str) -> Node {
    Node { name: NodeName::try_from(name).unwrap(), incarnation: sample::fresh() }
}

fn roomy() -> DeliveryRoom {
    let (taken, slow) = (Vec::new(), BTreeSet::new());
    DeliveryRoom { free: 64, per_webhook: 64, per_wallet: 64, taken, slow }
}

pub(crate) fn new_webhook(wallet: Option<WalletId>, kinds: Option<&[EventKind]>) -> WebhookRecord {
    WebhookRecord {
        id: sample::fresh(),
        wallet,
        url: Private("https://hooks.example.com/in?key=its-own".to_owned()),
        kinds: kinds.map(|kinds| kinds.iter().copied().collect::<BTreeSet<_>>()),
        description: None,
        secret: WebhookSecret::first(secret().id()),
        edited: 0,
        created_at: Timestamp::from_micros(0),
        created_by: ActorId::Local,
        disabled: None,
    }
}

async fn act(home: &impl Home, action: WebhookAction) -> Result<AccountReceipt, AccountRefusal> {
    let command = AccountCommand {
        is_after_restore: false,
        bounds: WalletBounds::DEFAULT,
        actor: ActorId::Local,
        address: None,
        request: RequestBinding { key: sample::fresh(), digest: [0; 32], canonical: None },
        reason: None,
        action: AccountAction::Webhook(action),
    };
    let refusal = |error| match error {
        CommandError::Refused(refusal) => Some(refusal),
        CommandError::Unavailable(_) | CommandError::Uncertain(_) => None,
    };
    let done = home.store().administer(&command, &secret()).await;
    done.map_err(|error| refusal(error).unwrap())
}

async fn create(
    home: &impl Home,
    wallet: Option<WalletId>,
    kinds: Option<&[EventKind]>,
) -> WebhookId {
    let record = new_webhook(wallet, kinds);
    act(home, WebhookAction::Create(record.clone())).await.unwrap();
    record.id
}

async fn wallet(home: &impl Home, name: &str) -> WalletId {
    let id = sample::fresh();
    home.commands().create_wallet(id, name, sample::usd()).await.unwrap();
    id
}

/// Notes an event later than all webhooks, as the transaction of what happened does.
async fn happen(raw: &mut Raw, kind: EventKind, wallet: Option<&str>) {
    let wallet = wallet.map_or_else(
        || "NULL".to_owned(),
        |name| format!("(SELECT id FROM wallets WHERE name = '{name}')"),
    );
    raw.run(&format!(
        "INSERT INTO events (id, kind, wallet_id, created_at, data)
         VALUES (randomblob(16), '{kind}', {wallet}, 9000000000000000, '{{}}')"
    ))
    .await;
}

/// Ends every pause and every lease.
async fn let_time_pass(raw: &mut Raw) {
    raw.run("UPDATE deliveries SET next_at = 0 WHERE state = 'pending'").await;
}

async fn lease(home: &impl Home, owner: &Node) -> Vec<DueDelivery> {
    home.store().lease_deliveries(owner, LEASE, &roomy()).await.unwrap()
}

async fn finish(
    home: &impl Home,
    owner: &Node,
    due: &DueDelivery,
    result: TryResult,
) -> Option<FollowUp> {
    let (delivery, event) = (due.number, sample::fresh());
    let finished = FinishedTry { delivery, result, random: 0, event };
    home.store().finish_tries(owner, &[finished]).await.unwrap()[0]
}

async fn deliveries(home: &impl Home, webhook: WebhookId) -> Vec<DeliveryRecord> {
    let all = PageRequest::first(Order::Oldest, 500);
    home.store().deliveries(webhook, all).await.unwrap().rows
}

async fn kinds_told(home: &impl Home, webhook: WebhookId) -> Vec<String> {
    let told = deliveries(home, webhook).await;
    let mut kinds: Vec<_> = told.into_iter().map(|delivery| delivery.kind.into()).collect();
    kinds.sort();
    kinds
}

async fn a_webhook_is_told_what_it_wants_and_may_know(home: &impl Home) {
    use EventKind::{ApiKeyIssued, WalletCredited, WalletLow};
    let (own, _other) = (wallet(home, "own").await, wallet(home, "other").await);
    let all = create(home, None, None).await;
    let low = create(home, None, Some(&[WalletLow])).await;
    let holders = create(home, Some(own), None).await;
    let silent = create(home, None, None).await;
    act(home, WebhookAction::Disable(silent)).await.unwrap();
    let mut raw = Raw::open(home).await;
    raw.run(
        "INSERT INTO events (id, kind, created_at, data) VALUES (randomblob(16), 'early', 1, '{}')",
    )
    .await;
    happen(&mut raw, WalletCredited, Some("own")).await;
    happen(&mut raw, WalletLow, Some("other")).await;
    happen(&mut raw, ApiKeyIssued, None).await;
    assert_eq!(home.store().fan_out(2).await.unwrap(), 2);
    assert_eq!(home.store().fan_out(9).await.unwrap(), 2);
    assert_eq!(home.store().fan_out(9).await.unwrap(), 0, "each event once");
    assert_eq!(kinds_told(home, all).await, ["api_key.issued", "wallet.credited", "wallet.low"]);
    assert_eq!(kinds_told(home, low).await, ["wallet.low"]);
    assert_eq!(kinds_told(home, holders).await, ["wallet.credited"]);
    assert_eq!(kinds_told(home, silent).await, [""; 0]);
    let outbox = home.store().outbox().await.unwrap();
    assert!(!outbox.has_events && outbox.next_due_at.unwrap() <= outbox.now);
}

async fn of_several_that_fan_out_at_once_each_event_has_one(home: &impl Home) {
    let webhook = create(home, None, None).await;
    let mut raw = Raw::open(home).await;
    for _ in 0..50 {
        happen(&mut raw, EventKind::WalletLow, None).await;
    }
    let other = home.again().await;
    let stores = [home.store(), &other, home.store(), &other];
    let mut fanned_out = 0;
    while fanned_out < 50 {
        let all = join_all(stores.iter().map(|store| store.fan_out(7))).await;
        fanned_out += all.into_iter().map(|count| count.unwrap()).sum::<usize>();
    }
    assert_eq!((fanned_out, deliveries(home, webhook).await.len()), (50, 50));
    let owners = [(); 4].map(|()| node("one"));
    let leases = owners.iter().zip(stores).map(|(owner, store)| async move {
        let room = DeliveryRoom { free: 20, ..roomy() };
        store.lease_deliveries(owner, LEASE, &room).await.unwrap()
    });
    let leased: Vec<_> = join_all(leases).await.into_iter().flatten().collect();
    let numbers: BTreeSet<_> = leased.iter().map(|due| due.number).collect();
    assert_eq!(numbers.len(), leased.len(), "nobody leases what another one has");
    other.close().await.unwrap();
}

async fn a_lease_takes_what_there_is_room_for(home: &impl Home) {
    let (busy, free) = (create(home, None, None).await, create(home, None, None).await);
    let mut raw = Raw::open(home).await;
    for _ in 0..5 {
        happen(&mut raw, EventKind::WalletLow, None).await;
    }
    home.store().fan_out(9).await.unwrap();
    let owner = node("one");
    let taken = [(busy, 4), (free, 1)];
    let taken = taken.map(|(webhook, count)| TakenPlaces { webhook, tenant: None, count });
    let room = DeliveryRoom { free: 9, per_webhook: 4, taken: taken.to_vec(), ..roomy() };
    let leased = home.store().lease_deliveries(&owner, LEASE, &room).await.unwrap();
    assert_eq!(leased.iter().map(|due| due.webhook.id).collect::<Vec<_>>(), [free; 3]);
    let none = DeliveryRoom { free: 0, ..roomy() };
    assert_eq!(home.store().lease_deliveries(&owner, LEASE, &none).await.unwrap(), []);
    assert_eq!(lease(home, &owner).await.len(), 7, "what is not leased yet");
    assert_eq!(lease(home, &owner).await.len(), 0);
}

async fn a_backlog_of_one_wallet_hides_nothing_of_the_others(home: &impl Home) {
    let (busy, quiet) = (wallet(home, "busy").await, wallet(home, "quiet").await);
    for _ in 0..4 {
        create(home, Some(busy), None).await;
    }
    let webhook = create(home, Some(quiet), None).await;
    let mut raw = Raw::open(home).await;
    for _ in 0..300 {
        happen(&mut raw, EventKind::WalletLow, Some("busy")).await;
    }
    happen(&mut raw, EventKind::WalletLow, Some("quiet")).await;
    while home.store().fan_out(100).await.unwrap() > 0 {}
    let room = DeliveryRoom { free: 8, per_webhook: 4, per_wallet: 6, ..roomy() };
    let leased = home.store().lease_deliveries(&node("one"), LEASE, &room).await.unwrap();
    let of = |wallet| leased.iter().filter(|due| due.webhook.wallet == Some(wallet)).count();
    assert_eq!((of(busy), of(quiet)), (6, 1));
    // With no place left for the busy wallet, only the other one is looked at.
    let taken = vec![TakenPlaces { webhook: sample::fresh(), tenant: Some(busy), count: 6 }];
    let room = DeliveryRoom { taken, ..room };
    happen(&mut raw, EventKind::WalletLow, Some("quiet")).await;
    home.store().fan_out(9).await.unwrap();
    let leased = home.store().lease_deliveries(&node("one"), LEASE, &room).await.unwrap();
    assert_eq!(leased.iter().map(|due| due.webhook.id).collect::<Vec<_>>(), [webhook]);
}

async fn a_delivery_goes_on_with_another_owner_when_the_lease_has_ended(home: &impl Home) {
    let webhook = create(home, None, None).await;
    let mut raw = Raw::open(home).await;
    happen(&mut raw, EventKind::WalletLow, None).await;
    home.store().fan_out(9).await.unwrap();
    let (first, second) = (node("one"), node("two"));
    let begun = lease(home, &first).await;
    assert_eq!(lease(home, &second).await, [], "it has an owner");
    let_time_pass(&mut raw).await;
    let taken = lease(home, &second).await;
    assert_eq!(taken[0].event, begun[0].event);
    // Whoever lost it writes nothing more, also under the same name.
    let successor = Node { incarnation: sample::fresh(), ..second.clone() };
    for stranger in [&first, &successor] {
        let told = finish(home, stranger, &taken[0], TryResult::Answered(500)).await;
        assert_eq!(told, None);
    }
    let done = finish(home, &second, &taken[0], TryResult::Answered(204)).await;
    assert_eq!(done, Some(FollowUp::Delivered));
    assert_eq!(finish(home, &second, &taken[0], TryResult::Answered(500)).await, None);
    let kept = &deliveries(home, webhook).await[0];
    assert_eq!(
        (kept.state, kept.tries, kept.last_status),
        (DeliveryState::Delivered, 1, Some(204))
    );
    assert!(kept.finished_at.is_some() && kept.next_at.is_none());
}

async fn what_is_given_back_is_due_at_once(home: &impl Home) {
    create(home, None, None).await;
    let mut raw = Raw::open(home).await;
    happen(&mut raw, EventKind::WalletLow, None).await;
    home.store().fan_out(9).await.unwrap();
    let (first, second) = (node("one"), node("two"));
    assert_eq!(lease(home, &first).await.len(), 1);
    home.store().give_back(&second).await.unwrap();
    assert_eq!(lease(home, &second).await.len(), 0, "it is the other one's");
    home.store().give_back(&first).await.unwrap();
    assert_eq!(lease(home, &second).await.len(), 1);
}

/// Has a delivery fail until it is dead, and says what followed its last try.
async fn fail_for_good(home: &impl Home, raw: &mut Raw, owner: &Node) -> Option<FollowUp> {
    happen(raw, EventKind::WalletLow, None).await;
    home.store().fan_out(9).await.unwrap();
    loop {
        let due = lease(home, owner).await;
        let next = finish(home, owner, &due[0], TryResult::Answered(503)).await;
        let Some(FollowUp::Retry(pause)) = next else { return next };
        assert!(pause >= Duration::from_secs(5));
        assert_eq!(lease(home, owner).await, [], "it waits");
        let_time_pass(raw).await;
    }
}

async fn ten_dead_deliveries_in_a_row_disable_a_webhook(home: &impl Home) {
    let webhook = create(home, None, None).await;
    let watcher = create(home, None, Some(&[EventKind::WebhookDisabled])).await;
    let (mut raw, owner) = (Raw::open(home).await, node("one"));
    for _ in 0..9 {
        assert_eq!(fail_for_good(home, &mut raw, &owner).await, Some(FollowUp::Dead));
    }
    assert_eq!(deliveries(home, webhook).await[0].tries, 10);
    // One that is delivered begins the row anew.
    happen(&mut raw, EventKind::WalletLow, None).await;
    home.store().fan_out(9).await.unwrap();
    let due = lease(home, &owner).await;
    let told = finish(home, &owner, &due[0], TryResult::Answered(200)).await;
    assert_eq!(told, Some(FollowUp::Delivered));
    for _ in 0..9 {
        assert_eq!(fail_for_good(home, &mut raw, &owner).await, Some(FollowUp::Dead));
    }
    let last = fail_for_good(home, &mut raw, &owner).await;
    assert_eq!(last, Some(FollowUp::Disable(DisableReason::DeadInARow)));
    let record = home.store().webhook(webhook).await.unwrap().unwrap();
    let (_since, reason) = record.disabled.unwrap();
    assert_eq!((reason, record.edited), (DisableReason::DeadInARow, 1));
    raw.run("UPDATE events SET created_at = 9000000000000000").await;
    home.store().fan_out(9).await.unwrap();
    assert_eq!(kinds_told(home, watcher).await, ["webhook.disabled"], "it is told once");
    let data = raw.text("SELECT data FROM events WHERE kind = 'webhook.disabled'").await;
    assert_eq!(data, format!(r#"{{"reason":"dead_in_a_row","webhook_id":"{webhook}"}}"#));
    // Whoever enables it begins to count anew.
    act(home, WebhookAction::Enable(webhook)).await.unwrap();
    act(home, WebhookAction::Disable(watcher)).await.unwrap();
    let_time_pass(&mut raw).await;
    assert_eq!(lease(home, &owner).await, [], "the watcher's is dead");
    assert_eq!(fail_for_good(home, &mut raw, &owner).await, Some(FollowUp::Dead));
}

async fn a_webhook_that_is_gone_is_told_nothing_more(home: &impl Home) {
    let webhook = create(home, None, None).await;
    let (mut raw, owner) = (Raw::open(home).await, node("one"));
    for _ in 0..3 {
        happen(&mut raw, EventKind::WalletLow, None).await;
    }
    home.store().fan_out(9).await.unwrap();
    let room = DeliveryRoom { free: 2, ..roomy() };
    let due = home.store().lease_deliveries(&owner, LEASE, &room).await.unwrap();
    for delivery in &due {
        let told = finish(home, &owner, delivery, TryResult::Answered(410)).await;
        assert_eq!(told, Some(FollowUp::Disable(DisableReason::Gone)));
    }
    let sql = "SELECT count(*) FROM events WHERE kind = 'webhook.disabled'";
    assert_eq!(raw.number(sql).await, 1, "of two tries at once one disables it");
    assert_eq!(lease(home, &owner).await, []);
    let states: Vec<_> = deliveries(home, webhook).await.into_iter().map(|it| it.state).collect();
    assert_eq!(states, [DeliveryState::Dead; 3]);
    let last = &deliveries(home, webhook).await[2];
    assert_eq!((last.last_result.as_deref(), last.tries), (Some("webhook_disabled"), 0));
    let resend = WebhookAction::Resend { webhook, event: last.event };
    assert_eq!(act(home, resend.clone()).await, Err(AccountRefusal::WebhookDisabled));
    act(home, WebhookAction::Enable(webhook)).await.unwrap();
    act(home, resend).await.unwrap();
    let due = lease(home, &owner).await;
    assert_eq!(due[0].event, last.event);
    let stranger = WebhookAction::Resend { webhook, event: sample::fresh() };
    assert_eq!(act(home, stranger).await, Err(AccountRefusal::NoDelivery));
}

async fn a_test_has_one_try_and_counts_for_nothing(home: &impl Home) {
    let webhook = create(home, None, Some(&[EventKind::WalletLow])).await;
    let other = create(home, None, None).await;
    let owner = node("one");
    for count in 0..6 {
        let event: EventId = sample::fresh();
        act(home, WebhookAction::Test { webhook, event }).await.unwrap();
        let due = lease(home, &owner).await;
        assert_eq!((due[0].event, &*due[0].kind), (event, "webhook.test"));
        let told = finish(home, &owner, &due[0], TryResult::TimedOut).await;
        assert_eq!(told, Some(FollowUp::Dead), "{count}");
    }
    let seventh = WebhookAction::Test { webhook, event: sample::fresh() };
    assert_eq!(act(home, seventh.clone()).await, Err(AccountRefusal::TooManyTests));
    let mut raw = Raw::open(home).await;
    assert_eq!(raw.number("SELECT max(dead_in_a_row) FROM webhooks").await, 0);
    raw.run("UPDATE deliveries SET created_at = created_at - 60000000").await;
    act(home, seventh).await.unwrap();
    assert_eq!(home.store().fan_out(9).await.unwrap(), 0, "nobody else is told of a test");
    assert_eq!(deliveries(home, other).await, []);
}

async fn an_owner_has_a_bound_of_webhooks(home: &impl Home) {
    let own = wallet(home, "own").await;
    let mut ids = Vec::new();
    for _ in 0..WEBHOOKS_MAX {
        ids.push(create(home, Some(own), None).await);
    }
    let more = WebhookAction::Create(new_webhook(Some(own), None));
    assert_eq!(act(home, more.clone()).await, Err(AccountRefusal::TooManyWebhooks));
    create(home, None, None).await;
    act(home, WebhookAction::Disable(ids[0])).await.unwrap();
    act(home, more).await.unwrap();
    let enabled = act(home, WebhookAction::Enable(ids[0])).await;
    assert_eq!(enabled, Err(AccountRefusal::TooManyWebhooks));
    // One that is in force may be enabled again: nothing changes.
    act(home, WebhookAction::Enable(ids[1])).await.unwrap();
    let first = PageRequest::first(Order::Newest, 10);
    let page = home.store().webhooks(Some(own), first).await.unwrap();
    let second = PageRequest { after: page.next, ..first };
    let rest = home.store().webhooks(Some(own), second).await.unwrap();
    assert_eq!((page.rows.len(), rest.rows.len(), rest.next), (10, 7, None));
    assert_eq!(rest.rows[6].id, ids[0]);
}

async fn edits_are_counted_and_the_trail_has_no_path(home: &impl Home) {
    let webhook = create(home, None, None).await;
    let url = Private("https://hooks.example.com/in?key=another".to_owned());
    let patch = WebhookPatch { url: Some(url.clone()), ..WebhookPatch::default() };
    let edit = |expected| WebhookAction::Edit { webhook, patch: patch.clone(), expected };
    let conflict = act(home, edit(Some(1))).await;
    assert_eq!(conflict, Err(AccountRefusal::EditConflict { edited: 0 }));
    act(home, edit(Some(0))).await.unwrap();
    act(home, edit(None)).await.unwrap();
    let rotate = WebhookAction::Rotate { webhook, server_secret: secret().id() };
    act(home, rotate).await.unwrap();
    let record = home.store().webhook(webhook).await.unwrap().unwrap();
    assert_eq!((record.url, record.edited), (url, 2), "the second edit changed nothing");
    let rotated_at = record.secret.generations.rotated_at.unwrap();
    let own = secret().id();
    let signing: Vec<_> = record.secret.signing(rotated_at).collect();
    assert_eq!(signing, [(2, own), (1, own)]);
    let a_day_later = rotated_at.after(Duration::from_secs(24 * 60 * 60));
    assert_eq!(record.secret.signing(a_day_later).collect::<Vec<_>>(), [(2, own)]);
    let mut raw = Raw::open(home).await;
    let trail = "SELECT count(*) FROM audit WHERE thing_kind = 'webhook'";
    assert_eq!(raw.number(trail).await, 3);
    let leaks = format!("{trail} AND (changes LIKE '%its-own%' OR changes LIKE '%another%')");
    assert_eq!(raw.number(&leaks).await, 0);
    let shown = format!("{trail} AND changes LIKE '%url_digest%'");
    assert_eq!(raw.number(&shown).await, 2, "a path that has changed shows");
    let missing = WebhookAction::Disable(sample::fresh());
    assert_eq!(act(home, missing).await, Err(AccountRefusal::NoWebhook));
}

async fn deliveries_go_with_their_event(home: &impl Home) {
    let webhook = create(home, None, None).await;
    let mut raw = Raw::open(home).await;
    happen(&mut raw, EventKind::WalletLow, None).await;
    home.store().fan_out(9).await.unwrap();
    let event = deliveries(home, webhook).await[0].event;
    let found = home.store().delivery(webhook, event).await.unwrap().unwrap();
    assert_eq!((found.webhook, found.state), (webhook, DeliveryState::Pending));
    raw.run("DELETE FROM events").await;
    assert_eq!(deliveries(home, webhook).await, []);
    assert_eq!(home.store().outbox().await.unwrap().next_due_at, None);
}

async fn a_row_that_makes_no_sense_is_refused(home: &impl Home) {
    create(home, None, None).await;
    let mut raw = Raw::open(home).await;
    happen(&mut raw, EventKind::WalletLow, None).await;
    home.store().fan_out(9).await.unwrap();
    for sql in [
        "UPDATE webhooks SET disabled_at = 1",
        "UPDATE webhooks SET rotated_at = 1",
        "UPDATE webhooks SET generation = 0",
        "UPDATE deliveries SET state = 'gone'",
        "UPDATE deliveries SET state = 'dead'",
        "UPDATE deliveries SET next_at = NULL",
        "UPDATE deliveries SET owner = 'one'",
        "UPDATE deliveries SET last_status = 7",
    ] {
        assert!(raw.try_run(sql).await.is_err(), "{sql}");
    }
}

async fn whoever_looks_into_the_outbox_writes_what_some_webhook_wants(home: &impl Home) {
    let store = home.store();
    store.list_events(None);
    let _webhook = create(home, None, Some(&[EventKind::WalletSuspended])).await;
    let _outbox = store.outbox().await.unwrap();
    let own = make_wallet(store, "own").await;
    for change in [
        AccountAction::Wallet(WalletAction::Suspend(own)),
        AccountAction::Wallet(WalletAction::Resume(own)),
    ] {
        drop(crate::administration::act(store, change).await.unwrap());
    }
    let mut raw = Raw::open(home).await;
    let told = raw.number("SELECT count(*) FROM events").await;
    let wanted = raw.number("SELECT count(*) FROM events WHERE kind = 'wallet.suspended'").await;
    assert_eq!((told, wanted), (1, 1));
}

on_every_store! {
    whoever_looks_into_the_outbox_writes_what_some_webhook_wants,
    a_webhook_is_told_what_it_wants_and_may_know,
    of_several_that_fan_out_at_once_each_event_has_one,
    a_lease_takes_what_there_is_room_for,
    a_backlog_of_one_wallet_hides_nothing_of_the_others,
    a_delivery_goes_on_with_another_owner_when_the_lease_has_ended,
    what_is_given_back_is_due_at_once,
    ten_dead_deliveries_in_a_row_disable_a_webhook,
    a_webhook_that_is_gone_is_told_nothing_more,
    a_test_has_one_try_and_counts_for_nothing,
    an_owner_has_a_bound_of_webhooks,
    edits_are_counted_and_the_trail_has_no_path,
    deliveries_go_with_their_event,
    a_row_that_makes_no_sense_is_refused,
}
