//! Administrative changes of every kind, each under its key, by an owner over the network.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::exchange::{Exchange, Listener};
use crate::site::text;
use crate::{Gateway, PATIENCE, Request, Site};

/// Password of all people.
const PASSWORD: &str = "correct horse battery";

/// Owner at a gateway, and what was changed so far.
pub(super) struct Owner<'g> {
    pub(super) gateway: &'g Gateway,
    key: String,
    pub(super) changes: Vec<Exchange>,
    pub(super) people: Vec<(String, String)>,
}

impl<'g> Owner<'g> {
    pub(super) fn of(site: &Site, gateway: &'g Gateway) -> Self {
        let issued = site.json(&["admin-key", "issue", "--name", "owner", "--role", "owner"]);
        let key = text(&issued, "key");
        Self { gateway, key, changes: Vec::new(), people: Vec::new() }
    }

    /// Makes a change, which has to go well: its answer.
    #[track_caller]
    fn change(&mut self, method: &'static str, path: &str, body: &Value) -> Value {
        let change = Exchange::change(method, path, &self.key, body);
        let answer = change.send(self.gateway.admin_address());
        assert!(matches!(answer.status, 200..=202), "{}: {answer:?}", change.name());
        self.changes.push(change);
        answer.json()
    }

    #[track_caller]
    pub(super) fn post(&mut self, path: &str, body: &Value) -> Value {
        self.change("POST", path, body)
    }

    /// A change of one resource that needs a reason only.
    #[track_caller]
    pub(super) fn act(&mut self, resource: &str, id: &str, action: &str) -> Value {
        let reason = json!({ "reason": format!("{action}: a reason, “quoted”") });
        self.post(&format!("/{resource}/{id}/{action}"), &reason)
    }

    fn show(&self, path: &str) -> Value {
        let read = Exchange::get(Listener::Admin, &format!("/admin/v1{path}"), &self.key);
        read.send(self.gateway.admin_address()).json()
    }

    /// A wallet with funds: its id.
    pub(super) fn wallet(&mut self, name: &str, currency: &str, amount_micros: i64) -> String {
        let order = json!({
            "name": name, "currency": currency, "external_id": format!("crm-{name}"),
            "low_balance_micros": 500_000, "key_spend_micros": 90_000_000, "key_spend_window": "month",
        });
        let wallet = text(&self.post("/wallets", &order), "id");
        let deposit = json!({
            "wallet_id": wallet, "amount_micros": amount_micros, "source": "bank",
            "external_reference": format!("transfer-of-{name}"), "note": "paid in advance",
        });
        self.post("/deposits", &deposit);
        wallet
    }

    /// An API key with all limits: id and secret.
    pub(super) fn limited_key(&mut self, wallet: &str, name: &str) -> (String, String) {
        let order = json!({
            "wallet_id": wallet, "name": name, "external_id": format!("app-{name}"),
            "requests_per_minute": 1_000, "tokens_per_minute": 1_000_000, "concurrency": 50,
            "spend_micros": 50_000_000, "spend_window": "month", "usage": "wallet",
            "models": ["acme/large-1", "holdfast/sim-1"], "reason": "a new customer",
        });
        let issued = self.post("/api_keys", &order);
        (text(&issued, "id"), text(&issued, "key"))
    }

    /// Rotates a key to another secret, next to which the first is accepted for so long: the second one.
    pub(super) fn rotate(&mut self, id: &str, grace_seconds: i64) -> String {
        let grace = json!({ "grace_seconds": grace_seconds, "reason": "a leak" });
        text(&self.post(&format!("/api_keys/{id}/rotate"), &grace), "key")
    }

    /// Edits a key, and issues some that are suspended, revoked and in force.
    pub(super) fn keys(&mut self, wallet: &str, edited: &str) {
        let edit = json!({ "concurrency": 60, "requests_per_minute": null, "balance": "hidden" });
        self.change("PATCH", &format!("/api_keys/{edited}"), &edit);
        for action in ["suspend", "revoke"] {
            let order = json!({ "wallet_id": wallet, "name": action, "reason": "for a test" });
            let id = text(&self.post("/api_keys", &order), "id");
            self.act("api_keys", &id, action);
        }
        let many = json!([{ "name": "bulk-1" }, { "name": "bulk-2", "tokens_per_minute": 5 }]);
        let order = json!({ "wallet_id": wallet, "keys": many, "reason": "for two apps" });
        self.post("/api_keys/bulk", &order);
    }

    /// Postings that follow charges, and the edits of wallets.
    pub(super) fn postings(&mut self, wallet: &str, charged: &str) {
        let refund = json!({ "operation_id": charged, "amount_micros": 7, "reason": "as agreed" });
        self.post("/refunds", &refund);
        for amount_micros in [-250_000, 40] {
            let order = json!({
                "wallet_id": wallet, "amount_micros": amount_micros, "reason": "chargeback, “May”",
            });
            self.post("/adjustments", &order);
        }
        let edit = json!({ "low_balance_micros": 600_000, "external_id": null });
        self.change("PATCH", &format!("/wallets/{wallet}"), &edit);
        let empty = self.wallet("closed", "EUR", 10);
        let order = json!({ "wallet_id": empty, "amount_micros": -10, "reason": "paid out" });
        self.post("/adjustments", &order);
        for action in ["suspend", "resume", "close"] {
            self.act("wallets", &empty, action);
        }
    }

