//! Changes and their request keys: done once, answered again, bound only by what was done.

use holdfast_domain::admin::{Reach, Role};
use serde_json::json;

use crate::world::{Call, World, key};

#[tokio::test]
async fn a_change_wants_a_key_in_its_one_spelling() {
    let world = World::new().await;
    let ask =
        Call::post("/wallets", &json!({ "name": "a", "currency": "USD" })).bearer(&world.owner);
    let bare = world.send(ask.clone().without("idempotency-key")).await;
    bare.is_error(400, "idempotency_key_required");
    assert!(bare.json()["error"]["message"].as_str().unwrap().contains("uuidgen"));
    for bad in ["", "1", &key().to_uppercase(), &key().replace('-', ""), &format!("{{{}}}", key())]
    {
        let told = world.send(ask.clone().key(bad)).await;
        told.is_error(400, "idempotency_key_malformed");
    }
    // Any version will do: outer systems have their own ids.
    let time_based = "018f3f6e-7a34-7c3e-9a51-0f8e6d2b4c11";
    assert_eq!(world.send(ask.key(time_based)).await.status, 201);
}

#[tokio::test]
async fn a_repetition_is_answered_with_the_first_status_and_the_thing_as_it_stands() {
    let world = World::new().await;
    let body = json!({ "name": "acme", "currency": "USD" });
    let ask = Call::post("/wallets", &body).bearer(&world.owner);
    let first = world.send(ask.clone()).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (201, Some("false")));
    let id = first.json()["id"].as_str().unwrap().to_owned();
    let edit = Call::post(&format!("/wallets/{id}"), &json!({ "name": "acme2" })).method("PATCH");
    assert_eq!(world.send(edit.bearer(&world.owner)).await.status, 200);
    // Blanks and the order of members are no part of a request.
    let spelled = ask.clone().body("{ \"currency\": \"USD\",\n \"name\": \"acme\" }");
    for again in [ask.clone(), spelled] {
        let again = world.send(again).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
        assert_eq!((&again.json()["id"], &again.json()["name"]), (&json!(id), &json!("acme2")));
    }
    let other = ask.clone().body(json!({ "name": "b", "currency": "USD" }).to_string());
    world.send(other).await.is_error(409, "idempotency_key_conflict");
    let elsewhere = ask.clone().path(&format!("/admin/v1/wallets/{id}/resume")).body("{}");
    world.send(elsewhere).await.is_error(409, "idempotency_key_conflict");
    let (one, two) = (world.wallet("one", 0).await, world.wallet("two", 0).await);
    let resume = |id: &str| Call::post(&format!("/wallets/{id}/resume"), &json!({}));
    let twice = resume(&one).bearer(&world.owner);
    assert_eq!(world.send(twice.clone()).await.status, 200);
    let two = twice.path(&format!("/admin/v1/wallets/{two}/resume"));
    world.send(two).await.is_error(409, "idempotency_key_conflict");
    // Bound for its actor: somebody else's request of this key is another one.
    let (_, finance) = world.admin_key(Role::Finance, Reach::All).await;
    let theirs = ask.bearer(&finance).body(json!({ "name": "b", "currency": "USD" }).to_string());
    assert_eq!(world.send(theirs).await.header("idempotent-replayed"), Some("false"));
}

#[tokio::test]
async fn what_was_refused_binds_nothing() {
    let world = World::new().await;
    world.wallet("acme", 0).await;
    let ask = Call::post("/wallets", &json!({ "name": "acme", "currency": "USD" }));
    let ask = ask.bearer(&world.owner);
    world.send(ask.clone()).await.is_about(409, "name_taken", "name");
    let free = ask.body(json!({ "name": "b", "currency": "USD" }).to_string());
    assert_eq!(world.send(free).await.status, 201);
}

#[tokio::test]
async fn whoever_may_no_longer_do_it_is_refused_a_repetition() {
    let world = World::new().await;
    let (id, finance) = world.admin_key(Role::Finance, Reach::All).await;
    let ask = Call::post("/wallets", &json!({ "name": "a", "currency": "USD" })).bearer(&finance);
    assert_eq!(world.send(ask.clone()).await.status, 201);
    let revoked = world.post(&format!("/admin_keys/{id}/revoke"), json!({})).await;
    assert_eq!(revoked.status, 200);
    world.send(ask).await.is_error(401, "invalid_admin_key");
}

#[tokio::test]
async fn a_rotated_key_repeats_its_own_requests() {
    let world = World::new().await;
    let (id, finance) = world.admin_key(Role::Finance, Reach::All).await;
    let ask = Call::post("/wallets", &json!({ "name": "a", "currency": "USD" }));
    assert_eq!(world.send(ask.clone().bearer(&finance)).await.status, 201);
    let path = format!("/admin_keys/{id}/rotate");
    let rotate = Call::post(&path, &json!({ "grace_seconds": 0 })).bearer(&world.owner);
    let rotated = world.send(rotate.clone()).await;
    let new = rotated.json()["key"].as_str().unwrap().to_owned();
    world.send(ask.clone().bearer(&finance)).await.is_error(401, "invalid_admin_key");
    let again = world.send(ask.bearer(&new)).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"), "{again:?}");
    let repeated = world.send(rotate).await;
    assert_eq!((repeated.status, &repeated.json()["key"]), (200, &json!(null)));
    assert!(repeated.json()["notice"].as_str().unwrap().contains("rotate"));
}
