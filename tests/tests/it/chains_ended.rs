//! A chain that the outer cuts: the run of the inner is ended, and its charge is the outer's cost,
//! in the row of the operation or beside it.

use std::time::{Duration, Instant};

use holdfast_tests::chain::{COST, Chain, Node};
use holdfast_tests::config::ACME;
use holdfast_tests::upstream::Judge;
use holdfast_tests::{
    Account, Config, Gate, Reply, Request, Streaming, Upstream, Waiting, request_key,
};
use holdfast_wire::error::{Code, ErrorBody};
use serde_json::{Value, json};

use crate::chains::{FUNDS, address, before, chain, chain_with, request};
use crate::check::until;

fn cancelling(account: &Account, key: &str) -> Request {
    Request::post(&format!("/v1/operations/{key}/cancel"), "").bearer(&account.key)
}

/// What the usage report of a gateway says of its costs: the cost, the exposure.
fn costs(node: &Node) -> [i64; 2] {
    let report = node.site.json(&["usage", "report"]);
    ["provider_cost_micros", "exposure_micros"].map(|name| report[0][name].as_i64().unwrap_or(0))
}

/// Charge of the inner, once nothing is held there.
#[track_caller]
fn inner_charge(chain: &Chain) -> i64 {
    let node = &chain.inner;
    until("the inner has ended", || (node.site.balance(&node.account).1 == 0).then_some(()));
    FUNDS - node.site.balance(&node.account).0
}

/// Waits until the outer's report has this cost, and no exposure.
#[track_caller]
fn check_cost(node: &Node, cost: i64) {
    let end = Instant::now() + Duration::from_secs(20);
    while costs(node) != [cost, 0] {
        assert!(Instant::now() < end, "{:?} instead of {cost}", costs(node));
        std::thread::sleep(Duration::from_millis(50));
    }
    // A second look adds nothing.
    assert_eq!(costs(node), [cost, 0]);
    let _verified = node.site.verify();
}

/// A stream that says a word and then waits for this gate.
fn begun(gate: &Gate) -> Reply {
    let stream = Streaming::new().opening().text("Good ").wait(gate).text("day");
    stream.finish("stop").usage().done().reply()
}

/// Begins a streamed completion at the outer, and waits for the first word.
fn begin(chain: &Chain, key: &str, gate: &Gate) -> Waiting {
    chain.upstream.next(begun(gate));
    let mut waiting = request(&chain.outer, key, true).begin(chain.outer.gateway.address());
    chain.upstream.wait_for(1);
    let _head = waiting.read(1);
    // The first word follows the head.
    while !waiting.is_silent_for(Duration::from_millis(400)) {
        let _more = waiting.read(1);
    }
    waiting
}

fn row(node: &Node, key: &str) -> Value {
    node.site.json(&["operation", "show", "--api-key", &node.account.id, key])
}

#[test]
fn a_cancelled_stream_ends_the_inner_and_its_charge_is_in_the_row() {
    let (chain, gate, key) = (chain(), Gate::new(), request_key());
    let mut waiting = begin(&chain, &key, &gate);
    let asked = chain.outer.gateway.send(&cancelling(&chain.outer.account, &key));
    assert_eq!(asked.status, 202, "{asked:?}");
    assert!(waiting.rest().contains("\"length\""));
    let charge = inner_charge(&chain);
    assert!(charge > 0 && charge < COST, "{charge}");
    until("the outer has ended", || {
        (row(&chain.outer, &key)["status"] == "completed").then_some(())
    });
    assert_eq!(row(&chain.outer, &key)["provider_cost_micros"], charge);
    check_cost(&chain.outer, charge);
    gate.open();
}

#[test]
fn a_cancel_of_what_is_not_streamed_ends_the_inner_and_costs_nothing() {
    let (chain, key) = (chain(), request_key());
    chain.upstream.next(Reply::Silence);
    let waiting = request(&chain.outer, &key, false).begin(chain.outer.gateway.address());
    chain.upstream.wait_for(1);
    let _asked = chain.outer.gateway.send(&cancelling(&chain.outer.account, &key));
    chain.upstream.wait_for_hang_ups(1);
    assert_eq!(waiting.answer().status, 502);
    assert_eq!(inner_charge(&chain), 0);
    check_cost(&chain.outer, 0);
}

