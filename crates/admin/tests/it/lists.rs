//! Lists: newest first, every row once, and cursors that belong to their filters.

use std::sync::Arc;

use holdfast_accounts::Accounts;
use holdfast_domain::admin::{Reach, Role};
use holdfast_domain::secret::ServerSecret;
use holdfast_testkit::NoPause;
use serde_json::{Value, json};

use crate::world::{Call, World, reach};

fn names(list: &Value) -> Vec<String> {
    let rows = list["data"].as_array().unwrap();
    rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_walk_sees_every_row_once_and_the_newest_first() {
    let world = World::new().await;
    for n in 0..5 {
        world.wallet(&format!("wallet-{n}"), 0).await;
    }
    let (mut seen, mut path) = (Vec::new(), "/wallets?limit=2".to_owned());
    loop {
        let page = world.get(&path).await.json();
        seen.extend(names(&page));
        assert_eq!(page["has_more"], json!(page["next_cursor"].is_string()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        path = format!("/wallets?limit=2&cursor={next}");
    }
    assert_eq!(seen, ["wallet-4", "wallet-3", "wallet-2", "wallet-1", "wallet-0"]);
    let named = world.get("/wallets?name=wallet-3").await.json();
    assert_eq!(names(&named), ["wallet-3"]);
    assert_eq!(world.get("/wallets?name=nobody").await.json()["data"], json!([]));
}

#[tokio::test]
async fn wallets_are_found_by_what_they_have() {
    let world = World::new().await;
    for micros in [0, 5, 10, 15] {
        world.wallet(&format!("wallet-{micros}"), micros).await;
    }
    for (filter, expected) in [
        ("available_below_micros=10", vec!["wallet-5", "wallet-0"]),
        ("available_from_micros=10", vec!["wallet-15", "wallet-10"]),
        ("available_from_micros=5&available_below_micros=15", vec!["wallet-10", "wallet-5"]),
        ("available_below_micros=1&name=wallet-0", vec!["wallet-0"]),
        ("available_below_micros=1&name=wallet-5", vec![]),
        ("available_from_micros=16", vec![]),
    ] {
        let (mut seen, path) = (Vec::new(), format!("/wallets?limit=1&{filter}"));
        let mut page = path.clone();
        loop {
            let told = world.get(&page).await.json();
            seen.extend(names(&told));
            let Some(next) = told["next_cursor"].as_str() else { break };
            page = format!("{path}&cursor={next}");
        }
        assert_eq!(seen, expected, "{filter}");
    }
}

#[tokio::test]
async fn a_cursor_of_other_filters_is_refused() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await;
    for _ in 0..2 {
        world.api_key(&wallet).await;
    }
    let page = world.get("/api_keys?limit=1").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(world.get(&format!("/api_keys?cursor={cursor}")).await.status, 200);
    for other in [
        format!("/api_keys?cursor={cursor}&state=revoked"),
        format!("/api_keys?cursor={cursor}&wallet_id={wallet}"),
        format!("/wallets?cursor={cursor}"),
        format!("/operations?cursor={cursor}"),
        "/api_keys?cursor=7".to_owned(),
        "/api_keys?cursor=".to_owned(),
        "/api_keys?cursor=00000000000000070011223344556677".to_owned(),
    ] {
        world.get(&other).await.is_error(400, "invalid_cursor");
    }
}

#[tokio::test]
async fn a_cursor_is_as_described_and_opens_for_no_other_reach() {
    let world = World::new().await;
    let [ours, theirs] = [world.wallet("acme", 0).await, world.wallet("other", 0).await];
    for wallet in [&ours, &ours, &theirs, &theirs] {
        world.api_key(wallet).await;
    }
    let (_, viewer) = world.admin_key(Role::HolderViewer, reach(&ours)).await;
    let (_, stranger) = world.admin_key(Role::HolderViewer, reach(&theirs)).await;
    let ask = async |bearer: &str, query: &str| {
        world.send(Call::get(&format!("/api_keys?{query}")).bearer(bearer)).await
    };
    let first = ask(&viewer, "limit=1").await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let described = world.send(Call::get("").path("/admin/openapi.json")).await.json();
    let parameters = described["paths"]["/admin/v1/api_keys"]["get"]["parameters"].clone();
    let of_cursor = |it: &&Value| it["name"] == "cursor";
    let parameter = parameters.as_array().unwrap().iter().find(of_cursor).unwrap();
    let is_in = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    assert_eq!(parameter["schema"]["pattern"], "^[A-Za-z0-9_-]{48}$");
    assert!(cursor.len() == 48 && cursor.chars().all(is_in), "{cursor}");
    assert_ne!(ask(&viewer, "limit=1").await.json()["next_cursor"], json!(cursor), "two alike");
    let own = ask(&viewer, &format!("cursor={cursor}")).await.json();
    assert_eq!(own["data"].as_array().unwrap().len(), 1);
    for foreign in [&stranger, &world.owner] {
        ask(foreign, &format!("cursor={cursor}")).await.is_error(400, "invalid_cursor");
    }
}

#[tokio::test]
async fn cursors_outlive_a_rotation_while_the_secret_is_listed() {
    let world = World::new().await;
    for name in ["acme", "other"] {
        world.wallet(name, 5).await;
    }
    let page = world.get("/events?limit=1").await.json();
    let path = format!("/events?cursor={}", page["next_cursor"].as_str().unwrap());
    let store = world.store.clone();
    let over = |listed: &[u8]| {
        let secret = |byte: &u8| ServerSecret::new(&[*byte; 32]).unwrap();
        let secrets: Vec<_> = listed.iter().map(secret).collect();
        Accounts::new(Arc::new(store.clone()), secrets, Arc::new(NoPause))
    };
    let world = world.over(over(&[8, 7]));
    assert_eq!(world.get(&path).await.status, 200);
    // Without the listed secret the owner's key is unknown too: a second key of the new one reads on.
    let world = world.over(over(&[8]));
    let (_, owner) = world.admin_key(Role::Owner, Reach::All).await;
    world.send(Call::get(&path).bearer(&owner)).await.is_error(400, "invalid_cursor");
}

#[tokio::test]
async fn wallets_are_filtered_by_name_external_id_state_and_balance() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for (name, funds) in [("rich", 900), ("poor", 0), ("late", 300), ("gone", 0)] {
        let id = world.wallet(name, funds).await;
        let edit = json!({ "external_id": format!("customer {name}") });
        let edit = Call::post(&format!("/wallets/{id}"), &edit).method("PATCH");
        assert_eq!(world.send(edit.bearer(&world.owner)).await.status, 200);
        ids.push(id);
    }
    let [_, poor, late, gone] = ids.as_slice() else { panic!("{ids:?}") };
    world.post(&format!("/wallets/{late}/suspend"), json!({ "reason": "unpaid" })).await;
    assert_eq!(world.post(&format!("/wallets/{gone}/close"), json!({})).await.status, 200);
    for (filter, expected) in [
        ("", vec!["gone", "late", "poor", "rich"]),
        ("name=poor", vec!["poor"]),
        ("name=nobody", vec![]),
        ("external_id=customer%20late", vec!["late"]),
        ("external_id=customer", vec![]),
        ("state=active", vec!["poor", "rich"]),
        ("state=suspended", vec!["late"]),
        ("state=closed", vec!["gone"]),
        ("available_from_micros=300", vec!["late", "rich"]),
        ("available_below_micros=300", vec!["gone", "poor"]),
        ("state=active&available_below_micros=300", vec!["poor"]),
        ("name=rich&state=suspended", vec![]),
        ("external_id=customer%20rich&available_from_micros=901", vec![]),
    ] {
        let listed = world.get(&format!("/wallets?{filter}")).await.json();
        let names: Vec<_> =
            listed["data"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
        assert_eq!(names, expected, "{filter}");
    }
    let (_, viewer) = world.admin_key(Role::HolderViewer, reach(poor)).await;
    for (filter, count) in [("name=poor", 1), ("name=rich", 0), ("state=suspended", 0)] {
        let told = world.send(Call::get(&format!("/wallets?{filter}")).bearer(&viewer)).await;
        assert_eq!(told.json()["data"].as_array().unwrap().len(), count, "{filter}");
    }
}

#[tokio::test]
async fn api_keys_are_filtered_by_the_model_that_they_may_use() {
    let world = World::offering(&["acme/large-1", "acme/large-10", "acme/small-1"]).await;
    let wallet = world.wallet("acme", 0).await;
    for (name, models) in [
        ("all", json!(null)),
        ("one", json!(["acme/large-1"])),
        ("two", json!(["acme/large-1", "acme/small-1"])),
        ("other", json!(["acme/large-10"])),
    ] {
        let body = json!({ "wallet_id": wallet, "name": name, "models": models, "reason": "x" });
        assert_eq!(world.post("/api_keys", body).await.status, 201);
    }
    for (model, expected) in [
        ("acme/large-1", vec!["two", "one", "all"]),
        ("acme/small-1", vec!["two", "all"]),
        ("acme/large-10", vec!["other", "all"]),
        ("acme/large_1", vec!["all"]),
    ] {
        let listed = world.get(&format!("/api_keys?model={model}&wallet_id={wallet}")).await.json();
        let names: Vec<_> =
            listed["data"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
        assert_eq!(names, expected, "{model}");
    }
}

#[tokio::test]
async fn bad_filters_are_named() {
    let world = World::new().await;
    for (path, param) in [
        ("/wallets?limit=0", "limit"),
        ("/wallets?limit=201", "limit"),
        ("/wallets?limit=many", "limit"),
        ("/wallets?nmae=a", "nmae"),
        ("/api_keys?wallet_id=acme", "wallet_id"),
        ("/api_keys?state=dead", "state"),
        ("/api_keys?model=large", "model"),
        ("/wallets?state=dead", "state"),
        ("/wallets?external_id=", "external_id"),
        ("/operations?created_from=yesterday", "created_from"),
        ("/operations?request_key=1", "request_key"),
    ] {
        world.get(path).await.is_about(400, "invalid_value", param);
    }
}
