//! Clients that take their time: with a head, with a body, with the next request, and with the answer.
//! What sleeps is the client, at its own pace. That the gateway acts at all is bounded by the patience of
//! the tests alone; that it does not act too early, by its limit.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use holdfast_tests::{Gate, PATIENCE, Reply, Request, Waiting, request_key};
use holdfast_wire::error::Code;
use socket2::{Domain, Socket, Type};

use crate::admin::wait_for_waiters;
use crate::bodies::acme;
use crate::check::{check_completion, content, error, until};
use crate::hostile::{CANARY, World};
use crate::streaming::check_stream;

/// What each of the limits is set to.
const LIMIT: Duration = Duration::from_secs(2);
/// Between two bytes of a client that drips.
const DRIP: Duration = Duration::from_millis(40);

/// Sends `at_once`, then byte by byte, over and over, for as long as anybody listens. What was told.
fn drip(world: &World, at_once: &str, bytes: &str) -> (Duration, Vec<u8>) {
    let began = Instant::now();
    let mut stream = TcpStream::connect(world.gateway.address()).unwrap();
    stream.set_read_timeout(Some(DRIP)).unwrap();
    stream.write_all(at_once.as_bytes()).unwrap();
    let mut told = Vec::new();
    let mut drops = bytes.bytes().cycle();
    let mut more = [0; 4_096];
    while began.elapsed() < PATIENCE {
        match stream.read(&mut more) {
            Ok(0) => return (began.elapsed(), told),
            Ok(read) => told.extend(&more[..read]),
            Err(late) if matches!(late.kind(), std::io::ErrorKind::WouldBlock) => {}
            Err(_reset) => return (began.elapsed(), told),
        }
        // Once it is answered, the other side may have gone.
        if let Some(drop) = drops.next() {
            std::mem::drop(stream.write_all(&[drop]));
        }
    }
    panic!("never cut");
}

#[test]
fn whoever_drips_is_cut() {
    let limit = format!("\"{}ms\"", LIMIT.as_millis());
    let world = World::new(|config| {
        config.set("limits", "header_time", &limit).set("limits", "idle_time", &limit).set(
            "limits",
            "body_time",
            &limit,
        )
    });
    let served = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
    let head = |framing: &str| format!("{}{framing}\r\n\r\n", world.head(&request_key()));
    let heads = [
        (String::new(), ""),
        (String::new(), "G"),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\n".to_owned(), ""),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\n".to_owned(), "X: y\r\n"),
        (served.to_owned(), ""),
        (served.to_owned(), "\r\n"),
    ];
    let bodies = [
        (head("Content-Length: 5000"), ""),
        (head("Content-Length: 5000"), " "),
        (head("Transfer-Encoding: chunked"), ""),
        (head("Transfer-Encoding: chunked"), "1\r\n \r\n"),
        (head("Transfer-Encoding: chunked\r\nExpect: 100-continue"), "0"),
    ];
    std::thread::scope(|scope| {
        let world = &world;
        let started = |(at_once, drops): (String, &'static str)| {
            scope.spawn(move || (drip(world, &at_once, drops), at_once))
        };
        let heads = heads.map(started);
        let bodies = bodies.map(started);
        for head in heads {
            let ((time, told), at_once) = head.join().unwrap();
            assert!(time >= LIMIT, "{at_once:?}: {time:?}");
            let told = String::from_utf8(told).unwrap();
            let answers = usize::from(at_once.ends_with("\r\n\r\n"));
            assert_eq!(told.matches("HTTP/1.1 200 OK").count(), answers, "{told}");
            assert_eq!(told.matches("HTTP/1.1 ").count(), answers, "{told}");
        }
        for body in bodies {
            let ((time, told), at_once) = body.join().unwrap();
            assert!(time >= LIMIT, "{at_once:?}: {time:?}");
            let told = String::from_utf8(told).unwrap();
            assert!(told.contains("HTTP/1.1 408 ") && told.contains("request_timeout"), "{told}");
        }
    });
    world.check_unharmed();
}

/// An answer that no buffer on its way takes whole.
fn large() -> String {
    "0123456789abcdef".repeat(12 << 20 >> 4)
}

/// Sends a request over a connection that takes little at once.
fn reader(world: &World, request: &Request) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(16_384).unwrap();
    socket.connect(&world.gateway.address().into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&request.bytes()).unwrap();
    stream
}

