//! The API's description of itself: served to everybody, the same as the code says, and kept to. A
//! tester that knows nothing but the description sends what it allows and what it forbids.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use holdfast_tests::config::{ACME, SIM};
use holdfast_tests::upstream::error as upstream_error;
use holdfast_tests::{
    Account, Answer, Config, Gateway, Ran, Reply, Request, Site, Upstream, Waiting, request_key,
};
use holdfast_wire::error::Code;
use holdfast_wire::openapi;
use serde_json::{Value, json};

use crate::bodies::acme;
use crate::check::{check_json, error};
use crate::clients::given;
use crate::world::World;

/// Longest run of the tester, on a machine with other work.
const RUN: Duration = Duration::from_secs(240);

/// A model that may be asked for everything, and a wallet that pays for it.
fn world() -> World {
    let allow = "allow = [\"file_id\", \"audio.id\", \"voice.id\", \"store\", \"service_tier\", \
                 \"web_search_options\", \"moderation\", \"prompt_cache_retention\"]";
    let contract = "contract = 1\n";
    let allowed = [
        contract, allow, "
",
    ]
    .concat();
    let world = World::simulated(|config| config.replace(contract, &allowed));
    drop(world.site.json(&["wallet", "deposit", &world.account.wallet, "1000000.00"]));
    world
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
                let allowed = match &*path {
                    _ if all.any(|method| method == "get") => "GET, HEAD",
                    _ => "POST",
                };
                error(Code::MethodNotAllowed).allow(allowed).check(&answer);
            }
        }
    }
}

/// Headers of HTTP itself and of browsers, which no description has.
const OF_HTTP: [&str; 6] = [
    "connection",
    "content-length",
    "content-type",
    "date",
    "www-authenticate",
    "x-content-type-options",
];

/// Finds an answer in the description: its status, its code, its headers. The headers it has.
#[track_caller]
fn described<'a>(document: &Value, operation: &Value, answer: &'a Answer) -> BTreeSet<&'a str> {
    let told = &operation["responses"][answer.status.to_string()];
    let told = openapi::resolved(document, told);
    assert!(told.is_object(), "{answer:?}");
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if let Some(code) = body["error"]["code"].as_str() {
        assert!(told.to_string().contains(&format!("`{code}`: ")), "{answer:?}");
    }
    let names = answer.header_names().into_iter().filter(|name| !OF_HTTP.contains(name));
    names
        .inspect(|name| assert!(told["headers"].get(name).is_some(), "{name}: {answer:?}"))
        .collect()
}

/// Answers to completions of an API key with limits, under as many statuses as are quickly had.
fn completions(upstream: &Upstream, site: &Site, wallet: &str, gateway: &Gateway) -> Vec<Answer> {
    let rates = ["--rpm", "100", "--tpm", "100000"];
    let issue = |more: &[&str]| site.key_with(wallet, &[&rates[..], more].concat());
    let account = issue(&[]);
    let asking = |account: &Account, body: &str| {
        Request::completion(&account.key, &request_key(), body).send(gateway.address())
    };
    let good = Request::completion(&account.key, &request_key(), acme("Say hello"));
    let other = Request::completion(&account.key, &request_key(), acme("Say hello"));
    let replied = |reply: Reply| {
        upstream.next(reply);
        asking(&account, &acme("Say hello"))
    };
    let refused = |code| replied(Reply::json(400, &upstream_error(code)));
    let poor = issue(&["--spend-limit", "0.000001/total"]);
    let busy = site.key_with(wallet, &["--rpm", "1", "--tpm", "1"]);
    vec![
        gateway.send(&good),
        gateway.send(&good),
        gateway.send(&other.clone().without("Idempotency-Key")),
        gateway.send(&other.clone().without("Content-Type")),
        gateway.send(&other.clone().without("Authorization")),
        gateway.send(&other.clone().method("GET")),
        gateway.send(&other.header("X-Long", &"x".repeat(40_000))),
        asking(&account, "{}"),
        asking(&account, &acme("Say hello").replace(ACME, "acme/none")),
        asking(&account, &acme(&"x".repeat(1 << 21))),
        refused("context_length_exceeded"),
        refused("invalid_prompt"),
        replied(Reply::Reset),
        replied(Reply::json(429, &upstream_error("rate_limit_exceeded"))),
        asking(&poor, &acme("Say hello")),
        asking(&busy, &acme("Say hello")),
    ]
}

