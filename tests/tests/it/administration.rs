//! The API of administration over a real socket: what a listener owes whatever the router does, and
//! one walk through a key's life.

use std::net::SocketAddr;

use holdfast_tests::config::ADMIN_TOKEN;
use holdfast_tests::database::execute;
use holdfast_tests::{Answer, Config, Gateway, Request, Site, request_key};
use serde_json::{Value, json};

use crate::bodies::sim;

/// The host that a listener on loopback answers.
pub(crate) fn host(gateway: &Gateway) -> String {
    format!("localhost:{}", gateway.admin_address().port())
}

fn issue(site: &Site, name: &str, role: &str, more: &[&str]) -> (String, String) {
    let words = ["admin-key", "issue", "--name", name, "--role", role];
    let issued = site.json(&[&words, more].concat());
    let text = |member: &str| issued[member].as_str().unwrap().to_owned();
    (text("id"), text("key"))
}

fn get(gateway: &Gateway, path: &str, key: &str) -> Answer {
    let request = Request::get(&format!("/admin{path}")).bearer(key);
    request.host(&host(gateway)).send(gateway.admin_address())
}

pub(crate) fn change(gateway: &Gateway, path: &str, body: &Value, key: &str) -> Request {
    Request::post(&format!("/admin/v1{path}"), body.to_string())
        .host(&host(gateway))
        .bearer(key)
        .header("Content-Type", "application/json")
        .header("Idempotency-Key", &request_key())
}

#[track_caller]
fn check(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.json()["error"]["code"], code, "{answer:?}");
    assert!(answer.header("x-request-id").is_some(), "{answer:?}");
}

