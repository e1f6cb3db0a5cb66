//! Forms that move money: they show it first, do it once, and keep what was written.

use holdfast_domain::admin::{Role, WalletRecord};
use holdfast_domain::{Micros, WalletId};

use super::world::{World, visitor_of};

/// Sends a form of money in every way that it may be sent, and says what it did to the wallet.
async fn sent(world: &World, wallet: WalletId, path: &str, fields: &[(&str, &str)]) -> i64 {
    let owner = &world.owner;
    let before = world.record(wallet).await;
    let changes = world.changes().await;
    let address = world.open(owner, path).await;
    world.get(owner, &address).await.is(200).has("method=\"post\"");
    let review = world.send(owner, &address, fields).await;
    review.is(200).has("nothing has been done yet").has("Available afterwards");
    assert_eq!(world.record(wallet).await, before, "a review changes nothing");
    assert_eq!(world.changes().await, changes, "a review leaves no trail");
    world.get(owner, &address).await.is(200).has("method=\"post\"");
    // A double click.
    let (first, second) = tokio::join!(
        world.confirm(owner, &address, fields),
        world.confirm(owner, &address, fields)
    );
    for reply in [first, second, world.confirm(owner, &address, fields).await] {
        assert_eq!(reply.is(303).location(), address);
    }
    assert_eq!(world.changes().await, changes + 1, "{path}");
    // Back, and a reload.
    let back = world.get(owner, &address).await;
    back.is(200).has("This form was sent").has_not("method=\"post\"");
    let posting = back.links().into_iter().find(|link| link.starts_with("/postings/")).unwrap();
    world.get(owner, &posting).await.is(200).has("INV-7");
    let mut other = fields.to_vec();
    other[0] = ("amount", "0.000003");
    world.confirm(owner, &address, &other).await.is(409).has("with other values");
    let after = world.record(wallet).await.wallet.available;
    after.minus(before.wallet.available).unwrap().get()
}

fn path(wallet: &WalletRecord, verb: &str) -> String {
    format!("/wallets/{}/{verb}", wallet.wallet.id)
}

#[tokio::test]
async fn a_deposit_is_shown_first_and_done_once() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let fields = [("amount", "12.50"), ("note", "INV-7")];
    let moved = sent(&world, wallet.wallet.id, &path(&wallet, "deposit"), &fields).await;
    assert_eq!(moved, 12_500_000);
}

#[tokio::test]
async fn a_payment_from_outside_is_booked_once_whatever_form_it_comes_by() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let path = path(&wallet, "deposit");
    let fields = [("amount", "5"), ("source", "bank"), ("external_reference", "INV-9")];
    for _form in 0..2 {
        let address = world.open(&world.owner, &path).await;
        world.send(&world.owner, &address, &fields).await.is(200).has("bank INV-9");
        world.confirm(&world.owner, &address, &fields).await.is(303);
    }
    assert_eq!(world.available(wallet.wallet.id).await, 5_001_000);
    let address = world.open(&world.owner, &path).await;
    let other = [("amount", "6"), ("source", "bank"), ("external_reference", "INV-9")];
    world.confirm(&world.owner, &address, &other).await.is(409);
    for (half, missing) in [("source", "external_reference"), ("external_reference", "source")] {
        let sent = [("amount", "5"), (half, "x")];
        let reply = world.send(&world.owner, &address, &sent).await;
        reply.is(422).has(&format!("id=\"{missing}-error\""));
    }
}

#[tokio::test]
async fn an_adjustment_is_shown_first_and_done_once_either_way() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 10_000_000).await;
    let (id, path) = (wallet.wallet.id, path(&wallet, "adjust"));
    for (amount, micros) in [("-2.50", -2_500_000), ("1", 1_000_000)] {
        let fields = [("amount", amount), ("reason", "a mistake"), ("note", "INV-7")];
        assert_eq!(sent(&world, id, &path, &fields).await, micros);
    }
}

#[tokio::test]
async fn a_refund_is_shown_first_and_done_once() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let key = world.api_key(wallet.wallet.id, "prod").await;
    let operation = world.completed(&key, 20).await;
    let charge = operation.phase.charge().unwrap();
    let path = format!("/operations/{}/refund", operation.id);
    let fields = [("amount", "0.000004"), ("reason", "slow"), ("note", "INV-7")];
    assert_eq!(sent(&world, wallet.wallet.id, &path, &fields).await, 4);
    // The form shows what was charged, and offers what is left of it.
    let left = charge.minus(Micros::new(4)).unwrap();
    let form = world.get(&world.owner, &world.open(&world.owner, &path).await).await;
    form.has(&format!("{charge} USD")).has("0.000004 USD").has(&format!("value=\"{left}\""));
    let too_much = [("amount", "1.00")];
    let address = world.open(&world.owner, &path).await;
    world.send(&world.owner, &address, &too_much).await.is(422).has("id=\"amount-error\"");
}

#[tokio::test]
async fn what_is_wrong_stands_beside_its_field_and_what_was_written_stays() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let before = world.record(wallet.wallet.id).await;
    for (verb, amounts) in [
        ("deposit", ["", "ten", "-1", "0", "1.0000001", "99999999999999"].as_slice()),
        ("adjust", ["", "ten", "0", "-1.00"].as_slice()),
    ] {
        let address = world.open(&world.owner, &path(&wallet, verb)).await;
        for amount in amounts {
            let fields =
                [("amount", *amount), ("reason", "a \"reason\""), ("note", "<b>INV-7</b>")];
            for reply in [
                world.send(&world.owner, &address, &fields).await,
                world.confirm(&world.owner, &address, &fields).await,
            ] {
                assert!(reply.status.is_client_error(), "{verb} {amount}: {}", reply.status);
                reply.has("id=\"amount-error\"").has("aria-invalid=\"true\"");
                reply.has("&#60;b&#62;INV-7").has_not("<b>INV-7");
            }
        }
    }
    let address = world.open(&world.owner, &path(&wallet, "adjust")).await;
    let fields = [("amount", "1"), ("note", "INV-7")];
    let reply = world.send(&world.owner, &address, &fields).await;
    reply.has("id=\"reason-error\"").has("value=\"INV-7\"");
    assert_eq!(world.record(wallet.wallet.id).await, before);
}

#[tokio::test]
async fn a_form_without_its_key_does_nothing() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let path = path(&wallet, "deposit");
    for address in [path.clone(), format!("{path}?key="), format!("{path}?key=7")] {
        world.confirm(&world.owner, &address, &[("amount", "1")]).await.is(400);
    }
    assert_eq!(world.available(wallet.wallet.id).await, 1_000);
}

#[tokio::test]
async fn support_refunds_within_an_allowance_that_is_none_unless_it_is_set() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let key = world.api_key(wallet.wallet.id, "prod").await;
    let operation = world.completed(&key, 20).await;
    let support = visitor_of(Role::Support, wallet.wallet.id);
    let path = format!("/operations/{}/refund", operation.id);
    let address = world.open(&support, &path).await;
    let reply = world.send(&support, &address, &[("amount", "0.000001")]).await;
    assert!(reply.status.is_client_error());
    reply.has("id=\"amount-error\"").has("ask finance");
}
