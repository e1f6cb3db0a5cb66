//! Forms that move no money: each is done once, and the page of its thing shows it.

use holdfast_accounts::Reference;
use holdfast_domain::admin::{Reach, Role};
use holdfast_domain::limits::SpendWindow;
use uuid::Uuid;

use super::world::{World, request, visitor};

/// Sends a form three times, and answers the address that it leads to.
async fn once(world: &World, path: &str, fields: &[(&str, &str)]) -> String {
    let owner = &world.owner;
    let address = world.open(owner, path).await;
    world.get(owner, &address).await.is(200).has("method=\"post\"");
    let changes = world.changes().await;
    let (first, second) = tokio::join!(
        world.confirm(owner, &address, fields),
        world.confirm(owner, &address, fields)
    );
    let third = world.confirm(owner, &address, fields).await;
    for reply in [&first, &second, &third] {
        assert_eq!(reply.is(303).location(), first.location(), "{path}");
    }
    assert_eq!(world.changes().await, changes + 1, "{path} is done once");
    world.get(owner, &address).await.is(200).has("This form was sent").has_not("method=\"post\"");
    first.location().to_owned()
}

#[tokio::test]
async fn a_wallet_is_made_edited_suspended_resumed_and_closed_once_each() {
    let world = World::new().await;
    let fields = [
        ("name", "acme"),
        ("currency", "EUR"),
        ("low_balance", "5"),
        ("key_spend", "10"),
        ("key_spend_window", "month"),
    ];
    let page = once(&world, "/wallets/new", &fields).await;
    world.get(&world.owner, &page).await.has("5.00 EUR").has("10.00 EUR a month");
    let fields = [
        ("name", "acme & sons"),
        ("external_id", "c-7"),
        ("key_spend_window", "month"),
        ("edited", "0"),
    ];
    assert_eq!(once(&world, &format!("{page}/edit"), &fields).await, page);
    let shown = world.get(&world.owner, &page).await;
    shown.has("acme &#38; sons").has("c-7").has_not("5.00 EUR").has_not("10.00 EUR");
    once(&world, &format!("{page}/suspend"), &[("reason", "unpaid")]).await;
    world.get(&world.owner, &page).await.has("suspended").has(&format!("{page}/resume"));
    once(&world, &format!("{page}/resume"), &[]).await;
    world.get(&world.owner, &page).await.has("empty").has(&format!("{page}/suspend"));
    once(&world, &format!("{page}/close"), &[]).await;
    let closed = world.get(&world.owner, &page).await;
    closed.has("closed").has_not(&format!("{page}/deposit\"")).has_not(&format!("{page}/close"));
}

#[tokio::test]
async fn closing_is_shown_first_and_only_an_empty_wallet_is_closed() {
    let world = World::new().await;
    let (full, empty) = (world.wallet("full", 1_000).await, world.wallet("empty", 0).await);
    world.api_key(empty.wallet.id, "prod").await;
    let path = format!("/wallets/{}/close", full.wallet.id);
    let address = world.open(&world.owner, &path).await;
    world.send(&world.owner, &address, &[]).await.is(409).has("0.001 available");
    let path = format!("/wallets/{}/close", empty.wallet.id);
    let address = world.open(&world.owner, &path).await;
    let review = world.send(&world.owner, &address, &[("reason", "gone")]).await;
    review.is(200).has("Revoked API keys").has("Permanent: a closed wallet");
    review.has("class=\"grave\"");
    assert_eq!(world.record(empty.wallet.id).await, empty);
}

#[tokio::test]
async fn a_key_is_edited_suspended_resumed_and_revoked_once_each() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let key = world.api_key(wallet.wallet.id, "prod").await;
    let page = format!("/keys/{}", key.id);
    let fields = [
        ("name", "production"),
        ("spend", "3"),
        ("spend_window", "day"),
        ("concurrency", "7"),
        ("models", "holdfast/sample"),
        ("usage", "wallet"),
        ("balance", "hidden"),
        ("edited", "0"),
    ];
    once(&world, &format!("{page}/edit"), &fields).await;
    let edited = world.key(key.id).await;
    assert_eq!((edited.name.as_str(), edited.grant.limits.concurrency), ("production", Some(7)));
    let spend = edited.grant.limits.spend.unwrap();
    assert_eq!((spend.micros.get(), spend.window), (3_000_000, SpendWindow::Day));
    world.get(&world.owner, &page).await.has("0.00 USD of 3.00 USD").has("0 of 7");
    once(&world, &format!("{page}/suspend"), &[("reason", "too much")]).await;
    world.get(&world.owner, &page).await.has("suspended").has(&format!("{page}/resume"));
    once(&world, &format!("{page}/resume"), &[]).await;
    once(&world, &format!("{page}/revoke"), &[]).await;
    let revoked = world.get(&world.owner, &page).await;
    revoked.has("revoked").has_not(&format!("{page}/rotate")).has_not(&format!("{page}/edit"));
}

