//! Connections that break at any byte on both sides of a sidecar, and gateways that are killed: the
//! whole answer of the one run or one clear error, and never a second charge.

use holdfast_tests::chaos::cuts::{Deaths, cut};
use holdfast_tests::{Gate, Gateway, Proxy, Reply, Request, Streaming};
use serde_json::Value;

use crate::bodies::acme;
use crate::clients::{World, world};
use crate::sidecar::{Pair, SAID, as_asked};

/// Calls of one run of the suite.
const CALLS: u32 = 40;

/// The text of a stream over a chunked body.
fn said(told: &str) -> String {
    let datas = told.lines().filter_map(|line| line.strip_prefix("data: "));
    let chunks = datas.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let texts = chunks.map(|chunk| {
        assert_eq!(chunk.get("error"), None, "{chunk}");
        chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned()
    });
    texts.collect()
}

#[test]
fn wherever_both_sides_are_cut_each_call_has_its_answer_and_one_charge() {
    let (seed, _) = uuid::Uuid::new_v4().as_u64_pair();
    cut(CALLS, seed, Deaths::None, |_done| {});
}

#[test]
fn past_kills_of_both_a_call_has_its_answer_or_one_clear_error() {
    let (seed, _) = uuid::Uuid::new_v4().as_u64_pair();
    cut(CALLS, seed, Deaths::Now, |_done| {});
}

/// A stream whose second half waits for the gate.
fn halves(gate: &Gate) -> Reply {
    let stream = Streaming::new().opening().text("Good ").wait(gate).text("day");
    stream.finish("stop").usage().done().reply()
}

#[test]
fn a_stream_that_is_cut_in_its_middle_goes_on_as_one() {
    let world = world();
    let gate = Gate::new();
    world.upstream.next(halves(&gate));
    let back = Proxy::start(world.gateway.address());
    // After the first half, which is longer than its head and shorter than the whole.
    back.cut_next(&[1_000]);
    let sidecar = world.site.sidecar(back.address(), &[]);
    let body = acme("Say hello").replacen('{', "{\"stream\":true,", 1);
    let request = Request::completion(&world.account.key, "", body).without("Idempotency-Key");
    let mut events = request.begin(sidecar.address()).events();
    let opening = events.event();
    gate.open();
    let mut told = events.rest();
    told.events.insert(0, opening);
    assert_eq!(said(&told.events.concat()), SAID);
    assert_eq!(told.events.iter().filter(|it| it.contains("\"role\"")).count(), 1, "{told:?}");
    assert_eq!(told.events.last().map(String::as_str), Some("data: [DONE]\n\n"));
    assert_eq!(back.told().len(), 2, "the cut was met");
    world.check_charges(1);
}

/// A gateway behind an address that stays, and a sidecar before that.
fn behind() -> (World, Proxy, Gateway) {
    let world = world();
    world.upstream.otherwise(as_asked());
    let back = Proxy::start(world.gateway.address());
    let sidecar = world.site.sidecar(back.address(), &[]);
    (world, back, sidecar)
}

#[test]
fn a_gateway_that_was_killed_after_its_run_answers_all_the_same() {
    let (mut world, back, sidecar) = behind();
    // The head and nothing else: the answer is settled, and the client has not got it.
    back.cut_next(&[40]);
    let request = Request::completion(&world.account.key, "", acme("Say hello"));
    let waiting = request.without("Idempotency-Key").begin(sidecar.address());
    back.wait_for(0, 40);
    world.gateway.kill_in_place();
    world.gateway = world.site.serve();
    back.turn_to(world.gateway.address());
    let answer = waiting.answer();
    assert_eq!(answer.status, 200, "{answer:?}");
    world.check_charges(1);
}

#[test]
fn a_run_that_died_with_its_gateway_is_one_clear_error_and_free() {
    let (mut world, back, sidecar) = behind();
    world.upstream.next(Reply::Silence);
    let request = Request::completion(&world.account.key, "", acme("Say hello"));
    let waiting = request.without("Idempotency-Key").begin(sidecar.address());
    world.upstream.wait_for(1);
    world.gateway.kill_in_place();
    world.gateway = world.site.serve();
    back.turn_to(world.gateway.address());
    let answer = waiting.answer();
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (502, &"outcome_unknown".into()));
    assert_eq!(world.upstream.runs(), 1);
    assert_eq!(world.site.balance(&world.account), (10_000_000, 0));
    world.site.verify();
    let pair = Pair { sidecar, world };
    assert_eq!(pair.ask("Say hello").status, 502, "the same for a minute");
}
