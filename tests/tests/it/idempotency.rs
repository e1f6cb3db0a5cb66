//! One key is one operation: it runs once, is charged once, and answers the same for ever.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdfast_tests::{Answer, Config, Gate, Reply, Site, Upstream, request_key};
use holdfast_wire::error::Code;

use crate::admin::wait_for_waiters;
use crate::bodies::acme;
use crate::check::{charge, check_completion, content, error};
use crate::world::World;

const CHARGE: i64 = 367;
const FUNDS: i64 = 10_000_000;

impl World {
    /// A request that reaches the upstream and waits there for the gate.
    fn start(&self, request_key: &str, body: &str, gate: &Gate) -> JoinHandle<Answer> {
        self.upstream.next(Reply::saying("Good day").after(gate));
        let runs = self.upstream.runs();
        let waiting = self.request(request_key, body).begin(self.gateway.address());
        self.upstream.wait_for(runs + 1);
        std::thread::spawn(|| waiting.answer())
    }

    /// One operation was run and charged, and the book balances.
    #[track_caller]
    fn check_one_charge(&self) {
        assert_eq!(self.upstream.runs(), 1);
        assert_eq!(self.site.balance(&self.account), (FUNDS - CHARGE, 0));
        let verified = self.site.verify();
        assert_eq!(verified["operations"], 1);
        let ledger = self.site.json(&["wallet", "ledger", &self.account.wallet]);
        let kinds: Vec<_> =
            ledger["entries"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
        assert_eq!(kinds, ["deposit", "hold", "settle", "rest"]);
    }
}

#[test]
fn a_key_that_is_bound_to_another_request_is_a_conflict_that_tells_nothing() {
    let world = World::new();
    let key = request_key();
    check_completion(&world.complete(&key, &acme("Say hello")), &key, false);
    let conflict = error(Code::IdempotencyKeyConflict).echo(&key).replayed(false);
    for other in [
        acme("Say something else"),
        acme("Say hello").replace("user", "system"),
        r#"{"model":"acme/large-1","messages":[{"role":"user","content":"Say hello"}],"seed":1}"#
            .to_owned(),
        r#"{"model":"acme/unknown","messages":[{"role":"user","content":"Say hello"}]}"#.to_owned(),
    ] {
        conflict.check(&world.complete(&key, &other));
    }
    check_completion(&world.complete(&key, &acme("Say hello")), &key, true);
    world.check_one_charge();
}

#[test]
fn another_request_conflicts_while_the_first_still_runs() {
    let world = World::new();
    let (key, gate) = (request_key(), Gate::new());
    let first = world.start(&key, &acme("Say hello"), &gate);
    let other = world.complete(&key, &acme("Say something else"));
    error(Code::IdempotencyKeyConflict).echo(&key).replayed(false).check(&other);
    gate.open();
    check_completion(&first.join().unwrap(), &key, false);
    world.check_one_charge();
}

#[test]
fn the_same_key_of_another_api_key_is_another_operation() {
    let world = World::new();
    let other = world.site.another_key(&world.account.wallet, "other");
    let key = request_key();
    let mine = check_completion(&world.complete(&key, &acme("Say hello")), &key, false);
    let theirs = world.gateway.complete(&other, &key, &acme("Say something else"));
    let theirs = check_completion(&theirs, &key, false);
    assert_ne!(mine["id"], theirs["id"]);
    assert_eq!(world.upstream.runs(), 2);
    assert_eq!(world.site.balance(&world.account), (FUNDS - 2 * CHARGE, 0));
}

#[test]
fn another_spelling_of_a_body_is_the_same_request() {
    let world = World::new();
    let key = request_key();
    let body = r#"{"model":"acme/large-1","messages":[{"role":"user","content":"Say hello"}],"temperature":1,"max_tokens":64}"#;
    let first = world.complete(&key, body);
    check_completion(&first, &key, false);
    for same in [
        " {\n\t\"model\" : \"acme/large-1\",\r\n\"messages\":[{\"role\":\"user\",\"content\":\"Say hello\"}],\"temperature\":1,\"max_tokens\":64 } ",
        r#"{"max_tokens":64,"temperature":1,"messages":[{"content":"Say hello","role":"user"}],"model":"acme/large-1"}"#,
        r#"{"model":"acme\/large-1","messages":[{"role":"us\u0065r","content":"\u0053ay hello"}],"temperature":1,"max_tokens":64}"#,
        r#"{"model":"acme/large-1","messages":[{"role":"user","content":"Say hello"}],"temperature":1.0,"max_tokens":64.0}"#,
        r#"{"model":"acme/large-1","messages":[{"role":"user","content":"Say hello"}],"temperature":10e-1,"max_completion_tokens":64}"#,
        r#"{"model":"acme/large-1","messages":[{"role":"user","content":[{"type":"text","text":"Say hello"}],"name":null}],"temperature":1,"max_tokens":64,"stream":false,"n":1,"seed":null}"#,
    ] {
        let again = world.complete(&key, same);
        check_completion(&again, &key, true);
        assert_eq!(again.body, first.body);
    }
    world.check_one_charge();
}

#[test]
fn a_retry_while_the_model_runs_waits_for_the_same_answer() {
    let world = World::new();
    let (key, gate) = (request_key(), Gate::new());
    let first = world.start(&key, &acme("Say hello"), &gate);
    let retry = world.request(&key, &acme("Say hello")).begin(world.gateway.address());
    wait_for_waiters(&world.gateway, 2);
    gate.open();
    let (first, retry) = (first.join().unwrap(), retry.answer());
    check_completion(&first, &key, false);
    check_completion(&retry, &key, true);
    assert_eq!(first.body, retry.body);
    world.check_one_charge();
}

#[test]
fn a_hundred_clients_with_one_key_cause_one_run_and_one_charge() {
    const CLIENTS: usize = 100;
    let world = World::new();
    let (key, gate) = (request_key(), Gate::new());
    world.upstream.next(Reply::saying("Good day").after(&gate));
    let request = world.request(&key, &acme("Say hello"));
    let waiting: Vec<_> = (0..CLIENTS).map(|_| request.begin(world.gateway.address())).collect();
    world.upstream.wait_for(1);
    wait_for_waiters(&world.gateway, CLIENTS);
    gate.open();
    let answers: Vec<_> = waiting.into_iter().map(holdfast_tests::Waiting::answer).collect();
    let replayed = |answer: &&Answer| answer.header("idempotent-replayed") == Some("true");
    assert_eq!(answers.iter().filter(replayed).count(), CLIENTS - 1);
    for answer in &answers {
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body, answers[0].body);
    }
    world.check_one_charge();
}

