//! Refused requests: each is found by its `x-request-id`, all are counted, and nothing of a prompt is kept.

use std::collections::BTreeMap;

use holdfast_tests::config::ACME;
use holdfast_tests::database::execute;
use holdfast_tests::site::text;
use holdfast_tests::{Account, Answer, Config, Reply, Request, Site, Upstream, request_key};
use serde_json::{Value, json};

use crate::bodies::{acme, sim};
use crate::check::until;

const PROMPT: &str = "canary-in-a-refused-prompt-4713";
const SECRET_MODEL: &str = "acme/canary-of-a-model-4714";

fn request_id(answer: &Answer) -> String {
    answer.header("x-request-id").unwrap().to_owned()
}

fn listed(site: &Site, arguments: &[&str]) -> Vec<Value> {
    let list = [&["refusal", "list"][..], arguments].concat();
    site.json(&list).as_array().unwrap().clone()
}

/// Numbers of all refusals by code.
fn counted(site: &Site, arguments: &[&str]) -> BTreeMap<String, u64> {
    let hours = site.json(&[&["refusal", "hours"][..], arguments].concat());
    let mut counts = BTreeMap::new();
    for hour in hours.as_array().unwrap() {
        *counts.entry(text(hour, "code")).or_default() += hour["count"].as_u64().unwrap();
    }
    counts
}

/// A request of each status that is a refusal, with its code.
fn refuse_each(site: &Site, account: &Account, upstream: &Upstream) -> Vec<(String, Answer)> {
    let gateway = site.serve();
    let poor = site.account("poor", "USD", "0.000010");
    let modest =
        site.key_with(&account.wallet, &["--name", "modest", "--spend-limit", "0.000010/day"]);
    let narrow = site.key_with(&account.wallet, &["--name", "narrow", "--models", "acme/another"]);
    let slow = site.key_with(&account.wallet, &["--name", "slow", "--rpm", "1"]);
    let bound = request_key();
    assert_eq!(gateway.complete(account, &bound, &acme("first")).status, 200);
    assert_eq!(gateway.complete(&slow, &request_key(), &acme("first")).status, 200);
    let send = |account: &Account, body: &str| gateway.complete(account, &request_key(), body);
    let mut refused = vec![
        ("invalid_json", send(account, &acme(PROMPT).replace('}', ""))),
        ("idempotency_key_malformed", gateway.complete(account, PROMPT, &acme(PROMPT))),
        ("insufficient_funds", send(&poor, &acme(PROMPT))),
        ("spend_limit_exceeded", send(&modest, &acme(PROMPT))),
        ("model_not_allowed", send(&narrow, &acme(PROMPT))),
        ("model_not_found", send(account, &acme(PROMPT).replace(ACME, SECRET_MODEL))),
        ("not_found", gateway.get(account, &format!("/v1/operations/{}", request_key()))),
        ("idempotency_key_conflict", gateway.complete(account, &bound, &acme(PROMPT))),
        ("request_too_large", send(account, &acme(&PROMPT.repeat(100)))),
        ("rate_limit_exceeded", send(&slow, &acme(PROMPT))),
    ];
    upstream.next(Reply::Send(400, format!("{{\"error\":{{\"message\":\"{PROMPT}\"}}}}")));
    refused.push(("provider_refused", send(account, &acme(PROMPT))));
    upstream.next(Reply::Send(429, format!("{{\"error\":{{\"message\":\"{PROMPT}\"}}}}")));
    refused.push(("upstream_unavailable", send(account, &acme(PROMPT))));
    // An unknown key leaves nothing.
    let unknown = format!("{}x", account.key);
    let told = Request::completion(&unknown, &request_key(), acme(PROMPT)).send(gateway.address());
    assert_eq!(told.status, 401);
    gateway.stop();
    refused.into_iter().map(|(code, answer)| (code.to_owned(), answer)).collect()
}

