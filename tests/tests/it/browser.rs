//! The console in a real browser: people's tasks with a script and without, every page that they are led to.
//!
//! ```text
//! gateway and a world ─▶ node suite.mjs (HOLDFAST_TEST_WORLD) ─▶ Chromium ─▶ pictures in target/console
//! ```
//!
//! The suite is in `tests/console`; the task runner installs its libraries and the browser. Where they cannot be had,
//! tests named `browser_*` are skipped and the reason is told. The whole matrix is `cargo xtask console`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use holdfast_tests::config::SIM;
use holdfast_tests::postgres::Database;
use holdfast_tests::{Account, Config, Gateway, Ran, Site};
use serde_json::{Value, json};

use crate::bodies::sim;
use crate::clients::given;
use crate::embedded;
use crate::receiver::Receiver;
use crate::webhooks_delivered::allowing;

/// Time for one run of the suite, on a machine that does much else; nextest ends a test long before.
const RUN_MAX: Duration = Duration::from_secs(900);
/// Time for a test of the matrix, all of whose runs are on one gateway.
const MATRIX_MAX: Duration = Duration::from_secs(3_600);
const EMAIL: &str = "ada@example.com";
const PASSWORD: &str = "correct horse battery";
/// Kinds of pages to which the first page leads an owner, by so many links as it takes.
const KINDS: [&str; 23] = [
    "/",
    "/wallets",
    "/wallets/ID",
    "/wallets/ID/deposit",
    "/wallets/ID/adjust",
    "/postings/ID",
    "/keys",
    "/keys/ID",
    "/keys/ID/rotate",
    "/operations",
    "/operations/ID",
    "/operations/ID/refund",
    "/usage",
    "/models",
    "/events",
    "/events/ID",
    "/webhooks",
    "/trail",
    "/jobs",
    "/people",
    "/people/ID",
    "/admin-keys",
    "/account",
];

/// The same of the administrator of a wallet.
const HOLDERS_KINDS: [&str; 13] = [
    "/",
    "/wallets",
    "/wallets/ID",
    "/postings/ID",
    "/keys",
    "/keys/ID",
    "/operations",
    "/usage",
    "/models",
    "/playground",
    "/events",
    "/webhooks",
    "/people",
];

/// Script of the console in a browser that runs it, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    With,
    Without,
}

/// A gateway with the book of a small customer, and somebody who is invited.
struct World {
    site: Site,
    gateway: Gateway,
    receiver: Receiver,
    rich: Account,
    poor: Account,
    _database: Option<Database>,
}

const MANUAL: &str = include_str!("../../../docs/console.md");

/// Names of the pictures in the manual.
fn pictures() -> impl Iterator<Item = &'static str> {
    let behind = MANUAL.split("](console/").skip(1);
    behind.filter_map(|rest| rest.split_once(".png)").map(|(name, _)| name))
}

#[test]
fn every_picture_of_the_manual_and_the_readme_is_there_and_small() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/console");
    let readme = include_str!("../../../README.md").split("](docs/console/").skip(1);
    let of_readme = readme.filter_map(|rest| rest.split_once(".png)").map(|(name, _)| name));
    let named: BTreeSet<_> = pictures().collect();
    assert!(named.len() >= 10, "{named:?}");
    for name in named.iter().copied().chain(of_readme) {
        assert!(named.contains(name), "{name} is not in the manual");
        let bytes = std::fs::metadata(docs.join(format!("{name}.png"))).unwrap().len();
        assert!(bytes <= 60 << 10, "{name} has {bytes} bytes");
    }
    let there = std::fs::read_dir(docs).unwrap().count();
    assert_eq!(there, named.len(), "a picture that the manual does not show");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/console")
}

