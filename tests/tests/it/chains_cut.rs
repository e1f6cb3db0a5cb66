//! A chain that is cut and killed: each side at each step of a request, somebody in between who
//! answers in the inner's place, an inner of two nodes. At most one run; one charge at each, or
//! `outcome_unknown` at the outer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use holdfast_tests::chain::{CHARGE, COST, Chain, Node, SAID, outer};
use holdfast_tests::chaos::chain::chain as through;
use holdfast_tests::config::ACME;
use holdfast_tests::postgres::Database;
use holdfast_tests::upstream::{Judge, error as upstream_error};
use holdfast_tests::{
    Answer, Config, Gate, Proxy, Reply, Site, Streaming, Upstream, Waiting, request_key,
};
use holdfast_wire::error::{Code, ErrorBody};

use crate::chains::{
    FUNDS, address, before, chain, chain_with, check_balance, check_charges, check_said,
    check_sent, check_waited, request,
};
use crate::check::{error, until};

/// The steps of a request at which a process is killed, and whether its answer is there afterwards:
/// `None` where it has not run and may run again.
const STEPS: [(&str, Option<bool>); 6] = [
    ("claim_offered", None),
    ("claim_committed", Some(false)),
    ("sending", Some(false)),
    ("answered", Some(false)),
    ("settlement_offered", Some(false)),
    ("settlement_committed", Some(true)),
];

#[track_caller]
fn check_unknown(answer: &Answer, key: &str) {
    let told = answer.json();
    assert_eq!((answer.status, &told["error"]["code"]), (502, &"outcome_unknown".into()), "{key}");
}

#[test]
fn an_answer_that_is_cut_anywhere_is_asked_for_again() {
    let chain = chain();
    let mut runs = 0;
    for (is_streamed, cuts) in [(false, vec![1, 40, 700]), (true, vec![1, 40, 700, 1_000, 1_300])] {
        for cut in cuts {
            chain.between.cut_next(&[cut, cut]);
            let request = request(&chain.outer, &request_key(), is_streamed);
            let _told = check_sent(&chain.outer, &request, is_streamed);
            runs += 1;
        }
    }
    check_charges(&chain, runs);
}

#[test]
fn a_stream_that_is_cut_in_its_middle_goes_on_as_one() {
    let chain = chain();
    let gate = Gate::new();
    let stream = Streaming::new().opening().text("Good ").wait(&gate).text("day");
    chain.upstream.next(stream.finish("stop").usage().done().reply());
    // After the first half, which is longer than its head and shorter than the whole.
    chain.between.cut_next(&[1_000]);
    let request = request(&chain.outer, &request_key(), true);
    let waiting = request.begin(chain.outer.gateway.address());
    chain.upstream.wait_for(1);
    gate.open();
    let _told = check_waited(waiting, true);
    check_charges(&chain, 1);
}

#[test]
fn a_long_answer_that_is_cut_again_and_again_near_its_end_is_one_answer() {
    // The four asks bring more than is read of one answer, which are 64 MiB, whatever each reset loses.
    const PIECE: usize = 256 << 10;
    const PIECES: usize = 96;
    let piece = "x".repeat(PIECE);
    let long = Streaming::saying(&[&*piece; PIECES]).reply();
    let upstream = keeping_keys(move |_asks| long.clone());
    let (outer, between) = before(&upstream);
    let cut = (PIECES - 2) * PIECE;
    between.cut_next(&[cut, cut, cut]);
    let told = request(&outer, &request_key(), true).begin(outer.gateway.address()).rest();
    assert_eq!(calls(&upstream), 4, "bytes of each connection: {:?}", between.told());
    assert!(told.contains("\"finish_reason\":\"stop\"") && told.contains("data: [DONE]\n\n"));
    let said = told.lines().filter(|line| line.starts_with("data: "));
    assert_eq!(
        said.map(|line| line.matches("xxxxxxxx").count() * 8).sum::<usize>(),
        PIECES * PIECE
    );
    check_balance(&outer, CHARGE);
}

