//! A power cut at any moment: nobody pays for nothing, nothing runs twice, and what was answered
//! stays answered.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use holdfast_tests::{Account, Config, Gate, Gateway, Reply, Request, Site, Upstream, request_key};
use holdfast_wire::error::Code;

use crate::bodies::acme;
use crate::check::{check_completion, error, until};

const CHARGE: i64 = 367;
const FUNDS: i64 = 10_000_000;

#[test]
fn killed_while_the_model_runs_is_an_unknown_outcome_that_nobody_pays() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let key = request_key();
    let gateway = site.serve();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let waiting = request.begin(gateway.address());
    upstream.wait_for(1);
    let (available, held) = site.balance(&account);
    assert!(held > CHARGE && available == FUNDS - held, "held while it runs: {available}, {held}");
    gateway.kill();
    assert_eq!(waiting.try_answer(), None);
    gate.open();

    let gateway = site.serve();
    let unknown = error(Code::OutcomeUnknown).echo(&key).replayed(true).bound();
    let told = gateway.send(&request);
    unknown.check(&told);
    assert_eq!(gateway.send(&request).body, told.body);
    assert_eq!(site.balance(&account), (FUNDS, 0));
    site.verify();
    gateway.stop();
    let gateway = site.serve();
    assert_eq!(gateway.send(&request).body, told.body);
    assert_eq!(upstream.runs(), 1, "never a second time");
    let new = request_key();
    check_completion(&gateway.complete(&account, &new, &acme("Say hello")), &new, false);
}

#[test]
fn a_look_brings_what_was_left_to_rest() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    // So slow a reconciler that only the look can have done it.
    let config = Config::upstream(&upstream).set("operations", "heartbeat", "\"300s\"").set(
        "operations",
        "lease",
        "\"900s\"",
    );
    let (site, account) = Site::funded(&config);
    let key = request_key();
    let gateway = site.serve();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let _waiting = request.begin(gateway.address());
    upstream.wait_for(1);
    gateway.kill();
    gate.open();
    let gateway = site.serve();
    let operation = gateway.get(&account, &format!("/v1/operations/{key}")).json();
    assert_eq!(operation["situation"], "completed");
    assert_eq!(operation["status"], "abandoned");
    assert_eq!(operation["charge_micros"], 0);
    assert_eq!(site.balance(&account), (FUNDS, 0));
}

#[test]
fn the_wallet_gets_a_dead_hold_back_without_anybody_asking() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let request = Request::completion(&account.key, &request_key(), acme("Say hello"));
    let _waiting = request.begin(gateway.address());
    upstream.wait_for(1);
    gateway.kill();
    let _gateway = site.serve();
    until("the hold is back", || (site.balance(&account) == (FUNDS, 0)).then_some(()));
    gate.open();
    // The dead process has told nothing of it.
    let line = until("it is logged whose it was", || {
        site.logs().lines().find(|line| line.contains("reconciled")).map(str::to_owned)
    });
    for field in ["operation.id=", "node.name=embedded", "age_ms="] {
        assert!(line.contains(field), "{line}");
    }
}

#[test]
fn killed_after_the_answer_replays_it_byte_for_byte() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let key = request_key();
    let gateway = site.serve();
    let first = gateway.complete(&account, &key, &acme("Say hello"));
    check_completion(&first, &key, false);
    gateway.kill();

    let gateway = site.serve();
    let again = gateway.complete(&account, &key, &acme("Say hello"));
    check_completion(&again, &key, true);
    assert_eq!(again.body, first.body);
    assert_eq!(upstream.runs(), 1);
    assert_eq!(site.balance(&account), (FUNDS - CHARGE, 0));
    site.verify();
}

/// What every key that was sent got for an answer; nothing where the power cut came first.
type Answers = BTreeMap<String, Option<Vec<u8>>>;

#[test]
fn killed_at_any_moment_the_book_balances_and_every_answer_stands() {
    const ROUNDS: u64 = 8;
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let told = Mutex::new(Answers::new());
    for round in 0..ROUNDS {
        let gateway = site.serve();
        let address = gateway.address();
        std::thread::scope(|scope| {
            for _client in 0..6 {
                scope.spawn(|| ask_until_cut(&account, address, &told));
            }
            // So many answers, and then at any moment of those that are being made.
            let enough = answered(&told) + 1 + usize::try_from(round * 3).unwrap();
            until("enough was answered", || (answered(&told) >= enough).then_some(()));
            gateway.kill();
        });
    }
    let told = told.into_inner().unwrap();
    assert!(told.values().any(Option::is_none), "something was cut");
    let gateway = site.serve();
    check_after(&site, &account, &gateway, &told);
    let arrived = upstream.arrived();
    for key in told.keys() {
        let runs = arrived.iter().filter(|run| run.body.contains(key.as_str())).count();
        assert!(runs <= 1, "{key} ran {runs} times");
    }
}

fn answered(told: &Mutex<Answers>) -> usize {
    told.lock().unwrap().values().filter(|answer| answer.is_some()).count()
}

/// One request after the other, each with a key of its own, until the gateway is gone.
fn ask_until_cut(account: &Account, address: SocketAddr, told: &Mutex<Answers>) {
    const REQUESTS_MAX: usize = 30;
    for _request in 0..REQUESTS_MAX {
        let key = request_key();
        told.lock().unwrap().insert(key.clone(), None);
        let request = Request::completion(&account.key, &key, acme(&format!("Say {key}")));
        let Some(answer) = request.try_send(address) else { return };
        check_completion(&answer, &key, false);
        told.lock().unwrap().insert(key, Some(answer.body));
    }
}

/// Every key ends: with the answer that it had, or with one that stays.
fn check_after(site: &Site, account: &Account, gateway: &Gateway, told: &Answers) {
    let mut completed = 0;
    for (key, told) in told {
        let body = acme(&format!("Say {key}"));
        let answer = gateway.complete(account, key, &body);
        match answer.status {
            200 => completed += 1,
            502 => {
                error(Code::OutcomeUnknown).echo(key).replayed(true).bound().check(&answer);
            }
            other => panic!("{other}: {answer:?}"),
        }
        if let Some(told) = told {
            check_completion(&answer, key, true);
            assert_eq!(&answer.body, told);
        }
        assert_eq!(gateway.complete(account, key, &body).body, answer.body);
    }
    assert_eq!(site.balance(account), (FUNDS - completed * CHARGE, 0));
    assert_eq!(site.verify()["operations"], i64::try_from(told.len()).unwrap());
}
