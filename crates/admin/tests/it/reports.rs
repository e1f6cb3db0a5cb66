//! Reports: sums and statements, as JSON and as files, as far as a role may see them.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use holdfast_domain::admin::{Reach, Role};
use holdfast_testkit::sample;
use serde_json::{Value, json};

use crate::operations::{completed, ended};
use crate::world::{Call, Reply, World, deposit, reach};

/// A wallet with an operation that was answered, and its API key.
async fn used(world: &World, name: &str) -> (String, String, i64) {
    let wallet = world.wallet(name, 1_000).await;
    let api_key = world.api_key(&wallet).await;
    let charge = completed(world, &wallet, &api_key, 20).await.phase.charge().unwrap();
    (wallet, api_key, charge.get())
}

fn text(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{reply:?}");
    String::from_utf8(reply.body.to_vec()).unwrap()
}

#[tokio::test]
async fn usage_is_summed_by_any_two_groups() {
    let world = World::new().await;
    let (wallet, api_key, charge) = used(&world, "acme").await;
    used(&world, "other").await;
    let sums = world.get("/usage?by=wallet,api_key").await.json();
    let own: Vec<_> = sums["data"].as_array().unwrap().iter().collect();
    assert_eq!(own.len(), 2, "{sums}");
    let filters = [format!("wallet_id={wallet}"), format!("api_key_id={api_key}")];
    for filter in &filters {
        let sums = world.get(&format!("/usage?by=day,model&{filter}")).await.json();
        let [row] = sums["data"].as_array().unwrap().as_slice() else { panic!("{sums}") };
        assert_eq!(
            (&row["completed"], &row["charge_micros"]),
            (&json!(1), &json!(charge)),
            "{row}"
        );
        assert!(row["day"].is_string() && row["model"].is_string(), "{row}");
        assert!(row.get("wallet_id").is_none() && row.get("hour").is_none(), "{row}");
    }
    let none = world.get("/usage?model=nobody/none").await.json();
    assert_eq!(none["data"], json!([]));
}

