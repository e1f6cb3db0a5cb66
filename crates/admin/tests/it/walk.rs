//! Every role at every endpoint: allowed, or refused with the name of the use case; and of other
//! wallets nothing for a holder.

use holdfast_accounts::INTERFACES;
use holdfast_domain::OperationId;
use holdfast_domain::admin::Administration as _;
use holdfast_domain::admin::{Reach, Role};
use serde_json::{Value, json};

use crate::operations::running;
use crate::world::{Call, World, deposit, key, reach};

/// A webhook of a wallet, to be made.
fn webhook(wallet: &str) -> Value {
    json!({ "wallet_id": wallet, "url": "https://hooks.example.com/in" })
}

/// An invitation of somebody to a wallet.
fn invitation(wallet: &str) -> Value {
    let email = format!("{}@example.com", key());
    json!({ "email": email, "role": "holder_viewer", "wallet_id": wallet })
}

/// Things of one wallet, by the name of their list.
struct Things {
    wallet: String,
    api_key: String,
    operation: String,
    deposit: String,
    event: String,
    admin_key: String,
    job: String,
    webhook: String,
    /// Somebody who is offered a role of the wallet, and somebody who is ended.
    people: [String; 2],
    /// Event that the webhook was tested with.
    tested: String,
}

impl Things {
    async fn new(world: &World, name: &str) -> Self {
        let wallet = world.wallet(name, 1_000).await;
        let api_key = world.api_key(&wallet).await;
        let claim = running(world, &wallet, &api_key).await;
        let deposit = world.post("/deposits", deposit(&wallet, 5)).await.json();
        let events = world.get(&format!("/events?wallet_id={wallet}&limit=1")).await.json();
        let (admin_key, _) = world.admin_key(Role::HolderViewer, reach(&wallet)).await;
        // One of an owner of its own: each has one at a time.
        let (_, starter) = world.admin_key(Role::Owner, Reach::All).await;
        let start = Call::post("/jobs", &json!({ "kind": "verification" })).bearer(&starter);
        let job = world.send(start).await.json();
        let webhook = world.post("/webhooks", webhook(&wallet)).await.json();
        let webhook = webhook["id"].as_str().unwrap().to_owned();
        let tested = world.post(&format!("/webhooks/{webhook}/test"), json!({})).await.json();
        let mut people = Vec::new();
        for _person in 0..2 {
            let invited = world.post("/people", invitation(&wallet)).await.json();
            people.push(invited["id"].as_str().unwrap().to_owned());
        }
        Self {
            people: people.try_into().unwrap(),
            webhook,
            tested: tested["event_id"].as_str().unwrap().to_owned(),
            api_key,
            job: job["id"].as_str().unwrap().to_owned(),
            operation: OperationId::of(claim.api_key, claim.request_key).to_string(),
            deposit: deposit["id"].as_str().unwrap().to_owned(),
            event: events["data"][0]["id"].as_str().unwrap().to_owned(),
            admin_key: admin_key.to_string(),
            wallet,
        }
    }

    /// The path with the id of a thing in it.
    fn path(&self, path: &str) -> String {
        let list = path.split('/').nth(1).unwrap();
        let id = match list {
            "wallets" => &self.wallet,
            "api_keys" => &self.api_key,
            "operations" => &self.operation,
            "events" => &self.event,
            "admin_keys" => &self.admin_key,
            "jobs" => &self.job,
            "webhooks" => &self.webhook,
            "people" => &self.people[usize::from(path.ends_with("{id}/end"))],
            _ => &self.deposit,
        };
        path.replace("{id}", id).replace("{event}", &self.tested)
    }

    /// A body that is whole for the endpoint.
    fn body(&self, method: &str, path: &str) -> Value {
        let Self { wallet, operation, .. } = self;
        match (method, path) {
            ("POST", "/wallets") => json!({ "name": key()[..8], "currency": "USD" }),
            ("POST", "/deposits") => deposit(wallet, 5),
            ("POST", "/adjustments") => {
                json!({ "wallet_id": wallet, "amount_micros": 1, "reason": "walk" })
            }
            ("POST", "/refunds") => json!({ "operation_id": operation, "amount_micros": 1 }),
            ("POST", "/api_keys") => json!({ "wallet_id": wallet, "reason": "walk" }),
            ("POST", "/api_keys/bulk") => {
                json!({ "wallet_id": wallet, "reason": "walk", "keys": [{}] })
            }
            ("POST", "/jobs") => json!({ "kind": "verification" }),
            ("POST", "/webhooks") => webhook(wallet),
            ("POST", "/people") => invitation(wallet),
            // What they have not, so that the next role finds them as this one did.
            ("POST", "/people/{id}/grants/end") => {
                json!({ "role": "holder_developer", "wallet_id": wallet })
            }
            ("POST", "/admin_keys") => json!({ "name": key()[..8], "role": "auditor" }),
            _ => json!({ "reason": "walk" }),
        }
    }

    fn ask(&self, method: &'static str, path: &str) -> Call {
        match method {
            "GET" => Call::get(&self.path(path)),
            _ => Call::post(&self.path(path), &self.body(method, path)).method(method),
        }
    }
}

