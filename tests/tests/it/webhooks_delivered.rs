//! Webhooks as whoever runs the gateway meets them: made over the API, told what happens, verified by
//! the library of a stranger, and tried again whatever becomes of receivers and nodes.
//!
//! Pauses and leases end as they do in the rows: tests set `next_at` back, and wait for nothing.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use holdfast_tests::config::ADMIN_TOKEN;
use holdfast_tests::postgres::Database;
use holdfast_tests::{Answer, Config, Gateway, Request, Site, request_key};
use serde_json::{Value, json};

use crate::admin::metrics;
use crate::check::until;
use crate::clients::PYTHON;
use crate::receiver::{ReceivedRequest, Receiver};

/// Statement of somebody at the SQL prompt, and its rows.
type Execute<'d> = &'d dyn Fn(&str) -> Vec<String>;

/// Whoever administers, at one gateway.
pub(crate) struct Owner {
    key: String,
}

impl Owner {
    pub(crate) fn new(site: &Site) -> Self {
        let issued = site.json(&["admin-key", "issue", "--name", "me", "--role", "owner"]);
        Self { key: issued["key"].as_str().unwrap().to_owned() }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn post(&self, gateway: &Gateway, path: &str, body: &Value) -> Answer {
        let request = Request::post(&format!("/admin/v1{path}"), body.to_string());
        self.send(gateway, request)
    }

    pub(crate) fn send(&self, gateway: &Gateway, request: Request) -> Answer {
        let admin = gateway.admin_address();
        let request = request.host(&format!("localhost:{}", admin.port())).bearer(&self.key);
        let request = request.header("Content-Type", "application/json");
        request.header("Idempotency-Key", &request_key()).send(admin)
    }

    pub(crate) fn create(&self, gateway: &Gateway, body: &Value) -> Value {
        let made = self.post(gateway, "/webhooks", body);
        assert_eq!(made.status, 201, "{made:?}");
        made.json()
    }

    pub(crate) fn show(&self, gateway: &Gateway, path: &str) -> Value {
        let admin = gateway.admin_address();
        let request = Request::get(&format!("/admin/v1{path}")).bearer(&self.key);
        let shown = request.host(&format!("localhost:{}", admin.port())).send(admin);
        assert_eq!(shown.status, 200, "{shown:?}");
        shown.json()
    }

    /// Waits until the newest delivery to a webhook stands so.
    #[track_caller]
    fn wait_for(&self, gateway: &Gateway, webhook: &Value, state: &str, result: &str) -> Value {
        let path = format!("/webhooks/{}/deliveries", webhook["id"].as_str().unwrap());
        until(&format!("a delivery is {state} by {result}"), || {
            let newest = self.show(gateway, &path)["data"][0].clone();
            (newest["state"] == state && newest["last_result"] == result).then_some(newest)
        })
    }
}

/// A configuration that lets these receivers be sent to.
pub(crate) fn allowing(config: Config, receivers: &[&Receiver]) -> Config {
    let origins: Vec<_> = receivers.iter().map(|it| format!("\"{}\"", it.origin())).collect();
    config.set("webhooks", "allow", &format!("[{}]", origins.join(", ")))
}

fn on_file(site: &Site) -> impl Fn(&str) -> Vec<String> {
    let file = site.database();
    move |sql| holdfast_tests::database::execute(&file, sql)
}

/// Notes so many events of the wallet, as the transaction of what happens does.
fn happen(execute: Execute<'_>, kind: &str, count: usize) {
    // Where `a` is like `A`, it is SQLite: each has its own spelling of bytes.
    let is_sqlite = !execute("SELECT 1 WHERE 'a' LIKE 'A'").is_empty();
    let bytes = if is_sqlite { "x'" } else { "'\\x" };
    let rows = (0..count).map(|_| {
        let id = request_key().replace('-', "");
        let wallet = "(SELECT id FROM wallets)";
        format!("({bytes}{id}', '{kind}', {wallet}, 9000000000000000, '{{\"amount_micros\":7}}')")
    });
    let rows = rows.collect::<Vec<_>>().join(", ");
    drop(execute(&format!(
        "INSERT INTO events (id, kind, wallet_id, created_at, data) VALUES {rows}"
    )));
}

/// Ends every pause and every lease.
fn let_time_pass(execute: Execute<'_>) {
    drop(execute("UPDATE deliveries SET next_at = 0 WHERE state = 'pending'"));
}

/// The event of a delivery, where the library of Standard Webhooks verifies it by this secret.
fn verified(site: &Site, secret: &Value, delivered: &ReceivedRequest) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python/webhook_verify.py");
    let script = std::fs::read_to_string(script).unwrap();
    let mut command = PYTHON.on(site, &script);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut python = command.spawn().unwrap();
    let ReceivedRequest { headers, body, .. } = delivered;
    let asked = json!({ "secret": secret, "headers": headers, "body": body });
    python.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
    let said = python.wait_with_output().unwrap();
    said.status.success().then(|| serde_json::from_slice(&said.stdout).unwrap())
}

