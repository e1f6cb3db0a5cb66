//! Postings: an id for ever, a reference for ever, and rehearsals that move nothing.

use holdfast_domain::admin::{Reach, Role};
use holdfast_domain::{Currency, Journal as _, Micros, OperationId};
use holdfast_testkit::laws::tenant::{finish, judged};
use serde_json::{Value, json};

use crate::operations::running;
use crate::world::{Call, World, deposit, key};

async fn available(world: &World, wallet: &str) -> Value {
    world.get(&format!("/wallets/{wallet}")).await.json()["available_micros"].clone()
}

#[tokio::test]
async fn a_deposit_is_made_once_whoever_sends_it() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await;
    let (id, body) = (key(), deposit(&wallet, 700));
    let ask = Call::post("/deposits", &body).key(&id).bearer(&world.owner);
    let made = world.send(ask.clone()).await;
    assert_eq!((made.status, made.header("idempotent-replayed")), (201, Some("false")), "{made:?}");
    let view = made.json();
    assert_eq!((&view["id"], &view["kind"]), (&json!(id), &json!("deposit")));
    assert_eq!(view["wallet"]["available_micros"], 700);
    let (_, finance) = world.admin_key(Role::Finance, Reach::All).await;
    for again in [ask.clone(), ask.clone().bearer(&finance)] {
        let again = world.send(again).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    }
    let more = ask.bearer(&finance).body(deposit(&wallet, 701).to_string());
    world.send(more).await.is_error(409, "idempotency_key_conflict");
    assert_eq!(available(&world, &wallet).await, 700);
    let shown = world.get(&format!("/deposits/{id}")).await;
    assert_eq!((shown.status, &shown.json()["amount_micros"]), (200, &json!(700)));
    for other in ["adjustments", "refunds"] {
        world.get(&format!("/{other}/{id}")).await.is_error(404, "not_found");
    }
}

#[tokio::test]
async fn a_payment_is_booked_once_whatever_the_request_key() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await;
    let body = deposit(&wallet, 700);
    let first = world.post("/deposits", body.clone()).await.json();
    let again = world.post("/deposits", body.clone()).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!(again.json()["id"], first["id"]);
    let mut other = body;
    other["amount_micros"] = json!(701);
    let conflict = world.post("/deposits", other).await;
    conflict.is_about(409, "external_reference_conflict", "external_reference");
    let message = conflict.json()["error"]["message"].to_string();
    assert!(message.contains(first["id"].as_str().unwrap()), "{message}");
    assert_eq!(available(&world, &wallet).await, 700);
}

#[tokio::test]
async fn adjustments_give_and_take_for_a_reason() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 100).await;
    let adjust = |micros: i64| {
        let body = json!({ "wallet_id": wallet, "amount_micros": micros, "reason": "a mistake" });
        world.post("/adjustments", body)
    };
    let taken = adjust(-40).await.json();
    assert_eq!((&taken["amount_micros"], &taken["reason"]), (&json!(-40), &json!("a mistake")));
    assert_eq!(available(&world, &wallet).await, 60);
    adjust(-61).await.is_about(422, "insufficient_funds", "amount_micros");
    adjust(0).await.is_about(400, "invalid_value", "amount_micros");
    adjust(i64::MIN).await.is_about(422, "insufficient_funds", "amount_micros");
    let bare = json!({ "wallet_id": wallet, "amount_micros": 1 });
    world.post("/adjustments", bare).await.is_about(400, "invalid_value", "reason");
    assert_eq!(available(&world, &wallet).await, 60);
}

#[tokio::test]
async fn a_dry_run_is_judged_and_moves_nothing() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 100).await;
    let ask = Call::post("/deposits?dry_run=true", &deposit(&wallet, 7)).bearer(&world.owner);
    let dry = world.send(ask.clone()).await;
    assert_eq!((dry.status, dry.header("idempotent-replayed")), (200, None), "{dry:?}");
    assert_eq!(dry.json()["would"]["amount_micros"], 7);
    assert_eq!(available(&world, &wallet).await, 100);
    // Its key is free.
    let made = world.send(ask.path("/admin/v1/deposits")).await;
    assert_eq!(made.header("idempotent-replayed"), Some("false"), "{made:?}");
    let taken = json!({ "wallet_id": wallet, "amount_micros": -500, "reason": "a mistake" });
    let refused = world.post("/adjustments?dry_run=true", taken).await;
    refused.is_error(422, "insufficient_funds");
    let odd = world.post("/deposits?dry_run=maybe", deposit(&wallet, 7)).await;
    odd.is_about(400, "invalid_value", "dry_run");
    let unknown = world.post("/deposits?dryrun=true", deposit(&wallet, 7)).await;
    unknown.is_about(400, "invalid_value", "dryrun");
}

#[tokio::test]
async fn support_refunds_within_its_allowance_and_is_told_what_is_left() {
    let world = World::new().await;
    let id = charged(&world).await;
    let (_, support) = world.admin_key(Role::Support, Reach::All).await;
    let refund = |micros: i64| {
        let body = json!({ "operation_id": id, "amount_micros": micros });
        Call::post("/refunds", &body).bearer(&support)
    };
    world.send(refund(1)).await.is_about(403, "allowance_spent", "amount_micros");
    let allowances = [(Currency::USD, Micros::new(5))].into();
    let generous = world.accounts.clone().with_support_refunds(allowances);
    let generous = world.over(generous);
    let first = refund(4);
    assert_eq!(generous.send(first.clone()).await.status, 201);
    let refused = generous.send(refund(2)).await;
    refused.is_about(403, "allowance_spent", "amount_micros");
    let message = refused.json()["error"]["message"].to_string();
    assert!(message.contains("0.000001 is left of the 0.000005"), "{message}");
    // Whoever has no such bound goes on, and a repetition is answered where nothing is left.
    let body = json!({ "operation_id": id, "amount_micros": 2 });
    assert_eq!(generous.post("/refunds", body).await.status, 201);
    assert_eq!(generous.send(refund(1)).await.status, 201);
    let again = generous.send(first).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    let refused = generous.accounts.write_refused().await.unwrap();
    let attempts: Vec<_> = refused.iter().map(|it| (it.use_case.label(), it.attempts)).collect();
    assert_eq!(attempts, [("posting.refund", 2)], "one of them where nothing was set");
}

/// An operation that was charged.
async fn charged(world: &World) -> String {
    let wallet = world.wallet("acme", 1_000).await;
    let api_key = world.api_key(&wallet).await;
    let claim = running(world, &wallet, &api_key).await;
    let id = OperationId::of(claim.api_key, claim.request_key);
    let snapshot = world.store.load(id).await.unwrap();
    let event = finish(snapshot.operation.as_ref().unwrap(), 20, 10);
    world.store.commit(judged(&snapshot, event)).await.unwrap();
    id.to_string()
}