#[tokio::test]
async fn an_end_that_nobody_touched_stays_to_the_second() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let key = world.api_key(wallet.wallet.id, "prod").await;
    let ends_at =
        world.accounts.clock().await.unwrap().after(std::time::Duration::from_secs(90_061));
    let patch =
        holdfast_domain::admin::ApiKeyPatch { ends_at: Some(Some(ends_at)), ..Default::default() };
    let edit = holdfast_accounts::Edit { patch, expected: None };
    let id = Reference::Id(Uuid::from_bytes(key.id.to_bytes()));
    let local = holdfast_accounts::Principal::local();
    world.accounts.edit_api_key(&local, &request(), &id, edit).await.unwrap();
    let page = format!("/keys/{}", key.id);
    let shown = crate::kit::value::moment_text(Some(ends_at));
    let mut fields = vec![
        ("name", "production"),
        ("ends_at", shown.as_str()),
        ("spend_window", "month"),
        ("usage", "key"),
        ("balance", "shown"),
        ("edited", "1"),
    ];
    once(&world, &format!("{page}/edit"), &fields).await;
    assert_eq!(world.key(key.id).await.grant.ends_at, Some(ends_at));
    (fields[1], fields[5]) = (("ends_at", ""), ("edited", "2"));
    once(&world, &format!("{page}/edit"), &fields).await;
    assert_eq!(world.key(key.id).await.grant.ends_at, None);
}

#[tokio::test]
async fn an_edit_of_what_has_changed_meanwhile_changes_nothing() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let path = format!("/wallets/{}/edit", wallet.wallet.id);
    let address = world.open(&world.owner, &path).await;
    world.get(&world.owner, &address).await.has("name=\"edited\" value=\"0\"");
    let fields = [("name", "other"), ("key_spend_window", "month"), ("edited", "0")];
    once(&world, &path, &fields).await;
    let late = [("name", "late"), ("key_spend_window", "month"), ("edited", "0")];
    let reply = world.send(&world.owner, &address, &late).await;
    assert!(reply.status.is_client_error());
    reply.has("value=\"late\"").has("Open the form again");
    assert_eq!(world.record(wallet.wallet.id).await.wallet.name, "other");
}

#[tokio::test]
async fn a_name_that_is_taken_is_said_beside_the_name() {
    let world = World::new().await;
    world.wallet("acme", 0).await;
    let address = world.open(&world.owner, "/wallets/new").await;
    let fields = [("name", "acme"), ("currency", "USD"), ("external_id", "kept")];
    let reply = world.send(&world.owner, &address, &fields).await;
    assert!(reply.status.is_client_error());
    reply.has("id=\"name-error\"").has("value=\"kept\"");
    for (field, value) in [("currency", "dollars"), ("low_balance", "-1"), ("key_spend", "0")] {
        let fields: Vec<_> = [("name", "new"), ("currency", "USD")]
            .into_iter()
            .filter(|(name, _)| *name != field)
            .chain([(field, value)])
            .collect();
        let reply = world.send(&world.owner, &address, &fields).await;
        reply.is(422).has(&format!("id=\"{field}-error\""));
    }
}

#[tokio::test]
async fn the_key_of_one_person_says_nothing_to_another() {
    let world = World::new().await;
    let address = world.open(&world.owner, "/wallets/new").await;
    let fields = [("name", "acme"), ("currency", "USD")];
    world.send(&world.owner, &address, &fields).await.is(303);
    let other = visitor(Role::Finance, Reach::All);
    world.get(&other, &address).await.is(200).has_not("This form was sent");
}
