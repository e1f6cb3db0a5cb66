//! Streams of a provider that is told when to say what: who hears it, when, and what is left of it when
//! somebody goes away in the middle.

use std::thread::JoinHandle;

use holdfast_tests::events::{DONE, End, chunk};
use holdfast_tests::upstream::{MARKS, Streaming};
use holdfast_tests::{Config, Events, Gate, Request, StreamedAnswer, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::admin::wait_for_waiters;
use crate::bodies::acme;
use crate::check::{charge, check_completion, check_json, content, error, until};
use crate::streaming::{assembled, check_broken, check_head, check_stream};
use crate::world::World;

const CHARGE: i64 = 367;
const FUNDS: i64 = 10_000_000;
const PIECES: [&str; 3] = ["Good ", "day, ", "sir"];
const TEXT: &str = "Good day, sir";
/// The time-out that the tests' models have.
const TOTAL: &str = "total = \"60s\"";

fn under(change: impl FnOnce(Config) -> Config) -> World {
    World::replying(Streaming::saying(&PIECES).reply(), change)
}

/// The request, to be told as a stream.
fn streamed() -> String {
    acme("Say hello").replacen('{', r#"{"stream":true,"#, 1)
}

/// The same with a chunk that tells what it cost.
fn metered() -> String {
    let options = r#"{"stream":true,"stream_options":{"include_usage":true},"#;
    acme("Say hello").replacen('{', options, 1)
}

/// The pieces, each after its gate, and the end after the last one.
fn gated(gates: &[Gate; 4]) -> Streaming {
    let pieces = gates.iter().zip(PIECES);
    let said = pieces
        .fold(Streaming::new().opening(), |stream, (gate, piece)| stream.wait(gate).text(piece));
    said.wait(&gates[3]).finish("stop").usage().done()
}

fn gates() -> [Gate; 4] {
    std::array::from_fn(|_| Gate::new())
}

impl World {
    fn begin(&self, key: &str, body: &str) -> Events {
        let request = Request::completion(&self.account.key, key, body);
        request.begin(self.gateway.address()).events()
    }

    fn reading(&self, key: &str, body: &str) -> JoinHandle<StreamedAnswer> {
        let waiting = Request::completion(&self.account.key, key, body);
        let waiting = waiting.begin(self.gateway.address());
        std::thread::spawn(|| waiting.events().rest())
    }

    fn json(&self, key: &str) -> Value {
        let answer = self.gateway.complete(&self.account, key, &acme("Say hello"));
        check_completion(&answer, key, true)
    }

    fn look(&self, key: &str) -> Value {
        let path = format!("/v1/operations/{key}");
        check_json(&self.gateway.get(&self.account, &path), 200)
    }

    /// One run, paid once.
    #[track_caller]
    fn check_paid(&self, charge: i64) {
        assert_eq!(self.upstream.runs(), 1);
        assert_eq!(self.site.balance(&self.account), (FUNDS - charge, 0));
        drop(self.site.verify());
    }
}

#[test]
fn each_piece_is_told_when_it_is_said_and_in_these_bytes() {
    let world = under(|config| config);
    let (key, gates) = (request_key(), gates());
    world.upstream.next(gated(&gates).reply());
    let mut events = world.begin(&key, &metered());
    check_head(&events.head, &key, false);
    let first = chunk(&events.event());
    let (id, created) = (first["id"].as_str().unwrap(), first["created"].as_i64().unwrap());
    assert!(id.starts_with("chatcmpl_") && created > 1_700_000_000, "{first}");
    let framed = |rest: &str| {
        format!(
            "data: {{\"id\":\"{id}\",\"object\":\"chat.completion.chunk\",\"created\":{created},\
             \"model\":\"acme/large-1\",{rest}}}\n\n"
        )
    };
    let choice = |delta: &str, finish: &str| {
        framed(&format!(
            "\"choices\":[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}],\
             \"usage\":null"
        ))
    };
    for (gate, piece) in gates.iter().zip(PIECES) {
        gate.open();
        assert_eq!(events.event(), choice(&format!("{{\"content\":\"{piece}\"}}"), "null"));
    }
    assert_eq!(world.look(&key)["status"], "leased");
    gates[3].open();
    assert_eq!(events.event(), choice("{}", "\"stop\""));
    assert_eq!(world.look(&key)["status"], "completed");
    let usage = chunk(&events.event());
    assert_eq!(usage["usage"]["customer_charge_micros"], CHARGE);
    assert_eq!(events.event(), DONE);
    assert_eq!((events.next_event(), events.end()), (None, Some(End::Whole)));
    assert_eq!(charge(&world.json(&key)), CHARGE);
    let asked = world.upstream.arrived()[0].json();
    assert_eq!(asked["stream"], true);
    assert_eq!(asked["stream_options"], json!({"include_usage": true}));
    world.check_paid(CHARGE);
}

#[test]
fn nothing_of_the_provider_is_told() {
    let world = under(|config| config);
    let key = request_key();
    let told = world.begin(&key, &metered()).rest();
    assert_eq!(content(&check_stream(&told, &key, false)), TEXT);
    let text = format!("{:?}{}", told.head, told.events.concat());
    for mark in MARKS {
        assert!(!text.contains(mark), "{mark}");
    }
}

#[test]
fn fifty_readers_follow_one_run_from_its_first_chunk() {
    const READERS: usize = 50;
    let world = under(|config| config);
    let (key, gates) = (request_key(), gates());
    world.upstream.next(gated(&gates).reply());
    let mut first = world.begin(&key, &streamed());
    let mut told = vec![first.event()];
    gates[0].open();
    told.push(first.event());
    let readers: Vec<_> = (1..READERS).map(|_| world.reading(&key, &streamed())).collect();
    let json = Request::completion(&world.account.key, &key, acme("Say hello"));
    let json = json.begin(world.gateway.address());
    wait_for_waiters(&world.gateway, READERS + 1);
    gates[1..].iter().for_each(Gate::open);
    told.extend(std::iter::from_fn(|| first.next_event()));
    for reader in readers {
        let streamed = reader.join().unwrap();
        assert_eq!(content(&check_stream(&streamed, &key, true)), TEXT);
        assert_eq!(streamed.events, told);
    }
    assert_eq!(content(&check_completion(&json.answer(), &key, true)), TEXT);
    world.check_paid(CHARGE);
}

#[test]
fn whoever_hangs_up_anywhere_finds_all_of_it_later() {
    // The role, the pieces, the end, the word that it is over.
    for read in 0..=PIECES.len() + 2 {
        let world = under(|config| config);
        let (key, gates) = (request_key(), gates());
        world.upstream.next(gated(&gates).reply());
        let waiting = Request::completion(&world.account.key, &key, streamed());
        let waiting = waiting.begin(world.gateway.address());
        world.upstream.wait_for(1);
        let mut events = waiting.events();
        for at in 0..read {
            if (1..=gates.len()).contains(&at) {
                gates[at - 1].open();
            }
            drop(events.event());
        }
        events.hang_up();
        if read <= PIECES.len() {
            until("its reader is gone", || world.site.logs().contains("hung_up").then_some(()));
        }
        gates.iter().for_each(Gate::open);
        let json = until("it is completed", || {
            (world.look(&key)["status"] == "completed").then(|| world.json(&key))
        });
        assert_eq!(content(&json), TEXT);
        let again = check_stream(&world.begin(&key, &streamed()).rest(), &key, true);
        assert_eq!((content(&again), &again["id"]), (TEXT, &json["id"]));
        world.check_paid(CHARGE);
    }
}

#[test]
fn a_cancel_ends_the_stream_with_what_was_said() {
    let world = under(|config| config);
    let key = request_key();
    world.upstream.next(Streaming::new().opening().text("Good ").text("day").silence());
    let mut events = world.begin(&key, &metered());
    let mut chunks: Vec<_> = (0..3).map(|_| chunk(&events.event())).collect();
    let other = world.reading(&key, &metered());
    wait_for_waiters(&world.gateway, 2);
    let cancel = Request::post(&format!("/v1/operations/{key}/cancel"), "");
    drop(check_json(&world.gateway.send(&cancel.bearer(&world.account.key)), 202));
    world.upstream.wait_for_hang_ups(1);
    let rest = events.rest();
    assert_eq!(rest.end, End::Whole);
    chunks.extend(rest.chunks());
    let told = assembled(&chunks);
    assert_eq!(content(&told), "Good day");
    assert_eq!(told["choices"][0]["finish_reason"], "length");
    let paid = charge(&told);
    assert!(paid > 0, "{told}");
    let other = check_stream(&other.join().unwrap(), &key, true);
    assert_eq!((content(&other), &other["usage"]), ("Good day", &told["usage"]));
    let json = world.json(&key);
    assert_eq!((content(&json), &json["usage"]), ("Good day", &told["usage"]));
    world.check_paid(paid);
}

#[test]
fn a_stream_that_its_provider_breaks_is_broken_for_everybody_and_costs_nothing() {
    let said = || Streaming::new().opening().text("Good ").text("day");
    let error_chunk = json!({"error": {"message": "mark-of-message", "type": "server_error"}});
    for broken in [
        said().cut(),
        said().reset(),
        said().done().reply(),
        said().event(&error_chunk).reply(),
        said().raw("data: {\"mark-of-extra\n\n").finish("stop").done().reply(),
    ] {
        let world = under(|config| config);
        let (key, gate) = (request_key(), Gate::new());
        world.upstream.next(broken.after(&gate));
        let first = world.reading(&key, &streamed());
        world.upstream.wait_for(1);
        let second = world.reading(&key, &metered());
        wait_for_waiters(&world.gateway, 2);
        gate.open();
        for (reader, replayed) in [(first, false), (second, true)] {
            let told = reader.join().unwrap();
            check_head(&told.head, &key, replayed);
            let (said, why) = check_broken(&told);
            assert_eq!(content(&said), "Good day");
            assert_eq!(
                (&why["code"], &why["charged_micros"]),
                (&json!("outcome_unknown"), &json!(0))
            );
            assert!(!format!("{told:?}").contains("mark-of"), "{told:?}");
        }
        let again = world.gateway.complete(&world.account, &key, &streamed());
        error(Code::OutcomeUnknown).echo(&key).replayed(true).bound().check(&again);
        world.check_paid(0);
    }
}

#[test]
fn a_model_that_falls_silent_is_cut_with_what_it_said() {
    let world =
        under(|config| config.replace(TOTAL, &format!("{TOTAL}, between_tokens = \"400ms\"")));
    let key = request_key();
    world.upstream.next(Streaming::new().opening().text("Good ").silence());
    let told = world.begin(&key, &metered()).rest();
    let told = check_stream(&told, &key, false);
    assert_eq!((content(&told), &told["choices"][0]["finish_reason"]), ("Good ", &json!("length")));
    world.upstream.wait_for_hang_ups(1);
    assert_eq!(world.look(&key)["meters_source"], "estimated");
    world.check_paid(charge(&told));
}

#[test]
fn a_model_that_says_nothing_in_time_has_an_unknown_outcome() {
    let world = under(|config| config.replace(TOTAL, &format!("{TOTAL}, first_token = \"400ms\"")));
    let key = request_key();
    world.upstream.next(Streaming::new().silence());
    let told = world.gateway.complete(&world.account, &key, &streamed());
    error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&told);
    world.upstream.wait_for_hang_ups(1);
    world.check_paid(0);
}

#[test]
fn a_drain_lets_streams_end_and_breaks_off_those_that_do_not() {
    for ends in [true, false] {
        let drain = if ends { "\"20s\"" } else { "\"5s\"" };
        let world = under(|config| config.set("server", "drain", drain));
        let (key, gates) = (request_key(), gates());
        world.upstream.next(gated(&gates).reply());
        gates[0].open();
        let mut events = world.begin(&key, &streamed());
        let mut chunks = vec![chunk(&events.event()), chunk(&events.event())];
        world.gateway.terminate();
        until("it drains", || {
            let ready = Request::get("/readyz").try_send(world.gateway.address());
            ready.filter(|ready| ready.status == 503)
        });
        let other = world.gateway.complete(&world.account, &request_key(), &streamed());
        assert_eq!(other.json()["error"]["code"], "draining");
        if ends {
            gates.iter().for_each(Gate::open);
        }
        let rest = events.rest();
        assert!(world.gateway.wait().success());
        if ends {
            assert_eq!(rest.end, End::Whole);
            chunks.extend(rest.chunks());
            assert_eq!(content(&assembled(&chunks)), TEXT);
            assert_eq!(world.site.balance(&world.account), (FUNDS - CHARGE, 0));
        } else {
            let [why] = &rest.chunks()[..] else { panic!("{rest:?}") };
            assert_eq!(
                (rest.end, &why["error"]["code"]),
                (End::BrokenOff, &json!("outcome_unknown"))
            );
            assert_eq!(world.site.balance(&world.account), (FUNDS, 0));
        }
        let gateway = world.site.serve();
        let again = gateway.complete(&world.account, &key, &acme("Say hello"));
        assert_eq!(again.status, if ends { 200 } else { 502 });
        assert_eq!(world.upstream.runs(), 1);
        drop(world.site.verify());
        gates.iter().for_each(Gate::open);
    }
}

#[test]
fn killed_in_the_middle_of_a_stream_the_answer_is_unknown_and_free() {
    let world = under(|config| config);
    let (key, gates) = (request_key(), gates());
    world.upstream.next(gated(&gates).reply());
    gates[0].open();
    let mut events = world.begin(&key, &streamed());
    drop((events.event(), events.event()));
    world.gateway.kill();
    let rest = events.rest();
    assert_eq!((rest.events, rest.end), (Vec::new(), End::BrokenOff));
    let gateway = world.site.serve();
    for body in [streamed(), acme("Say hello")] {
        let told = gateway.complete(&world.account, &key, &body);
        error(Code::OutcomeUnknown).echo(&key).replayed(true).bound().check(&told);
    }
    assert_eq!(world.site.balance(&world.account), (FUNDS, 0));
    assert_eq!(world.site.verify()["operations"], 1);
    assert_eq!(world.upstream.runs(), 1);
    gates.iter().for_each(Gate::open);
}

#[test]
fn a_stream_that_is_silent_is_kept_alive() {
    let world = under(|config| config);
    let (key, gates) = (request_key(), gates());
    world.upstream.next(gated(&gates).reply());
    let mut events = world.begin(&key, &streamed());
    drop(events.event());
    assert!(events.is_kept_alive());
    gates.iter().for_each(Gate::open);
    let pieces = PIECES.map(|_| chunk(&events.event())["choices"][0]["delta"]["content"].clone());
    assert_eq!(pieces, PIECES.map(|piece| json!(piece)));
    assert_eq!(events.rest().end, End::Whole);
}

#[test]
fn a_stream_tells_where_the_limits_stand_as_it_begins() {
    let world = under(|config| config);
    let limited = world.site.key_with(&world.account.wallet, &["--rpm", "5"]);
    let key = request_key();
    let request = Request::completion(&limited.key, &key, streamed());
    let told = request.begin(world.gateway.address()).events().rest();
    assert_eq!(told.head.header("x-ratelimit-limit-requests"), Some("5"));
    assert_eq!(told.head.header("x-ratelimit-remaining-requests"), Some("4"));
    let again = request.begin(world.gateway.address()).events().rest();
    assert_eq!(again.head.header("x-ratelimit-limit-requests"), None, "it counts nothing");
}

#[test]
fn a_stream_in_small_pieces_that_nobody_reads_costs_little_more_than_its_text() {
    const STREAMS: usize = 4;
    const TOKENS: usize = 8_000;
    /// Of what the allocator keeps for itself. As chunks, each stream would be 2 MB.
    const GROWTH_MAX_KB: u64 = 4_096;
    let world = under(|config| config.set("limits", "write_time", "\"5m\""));
    let gate = Gate::new();
    let resident = || {
        let status = format!("/proc/{}/status", world.gateway.process());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let mut unread = Vec::new();
    let mut begin = || {
        let tokens = Streaming::new().opening();
        let tokens = (0..TOKENS).fold(tokens, |stream, _| stream.text("ok"));
        world.upstream.next(tokens.wait(&gate).finish("stop").usage().done().reply());
        let key = request_key();
        unread.push(world.begin(&key, &streamed()));
        // Somebody else hears all that is said so far.
        let mut events = world.begin(&key, &streamed());
        let mut heard = 0;
        while heard < 2 * TOKENS {
            let event = chunk(&events.event());
            heard += event["choices"][0]["delta"]["content"].as_str().unwrap_or_default().len();
        }
        events.hang_up();
    };
    begin();
    let before = resident();
    (1..STREAMS).for_each(|_| begin());
    let growth = resident().saturating_sub(before);
    assert!(growth <= GROWTH_MAX_KB, "{growth} kB");
    gate.open();
    for events in unread {
        assert_eq!(events.rest().end, End::Whole);
    }
}
