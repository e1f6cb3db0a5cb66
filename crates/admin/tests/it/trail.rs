//! Lists of administration: postings, admin keys and the audit log, newest first, each row once.

use holdfast_domain::admin::{Reach, Role};
use serde_json::{Value, json};

use crate::operations::completed;
use crate::world::{Call, World, deposit, key, reach};

/// Walks a list to its end, two rows a page.
async fn walk(world: &World, path: &str) -> Vec<Value> {
    let joint = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{joint}limit=2");
    let (mut seen, mut page) = (Vec::new(), path.clone());
    loop {
        let told = world.get(&page).await.json();
        seen.extend(told["data"].as_array().unwrap().iter().cloned());
        let Some(next) = told["next_cursor"].as_str() else { return seen };
        page = format!("{path}&cursor={next}");
    }
}

fn members<'v>(rows: &'v [Value], member: &str) -> Vec<&'v Value> {
    rows.iter().map(|row| &row[member]).collect()
}

#[tokio::test]
async fn postings_are_listed_by_kind_and_wallet_with_what_they_say() {
    let world = World::new().await;
    let (own, other) = (world.wallet("own", 1_000).await, world.wallet("other", 0).await);
    for micros in [1, 2, 3] {
        world.post("/deposits", deposit(&own, micros)).await;
    }
    let mut noted = deposit(&other, 4);
    noted["note"] = json!("invoice 7");
    noted["reason"] = json!("paid in advance");
    let noted = (world.post("/deposits", noted.clone()).await.json(), noted);
    let all = walk(&world, "/deposits").await;
    assert_eq!(members(&all, "amount_micros"), [4, 3, 2, 1, 1_000]);
    assert_eq!(all[0]["id"], noted.0["id"]);
    for member in ["source", "external_reference", "note", "reason", "wallet_id"] {
        assert_eq!(all[0][member], noted.1[member], "{}", all[0]);
    }
    assert!(all.iter().all(|row| row["created_at"].is_string() && row["kind"] == "deposit"));
    let owner = world.get("/admin_keys?limit=1").await.json()["data"][0]["id"].clone();
    let actor = json!(format!("admin_key:{}", owner.as_str().unwrap()));
    assert_eq!(all[0]["actor"], actor);
    let shown = world.get(&format!("/deposits/{}", all[0]["id"].as_str().unwrap())).await.json();
    for made in [&noted.0, &shown] {
        for (member, value) in all[0].as_object().unwrap() {
            assert_eq!(&made[member], value, "{member} of {made}");
        }
        assert_eq!(made["wallet"]["id"], json!(other));
    }
    let (_, viewer) = world.admin_key(Role::HolderViewer, reach(&other)).await;
    let told = world.send(Call::get("/deposits").bearer(&viewer)).await.json();
    assert_eq!(
        (&told["data"][0]["note"], &told["data"][0]["actor"]),
        (&noted.1["note"], &json!(null))
    );
    let of_own = walk(&world, &format!("/deposits?wallet_id={own}")).await;
    assert_eq!(members(&of_own, "amount_micros"), [3, 2, 1, 1_000]);

    let body = json!({ "wallet_id": own, "amount_micros": -5, "reason": "drift", "note": "n" });
    world.post("/adjustments", body).await;
    let adjusted = walk(&world, "/adjustments").await;
    assert_eq!((&adjusted[0]["reason"], &adjusted[0]["note"]), (&json!("drift"), &json!("n")));
    let api_key = world.api_key(&own).await;
    let operation = completed(&world, &own, &api_key, 20).await.id.to_string();
    let refund = json!({ "operation_id": operation, "amount_micros": 1, "reason": "goodwill" });
    assert_eq!(world.post("/refunds", refund).await.status, 201);
    let refunds = walk(&world, &format!("/refunds?wallet_id={own}")).await;
    assert_eq!(refunds.len(), 1);
    assert_eq!(
        (&refunds[0]["operation_id"], &refunds[0]["reason"]),
        (&json!(operation), &json!("goodwill"))
    );
    let page = world.get("/deposits?limit=1").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    world.get(&format!("/refunds?cursor={cursor}")).await.is_error(400, "invalid_cursor");
}

