//! API keys: secrets told once, limits, all or none, and the bound of whoever is no owner.

use std::time::Duration;

use holdfast_accounts::{KeyOrder, Principal, Reference, Request as AccountRequest};
use holdfast_domain::admin::{Reach, Role};
use holdfast_domain::credential::Grant;
use holdfast_domain::{CommandKey, Journal as _, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::{Call, Reply, World, reach};

async fn patch(world: &World, id: &str, body: &Value) -> Reply {
    let ask = Call::post(&format!("/api_keys/{id}"), body).method("PATCH");
    world.send(ask.bearer(&world.owner)).await
}

#[tokio::test]
async fn a_secret_is_told_once() {
    let world = World::offering(&["acme/large-1"]).await;
    let wallet = world.wallet("acme", 0).await;
    let body = json!({
        "wallet_id": wallet, "name": "laptop", "requests_per_minute": 60, "spend_micros": 500,
        "spend_window": "month", "models": ["acme/large-1"], "balance": "hidden",
        "ends_at": "2100-01-01T00:00:00+01:00", "reason": "a customer's wish",
    });
    let ask = Call::post("/api_keys", &body).bearer(&world.owner);
    let issued = world.send(ask.clone()).await;
    assert_eq!(issued.status, 201, "{issued:?}");
    let issued = issued.json();
    assert!(issued["key"].as_str().unwrap().starts_with("hfk_"));
    assert!(issued.get("notice").is_none());
    for (member, value) in [
        ("name", json!("laptop")),
        ("requests_per_minute", json!(60)),
        ("tokens_per_minute", json!(null)),
        ("spend_window", json!("month")),
        ("models", json!(["acme/large-1"])),
        ("balance", json!("hidden")),
        ("usage", json!("key")),
        ("ends_at", json!("2099-12-31T23:00:00.000000Z")),
    ] {
        assert_eq!(issued[member], value, "{member}");
    }
    let again = world.send(ask).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    let again = again.json();
    assert_eq!((&again["id"], &again["key"]), (&issued["id"], &json!(null)));
    assert!(again["notice"].as_str().unwrap().contains("/rotate"), "{again}");
    let id = issued["id"].as_str().unwrap();
    let secret = issued["key"].as_str().unwrap();
    for path in [format!("/api_keys/{id}"), "/api_keys".to_owned()] {
        let shown = world.get(&path).await;
        assert!(!String::from_utf8_lossy(&shown.body).contains(secret), "{shown:?}");
    }
    let rotate = format!("/api_keys/{id}/rotate");
    let rotated = world.post(&rotate, json!({ "reason": "lost" })).await.json();
    assert!(rotated["key"].is_string() && rotated["key"] != issued["key"]);
    let listed = world.get(&format!("/api_keys?wallet_id={wallet}")).await.json();
    assert_eq!(listed["data"][0]["credentials"].as_array().unwrap().len(), 2, "{listed}");
}

#[tokio::test]
async fn keys_are_issued_all_or_none() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await;
    let body = |names: &[&str]| {
        let keys: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
        json!({ "wallet_id": wallet, "keys": keys, "reason": "a class" })
    };
    let twice = world.post("/api_keys/bulk", body(&["a", "b", "a"])).await;
    twice.is_about(409, "name_taken", "name");
    let dry = world.post("/api_keys/bulk?dry_run=true", body(&["a", "b"])).await;
    assert_eq!(dry.status, 200, "{dry:?}");
    let would = dry.json()["would"]["data"].clone();
    assert_eq!((would[0]["name"].clone(), would[0]["key"].clone()), (json!("a"), json!(null)));
    let none = world.get("/api_keys").await.json();
    assert_eq!(none["data"], json!([]), "neither the refused nor the rehearsed ones");
    let issued = world.post("/api_keys/bulk", body(&["a", "b"])).await;
    assert_eq!(issued.status, 201, "{issued:?}");
    let names: Vec<_> =
        issued.json()["data"].as_array().unwrap().iter().map(|key| key["name"].clone()).collect();
    assert_eq!(names, ["a", "b"]);
    let empty = world.post("/api_keys/bulk", body(&[])).await;
    empty.is_about(400, "invalid_value", "keys");
    let many = vec!["x"; 101];
    world.post("/api_keys/bulk", body(&many)).await.is_about(400, "invalid_value", "keys");
    let odd = json!({ "wallet_id": wallet, "keys": [{ "concurrency": 0 }], "reason": "a class" });
    world.post("/api_keys/bulk", odd).await.is_about(400, "invalid_value", "concurrency");
}

