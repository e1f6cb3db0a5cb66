//! What is on offer: models with their routes for operators, and without them for holders; price
//! versions, those to come too; nodes, those that are gone too.

use std::time::Duration;

use holdfast_domain::admin::{Reach, Role};
use holdfast_domain::ports::LeaseMode;
use holdfast_domain::secret::SettingsDigest;
use holdfast_domain::{Nodes, Prices};
use holdfast_testkit::sample;
use serde_json::{Value, json};

use crate::world::{Call, World, reach};

#[tokio::test]
async fn holders_see_models_without_a_route() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await;
    for role in Role::ALL {
        let wallets = if role.is_holder() { reach(&wallet) } else { Reach::All };
        let (_, bearer) = world.admin_key(role, wallets).await;
        let told = world.send(Call::get("/models").bearer(&bearer)).await.json();
        let model = &told["data"][0];
        assert_eq!(model["contract"], 3, "{model}");
        if role.is_holder() {
            assert_eq!(model.get("routes"), None, "{role}: {model}");
            assert!(!told.to_string().contains("upstream"), "{role}: {told}");
        } else {
            let route = &model["routes"][0];
            assert_eq!(
                (&route["name"], &route["in_flight"]),
                (&json!("upstream/large"), &json!(2))
            );
            assert_eq!(
                (&route["health"], &route["cools_for_ms"]),
                (&json!("last_resort"), &json!(1_500))
            );
        }
    }
    world.get("/models?routes=all").await.is_about(400, "invalid_value", "routes");
}

#[tokio::test]
async fn prices_are_all_that_were_ever_configured() {
    let world = World::new().await;
    let moments = ["2026-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "2026-06-01T00:00:00Z"];
    let versions = moments.map(|moment| sample::priced(moment, 7_000));
    world.store.pin(&versions).await.unwrap();
    let told = world.get("/prices").await.json();
    let rows = told["data"].as_array().unwrap();
    let begins: Vec<_> = rows.iter().map(|row| row["effective_from"].as_str().unwrap()).collect();
    assert_eq!(begins, [moments[1], moments[2], moments[0]], "the latest first: {told}");
    let row = &rows[0];
    assert_eq!((&row["currency"], &row["tiers"]), (&json!("USD"), &json!([])), "{row}");
    assert_eq!(row["micros_per_million"]["output"], 7_000, "{row}");
    let model = row["model"].as_str().unwrap();
    for (filter, count) in [
        (format!("model={model}"), 3),
        (format!("model={model}&currency=USD"), 3),
        ("model=nobody/none".to_owned(), 0),
        ("currency=EUR".to_owned(), 0),
    ] {
        let told = world.get(&format!("/prices?{filter}")).await.json();
        assert_eq!(told["data"].as_array().map(Vec::len), Some(count), "{filter}");
    }
    for (query, param) in [("model=large", "model"), ("currency=usd", "currency")] {
        world.get(&format!("/prices?{query}")).await.is_about(400, "invalid_value", param);
    }
}

#[tokio::test]
async fn nodes_are_alive_as_long_as_their_leases() {
    let world = World::new().await;
    let hour = Duration::from_secs(3_600);
    for (name, lease) in [("a", hour), ("b", Duration::ZERO)] {
        world.store.heartbeat(&sample::node(name), lease, LeaseMode::Take).await.unwrap();
    }
    let told = world.get("/nodes").await.json();
    let rows = told["data"].as_array().unwrap();
    let member = |name| rows.iter().map(|row: &Value| row[name].clone()).collect::<Vec<_>>();
    assert_eq!(member("name"), ["a", "b"], "{told}");
    assert_eq!(member("is_alive"), [true, false], "{told}");
    assert!(rows.iter().all(|row| row["incarnation"].is_string()), "{told}");
}

#[tokio::test]
async fn live_nodes_with_other_settings_are_told() {
    let world = World::new().await;
    let hour = Duration::from_secs(3_600);
    let nodes = [("a", hour), ("b", hour), ("c", hour), ("d", Duration::ZERO)];
    let nodes = nodes.map(|(name, lease)| (sample::node(name), lease));
    for (node, lease) in &nodes {
        world.store.heartbeat(node, *lease, LeaseMode::Take).await.unwrap();
    }
    let note = async |at: usize, byte| {
        let settings = SettingsDigest::from_bytes([byte; 32]);
        world.store.note_settings(&nodes[at].0, settings).await.unwrap();
    };
    let check = async |settings: [Option<&str>; 4], differ: [Option<bool>; 4]| {
        let told = world.get("/nodes").await.json();
        let rows = told["data"].as_array().unwrap();
        let member = |name| rows.iter().map(|row: &Value| row[name].clone()).collect::<Vec<_>>();
        assert_eq!(member("settings"), settings.map(Value::from), "{told}");
        assert_eq!(member("settings_differ"), differ.map(Value::from), "{told}");
    };
    check([None; 4], [None; 4]).await;
    let [one, two] = [Some("0101010101010101"), Some("0202020202020202")];
    for at in [0, 1] {
        note(at, 1).await;
    }
    // One that is gone was started under whatever was right then.
    note(3, 2).await;
    check([one, one, None, two], [Some(false), Some(false), None, None]).await;
    note(2, 2).await;
    check([one, one, two, two], [Some(true), Some(true), Some(true), None]).await;
    note(2, 1).await;
    check([one, one, one, two], [Some(false), Some(false), Some(false), None]).await;
}
