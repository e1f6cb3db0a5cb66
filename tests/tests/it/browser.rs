//! The console in a real browser: people's tasks with a script and without, every page that they are led to.
//!
//! ```text
//! gateway and a world ─▶ node suite.mjs (HOLDFAST_TEST_WORLD) ─▶ Chromium ─▶ pictures in target/console
//! ```
//!
//! The suite is in `tests/console`; the task runner installs its libraries and the browser. Where they cannot be had,
//! tests named `browser_*` are skipped and the reason is told. The whole matrix is `cargo xtask console`.

mod world;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use holdfast_accounts::VERBS;
use holdfast_tests::postgres::Database;
use holdfast_tests::{Config, Gateway, Ran, Site};
use serde_json::{Value, json};

use self::world::World;
use crate::bodies::sim;
use crate::clients::given;
use crate::embedded;

/// Time for one run of the suite, on a machine that does much else; nextest ends a test long before.
const RUN_MAX: Duration = Duration::from_secs(900);
/// Time for a test of the matrix, all of whose runs are on one gateway.
const MATRIX_MAX: Duration = Duration::from_secs(3_600);
const EMAIL: &str = "ada@example.com";
const PASSWORD: &str = "correct horse battery";
/// The console's own table of routes: a page that is new has to be walked over.
const TABLE: &str = include_str!("../../../crates/console/src/pages.rs");
/// Routes of the table that are no pages, or none of a person who is signed in, whose walk opens pages alone; and the
/// page of a queued job, which a node begins within moments.
const NO_PAGES: [&str; 6] = [
    "/sign-in",
    "/sign-out",
    "/link/{token}",
    "/playground/stream",
    "/playground/operation",
    "/jobs/{id}/cancel",
];

/// Kinds of pages to which the first page leads the administrator of a wallet, by so many links as it takes.
const HOLDERS_KINDS: [&str; 14] = [
    "/",
    "/wallets",
    "/wallets/ID",
    "/wallets/ID/statement",
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

/// Kinds of pages that an owner has: of every route that has one.
fn kinds() -> Vec<String> {
    let routes = TABLE.split(".route(").skip(1).filter(|route| !route.starts_with('&'));
    let paths = routes.map(|route| route.split('"').nth(1).unwrap());
    let is_page = |path: &&str| !path.ends_with(".csv") && !NO_PAGES.contains(path);
    let kind = |path: &str| path.replace("{id}", "ID").replace("{event}", "ID");
    let verbs = VERBS.iter().map(|verb| kind(&verb.page()));
    let kinds: Vec<_> = paths.filter(is_page).map(kind).chain(verbs).collect();
    assert!(kinds.len() > 50, "the table is not read: {kinds:?}");
    kinds
}

/// Script of the console in a browser that runs it, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    With,
    Without,
}

/// Size of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Window {
    Desk,
    Phone,
}

const MANUAL: &str = include_str!("../../../docs/how-to/use-the-console.md");

/// Names of the pictures in the manual.
fn pictures() -> impl Iterator<Item = &'static str> {
    let behind = MANUAL.split("](../console/").skip(1);
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

#[test]
fn browser_people_do_their_tasks_with_a_script() {
    let world = World::on_a_file();
    world.tasks(Script::With, Window::Phone, false);
    world.verify();
    // Those of the first sign-in are of another test.
    for picture in pictures().filter(|it| !["today", "first-owner"].contains(it)) {
        let made = folder().join(format!("pictures/{picture}.png"));
        assert!(made.is_file(), "the manual shows {picture}, which nothing makes");
    }
}

#[test]
fn browser_people_do_their_tasks_without_a_script() {
    let world = World::on_a_file();
    world.tasks(Script::Without, Window::Desk, false);
    world.verify();
}