#[tokio::test]
async fn an_edit_changes_what_it_names_and_removes_what_is_null() {
    let world = World::offering(&["acme/large-1"]).await;
    let wallet = world.wallet("acme", 0).await;
    let id = world.api_key(&wallet).await;
    let limits = json!({
        "concurrency": 3, "spend_micros": 9, "spend_window": "total", "models": ["acme/large-1"],
        "ends_at": "2100-01-01T00:00:00Z", "usage": "wallet",
    });
    let edited = patch(&world, &id, &limits).await.json();
    for member in ["concurrency", "spend_micros", "spend_window", "models", "usage"] {
        assert_eq!(edited[member], limits[member], "{member}");
    }
    let freed = patch(&world, &id, &json!({ "concurrency": null, "models": null })).await.json();
    assert_eq!((&freed["concurrency"], &freed["models"]), (&json!(null), &json!(null)));
    assert_eq!((&freed["spend_micros"], &freed["usage"]), (&json!(9), &json!("wallet")));
    patch(&world, &id, &json!({ "models": [] })).await.is_about(400, "invalid_value", "models");
    let suspend = format!("/api_keys/{id}/suspend");
    let suspended = world.post(&suspend, json!({ "reason": "looks stolen" })).await.json();
    assert!(suspended["suspended_at"].is_string());
    let resumed = world.post(&format!("/api_keys/{id}/resume"), json!({})).await.json();
    assert_eq!(resumed["suspended_at"], json!(null));
    let shown = world.get(&format!("/api_keys/{id}")).await;
    assert_eq!(shown.header("etag"), Some("\"4\""), "{shown:?}");
    assert!(shown.json()["counters"].is_array());
    let revoked = world.post(&format!("/api_keys/{id}/revoke"), json!({})).await.json();
    assert!(revoked["revoked_at"].is_string());
    patch(&world, &id, &json!({ "concurrency": 1 })).await.is_error(409, "api_key_revoked");
    let rotate = world.post(&format!("/api_keys/{id}/rotate"), json!({ "reason": "x" })).await;
    rotate.is_error(409, "api_key_ended");
}

#[tokio::test]
async fn an_operator_issues_within_the_wallets_bound() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await;
    let (_, operator) = world.admin_key(Role::Operator, Reach::All).await;
    let issue = |body: &Value| world.send(Call::post("/api_keys", body).bearer(&operator));
    let body = json!({
        "wallet_id": wallet, "reason": "a wish", "spend_micros": 10, "spend_window": "day",
    });
    let unset = issue(&body).await;
    unset.is_error(403, "bound_not_set");
    assert!(unset.json()["error"]["message"].to_string().contains("key_spend"));
    let bound = json!({ "key_spend_micros": 10, "key_spend_window": "day" });
    let edit = Call::post(&format!("/wallets/{wallet}"), &bound).method("PATCH");
    assert_eq!(world.send(edit.bearer(&world.owner)).await.status, 200);
    assert_eq!(issue(&body).await.status, 201);
    let more = json!({
        "wallet_id": wallet, "reason": "a wish", "spend_micros": 11, "spend_window": "day",
    });
    issue(&more).await.is_about(400, "invalid_value", "spend_micros");
    let silent = json!({ "wallet_id": wallet, "spend_micros": 10, "spend_window": "day" });
    issue(&silent).await.is_about(400, "invalid_value", "reason");
}

