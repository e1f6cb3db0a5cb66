//! Several routes of one model: who takes over when one dies, is full, wants to be left alone or leaves a
//! request's outcome unknown; and how a route returns.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdfast_tests::upstream::{ArrivedRequest, error as upstream_error};
use holdfast_tests::{Account, Answer, Config, Gate, Gateway, Reply, Site, Upstream, request_key};
use holdfast_wire::error::Code;
use serde_json::Value;

use crate::admin::{metrics, value};
use crate::bodies::acme;
use crate::check::{check_completion, content, error, until};

const FUNDS: i64 = 10_000_000;
const CHARGE: i64 = 367;
/// The last line of a model's route in a configuration.
const ROUTE: &str = "model = \"upstream-model-mark\"\n";

/// The first route at one address, and another one behind it.
fn two_routes(first: &str, second: &Upstream) -> Config {
    let another = "[[models.routes]]\nprovider = \"second\"\nmodel = \"other\"\npriority = 1\n";
    Config::at(first)
        .set("providers.second", "kind", "\"openai\"")
        .set("providers.second", "base_url", &format!("\"{}\"", second.base_url()))
        .replace(ROUTE, &format!("{ROUTE}{another}"))
}

fn show(site: &Site, answer: &Answer) -> Value {
    let body = answer.json();
    let id = body["id"].as_str().or_else(|| body["error"]["operation_id"].as_str());
    site.json(&["operation", "show", id.unwrap()])
}

fn attempts(operation: &Value) -> Vec<(String, String, bool)> {
    let attempts = operation["attempts"].as_array().unwrap().iter();
    let text = |attempt: &Value, name: &str| attempt[name].as_str().unwrap().to_owned();
    let each = attempts.map(|it| {
        assert!(it["latency_ms"].is_u64(), "{it}");
        (text(it, "route"), text(it, "class"), it["may_be_billed"].as_bool().unwrap())
    });
    each.collect()
}

fn attempt(route: &str, class: &str, may_be_billed: bool) -> (String, String, bool) {
    (route.to_owned(), class.to_owned(), may_be_billed)
}

/// Asks one thing after the other until it is told to stop, and tells what was asked and answered.
fn load(gateway: &Gateway, account: &Account, who: usize, stop: &AtomicBool) -> Vec<(String, u16)> {
    let mut told = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let prompt = format!("prompt {who} {}", told.len());
        let answer = gateway.complete(account, &request_key(), &acme(&prompt));
        told.push((prompt, answer.status));
    }
    told
}

fn prompts(arrived: &[ArrivedRequest]) -> impl Iterator<Item = String> {
    let prompt =
        |it: &ArrivedRequest| it.json()["messages"][0]["content"].as_str().unwrap().to_owned();
    arrived.iter().map(prompt)
}

#[test]
fn a_route_whose_server_dies_under_load_is_replaced_and_returns_by_itself() {
    const CLIENTS: usize = 4;
    let slow = |text| Reply::Late(Duration::from_millis(5), Box::new(Reply::saying(text)));
    let (first, second) = (Upstream::start(slow("first")), Upstream::start(slow("second")));
    let config = two_routes(&first.base_url(), &second)
        .set("routes", "cool_down", "\"100ms\"")
        .set("routes", "cool_down_max", "\"200ms\"");
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let stop = AtomicBool::new(false);
    let (told, back) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|who| {
                let (gateway, account, stop) = (&gateway, &account, &stop);
                scope.spawn(move || load(gateway, account, who, stop))
            })
            .collect();
        first.wait_for(20);
        let address = first.kill();
        second.wait_for(20);
        let back = Upstream::start_at(address, slow("back"));
        // More than one: it is not only asked whether it is well.
        back.wait_for(20);
        stop.store(true, Ordering::Relaxed);
        let told = clients.into_iter().flat_map(|client| client.join().unwrap());
        (told.collect::<Vec<_>>(), back)
    });
    let mut runs = BTreeMap::<String, usize>::new();
    for upstream in [&first, &second, &back] {
        for prompt in prompts(&upstream.arrived()) {
            *runs.entry(prompt).or_default() += 1;
        }
    }
    assert!(runs.values().all(|runs| *runs == 1), "nothing runs twice: {runs:?}");
    let mut unknown = 0;
    for (prompt, status) in &told {
        match status {
            200 => assert!(runs.contains_key(prompt), "{prompt} was answered and never asked"),
            // What was on its way to the server that died.
            502 => unknown += 1,
            other => panic!("{other} for {prompt}"),
        }
    }
    // A client may have met what had not yet gone down, too.
    assert!(unknown <= 2 * CLIENTS, "{unknown} outcomes are unknown");
    let paid = i64::try_from(told.len() - unknown).unwrap() * CHARGE;
    assert_eq!(site.balance(&account), (FUNDS - paid, 0));
    site.verify();
    let said = gateway.said();
    assert!(said.contains("a route is cooling down"), "{said}");
    assert!(said.contains("a route takes requests again"), "{said}");
    assert!(value(&metrics(&gateway), "holdfast_route_cooling", "\"acme\"") < 0.5);
}

