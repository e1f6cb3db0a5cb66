//! The helpers over connections that break at any byte, and past the death of the gateway: each call has its whole
//! answer or one clear error, it runs once at most, and what is answered is what is paid.

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_tests::{Proxy, Ran};
use serde_json::{Value, json};

use crate::clients::{NODE, PYTHON, Sdk, World, obeying_world};
use crate::sidecar::{SAID, as_asked};

/// Calls of one run of the suite, and of `cargo xtask clients`.
const FEW: usize = 40;
const FEW_MAX: Duration = Duration::from_secs(80);
const MANY: usize = 500;
const MANY_MAX: Duration = Duration::from_secs(300);
/// Price of the upstream's usual completion, and what the wallet is filled with.
const CHARGE: i64 = 367;
const FUNDS: i64 = 10_000_000;
/// Somewhat more bytes than a streamed answer has.
const ANSWER: u64 = 2_400;

/// Bytes after which connections break.
fn cuts(mut seed: u64, n: usize) -> Vec<usize> {
    let next = |_: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((seed >> 33) % ANSWER).unwrap()
    };
    (0..n).map(next).collect()
}

/// Every connection is cut as long as there are calls, about; the gateway is killed among them.
fn check_cuts(sdk: &Sdk, n_calls: usize, most: Duration) {
    let (seed, _) = uuid::Uuid::new_v4().as_u64_pair();
    let mut world = obeying_world(most);
    world.upstream.otherwise(as_asked());
    let proxy = Proxy::start(world.gateway.address());
    proxy.cut_next(&cuts(seed, n_calls));
    let mut command = world.command(sdk, "cuts", |script| script);
    command.env("HOLDFAST_URL", format!("http://{}/v1", proxy.address()));
    command.env("HOLDFAST_ASKS", n_calls.to_string());
    let told = std::thread::scope(|scope| {
        let script = scope.spawn(|| Ran::within(&mut command, most).json());
        world.upstream.wait_for(n_calls / 2);
        world.gateway.kill_in_place();
        world.gateway = world.site.serve();
        proxy.turn_to(world.gateway.address());
        script.join().unwrap()
    });
    let told = told.as_array().unwrap();
    assert_eq!(told.len(), n_calls);
    let is_whole = |said: &&Value| **said == json!(SAID);
    let (whole, failed): (Vec<_>, Vec<_>) = told.iter().partition(is_whole);
    let clear = json!({"error": "outcome_unknown"});
    assert!(failed.iter().all(|said| **said == clear), "seed {seed}: {failed:?}");
    assert!(failed.len() <= 1, "seed {seed}: one call is under way at a time: {failed:?}");
    check_books(&world, n_calls, i64::try_from(whole.len()).unwrap(), seed);
}

fn check_books(world: &World, n_calls: usize, answered: i64, seed: u64) {
    let arrived = world.upstream.arrived();
    let prompts: BTreeSet<_> = arrived.iter().map(|it| it.json()["messages"].to_string()).collect();
    assert_eq!(prompts.len(), arrived.len(), "seed {seed}: a call ran twice");
    assert!(prompts.len() <= n_calls);
    assert_eq!(world.site.balance(&world.account), (FUNDS - answered * CHARGE, 0), "seed {seed}");
    world.site.verify();
}

#[test]
fn python_helper_has_one_answer_and_one_charge_wherever_it_is_cut() {
    check_cuts(&PYTHON, FEW, FEW_MAX);
}

#[test]
fn node_helper_has_one_answer_and_one_charge_wherever_it_is_cut() {
    check_cuts(&NODE, FEW, FEW_MAX);
}

#[test]
#[ignore = "takes minutes: cargo xtask clients"]
fn clients_python_helper_has_one_answer_over_many_cuts() {
    check_cuts(&PYTHON, MANY, MANY_MAX);
}

#[test]
#[ignore = "takes minutes: cargo xtask clients"]
fn clients_node_helper_has_one_answer_over_many_cuts() {
    check_cuts(&NODE, MANY, MANY_MAX);
}
