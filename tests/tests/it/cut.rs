//! Streams that official SDKs read over connections that break: whatever byte it is at, whoever asks
//! again with the key gets the whole answer of the one run, and it is paid once.

use holdfast_tests::{Gate, Proxy, Reply, Request, Streaming, request_key};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::admin::wait_for_waiters;
use crate::bodies::acme;
use crate::check::until;
use crate::clients::{NODE, PYTHON, Sdk, World, world};

/// The first one looks like the end of a stream, and is none.
const PIECES: [&str; 6] = ["data: [DONE] ", "day", ", ", "and ", "good ", "night"];
const SAID: &str = "data: [DONE] day, and good night";
const CHARGE: i64 = 367;
/// How often one answer is broken off.
const CUTS: usize = 8;
/// A cut so long before the end leaves the answer open-ended for every client.
const END: usize = 64;
/// The first chunk has been told by then, and not the last.
const AFTER_A_CHUNK: usize = 600;

/// Answers as it was asked, as a stream in pieces.
fn as_asked() -> Reply {
    Reply::as_wanted(Streaming::saying(&PIECES).reply(), Reply::saying(SAID))
}

/// A stream whose second half waits for the gate.
fn halves(gate: &Gate) -> Reply {
    let (one, two) = PIECES.split_at(3);
    let first = one.iter().fold(Streaming::new().opening(), |stream, piece| stream.text(piece));
    let said = two.iter().fold(first.wait(gate), |stream, piece| stream.text(piece));
    said.finish("stop").usage().done().reply()
}

/// How long the answer is as it is said, and as it is said again.
fn lengths(world: &World) -> [usize; 2] {
    let body = acme("Say hello");
    let options = r#"{"stream":true,"stream_options":{"include_usage":true},"#;
    let body = body.replacen('{', options, 1);
    let request = Request::completion(&world.account.key, &request_key(), body);
    let length = || request.begin(world.gateway.address()).rest().len();
    [length(), length()]
}

/// Bytes at which the first answer and those that repeat it are cut, anywhere.
fn anywhere([said, again]: [usize; 2]) -> [usize; CUTS] {
    std::array::from_fn(|at| {
        // As it is said it may come in fewer pieces to whoever is slow, down to those of its repetition.
        let length = if at == 0 { said.min(again) } else { again };
        let (random, _) = Uuid::new_v4().as_u64_pair();
        1 + usize::try_from(random >> 1).unwrap() % (length - END - 1)
    })
}

fn check_cut_anywhere(sdk: &Sdk) {
    let world = world();
    world.upstream.otherwise(as_asked());
    let proxy = Proxy::start(world.gateway.address());
    let lengths = lengths(&world);
    let cuts = anywhere(lengths);
    proxy.cut_next(&cuts);
    let told = world.run_through(&proxy, sdk, "stream", "");
    assert_eq!(told, json!([SAID, CHARGE]), "cut at {cuts:?} of {lengths:?}");
    assert_eq!(proxy.told().len(), CUTS + 1, "cut at {cuts:?} of {lengths:?}");
    world.check_charges(2);
}

/// The second try comes after the run has ended.
fn check_after(sdk: &Sdk, asks: &str) {
    let world = world();
    world.upstream.otherwise(as_asked());
    let proxy = Proxy::start(world.gateway.address());
    proxy.cut_next(&[AFTER_A_CHUNK]);
    let said = world.run_through(&proxy, sdk, "broken", asks);
    assert_eq!(said, json!({"broke": true, "told": [SAID, CHARGE, "true"]}), "{asks}");
    world.check_charges(1);
}

/// The second try comes while the model still speaks.
fn check_meanwhile(sdk: &Sdk, asks: &str) {
    let world = world();
    let gate = Gate::new();
    world.upstream.next(halves(&gate));
    let proxy = Proxy::start(world.gateway.address());
    proxy.cut_next(&[AFTER_A_CHUNK]);
    let said: Value = std::thread::scope(|scope| {
        let script = scope.spawn(|| world.run_through(&proxy, sdk, "broken", asks));
        wait_for_second(&world, &proxy, asks.ends_with("stream"));
        gate.open();
        script.join().unwrap()
    });
    assert_eq!(said, json!({"broke": true, "told": [SAID, CHARGE, "true"]}), "{asks}");
    world.check_charges(1);
}

fn wait_for_second(world: &World, proxy: &Proxy, is_streamed: bool) {
    if is_streamed {
        // It hears what the first has heard, and more, while the run goes on.
        proxy.wait_for(1, AFTER_A_CHUNK);
    } else {
        until("the first is gone", || world.site.logs().contains("hung_up").then_some(()));
        wait_for_waiters(&world.gateway, 1);
    }
}

/// A client that makes its keys out of its bodies, in a loop above the SDK: the first answer is cut in its
/// body, and the first stream in its middle. Equal bodies one after the other are two runs all the same.
fn check_keyed(sdk: &Sdk) {
    let world = world();
    world.upstream.otherwise(as_asked());
    let request = Request::completion(&world.account.key, &request_key(), acme("Say hello"));
    let length = request.begin(world.gateway.address()).rest().len();
    let proxy = Proxy::start(world.gateway.address());
    // The second connection has the first answer again, the second one, and then the stream.
    proxy.cut_next(&[length - END, 2 * length + AFTER_A_CHUNK]);
    let told = world.run_through(&proxy, sdk, "keyed", "");
    assert_eq!(told["said"], json!([SAID, SAID, SAID, SAID]));
    assert!(proxy.told().len() > 2, "both cuts were met: {:?}", proxy.told());
    world.check_charges(5);
}

#[test]
fn python_pays_once_for_a_body_that_keys_itself_in_a_loop_above_the_sdk() {
    check_keyed(&PYTHON);
}

#[test]
fn node_pays_once_for_a_body_that_keys_itself_in_a_loop_above_the_sdk() {
    check_keyed(&NODE);
}

#[test]
fn python_ends_with_the_whole_text_wherever_its_streams_are_cut() {
    check_cut_anywhere(&PYTHON);
}

#[test]
fn node_ends_with_the_whole_text_wherever_its_streams_are_cut() {
    check_cut_anywhere(&NODE);
}

#[test]
fn python_joins_the_run_that_its_broken_stream_has_left() {
    check_meanwhile(&PYTHON, "stream stream");
    check_meanwhile(&PYTHON, "stream json");
}

#[test]
fn node_joins_the_run_that_its_broken_stream_has_left() {
    check_meanwhile(&NODE, "stream stream");
    check_meanwhile(&NODE, "stream json");
}

#[test]
fn python_gets_an_answer_that_was_cut_in_the_other_form() {
    check_after(&PYTHON, "stream json");
    check_after(&PYTHON, "json stream");
}

#[test]
fn node_gets_an_answer_that_was_cut_in_the_other_form() {
    check_after(&NODE, "stream json");
    check_after(&NODE, "json stream");
}
