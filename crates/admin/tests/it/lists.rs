//! Lists: newest first, every row once, and cursors that belong to their filters.

use serde_json::{Value, json};

use crate::world::World;

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
    ] {
        world.get(&other).await.is_error(400, "invalid_cursor");
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
        ("/operations?created_from=yesterday", "created_from"),
        ("/operations?request_key=1", "request_key"),
    ] {
        world.get(path).await.is_about(400, "invalid_value", param);
    }
}