#[test]
fn an_inner_that_ends_before_the_cancel_has_its_charge_added_once_and_is_exposure_until_then() {
    let (chain, gate, key) = (chain(), Gate::new(), request_key());
    let mut waiting = begin(&chain, &key, &gate);
    // Every cancel is refused a connection, until the inner has ended by itself.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = nobody.local_addr().unwrap();
    drop(nobody);
    chain.between.turn_to(nowhere);
    let _asked = chain.outer.gateway.send(&cancelling(&chain.outer.account, &key));
    assert!(waiting.rest().contains("\"length\""));
    let shown = row(&chain.outer, &key);
    assert_eq!(
        (&shown["status"], &shown["provider_cost_micros"]),
        (&json!("completed"), &json!(null))
    );
    let hold = shown["hold_micros"].as_i64().unwrap();
    assert_eq!(costs(&chain.outer), [0, hold]);
    let charge = {
        gate.open();
        inner_charge(&chain)
    };
    assert_eq!(charge, COST);
    chain.between.turn_to(chain.inner.gateway.address());
    check_cost(&chain.outer, COST);
    let mut after = row(&chain.outer, &key);
    assert_eq!(after["provider_cost_micros"].take(), COST, "the cost that came later");
    assert_eq!(after, shown, "else nothing of an ended row changes");
    let listed = chain.outer.site.json(&["operation", "list"]);
    assert_eq!(listed[0]["provider_cost_micros"], COST, "{listed}");
}

#[test]
fn the_total_time_silence_and_the_drain_end_the_inner() {
    let silence = |config: Config, _inner: &Node| {
        config.replace("connect = \"2s\"", "connect = \"2s\", between_tokens = \"1s\"")
    };
    let total = |config: Config, _inner: &Node| config.total(Duration::from_secs(2));
    for chain in [chain_with(silence), chain_with(total)] {
        let (gate, key) = (Gate::new(), request_key());
        let mut waiting = begin(&chain, &key, &gate);
        assert!(waiting.rest().contains("\"length\""));
        let charge = inner_charge(&chain);
        assert!(charge > 0 && charge < COST, "{charge}");
        check_cost(&chain.outer, charge);
    }
    let chain = chain_with(|config, _inner| config.set("server", "drain", "\"1s\""));
    let (gate, key) = (Gate::new(), request_key());
    let mut waiting = begin(&chain, &key, &gate);
    let Chain { upstream: _upstream, inner, between: _between, outer } = chain;
    let Node { gateway, site, account } = outer;
    gateway.stop();
    assert!(!waiting.rest().contains("[DONE]"));
    until("the inner has ended", || (inner.site.balance(&inner.account).1 == 0).then_some(()));
    let charge = FUNDS - inner.site.balance(&inner.account).0;
    assert!(charge > 0 && charge < COST, "{charge}");
    let outer = Node::start((site, account));
    check_cost(&outer, charge);
}

#[test]
fn a_killed_outer_ends_the_inner_when_it_starts_again() {
    let (mut chain, gate, key) = (chain(), Gate::new(), request_key());
    let _waiting = begin(&chain, &key, &gate);
    let _address = chain.outer.start_again();
    let charge = inner_charge(&chain);
    assert!(charge > 0 && charge < COST, "{charge}");
    check_cost(&chain.outer, charge);
    let shown = row(&chain.outer, &key);
    assert_eq!(
        [&shown["status"], &shown["provider_cost_micros"]],
        [&json!("abandoned"), &json!(charge)]
    );
}

