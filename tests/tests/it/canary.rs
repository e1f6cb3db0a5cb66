//! Prompts, answers and secrets are looked for in everything that the gateway writes or shows beside
//! the answer itself.

use std::path::PathBuf;

use holdfast_tests::config::ADMIN_TOKEN;
use holdfast_tests::{Account, Config, Gateway, Reply, Request, Site, Upstream, request_key};

use crate::bodies::acme;
use crate::check::{check_completion, content};

const PROMPT: &str = "canary-in-the-prompt-4711";
const ANSWER: &str = "canary-in-the-answer-4712";

/// What must be found nowhere.
fn canaries(account: &Account) -> Vec<String> {
    let secret = account.key.rsplit_once('_').unwrap().1;
    vec![PROMPT.to_owned(), ANSWER.to_owned(), secret.to_owned()]
}

struct World {
    site: Site,
    account: Account,
    gateway: Gateway,
    /// Of an answer, and of one that could not be read.
    keys: [String; 2],
    _upstream: Upstream,
}

/// A gateway that has seen the canaries in every way in which a call can end.
fn world(config: impl Fn(Config) -> Config) -> World {
    let upstream = Upstream::start(Reply::saying(ANSWER));
    let (site, account) = Site::funded(&config(Config::upstream(&upstream)));
    let gateway = site.serve();
    let key = request_key();
    let answer = gateway.complete(&account, &key, &acme(PROMPT));
    assert_eq!(content(&check_completion(&answer, &key, false)), ANSWER);
    check_completion(&gateway.complete(&account, &key, &acme(PROMPT)), &key, true);
    // Names of an error are shown to operators, unless they are the request's.
    let quoting = format!("{{\"error\":{{\"message\":\"no: {PROMPT}\",\"code\":\"{PROMPT}\"}}}}");
    for status in [400, 401, 429, 500, 503] {
        upstream.next(Reply::Send(status, quoting.clone()));
        assert_ne!(gateway.complete(&account, &request_key(), &acme(PROMPT)).status, 200);
    }
    let unread = format!(
        "{{\"{PROMPT}\":1,\"choices\":[{{\"index\":0,\"message\":{{\"content\":\"{ANSWER}\"}},\"finish_reason\":\"{PROMPT}\"}}]}}"
    );
    upstream.next(Reply::Send(200, unread));
    let unread = request_key();
    let answer = gateway.complete(&account, &unread, &acme(PROMPT));
    assert_eq!(answer.status, 502, "{answer:?}");
    let broken = acme(PROMPT).replace('}', "");
    for body in [broken, acme(PROMPT).replacen('{', &format!("{{\"{PROMPT}\":1,"), 1)] {
        assert_eq!(gateway.complete(&account, &request_key(), &body).status, 400);
    }
    let path = format!("/v1/{PROMPT}");
    assert_eq!(gateway.get(&account, &path).status, 404);
    World { site, account, gateway, keys: [key, unread], _upstream: upstream }
}

fn files(site: &Site) -> Vec<PathBuf> {
    let data = std::fs::read_dir(site.path("holdfast-data")).unwrap();
    data.map(|file| file.unwrap().path()).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[track_caller]
fn check_files(world: &World) {
    let files = files(&world.site);
    let contents: Vec<_> = files.iter().map(|path| (path, std::fs::read(path).unwrap())).collect();
    let seen = |text: &str| contents.iter().any(|(_, bytes)| contains(bytes, text));
    assert!(seen("acme/large-1"), "what is not secret is found: {files:?}");
    for canary in canaries(&world.account) {
        for (path, bytes) in &contents {
            assert!(!contains(bytes, &canary), "{canary} in {}", path.display());
        }
    }
}

#[test]
fn neither_prompts_nor_answers_nor_secrets_reach_the_disk() {
    let world = world(|config| config);
    let names = files(&world.site);
    assert!(names.iter().any(|path| path.ends_with("holdfast.db-wal")), "{names:?}");
    check_files(&world);
    world.gateway.terminate();
    let World { site, account, gateway, keys, _upstream } = world;
    assert!(gateway.wait().success());
    let rest = site.serve();
    check_files(&World { site, account, gateway: rest, keys, _upstream });
}

fn check_logs(format: &str) {
    let world = world(|config| {
        config.set("log", "level", "\"trace\"").set("log", "format", &format!("\"{format}\""))
    });
    world.gateway.terminate();
    assert!(world.gateway.wait().success());
    let logs = world.site.logs();
    assert!(logs.contains("acme/large-1") && logs.contains("charge_micros"), "it is the log");
    let status = if format == "json" { "\"http.status\":200," } else { "http.status=200 " };
    assert!(logs.contains(status), "it is a number");
    for canary in canaries(&world.account) {
        assert!(!logs.contains(&canary), "{canary}");
    }
    assert!(!logs.contains(ADMIN_TOKEN));
}

#[test]
fn neither_prompts_nor_answers_nor_secrets_reach_the_log_for_people() {
    check_logs("pretty");
}

#[test]
fn neither_prompts_nor_answers_nor_secrets_reach_the_log_for_machines() {
    check_logs("json");
}

#[test]
fn neither_prompts_nor_answers_nor_secrets_reach_the_metrics_and_the_command_line() {
    let world = world(|config| config);
    let metrics = Request::get("/metrics").bearer(ADMIN_TOKEN);
    let metrics = metrics.send(world.gateway.admin_address()).everything();
    let site = &world.site;
    let operations = site.json(&["operation", "list"]).to_string();
    let shown = world.keys.each_ref().map(|key| {
        let show = ["operation", "show", "--api-key", &world.account.id, key];
        site.json(&show).to_string() + &site.cli(&show).ok()
    });
    assert!(shown[1].contains("at choices[].finish_reason"), "{}", shown[1]);
    let shown = shown.concat();
    let keys = site.json(&["key", "list"]).to_string() + &site.cli(&["key", "list"]).ok();
    for canary in canaries(&world.account) {
        for text in [&metrics, &operations, &shown, &keys] {
            assert!(!text.contains(&canary), "{canary} in {text}");
        }
    }
}