#[test]
fn each_refused_request_is_found_by_its_request_id_and_keeps_no_prompt() {
    let upstream = Upstream::start(Reply::saying("Hello"));
    let config = Config::upstream(&upstream).set("limits", "body_bytes", "2_048").model(
        "acme/another",
        "acme",
        "another",
        "input = 2_500_000, output = 10_000_000",
    );
    let (site, account) = Site::funded(&config);
    let refused = refuse_each(&site, &account, &upstream);
    // The gateway has stopped in order: nothing is lost.
    for (code, answer) in &refused {
        let id = request_id(answer);
        let found = listed(&site, &["--request-id", &id]);
        assert_eq!(found.len(), 1, "{code}: {answer:?}");
        assert_eq!((&text(&found[0], "code"), &found[0]["status"]), (code, &json!(answer.status)));
        let names_model = found[0]["model"] == json!(ACME);
        assert!(names_model || found[0]["model"].is_null(), "{found:?}");
    }
    let by_code = |code: &str| listed(&site, &["--code", code]).remove(0);
    let funds = by_code("insufficient_funds");
    assert_eq!((&funds["available_micros"], &funds["model"]), (&json!(10), &json!(ACME)));
    assert!(funds["wanted_micros"].as_i64().unwrap() > 10, "{funds}");
    let spend = by_code("spend_limit_exceeded");
    assert_eq!(spend["available_micros"], json!(10));
    assert_eq!(spend["wanted_micros"], funds["wanted_micros"]);
    assert_eq!(listed(&site, &[]).len(), refused.len());
    assert_eq!(listed(&site, &["--key", "modest"]).len(), 1);
    assert_eq!(listed(&site, &["--wallet", "poor"]).len(), 1);
    assert_eq!(listed(&site, &["--to", "2020-01-01"]).len(), 0);
    let counts = counted(&site, &[]);
    assert_eq!(counts.values().sum::<u64>(), u64::try_from(refused.len()).unwrap());
    for file in std::fs::read_dir(site.path("holdfast-data")).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        for canary in [PROMPT, SECRET_MODEL] {
            let found = bytes.windows(canary.len()).any(|window| window == canary.as_bytes());
            assert!(!found, "{canary} in {}", path.display());
        }
    }
    site.verify();
}

#[test]
fn a_flood_is_counted_whole_and_listed_within_its_bounds() {
    const FLOOD: usize = 400;
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let rare = gateway.complete(&account, &request_key(), &sim("x").replace("sim-1", "sim-9"));
    assert_eq!(rare.status, 404);
    let ids: Vec<String> = (0..FLOOD)
        .map(|_| {
            let answer = gateway.complete(&account, &request_key(), "{}");
            assert_eq!(answer.status, 400);
            request_id(&answer)
        })
        .collect();
    gateway.stop();
    let all = u64::try_from(FLOOD).unwrap();
    assert_eq!(counted(&site, &["--code", "invalid_value"]).get("invalid_value"), Some(&all));
    let rows = listed(&site, &[]);
    assert!(rows.len() <= 101, "{}", rows.len());
    assert_eq!(text(&rows[0], "request_id"), *ids.last().unwrap(), "the newest is listed");
    assert_eq!(listed(&site, &["--request-id", &request_id(&rare)]).len(), 1);
}

#[test]
fn hours_are_deleted_after_their_retention_and_listed_requests_stay() {
    let config = Config::simulated().set("retention", "statistics", "\"2h\"");
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    assert_eq!(gateway.complete(&account, &request_key(), "{}").status, 400);
    gateway.stop();
    let old = "UPDATE refusal_hours SET hour = hour - 3 * 3600000000";
    drop(execute(&site.database(), old));
    assert_eq!(counted(&site, &[]).len(), 1);
    let gateway = site.serve();
    until("the old hour is deleted", || counted(&site, &[]).is_empty().then_some(()));
    assert_eq!(listed(&site, &[]).len(), 1);
    gateway.stop();
}
