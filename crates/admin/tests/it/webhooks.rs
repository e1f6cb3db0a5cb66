//! Webhooks over the API: what is told once, what is judged, and who sees what.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use holdfast_domain::admin::Endpoints;
use holdfast_domain::admin::webhook::{Endpoint, Origin, TryResult};
use holdfast_domain::admin::{Reach, Role};
use serde_json::{Value, json};

use crate::world::{Call, World, reach};

const URL: &str = "https://hooks.example.com/in?key=its-own";

/// Names whose addresses are public until they move.
#[derive(Debug, Default)]
struct Names {
    have_moved: AtomicBool,
    looked_up: AtomicUsize,
}

#[async_trait]
impl Endpoints for Names {
    fn allowed(&self) -> Arc<[Origin]> {
        Arc::new([])
    }

    async fn check(&self, _endpoint: &Endpoint) -> Result<(), TryResult> {
        self.looked_up.fetch_add(1, Ordering::Relaxed);
        let have_moved = self.have_moved.load(Ordering::Relaxed);
        if have_moved { Err(TryResult::AddressRefused) } else { Ok(()) }
    }
}

/// A world whose webhooks are judged by these names.
async fn over(names: &Arc<Names>) -> World {
    let world = World::new().await;
    let accounts = world.accounts.clone().judging(Arc::<Names>::clone(names));
    world.over(accounts)
}

async fn create(world: &World, body: Value) -> Value {
    let made = world.post("/webhooks", body).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.json()
}

fn path(webhook: &Value, rest: &str) -> String {
    format!("/webhooks/{}{rest}", webhook["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_secret_is_told_once_by_each_answer_that_makes_one() {
    let world = World::new().await;
    let body = json!({ "url": URL, "kinds": ["wallet.low"], "description": "billing" });
    let ask = Call::post("/webhooks", &body).bearer(&world.owner);
    let (made, again) = (world.send(ask.clone()).await, world.send(ask).await);
    assert_eq!((made.status, again.status), (201, 201), "{made:?}");
    let (made, again) = (made.json(), again.json());
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && secret.len() == 50, "44 characters of base64");
    assert_eq!((&again["id"], &again["secret"]), (&made["id"], &Value::Null));
    assert!(again["notice"].as_str().unwrap().contains("/rotate"), "{again}");
    assert_eq!(
        (&made["url"], &made["kinds"], &made["state"], &made["secret_generation"]),
        (&json!(URL), &json!(["wallet.low"]), &json!("active"), &json!(1))
    );
    let rotated = world.post(&path(&made, "/rotate"), json!({})).await.json();
    assert_eq!((&rotated["secret_generation"], &rotated["edited"]), (&json!(2), &json!(1)));
    assert_ne!(rotated["secret"], made["secret"]);
    let shown = world.get(&path(&made, "")).await;
    let text = String::from_utf8_lossy(&shown.body).into_owned();
    assert!(!text.contains("whsec_") && shown.json()["rotated_at"].is_string(), "{text}");
}

#[tokio::test]
async fn what_cannot_be_sent_to_is_not_made() {
    let world = World::new().await;
    for url in [
        "http://hooks.example.com",
        "https://hooks.example.com:8443",
        "https://me@hooks.example.com",
        "https://127.0.0.1/in",
        "https://[::ffff:169.254.169.254]/",
        "https://hooks.example.com/#in",
        "hooks.example.com",
    ] {
        let refused = world.post("/webhooks", json!({ "url": url })).await;
        refused.is_about(400, "invalid_value", "url");
    }
    for kinds in [json!([]), json!(["wallet.lost"])] {
        let refused = world.post("/webhooks", json!({ "url": URL, "kinds": kinds })).await;
        refused.is_about(400, "invalid_value", "kinds");
    }
    let made = create(&world, json!({ "url": URL })).await;
    let edit = Call::post(&path(&made, ""), &json!({ "url": "http://10.0.0.1" })).method("PATCH");
    world.send(edit.bearer(&world.owner)).await.is_about(400, "invalid_value", "url");
}

#[tokio::test]
async fn an_edit_says_which_edit_it_has_seen() {
    let world = World::new().await;
    let made = create(&world, json!({ "url": URL, "kinds": ["wallet.low"] })).await;
    let edit = |body: Value, seen: &str| {
        let call = Call::post(&path(&made, ""), &body).method("PATCH");
        call.header("if-match", seen).bearer(&world.owner)
    };
    let changed = world.send(edit(json!({ "kinds": null }), "\"0\"")).await;
    assert_eq!((changed.status, changed.header("etag")), (200, Some("\"1\"")), "{changed:?}");
    assert_eq!((&changed.json()["kinds"], &changed.json()["url"]), (&Value::Null, &json!(URL)));
    let late = world.send(edit(json!({ "description": "late" }), "\"0\"")).await;
    late.is_error(412, "edit_conflict");
}

#[tokio::test]
async fn a_disabled_webhook_is_not_tested_and_no_webhook_seven_times_a_minute() {
    let world = World::new().await;
    let made = create(&world, json!({ "url": URL })).await;
    let test = path(&made, "/test");
    let ask = Call::post(&test, &json!({})).bearer(&world.owner);
    let (first, again) = (world.send(ask.clone()).await, world.send(ask).await);
    assert_eq!(first.json()["kind"], "webhook.test", "{first:?}");
    assert_eq!((again.json(), again.header("idempotent-replayed")), (first.json(), Some("true")));
    for _ in 0..5 {
        assert_eq!(world.post(&test, json!({})).await.status, 200);
    }
    world.post(&test, json!({})).await.is_error(429, "too_many_tests");
    let listed = world.get(&path(&made, "/deliveries?limit=4")).await.json();
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["has_more"]), (4, &json!(true)));
    let disabled = world.post(&path(&made, "/disable"), json!({ "reason": "moves" })).await.json();
    assert_eq!(
        (&disabled["state"], &disabled["disabled_reason"]),
        (&json!("disabled"), &json!("asked"))
    );
    world.post(&test, json!({})).await.is_error(409, "webhook_disabled");
    let event = first.json()["event_id"].as_str().unwrap().to_owned();
    let resend = path(&made, &format!("/deliveries/{event}/resend"));
    world.post(&resend, json!({})).await.is_error(409, "webhook_disabled");
    assert_eq!(world.post(&path(&made, "/enable"), json!({})).await.json()["state"], "active");
    assert_eq!(world.post(&resend, json!({})).await.json()["state"], "pending");
    let unknown = path(&made, "/deliveries/018f3f6e-7a34-7c3e-9a51-0f8e6d2b4c11/resend");
    world.post(&unknown, json!({})).await.is_error(404, "not_found");
}

