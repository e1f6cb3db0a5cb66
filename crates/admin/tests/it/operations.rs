//! Operations: found by two ways, shown as far as a role sees, cancelled and reconciled with a trail.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_domain::admin::Administration;
use holdfast_domain::admin::Role;
use holdfast_domain::conduct::{Conduct, Ending};
use holdfast_domain::operation::{Claim, Lease};
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode};
use holdfast_domain::{Journal, Nodes, Operation, OperationId, Prices};
use holdfast_testkit::{NoPause, sample};
use serde_json::json;

use crate::world::{Call, World, key, reach};

/// A live node.
async fn lease(world: &World) -> Lease {
    let node = sample::node("a");
    let beat = world.store.heartbeat(&node, sample::LEASE, LeaseMode::Take).await.unwrap();
    let HeartbeatOutcome::Held { lease, .. } = beat else { panic!("{beat:?}") };
    lease
}

/// An operation that runs, on a wallet with funds.
pub(crate) async fn running(world: &World, wallet: &str, api_key: &str) -> Claim {
    world.store.pin(&[sample::price()]).await.unwrap();
    let claim = sample::claim()
        .wallet(wallet.parse().unwrap())
        .api_key(api_key.parse().unwrap())
        .request_key(sample::fresh_request_key())
        .lease(lease(world).await)
        .build();
    let conduct = Conduct { journal: &world.store, pause: &NoPause, orphan_grace: None };
    conduct.claim(&sample::order(&claim)).await.unwrap();
    claim
}

/// An operation that was answered and settled, on a wallet with funds, for a prompt of so many
/// tokens. Its cost is known where that is an even number.
pub(crate) async fn completed(
    world: &World,
    wallet: &str,
    api_key: &str,
    prompt: u64,
) -> Operation {
    ended(world, wallet, api_key, sample::finished(prompt, 10)).await
}

/// An operation that ended so, on a wallet with funds.
pub(crate) async fn ended(world: &World, wallet: &str, api_key: &str, ending: Ending) -> Operation {
    world.store.pin(&[sample::price()]).await.unwrap();
    let claim = sample::claim()
        .wallet(wallet.parse().unwrap())
        .api_key(api_key.parse().unwrap())
        .request_key(sample::fresh_request_key())
        .lease(lease(world).await)
        .build();
    let conduct = Conduct { journal: &world.store, pause: &NoPause, orphan_grace: None };
    let run = async |_operation: Arc<Operation>| (ending.clone(), Vec::new());
    conduct.perform(&sample::order(&claim), run).await.unwrap();
    let id = OperationId::of(claim.api_key, claim.request_key);
    world.store.load(id).await.unwrap().operation.unwrap()
}

#[tokio::test]
async fn an_operation_is_found_by_its_id_and_by_its_keys() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let api_key = world.api_key(&wallet).await;
    let claim = running(&world, &wallet, &api_key).await;
    let id = OperationId::of(claim.api_key, claim.request_key).to_string();
    let shown = world.get(&format!("/operations/{id}")).await.json();
    assert_eq!((&shown["id"], &shown["status"]), (&json!(id), &json!("leased")), "{shown}");
    assert_eq!((&shown["hold_micros"], &shown["wallet_id"]), (&json!(100), &json!(wallet)));
    let keys = format!("api_key_id={api_key}&request_key={}", claim.request_key);
    let found = world.get(&format!("/operations?{keys}")).await.json();
    assert_eq!(found["data"][0], shown);
    for filter in [String::new(), format!("?wallet_id={wallet}"), "?scope=running".to_owned()] {
        let listed = world.get(&format!("/operations{filter}")).await.json();
        assert_eq!(listed["data"][0]["id"], shown["id"], "{filter}");
    }
    let unbound = format!("api_key_id={api_key}&request_key={}", key());
    for empty in [unbound, format!("wallet_id={}", key()), "scope=stale".to_owned()] {
        let listed = world.get(&format!("/operations?{empty}")).await.json();
        assert_eq!(listed["data"], json!([]), "{empty}");
    }
    let both = world.get(&format!("/operations?{keys}&scope=stale")).await;
    both.is_about(400, "invalid_value", "request_key");
}