#[test]
fn what_is_sent_is_described_and_of_completions_nothing_else() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let config = Config::upstream(&upstream).set("limits", "body_bytes", "1_048_576");
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let document = openapi::document();
    let operation = &document["paths"]["/v1/chat/completions"]["post"];
    let answers = completions(&upstream, &site, &account.wallet, &gateway);
    let mut sent: BTreeMap<u16, BTreeSet<&str>> = BTreeMap::new();
    for answer in &answers {
        sent.entry(answer.status).or_default().extend(described(&document, operation, answer));
    }
    let statuses: Vec<_> = sent.keys().copied().collect();
    assert_eq!(statuses, [200, 400, 401, 402, 404, 405, 413, 415, 422, 429, 431, 502, 503]);
    let is_of_keys = |name: &&str| *name == "idempotent-replayed" || name.contains("ratelimit");
    for (status, sent) in sent {
        let told = openapi::resolved(&document, &operation["responses"][status.to_string()]);
        let told = told["headers"].as_object().unwrap();
        let told: BTreeSet<_> = told.keys().map(String::as_str).filter(is_of_keys).collect();
        let sent: BTreeSet<_> = sent.into_iter().filter(is_of_keys).collect();
        assert_eq!(sent, told, "{status}");
    }
    let key = request_key();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path.replace("{idempotency-key}", &key).replace("{publisher}/{name}", ACME);
        for (method, operation) in methods.as_object().unwrap() {
            let method = if method == "get" { "GET" } else { "POST" };
            let request = Request::get(&path).method(method).bearer(&account.key);
            let request = request.header("Idempotency-Key", &key);
            described(&document, operation, &gateway.send(&request));
            let bytes =
                String::from_utf8(request.bytes()).unwrap().replace("Host: gateway\r\n", "");
            let answer = Waiting::write(gateway.address(), bytes.as_bytes()).answer();
            assert_eq!(answer.json()["error"]["param"], "Host", "{path}");
            described(&document, operation, &answer);
        }
    }
}

/// A tool that stands beside the Python that the task runner has prepared.
pub(crate) fn tool(name: &str, site: &Site) -> Command {
    let mut command = Command::new(given("HOLDFAST_TEST_PYTHON").with_file_name(name));
    command.current_dir(site.folder()).env("NO_PROXY", "127.0.0.1");
    command
}

pub(crate) fn script(name: &str) -> String {
    format!("{}/clients/python/{name}.py", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn python_finds_the_description_valid() {
    let world = world();
    let answer = world.gateway.send(&Request::get("/openapi.json"));
    world.site.write("openapi.json", answer.text());
    let said = Ran::of(tool("openapi-spec-validator", &world.site).arg("openapi.json")).ok();
    assert_eq!(said.trim(), "openapi.json: OK");
    world.site.write("openapi.json", &answer.text().replace("\"responses\"", "\"answers\""));
    let broken = Ran::of(tool("openapi-spec-validator", &world.site).arg("openapi.json"));
    assert_ne!(broken.code, Some(0), "it looks");
}

#[test]
fn python_finds_the_page_s_style_allowed_and_nothing_else() {
    let world = world();
    let mut python = tool("python", &world.site);
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
    let mut tester = tool("schemathesis", &world.site);
    tester
        .args(["run", &url, "--checks", "all", "--phases", "examples,coverage,fuzzing"])
        .args(["--max-examples", "10", "--seed", "1", "--continue-on-failure", "--workers", "1"])
        // Its body is a completion's, and would double the time.
        .args(["--exclude-path", "/v1/quotes"])
        .args(["--header", &format!("Authorization: Bearer {}", world.account.key)])
        .env("SCHEMATHESIS_HOOKS", script("hooks"))
        .env("HOLDFAST_MODEL", SIM);
    let said = Ran::within(&mut tester, RUN).ok();
    assert!(
        said.contains("14 selected / 15 total"),
        "all but the document itself and quotes: {said}"
    );
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