#[tokio::test]
async fn each_role_has_its_use_cases_and_no_other() {
    let world = World::new().await;
    let own = Things::new(&world, "own").await;
    for role in Role::ALL {
        let reach = if role.is_holder() { reach(&own.wallet) } else { Reach::All };
        let (_, bearer) = world.admin_key(role, reach).await;
        for row in INTERFACES.iter() {
            for (method, path) in &row.endpoints {
                let told = world.send(own.ask(method, path).bearer(&bearer)).await;
                // The file of the ledger is no JSON.
                let is_file = told.status == 200 && path == "/ledger";
                let error = if is_file { Value::Null } else { told.json()["error"].clone() };
                let at = format!("{role} {method} {path}: {told:?}");
                if role.is_holder() && path == "/people/{id}/end" {
                    // It ends what a person has of the wallet, and nobody: an owner did.
                    assert!(matches!(told.status, 403 | 404), "{at}");
                } else if role.may(row.use_case) {
                    // The thing may stand against it, or a bound may be missing; the role does not.
                    assert_ne!(error["code"], "forbidden", "{at}");
                    assert!(told.status != 401 && told.status < 500, "{at}");
                    // A deposit is neither, and no root is signed.
                    let is_absent = matches!(
                        path.as_str(),
                        "/adjustments/{id}" | "/refunds/{id}" | "/operations/{id}/proof"
                    );
                    assert!(told.status != 404 || is_absent, "{at}");
                } else {
                    told.is_error(403, "forbidden");
                    assert_eq!(error["scope"], row.use_case.label(), "{at}");
                }
            }
        }
    }
}

#[tokio::test]
async fn without_a_key_that_is_good_every_endpoint_says_the_same() {
    let world = World::new().await;
    let own = Things::new(&world, "own").await;
    let (ended, bearer) = world.admin_key(Role::Owner, Reach::All).await;
    world.post(&format!("/admin_keys/{ended}/revoke"), json!({})).await;
    let before = world.store.trail_head().await.unwrap();
    let mut bodies = Vec::new();
    for (method, path) in INTERFACES.iter().flat_map(|row| &row.endpoints) {
        let ask = own.ask(method, path);
        let other = format!("{}x", world.owner);
        for ask in [ask.clone(), ask.clone().bearer(&other), ask.bearer(&bearer)] {
            let told = world.send(ask).await;
            assert_eq!((told.status, told.code().as_str()), (401, "invalid_admin_key"), "{path}");
            bodies.push(told.body);
        }
    }
    assert!(bodies.len() > 100);
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
    assert_eq!(world.store.trail_head().await.unwrap(), before, "something was done");
}

#[tokio::test]
async fn an_owner_is_answered_at_every_endpoint() {
    let world = World::new().await;
    for row in INTERFACES.iter() {
        for (method, path) in &row.endpoints {
            let things = Things::new(&world, &key()[..8]).await;
            let told = world.send(things.ask(method, path).bearer(&world.owner)).await;
            // The deposit is no adjustment and no refund, nothing was charged, and no root is signed.
            let expected = match (*method, path.as_str()) {
                ("GET", "/adjustments/{id}" | "/refunds/{id}" | "/operations/{id}/proof") => 404,
                // It asks for no route.
                ("GET", "/routes/history") => 400,
                ("POST", "/refunds") => 422,
                ("POST", "/wallets/{id}/close") => 409,
                ("POST", path) if !path.contains("{id}") => 201,
                _ => 200,
            };
            assert_eq!(told.status, expected, "{method} {path}: {told:?}");
        }
    }
}

#[tokio::test]
async fn of_another_wallet_nothing_exists_for_a_holder() {
    let world = World::new().await;
    let (own, other) = (Things::new(&world, "own").await, Things::new(&world, "other").await);
    for role in Role::ALL.into_iter().filter(|role| role.is_holder()) {
        let (_, bearer) = world.admin_key(role, reach(&own.wallet)).await;
        for row in INTERFACES.iter().filter(|row| role.may(row.use_case)) {
            for (method, path) in &row.endpoints {
                let is_list = *method == "GET" && !path.contains("{id}");
                let told = world.send(other.ask(method, path).bearer(&bearer)).await;
                if is_list {
                    let text = String::from_utf8_lossy(&told.body).into_owned();
                    assert!(!text.contains(&other.wallet), "{role} {path}: {text}");
                    // Nothing has finished, was adjusted, refunded or refused; models and prices are all
                    // wallets', and a sum names none.
                    let has_none = matches!(
                        path.as_str(),
                        "/usage"
                            | "/adjustments"
                            | "/refunds"
                            | "/refusals"
                            | "/refusals/hours"
                            | "/models"
                            | "/prices"
                            | "/held"
                    );
                    assert!(has_none || text.contains(&own.wallet), "{role} {path}: {text}");
                } else {
                    told.is_error(404, "not_found");
                    let own = world.send(own.ask(method, path).bearer(&bearer)).await;
                    let is_other_kind =
                        matches!(path.as_str(), "/adjustments/{id}" | "/refunds/{id}");
                    assert!(own.status != 404 || is_other_kind, "{role} {method} {path}: {own:?}");
                }
            }
        }
        for list in ["api_keys", "operations", "deposits"] {
            let path = format!("/{list}?wallet_id={}", other.wallet);
            let told = world.send(Call::get(&path).bearer(&bearer)).await;
            assert_eq!(told.json()["data"], json!([]), "{role} {path}");
        }
        let keys = format!("api_key_id={}&request_key={}", other.api_key, key());
        let told = world.send(Call::get(&format!("/operations?{keys}")).bearer(&bearer)).await;
        assert_eq!(told.json()["data"], json!([]));
        let named = world.send(Call::get("/wallets?name=other").bearer(&bearer)).await;
        assert_eq!(named.json()["data"], json!([]));
    }
}
