//! Answers that come as streams: what is told, in which bytes, when, and to whom.

use holdfast_tests::events::End;
use holdfast_tests::{Config, Gate, Reply, Request, Site, StreamedAnswer, Upstream, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::admin::{metrics, value, wait_for_waiters};
use crate::bodies::{acme, sim};
use crate::check::{charge, check_completion, content, error, until};
use crate::streaming::{check_broken, check_stream};
use crate::world::World;

const FUNDS: i64 = 10_000_000;

/// The same request, to be told as a stream.
fn streamed(body: &str) -> String {
    with(body, json!({"stream": true}))
}

/// The same with a chunk that tells what it cost.
fn metered(body: &str) -> String {
    with(body, json!({"stream": true, "stream_options": {"include_usage": true}}))
}

fn with(body: &str, members: Value) -> String {
    let mut body: Value = serde_json::from_str(body).unwrap();
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body.to_string()
}

impl World {
    fn stream(&self, key: &str, body: &str) -> StreamedAnswer {
        self.events(key, body).rest()
    }

    fn completion(&self, key: &str, body: &str, replayed: bool) -> Value {
        check_completion(&self.complete(key, body), key, replayed)
    }
}

#[test]
fn a_stream_says_what_the_json_says_in_either_order() {
    let world = World::simulated(|config| config);
    let body = sim("Hello there");
    let (one, two) = (request_key(), request_key());
    let told = check_stream(&world.stream(&one, &metered(&body)), &one, false);
    let json = world.completion(&one, &body, true);
    let again = check_stream(&world.stream(&one, &metered(&body)), &one, true);
    assert_eq!(content(&told), "You said: Hello there");
    for name in ["id", "created", "model", "usage"] {
        assert_eq!(told[name], json[name], "{name}");
        assert_eq!(told[name], again[name], "{name}");
    }
    assert_eq!((content(&told), content(&again)), (content(&json), content(&json)));
    assert_eq!(told["choices"][0]["finish_reason"], json["choices"][0]["finish_reason"]);

    let json = world.completion(&two, &body, false);
    let told = check_stream(&world.stream(&two, &metered(&body)), &two, true);
    assert_eq!((&told["id"], &told["usage"]), (&json["id"], &json["usage"]));
    assert_eq!(content(&told), content(&json));
    assert_eq!(world.site.balance(&world.account), (FUNDS - 2 * charge(&json), 0));
    assert_eq!(world.site.verify()["operations"], 2);
}

#[test]
fn usage_is_told_where_it_is_asked_for() {
    let world = World::simulated(|config| config);
    for options in [json!(null), json!({}), json!({"include_usage": false})] {
        let key = request_key();
        let body = with(&sim("Hello"), json!({"stream": true, "stream_options": options}));
        let told = world.stream(&key, &body);
        drop(check_stream(&told, &key, false));
        assert!(told.events.iter().all(|event| !event.contains("usage")), "{told:?}");
    }
    let key = request_key();
    let told = world.stream(&key, &metered(&sim("Hello")));
    drop(check_stream(&told, &key, false));
    let chunks = told.chunks();
    let (last, others) = chunks.split_last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert!(last["usage"]["customer_charge_micros"].as_i64().unwrap() > 0);
    assert!(others.iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()));
}

#[test]
fn every_choice_is_told_to_its_own_end() {
    let world = World::simulated(|config| config);
    let key = request_key();
    let body = with(&streamed(&sim("Hello")), json!({"n": 3}));
    let told = check_stream(&world.stream(&key, &body), &key, false);
    let choices = told["choices"].as_array().unwrap();
    let said: Vec<_> = choices.iter().map(|choice| &choice["message"]["content"]).collect();
    assert_eq!(
        said,
        ["You said: Hello", "(choice 2) You said: Hello", "(choice 3) You said: Hello"]
    );
    assert!(choices.iter().all(|choice| choice["finish_reason"] == "stop"), "{told}");
}