#[tokio::test]
async fn a_holder_has_webhooks_of_the_own_wallet_and_sees_no_other() {
    let world = World::new().await;
    let own = world.wallet("own", 0).await;
    let operators = create(&world, json!({ "url": URL })).await;
    let (_, holder) = world.admin_key(Role::HolderAdmin, reach(&own)).await;
    let call = Call::post("/webhooks", &json!({ "url": URL })).bearer(&holder);
    let made = world.send(call).await.json();
    assert_eq!(made["wallet_id"], json!(own), "{made}");
    let listed = world.send(Call::get("/webhooks").bearer(&holder)).await.json();
    let ids: Vec<_> = listed["data"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, [&made["id"]]);
    let hidden = world.send(Call::get(&path(&operators, "")).bearer(&holder)).await;
    hidden.is_error(404, "not_found");
    let (_, auditor) = world.admin_key(Role::Auditor, Reach::All).await;
    let shown = world.send(Call::get(&path(&operators, "")).bearer(&auditor)).await;
    assert_eq!(shown.json()["url"], "https://hooks.example.com", "the path is not the auditor's");
    let all = world.get(&format!("/webhooks?wallet_id={own}")).await.json();
    assert_eq!(all["data"].as_array().unwrap().len(), 1, "{all}");
}

#[tokio::test]
async fn a_late_repetition_is_answered_whatever_has_become_of_the_address() {
    let names = Arc::new(Names::default());
    let world = over(&names).await;
    let ask = Call::post("/webhooks", &json!({ "url": URL })).bearer(&world.owner);
    let made = world.send(ask.clone()).await.json();
    let body = json!({ "url": "https://other.example.com/in" });
    let edit = Call::post(&path(&made, ""), &body).method("PATCH").bearer(&world.owner);
    let edited = world.send(edit.clone()).await.json();
    names.have_moved.store(true, Ordering::Relaxed);
    let looked_up = names.looked_up.load(Ordering::Relaxed);
    let again = world.send(ask.clone()).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!(again.json()["id"], made["id"]);
    let again = world.send(edit.clone()).await;
    assert_eq!((again.status, again.json()), (200, edited), "{again:?}");
    // A bound key with another request is a conflict, whatever address that one has.
    let other = ask.clone().body(json!({ "url": "https://third.example.com" }).to_string());
    world.send(other).await.is_error(409, "idempotency_key_conflict");
    assert_eq!(names.looked_up.load(Ordering::Relaxed), looked_up, "no name is looked up again");
    for first in [ask, edit] {
        let refused = world.send(first.key(&crate::world::key())).await;
        refused.is_about(400, "invalid_value", "url");
        let message = refused.json()["error"]["message"].to_string();
        assert!(message.starts_with("\"https://"), "{message}");
    }
}

#[tokio::test]
async fn no_address_tells_a_holder_of_another_wallet_s_webhook() {
    let names = Arc::new(Names::default());
    let world = over(&names).await;
    let (own, other) = (world.wallet("own", 0).await, world.wallet("other", 0).await);
    let (_, holder) = world.admin_key(Role::HolderAdmin, reach(&own)).await;
    let operators = create(&world, json!({ "url": URL })).await;
    let others = create(&world, json!({ "url": URL, "wallet_id": other })).await;
    let nobodys = json!({ "id": "018f3f6e-7a34-7c3e-9a51-0f8e6d2b4c11" });
    names.have_moved.store(true, Ordering::Relaxed);
    let looked_up = names.looked_up.load(Ordering::Relaxed);
    let mut answers = Vec::new();
    for webhook in [&operators, &others, &nobodys] {
        for body in [json!({ "url": URL }), json!({ "url": "http://10.0.0.1" }), json!({})] {
            let edit = Call::post(&path(webhook, ""), &body).method("PATCH").bearer(&holder);
            let refused = world.send(edit).await;
            refused.is_error(404, "not_found");
            answers.push(refused.body);
        }
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(names.looked_up.load(Ordering::Relaxed), looked_up, "no name is looked up for them");
    let elsewhere = json!({ "url": "http://10.0.0.1", "wallet_id": other });
    let refused = world.send(Call::post("/webhooks", &elsewhere).bearer(&holder)).await;
    refused.is_error(404, "not_found");
}