#[test]
fn sqlite_an_event_arrives_signed_and_a_library_verifies_it() {
    let receiver = Receiver::answering(204);
    let (site, account) = Site::funded(&allowing(Config::simulated(), &[&receiver]));
    let owner = Owner::new(&site);
    let gateway = site.serve();
    let url = format!("{}/in?key=its-own", receiver.origin());
    let webhook = owner.create(&gateway, &json!({ "url": url, "wallet_id": account.wallet }));
    let execute = on_file(&site);
    happen(&execute, "wallet.credited", 1);
    let told = &receiver.wait_for(1)[0];
    let event = verified(&site, &webhook["secret"], told).unwrap();
    assert_eq!(
        (&event["type"], &event["wallet_id"], &event["data"]),
        (&json!("wallet.credited"), &json!(account.wallet), &json!({ "amount_micros": 7 }))
    );
    assert_eq!((event["id"].as_str().unwrap(), &*told.path), (told.id(), "/in?key=its-own"));
    let done = owner.wait_for(&gateway, &webhook, "delivered", "delivered");
    assert_eq!((&done["tries"], &done["last_status"]), (&json!(1), &json!(204)));
    // After a rotation both secrets verify, and a third one does not.
    let path = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    let rotated = owner.post(&gateway, &format!("{path}/rotate"), &json!({})).json();
    assert_eq!(owner.post(&gateway, &format!("{path}/test"), &json!({})).status, 200);
    let test = &receiver.wait_for(2)[1];
    for secret in [&webhook["secret"], &rotated["secret"]] {
        assert_eq!(verified(&site, secret, test).unwrap()["type"], "webhook.test");
    }
    let stranger = json!("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    assert_eq!(verified(&site, &stranger, test), None);
    until("both are counted", || {
        let counted = metrics(&gateway);
        counted.contains("holdfast_webhook_tries_total{result=\"delivered\"} 2").then_some(())
    });
    let logs = gateway.said();
    for secret in [&webhook["secret"], &rotated["secret"], &json!("its-own"), &json!(ADMIN_TOKEN)] {
        assert!(!logs.contains(secret.as_str().unwrap()), "a secret is in the log");
    }
    gateway.stop();
    site.verify();
}

#[test]
fn sqlite_a_receiver_that_fails_is_tried_again_and_one_that_is_gone_is_not() {
    let (receiver, watcher) = (Receiver::answering(500), Receiver::answering(200));
    let config = allowing(Config::simulated(), &[&receiver, &watcher]);
    let (site, _account) = Site::funded(&config);
    let owner = Owner::new(&site);
    let gateway = site.serve();
    let webhook =
        owner.create(&gateway, &json!({ "url": receiver.origin(), "kinds": ["wallet.low"] }));
    let kinds = json!(["webhook.disabled"]);
    let watching = owner.create(&gateway, &json!({ "url": watcher.origin(), "kinds": kinds }));
    let execute = on_file(&site);
    happen(&execute, "wallet.low", 1);
    let failed = owner.wait_for(&gateway, &webhook, "pending", "server_error");
    assert_eq!((&failed["tries"], receiver.count()), (&json!(1), 1), "it waits for five seconds");
    // Nobody is led to where a receiver points.
    receiver.answer_with(307, &format!("location: {}/elsewhere\r\n", watcher.origin()));
    let_time_pass(&execute);
    owner.wait_for(&gateway, &webhook, "pending", "redirect");
    receiver.answer(200);
    let_time_pass(&execute);
    let done = owner.wait_for(&gateway, &webhook, "delivered", "delivered");
    assert_eq!(done["tries"], 3);
    let ids: BTreeSet<_> = receiver.wait_for(3).iter().map(|it| it.id().to_owned()).collect();
    assert_eq!(ids.len(), 1, "the receiver knows it again by its id");
    assert_eq!(watcher.count(), 0);
    let path = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    let event = done["event_id"].as_str().unwrap();
    let resent = owner.post(&gateway, &format!("{path}/deliveries/{event}/resend"), &json!({}));
    assert_eq!(resent.status, 200, "{resent:?}");
    assert_eq!(receiver.wait_for(4)[3].id(), event);
    receiver.answer(410);
    happen(&execute, "wallet.low", 1);
    owner.wait_for(&gateway, &webhook, "dead", "gone");
    let disabled = owner.show(&gateway, &path);
    assert_eq!(
        (&disabled["state"], &disabled["disabled_reason"]),
        (&json!("disabled"), &json!("gone"))
    );
    let told = &watcher.wait_for(1)[0];
    let told = verified(&site, &watching["secret"], told).unwrap();
    assert_eq!(told["data"], json!({ "webhook_id": webhook["id"], "reason": "gone" }));
    gateway.stop();
}

#[test]
fn sqlite_an_origin_that_is_taken_off_the_list_is_sent_to_no_more() {
    let receiver = Receiver::answering(200);
    let config = allowing(Config::simulated(), &[&receiver]);
    let (site, _account) = Site::funded(&config);
    let owner = Owner::new(&site);
    let gateway = site.serve();
    let webhook = owner.create(&gateway, &json!({ "url": receiver.origin() }));
    site.configure(&allowing(Config::simulated(), &[]));
    gateway.hang_up();
    let refused = until("the list is taken", || {
        let made = owner.post(&gateway, "/webhooks", &json!({ "url": receiver.origin() }));
        (made.status == 400).then_some(made)
    });
    assert_eq!(refused.json()["error"]["param"], "url", "{refused:?}");
    happen(&on_file(&site), "wallet.low", 1);
    owner.wait_for(&gateway, &webhook, "pending", "url_refused");
    assert_eq!(receiver.count(), 0);
    gateway.stop();
    // And a list that cannot be read is a mistake of its line.
    site.configure(&Config::simulated().set("webhooks", "allow", "[\"ftp://here\"]"));
    let told = site.cli(&["check-config"]).failed(2);
    assert!(told.contains("`webhooks.allow`") && told.contains("http://"), "{told}");
}

#[test]
fn sqlite_a_process_that_ends_gives_back_what_a_receiver_holds() {
    let receiver = Receiver::holding();
    let (site, _account) = Site::funded(&allowing(Config::simulated(), &[&receiver]));
    let owner = Owner::new(&site);
    let gateway = site.serve();
    owner.create(&gateway, &json!({ "url": receiver.origin() }));
    let execute = on_file(&site);
    happen(&execute, "wallet.low", 1);
    receiver.wait_for_held(1);
    gateway.stop();
    let left = "SELECT state, tries, owner FROM deliveries";
    assert_eq!(execute(left), ["pending|0|None"]);
    receiver.answer(200);
    let gateway = site.serve();
    let told = receiver.wait_for(2);
    assert_eq!(told[0].id(), told[1].id());
    until("it is delivered", || (execute(left) == ["delivered|1|None"]).then_some(()));
    gateway.stop();
}

#[test]
fn postgres_a_delivery_of_a_node_that_was_killed_is_made_by_another_one() {
    let (receiver, database) = (Receiver::holding(), Database::migrated());
    let config = database.configure(allowing(Config::simulated(), &[&receiver]));
    let (site, _account) = Site::funded(&config);
    let owner = Owner::new(&site);
    let first = site.serve();
    let webhook = owner.create(&first, &json!({ "url": receiver.origin() }));
    let execute = |sql: &str| database.execute(sql);
    happen(&execute, "wallet.low", 1);
    receiver.wait_for_held(1);
    let second = site.serve();
    first.kill();
    receiver.answer(200);
    let_time_pass(&execute);
    let done = owner.wait_for(&second, &webhook, "delivered", "delivered");
    assert_eq!(done["tries"], 1, "of the one that was killed nobody knows");
    let told = receiver.wait_for(2);
    assert_eq!(told[0].id(), told[1].id(), "at least once");
    second.stop();
}

#[test]
fn postgres_two_nodes_share_deliveries_and_lose_none() {
    let (receiver, database) = (Receiver::holding(), Database::migrated());
    let config = database.configure(allowing(Config::simulated(), &[&receiver]));
    let (site, _account) = Site::funded(&config);
    let owner = Owner::new(&site);
    let nodes = [site.serve(), site.serve()];
    let webhook = owner.create(&nodes[0], &json!({ "url": receiver.origin() }));
    happen(&|sql| database.execute(sql), "wallet.low", 30);
    // One node has four at once: the others are the other one's.
    receiver.wait_for_held(8);
    receiver.answer(200);
    let path = format!("/webhooks/{}/deliveries", webhook["id"].as_str().unwrap());
    until("all are delivered", || {
        let listed = owner.show(&nodes[1], &path);
        let rows = listed["data"].as_array().unwrap();
        let done = rows.iter().filter(|row| row["state"] == "delivered").count();
        (done == 30).then_some(())
    });
    let ids: BTreeSet<_> = receiver.wait_for(30).iter().map(|it| it.id().to_owned()).collect();
    assert_eq!((ids.len(), receiver.count()), (30, 30));
    for node in nodes {
        let counted = metrics(&node);
        assert!(counted.contains("holdfast_webhook_tries_total"), "{counted}");
        node.stop();
    }
}
