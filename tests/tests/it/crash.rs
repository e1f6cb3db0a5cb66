//! A power cut at any moment: nobody pays for nothing, nothing runs twice, and what was answered
//! stays answered.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use holdfast_tests::{Account, Config, Gate, Gateway, Reply, Request, Site, Upstream, request_key};
use holdfast_wire::error::Code;

use crate::bodies::acme;
use crate::check::{check_completion, error};

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
    crate::check::until("the hold is back", || {
        (site.balance(&account) == (FUNDS, 0)).then_some(())
    });
    gate.open();
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

/// What every key was answered, where it was.
type Told = Mutex<BTreeMap<String, Vec<u8>>>;

#[test]
fn killed_at_any_moment_the_book_balances_and_every_answer_stands() {
    const ROUNDS: u64 = 8;
    const CLIENTS: usize = 6;
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let told = Told::default();
    let mut keys = Vec::new();
    for round in 0..ROUNDS {
        let gateway = site.serve();
        let new: Vec<_> = (0..CLIENTS).map(|_| request_key()).collect();
        let moment = Duration::from_millis(moment_ms(round));
        std::thread::scope(|scope| {
            for key in &new {
                let (told, account, address) = (&told, &account, gateway.address());
                scope.spawn(move || {
                    let body = acme(&format!("Say {key}"));
                    let request = Request::completion(&account.key, key, body);
                    let Some(answer) = request.begin(address).try_answer() else { return };
                    check_completion(&answer, key, false);
                    told.lock().unwrap().insert(key.clone(), answer.body);
                });
            }
            // The fault itself, at a moment of its own: nothing is waited for.
            std::thread::sleep(moment);
            gateway.kill();
        });
        keys.extend(new);
    }
    let gateway = site.serve();
    check_after(&site, &account, &gateway, (&keys, &told.into_inner().unwrap()));
    for key in &keys {
        let runs = upstream.arrived().iter().filter(|run| run.body.contains(key.as_str())).count();
        assert!(runs <= 1, "{key} ran {runs} times");
    }
}

/// Every key ends: with the answer that it had, or with one that stays.
fn check_after(
    site: &Site,
    account: &Account,
    gateway: &Gateway,
    (keys, told): (&[String], &BTreeMap<String, Vec<u8>>),
) {
    let mut completed = 0;
    for key in keys {
        let body = acme(&format!("Say {key}"));
        let answer = gateway.complete(account, key, &body);
        match answer.status {
            200 => completed += 1,
            502 => {
                error(Code::OutcomeUnknown).echo(key).replayed(true).bound().check(&answer);
                assert!(!told.contains_key(key), "an answer was taken back");
            }
            other => panic!("{other}: {answer:?}"),
        }
        if let Some(told) = told.get(key) {
            check_completion(&answer, key, true);
            assert_eq!(&answer.body, told);
        }
        assert_eq!(gateway.complete(account, key, &body).body, answer.body);
    }
    assert_eq!(site.balance(account), (FUNDS - completed * CHARGE, 0));
    assert_eq!(site.verify()["operations"], i64::try_from(keys.len()).unwrap());
}

/// From 0 to 255 ms, the same in every run of the tests: a round's share of the golden ratio.
fn moment_ms(round: u64) -> u64 {
    round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
}
