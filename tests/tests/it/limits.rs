//! Limits of size, time and number, and what is told beyond them.

use std::time::{Duration, Instant};

use holdfast_tests::{
    Account, Config, Gate, Gateway, Reply, Request, Site, Upstream, Waiting, request_key,
};
use holdfast_wire::error::Code;

use crate::bodies::{acme, sim};
use crate::check::{check_completion, error};

fn world(config: &Config) -> (Site, Account, Gateway) {
    let (site, account) = Site::funded(config);
    let gateway = site.serve();
    (site, account, gateway)
}

#[test]
fn a_body_that_does_not_arrive_in_time_is_not_waited_for() {
    let (site, account, gateway) = world(&Config::simulated().set("limits", "body_time", "\"1s\""));
    let key = request_key();
    let bytes = Request::completion(&account.key, &key, sim("Hello there")).bytes();
    let began = Instant::now();
    let told = Waiting::write(gateway.address(), &bytes[..bytes.len() - 1]).answer();
    error(Code::RequestTimeout).echo(&key).check(&told);
    assert!((1..20).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!(site.verify()["operations"], 0);
}

#[test]
fn a_head_that_does_not_arrive_in_time_is_not_waited_for() {
    let (_site, _account, gateway) =
        world(&Config::simulated().set("limits", "header_time", "\"1s\""));
    let began = Instant::now();
    let cut = Waiting::write(gateway.address(), b"POST /v1/chat/completions HTTP/1.1\r\nHos");
    // The HTTP library may say so by a bare status or by hanging up.
    let told = cut.try_answer();
    assert!(told.is_none_or(|answer| answer.status == 408));
    assert!((1..9).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[test]
fn a_body_over_the_limit_is_refused_whether_or_not_it_says_so() {
    let (site, account, gateway) = world(&Config::simulated().set("limits", "body_bytes", "1_024"));
    let key = request_key();
    let body = sim(&"x".repeat(1_024));
    let announced = Request::completion(&account.key, &key, body.as_str());
    error(Code::RequestTooLarge).echo(&key).check(&gateway.send(&announced));
    let chunked = chunked(&account, &key, &body);
    let told = Waiting::write(gateway.address(), &chunked).answer();
    error(Code::RequestTooLarge).echo(&key).check(&told);
    let fits = sim(&"x".repeat(900));
    check_completion(&gateway.complete(&account, &key, &fits), &key, false);
    assert_eq!(site.verify()["operations"], 1);
}

#[test]
fn a_body_of_unknown_length_is_read_to_its_end() {
    let (_site, account, gateway) = world(&Config::simulated());
    let key = request_key();
    let told = Waiting::write(gateway.address(), &chunked(&account, &key, &sim("Hello"))).answer();
    check_completion(&told, &key, false);
    check_completion(&gateway.complete(&account, &key, &sim("Hello")), &key, true);
}

#[test]
fn a_client_that_sends_far_too_much_still_reads_why_not() {
    let config = Config::simulated().set("limits", "body_bytes", "1_048_576");
    let (_site, account, gateway) = world(&config);
    let key = request_key();
    let body = sim(&"x".repeat(4_000_000));
    let told = gateway.complete(&account, &key, &body);
    let told = error(Code::RequestTooLarge).echo(&key).check(&told);
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("pictures") && message.contains("`body_bytes`"), "{message}");
}

fn chunked(account: &Account, request_key: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {}\r\n\
         Idempotency-Key: {request_key}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Transfer-Encoding: chunked\r\n\r\n",
        account.key
    );
    let chunks = body.as_bytes().chunks(100).map(|chunk| {
        let size = format!("{:x}\r\n", chunk.len());
        [size.as_bytes(), chunk, b"\r\n"].concat()
    });
    [head.into_bytes(), chunks.collect::<Vec<_>>().concat(), b"0\r\n\r\n".to_vec()].concat()
}

#[test]
fn a_head_over_the_limit_is_refused() {
    let (site, account, gateway) = world(&Config::simulated());
    let key = request_key();
    let fits = Request::completion(&account.key, &key, sim("Hello there"));
    let large = fits.clone().header("X-Filler", &"x".repeat(33_000));
    error(Code::HeadersTooLarge).echo(&key).check(&gateway.send(&large));
    assert_eq!(site.verify()["operations"], 0);
    let just = fits.header("X-Filler", &"x".repeat(32_000));
    check_completion(&gateway.send(&just), &key, false);
    // Far beyond it the HTTP library answers by a bare status.
    let huge = Request::get("/healthz").header("X-Filler", &"x".repeat(200_000));
    let told = huge.begin(gateway.address()).try_answer();
    assert!(told.is_none_or(|answer| answer.status == 431));
}

#[test]
fn connections_beyond_the_limit_are_told_so() {
    let (_site, account, gateway) = world(&Config::simulated().set("limits", "connections", "1"));
    let mut first =
        Waiting::write(gateway.address(), b"GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n");
    assert!(!first.is_silent_for(Duration::from_secs(20)), "it is served and kept");
    let key = request_key();
    let told = gateway.complete(&account, &key, &sim("Hello there"));
    error(Code::Overloaded).check(&told);
    first.hang_up();
    let answer = crate::check::until("there is room again", || {
        let answer = gateway.complete(&account, &key, &sim("Hello there"));
        (answer.status != 503).then_some(answer)
    });
    check_completion(&answer, &key, false);
}

struct Slow {
    upstream: Upstream,
    site: Site,
    account: Account,
    gateway: Gateway,
    gate: Gate,
}

/// A gateway with a limit whose upstream answers when the gate is opened.
fn slow(limit: &str, value: &str) -> Slow {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account, gateway) = world(&Config::upstream(&upstream).set("limits", limit, value));
    Slow { upstream, site, account, gateway, gate }
}

