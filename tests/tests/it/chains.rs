//! A gateway behind a gateway: one run, one charge at each, and what the inner charges is the
//! outer's cost. What breaks on the way is in `chains_cut`.

use std::net::SocketAddr;

use holdfast_tests::chain::{CHARGE, COST, Chain, Node, SAID, outer};
use holdfast_tests::site::text;
use holdfast_tests::upstream::ArrivedRequest;
use holdfast_tests::{Answer, Config, Proxy, Reply, Request, Site, Upstream, Waiting, request_key};
use holdfast_wire::error::Code;
use serde_json::Value;

use crate::bodies::acme;
use crate::check::{content, error, until};

pub(crate) const FUNDS: i64 = 10_000_000;

pub(crate) fn chain() -> Chain {
    chain_with(|config, _inner| config)
}

/// A chain whose outer is configured like that, for this inner.
pub(crate) fn chain_with(set: impl FnOnce(Config, &Node) -> Config) -> Chain {
    Chain::start(Site::funded, set)
}

/// A completion for the account of a node.
pub(crate) fn request(node: &Node, key: &str, is_streamed: bool) -> Request {
    let stream = r#"{"stream":true,"stream_options":{"include_usage":true},"#;
    let opening = if is_streamed { stream } else { "{" };
    Request::completion(&node.account.key, key, acme("Say hello").replacen('{', opening, 1))
}

#[track_caller]
pub(crate) fn check_balance(node: &Node, spent: i64) {
    until("nothing is held", || (node.site.balance(&node.account).1 == 0).then_some(()));
    assert_eq!(node.site.balance(&node.account), (FUNDS - spent, 0));
    let _verified = node.site.verify();
}

/// So many runs, each paid once at both.
#[track_caller]
pub(crate) fn check_charges(chain: &Chain, runs: i64) {
    assert_eq!(i64::try_from(chain.upstream.runs()).unwrap(), runs);
    check_balance(&chain.inner, runs * COST);
    check_balance(&chain.outer, runs * CHARGE);
}

/// An outer that takes this server for a gateway, and the proxy between.
pub(crate) fn before(upstream: &Upstream) -> (Node, Proxy) {
    let between = Proxy::start(address(upstream));
    let node = Node::start(Site::funded(&outer(&between, "sk-inner")));
    // The question whether keys are kept.
    upstream.wait_for(1);
    (node, between)
}

pub(crate) fn address(of: &Upstream) -> SocketAddr {
    of.base_url().trim_start_matches("http://").trim_end_matches("/v1").parse().unwrap()
}

#[track_caller]
pub(crate) fn check_said(answer: &Answer) {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(content(&answer.json()), SAID);
    assert_eq!(answer.json()["usage"]["customer_charge_micros"], CHARGE);
}

/// Checks a whole stream over a chunked body, whose usage has the outer's charge.
#[track_caller]
fn check_streamed(told: &str) {
    let data = told.lines().filter_map(|line| line.strip_prefix("data: "));
    let chunks: Vec<Value> = data.filter_map(|data| serde_json::from_str(data).ok()).collect();
    let said = chunks.iter().filter_map(|it| it["choices"][0]["delta"]["content"].as_str());
    assert_eq!(said.collect::<String>(), SAID, "{told}");
    let charges = chunks.iter().filter_map(|it| it["usage"]["customer_charge_micros"].as_i64());
    assert_eq!(charges.collect::<Vec<_>>(), [CHARGE], "{told}");
    assert!(told.contains("data: [DONE]\n\n"), "{told}");
}

/// Sends a request, and checks all that it is answered; the bytes of that.
#[track_caller]
pub(crate) fn check_sent(node: &Node, request: &Request, is_streamed: bool) -> String {
    let waiting = request.begin(node.gateway.address());
    check_waited(waiting, is_streamed)
}

#[track_caller]
pub(crate) fn check_waited(mut waiting: Waiting, is_streamed: bool) -> String {
    if is_streamed {
        let told = waiting.rest();
        check_streamed(&told);
        return told;
    }
    let answer = waiting.answer();
    check_said(&answer);
    answer.everything()
}

#[test]
fn an_answer_is_charged_once_at_each_and_the_inner_charge_is_the_cost_of_the_outer() {
    let chain = chain();
    for (runs, is_streamed) in [(1, false), (2, true)] {
        let key = request_key();
        let told = check_sent(&chain.outer, &request(&chain.outer, &key, is_streamed), is_streamed);
        assert!(!told.contains("\"customer_charge_micros\":367"), "{told}");
        let told = chain.outer.gateway.get(&chain.outer.account, &format!("/v1/operations/{key}"));
        assert!(!told.text().contains("cost"), "{told:?}");
        let shown = chain.outer.site.json(&["operation", "show", &text(&told.json(), "id")]);
        assert_eq!(shown["provider_cost_micros"], COST, "{shown}");
        check_charges(&chain, runs);
    }
    let report = chain.outer.site.json(&["usage", "report"]);
    assert_eq!(report[0]["margin_micros"], 2 * (CHARGE - COST), "{report}");
}

