//! Connections: who has one, how long, and what is known of who is at its other end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use holdfast_tests::config::{ACME, SIM};
use holdfast_tests::{
    Account, Answer, Config, Gateway, PATIENCE, Reply, Request, Site, Upstream, request_key,
};
use holdfast_wire::error::Code;

use crate::bodies::{acme, sim};
use crate::check::{check_completion, error, until};

fn world(config: &Config) -> (Site, Account, Gateway) {
    let (site, account) = Site::funded(config);
    let gateway = site.serve();
    (site, account, gateway)
}

fn connect(gateway: &Gateway) -> TcpStream {
    let stream = TcpStream::connect(gateway.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Reads until this text has come.
#[track_caller]
fn read_until(stream: &mut TcpStream, text: &str) {
    let (mut told, mut byte) = (Vec::new(), [0]);
    while !told.ends_with(text.as_bytes()) {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&told));
        told.push(byte[0]);
    }
}

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn probes_are_heard_where_no_connection_is_left() {
    let (_site, _account, gateway) = world(&Config::simulated().set("limits", "connections", "2"));
    let mut idle = [connect(&gateway), connect(&gateway)];
    for stream in &mut idle {
        stream.write_all(HEALTH).unwrap();
        read_until(stream, "ok\"}");
    }
    error(Code::Overloaded).check(&gateway.send(&Request::get("/docs")));
    for path in ["/healthz", "/readyz"] {
        assert_eq!(gateway.send(&Request::get(path)).status, 200, "{path}");
        assert_eq!(Request::get(path).send(gateway.admin_address()).status, 200, "{path}");
    }
}

#[test]
fn one_address_has_no_more_than_its_share_unless_it_is_a_proxy() {
    for (trusted, is_refused) in [("[]", true), ("[\"127.0.0.0/8\"]", false)] {
        let config = Config::simulated().set("limits", "connections_per_address", "1").set(
            "server",
            "trusted_proxies",
            trusted,
        );
        let (_site, _account, gateway) = world(&config);
        let mut idle = connect(&gateway);
        idle.write_all(HEALTH).unwrap();
        read_until(&mut idle, "ok\"}");
        let told = gateway.send(&Request::get("/docs"));
        assert_eq!(told.status == 503, is_refused, "{told:?}");
    }
}

#[test]
fn an_idle_connection_stays_longer_than_a_head_may_take() {
    let config = Config::simulated().set("limits", "header_time", "\"2s\"");
    let (_site, _account, gateway) = world(&config);
    let mut stream = connect(&gateway);
    for _ in 0..2 {
        stream.write_all(HEALTH).unwrap();
        read_until(&mut stream, "ok\"}");
        // What sleeps is the client: it is idle for longer than a head may take.
        std::thread::sleep(Duration::from_secs(3));
    }
    let began = Instant::now();
    stream.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "half a head is cut");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn bodies_that_are_not_whole_are_bounded_for_all_keys_together() {
    let config = Config::simulated().set("limits", "body_bytes_in_memory", "1_048_576");
    let (site, account, gateway) = world(&config);
    let other = site.account("other", "USD", "10.00");
    let head = |account: &Account| {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\n\
             Idempotency-Key: {}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n",
            account.key,
            request_key()
        )
    };
    // Together they are too long; which of them is read first is the gateway's affair.
    let mut unread = [&account, &other].map(|account| {
        let mut stream = connect(&gateway);
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        // What is refused need not be read to its end.
        drop(stream.write_all(&[head(account).into_bytes(), vec![b' '; 800_000]].concat()));
        stream
    });
    let refused = until("one is turned away", || {
        unread.iter().position(|stream| stream.peek(&mut [0]).is_ok())
    });
    unread[refused].set_read_timeout(Some(PATIENCE)).unwrap();
    read_until(&mut unread[refused], "HTTP/1.1 503 Service Unavailable\r\n");
    read_until(&mut unread[refused], "\"code\":\"overloaded\"");
    assert!(unread[1 - refused].peek(&mut [0]).is_err(), "the other one has room");
    let key = request_key();
    let small = gateway.complete(&other, &key, &sim("Hello there"));
    check_completion(&small, &key, false);
    drop(unread);
}