/// Runs the suite on a gateway: what it does, and with what.
fn run(site: &Site, gateway: &Gateway, world: &Value) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("console");
    for file in std::fs::read_dir(&scripts).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_some_and(|it| it == "mjs") {
            std::fs::copy(&file, site.path(file.file_name().unwrap().to_str().unwrap())).unwrap();
        }
    }
    let modules = site.path("node_modules");
    if !modules.exists() {
        let installed = given("HOLDFAST_TEST_BROWSER_DIR").join("node_modules");
        std::os::unix::fs::symlink(installed, modules).unwrap();
    }
    let mut told = json!({
        "base": format!("http://localhost:{}", gateway.admin_address().port()),
        "api": format!("http://{}", gateway.address()),
        "folder": folder(), "email": EMAIL, "password": PASSWORD, "script": true, "looks": false,
    });
    for (name, value) in world.as_object().unwrap() {
        told[name] = value.clone();
    }
    let mut node = Command::new("node");
    node.arg("suite.mjs").current_dir(site.folder()).env("NO_PROXY", "localhost,127.0.0.1");
    node.env("HOLDFAST_TEST_CHROMIUM", given("HOLDFAST_TEST_CHROMIUM"));
    let ran = Ran::within(node.env("HOLDFAST_TEST_WORLD", told.to_string()), RUN_MAX);
    show(&ran.stdout);
    drop(ran.ok());
}

#[expect(clippy::print_stdout, reason = "what the suite says of each step, where it is asked for")]
fn show(said: &str) {
    println!("{said}");
}

/// Path of the link in an invitation.
fn invited(site: &Site, email: &str, role: &[&str]) -> String {
    let told = site.json(&[&["person", "invite", email, "--role"], role].concat()).to_string();
    let at = told.find("/link/").unwrap();
    told[at..].split('"').next().unwrap().to_owned()
}

impl World {
    fn on_a_file() -> Self {
        Self::of(|config| config)
    }

    fn on_a_server() -> Self {
        let database = Database::make();
        let world = Self::of(|config| database.configure(config));
        Self { _database: Some(database), ..world }
    }

    fn of(place: impl Fn(Config) -> Config) -> Self {
        let receiver = Receiver::answering(204);
        let site = Site::empty_for(MATRIX_MAX).with_env("HOLDFAST_CONFIG", "holdfast.toml");
        site.configure(&place(allowing(Config::simulated(), &[&receiver])));
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
        for number in 0..4 {
            let body = sim(&format!("{number} times hello, and a little more to say"));
            let key = holdfast_tests::request_key();
            assert_eq!(gateway.complete(&rich, &key, &body).status, 200);
        }
        Self { site, gateway, receiver, rich, poor, _database: None }
    }

    fn run(&self, world: &Value) {
        let mut told = json!({
            "key": self.rich.key, "poor": self.poor.key, "model": SIM,
            "receiver": self.receiver.origin(), "resendTries": 1,
        });
        for (name, value) in world.as_object().unwrap() {
            told[name] = value.clone();
        }
        run(&self.site, &self.gateway, &told);
    }

    /// A new owner does all tasks, with a script or without.
    fn tasks(&self, script: Script, looks: bool) {
        let script = script == Script::With;
        let link = invited(&self.site, EMAIL, &["owner"]);
        let site = if script { "tasks" } else { "tasks-without-script" };
        self.run(&json!({
            "parts": ["accept", "tasks"], "link": link, "who": "an owner", "script": script,
            "looks": looks, "site": site, "pictures": script,
        }));
        let path = if script { "/with" } else { "/without" };
        let delivered = self.receiver.wait_for(2);
        let own: Vec<_> = delivered.iter().filter(|it| it.path == path).collect();
        let [first, again, ..] = own.as_slice() else { panic!("{own:?}") };
        assert_eq!(first.id(), again.id(), "it is the same event, sent again");
    }
}

#[test]
fn browser_people_do_their_tasks_with_a_script() {
    let world = World::on_a_file();
    world.tasks(Script::With, false);
    drop(world.site.verify());
    // Those of the first sign-in are of another test.
    for picture in pictures().filter(|it| !["today", "first-owner"].contains(it)) {
        let made = folder().join(format!("pictures/{picture}.png"));
        assert!(made.is_file(), "the manual shows {picture}, which nothing makes");
    }
}

#[test]
fn browser_people_do_their_tasks_without_a_script() {
    let world = World::on_a_file();
    world.tasks(Script::Without, false);
    drop(world.site.verify());
}