#[test]
fn an_error_before_the_first_chunk_is_json_with_its_status() {
    let world = World::simulated(|config| config);
    for (directive, code) in [
        ("refuse", Code::ProviderRefused),
        ("context-overflow", Code::ContextLengthExceeded),
        ("fail-before", Code::UpstreamUnavailable),
        ("fail-after", Code::OutcomeUnknown),
    ] {
        let key = request_key();
        let body = streamed(&sim(&format!("[[sim: {directive}]]\nHello")));
        let expected = error(code).echo(&key).bound();
        let expected =
            if code == Code::ContextLengthExceeded { expected.param("messages") } else { expected };
        let first = world.request(&key, &body).send(world.gateway.address());
        expected.clone().replayed(false).check(&first);
        let again = world.request(&key, &body).send(world.gateway.address());
        expected.replayed(code != Code::UpstreamUnavailable).check(&again);
    }
    let key = request_key();
    let other = world.request(&key, &streamed(&sim("Hello")).replace("sim-1", "nothing"));
    let expected = error(Code::ModelNotFound).echo(&key).replayed(false).param("model");
    expected.check(&other.send(world.gateway.address()));
}

#[test]
fn a_stream_that_breaks_tells_of_it_and_has_no_end() {
    let world = World::simulated(|config| config);
    let key = request_key();
    let body = streamed(&sim("[[sim: break]]\nHello there, whoever you are"));
    let (said, why) = check_broken(&world.stream(&key, &body));
    let text = content(&said);
    assert!(!text.is_empty() && "You said: Hello there, whoever you are".starts_with(text));
    assert_eq!(why["code"], "outcome_unknown");
    assert_eq!((&why["charged_micros"], &why["param"]), (&json!(0), &Value::Null));
    for again in [body, sim("[[sim: break]]\nHello there, whoever you are")] {
        let answer = world.request(&key, &again).send(world.gateway.address());
        let told = error(Code::OutcomeUnknown).echo(&key).replayed(true).bound().check(&answer);
        assert_eq!(told, why);
    }
    assert_eq!(world.site.balance(&world.account), (FUNDS, 0));
    world.site.verify();
}

#[test]
fn whoever_wants_a_stream_of_a_run_that_was_begun_for_json_gets_it_at_its_end() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let (key, gate) = (request_key(), Gate::new());
    upstream.next(Reply::saying("Good day").after(&gate));
    let first = Request::completion(&account.key, &key, acme("Say hello"));
    let first = first.begin(gateway.address());
    upstream.wait_for(1);
    let second = Request::completion(&account.key, &key, metered(&acme("Say hello")));
    let second = second.begin(gateway.address());
    wait_for_waiters(&gateway, 2);
    gate.open();
    let json = check_completion(&first.answer(), &key, false);
    let told = check_stream(&second.events().rest(), &key, true);
    assert_eq!((content(&told), &told["usage"]), (content(&json), &json["usage"]));
    assert_eq!(upstream.runs(), 1);
}

#[test]
fn a_stream_leaves_one_line_in_the_log_when_it_is_over() {
    let world = World::simulated(|config| config);
    let key = request_key();
    let told = world.stream(&key, &streamed(&sim("Hello")));
    let bytes: usize = told.events.iter().map(String::len).sum();
    let line = until("the stream is logged", || {
        let logs = world.site.logs();
        let line = logs.lines().find(|line| line.contains("/v1/chat/completions"));
        line.map(str::to_owned)
    });
    assert_eq!(told.end, End::Whole);
    for part in [format!("stream_bytes={bytes}"), "first_event_ms=".to_owned()] {
        assert!(line.contains(&part), "no {part} in {line}");
    }
    assert!(line.contains("completed") && !line.contains("hung_up"), "{line}");
    let begun = value(&metrics(&world.gateway), "holdfast_http_first_event_seconds_count", "");
    assert_eq!(begun.to_string(), "1");
}
