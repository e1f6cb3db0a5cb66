//! The official SDKs and a model that takes longer than a caller waits: who gives up comes back for
//! what was paid, and who comes second waits for what the first gets.

use holdfast_tests::{Gate, Reply};
use serde_json::{Value, json};

use crate::check::until;
use crate::clients::{NODE, PYTHON, Sdk, World, world};

/// What a script prints whose impatient try ends while the upstream waits.
fn said(world: &World, sdk: &Sdk, script: &str) -> Value {
    let gate = Gate::new();
    world.upstream.next(Reply::saying("Good day").after(&gate));
    std::thread::scope(|scope| {
        let script = scope.spawn(|| world.run(sdk, script));
        until("somebody gave up", || world.site.logs().contains("hung_up").then_some(()));
        gate.open();
        script.join().unwrap()
    })
}

/// `error` is the SDK's own for a time-out.
fn check_giving_up(sdk: &Sdk, error: &str) {
    let world = world();
    let expected = json!({
        "gave_up": error, "content": "Good day", "replayed": ["true", "true"], "same": true,
    });
    assert_eq!(said(&world, sdk, "give_up"), expected);
    world.check_charges(1);
}

/// The gate opens only after one of them has waited in vain, so the others wait too.
fn check_waiting(sdk: &Sdk, error: &str) {
    let world = world();
    let expected = json!({"gave_up": error, "content": "Good day", "same": true});
    assert_eq!(said(&world, sdk, "together"), expected);
    world.check_charges(1);
    let log = world.site.logs();
    let posts = log.lines().filter(|line| line.contains("/v1/chat/completions"));
    assert_eq!(posts.count(), 3, "nobody tried again by itself");
}

#[test]
fn python_gives_up_and_later_gets_the_answer_under_the_same_key() {
    check_giving_up(&PYTHON, "APITimeoutError");
}

#[test]
fn node_gives_up_and_later_gets_the_answer_under_the_same_key() {
    check_giving_up(&NODE, "APIConnectionTimeoutError");
}

#[test]
fn python_clients_that_share_a_key_wait_for_one_run() {
    check_waiting(&PYTHON, "APITimeoutError");
}

#[test]
fn node_clients_that_share_a_key_wait_for_one_run() {
    check_waiting(&NODE, "APIConnectionTimeoutError");
}