    /// Admin keys in force, rotated and revoked.
    pub(super) fn admin_keys(&mut self, wallet: &str) {
        let limited = json!({ "name": "sees", "role": "holder_viewer", "wallet_id": wallet });
        self.post("/admin_keys", &limited);
        for (name, role, action) in [("pays", "finance", "rotate"), ("reads", "auditor", "revoke")]
        {
            let order = json!({ "name": name, "role": role, "reason": "for a test" });
            let id = text(&self.post("/admin_keys", &order), "id");
            self.act("admin_keys", &id, action);
        }
    }

    /// People with roles, a session and a password, with an open invitation, and one who has left.
    pub(super) fn people(&mut self, wallet: &str) {
        let invite = |owner: &mut Self, name: &str, role: &str, wallet: Option<&str>| {
            let email = format!("{name}@example.com");
            let order = json!({
                "email": email, "name": name, "role": role, "wallet_id": wallet, "reason": "new here",
            });
            let invited = owner.post("/people", &order);
            (text(&invited, "id"), email, text(&invited, "url"))
        };
        let (_, ada, link) = invite(self, "ada", "finance", None);
        self.accept(&link, &ada);
        let (bob, email, link) = invite(self, "bob", "support", None);
        self.accept(&link, &email);
        invite(self, "bob", "holder_admin", Some(wallet));
        let ended = json!({ "role": "support", "reason": "another job" });
        self.post(&format!("/people/{bob}/grants/end"), &ended);
        let (cleo, ..) = invite(self, "cleo", "auditor", None);
        self.act("people", &cleo, "link");
        let (dan, email, link) = invite(self, "dan", "operator", None);
        self.accept(&link, &email);
        self.act("people", &dan, "end");
        // Neither can sign in: one has left, the other's only role is at the holders' listener.
        self.people.retain(|(email, _)| *email == ada);
    }

    /// Takes what a link offers, by a password.
    fn accept(&mut self, link: &str, email: &str) {
        let path = link.find("/link/").expect("a link");
        let password = PASSWORD.replace(' ', "+");
        let form = format!("password={password}&again={password}");
        assert_eq!(self.form(&link[path..], &form), 303, "{email}");
        self.people.push((email.to_owned(), PASSWORD.to_owned()));
    }

    fn form(&self, path: &str, form: &str) -> u16 {
        submit(self.gateway, path, form)
    }

    /// Webhooks: one that is delivered to, one that is gone, and one that is disabled.
    pub(super) fn webhooks(&mut self, wallet: &str, receivers: [&str; 2]) {
        let [good, gone] = receivers;
        let kinds = json!(["api_key.issued", "wallet.credited"]);
        let order = json!({
            "url": format!("{good}/in?key=its-own"), "wallet_id": wallet, "description": "billing",
            "kinds": kinds, "reason": "asked for",
        });
        let told = text(&self.post("/webhooks", &order), "id");
        self.act("webhooks", &told, "rotate");
        let edit = json!({ "description": "billing, again", "kinds": null });
        self.change("PATCH", &format!("/webhooks/{told}"), &edit);
        self.act("webhooks", &told, "test");
        let lost = text(&self.post("/webhooks", &json!({ "url": gone })), "id");
        let order = json!({
            "wallet_id": wallet, "amount_micros": 90_000, "source": "bank",
            "external_reference": "transfer-after-the-webhooks",
        });
        self.post("/deposits", &order);
        let disabled = text(&self.post("/webhooks", &json!({ "url": good })), "id");
        for action in ["disable", "enable", "disable"] {
            self.act("webhooks", &disabled, action);
        }
        self.wait_for(&format!("/webhooks/{lost}"), "disabled");
        self.wait_for_deliveries(&told);
        self.act("webhooks", &told, "disable");
    }

    /// A verification of the ledger, to its end.
    pub(super) fn verify(&mut self) {
        let order = json!({ "kind": "verification", "reason": "before a migration" });
        let job = text(&self.post("/jobs", &order), "id");
        self.wait_for(&format!("/jobs/{job}"), "done");
    }

    fn wait_for(&self, path: &str, state: &str) {
        until(&format!("{path} is {state}"), || self.show(path)["state"] == state);
    }

    fn wait_for_deliveries(&self, webhook: &str) {
        until("all is delivered", || {
            let listed = self.show(&format!("/webhooks/{webhook}/deliveries"));
            let deliveries = listed["data"].as_array().expect("deliveries");
            !deliveries.is_empty() && deliveries.iter().all(|it| it["state"] == "delivered")
        });
    }
}

/// Sends a form of the console as its page does: the status of the answer.
#[must_use]
pub(crate) fn submit(gateway: &Gateway, path: &str, form: &str) -> u16 {
    let admin = gateway.admin_address();
    let request = Request::post(path, form)
        .host(&format!("localhost:{}", admin.port()))
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Sec-Fetch-Site", "same-origin");
    request.send(admin).status
}

/// Polls a state that sends no signal.
#[track_caller]
pub(super) fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