#[tokio::test]
async fn support_and_holders_see_no_costs_and_holders_no_routes() {
    let world = World::new().await;
    let (wallet, _, _) = used(&world, "acme").await;
    used(&world, "other").await;
    for role in Role::ALL {
        let wallets = if role.is_holder() { reach(&wallet) } else { Reach::All };
        let (_, bearer) = world.admin_key(role, wallets).await;
        let get = async |path: &str| world.send(Call::get(path).bearer(&bearer)).await;
        let sums = get("/usage?by=wallet").await.json();
        let rows = sums["data"].as_array().unwrap();
        assert_eq!(rows.len(), if role.is_holder() { 1 } else { 2 }, "{role}: {sums}");
        let sees = !role.is_holder() && role != Role::Support;
        let file = text(&get("/usage?by=wallet&format=csv").await);
        for member in ["costed", "provider_cost_micros", "margin_micros", "exposure_micros"] {
            assert!(rows.iter().all(|row| row.get(member).is_some() == sees), "{role} {member}");
            assert_eq!(file.contains(member), sees, "{role} {member}");
        }
        let routes = [get("/usage?by=day,route").await, get("/usage?route=a/b").await];
        for (told, param) in routes.iter().zip(["by", "route"]) {
            if role.is_holder() {
                told.is_about(400, "invalid_value", param);
            } else {
                assert_eq!(told.status, 200, "{role}: {told:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_api_key_is_shown_with_its_exposure_to_who_sees_costs() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let (api_key, other) = (world.api_key(&wallet).await, world.api_key(&wallet).await);
    let path = format!("/api_keys/{api_key}");
    assert_eq!(world.get(&path).await.json()["exposure_micros"], 0);
    let refused = ended(&world, &wallet, &api_key, sample::refused()).await;
    completed(&world, &wallet, &api_key, 20).await;
    ended(&world, &wallet, &other, sample::refused()).await;
    assert_eq!(world.get(&path).await.json()["exposure_micros"], refused.hold.get());
    for role in Role::ALL {
        let wallets = if role.is_holder() { reach(&wallet) } else { Reach::All };
        let (_, bearer) = world.admin_key(role, wallets).await;
        let shown = world.send(Call::get(&path).bearer(&bearer)).await.json();
        let sees = !role.is_holder() && role != Role::Support;
        assert_eq!(shown.get("exposure_micros").is_some(), sees, "{role}: {shown}");
        assert!(shown["counters"].is_array(), "{role}: {shown}");
    }
}

#[tokio::test]
async fn a_cost_that_is_not_known_is_not_zero() {
    let world = World::new().await;
    let (wallet, api_key, _) = used(&world, "acme").await;
    let sums = world.get("/usage?by=wallet").await.json();
    let row = &sums["data"][0];
    assert_eq!((&row["costed"], &row["provider_cost_micros"]), (&json!(1), &json!(10)), "{row}");
    let unknown = world.wallet("unknown", 1_000).await;
    let its_key = world.api_key(&unknown).await;
    completed(&world, &unknown, &its_key, 21).await;
    let path = format!("/usage?by=wallet&wallet_id={unknown}");
    let row = &world.get(&path).await.json()["data"][0];
    assert_eq!((&row["completed"], &row["costed"]), (&json!(1), &json!(0)), "{row}");
    for member in ["provider_cost_micros", "margin_micros"] {
        assert_eq!(row.get(member), Some(&Value::Null), "{row}");
    }
    let line = text(&world.get(&format!("{path}&format=csv")).await);
    assert!(line.contains(",-,-,"), "{line}");
    let path = format!("/usage?by=wallet,api_key&format=csv&wallet_id={wallet}");
    let file = text(&world.get(&path).await);
    let lines: Vec<_> = file.split("\r\n").collect();
    assert!(lines[0].starts_with("kind,wallet_id,wallet_name,api_key_id,api_key_name,"));
    assert!(lines[1].starts_with(&format!("usage,{wallet},acme,{api_key},")), "{file}");
    assert!(lines[2].starts_with("closing,") && lines[2].ends_with(",1"), "{file}");
    assert_eq!((lines.len(), lines[3]), (4, ""), "{file}");
}

#[tokio::test]
async fn what_cannot_be_summed_is_named() {
    let world = World::new().await;
    for (query, param) in [
        ("by=minute", "by"),
        ("by=", "by"),
        ("by=day,", "by"),
        ("by=day,day", "by"),
        ("by=day,model,route", "by"),
        ("by=month,day,", "by"),
        ("wallet_id=acme", "wallet_id"),
        ("from=2026-11-01T00:00:01Z", "from"),
        ("to=2026-11-01T00:30:00Z", "to"),
        ("from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z", "to"),
        ("format=xml", "format"),
        ("form=csv", "form"),
    ] {
        let told = world.get(&format!("/usage?{query}")).await;
        told.is_about(400, "invalid_value", param);
    }
}

#[tokio::test]
async fn the_pages_of_a_statement_add_up_and_have_each_entry_once() {
    let world = World::new().await;
    let (wallet, _, _) = used(&world, "acme").await;
    for micros in 1..=4 {
        world.post("/deposits", deposit(&wallet, micros)).await;
    }
    let whole = world.get(&format!("/wallets/{wallet}/statement")).await.json();
    let all = whole["entries"].as_array().unwrap();
    assert!(all.len() >= 8, "{whole}");
    assert_eq!((&whole["has_more"], &whole["omitted_entries"]), (&json!(false), &json!(0)));
    let zero = json!({ "available_micros": 0, "held_micros": 0 });
    assert_eq!(whole["opening"], zero);
    let shown = world.get(&format!("/wallets/{wallet}")).await.json();
    for amount in ["available_micros", "held_micros"] {
        assert_eq!(whole["closing"][amount], shown[amount], "{whole}");
    }
    for limit in [1, 2, 3, 7] {
        let path = format!("/wallets/{wallet}/statement?limit={limit}");
        let (mut seen, mut closing, mut page) =
            (Vec::new(), whole["closing"].clone(), path.clone());
        loop {
            let told = world.get(&page).await.json();
            assert_eq!(told["closing"], closing, "{told}");
            closing = told["opening"].clone();
            let entries = told["entries"].as_array().unwrap();
            assert!(!entries.is_empty(), "{told}");
            seen.splice(0..0, entries.iter().cloned());
            let Some(next) = told["next_cursor"].as_str() else { break };
            page = format!("{path}&cursor={next}");
        }
        assert_eq!((&seen, &closing), (all, &zero), "pages of {limit}");
    }
}

#[tokio::test]
async fn a_statement_as_a_file_has_no_formula() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let reason = "=HYPERLINK(\"http://evil\")";
    let body = json!({ "wallet_id": wallet, "amount_micros": -7, "reason": reason });
    assert_eq!(world.post("/adjustments", body).await.status, 201);
    let path = format!("/wallets/{wallet}/statement");
    let told = world.send(Call::get(&path).bearer(&world.owner).header("accept", "text/csv")).await;
    assert!(told.header("content-type").unwrap().starts_with("text/csv"), "{told:?}");
    let file = text(&told);
    assert!(file.contains("\"'=HYPERLINK"), "{file}");
    let lines: Vec<_> = file.split("\r\n").collect();
    assert!(lines[0].starts_with("at,kind,debit,credit,amount_micros,"), "{file}");
    assert!(lines[1].starts_with(",opening,,,,0,0,"), "{file}");
    assert!(lines[4].contains(",closing,,,,993,0,"), "{file}");
    // The query wins over the header.
    let json = Call::get(&format!("{path}?format=json")).bearer(&world.owner);
    let json = world.send(json.header("accept", "text/csv")).await.json();
    assert_eq!(json["entries"][1]["reason"], reason, "{json}");
    for param in ["limit=5", "cursor=7"] {
        let told = world.get(&format!("{path}?format=csv&{param}")).await;
        told.is_about(400, "invalid_value", param.split('=').next().unwrap());
    }
}

#[tokio::test]
async fn a_ledger_file_has_what_a_role_may_see_and_closes_with_its_rows() {
    let world = World::new().await;
    let (wallet, _, charge) = used(&world, "acme").await;
    used(&world, "other").await;
    let rows = |reply: &Reply| -> Vec<Vec<String>> {
        let file = text(reply);
        let lines = file.lines().skip(1);
        lines.map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    // A deposit and a charge of each wallet.
    let all = rows(&world.get("/ledger").await);
    let kinds: Vec<_> = all.iter().map(|row| row[2].as_str()).collect();
    assert_eq!(kinds, ["deposit", "deposit", "charge", "charge", "closing"]);
    assert_eq!(all[4][18], "4");
    let own = rows(&world.get(&format!("/ledger?wallet_id={wallet}")).await);
    assert_eq!(own.len(), 3, "{own:?}");
    assert!(own[..2].iter().all(|row| row[3] == "acme" && row[5] == "USD"), "{own:?}");
    assert_eq!(own[1][6], holdfast_domain::Micros::new(-charge).to_string());
    let (_, holder) = world.admin_key(Role::HolderViewer, reach(&wallet)).await;
    let of_holder = world.send(Call::get("/ledger").bearer(&holder)).await;
    assert_eq!(rows(&of_holder)[..2], own[..2], "a holder has rows of the own wallet only");
    let other = world.get("/wallets?name=other").await.json();
    let other = other["data"][0]["id"].as_str().unwrap();
    let refused =
        world.send(Call::get(&format!("/ledger?wallet_id={other}")).bearer(&holder)).await;
    assert_eq!(refused.status, 404, "{refused:?}");
    let lines = text(&world.get("/ledger?format=jsonl&to=2026-01-01T00:00:00Z").await);
    let closing: Value = serde_json::from_str(&lines).unwrap();
    assert_eq!((&closing["kind"], &closing["rows"]), (&json!("closing"), &json!(0)));
    for (query, param) in
        [("wallet_id=acme", "wallet_id"), ("format=json", "format"), ("month=1", "month")]
    {
        world.get(&format!("/ledger?{query}")).await.is_about(400, "invalid_value", param);
    }
}

#[tokio::test]
async fn a_cursor_of_another_statement_is_refused() {
    let world = World::new().await;
    let (own, other) = (world.wallet("own", 5).await, world.wallet("other", 5).await);
    world.post("/deposits", deposit(&own, 5)).await;
    let page = world.get(&format!("/wallets/{own}/statement?limit=1")).await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let again = world.get(&format!("/wallets/{own}/statement?limit=1&cursor={cursor}")).await;
    assert_eq!(again.json()["next_cursor"], Value::Null);
    for path in [
        format!("/wallets/{other}/statement?cursor={cursor}"),
        format!("/wallets/{own}/statement?cursor={cursor}&to=2030-01-01T00:00:00Z"),
    ] {
        world.get(&path).await.is_error(400, "invalid_cursor");
    }
}

#[tokio::test]
async fn an_admin_key_has_one_report_at_once() {
    let world = World::new().await;
    let (wallet, _, _) = used(&world, "acme").await;
    let (_, other) = world.admin_key(Role::Finance, Reach::All).await;
    let statement = format!("/wallets/{wallet}/statement");
    for (first, second) in [("/usage", statement.as_str()), (&statement, "/usage")] {
        let mut report = pin!(world.get(first));
        // One step of the report at a time: it waits for its rows with its place, and keeps both.
        let refused = loop {
            let step = poll_fn(|cx| Poll::Ready(report.as_mut().poll(cx))).await;
            assert!(step.is_pending(), "a second report was made beside it each time");
            let second = world.get(second).await;
            if second.status != 200 {
                break second;
            }
        };
        refused.is_error(429, "too_many_requests");
        assert!(refused.json()["error"]["message"].to_string().contains("a report"));
        let others = world.send(Call::get(second).bearer(&other)).await;
        assert_eq!(others.status, 200, "another key has its own");
        assert_eq!(world.get("/wallets").await.status, 200, "what is no report goes on");
        assert_eq!(report.await.status, 200);
        assert_eq!(world.get(second).await.status, 200, "the place is free again");
    }
}