#[test]
fn an_unknown_outcome_is_the_last_under_one_run_and_goes_on_under_one_charge() {
    let broken = || Upstream::start(Reply::json(500, &upstream_error("server_error")));
    let (first, second) = (broken(), Upstream::start(Reply::saying("second")));
    let config = two_routes(&first.base_url(), &second);
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let key = request_key();
    let told = gateway.complete(&account, &key, &acme("Say hello"));
    error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&told);
    assert_eq!((first.runs(), second.runs()), (1, 0));
    let of_first = attempt("acme/upstream-model-mark", "unknown_status", true);
    assert_eq!(attempts(&show(&site, &told)), std::slice::from_ref(&of_first));
    gateway.stop();

    site.configure(&config.replace("contract = 1", "contract = 1\nguarantee = \"one-charge\""));
    let gateway = site.serve();
    let key = request_key();
    let answer = gateway.complete(&account, &key, &acme("Say hello"));
    assert_eq!(content(&check_completion(&answer, &key, false)), "second");
    let again = gateway.complete(&account, &key, &acme("Say hello"));
    assert_eq!(again.body, answer.body);
    assert_eq!((first.runs(), second.runs()), (2, 1));
    let shown = show(&site, &answer);
    assert_eq!(attempts(&shown), [of_first, attempt("second/other", "finished", true)]);
    assert_eq!(shown["charge_micros"], CHARGE);
    assert_eq!(site.balance(&account), (FUNDS - CHARGE, 0));
    site.verify();
}

#[test]
fn a_pause_within_a_providers_body_is_told_to_the_first_caller() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let body = r#"[{"error": {"code": 429, "message": "no", "status": "RESOURCE_EXHAUSTED", "details":
        [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38s"}]}}]"#;
    upstream.next(Reply::Send(429, body.to_owned()));
    for key in [request_key(), request_key()] {
        let told = gateway.complete(&account, &key, &acme("Say hello"));
        assert_eq!(
            (told.status, told.json()["error"]["code"].as_str()),
            (503, Some("upstream_unavailable"))
        );
        let wait: u64 = told.header("retry-after-ms").unwrap().parse().unwrap();
        assert!((20_000..=39_020).contains(&wait), "{wait} ms of 38 s, and up to a second");
    }
    assert_eq!(upstream.runs(), 1);
}

