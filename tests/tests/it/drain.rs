//! Asked to end, the gateway takes nothing new, lets what runs finish, and says how it went.

use std::time::{Duration, Instant};

use holdfast_tests::{Config, Gate, Reply, Request, Site, Upstream, Waiting, request_key};
use holdfast_wire::error::Code;

use crate::bodies::acme;
use crate::check::{check_completion, check_json, error, until};

const FUNDS: i64 = 10_000_000;

#[test]
fn a_running_operation_finishes_while_nothing_new_is_taken() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let running = request.begin(gateway.address());
    upstream.wait_for(1);

    gateway.terminate();
    until("it drains", || {
        let ready = gateway.send(&Request::get("/readyz"));
        (ready.status == 503).then(|| assert_eq!(check_json(&ready, 503)["status"], "draining"))
    });
    assert_eq!(gateway.send(&Request::get("/healthz")).status, 200);
    let new = request_key();
    let told = gateway.complete(&account, &new, &acme("Say hello"));
    error(Code::Draining).echo(&new).replayed(false).check(&told);

    gate.open();
    check_completion(&running.answer(), &key, false);
    assert!(gateway.wait().success());
    assert_eq!(site.balance(&account), (FUNDS - 367, 0));
    site.verify();

    let gateway = site.serve();
    check_completion(&gateway.send(&request), &key, true);
    check_completion(&gateway.complete(&account, &new, &acme("Say hello")), &new, false);
}

#[test]
fn for_the_delay_everything_is_served_while_it_says_that_it_is_not_ready() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let config = Config::upstream(&upstream).set("server", "drain_delay", "\"4s\"");
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let get = b"GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n";
    let mut idle = Waiting::write(gateway.address(), get);
    assert!(!idle.is_silent_for(Duration::from_secs(20)), "it is served and kept");
    let began = Instant::now();
    gateway.terminate();
    until("it says so", || (gateway.send(&Request::get("/readyz")).status == 503).then_some(()));
    let mut served = 5;
    for _ in 0..served {
        let key = request_key();
        let told = gateway.complete(&account, &key, &acme("Say hello"));
        check_completion(&told, &key, false);
    }
    // A connection that would be kept ends with its answer, which says so.
    let told = Waiting::write(gateway.address(), get).answers();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].header("connection"), Some("close"), "{told:?}");
    drop(idle.rest());
    let closed = began.elapsed();
    assert!(closed >= Duration::from_secs(4), "idle connections close after it: {closed:?}");
    // Whoever was on the way then is heard, for two seconds.
    let key = request_key();
    let late = Request::completion(&account.key, &key, acme("Say hello"));
    let late = late.try_send(gateway.address()).filter(|late| late.status == 200);
    let is_heard = late.is_some_and(|late| check_completion(&late, &key, false).is_object());
    assert!(is_heard || began.elapsed() > Duration::from_secs(6), "it is not heard");
    served += i64::from(is_heard);
    assert!(gateway.wait().success());
    assert_eq!(site.balance(&account), (FUNDS - served * 367, 0));
    site.verify();
}

#[test]
fn what_does_not_finish_in_time_is_cut_and_its_end_is_known() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let config = Config::upstream(&upstream).set("server", "drain", "\"1s\"");
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let running = request.begin(gateway.address());
    upstream.wait_for(1);
    let began = Instant::now();
    gateway.terminate();
    let told = running.answer();
    error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&told);
    assert!(gateway.wait().success());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(site.balance(&account), (FUNDS, 0));
    site.verify();
    gate.open();

    let gateway = site.serve();
    let again = gateway.send(&request);
    error(Code::OutcomeUnknown).echo(&key).replayed(true).bound().check(&again);
    assert_eq!(again.body, told.body);
    assert_eq!(upstream.runs(), 1);
}

#[test]
fn asked_twice_it_ends_at_once() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let _running = request.begin(gateway.address());
    upstream.wait_for(1);
    gateway.terminate();
    until("it drains", || (gateway.send(&Request::get("/readyz")).status == 503).then_some(()));
    let began = Instant::now();
    gateway.terminate();
    assert_eq!(gateway.wait().code(), Some(1));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    gate.open();
    let gateway = site.serve();
    let told = gateway.send(&request);
    error(Code::OutcomeUnknown).echo(&key).replayed(true).bound().check(&told);
    assert_eq!(site.balance(&account), (FUNDS, 0));
}

#[test]
fn connections_that_idle_do_not_hold_up_the_end() {
    let (site, _account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let get = b"GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n";
    let mut idle = Waiting::write(gateway.address(), get);
    assert!(!idle.is_silent_for(Duration::from_secs(20)), "it is served and kept");
    let _half = Waiting::write(gateway.address(), &get[..20]);
    let began = Instant::now();
    gateway.stop();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn a_gateway_with_nothing_to_do_ends_at_once() {
    let (site, _account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let began = Instant::now();
    gateway.stop();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let gateway = site.serve();
    assert_eq!(gateway.send(&Request::get("/readyz")).status, 200, "the data is free again");
}