#[test]
fn whoever_answers_in_the_inners_place_proves_nothing() {
    let html = |status: &str| {
        Reply::Raw(format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\
             connection: close\r\n\r\n<html>"
        ))
    };
    let proof = ErrorBody::new(Code::UpstreamUnavailable).render();
    let proof = Reply::Send(503, String::from_utf8(proof).unwrap());
    let answers = [
        html("502 Bad Gateway"),
        html("503 Service Unavailable"),
        html("429 Too Many Requests"),
        html("404 Not Found"),
        html("200 OK"),
        proof,
    ];
    let chain = chain();
    let other = Upstream::start(html("502 Bad Gateway"));
    let mut runs = 0;
    for answer in answers {
        let gate = Gate::new();
        chain.between.turn_to(address(&other));
        let asked = other.runs();
        other.next(answer.after(&gate));
        let key = request_key();
        let request = request(&chain.outer, &key, false);
        let waiting = request.begin(chain.outer.gateway.address());
        other.wait_for(asked + 1);
        chain.between.turn_to(chain.inner.gateway.address());
        gate.open();
        check_said(&waiting.answer());
        runs += 1;
        assert_eq!(chain.outer.gateway.send(&request).header("idempotent-replayed"), Some("true"));
    }
    check_charges(&chain, runs);
}

#[test]
fn another_answer_than_the_one_that_was_begun_is_none() {
    let upstream = keeping_keys(|asks| match asks {
        0 => Streaming::new().opening().text("Good ").cut(),
        _ => Streaming::saying(&["Bad ", "day"]).reply(),
    });
    let (outer, _between) = before(&upstream);
    let told = request(&outer, &request_key(), true).begin(outer.gateway.address()).rest();
    assert!(told.contains("Good ") && told.contains("outcome_unknown"), "{told}");
    assert!(!told.contains("Bad ") && !told.contains("day"), "{told}");
    assert_eq!(calls(&upstream), 2);
    check_balance(&outer, 0);
}

#[test]
fn an_answer_kept_back_by_a_proxy_is_never_run_again() {
    let chain = chain();
    // The inner runs it and is cut; a proof without an echo then comes in its place.
    let proof = ErrorBody::new(Code::Overloaded).render();
    let other = Upstream::start(Reply::Send(503, String::from_utf8(proof).unwrap()));
    let gate = Gate::new();
    chain.upstream.next(Reply::saying(SAID).after(&gate));
    chain.between.cut_next(&[1]);
    let request = request(&chain.outer, &request_key(), false);
    let waiting = request.begin(chain.outer.gateway.address());
    chain.upstream.wait_for(1);
    chain.between.turn_to(address(&other));
    gate.open();
    other.wait_for(2);
    chain.between.turn_to(chain.inner.gateway.address());
    check_said(&waiting.answer());
    check_charges(&chain, 1);
}

#[test]
fn a_server_that_ignores_keys_is_never_asked_again() {
    let upstream = Upstream::start(Reply::saying(SAID));
    let (outer, _between) = before(&upstream);
    until("it is known", || outer.site.logs().contains("does not require a key").then_some(()));
    for failure in [Reply::Reset, Reply::json(503, &upstream_error("overloaded"))] {
        let earlier = calls(&upstream);
        upstream.next(failure);
        let key = request_key();
        check_unknown(&outer.gateway.send(&request(&outer, &key, false)), &key);
        check_unknown(&outer.gateway.send(&request(&outer, &key, false)), &key);
        assert_eq!(calls(&upstream), earlier + 1, "never again");
    }
    check_balance(&outer, 0);
}

/// A server that keeps keys, and replies to each ask by the number of those before it.
fn keeping_keys(reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Upstream {
    let asks = AtomicUsize::new(0);
    let required =
        String::from_utf8(ErrorBody::new(Code::IdempotencyKeyRequired).render()).unwrap();
    // It closes its connection: a kept one would bring the next request past the cuts of later connections.
    let required = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{required}",
        required.len()
    );
    Upstream::start(Reply::Judged(Judge::new(move |arrived| {
        if arrived.body == "{}" {
            return Reply::Raw(required.clone());
        }
        reply(asks.fetch_add(1, Ordering::Relaxed))
    })))
}

/// An outer whose model has this inner as its second route, under `one-charge`.
fn with_second(second: &Node) -> Chain {
    let route = format!("model = \"{ACME}\"\n");
    let other =
        format!("[[models.routes]]\nprovider = \"second\"\nmodel = \"{ACME}\"\npriority = 1\n");
    let base_url = format!("\"http://{}/v1\"", second.gateway.address());
    chain_with(|config, _first| {
        config
            .set("providers.second", "kind", "\"holdfast\"")
            .set("providers.second", "base_url", &base_url)
            .set("providers.second", "api_key", &format!("\"{}\"", second.account.key))
            .replace("contract = 1", "contract = 1\nguarantee = \"one-charge\"")
            .replace(&route, &format!("{route}{other}"))
    })
}