#[test]
fn an_api_key_has_so_many_requests_in_hand_and_no_more() {
    let slow = slow("operations_per_key", "1");
    let (first, second) = (request_key(), request_key());
    let running = Request::completion(&slow.account.key, &first, acme("Say hello"));
    let running = running.begin(slow.gateway.address());
    slow.upstream.wait_for(1);
    for key in [&first, &second] {
        let told = slow.gateway.complete(&slow.account, key, &acme("Say hello"));
        error(Code::TooManyOperations).echo(key).check(&told);
    }
    // Requests that run nothing take a place as well.
    for path in ["/v1/wallet", "/v1/models", "/v1/models/acme/large-1", "/v1/usage"] {
        let told = slow.gateway.get(&slow.account, path);
        assert_eq!(told.status, 429, "{path}: {told:?}");
        error(Code::TooManyOperations).check(&told);
    }
    let other = slow.site.another_key(&slow.account.wallet, "other");
    let others = Request::completion(&other.key, &second, acme("Say hello"));
    let others = others.begin(slow.gateway.address());
    slow.upstream.wait_for(2);
    slow.gate.open();
    check_completion(&running.answer(), &first, false);
    check_completion(&others.answer(), &second, false);
    let told = slow.gateway.complete(&slow.account, &second, &acme("Say hello"));
    check_completion(&told, &second, false);
}

#[test]
fn an_operation_has_so_many_waiters_and_no_more() {
    let slow = slow("waiters_per_operation", "1");
    let key = request_key();
    let request = Request::completion(&slow.account.key, &key, acme("Say hello"));
    let running = request.begin(slow.gateway.address());
    slow.upstream.wait_for(1);
    let told = slow.gateway.send(&request);
    error(Code::TooManyOperations).echo(&key).replayed(false).check(&told);
    slow.gate.open();
    check_completion(&running.answer(), &key, false);
    check_completion(&slow.gateway.send(&request), &key, true);
    assert_eq!(slow.upstream.runs(), 1);
}
