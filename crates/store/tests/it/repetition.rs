//! Repeated commands of administration: what answers them, and what makes one another command.

use holdfast_domain::admin::Administration as _;
use holdfast_domain::admin::{
    AccountAction, AccountCommand, AccountRefusal, ActorId, DepositReference, NewPosting,
    OWN_SOURCE, PostingDetails, ResourceId, WalletAction,
};
use holdfast_domain::{AdminKeyId, PostingId, WalletId};
use holdfast_testkit::sample;

use crate::administration::{
    act, administer, available, command, deposit, key, make_wallet, referenced, secret,
};
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};

/// The same command of another actor.
fn by_another(command: &AccountCommand, other: u128) -> AccountCommand {
    AccountCommand { actor: ActorId::AdminKey(AdminKeyId::from_u128(other)), ..command.clone() }
}

/// The deposit of an action with other details.
fn with(action: &AccountAction, change: impl FnOnce(&mut PostingDetails)) -> AccountAction {
    let mut new = posting_of(action).clone();
    change(&mut new.details);
    AccountAction::Post(new)
}

fn posting_of(action: &AccountAction) -> &NewPosting {
    if let AccountAction::Post(new) = action { Some(new) } else { None }.unwrap()
}

fn id(action: &AccountAction) -> PostingId {
    posting_of(action).posting.id
}

async fn a_posting_of_another_actor_is_answered_only_where_it_asks_for_the_same(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let booked = with(&referenced(wallet, 10, "pay-1"), |it| it.note = Some("invoice 1".into()));
    act(store, booked.clone()).await.unwrap();
    let others = [
        with(&booked, |it| it.reference.as_mut().unwrap().external_reference = "pay-2".into()),
        with(&booked, |it| it.reference = None),
        with(&booked, |it| it.note = None),
        with(&booked, |it| it.reason = Some("another".into())),
    ];
    for (n, other) in (1..).zip(others) {
        let refused = administer(store, &by_another(&command(key(), other), n)).await;
        assert!(matches!(refused, Err(AccountRefusal::PostingConflict(_))), "{n}: {refused:?}");
    }
    let again = administer(store, &by_another(&command(key(), booked.clone()), 9)).await.unwrap();
    assert_eq!((again.things, again.replayed), (vec![ResourceId::Posting(id(&booked))], true));
    // Nothing has booked the other payment in passing: it can be.
    let made = act(store, referenced(wallet, 10, "pay-2")).await.unwrap();
    assert!(!made.replayed);
    assert_eq!(available(store, wallet).await, 20);
}

async fn a_posting_without_details_is_answered_where_no_payment_would_pass_for_booked(
    home: &impl Home,
) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let plain = deposit(sample::fresh(), wallet, 10);
    act(store, plain.clone()).await.unwrap();
    // As a version without details left it.
    Raw::reckless(home).await.run("DELETE FROM posting_details").await;
    assert!(act(store, plain.clone()).await.unwrap().replayed);
    let own_id = id(&plain).to_string();
    let payment = |source: &str, reference: &str| {
        let (source, external_reference) = (source.to_owned(), reference.to_owned());
        let reference = DepositReference::booked(source, external_reference);
        with(&plain, |it| it.reference = Some(reference))
    };
    assert!(act(store, payment(OWN_SOURCE, &own_id)).await.unwrap().replayed);
    let noted = with(&plain, |it| it.note = Some("an invoice".to_owned()));
    for other in [payment(OWN_SOURCE, "pay-1"), payment("stripe", &own_id), noted] {
        let refused = act(store, other).await;
        assert!(matches!(refused, Err(AccountRefusal::PostingConflict(_))), "{refused:?}");
    }
}

async fn a_known_payment_binds_the_request_key_that_asked_for_it_again(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let first = act(store, referenced(wallet, 10, "pay-1")).await.unwrap();
    let request = key();
    let second = command(request, referenced(wallet, 10, "pay-1"));
    for _again in 0..2 {
        let known = administer(store, &second).await.unwrap();
        assert_eq!((known.things, known.replayed), (first.things.clone(), true));
    }
    // The key is that deposit's from now on: whatever else comes under it is refused.
    let free = deposit(PostingId::from_bytes(request.to_bytes()), wallet, 5);
    let refused = administer(store, &command(request, free)).await;
    assert_eq!(refused, Err(AccountRefusal::RequestKeyConflict));
    let elsewhere = referenced(WalletId::from_u128(404), 10, "pay-1");
    let conflict = key();
    let refused = administer(store, &command(conflict, elsewhere)).await;
    assert!(matches!(refused, Err(AccountRefusal::ExternalReferenceConflict(_))), "{refused:?}");
    let free = deposit(PostingId::from_bytes(conflict.to_bytes()), wallet, 5);
    assert!(!administer(store, &command(conflict, free)).await.unwrap().replayed, "bound nothing");
    assert_eq!(available(store, wallet).await, 15);
}

async fn a_request_key_is_bound_by_what_was_done_and_for_its_actor_alone(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let (request, refused) = (key(), key());
    let local = ActorId::Local;
    assert!(store.request_record(local, request).await.unwrap().is_none());
    let suspend = command(request, AccountAction::Wallet(WalletAction::Suspend(wallet)));
    store.rehearse(&suspend, &secret()).await.unwrap();
    assert!(
        store.request_record(local, request).await.unwrap().is_none(),
        "a rehearsal binds nothing"
    );
    administer(store, &suspend).await.unwrap();
    let record = store.request_record(local, request).await.unwrap().unwrap();
    assert_eq!(record.things, [ResourceId::Wallet(wallet)]);
    let other = ActorId::AdminKey(AdminKeyId::from_u128(1));
    assert!(store.request_record(other, request).await.unwrap().is_none());
    let nobodys =
        command(refused, AccountAction::Wallet(WalletAction::Suspend(WalletId::from_u128(404))));
    administer(store, &nobodys).await.unwrap_err();
    assert!(
        store.request_record(local, refused).await.unwrap().is_none(),
        "a refusal binds nothing"
    );
}

on_every_store! {
    a_request_key_is_bound_by_what_was_done_and_for_its_actor_alone,
    a_posting_of_another_actor_is_answered_only_where_it_asks_for_the_same,
    a_posting_without_details_is_answered_where_no_payment_would_pass_for_booked,
    a_known_payment_binds_the_request_key_that_asked_for_it_again,
}