#[test]
fn a_hundred_keys_at_once_are_a_hundred_runs_and_charges() {
    const CLIENTS: i64 = 100;
    let world = World::new();
    let keys: Vec<_> = (0..CLIENTS).map(|_| request_key()).collect();
    let begin = |key: &String| {
        world.request(key, &acme(&format!("Say {key}"))).begin(world.gateway.address())
    };
    let waiting: Vec<_> = keys.iter().map(begin).collect();
    for (key, waiting) in keys.iter().zip(waiting) {
        check_completion(&waiting.answer(), key, false);
    }
    assert_eq!(world.upstream.runs(), 100);
    assert_eq!(world.site.balance(&world.account), (FUNDS - CLIENTS * CHARGE, 0));
    assert_eq!(world.site.verify()["operations"], CLIENTS);
}

/// Sends a retry that announces a timeout of 5 seconds while the model runs.
fn check_patience(header: &str) {
    let world = World::new();
    let (key, gate) = (request_key(), Gate::new());
    let first = world.start(&key, &acme("Say hello"), &gate);
    let retry = world.request(&key, &acme("Say hello")).header(header, "5");
    let began = Instant::now();
    let told = world.gateway.send(&retry);
    let waited = began.elapsed();
    error(Code::OperationInProgress).echo(&key).replayed(true).bound().check(&told);
    assert!(waited >= Duration::from_secs(3), "{waited:?}");
    // Two seconds before the client gives up; a busy machine may add some.
    assert!(waited < Duration::from_secs(15), "{waited:?}");
    gate.open();
    let first = first.join().unwrap();
    check_completion(&first, &key, false);
    let again = world.gateway.send(&retry);
    check_completion(&again, &key, true);
    assert_eq!(again.body, first.body);
    world.check_one_charge();
}

