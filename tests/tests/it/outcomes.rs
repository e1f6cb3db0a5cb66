//! What became of a call upstream, as its caller learns it: refused, not run, or unknown. None of them
//! is charged.

use std::time::Duration;

use holdfast_tests::config::UPSTREAM_MODEL;
use holdfast_tests::upstream::error as upstream_error;
use holdfast_tests::{Config, Gate, Reply, Request, Site, Upstream, request_key};
use holdfast_wire::error::Code;
use serde_json::json;

use crate::bodies::{acme, sim};
use crate::check::{check_completion, error};
use crate::world::World;

const FUNDS: i64 = 10_000_000;

impl World {
    /// The upstream does this with the request, which ends with this code for ever.
    #[track_caller]
    fn check_final(&self, reply: Reply, code: Code, param: Option<&'static str>) {
        let runs = self.upstream.runs();
        self.upstream.next(reply);
        let key = request_key();
        let told = self.gateway.complete(&self.account, &key, &acme("Say hello"));
        let mut expected = error(code).echo(&key).bound();
        if let Some(param) = param {
            expected = expected.param(param);
        }
        expected.clone().replayed(false).check(&told);
        let again = self.gateway.complete(&self.account, &key, &acme("Say hello"));
        expected.replayed(true).check(&again);
        assert_eq!(again.body, told.body);
        assert_eq!(self.upstream.runs(), runs + 1, "never a second time");
    }

    /// The upstream does this with the request, which is as if it had never been.
    #[track_caller]
    fn check_not_run(&self, reply: Reply) {
        let runs = self.upstream.runs();
        self.upstream.next(reply);
        let key = request_key();
        let told = self.gateway.complete(&self.account, &key, &acme("Say hello"));
        error(Code::UpstreamUnavailable).echo(&key).replayed(false).bound().check(&told);
        let other = self.gateway.complete(&self.account, &key, &acme("Say something else"));
        error(Code::IdempotencyKeyConflict).echo(&key).replayed(false).check(&other);
        let ran = self.gateway.complete(&self.account, &key, &acme("Say hello"));
        check_completion(&ran, &key, false);
        assert_eq!(self.upstream.runs(), runs + 2);
        let operation = self.gateway.get(&self.account, &format!("/v1/operations/{key}")).json();
        assert_eq!(operation["generation"], 2);
    }
}

#[test]
fn a_refusal_by_the_provider_is_final_and_free() {
    let world = World::new();
    for status in [400, 413, 422] {
        let refused = Reply::json(status, &upstream_error("mark-of-code"));
        world.check_final(refused, Code::ProviderRefused, None);
    }
    world.check_final(Reply::Send(400, "mark-of-message".to_owned()), Code::ProviderRefused, None);
    assert_eq!(world.site.balance(&world.account), (FUNDS, 0));
    world.site.verify();
}

#[test]
fn a_prompt_that_does_not_fit_is_told_as_openai_tells_it() {
    let world = World::new();
    for code in ["context_length_exceeded", "exceed_context_size_error"] {
        let refused = Reply::json(400, &upstream_error(code));
        world.check_final(refused, Code::ContextLengthExceeded, Some("messages"));
    }
    assert_eq!(world.site.balance(&world.account), (FUNDS, 0));
    world.site.verify();
}

#[test]
fn whatever_proves_nothing_is_an_unknown_outcome() {
    let world = World::new();
    let whole = holdfast_tests::upstream::completion("Good day").to_string();
    let cut = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", whole.len(), &whole[..60]);
    for unknown in [
        Reply::json(500, &upstream_error("server_error")),
        Reply::json(502, &upstream_error("bad_gateway")),
        Reply::json(503, &upstream_error("mark-of-code")),
        Reply::Send(504, String::new()),
        Reply::json(408, &upstream_error("mark-of-code")),
        Reply::json(302, &json!({})),
        Reply::json(201, &holdfast_tests::upstream::completion("Good day")),
        Reply::Reset,
        Reply::Raw(String::new()),
        Reply::Raw(cut),
        Reply::Raw("mark-of-message\r\n\r\n".to_owned()),
        Reply::Send(200, "mark-of-message".to_owned()),
        Reply::json(200, &json!({"choices": []})),
        Reply::json(200, &upstream_error("mark-of-code")),
    ] {
        world.check_final(unknown, Code::OutcomeUnknown, None);
    }
    assert_eq!(world.site.balance(&world.account), (FUNDS, 0));
    world.site.verify();
}

#[test]
fn an_upstream_that_says_nothing_is_given_up_at_the_total_timeout() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let config = Config::upstream(&upstream).total(Duration::from_secs(5));
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let key = request_key();
    let told = gateway.complete(&account, &key, &acme("Say hello"));
    error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&told);
    gate.open();
    let again = gateway.complete(&account, &key, &acme("Say hello"));
    assert_eq!(again.body, told.body, "an answer that comes too late changes nothing");
    assert_eq!(site.balance(&account), (FUNDS, 0));
    assert_eq!(upstream.runs(), 1);
}