#[test]
fn browser_the_first_owner_uses_the_printed_link() {
    for script in [true, false] {
        let site = embedded::empty().with_env("HOLDFAST_ADMIN_LISTEN", "127.0.0.1:0");
        let gateway = embedded::start(&site);
        let link = gateway.printed_after("first owner, once and within an hour: ");
        let base = gateway.printed_after("console: ");
        let world = json!({
            "parts": ["first"], "base": base, "link": link, "script": script, "looks": script,
            "pictures": script,
            "site": "embedded", "who": "the first owner",
        });
        run(&site, &gateway, &world);
        gateway.stop();
    }
}

#[test]
fn browser_every_page_of_the_owner_is_sound() {
    let world = World::on_a_file();
    let link = invited(&world.site, EMAIL, &["owner"]);
    world.run(&json!({
        "parts": ["accept", "walk"], "link": link, "who": "an owner", "looks": true,
        "site": "owner", "kinds": KINDS,
    }));
}

#[test]
fn browser_a_holder_walks_over_their_own_listener_and_uses_the_playground() {
    let site = Site::empty_for(MATRIX_MAX).with_env("HOLDFAST_CONFIG", "holdfast.toml");
    site.configure(&holders_listener());
    drop(site.cli(&["migrate", "up"]).ok());
    let account = site.account("main", "USD", "10.00");
    let gateway = site.serve();
    let base = format!("http://localhost:{}", gateway.console_address().port());
    let link = invited(&site, EMAIL, &["holder_admin", "--wallet", "main"]);
    for (script, parts) in [(true, vec!["accept", "walk"]), (false, vec!["sign-in"])] {
        let parts = [parts, vec!["playground"]].concat();
        let world = json!({
            "parts": parts, "base": base, "link": link, "who": "a holder", "key": account.key,
            "script": script, "looks": script, "site": "holder",
            "kinds": HOLDERS_KINDS,
        });
        run(&site, &gateway, &world);
    }
    drop(site.verify());
    gateway.stop();
}

/// A gateway with the holders' own listener, and a playground on it.
fn holders_listener() -> Config {
    let config = Config::simulated().set("console", "listen", "\"127.0.0.1:0\"");
    config.set("console", "playground", "true")
}

/// Everybody who runs the service walks over all of their pages, with a script and without. The owner's have all that
/// those of the others have, and are looked at from all sides where that is asked for.
fn walk_as_operators(world: &World, folder: &str, looks: bool) {
    for role in ["owner", "operator", "finance", "support", "auditor"] {
        let email = format!("{role}@example.com");
        let link = invited(&world.site, &email, &[role]);
        for (script, part) in [(true, "accept"), (false, "sign-in")] {
            world.run(&json!({
                "parts": [part, "walk"], "link": link, "who": role, "email": email,
                "script": script, "looks": looks && script && role == "owner", "site": format!("{folder}/{role}"),
            }));
        }
    }
}

#[test]
#[ignore = "takes minutes: cargo xtask console"]
fn browser_matrix_operators_on_a_file() {
    let world = World::on_a_file();
    world.tasks(Script::With, true);
    walk_as_operators(&world, "file", true);
    drop(world.site.verify());
}

#[test]
#[ignore = "takes minutes: cargo xtask console"]
fn browser_matrix_operators_on_a_server() {
    let world = World::on_a_server();
    world.tasks(Script::With, false);
    // The same pages of other rows: nothing more is seen by looking at them from all sides again.
    walk_as_operators(&world, "server", false);
    drop(world.site.verify());
}

#[test]
#[ignore = "takes minutes: cargo xtask console"]
fn browser_matrix_holders() {
    let site = Site::empty_for(MATRIX_MAX).with_env("HOLDFAST_LISTEN", "127.0.0.1:0");
    let site = site.with_env("HOLDFAST_ADMIN_LISTEN", "127.0.0.1:0");
    let gateway = embedded::start(&site);
    let base = gateway.printed_after("console: ");
    for role in ["holder_admin", "holder_developer", "holder_viewer"] {
        let email = format!("{role}@example.com");
        let link = invited(&site, &email, &[role, "--wallet", "default"]);
        for (script, part) in [(true, "accept"), (false, "sign-in")] {
            let world = json!({
                "parts": [part, "walk"], "base": base, "link": link, "who": role, "email": email,
                "script": script, "looks": script, "site": format!("holders/{role}"),
            });
            run(&site, &gateway, &world);
        }
    }
    gateway.stop();
}