#[test]
fn a_customer_is_set_up_over_the_network_and_pays() {
    let (site, _account) = Site::funded(&Config::simulated());
    let (_, owner) = issue(&site, "me", "owner", &[]);
    let gateway = site.serve();
    let admin = gateway.admin_address();
    let new = json!({ "name": "acme", "currency": "USD" });
    let make = change(&gateway, "/wallets", &new, &owner);
    let (made, again) = (make.send(admin), make.send(admin));
    assert_eq!((made.status, again.status), (201, 201), "{made:?}");
    assert_eq!(made.header("idempotent-replayed"), Some("false"));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let wallet = made.json()["id"].as_str().unwrap().to_owned();
    let deposit = json!({
        "wallet_id": wallet, "amount_micros": 10_000_000, "source": "bank", "external_reference": "1",
    });
    assert_eq!(change(&gateway, "/deposits", &deposit, &owner).send(admin).status, 201);
    let order = json!({ "wallet_id": wallet, "reason": "a new customer" });
    let issued = change(&gateway, "/api_keys", &order, &owner).send(admin).json();
    let account = holdfast_tests::Account {
        wallet,
        id: issued["id"].as_str().unwrap().to_owned(),
        key: issued["key"].as_str().unwrap().to_owned(),
    };
    let body = json!({
        "model": "holdfast/sim-1", "messages": [{ "role": "user", "content": "hello" }],
    });
    let key = request_key();
    let answer = gateway.complete(&account, &key, &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let path = format!("/v1/operations?api_key_id={}&request_key={key}", account.id);
    let found = get(&gateway, &path, &owner).json();
    let operation = &found["data"][0];
    let charge = operation["charge_micros"].as_i64().unwrap();
    assert!(charge > 0, "{found}");
    let refund = json!({ "operation_id": operation["id"], "amount_micros": charge });
    let refunded = change(&gateway, "/refunds", &refund, &owner).send(admin);
    assert_eq!(refunded.status, 201, "{refunded:?}");
    assert_eq!(refunded.json()["wallet"]["available_micros"], 10_000_000);
    check(&change(&gateway, "/refunds", &refund, &owner).send(admin), 422, "refund_too_large");
    assert_eq!(site.balance(&account), (10_000_000, 0));
    gateway.stop();
    site.verify();
}

#[test]
fn the_trail_has_the_address_before_the_proxies_that_are_believed() {
    let config = Config::simulated().set("admin", "proxies", "[\"127.0.0.0/8\", \"192.0.2.0/24\"]");
    let (site, _account) = Site::funded(&config);
    let (_, owner) = issue(&site, "me", "owner", &[]);
    let gateway = site.serve();
    let from = |name: &str, forwarded: &str| {
        let made =
            change(&gateway, "/wallets", &json!({ "name": name, "currency": "USD" }), &owner)
                .header("X-Forwarded-For", forwarded)
                .header("Forwarded", "for=203.0.113.9")
                .send(gateway.admin_address());
        assert_eq!(made.status, 201, "{made:?}");
        let wallet = made.json()["id"].as_str().unwrap().to_owned();
        let rows = get(&gateway, &format!("/v1/audit?thing=wallet:{wallet}"), &owner).json();
        rows["data"][0]["address"].as_str().unwrap().to_owned()
    };
    // The last one that is no proxy: whoever stands before it may have made up the rest.
    assert_eq!(from("a", "203.0.113.1, 198.51.100.7, 192.0.2.3"), "198.51.100.7");
    assert_eq!(from("b", "198.51.100.8"), "198.51.100.8");
    gateway.stop();
    let (site, _account) = Site::funded(&Config::simulated());
    let (_, owner) = issue(&site, "me", "owner", &[]);
    let gateway = site.serve();
    let body = json!({ "name": "c", "currency": "USD" });
    let ask = change(&gateway, "/wallets", &body, &owner).header("X-Forwarded-For", "198.51.100.8");
    let wallet = ask.send(gateway.admin_address()).json()["id"].as_str().unwrap().to_owned();
    let rows = get(&gateway, &format!("/v1/audit?thing=wallet:{wallet}"), &owner).json();
    assert_eq!(rows["data"][0]["address"], "127.0.0.1", "nobody is believed: {rows}");
    gateway.stop();
}

#[test]
fn roles_of_the_command_line_are_those_of_the_network() {
    let (site, account) = Site::funded(&Config::simulated());
    let other = site.account("other", "USD", "1.00");
    let (_, auditor) = issue(&site, "reads", "auditor", &[]);
    let (id, viewer) = issue(&site, "sees", "holder_viewer", &["--wallet", &account.wallet]);
    let gateway = site.serve();
    let admin = gateway.admin_address();
    let suspend = json!({ "reason": "has not paid" });
    let path = format!("/wallets/{}/suspend", account.wallet);
    let refused = change(&gateway, &path, &suspend, &auditor).send(admin);
    check(&refused, 403, "forbidden");
    assert_eq!(refused.json()["error"]["scope"], "wallet.suspend");
    assert_eq!(get(&gateway, &format!("/v1/wallets/{}", account.wallet), &viewer).status, 200);
    let hidden = get(&gateway, &format!("/v1/wallets/{}", other.wallet), &viewer);
    check(&hidden, 404, "not_found");
    let listed = get(&gateway, "/v1/wallets", &viewer).json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed}");
    drop(site.cli(&["admin-key", "revoke", &id, "--yes"]).ok());
    // Looked up at each request: the next one is refused.
    check(&get(&gateway, "/v1/wallets", &viewer), 401, "invalid_admin_key");
    gateway.stop();
}

#[test]
fn neither_listener_takes_the_others_keys() {
    let (site, account) = Site::funded(&Config::simulated());
    let (_, owner) = issue(&site, "me", "owner", &[]);
    let gateway = site.serve();
    for key in [&account.key, ADMIN_TOKEN, "hfa_x_y", ""] {
        check(&get(&gateway, "/v1/wallets", key), 401, "invalid_admin_key");
    }
    let public = gateway.send(&Request::get("/v1/wallet").bearer(&owner));
    assert_eq!(public.status, 401, "{public:?}");
    let metrics = Request::get("/metrics").bearer(&owner).send(gateway.admin_address());
    assert_eq!(metrics.status, 401, "{metrics:?}");
    let elsewhere = gateway.send(&Request::get("/admin/v1/wallets").bearer(&owner));
    assert!(matches!(elsewhere.status, 401 | 404), "{elsewhere:?}");
    // Another name: a browser that was lured would send that one.
    let rebound = Request::get("/admin/v1/wallets").host("gateway").bearer(&owner);
    let rebound = rebound.send(gateway.admin_address());
    check(&rebound, 421, "wrong_host");
    let described = get(&gateway, "/openapi.json", "");
    assert_eq!(described.json()["openapi"], "3.1.0");
    gateway.stop();
}