#[tokio::test]
async fn the_price_lines_of_an_operation_add_up_to_its_charge() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let api_key = world.api_key(&wallet).await;
    let running = running(&world, &wallet, &api_key).await;
    let running = OperationId::of(running.api_key, running.request_key);
    let shown = world.get(&format!("/operations/{running}")).await.json();
    assert_eq!(shown["price_lines"], json!([]), "it runs: {shown}");
    // The second one costs more than its hold.
    for (prompt, has_shortfall) in [(21, false), (300, true)] {
        let id = completed(&world, &wallet, &api_key, prompt).await.id;
        let shown = world.get(&format!("/operations/{id}")).await.json();
        let lines = shown["price_lines"].as_array().unwrap();
        let counted = shown["meters"].as_object().unwrap();
        let counted: Vec<_> = counted.iter().filter(|(_, units)| **units != json!(0)).collect();
        assert_eq!(lines.len(), counted.len(), "{shown}");
        let number = |line: &serde_json::Value, member: &str| line[member].as_u64().unwrap();
        let millionths = lines.iter().map(|line| {
            assert_eq!(line["units"], shown["meters"][line["kind"].as_str().unwrap()], "{shown}");
            number(line, "units")
                * number(line, "price_micros")
                * (1_000_000 / number(line, "per_units"))
        });
        let cost = millionths.sum::<u64>().div_ceil(1_000_000);
        let [charge, shortfall] =
            ["charge_micros", "shortfall_micros"].map(|it| number(&shown, it));
        assert_eq!(cost, charge + shortfall, "{shown}");
        assert_eq!(shortfall > 0, has_shortfall, "{shown}");
    }
    let listed = world.get("/operations").await.json();
    assert!(listed["data"][0].get("price_lines").is_none(), "{listed}");
}

#[tokio::test]
async fn nobody_sees_more_of_an_operation_than_the_role_has() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let api_key = world.api_key(&wallet).await;
    let claim = running(&world, &wallet, &api_key).await;
    let path = format!("/operations/{}", OperationId::of(claim.api_key, claim.request_key));
    let all = BTreeSet::from(["attempts", "node", "provider_cost_micros"]);
    let holder = reach(&wallet);
    for (role, reach, seen) in [
        (Role::Auditor, holdfast_domain::admin::Reach::All, all),
        (Role::Support, holdfast_domain::admin::Reach::All, BTreeSet::from(["attempts", "node"])),
        (Role::HolderAdmin, holder, BTreeSet::new()),
        (Role::HolderViewer, holder, BTreeSet::new()),
    ] {
        let (_, bearer) = world.admin_key(role, reach).await;
        let shown = world.send(Call::get(&path).bearer(&bearer)).await.json();
        let members = ["attempts", "node", "provider_cost_micros"];
        let has: BTreeSet<_> = members.into_iter().filter(|it| shown.get(it).is_some()).collect();
        assert_eq!(has, seen, "{role}: {shown}");
    }
}

#[tokio::test]
async fn what_runs_holds_what_its_wallets_are_told_of() {
    let world = World::new().await;
    assert_eq!(world.get("/held").await.json()["data"], json!([]));
    let mut wallets = Vec::new();
    for (name, running_ones) in [("own", 2), ("other", 1), ("idle", 0)] {
        let wallet = world.wallet(name, 1_000).await;
        let api_key = world.api_key(&wallet).await;
        for _operation in 0..running_ones {
            running(&world, &wallet, &api_key).await;
        }
        wallets.push(wallet);
    }
    let all = world.get("/held").await.json();
    assert_eq!(all["data"], json!([{ "currency": "USD", "held_micros": 300 }]));
    for (wallet, held) in wallets.iter().zip([Some(200), Some(100), None]) {
        let (_, viewer) = world.admin_key(Role::HolderViewer, reach(wallet)).await;
        let told = world.send(Call::get("/held").bearer(&viewer)).await.json();
        assert_eq!(told["data"][0]["held_micros"].as_i64(), held, "{told}");
    }
}

#[tokio::test]
async fn a_cancellation_wants_a_reason_and_leaves_a_trail() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let api_key = world.api_key(&wallet).await;
    let claim = running(&world, &wallet, &api_key).await;
    let id = OperationId::of(claim.api_key, claim.request_key);
    let path = format!("/operations/{id}/cancel");
    world.post(&path, json!({})).await.is_about(400, "invalid_value", "reason");
    let before = world.store.trail_head().await.unwrap().seq;
    let ask = Call::post(&path, &json!({ "reason": "runs away" })).bearer(&world.owner);
    let asked = world.send(ask.clone()).await;
    assert_eq!((asked.status, &asked.json()["cancel_asked"]), (200, &json!(true)), "{asked:?}");
    let again = world.send(ask).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(world.store.trail_head().await.unwrap().seq, before + 1);
    let live = world.post(&format!("/operations/{id}/reconcile"), json!({})).await.json();
    assert_eq!(live["status"], "leased", "its owner lives");
    let gone = world.post(&format!("/operations/{}/reconcile", key()), json!({})).await;
    gone.is_error(404, "not_found");
}

#[tokio::test]
async fn what_was_not_charged_is_not_refunded() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let api_key = world.api_key(&wallet).await;
    let claim = running(&world, &wallet, &api_key).await;
    let id = OperationId::of(claim.api_key, claim.request_key).to_string();
    let refund = json!({ "operation_id": id, "amount_micros": 1 });
    world.post("/refunds", refund).await.is_error(422, "nothing_charged");
    let unknown = json!({ "operation_id": key(), "amount_micros": 1 });
    world.post("/refunds", unknown).await.is_error(404, "not_found");
}
