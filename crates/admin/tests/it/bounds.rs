//! Bounds on what a person or a key can make longer.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_accounts::{Accounts, KeyOrder, Principal, Reference, Request};
use holdfast_domain::CommandKey;
use holdfast_domain::admin::WalletBounds;
use holdfast_domain::credential::Grant;
use holdfast_domain::model::ModelPattern;
use holdfast_domain::secret::ServerSecret;
use holdfast_testkit::NoPause;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::{Call, World, key};

const MIB: usize = 1 << 20;

/// Use cases over the same book in a process that serves no model, and judges none.
fn without_models(world: &World) -> Accounts {
    let secrets = vec![ServerSecret::new(&[7; 32]).unwrap()];
    Accounts::new(Arc::new(world.store.clone()), secrets, Arc::new(NoPause))
}

fn order(name: &str, models: usize) -> KeyOrder {
    let id = |number| format!("{}/{number:0>64}", "p".repeat(63));
    let ids = (0..models).map(|number| ModelPattern::try_from(id(number).as_str()).unwrap());
    let grant = Grant { models: Some(ids.collect::<BTreeSet<_>>()), ..Grant::default() };
    KeyOrder { name: Some(name.parse().unwrap()), external_id: None, grant }
}

/// Issues API keys as another process does, whose configuration has these models.
async fn issue_elsewhere(world: &World, wallet: &str, orders: &[KeyOrder]) -> Vec<String> {
    let request = Request::new(CommandKey::from(Uuid::new_v4()), &[b"elsewhere"], None);
    let wallet = Reference::Id(wallet.parse().unwrap());
    let elsewhere = without_models(world);
    let local = Principal::local();
    let issued = elsewhere.issue_api_keys(&local, &request, &wallet, orders);
    issued.await.unwrap().thing.iter().map(|key| key.api_key.id.to_string()).collect()
}

async fn patch(world: &World, id: &str, body: &Value) -> crate::world::Reply {
    let call = Call::post(&format!("/api_keys/{id}"), body).method("PATCH");
    world.send(call.bearer(&world.owner)).await
}

#[tokio::test]
async fn an_allow_list_has_configured_models_only_and_an_error_names_the_first_unknown_one() {
    let world = World::offering(&["acme/large-1"]).await;
    let wallet = world.wallet("acme", 0).await;
    let body =
        |models: &[&str]| json!({ "wallet_id": wallet, "models": models, "reason": "a wish" });
    let unknown = world.post("/api_keys", body(&["acme/large-1", "acme/nope", "acme/zero"])).await;
    unknown.is_about(400, "invalid_value", "models");
    let message = unknown.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("acme/nope") && message.contains("/admin/v1/models"), "{message}");
    assert!(!message.contains("zero"), "{message}");
    let bulk = json!({
        "wallet_id": wallet, "reason": "a wish", "keys": [{}, { "models": ["acme/nope"] }],
    });
    world.post("/api_keys/bulk", bulk).await.is_about(400, "invalid_value", "models");
    assert_eq!(world.get("/api_keys").await.json()["data"], json!([]));
    let issued = world.post("/api_keys", body(&["acme/large-1"])).await;
    assert_eq!(issued.status, 201, "{issued:?}");
    let id = issued.json()["id"].as_str().unwrap().to_owned();
    let edited = patch(&world, &id, &json!({ "models": ["acme/nope"] })).await;
    edited.is_about(400, "invalid_value", "models");
}

#[tokio::test]
async fn a_list_from_before_stays_and_its_key_is_edited() {
    let world = World::offering(&["acme/large-1"]).await;
    let wallet = world.wallet("acme", 0).await;
    let ids = issue_elsewhere(&world, &wallet, &[order("old", 2)]).await;
    let shown = world.get(&format!("/api_keys/{}", ids[0])).await.json();
    let renamed = patch(&world, &ids[0], &json!({ "name": "new" })).await;
    assert_eq!(renamed.status, 200, "{renamed:?}");
    // The list that it has is no other list.
    let same = json!({ "models": shown["models"], "concurrency": 3 });
    assert_eq!(patch(&world, &ids[0], &same).await.status, 200);
    let longer = json!({ "models": [shown["models"][0], "acme/large-1"] });
    patch(&world, &ids[0], &longer).await.is_about(400, "invalid_value", "models");
    assert_eq!(patch(&world, &ids[0], &json!({ "models": ["acme/large-1"] })).await.status, 200);
}

#[tokio::test]
async fn a_repetition_is_answered_after_its_model_has_left_the_configuration() {
    let world = World::offering(&["acme/large-1"]).await;
    let wallet = world.wallet("acme", 0).await;
    let body = json!({ "wallet_id": wallet, "models": ["acme/large-1"], "reason": "a wish" });
    let issue = Call::post("/api_keys", &body).bearer(&world.owner);
    assert_eq!(world.send(issue.clone()).await.status, 201);
    let world = world.serving(&[]);
    let again = world.send(issue.clone()).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    world.send(issue.key(&key())).await.is_about(400, "invalid_value", "models");
}