#[tokio::test]
async fn admin_keys_are_listed_with_those_that_have_ended_and_never_with_a_secret() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await;
    let (viewer, bearer) = world.admin_key(Role::HolderViewer, reach(&wallet)).await;
    let (gone, _) = world.admin_key(Role::Support, Reach::All).await;
    let path = format!("/admin_keys/{gone}");
    world.post(&format!("{path}/revoke"), json!({})).await;
    let all = walk(&world, "/admin_keys").await;
    assert_eq!(members(&all, "role"), ["support", "holder_viewer", "owner"]);
    let states = [("in_force", vec!["holder_viewer", "owner"]), ("ended", vec!["support"])];
    for (state, roles) in states {
        let listed = walk(&world, &format!("/admin_keys?state={state}")).await;
        assert_eq!(members(&listed, "role"), roles);
    }
    let shown = world.get(&path).await;
    assert!(shown.json()["revoked_at"].is_string(), "{shown:?}");
    assert_eq!(shown.json()["created_by"], "local");
    let shown = world.get(&format!("/admin_keys/{viewer}")).await;
    assert_eq!(shown.json()["wallet_id"], wallet.as_str(), "{shown:?}");
    let secret = bearer.rsplit('_').next().unwrap();
    for reply in [shown, world.get("/admin_keys").await] {
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(!text.contains(secret) && !text.contains("verifier"), "{text}");
    }
    world.get(&format!("/admin_keys/{}", key())).await.is_error(404, "not_found");
}

#[tokio::test]
async fn the_trail_says_who_did_what_to_what_and_why() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 5).await;
    let path = format!("/wallets/{wallet}/suspend");
    let body = json!({ "reason": "has not paid" });
    world.post(&path, body).await;
    let all = walk(&world, "/audit").await;
    let numbers: Vec<_> = all.iter().map(|row| row["seq"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| *a == b + 1), "no gaps, newest first: {numbers:?}");
    assert_eq!(numbers.last(), Some(&1));
    let row = &all[0];
    assert_eq!(
        (&row["use_case"], &row["reason"]),
        (&json!("wallet.suspend"), &json!("has not paid"))
    );
    assert_eq!(
        (&row["thing"], &row["address"]),
        (&json!(format!("wallet:{wallet}")), &json!("192.0.2.7"))
    );
    assert_eq!(row["changes"][0]["field"], "suspended_at", "{row}");
    assert!(row["head"].as_str().unwrap().starts_with(&format!("{}:", numbers[0])), "{row}");
    let actor = row["actor"].as_str().unwrap().to_owned();
    for (filter, uses) in [
        (format!("thing=wallet:{wallet}"), vec!["wallet.suspend", "wallet.create"]),
        ("use_case=wallet.suspend".to_owned(), vec!["wallet.suspend"]),
        ("actor=local".to_owned(), vec!["admin_key.issue"]),
        (
            format!("actor={actor}&thing=wallet:{wallet}&use_case=wallet.create"),
            vec!["wallet.create"],
        ),
        (format!("actor={actor}"), vec!["wallet.suspend", "posting.deposit", "wallet.create"]),
        (format!("thing=wallet:{}", key()), vec![]),
    ] {
        let found = walk(&world, &format!("/audit?{filter}")).await;
        assert_eq!(members(&found, "use_case"), uses, "{filter}");
    }
    for (query, param) in
        [("thing=acme", "thing"), ("actor=root", "actor"), ("use_case=wallet.steal", "use_case")]
    {
        world.get(&format!("/audit?{query}")).await.is_about(400, "invalid_value", param);
    }
    let (_, auditor) = world.admin_key(Role::Auditor, Reach::All).await;
    assert_eq!(world.send(Call::get("/audit").bearer(&auditor)).await.status, 200);
}