#[test]
fn heads_and_bodies_are_bounded() {
    let (site, _account) = Site::funded(&Config::simulated());
    let (_, owner) = issue(&site, "me", "owner", &[]);
    let gateway = site.serve();
    let admin: SocketAddr = gateway.admin_address();
    let long = Request::get("/admin/v1/wallets").host(&host(&gateway)).bearer(&owner);
    let long = long.header("X-Long", &"x".repeat(17_000)).send(admin);
    check(&long, 431, "headers_too_large");
    let large = json!({ "name": "x".repeat(1 << 20), "currency": "USD" });
    check(&change(&gateway, "/wallets", &large, &owner).send(admin), 413, "request_too_large");
    gateway.stop();
}

#[test]
fn beyond_loopback_administration_wants_an_https_address() {
    let open = Config::simulated().set("admin", "listen", "\"0.0.0.0:0\"");
    let (site, _account) = Site::funded(&open);
    let (_, owner) = issue(&site, "me", "owner", &[]);
    let gateway = site.serve();
    let port = gateway.admin_address().port();
    let admin = SocketAddr::from(([127, 0, 0, 1], port));
    let ask = |host: &str| {
        let request = Request::get("/admin/v1/wallets").host(host).bearer(&owner);
        request.send(admin)
    };
    // As before there was any administration: a token for metrics, and nothing else.
    assert_eq!(ask(&format!("localhost:{port}")).status, 401);
    let metrics = Request::get("/metrics").bearer(ADMIN_TOKEN).send(admin);
    assert_eq!(metrics.status, 200);
    assert!(gateway.said().contains("administration is not served"), "{}", gateway.said());
    gateway.stop();
    site.configure(&open.set("admin", "url", "\"https://admin.example.com\""));
    let gateway = site.serve();
    let admin = SocketAddr::from(([127, 0, 0, 1], gateway.admin_address().port()));
    let ask = |host: &str| {
        let request = Request::get("/admin/v1/wallets").host(host).bearer(&owner);
        request.send(admin)
    };
    assert_eq!(ask("admin.example.com").status, 200);
    check(&ask("localhost"), 421, "wrong_host");
    gateway.stop();
}

/// Everything in the database file but the leases of nodes, which their heartbeats move.
fn rows(site: &Site) -> Vec<(String, Vec<String>)> {
    let read = |sql: &str| execute(&site.database(), sql);
    let tables = read("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'nodes'");
    let rows = |table: String| {
        let rows = read(&format!("SELECT * FROM {table}"));
        (table, rows)
    };
    tables.into_iter().map(rows).collect()
}

#[test]
fn sqlite_a_dry_run_changes_nothing_in_the_database() {
    let (site, account) = Site::funded(&Config::simulated());
    let (_, owner) = issue(&site, "me", "owner", &[]);
    let gateway = site.serve();
    let told = gateway.complete(&account, &request_key(), &sim("Hello there"));
    assert_eq!(told.status, 200, "{told:?}");
    let listed = get(&gateway, "/v1/operations", &owner).json();
    let operation = &listed["data"][0]["id"];
    let empty = site.json(&["wallet", "create", "empty"])["id"].as_str().unwrap().to_owned();
    // The node tells its settings beside all this: what it keeps of them is in its own row.
    let before = rows(&site);
    let wallet = &account.wallet;
    for (path, body, status) in [
        (
            "/deposits",
            json!({ "wallet_id": wallet, "amount_micros": 5, "source": "bank",
                    "external_reference": "1" }),
            200,
        ),
        ("/adjustments", json!({ "wallet_id": wallet, "amount_micros": -5, "reason": "x" }), 200),
        (
            "/adjustments",
            json!({ "wallet_id": wallet, "amount_micros": -1_000_000_000_000_i64, "reason": "x" }),
            422,
        ),
        ("/refunds", json!({ "operation_id": operation, "amount_micros": 1 }), 200),
        (
            "/api_keys/bulk",
            json!({ "wallet_id": wallet, "reason": "x", "keys": [{ "name": "a" }, { "name": "b" }] }),
            200,
        ),
        (&format!("/wallets/{empty}/close"), json!({ "reason": "x" }), 200),
        (&format!("/wallets/{wallet}/close"), json!({ "reason": "x" }), 409),
    ] {
        let path = format!("{path}?dry_run=true");
        let dry = change(&gateway, &path, &body, &owner).send(gateway.admin_address());
        assert_eq!(dry.status, status, "{path}: {dry:?}");
        assert_eq!(status == 200, dry.json()["would"].is_object(), "{path}: {dry:?}");
    }
    assert_eq!(rows(&site), before);
    gateway.stop();
}
