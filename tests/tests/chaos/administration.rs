//! Changes over the API of administration, killed at each step: the same request again finds them done
//! or does them, exactly once.

use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_tests::postgres::Database;
use holdfast_tests::{
    Account, Answer, Config, Gateway, Reply, Request, Site, Upstream, request_key,
};
use serde_json::{Value, json};

use crate::{CHARGE, FUNDS, acme, check_completion, until};

/// The steps of a change, each with whether it is done there.
const STEPS: [(&str, bool); 3] =
    [("command_judged", false), ("command_written", false), ("command_committed", true)];

/// A book with an owner's key and a charge that can be refunded.
struct World {
    site: Site,
    account: Account,
    owner: String,
    operation: String,
    _upstream: Upstream,
}

impl World {
    fn of(database: Option<&Database>) -> Self {
        let upstream = Upstream::start(Reply::saying("Good day"));
        let config = Config::upstream(&upstream);
        let config = match database {
            Some(database) => database.configure(config),
            None => config,
        };
        let (site, account) = Site::funded(&config);
        let owner = site.json(&["admin-key", "issue", "--name", "me", "--role", "owner"]);
        let owner = owner["key"].as_str().unwrap().to_owned();
        let gateway = site.serve();
        let key = request_key();
        check_completion(&gateway.complete(&account, &key, &acme("Say hello")));
        let found = gateway.get(&account, &format!("/v1/operations/{key}")).json();
        let operation = found["id"].as_str().unwrap().to_owned();
        gateway.stop();
        Self { site, account, owner, operation, _upstream: upstream }
    }

    /// A change under a key of its own.
    fn change(&self, gateway: &Gateway, path: &str, body: &Value, key: &str) -> Request {
        Request::post(&format!("/admin/v1{path}"), body.to_string())
            .host(&format!("localhost:{}", gateway.admin_address().port()))
            .bearer(&self.owner)
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", key)
    }

    /// Kills a gateway at a step of this change, and sends the same request again, twice.
    fn kill_at(&self, (step, is_done): (&str, bool), path: &str, body: &Value) -> Answer {
        let key = request_key();
        let victim = self.site.serve_until(&format!("{step}:1"));
        let waiting = self.change(&victim, path, body, &key).begin(victim.admin_address());
        until("the step is reached", || victim.is_stopped().then_some(()));
        victim.kill();
        assert_eq!(waiting.try_answer(), None);
        let gateway = self.site.serve();
        let [first, again] =
            [(); 2].map(|()| self.change(&gateway, path, body, &key).send(gateway.admin_address()));
        assert_eq!((first.status, again.status), (201, 201), "{step} {path}: {first:?} {again:?}");
        assert_eq!(was_replayed(&first), is_done, "{step} {path}: {first:?}");
        assert!(was_replayed(&again), "{step} {path}: {again:?}");
        assert_eq!(first.json()["id"], again.json()["id"], "{step} {path}");
        gateway.stop();
        first
    }

    fn check(&self) {
        let (mut available, mut keys) = (FUNDS - CHARGE, 1);
        for (n, step) in STEPS.into_iter().enumerate() {
            let wallet = &self.account.wallet;
            let deposit = json!({
                "wallet_id": wallet, "amount_micros": 5, "source": "bank",
                "external_reference": n.to_string(),
            });
            self.kill_at(step, "/deposits", &deposit);
            available += 5;
            let order = json!({ "wallet_id": wallet, "reason": "a new laptop" });
            let issued = self.kill_at(step, "/api_keys", &order);
            // Its secret went with the process: whoever has the key again rotates it.
            assert_eq!(issued.json()["key"].is_null(), step.1, "{issued:?}");
            keys += 1;
            let refund = json!({ "operation_id": self.operation, "amount_micros": 7 });
            self.kill_at(step, "/refunds", &refund);
            available += 7;
            assert_eq!(self.site.balance(&self.account), (available, 0), "{step:?}");
            assert_eq!(self.site.json(&["key", "list"]).as_array().unwrap().len(), keys);
        }
        self.site.verify();
    }
}

fn was_replayed(answer: &Answer) -> bool {
    answer.header("idempotent-replayed") == Some("true")
}

#[test]
fn a_change_that_was_killed_at_any_step_is_done_once() {
    World::of(None).check();
}

#[test]
fn postgres_a_change_that_was_killed_at_any_step_is_done_once() {
    let database = Database::migrated();
    World::of(Some(&database)).check();
    database.check_book();
}

#[test]
fn postgres_of_64_requests_with_one_key_to_two_nodes_one_is_done() {
    let database = Database::migrated();
    let world = World::of(Some(&database));
    let nodes = [world.site.serve(), world.site.serve()];
    let (made, key) = (AtomicUsize::new(0), request_key());
    let deposit = json!({
        "wallet_id": world.account.wallet, "amount_micros": 5, "source": "bank",
        "external_reference": "1",
    });
    std::thread::scope(|scope| {
        for racer in 0..64 {
            let (world, node, made) = (&world, &nodes[racer % 2], &made);
            let (deposit, key) = (&deposit, &key);
            scope.spawn(move || {
                let request = world.change(node, "/deposits", deposit, key);
                let answer = until("a verdict", || {
                    let answer = request.send(node.admin_address());
                    // No more than 16 of a key, nor of a process, wait at once.
                    (!matches!(answer.status, 429 | 503)).then_some(answer)
                });
                assert_eq!(answer.status, 201, "{answer:?}");
                made.fetch_add(usize::from(!was_replayed(&answer)), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(made.into_inner(), 1);
    assert_eq!(world.site.balance(&world.account), (FUNDS - CHARGE + 5, 0));
    let rows = "SELECT count(*) FROM audit WHERE use_case = 'posting.deposit'";
    // One of the account that the site began with.
    assert_eq!(database.execute(rows), ["2"]);
    nodes.into_iter().for_each(Gateway::stop);
    world.site.verify();
}