#[test]
fn a_charge_in_another_currency_is_no_cost() {
    let chain = chain_with(|config, _inner| config.set("providers.acme", "currency", "\"EUR\""));
    let key = request_key();
    check_said(&chain.outer.gateway.send(&request(&chain.outer, &key, false)));
    let account = &chain.outer.account.id;
    let shown = chain.outer.site.json(&["operation", "show", "--api-key", account, &key]);
    assert_eq!(shown["provider_cost_micros"], Value::Null, "{shown}");
}

#[test]
fn the_inner_gets_one_key_for_each_generation_and_route() {
    let upstream = Upstream::start(Reply::saying(SAID));
    let (outer, _between) = before(&upstream);
    let key = request_key();
    check_said(&outer.gateway.send(&request(&outer, &key, false)));
    check_said(&outer.gateway.send(&request(&outer, &key, false)));
    check_said(&outer.gateway.send(&request(&outer, &request_key(), false)));
    let sent: Vec<_> = upstream.arrived().iter().skip(1).map(|it| sent_key(it).unwrap()).collect();
    let [one, other] = &*sent else { panic!("{sent:?}") };
    assert!(one != other && *one != key, "{sent:?}");
}

/// The key that a request has brought.
fn sent_key(arrived: &ArrivedRequest) -> Option<String> {
    let headers = arrived.headers();
    headers.into_iter().find_map(|(name, key)| (name == "idempotency-key").then_some(key))
}

#[test]
fn what_the_inner_turns_away_is_not_run_and_runs_under_another_key_later() {
    let mut poor = None;
    let chain = chain_with(|config, inner| {
        let account = poor.insert(inner.site.account("poor", "USD", "0.000001"));
        config.set("providers.acme", "api_key", &format!("\"{}\"", account.key))
    });
    let (inner, poor) = (&chain.inner, poor.unwrap());
    let key = request_key();
    let request = request(&chain.outer, &key, false);
    let turned_away = error(Code::UpstreamUnavailable).echo(&key).bound();
    turned_away.replayed(false).check(&chain.outer.gateway.send(&request));
    assert_eq!(chain.upstream.runs(), 0);
    let _deposited = inner.site.json(&["wallet", "deposit", &poor.wallet, "1"]);
    check_said(&chain.outer.gateway.send(&request));
    assert_eq!(chain.upstream.runs(), 1);
    assert_eq!(inner.site.balance(&poor), (1_000_001 - COST, 0));
    check_balance(&chain.outer, CHARGE);
}

#[test]
fn what_the_models_provider_refuses_is_refused_at_both() {
    let chain = chain();
    chain.upstream.next(Reply::json(400, &holdfast_tests::upstream::error("bad")));
    let key = request_key();
    let request = request(&chain.outer, &key, false);
    let refused = error(Code::ProviderRefused).echo(&key).bound();
    refused.clone().replayed(false).check(&chain.outer.gateway.send(&request));
    refused.replayed(true).check(&chain.outer.gateway.send(&request));
    assert_eq!(chain.upstream.runs(), 1);
    check_balance(&chain.outer, 0);
    check_balance(&chain.inner, 0);
}

#[test]
fn a_probe_says_whether_the_inner_keeps_keys() {
    let chain = chain();
    let probe = || {
        let ran = chain.outer.site.cli(&["check-config", "--probe", "--json"]);
        let view: Value = serde_json::from_str(&ran.stdout).unwrap();
        (ran.code, text(&view["probes"][0], "answer"))
    };
    let keeps = "reached, and it takes the api_key; it keeps request keys: an interrupted request is repeated";
    assert_eq!(probe(), (Some(0), keeps.to_owned()));
    let ignorant = Upstream::start(Reply::saying(SAID));
    chain.between.turn_to(address(&ignorant));
    let (code, said) = probe();
    assert!(code == Some(1) && said.contains("does not require request keys"), "{said}");
}

#[test]
fn a_header_of_another_kind_only_sends_the_key() {
    let upstream = Upstream::start(Reply::saying(SAID));
    let config = Config::upstream(&upstream).set(
        "providers.acme",
        "idempotency_header",
        "\"X-Request-Key\"",
    );
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    upstream.next(Reply::Reset);
    let (key, other) = (request_key(), request_key());
    let told = gateway.complete(&account, &key, &acme("Say hello"));
    error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&told);
    assert_eq!(gateway.complete(&account, &other, &acme("Say hello")).status, 200);
    let sent = upstream.arrived().into_iter().map(|arrived| {
        let headers = arrived.headers();
        headers
            .into_iter()
            .find_map(|(name, key)| (name == "x-request-key").then_some(key))
            .unwrap()
    });
    let sent: Vec<_> = sent.collect();
    let [first, second] = &*sent else { panic!("{sent:?}") };
    assert!(first != second && *first != key && first.len() == 36, "{sent:?}");
}