#[test]
fn what_an_inner_may_have_run_goes_to_no_other_route_under_one_charge() {
    let upstream = Upstream::start(Reply::saying(SAID));
    let second = Node::start(Site::funded(&Config::upstream(&upstream)));
    let chain = with_second(&second);
    for (runs, cuts) in [(1, &[][..]), (2, &[1][..])] {
        chain.upstream.next(Reply::Reset);
        chain.between.cut_next(cuts);
        let key = request_key();
        let request = request(&chain.outer, &key, false);
        for _again in 0..2 {
            check_unknown(&chain.outer.gateway.send(&request), &key);
        }
        assert_eq!((chain.upstream.runs(), upstream.runs()), (runs, 0));
    }
    check_balance(&chain.outer, 0);
    // What is proven not to have run goes on.
    chain.upstream.next(Reply::json(429, &upstream_error("rate_limit_exceeded")));
    check_said(&chain.outer.gateway.send(&request(&chain.outer, &request_key(), false)));
    assert_eq!((chain.upstream.runs(), upstream.runs()), (3, 1));
    check_balance(&chain.outer, CHARGE);
    check_balance(&second, COST);
    check_balance(&chain.inner, 0);
}

/// Requests that ask for a run, and not whether keys are kept.
fn calls(upstream: &Upstream) -> usize {
    upstream.arrived().iter().filter(|it| it.body.contains("messages")).count()
}

#[test]
fn wherever_a_chain_is_cut_and_whoever_dies_it_is_one_run_and_one_charge_at_each() {
    let (seed, _) = uuid::Uuid::new_v4().as_u64_pair();
    through(24, seed, |_done| {});
}

/// Checks that a call has its answer, or that nobody knows its outcome: as the answer, or as the error
/// that ends a stream.
#[track_caller]
fn check_end(mut waiting: Waiting, (is_streamed, has_answer): (bool, bool)) {
    if has_answer {
        let _told = check_waited(waiting, is_streamed);
        return;
    }
    let told = waiting.rest();
    assert!(told.contains("\"outcome_unknown\"") && !told.contains("[DONE]"), "{told}");
}

/// Each step, for an answer as a whole and for a stream.
fn steps() -> impl Iterator<Item = (&'static str, bool, bool)> {
    let both = |(step, has_answer): (_, Option<bool>)| {
        [false, true].map(|is_streamed| (step, has_answer != Some(false), is_streamed))
    };
    STEPS.into_iter().flat_map(both)
}

#[test]
fn an_inner_that_is_killed_at_any_step_has_run_once_at_most() {
    let mut chain = chain();
    let (mut answers, mut runs) = (0, 0);
    for (step, has_answer, is_streamed) in steps() {
        chain.inner.gateway.kill_in_place();
        chain.inner.gateway = chain.inner.site.serve_until(&format!("{step}:1"));
        chain.between.turn_to(chain.inner.gateway.address());
        let request = request(&chain.outer, &request_key(), is_streamed);
        let waiting = request.begin(chain.outer.gateway.address());
        until(step, || chain.inner.gateway.is_stopped().then_some(()));
        chain.between.turn_to(chain.inner.start_again());
        check_end(waiting, (is_streamed, has_answer));
        answers += i64::from(has_answer);
        assert!((runs..=runs + 1).contains(&chain.upstream.runs()), "{step}");
        runs = chain.upstream.runs();
        check_balance(&chain.inner, answers * COST);
        check_balance(&chain.outer, answers * CHARGE);
    }
}

#[test]
fn an_outer_that_is_killed_at_any_step_has_one_charge_at_each_or_an_unknown_outcome() {
    let mut chain = chain();
    let (mut answers, mut runs) = (0, 0);
    for (step, has_answer, is_streamed) in steps() {
        chain.outer.gateway.kill_in_place();
        chain.outer.gateway = chain.outer.site.serve_until(&format!("{step}:1"));
        let request = request(&chain.outer, &request_key(), is_streamed);
        let mut waiting = request.begin(chain.outer.gateway.address());
        until(step, || chain.outer.gateway.is_stopped().then_some(()));
        let _address = chain.outer.start_again();
        let told = waiting.rest();
        assert!(told.is_empty() || is_streamed && !told.contains("[DONE]"), "{step}: {told}");
        let again = request.begin(chain.outer.gateway.address());
        check_end(again, (is_streamed, has_answer));
        answers += i64::from(has_answer);
        assert!((runs..=runs + 1).contains(&chain.upstream.runs()), "{step}");
        runs = chain.upstream.runs();
        // What ran without an answer is the outer's exposure: paid at the inner, by nobody at the outer.
        check_balance(&chain.inner, i64::try_from(runs).unwrap() * COST);
        check_balance(&chain.outer, answers * CHARGE);
    }
}

