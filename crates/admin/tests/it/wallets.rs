//! Wallets: edits that tell absent from null, edits by number, suspension, closing.

use serde_json::{Value, json};

use crate::world::{Call, Reply, World};

async fn patch(world: &World, id: &str, body: &Value, if_match: Option<&str>) -> Reply {
    let ask = Call::post(&format!("/wallets/{id}"), body).method("PATCH").bearer(&world.owner);
    let ask = match if_match {
        Some(tag) => ask.header("if-match", tag),
        None => ask,
    };
    world.send(ask).await
}

#[tokio::test]
async fn an_edit_tells_absent_from_null() {
    let world = World::new().await;
    let made = world
        .post(
            "/wallets",
            json!({
                "name": "acme", "currency": "USD", "external_id": "cus_1", "low_balance_micros": 5,
                "key_spend_micros": 7, "key_spend_window": "day",
            }),
        )
        .await;
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(made.header("etag"), Some("\"0\""));
    let edited = patch(&world, &id, &json!({ "low_balance_micros": null }), None).await.json();
    assert_eq!(edited["low_balance_micros"], json!(null));
    assert_eq!(
        (&edited["external_id"], &edited["key_spend_micros"], &edited["key_spend_window"]),
        (&json!("cus_1"), &json!(7), &json!("day"))
    );
    let removed = json!({
        "external_id": null, "key_spend_micros": null, "key_spend_window": null, "name": "acme2",
    });
    let edited = patch(&world, &id, &removed, None).await.json();
    assert_eq!(
        (&edited["external_id"], &edited["key_spend_micros"], &edited["name"]),
        (&json!(null), &json!(null), &json!("acme2"))
    );
    let half = patch(&world, &id, &json!({ "key_spend_window": "day" }), None).await;
    half.is_about(400, "invalid_value", "key_spend_micros");
}

#[tokio::test]
async fn an_edit_of_what_was_edited_since_is_refused() {
    let world = World::new().await;
    let id = world.wallet("acme", 0).await;
    let shown = world.get(&format!("/wallets/{id}")).await;
    assert_eq!(shown.header("etag"), Some("\"0\""));
    let edited = patch(&world, &id, &json!({ "name": "b" }), Some("\"0\"")).await;
    assert_eq!((edited.status, edited.header("etag")), (200, Some("\"1\"")), "{edited:?}");
    let late = patch(&world, &id, &json!({ "name": "c" }), Some("\"0\"")).await;
    late.is_error(412, "edit_conflict");
    assert_eq!(late.json()["error"]["edited"], 1);
    assert_eq!(patch(&world, &id, &json!({ "name": "d" }), Some("*")).await.status, 200);
    patch(&world, &id, &json!({}), Some("3")).await.is_about(400, "invalid_value", "If-Match");
}

#[tokio::test]
async fn suspending_wants_a_reason_and_resuming_none() {
    let world = World::new().await;
    let id = world.wallet("acme", 0).await;
    let suspend = format!("/wallets/{id}/suspend");
    world.post(&suspend, json!({})).await.is_about(400, "invalid_value", "reason");
    let suspended = world.post(&suspend, json!({ "reason": "has not paid" })).await.json();
    assert_eq!(suspended["state"], "suspended");
    let bare = Call::post(&format!("/wallets/{id}/resume"), &json!({})).body("");
    let resumed = world.send(bare.without("content-type").bearer(&world.owner)).await.json();
    assert_eq!((&resumed["state"], &resumed["suspended_at"]), (&json!("active"), &json!(null)));
}

#[tokio::test]
async fn only_an_empty_wallet_is_closed_and_a_dry_run_closes_none() {
    let world = World::new().await;
    let (full, empty) = (world.wallet("full", 5).await, world.wallet("empty", 0).await);
    let api_key = world.api_key(&empty).await;
    let refused = world.post(&format!("/wallets/{full}/close"), json!({})).await;
    refused.is_error(409, "wallet_not_empty");
    let dry = world.post(&format!("/wallets/{full}/close?dry_run=true"), json!({})).await;
    dry.is_error(409, "wallet_not_empty");
    let dry = world.post(&format!("/wallets/{empty}/close?dry_run=true"), json!({})).await;
    assert_eq!((dry.status, &dry.json()["would"]["state"]), (200, &json!("closed")), "{dry:?}");
    let shown = world.get(&format!("/wallets/{empty}")).await.json();
    assert_eq!(shown["state"], "active");
    let closed = world.post(&format!("/wallets/{empty}/close"), json!({})).await.json();
    assert_eq!(closed["state"], "closed");
    assert!(closed["closed_at"].is_string());
    let key = world.get(&format!("/api_keys/{api_key}")).await.json();
    assert!(key["revoked_at"].is_string(), "{key}");
    let late = world.post("/api_keys", json!({ "wallet_id": empty, "reason": "late" })).await;
    late.is_error(409, "wallet_closed");
    let other = world.post(&format!("/wallets/{full}/suspend?dry_run=true"), json!({})).await;
    other.is_about(400, "invalid_value", "dry_run");
}