#[tokio::test]
async fn who_is_bound_leaves_no_key_beyond_the_wallets_bound() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await;
    let id = world.api_key(&wallet).await;
    let path = format!("/api_keys/{id}");
    let (_, operator) = world.admin_key(Role::Operator, Reach::All).await;
    let (_, developer) = world.admin_key(Role::HolderDeveloper, reach(&wallet)).await;
    let send = |ask: Call, bearer: &str| world.send(ask.bearer(bearer));
    let edit = |body: &Value| Call::post(&path, body).method("PATCH");
    let spend = |micros: i64| json!({ "spend_micros": micros, "spend_window": "day" });
    let issue = Call::post("/api_keys", &json!({ "wallet_id": wallet }));
    let rotate = || {
        let body = json!({ "reason": "was lost", "grace_seconds": 3_600 });
        Call::post(&format!("{path}/rotate"), &body)
    };
    let credentials = async || {
        let listed = world.get(&format!("/api_keys?wallet_id={wallet}")).await.json();
        listed["data"][0]["credentials"].as_array().unwrap().len()
    };
    for bearer in [&operator, &developer] {
        send(rotate(), bearer).await.is_error(403, "bound_not_set");
        let unset = send(edit(&spend(1)), bearer).await;
        unset.is_error(403, "bound_not_set");
        assert!(unset.json()["error"]["message"].to_string().contains("key_spend"), "{unset:?}");
    }
    // A holder's own role wants no reason, and is bound all the same.
    send(issue.clone(), &developer).await.is_error(403, "bound_not_set");
    let bound = json!({ "key_spend_micros": 10, "key_spend_window": "day" });
    let set = Call::post(&format!("/wallets/{wallet}"), &bound).method("PATCH");
    assert_eq!(send(set, &world.owner).await.status, 200);
    for bearer in [&operator, &developer] {
        // The bearer of an unlimited key is worth more than the bound.
        send(rotate(), bearer).await.is_about(400, "invalid_value", "spend_micros");
        assert_eq!(credentials().await, 1, "no refused rotation leaves a credential");
        // Whatever is edited, the key has a bound after it.
        for body in [spend(11), json!({ "concurrency": 9 }), json!({ "name": "mine" })] {
            send(edit(&body), bearer).await.is_about(400, "invalid_value", "spend_micros");
        }
        assert_eq!(send(edit(&spend(10)), bearer).await.status, 200);
        assert_eq!(send(edit(&json!({ "concurrency": 9 })), bearer).await.status, 200);
        let lifted = json!({ "spend_micros": null, "spend_window": null });
        send(edit(&lifted), bearer).await.is_about(400, "invalid_value", "spend_micros");
        assert_eq!(send(edit(&lifted), &world.owner).await.status, 200);
    }
    send(issue, &developer).await.is_about(400, "invalid_value", "spend_micros");
    assert_eq!(send(edit(&spend(10)), &world.owner).await.status, 200);
    for (rotations, bearer) in [(2, &operator), (3, &developer)] {
        assert_eq!(send(rotate(), bearer).await.status, 200);
        assert_eq!(credentials().await, rotations);
    }
    assert_eq!(send(edit(&spend(11)), &world.owner).await.status, 200);
    send(rotate(), &developer).await.is_about(400, "invalid_value", "spend_micros");
    assert_eq!(send(rotate(), &world.owner).await.status, 200, "an owner is not bounded");
}

#[tokio::test]
async fn an_operator_says_why_a_key_is_rotated_and_its_holder_need_not() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await;
    let id = world.api_key(&wallet).await;
    let (_, operator) = world.admin_key(Role::Operator, Reach::All).await;
    let (_, developer) = world.admin_key(Role::HolderDeveloper, reach(&wallet)).await;
    let bound = json!({ "key_spend_micros": 10, "key_spend_window": "day" });
    let spend = json!({ "spend_micros": 10, "spend_window": "day" });
    for (path, body) in [(format!("/wallets/{wallet}"), bound), (format!("/api_keys/{id}"), spend)]
    {
        let edit = Call::post(&path, &body).method("PATCH").bearer(&world.owner);
        assert_eq!(world.send(edit).await.status, 200);
    }
    let rotate = |body: &Value| Call::post(&format!("/api_keys/{id}/rotate"), body);
    let silent = world.send(rotate(&json!({})).bearer(&operator)).await;
    silent.is_about(400, "invalid_value", "reason");
    let listed = world.get(&format!("/api_keys?wallet_id={wallet}")).await.json();
    assert_eq!(listed["data"][0]["credentials"].as_array().unwrap().len(), 1, "{listed}");
    let told = world.send(rotate(&json!({ "reason": "was lost" })).bearer(&operator)).await;
    assert_eq!(told.status, 200, "{told:?}");
    let own = world.send(rotate(&json!({})).bearer(&developer)).await;
    assert_eq!(own.status, 200, "{own:?}");
}