#[tokio::test]
async fn a_page_is_a_mebibyte_at_most_and_a_walk_sees_every_row_once() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await;
    let orders: Vec<_> = (0..60).map(|number| order(&format!("key {number}"), 256)).collect();
    let mut made = issue_elsewhere(&world, &wallet, &orders).await;
    for (list, id) in [("api_keys", "id"), ("audit", "seq")] {
        let (mut seen, mut pages, mut after) = (Vec::new(), 0, String::new());
        loop {
            let page = world.get(&format!("/{list}?limit=200{after}")).await;
            assert!(page.body.len() <= MIB, "{list}: {} bytes", page.body.len());
            let page = page.json();
            let rows = page["data"].as_array().unwrap();
            assert!(!rows.is_empty());
            pages += 1;
            seen.extend(rows.iter().map(|row| row[id].to_string().replace('"', "")));
            let Some(next) = page["next_cursor"].as_str() else { break };
            after = format!("&cursor={next}");
        }
        assert!(pages >= 2, "{list} has one page");
        let once: BTreeSet<_> = seen.iter().collect();
        assert_eq!(once.len(), seen.len(), "{list} has each row once");
        if list == "api_keys" {
            made.sort();
            seen.sort();
            assert_eq!(seen, made);
        }
    }
}

#[tokio::test]
async fn creations_of_a_wallet_have_a_rate_and_a_repetition_has_none() {
    let world = World::new().await;
    let accounts = world.accounts.clone().bounded_by(WalletBounds::DEFAULT, 2);
    let world = world.over(accounts);
    let (wallet, other) = (world.wallet("acme", 0).await, world.wallet("other", 0).await);
    let issue = |wallet: &str| {
        let body = json!({ "wallet_id": wallet, "reason": "a wish" });
        Call::post("/api_keys", &body).bearer(&world.owner)
    };
    let first = issue(&wallet);
    assert_eq!(world.send(first.clone()).await.status, 201);
    assert_eq!(world.send(issue(&wallet)).await.status, 201);
    let webhook = json!({ "wallet_id": wallet, "url": "https://hooks.example.com/in" });
    for refused in [world.send(issue(&wallet)).await, world.post("/webhooks", webhook).await] {
        refused.is_error(429, "too_many_creations");
        let wait: u32 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=30).contains(&wait), "{wait}");
        assert_eq!(refused.header("x-should-retry"), Some("true"));
    }
    let again = world.send(first).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!(world.send(issue(&other)).await.status, 201);
}

#[tokio::test]
async fn a_bound_of_a_wallet_says_what_to_do() {
    let world = World::new().await;
    let bounds = WalletBounds { api_keys: 1, ..WalletBounds::DEFAULT };
    let accounts = world.accounts.clone().bounded_by(bounds, 600);
    let world = world.over(accounts);
    let wallet = world.wallet("acme", 0).await;
    world.api_key(&wallet).await;
    let body = json!({ "wallet_id": wallet, "reason": "a wish" });
    let refused = world.post("/api_keys", body).await;
    refused.is_error(409, "wallet_bound_reached");
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("Revoke") || message.contains("revoke"), "{message}");
    assert!(message.contains("admin.api_keys_per_wallet"), "{message}");
}

#[tokio::test]
async fn an_invitation_that_is_repeated_with_another_name_is_another_request() {
    let world = World::new().await;
    let body = |name: &str| json!({ "email": "ada@example.com", "name": name, "role": "support" });
    let call = Call::post("/people", &body("Ada")).bearer(&world.owner);
    assert_eq!(world.send(call.clone()).await.status, 201);
    assert_eq!(world.send(call.clone()).await.status, 201);
    let other = call.body(body("Eve").to_string());
    world.send(other).await.is_error(409, "idempotency_key_conflict");
}

#[tokio::test]
async fn an_actor_has_one_job_and_takes_it_back() {
    let world = World::new().await;
    let body = json!({ "kind": "verification" });
    let started = world.post("/jobs", body.clone()).await.json();
    let id = started["id"].as_str().unwrap().to_owned();
    let refused = world.post("/jobs", body.clone()).await;
    refused.is_error(409, "job_pending");
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains(&id), "{refused:?}");
    let cancelled = world.post(&format!("/jobs/{id}/cancel"), json!({})).await;
    assert_eq!((cancelled.status, &cancelled.json()["state"]), (200, &json!("cancelled")));
    assert_eq!(world.post("/jobs", body).await.status, 201);
}