#[test]
fn whoever_does_not_take_its_answer_is_cut() {
    let limit = format!("\"{}ms\"", LIMIT.as_millis());
    let mut world = World::new(|config| {
        config.set("limits", "connections", "1").set("limits", "write_time", &limit)
    });
    let text = large();
    world.upstream.next(Reply::saying(&text));
    let key = request_key();
    let request = Request::completion(&world.account.key, &key, acme(CANARY));
    let mut stopped = reader(&world, &request);
    let mut first = [0; 15];
    stopped.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    let turned_away = world.gateway.send(&Request::get("/docs"));
    error(Code::Overloaded).check(&turned_away);
    until("the connection of the one that stopped is free", || {
        (world.gateway.send(&Request::get("/docs")).status == 200).then_some(())
    });
    let mut rest = Vec::new();
    let read = stopped.read_to_end(&mut rest);
    assert!(read.is_err() && rest.len() < text.len(), "{read:?} after {} bytes", rest.len());
    drop(stopped);
    // The answer is kept for the next request with its key.
    let again = until("there is room again", || {
        let again = world.gateway.send(&request);
        (again.status != 503).then_some(again)
    });
    assert_eq!(content(&check_completion(&again, &key, true)), text);
    world.ran(1);
    world.check_unharmed();
}

#[test]
fn whoever_does_not_take_its_stream_is_cut_and_nobody_else_notices() {
    let limit = format!("\"{}ms\"", LIMIT.as_millis());
    let mut world = World::new(|config| config.set("limits", "write_time", &limit));
    let (text, gate, key) = (large(), Gate::new(), request_key());
    world.upstream.next(Reply::saying(&text).after(&gate));
    let body = acme(CANARY).replacen('{', r#"{"stream":true,"#, 1);
    let request = Request::completion(&world.account.key, &key, body);
    let mut stopped = reader(&world, &request);
    world.upstream.wait_for(1);
    let other = request.begin(world.gateway.address());
    wait_for_waiters(&world.gateway, 2);
    gate.open();
    let told = check_stream(&other.events().rest(), &key, true);
    assert_eq!(content(&told), text);
    until("the one that stopped is logged", || world.site.logs().contains("hung_up").then_some(()));
    let mut rest = Vec::new();
    let read = stopped.read_to_end(&mut rest);
    assert!(read.is_err() && rest.len() < text.len(), "{read:?} after {} bytes", rest.len());
    let again = world.gateway.send(&Request::completion(&world.account.key, &key, acme(CANARY)));
    assert_eq!(content(&check_completion(&again, &key, true)), text);
    world.ran(1);
    world.check_unharmed();
}

#[test]
fn whoever_takes_its_answer_slowly_gets_it() {
    let limit = format!("\"{}ms\"", LIMIT.as_millis());
    let mut world = World::new(|config| config.set("limits", "write_time", &limit));
    let text = large();
    world.upstream.next(Reply::saying(&text));
    let key = request_key();
    let request = Request::completion(&world.account.key, &key, acme(CANARY));
    let mut slow = reader(&world, &request);
    let began = Instant::now();
    let mut told = Vec::new();
    let mut more = vec![0; 1 << 20];
    loop {
        let read = slow.read(&mut more).unwrap();
        if read == 0 {
            break;
        }
        told.extend_from_slice(&more[..read]);
        // Slow for as long as it matters, not to the last byte.
        if began.elapsed() < LIMIT * 3 {
            std::thread::sleep(LIMIT / 18);
        }
    }
    assert!(began.elapsed() > LIMIT * 3, "{:?}", began.elapsed());
    let body = told.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let body: serde_json::Value = serde_json::from_slice(&told[body..]).unwrap();
    assert_eq!(content(&body), text);
    world.ran(1);
    world.check_unharmed();
}

#[test]
fn whoever_sends_on_still_reads_its_refusal() {
    let world = World::new(|config| config);
    let key = request_key();
    let head = format!("{}Content-Length: 999999999\r\n\r\n", world.head(&key));
    for _ in 0..10 {
        let mut stream = TcpStream::connect(world.gateway.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        // What arrives after the refusal was sent would have the answer to it be a reset.
        for _ in 0..10 {
            stream.write_all(&[b' '; 10_000]).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        assert!(told.starts_with("HTTP/1.1 413 ") && told.contains("request_too_large"), "{told}");
    }
    drop(Waiting::write(world.gateway.address(), head.as_bytes()));
    world.check_unharmed();
}