#[test]
fn a_provider_that_asks_to_be_left_alone_is_and_callers_are_told_until_when() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let config = Config::upstream(&upstream);
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let body = upstream_error("rate_limit_exceeded").to_string();
    let (head, length) = ("HTTP/1.1 429 Later\r\nretry-after: 3600", body.len());
    upstream.next(Reply::Raw(format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}")));
    let key = request_key();
    let told = gateway.complete(&account, &key, &acme("Say hello"));
    error(Code::UpstreamUnavailable).echo(&key).replayed(false).bound().check(&told);
    let wait: u64 = told.header("retry-after-ms").unwrap().parse().unwrap();
    assert!((10_000..=60_000).contains(&wait), "{wait} ms for the first, too");

    let other = request_key();
    for prompt in ["Say hello", "Say something else"] {
        let told = gateway.complete(&account, &other, &acme(prompt));
        error(Code::UpstreamUnavailable).echo(&other).replayed(false).check(&told);
        let wait: u64 = told.header("retry-after-ms").unwrap().parse().unwrap();
        assert!((10_000..=60_000).contains(&wait), "{wait} ms of a minute");
    }
    assert_eq!(gateway.get(&account, &format!("/v1/operations/{other}")).status, 404);
    assert_eq!(upstream.runs(), 1);
    let told = metrics(&gateway);
    assert!(value(&told, "holdfast_route_cooling", "\"acme\"") > 0.5);
    assert!(value(&told, "holdfast_route_cool_downs_total", "\"retry_after\"") > 0.5);
    let said = gateway.said();
    assert!(said.contains("passed_over_cooling") && said.contains("retry_after"), "{said}");

    // Another client of that provider knows nothing of it.
    site.configure(&config.set("providers.acme", "pool_idle", "\"3s\""));
    gateway.hang_up();
    let ran = until("it is reloaded", || {
        let ran = gateway.complete(&account, &key, &acme("Say hello"));
        (ran.status == 200).then_some(ran)
    });
    check_completion(&ran, &key, false);
    assert!(value(&metrics(&gateway), "holdfast_route_cooling", "\"acme\"") < 0.5);
    site.verify();
}

#[test]
fn a_full_route_gives_way_to_the_next_and_where_all_are_full_nothing_is_bound() {
    let gates = [Gate::new(), Gate::new()];
    let first = Upstream::start(Reply::saying("first").after(&gates[0]));
    let second = Upstream::start(Reply::saying("second").after(&gates[1]));
    let config = two_routes(&first.base_url(), &second)
        .replace(ROUTE, &format!("{ROUTE}concurrency = 1\n"))
        .replace("priority = 1\n", "priority = 1\nconcurrency = 1\n");
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let ask = |key: &str, prompt: &str| {
        let body = acme(prompt);
        holdfast_tests::Request::completion(&account.key, key, body).begin(gateway.address())
    };
    let keys = [request_key(), request_key(), request_key()];
    let one = ask(&keys[0], "one");
    first.wait_for(1);
    let two = ask(&keys[1], "two");
    second.wait_for(1);
    let told = gateway.complete(&account, &keys[2], &acme("three"));
    error(Code::Overloaded).echo(&keys[2]).replayed(false).check(&told);
    assert_eq!(gateway.get(&account, &format!("/v1/operations/{}", keys[2])).status, 404);
    let full = metrics(&gateway);
    assert!(value(&full, "holdfast_route_full_total", "\"acme\"") > 1.5, "by two and by three");
    assert!(value(&full, "holdfast_route_full_total", "\"second\"") > 0.5);
    gates.iter().for_each(Gate::open);
    assert_eq!(content(&check_completion(&one.answer(), &keys[0], false)), "first");
    assert_eq!(content(&check_completion(&two.answer(), &keys[1], false)), "second");
    let three = gateway.complete(&account, &keys[2], &acme("three"));
    assert_eq!(content(&check_completion(&three, &keys[2], false)), "first");
    assert_eq!(site.balance(&account), (FUNDS - 3 * CHARGE, 0));
    site.verify();
}

#[test]
fn a_route_on_which_an_account_is_refused_is_left_alone_at_once() {
    let first = Upstream::start(Reply::json(401, &upstream_error("invalid_api_key")));
    let second = Upstream::start(Reply::saying("second"));
    let (site, account) = Site::funded(&two_routes(&first.base_url(), &second));
    let gateway = site.serve();
    for _request in 0..4 {
        let key = request_key();
        let answer = gateway.complete(&account, &key, &acme("Say hello"));
        assert_eq!(content(&check_completion(&answer, &key, false)), "second");
    }
    assert!(first.runs() < second.runs(), "{} of {}", first.runs(), second.runs());
    assert_eq!(second.runs(), 4);
    let told = metrics(&gateway);
    assert!(value(&told, "holdfast_route_cooling", "\"acme\"") > 0.5);
    assert!(value(&told, "holdfast_route_cooling", "\"second\"") < 0.5);
    let name = "holdfast_route_cool_downs_total";
    let of_acme: Vec<_> = told
        .lines()
        .filter(|line| line.starts_with(name) && line.contains("\"acme\"") && !line.ends_with(" 0"))
        .collect();
    assert!(of_acme.len() == 1 && of_acme[0].contains("\"account\""), "{of_acme:?}");
}