#[test]
fn what_an_upstream_turns_away_may_run_later_under_the_same_key() {
    let world = World::new();
    for (status, code) in [
        (429, "rate_limit_exceeded"),
        (429, "rate_limit_exceeded"),
        (429, "insufficient_quota"),
        (401, "invalid_api_key"),
        (402, "mark-of-code"),
        (403, "mark-of-code"),
        (404, "model_not_found"),
        (503, "server_is_overloaded"),
    ] {
        world.check_not_run(Reply::json(status, &upstream_error(code)));
    }
    let charged = 8 * 367;
    assert_eq!(world.site.balance(&world.account), (FUNDS - charged, 0));
    let said = world.gateway.said();
    for (level, class) in [
        ("WARN", "not_run_rate_limited"),
        ("WARN", "not_run_overloaded"),
        ("ERROR", "not_run_account"),
    ] {
        let is_it = |line: &&str| line.contains(class) && line.contains("route_complaints");
        let told: Vec<_> = said.lines().filter(is_it).collect();
        assert_eq!(told.len(), 1, "once in a while, not with every request: {said}");
        assert!(told[0].contains(level) && told[0].contains(UPSTREAM_MODEL), "{}", told[0]);
    }
    world.site.verify();
}

#[test]
fn an_upstream_that_comes_back_runs_the_same_key_once() {
    let address = Upstream::absent();
    let (site, account) = Site::funded(&Config::at(&format!("http://{address}/v1")));
    let gateway = site.serve();
    let key = request_key();
    let unavailable = error(Code::UpstreamUnavailable).echo(&key).replayed(false).bound();
    for _generation in 1..=2 {
        unavailable.check(&gateway.complete(&account, &key, &acme("Say hello")));
        assert_eq!(site.balance(&account), (FUNDS, 0));
    }
    let upstream = Upstream::start_at(address, Reply::saying("Good day"));
    let first = gateway.complete(&account, &key, &acme("Say hello"));
    check_completion(&first, &key, false);
    let again = gateway.complete(&account, &key, &acme("Say hello"));
    check_completion(&again, &key, true);
    assert_eq!(again.body, first.body);
    assert_eq!(upstream.runs(), 1);
    assert_eq!(site.balance(&account), (FUNDS - 367, 0));
    let operation = gateway.get(&account, &format!("/v1/operations/{key}")).json();
    assert_eq!(operation["generation"], 3);
    let ledger = site.json(&["wallet", "ledger", &account.wallet]);
    let kinds: Vec<_> =
        ledger["entries"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    let tries = ["hold", "release", "hold", "release", "hold", "settle", "rest"];
    assert_eq!(kinds, [&["deposit"][..], &tries].concat());
    site.verify();
}

#[test]
fn a_new_run_of_an_open_key_is_judged_by_what_holds_today() {
    let (site, _rich) = Site::funded(&Config::simulated());
    let poor = site.account("poor", "USD", "0.0024");
    let gateway = site.serve();
    let key = request_key();
    let body = sim("[[sim: fail-before-once]]\nHello");
    let told = gateway.complete(&poor, &key, &body);
    error(Code::UpstreamUnavailable).echo(&key).replayed(false).bound().check(&told);
    let request = Request::completion(&poor.key, &key, body.as_str());
    let bounded = request.clone().header("Holdfast-Max-Charge-Micros", "1");
    let told = gateway.send(&bounded);
    error(Code::ChargeLimitExceeded).echo(&key).replayed(false).check(&told);
    let spend = gateway.complete(&poor, &request_key(), &sim(&"x".repeat(110)));
    assert_eq!(spend.status, 200);
    let told = gateway.send(&request);
    error(Code::InsufficientFunds).echo(&key).replayed(false).check(&told);
    let _deposit = site.json(&["wallet", "deposit", &poor.wallet, "1.00"]);
    check_completion(&gateway.send(&request), &key, false);
    site.verify();
}

#[test]
fn the_simulated_provider_misbehaves_where_it_is_asked_to() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let check = |directive: &str, code: Code, param: Option<&'static str>| {
        let key = request_key();
        let told = gateway.complete(&account, &key, &sim(&format!("[[sim: {directive}]]\nHello")));
        let mut expected = error(code).echo(&key).replayed(false).bound();
        if let Some(param) = param {
            expected = expected.param(param);
        }
        expected.check(&told);
    };
    check("refuse", Code::ProviderRefused, None);
    check("context-overflow", Code::ContextLengthExceeded, Some("messages"));
    check("fail-before", Code::UpstreamUnavailable, None);
    check("fail-after", Code::OutcomeUnknown, None);
    check("break", Code::OutcomeUnknown, None);
    assert_eq!(site.balance(&account), (FUNDS, 0));
    site.verify();
}

#[test]
fn those_who_were_turned_away_together_do_not_come_back_together() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let waits: std::collections::BTreeSet<_> = (0..12)
        .map(|_| {
            let key = request_key();
            let told = gateway.complete(&account, &key, &sim("[[sim: fail-before]]"));
            let expected = error(Code::UpstreamUnavailable).echo(&key).replayed(false).bound();
            expected.check(&told);
            told.header("retry-after-ms").unwrap().to_owned()
        })
        .collect();
    assert!(waits.len() > 3, "{waits:?}");
}
