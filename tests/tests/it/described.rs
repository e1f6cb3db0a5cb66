//! The API's description of itself: served to everybody, the same as the code says, and kept to. A
//! tester that knows nothing but the description sends what it allows and what it forbids.

use std::process::Command;

use holdfast_tests::config::SIM;
use holdfast_tests::{Account, Config, Gateway, Ran, Request, Site, request_key};
use holdfast_wire::error::Code;
use holdfast_wire::openapi;
use serde_json::{Value, json};

use crate::check::{check_json, error};
use crate::clients::given;

struct World {
    site: Site,
    account: Account,
    gateway: Gateway,
}

/// A model that may be asked for everything, and a wallet that pays for it.
fn world() -> World {
    let allow = "allow = [\"file_id\", \"audio.id\", \"voice.id\", \"store\", \"service_tier\", \
                 \"web_search_options\", \"moderation\", \"prompt_cache_retention\"]";
    let contract = "contract = 1\n";
    let config = Config::simulated().replace(contract, &format!("{contract}{allow}\n"));
    let (site, account) = Site::funded(&config);
    drop(site.json(&["wallet", "deposit", &account.wallet, "1000000.00"]));
    let gateway = site.serve();
    World { site, account, gateway }
}

#[test]
fn the_description_is_served_to_everybody() {
    let world = world();
    let document = check_json(&world.gateway.send(&Request::get("/openapi.json")), 200);
    assert_eq!(document, openapi::document());
    assert_eq!(document["openapi"], "3.1.0");
    let answer = world.gateway.send(&Request::get("/docs"));
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert_eq!(answer.body, openapi::page(&document));
}

#[test]
fn every_described_path_takes_its_method_and_no_other() {
    let world = world();
    let key = request_key();
    let paths = openapi::document()["paths"].as_object().unwrap().clone();
    for (template, methods) in paths {
        let path = template.replace("{idempotency-key}", &key);
        let path = path.replace("{publisher}/{name}", SIM);
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let request = Request::get(&path).method(method).bearer(&world.account.key);
            let answer = world.gateway.send(&request);
            if methods.get(method.to_lowercase()).is_some() {
                let is_looked_up = template != path;
                assert!(answer.status != 405, "{method} {path}: {answer:?}");
                assert!(answer.status != 404 || is_looked_up, "{method} {path}: {answer:?}");
            } else {
                let mut all = methods.as_object().unwrap().keys();
                let allowed = if all.any(|method| method == "get") { "GET" } else { "POST" };
                error(Code::MethodNotAllowed).allow(allowed).check(&answer);
            }
        }
    }
}

/// A tool that stands beside the Python that the task runner has prepared.
fn tool(name: &str, world: &World) -> Command {
    let mut command = Command::new(given("HOLDFAST_TEST_PYTHON").with_file_name(name));
    command.current_dir(world.site.folder()).env("NO_PROXY", "127.0.0.1");
    command
}

fn script(name: &str) -> String {
    format!("{}/clients/python/{name}.py", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn python_finds_the_description_valid() {
    let world = world();
    let answer = world.gateway.send(&Request::get("/openapi.json"));
    world.site.write("openapi.json", answer.text());
    let said = Ran::of(tool("openapi-spec-validator", &world).arg("openapi.json")).ok();
    assert_eq!(said.trim(), "openapi.json: OK");
    world.site.write("openapi.json", &answer.text().replace("\"responses\"", "\"answers\""));
    let broken = Ran::of(tool("openapi-spec-validator", &world).arg("openapi.json"));
    assert_ne!(broken.code, Some(0), "it looks");
}

#[test]
fn python_finds_the_page_s_style_allowed_and_nothing_else() {
    let world = world();
    let mut python = tool("python", &world);
    let said = Ran::of(python.arg(script("page")).env("HOLDFAST_URL", world.gateway.base_url()));
    let policy = "default-src 'none'; style-src 'sha256-THE_STYLE'; base-uri 'none'; \
                  form-action 'none'; frame-ancestors 'none'";
    assert_eq!(said.json(), json!({"policy": policy, "styles": 1}));
}

/// Every check of the tester, with none left out. It finds out by itself that a body which fits is
/// taken, that one which does not is refused, that what is wanted is wanted, and that every status,
/// header and body is a described one. The same seed, so the same requests every time.
#[test]
fn python_finds_that_the_gateway_keeps_to_its_description() {
    let world = world();
    let url = format!("http://{}/openapi.json", world.gateway.address());
    let mut tester = tool("schemathesis", &world);
    tester
        .args(["run", &url, "--checks", "all", "--phases", "examples,coverage,fuzzing"])
        .args(["--max-examples", "10", "--seed", "1", "--continue-on-failure", "--workers", "1"])
        .args(["--header", &format!("Authorization: Bearer {}", world.account.key)])
        .env("SCHEMATHESIS_HOOKS", script("hooks"))
        .env("HOLDFAST_MODEL", SIM);
    let said = Ran::of(&mut tester).ok();
    assert!(said.contains("9 selected / 9 total"), "all but the document itself: {said}");
    let log = world.site.logs();
    let n_answered = |what: &str| log.lines().filter(|line| line.contains(what)).count();
    assert!(n_answered("invalid_value") > 500, "it sends what is forbidden");
    assert_eq!(n_answered("http.status=\"500\"") + n_answered("http.status=500"), 0);
    let wallet = world.gateway.get(&world.account, "/v1/wallet").json();
    let spent = 1_000_010_000_000_i64 - wallet["available_micros"].as_i64().unwrap();
    assert!(spent > 0, "what is allowed runs");
    assert_eq!(wallet["held_micros"], Value::from(0));
    world.site.verify();
}
