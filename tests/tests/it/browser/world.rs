//! The world of the browser's suite: a gateway, seven customers, a failing route, and requests that ended yesterday.

use holdfast_tests::config::{ACME, SIM};
use holdfast_tests::database::execute;
use holdfast_tests::postgres::Database;
use holdfast_tests::site::text;
use holdfast_tests::{Account, Config, Gateway, Reply, Request, Site, Upstream};
use serde_json::{Value, json};

use super::{EMAIL, MATRIX_MAX, Script, Window, invited, run};
use crate::bodies::{acme, sim};
use crate::check::until;
use crate::receiver::Receiver;
use crate::webhooks_delivered::{Owner, allowing};

const DAY_MICROS: i64 = 86_400_000_000;

/// A gateway with the book of a small customer, and somebody who is invited.
pub(super) struct World {
    pub(super) site: Site,
    gateway: Gateway,
    receiver: Receiver,
    rich: Account,
    poor: Account,
    _upstream: Upstream,
    database: Option<Database>,
}

impl World {
    pub(super) fn on_a_file() -> Self {
        Self::of(None)
    }

    pub(super) fn on_a_server() -> Self {
        Self::of(Some(Database::migrated()))
    }

    /// A world in this database or in a file, whose first two requests ended yesterday.
    fn of(database: Option<Database>) -> Self {
        let receiver = Receiver::answering(204);
        let busy = json!({ "error": {
            "message": "The engines are busy.", "type": "overload_error", "code": "engine_busy",
        } });
        let upstream = Upstream::start(Reply::json(503, &busy));
        let site = Site::empty_for(MATRIX_MAX).with_env("HOLDFAST_CONFIG", "holdfast.toml");
        let config = Config::simulated()
            .replace(
                "model = \"sim-1\"",
                "model = \"sim-1\"\n[models.routes.cost]\n\
                 micros_per_million = { input = 1_000_000, output = 3_000_000 }",
            )
            .set("providers.acme", "kind", "\"openai\"")
            .set("providers.acme", "base_url", &format!("\"{}\"", upstream.base_url()))
            .set("providers.acme", "api_key", "\"${UPSTREAM_KEY}\"")
            .model(ACME, "acme", "large", "input = 1_000_000, output = 2_000_000")
            .set("console", "playground", "true");
        let config = allowing(config, &[&receiver]);
        site.configure(&match &database {
            Some(database) => database.configure(config),
            None => config,
        });
        drop(site.cli(&["migrate", "up"]).ok());
        let wallet = ["wallet", "create", "Acme Robotics", "--currency", "USD"];
        let wallet = site.json(&wallet)["id"].as_str().unwrap().to_owned();
        drop(site.json(&["wallet", "deposit", &wallet, "250"]));
        let rich = site.another_key(&wallet, "production");
        let poor = ["wallet", "create", "Borealis", "--currency", "USD", "--low-balance", "1"];
        let poor = site.json(&poor)["id"].as_str().unwrap().to_owned();
        let poor =
            site.key_with(&poor, &["--name", "small budget", "--spend-limit", "0.000001/month"]);
        let gateway = site.serve();
        let complete = |account: &Account, text: &str| {
            let key = holdfast_tests::request_key();
            gateway.complete(account, &key, &sim(text)).status
        };
        for number in 0..4 {
            let text = format!("{number} times hello, and a little more to say");
            assert_eq!(complete(&rich, &text), 200);
        }
        for (number, name) in ["Cygnus", "Dorado", "Eridanus", "Fornax", "Grus"].iter().enumerate()
        {
            let account = site.account(name, "USD", "10");
            assert_eq!(complete(&account, &"word ".repeat(1 + number)), 200);
        }
        let failed = gateway.complete(&rich, &holdfast_tests::request_key(), &acme("hello"));
        assert_eq!(failed.status, 502, "{failed:?}");
        let world = Self { site, gateway, receiver, rich, poor, _upstream: upstream, database };
        world.move_first_requests(-DAY_MICROS);
        world
    }

    /// Moves the ends of the first two requests. A ledger check finds that, until they are moved back.
    fn move_first_requests(&self, micros: i64) {
        let sql = format!(
            "UPDATE operations SET finished_at = finished_at + ({micros}) WHERE seq IN \
             (SELECT seq FROM operations ORDER BY seq LIMIT 2)"
        );
        drop(match &self.database {
            Some(database) => database.execute(&sql),
            None => execute(&self.site.database(), &sql),
        });
    }