#[test]
fn browser_the_first_owner_uses_the_printed_link() {
    for script in [true, false] {
        let site = embedded::empty().with_env("HOLDFAST_ADMIN_LISTEN", "127.0.0.1:0");
        let gateway = embedded::start(&site);
        let link = gateway.printed_after("link for the first owner, valid once within an hour: ");
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

/// An owner walks over every page, and looks at one half of them from all sides: all of them take longer than a test
/// may on a machine that does much else.
fn look_at_half_of_the_owners_pages(half: u8, parts: &[&str]) {
    let world = World::on_a_file();
    let link = invited(&world.site, EMAIL, &["owner"]);
    world.run(&json!({
        "parts": parts, "link": link, "who": "an owner", "looks": true, "half": half,
        "site": "owner", "starts": world.furnish(), "kinds": kinds(),
    }));
}

#[test]
fn browser_every_page_of_the_owner_is_sound_in_one_half() {
    look_at_half_of_the_owners_pages(0, &["accept", "walk"]);
}

#[test]
fn browser_every_page_of_the_owner_is_sound_in_the_other_half() {
    look_at_half_of_the_owners_pages(1, &["accept", "walk", "failures"]);
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
    let starts = world.furnish();
    for role in ["owner", "operator", "finance", "support", "auditor"] {
        let email = format!("{role}@example.com");
        let link = invited(&world.site, &email, &[role]);
        let is_owner = role == "owner";
        for (script, part) in [(true, "accept"), (false, "sign-in")] {
            // Nobody else opens all of them.
            let (starts, kinds) =
                if is_owner { (starts.clone(), kinds()) } else { Default::default() };
            world.run(&json!({
                "parts": [part, "walk"], "link": link, "who": role, "email": email,
                "script": script, "looks": looks && script && is_owner,
                "site": format!("{folder}/{role}"), "starts": starts, "kinds": kinds,
            }));
        }
    }
}

/// The holders of a wallet walk over all of their pages on a listener of their own, with a script and without.
fn walk_as_holders(site: &Site, gateway: &Gateway, folder: &str) {
    let base = format!("http://localhost:{}", gateway.console_address().port());
    for role in ["holder_admin", "holder_developer", "holder_viewer"] {
        let email = format!("{role}@example.com");
        let link = invited(site, &email, &[role, "--wallet", "main"]);
        let kinds: &[&str] = if role == "holder_admin" { &HOLDERS_KINDS } else { &[] };
        for (script, part) in [(true, "accept"), (false, "sign-in")] {
            let world = json!({
                "parts": [part, "walk"], "base": base, "link": link, "who": role, "email": email,
                "script": script, "looks": script, "site": format!("{folder}/{role}"), "kinds": kinds,
            });
            run(site, gateway, &world);
        }
    }
}

/// A site with a wallet of holders, served on their own listener.
fn site_of_holders(config: &Config) -> (Site, Gateway) {
    let site = Site::empty_for(MATRIX_MAX).with_env("HOLDFAST_CONFIG", "holdfast.toml");
    site.configure(config);
    drop(site.cli(&["migrate", "up"]).ok());
    let account = site.account("main", "USD", "10.00");
    let gateway = site.serve();
    let key = holdfast_tests::request_key();
    assert_eq!(gateway.complete(&account, &key, &sim("hello")).status, 200);
    (site, gateway)
}

#[test]
#[ignore = "takes minutes: cargo xtask console"]
fn browser_matrix_operators_on_a_file() {
    World::on_a_file().tasks(Script::Without, Window::Desk, false);
    World::on_a_file().tasks(Script::Without, Window::Phone, false);
    World::on_a_file().tasks(Script::With, Window::Phone, false);
    let world = World::on_a_file();
    world.tasks(Script::With, Window::Desk, true);
    walk_as_operators(&world, "file", true);
    world.verify();
}

#[test]
#[ignore = "takes minutes: cargo xtask console"]
fn browser_matrix_operators_on_a_server() {
    World::on_a_server().tasks(Script::Without, Window::Desk, false);
    World::on_a_server().tasks(Script::Without, Window::Phone, false);
    World::on_a_server().tasks(Script::With, Window::Phone, false);
    let world = World::on_a_server();
    world.tasks(Script::With, Window::Desk, false);
    // The same pages of other rows: nothing more is seen by looking at them from all sides again.
    walk_as_operators(&world, "server", false);
    world.verify();
}

#[test]
#[ignore = "takes minutes: cargo xtask console"]
fn browser_matrix_holders_on_a_file() {
    let (site, gateway) = site_of_holders(&holders_listener());
    walk_as_holders(&site, &gateway, "holders/file");
    drop(site.verify());
    gateway.stop();
}

#[test]
#[ignore = "takes minutes: cargo xtask console"]
fn browser_matrix_holders_on_a_server() {
    let database = Database::migrated();
    let (site, gateway) = site_of_holders(&database.configure(holders_listener()));
    walk_as_holders(&site, &gateway, "holders/server");
    drop(site.verify());
    gateway.stop();
}