#[tokio::test]
async fn an_edit_of_what_has_changed_since_changes_nothing() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await;
    let path = format!("/api_keys/{}", world.api_key(&wallet).await);
    let seen = world.get(&path).await.header("etag").unwrap().to_owned();
    let edit = |concurrency: u64| {
        let body = json!({ "concurrency": concurrency });
        let edit = Call::post(&path, &body).method("PATCH").header("if-match", &seen);
        world.send(edit.bearer(&world.owner))
    };
    let first = edit(3).await;
    assert_eq!((first.status, first.header("etag")), (200, Some("\"1\"")), "{first:?}");
    let late = edit(4).await;
    late.is_error(412, "edit_conflict");
    assert_eq!(late.json()["error"]["edited"], 1, "{late:?}");
    assert_eq!(world.get(&path).await.json()["concurrency"], 3);
}

#[tokio::test]
async fn a_late_repetition_is_answered_whatever_has_become_of_ends_and_bounds() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await;
    let (_, operator) = world.admin_key(Role::Operator, Reach::All).await;
    let bound = |micros: Value, window: Value| {
        let body = json!({ "key_spend_micros": micros, "key_spend_window": window });
        let edit = Call::post(&format!("/wallets/{wallet}"), &body).method("PATCH");
        world.send(edit.bearer(&world.owner))
    };
    assert_eq!(bound(json!(10), json!("day")).await.status, 200);
    let body = json!({
        "wallet_id": wallet, "reason": "a wish", "spend_micros": 10, "spend_window": "day",
    });
    let issue = Call::post("/api_keys", &body).bearer(&operator);
    let issued = world.send(issue.clone()).await;
    assert_eq!(issued.status, 201, "{issued:?}");
    let id = issued.json()["id"].clone();
    let raised = json!({ "concurrency": 3 });
    let path = format!("/api_keys/{}", id.as_str().unwrap());
    let edit = Call::post(&path, &raised).method("PATCH").bearer(&operator);
    assert_eq!(world.send(edit.clone()).await.status, 200);
    assert_eq!(bound(json!(null), json!(null)).await.status, 200);
    let again = world.send(issue).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!((&again.json()["id"], &again.json()["key"]), (&id, &json!(null)));
    let again = world.send(edit).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, Some("true")));
    let unset = world.send(Call::post("/api_keys", &body).bearer(&operator)).await;
    unset.is_error(403, "bound_not_set");
    // One request, sent once before its end and once after it.
    let request = AccountRequest::new(CommandKey::from(Uuid::new_v4()), &[b"test"], None);
    let (accounts, local) = (&world.accounts, Principal::local());
    let later = world.store.clock().await.unwrap().after(Duration::from_secs(3_600));
    let payer: Reference = wallet.parse().unwrap();
    for (ends_at, replayed) in [(later, false), (Timestamp::from_micros(1), true)] {
        let grant = Grant { ends_at: Some(ends_at), ..Grant::default() };
        let order = KeyOrder { name: None, external_id: None, grant };
        let issued = accounts.issue_api_keys(&local, &request, &payer, &[order]).await.unwrap();
        assert_eq!((issued.replayed, issued.thing.len()), (replayed, 1));
    }
    let passed = json!({ "wallet_id": wallet, "reason": "x", "ends_at": "2020-01-01T00:00:00Z" });
    world.post("/api_keys", passed).await.is_about(400, "invalid_value", "ends_at");
}
