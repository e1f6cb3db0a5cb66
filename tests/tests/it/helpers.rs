//! The helpers for Python and Node, under the official SDKs: whatever loops above them, and whenever their
//! process dies, a call runs once and is paid once.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use holdfast_tests::upstream::Judge;
use holdfast_tests::{Gate, Proxy, Ran, Reply, Site, upstream::error as upstream_error};
use serde_json::{Value, json};

use crate::clients::{NODE, PYTHON, Sdk, World, world};

const SAID: &str = "Good day";

/// Keys that both languages have to make.
fn vectors() -> (String, usize) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients/operation-keys.json");
    let cases: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    (file.display().to_string(), cases.as_array().unwrap().len())
}

/// A model that takes longer than its caller waits, and refuses what it is asked to.
fn slow() -> Reply {
    Reply::Judged(Judge::new(|arrived| {
        let late = Reply::Late(Duration::from_millis(1_700), Box::new(Reply::saying(SAID)));
        let text = &arrived.json()["messages"][0]["content"];
        match text.as_str().unwrap_or_default() {
            "refuse this" => Reply::json(400, &upstream_error("invalid_value")),
            "twins" => Reply::saying(SAID),
            _ => late,
        }
    }))
}

fn check_impatience(sdk: &Sdk) {
    let world = world();
    world.upstream.otherwise(slow());
    let proxy = Proxy::start(world.gateway.address());
    let told = world.run_through(&proxy, sdk, "impatient", "");
    assert_eq!(
        told["said"],
        json!([[SAID, true], [SAID, true], [SAID, true]]),
        "after more than one try"
    );
    assert_eq!(told["refused"], json!([[422, "false"], [422, "true"], [422, "true"]]));
    assert_eq!(told["twins"], 2);
    // Three that were asked for again and again, one refusal, two twins.
    assert_eq!(world.upstream.runs(), 6);
    assert_eq!(world.site.verify()["operations"], 6);
}

fn command(world: &World, sdk: &Sdk) -> std::process::Command {
    let mut command = world.command(sdk, "operation", |script| script);
    command.env("HOLDFAST_ASKS", vectors().0);
    command
}

/// The process is killed while its second call runs, and begun again.
fn check_operation(sdk: &Sdk) {
    let world = world();
    let gate = Gate::new();
    world.upstream.next(Reply::saying(SAID));
    world.upstream.next(Reply::saying(SAID).after(&gate));
    let mut killed = command(&world, sdk).stdout(Stdio::null()).spawn().unwrap();
    world.upstream.wait_for(2);
    killed.kill().unwrap();
    killed.wait().unwrap();
    gate.open();
    let told = Ran::of(&mut command(&world, sdk)).json();
    assert_eq!(told["keys"], vectors().1);
    assert_eq!(
        (&told["ids"], &told["steps"]),
        (&json!(4), &json!(2)),
        "equal calls are two, each once, and another attempt is another call"
    );
    assert_eq!(told["reused"], "idempotency_key_conflict");
    assert_eq!(told["refused"], json!(["operation_step_missing"]));
    // Four calls, two steps, and the one of the two unnamed that went first.
    assert_eq!(world.upstream.runs(), 7);
    let again = Ran::of(&mut command(&world, sdk)).json();
    assert_eq!(again["ids"], 4);
    assert_eq!(world.upstream.runs(), 7, "and once more it pays nothing");
    assert_eq!(world.site.verify()["operations"], 7);
}

/// The helper by itself: how long a failure is told again, and which streams are broken.
fn check_rules(sdk: &Sdk, ends: &Value) {
    let site = Site::empty();
    let told = Ran::of(&mut sdk.on(&site, &sdk.text("helper"))).json();
    assert_eq!(told["failures"], json!([0, 0, 0, 1, 1, 1, 2, 2]), "for a minute from the first");
    assert_eq!(told["streams"], json!({"ends": ends, "key again": true}));
    let code = "operation_step_missing";
    let steps = json!({"broken": ends[0][2], "told": [200, 400, 200], "code": code, "keys": true});
    assert_eq!(told["steps"], steps);
    // Two that differ are the gateway's to refuse.
    assert_eq!(told["forwarded"], json!([["a", null], ["b", "a"]]));
}

/// Every block of a README of a helper, as it stands.
fn check_readme(sdk: &Sdk, readme: &str, language: &str) {
    let world = world();
    let fence = format!("```{language}\n");
    let blocks: Vec<_> =
        readme.split(&fence).skip(1).map(|below| below.split_once("```").unwrap().0).collect();
    assert!(blocks.len() >= 2, "{readme}");
    for block in blocks {
        let mut command = sdk.on(&world.site, &block.replace("holdfast/sim-1", "acme/large-1"));
        command.env("HOLDFAST_URL", world.gateway.base_url());
        let said = Ran::of(command.env("HOLDFAST_KEY", &world.account.key)).ok();
        assert!(said.contains(SAID), "{block}: {said}");
    }
}

#[test]
fn python_helper_pays_once_below_a_loop_that_does_not_wait() {
    check_impatience(&PYTHON);
}

#[test]
fn node_helper_pays_once_below_a_loop_that_does_not_wait() {
    check_impatience(&NODE);
}

#[test]
fn python_helper_keeps_its_rules() {
    let ends = json!([200, "RemoteProtocolError", "ReadError", 200]);
    check_rules(&PYTHON, &json!([ends, ends]));
}

#[test]
fn node_helper_keeps_its_rules() {
    check_rules(&NODE, &json!([[200, "TypeError", "TypeError", 200]]));
}

#[test]
fn python_operation_that_was_killed_pays_once_when_it_begins_again() {
    check_operation(&PYTHON);
}

#[test]
fn node_operation_that_was_killed_pays_once_when_it_begins_again() {
    check_operation(&NODE);
}

#[test]
fn python_helper_does_what_its_readme_shows() {
    check_readme(&PYTHON, include_str!("../../../clients/python/README.md"), "python");
}

#[test]
fn node_helper_does_what_its_readme_shows() {
    check_readme(&NODE, include_str!("../../../clients/node/README.md"), "js");
}

#[test]
fn a_shell_that_keeps_its_key_pays_once() {
    let world = world();
    let script = include_str!("../../../clients/examples/ask.sh");
    let script = script.replace("holdfast/sim-1", "acme/large-1");
    let run = || {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-ec", &script]).current_dir(world.site.folder());
        shell.env("HOLDFAST_URL", world.gateway.base_url()).env("NO_PROXY", "127.0.0.1");
        Ran::of(shell.env("HOLDFAST_KEY", &world.account.key)).json()
    };
    let first = run();
    assert_eq!(first["choices"][0]["message"]["content"], SAID);
    assert_eq!(run(), first);
    world.check_charges(1);
}