#[test]
fn refused_keys_are_counted_and_a_new_key_works() {
    let (site, account, gateway) = world(&Config::simulated().set("log", "level", "\"info\""));
    let began = Instant::now();
    let wallet = Request::get("/v1/wallet");
    assert_eq!(gateway.get(&account, "/v1/wallet").status, 200);
    let forged = |n: usize| {
        // Another id each time, spelled like one that was issued.
        let mut key = account.key.clone().into_bytes();
        for (place, digit) in (8..).zip(format!("{n:06x}").bytes()) {
            key[place] = digit;
        }
        String::from_utf8(key).unwrap()
    };
    let mut statuses = std::collections::BTreeSet::new();
    for n in 0..200 {
        let answer: Answer = gateway.send(&wallet.clone().bearer(&forged(n)));
        statuses.insert(answer.status);
    }
    assert!(statuses.contains(&401), "{statuses:?}");
    assert!(statuses.iter().all(|status| [401, 503].contains(status)), "{statuses:?}");
    assert_eq!(gateway.get(&account, "/v1/wallet").status, 200, "it was let in before");
    let fresh = site.another_key(&account.wallet, "fresh");
    until("a new key works", || (gateway.get(&fresh, "/v1/wallet").status == 200).then_some(()));
    let lines = site.logs().lines().filter(|line| line.contains("invalid_api_key")).count();
    // Of 20 lines in ten seconds: the first window's and the last one's may be parts.
    let lines_max = 20 * (usize::try_from(began.elapsed().as_secs()).unwrap() / 10 + 2);
    assert!((1..=lines_max.min(199)).contains(&lines), "{lines} lines");
    let refused = gateway.send(&wallet.bearer("nonsense"));
    error(Code::InvalidApiKey).check(&refused);
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
}

#[test]
fn a_line_names_its_client_its_model_and_what_is_wrong() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let config = Config::upstream(&upstream).set("server", "trusted_proxies", "[\"127.0.0.1\"]");
    let (site, account, gateway) = world(&config);
    let send = |body: String| {
        let request = Request::completion(&account.key, &request_key(), body);
        gateway.send(&request.header("X-Forwarded-For", "198.51.100.1, 192.0.2.7"))
    };
    error(Code::ModelNotFound)
        .param("model")
        .check_case("no model", &without_echo(send(sim("Hello"))));
    let bad = acme("Hello").replacen('{', r#"{"temperature":7,"#, 1);
    assert_eq!(send(bad).status, 400);
    let line = |text: &str| {
        let logs = site.logs();
        let line = logs.lines().find(|line| line.contains(text)).map(str::to_owned);
        line.unwrap_or_else(|| panic!("no {text} in {logs}"))
    };
    let missing = line("model_not_found");
    assert!(missing.contains(SIM) && missing.contains("client.address=192.0.2.7"), "{missing}");
    let wrong = line("invalid_value");
    assert!(wrong.contains("temperature"), "{wrong}");
    assert!(!ACME.is_empty());
}

/// Without the headers of a completion.
fn without_echo(mut answer: Answer) -> Answer {
    answer.headers.retain(|(name, _)| !name.starts_with("idempoten"));
    answer
}

#[test]
fn what_is_got_can_be_asked_for_without_its_body() {
    let (_site, account, gateway) = world(&Config::simulated());
    for path in ["/v1/models", "/v1/wallet", "/docs", "/openapi.json"] {
        let request = Request::get(path).bearer(&account.key);
        let whole = gateway.send(&request);
        let mut head = request.method("HEAD").begin(gateway.address());
        let told = head.rest();
        assert!(told.starts_with("HTTP/1.1 200 OK") && told.ends_with("\r\n\r\n"), "{told}");
        let length = format!("content-length: {}\r\n", whole.body.len());
        assert!(told.contains(&length), "{told}");
    }
}
