//! Events as a client reads them, and as the manual says that they are.

use holdfast_domain::admin::Role;
use holdfast_domain::admin::event::EventKind;
use serde_json::{Value, json};

use crate::world::{Call, World, deposit, reach};

fn kinds(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn what_happened_is_listed_shown_and_filtered() {
    let world = World::new().await;
    let (own, other) = (world.wallet("own", 1_000).await, world.wallet("other", 5).await);
    world.api_key(&own).await;
    let suspended = json!({ "reason": "has not paid" });
    world.post(&format!("/wallets/{own}/suspend"), suspended).await;
    let mut conflict = deposit(&own, 7);
    world.post("/deposits", conflict.clone()).await;
    conflict["amount_micros"] = json!(8);
    world.post("/deposits", conflict).await.is_error(409, "external_reference_conflict");
    let all = world.get("/events").await.json();
    let expected = [
        "deposit.conflict",
        "wallet.credited",
        "wallet.suspended",
        "api_key.issued",
        "wallet.credited",
        "wallet.credited",
    ];
    assert_eq!(kinds(&all), expected, "newest first");
    let credited = &all["data"][1];
    assert_eq!(credited["wallet_id"], json!(own));
    assert_eq!(credited["data"]["amount_micros"], 7);
    let id = credited["id"].as_str().unwrap();
    assert_eq!(world.get(&format!("/events/{id}")).await.json(), *credited);
    let of_wallet =
        world.get(&format!("/events?wallet_id={own}&kind=wallet.suspended")).await.json();
    assert_eq!(kinds(&of_wallet), ["wallet.suspended"]);
    assert_eq!(of_wallet["data"][0]["data"]["reason"], "has not paid");
    let of_kind = world.get("/events?kind=wallet.credited&limit=2").await.json();
    assert_eq!((kinds(&of_kind).len(), &of_kind["has_more"]), (2, &json!(true)));
    let cursor = of_kind["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/events?kind=wallet.credited&limit=2&cursor={cursor}")).await;
    assert_eq!(rest.json()["data"][0]["wallet_id"], json!(own));
    world.get(&format!("/events?cursor={cursor}")).await.is_error(400, "invalid_cursor");
    world.get("/events?kind=wallet.lost").await.is_about(400, "invalid_value", "kind");

    // A holder's events are those of the own wallet: neither another's nor the operator's alone.
    let (_, bearer) = world.admin_key(Role::HolderViewer, reach(&own)).await;
    let seen = world.send(Call::get("/events").bearer(&bearer)).await.json();
    assert_eq!(kinds(&seen), expected[1..5], "one deposit is the other wallet's");
    for hidden in [&all["data"][0], &all["data"][4]] {
        let path = format!("/events/{}", hidden["id"].as_str().unwrap());
        if hidden["wallet_id"] == json!(own) {
            continue;
        }
        world.send(Call::get(&path).bearer(&bearer)).await.is_error(404, "not_found");
    }
    let path = format!("/events?wallet_id={other}");
    assert_eq!(world.send(Call::get(&path).bearer(&bearer)).await.json()["data"], json!([]));
}

#[test]
fn the_manual_has_each_kind_with_its_members() {
    let manual = include_str!("../../../../docs/reference/events.md");
    let rows: Vec<&str> = manual.lines().filter(|line| line.starts_with("| `")).collect();
    for kind in EventKind::ALL {
        let begins = format!("| `{kind}` |");
        let row = rows.iter().find(|row| row.starts_with(&begins));
        let row = row.unwrap_or_else(|| panic!("docs/reference/events.md has no row of {kind}"));
        let members: Vec<_> = kind.members().iter().map(|name| format!("`{name}`")).collect();
        let ends = format!("| {} |", members.join(" "));
        assert!(row.ends_with(&ends), "docs/reference/events.md: {kind} has {}", members.join(" "));
    }
}