    pub(super) fn verify(&self) {
        self.move_first_requests(DAY_MICROS);
        drop(self.site.verify());
    }

    /// One of each thing that a page may be of, beside the customers. Answers where a walk begins: at the first page,
    /// and at the forms that only some of these things lead to.
    pub(super) fn furnish(&self) -> Vec<String> {
        let (site, gateway, rich) = (&self.site, &self.gateway, &self.rich);
        let owner = Owner::new(site);
        let started = owner.post(gateway, "/jobs", &json!({ "kind": "verification" }));
        assert_eq!(started.status, 201, "{started:?}");
        let address = format!("{}/walk", self.receiver.origin());
        let webhook = text(&site.json(&["webhook", "create", &address]), "id");
        let wallet = text(&site.json(&["wallet", "create", "Cedar", "--currency", "USD"]), "id");
        drop(site.cli(&["wallet", "suspend", &wallet, "--reason", "unpaid"]).ok());
        let idle = site.another_key(&rich.wallet, "left behind");
        drop(site.cli(&["key", "suspend", &idle.id, "--reason", "nobody knows it"]).ok());
        until("the webhook was told of that", || {
            self.receiver.wait_for(1).iter().any(|it| it.path == "/walk").then_some(())
        });
        let email = "grace@example.com";
        drop(invited(site, email, &["holder_admin", "--wallet", &rich.wallet]));
        let people = site.json(&["person", "list"]);
        let grace = people.as_array().unwrap().iter().find(|it| it["email"] == email).unwrap();
        let operation = |body: &str| {
            let key = holdfast_tests::request_key();
            let asking = Request::completion(&rich.key, &key, body).begin(gateway.address());
            let id = until("the operation has begun", || {
                let looked = gateway.get(rich, &format!("/v1/operations/{key}"));
                (looked.status == 200).then(|| text(&looked.json(), "id"))
            });
            (id, asking)
        };
        let (running, _no_answer) = operation(&sim("a long way\n[[sim: slow 10m]]"));
        let (ended, answer) = operation(&sim("a short one"));
        assert_eq!(answer.answer().status, 200);
        let refused =
            gateway.complete(&self.poor, &holdfast_tests::request_key(), &sim("Too dear"));
        assert!(refused.status >= 400, "{refused:?}");
        let refusal = until("a refused request", || {
            let listed = site.json(&["refusal", "list"]);
            listed[0]["request_id"].as_str().map(str::to_owned)
        });
        let mut starts =
            ["/", "/account/role", "/search", "/search?q=acme"].map(str::to_owned).to_vec();
        starts.extend(["cancel", "reconcile"].map(|verb| format!("/operations/{running}/{verb}")));
        starts.push(format!("/refusals/{refusal}"));
        starts.push(format!("/operations/{ended}/refund"));
        starts.extend(["enable", "disable"].map(|verb| format!("/webhooks/{webhook}/{verb}")));
        starts.push(format!("/people/{}/link", text(grace, "id")));
        for (things, id, other) in
            [("wallets", &wallet, &rich.wallet), ("keys", &idle.id, &rich.id)]
        {
            starts.extend([format!("/{things}/{id}/resume"), format!("/{things}/{other}/suspend")]);
        }
        starts
    }

    pub(super) fn run(&self, world: &Value) {
        let mut told = json!({
            "key": self.rich.key, "poor": self.poor.key, "model": SIM,
            "receiver": self.receiver.origin(), "resendTries": 1,
        });
        for (name, value) in world.as_object().unwrap() {
            told[name] = value.clone();
        }
        run(&self.site, &self.gateway, &told);
    }

    /// A new owner does all tasks, with a script or without, at a desk or on a phone.
    pub(super) fn tasks(&self, script: Script, window: Window, looks: bool) {
        let (script, narrow) = (script == Script::With, window == Window::Phone);
        let link = invited(&self.site, EMAIL, &["owner"]);
        let site = if script { "tasks" } else { "tasks-without-script" };
        self.run(&json!({
            "parts": ["accept", "tasks"], "link": link, "who": "an owner", "script": script,
            "looks": looks, "site": site, "pictures": script, "narrow": narrow,
        }));
        let path = if script { "/with" } else { "/without" };
        let delivered = self.receiver.wait_for(2);
        let own: Vec<_> = delivered.iter().filter(|it| it.path == path).collect();
        let [first, again, ..] = own.as_slice() else { panic!("{own:?}") };
        assert_eq!(first.id(), again.id(), "it is the same event, sent again");
    }
}