#[test]
fn a_waiting_client_is_told_shortly_before_its_announced_timeout() {
    check_patience("x-stainless-read-timeout");
}

#[test]
fn the_other_announcement_of_a_timeout_counts_too() {
    check_patience("x-stainless-timeout");
}

#[test]
fn a_client_that_hangs_up_changes_nothing() {
    let world = World::new();
    let (key, gate) = (request_key(), Gate::new());
    world.upstream.next(Reply::saying("Good day").after(&gate));
    let request = world.request(&key, &acme("Say hello"));
    let gone = request.begin(world.gateway.address());
    world.upstream.wait_for(1);
    gone.hang_up();
    gate.open();
    let answer = world.gateway.send(&request);
    assert_eq!(content(&check_completion(&answer, &key, true)), "Good day");
    world.check_one_charge();
}

#[test]
fn a_client_that_hangs_up_before_the_end_of_its_request_binds_nothing() {
    let world = World::new();
    let key = request_key();
    let request = world.request(&key, &acme("Say hello"));
    let bytes = request.bytes();
    let half = holdfast_tests::Waiting::write(world.gateway.address(), &bytes[..bytes.len() - 5]);
    half.hang_up();
    check_completion(&world.gateway.send(&request), &key, false);
    world.check_one_charge();
}

#[test]
fn a_replay_costs_nothing_even_where_nothing_is_left() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, _rich) = Site::funded(&Config::upstream(&upstream));
    // Enough for one hold of the whole bound and not for two.
    let poor = site.account("poor", "USD", "0.0055");
    let gateway = site.serve();
    let key = request_key();
    let first = gateway.complete(&poor, &key, &acme("Say hello"));
    let paid = charge(&check_completion(&first, &key, false));
    let other = gateway.complete(&poor, &request_key(), &acme("Say hello"));
    assert_eq!(other.status, 402, "{other:?}");
    let again = gateway.complete(&poor, &key, &acme("Say hello"));
    check_completion(&again, &key, true);
    assert_eq!(again.body, first.body);
    assert_eq!(site.balance(&poor), (5_500 - paid, 0));
}

#[test]
fn restarts_and_new_prices_do_not_change_a_bound_key() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let config = Config::upstream(&upstream);
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let key = request_key();
    let first = gateway.complete(&account, &key, &acme("Say hello"));
    gateway.stop();

    let dearer = config
        .replace("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z")
        .replace("output = 10_000_000", "output = 90_000_000")
        .replace("max_output_tokens = 500", "max_output_tokens = 20")
        .replace("contract = 1", "contract = 2");
    site.configure(&dearer);
    let gateway = site.serve();
    let again = gateway.complete(&account, &key, &acme("Say hello"));
    check_completion(&again, &key, true);
    assert_eq!(again.body, first.body);
    let other = gateway.complete(&account, &key, &acme("Say something else"));
    error(Code::IdempotencyKeyConflict).echo(&key).replayed(false).check(&other);
    gateway.stop();

    site.configure(&Config::simulated());
    let gateway = site.serve();
    let again = gateway.complete(&account, &key, &acme("Say hello"));
    check_completion(&again, &key, true);
    assert_eq!(again.body, first.body, "also when the model is gone");
    assert_eq!(upstream.runs(), 1);
}