#[test]
fn a_killed_outer_with_a_route_that_reports_no_cost_keeps_its_exposure() {
    let with_another = |config: Config, _inner: &Node| {
        let route = format!("model = \"{ACME}\"\n");
        let both = format!("{route}[[models.routes]]\nprovider = \"other\"\nmodel = \"other\"\n");
        let url = format!("\"http://{}/v1\"", Upstream::absent());
        config
            .set("providers.other", "kind", "\"openai\"")
            .set("providers.other", "base_url", &url)
            .set("providers.other", "api_key", "\"sk-other\"")
            .replace(&route, &both)
    };
    let (mut chain, gate, key) = (chain_with(with_another), Gate::new(), request_key());
    let _waiting = begin(&chain, &key, &gate);
    let _address = chain.outer.start_again();
    assert!(inner_charge(&chain) > 0, "the inner was ended all the same");
    let shown = row(&chain.outer, &key);
    assert_eq!(shown["status"], "abandoned");
    let Chain { upstream: _upstream, inner: _inner, between: _between, outer } = chain;
    let Node { gateway, site, .. } = outer;
    // The drain waits for what is still to be noted.
    gateway.stop();
    let report = site.json(&["usage", "report"]);
    assert_eq!(report[0]["exposure_micros"], shown["hold_micros"], "{report}");
    assert_eq!(report[0]["provider_cost_micros"], json!(null), "{report}");
}

/// A gateway of one answer: 404 to the first cancel, then 202, then the ended operation.
fn overtaken() -> Upstream {
    let required =
        String::from_utf8(ErrorBody::new(Code::IdempotencyKeyRequired).render()).unwrap();
    let cancels = std::sync::atomic::AtomicUsize::new(0);
    Upstream::start(Reply::Judged(Judge::new(move |arrived| {
        let path = arrived.head.split(' ').nth(1).unwrap_or_default().to_owned();
        let Some(key) = path.strip_suffix("/cancel").and_then(|path| path.rsplit('/').next())
        else {
            let is_question = arrived.body == "{}";
            return if is_question { Reply::Send(400, required.clone()) } else { Reply::Silence };
        };
        let view = |status: &str| {
            json!({"idempotency_key": key, "status": status, "charge_micros": 29}).to_string()
        };
        match cancels.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Reply::Send(404, "{}".to_owned()),
            1 => Reply::Send(202, view("leased")),
            _more => Reply::Send(200, view("completed")),
        }
    })))
}

#[test]
fn a_cancel_that_overtakes_its_request_is_repeated_with_the_credential_and_the_key() {
    let upstream = overtaken();
    let (outer, _between) = before(&upstream);
    let key = request_key();
    let waiting = request(&outer, &key, false).begin(outer.gateway.address());
    upstream.wait_for(2);
    let _asked = outer.gateway.send(&cancelling(&outer.account, &key));
    assert_eq!(waiting.answer().status, 502);
    check_cost(&outer, 29);
    let arrived = upstream.arrived();
    let header = |at: usize, name: &str| {
        let found = arrived[at].headers().into_iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value)
    };
    let derived = header(1, "idempotency-key").unwrap();
    let cancel = format!("POST /v1/operations/{derived}/cancel ");
    let cancels: Vec<_> =
        (0..arrived.len()).filter(|at| arrived[*at].head.starts_with(&cancel)).collect();
    assert_eq!(cancels.len(), 3, "{arrived:?}");
    for at in cancels {
        assert_eq!(header(at, "authorization"), header(1, "authorization"));
    }
    let _bound = address(&upstream);
}

#[test]
fn an_answer_that_is_asked_for_again_is_not_cancelled() {
    let chain = chain();
    chain.between.cut_next(&[1, 40]);
    let told =
        request(&chain.outer, &request_key(), true).begin(chain.outer.gateway.address()).rest();
    assert!(told.contains("[DONE]"), "{told}");
    let log = chain.inner.site.logs();
    assert!(!log.contains("/cancel"), "{log}");
    assert_eq!(chain.inner.site.json(&["usage", "report"])[0]["completed"], 1);
    let asked = chain.inner.site.json(&["operation", "list"]);
    assert!(!asked.to_string().contains("\"cancel_asked\":true"), "{asked}");
}