#[test]
fn an_outer_that_drains_asks_no_more() {
    let chain = chain();
    let gate = Gate::new();
    chain.upstream.next(Reply::saying(SAID).after(&gate));
    let key = request_key();
    let waiting = request(&chain.outer, &key, false).begin(chain.outer.gateway.address());
    chain.upstream.wait_for(1);
    let begun = Instant::now();
    // Nobody listens there: the next asks fail, until the outer ends.
    chain.between.turn_to(Upstream::absent());
    chain.outer.gateway.terminate();
    until("it drains", || chain.outer.site.logs().contains("draining").then_some(()));
    let Chain { mut inner, outer, .. } = chain;
    inner.gateway.kill_in_place();
    check_unknown(&waiting.answer(), &key);
    assert!(begun.elapsed() < Duration::from_secs(10), "it did not wait for its drain's end");
    let Node { gateway, .. } = outer;
    assert!(gateway.wait().success());
    gate.open();
}

#[test]
fn an_outer_asks_until_the_models_time_is_over() {
    let chain = chain_with(|config, _inner| config.total(Duration::from_secs(6)));
    let gate = Gate::new();
    chain.upstream.next(Reply::saying(SAID).after(&gate));
    chain.between.cut_next(&[1]);
    let key = request_key();
    let waiting = request(&chain.outer, &key, false).begin(chain.outer.gateway.address());
    chain.upstream.wait_for(1);
    let told = waiting.answer();
    error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&told);
    gate.open();
    // The run went on at the inner, which is paid for it: the outer's exposure.
    check_balance(&chain.outer, 0);
    until("the inner has settled", || {
        (chain.inner.site.balance(&chain.inner.account).1 == 0).then_some(())
    });
    // The outer cancels what it gave up: if that comes before the answer, the inner charges nothing.
    let (available, _held) = chain.inner.site.balance(&chain.inner.account);
    assert!([FUNDS, FUNDS - COST].contains(&available), "{available}");
    assert_eq!(chain.upstream.runs(), 1);
}

#[test]
fn postgres_an_inner_of_two_nodes_answers_by_the_other_one() {
    let upstream = Upstream::start(Reply::saying(SAID));
    let database = Database::migrated();
    let config = database
        .configure(Config::upstream(&upstream))
        .set("operations", "lease", "\"6s\"")
        .set("operations", "heartbeat", "\"1s\"")
        .set("operations", "orphan_grace", "\"1s\"");
    let (site, account) = Site::funded(&config);
    let (mut first, second) = (site.serve(), site.serve());
    let between = Proxy::start(first.address());
    let outer = Node::start(Site::funded(&outer(&between, &account.key)));
    between.wait_for(0, 1);
    // The first node runs it and is cut off; the second has the answer once it is there.
    let gate = Gate::new();
    upstream.next(Reply::saying(SAID).after(&gate));
    between.cut_next(&[1]);
    let waiting = request(&outer, &request_key(), false).begin(outer.gateway.address());
    upstream.wait_for(1);
    between.turn_to(second.address());
    gate.open();
    check_said(&waiting.answer());
    check_balance(&outer, CHARGE);
    // The first node dies within the run: the second one knows, once the lease is over.
    let gate = Gate::new();
    upstream.next(Reply::saying(SAID).after(&gate));
    between.turn_to(first.address());
    let key = request_key();
    let waiting = request(&outer, &key, false).begin(outer.gateway.address());
    upstream.wait_for(2);
    between.turn_to(second.address());
    first.kill_in_place();
    check_unknown(&waiting.answer(), &key);
    gate.open();
    check_balance(&outer, CHARGE);
    assert_eq!(site.balance(&account), (FUNDS - COST, 0));
    assert_eq!(upstream.runs(), 2);
    site.verify();
}
