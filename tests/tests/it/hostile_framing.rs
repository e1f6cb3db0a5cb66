//! Where one request ends and the next begins: lengths and chunks that contradict themselves never hide
//! a second request, and a body that is not whole is no body.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use holdfast_tests::{PATIENCE, Request, request_key};
use holdfast_wire::error::Code;

use crate::bodies::acme;
use crate::check::{check_completion, error};
use crate::hostile::{CANARY, Want, World};

const BAD: Want = Want::Bare(&[400]);

fn chunked(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

#[test]
fn two_ways_to_end_a_body_hide_no_second_request() {
    let mut world = World::new(|config| config);
    let body = chunked(&acme(CANARY));
    let lengths = [body.len(), 0, 5, body.len() + 10_000];
    for length in lengths {
        let length = format!("Content-Length: {length}\r\n");
        let chunks = "Transfer-Encoding: chunked\r\n";
        for framing in [format!("{length}{chunks}"), format!("{chunks}{length}")] {
            let (key, hidden) = (request_key(), request_key());
            let open = world.head(&key).replace("Connection: close", "Connection: keep-alive");
            let hidden = world.good(&hidden);
            let bytes = format!("{open}{framing}\r\n{body}{hidden}");
            world.check(&framing, &key, bytes.as_bytes(), &Want::Served);
        }
    }
    world.check_unharmed();
}

#[test]
fn a_body_within_a_body_is_not_a_request() {
    let world = World::new(|config| config);
    let hidden = world.good(&request_key());
    let length = hidden.len();
    let bearer = format!("Authorization: Bearer {}", world.account.key);
    for line in ["GET /v1/wallet", "GET /healthz", "GET /v1/nothing", "DELETE /v1/wallet"] {
        let open =
            format!("{line} HTTP/1.1\r\nHost: a\r\n{bearer}\r\nContent-Length: {length}\r\n");
        let after = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let answers = world.answers(format!("{open}\r\n{hidden}{after}"));
        assert!((1..=2).contains(&answers.len()), "{line}: {answers:?}");
        let told = answers.iter().filter(|answer| answer.header("idempotency-key").is_some());
        assert_eq!(told.count(), 0, "{line}");
    }
    world.check_unharmed();
}

#[test]
fn a_length_is_one_number() {
    let mut world = World::new(|config| config);
    let key = request_key();
    let body = acme(CANARY);
    let n = body.len();
    for (lengths, want) in [
        (format!("Content-Length: {n}\r\nContent-Length: {}\r\n", n + 1), BAD),
        (format!("Content-Length: 0\r\nContent-Length: {n}\r\n"), BAD),
        (format!("Content-Length: {n}, {n}\r\n"), BAD),
        (format!("Content-Length: +{n}\r\n"), BAD),
        (format!("Content-Length: -{n}\r\n"), BAD),
        (format!("Content-Length: 0x{n:x}\r\n"), BAD),
        (format!("Content-Length: {n}.0\r\n"), BAD),
        (format!("Content-Length: {n} {n}\r\n"), BAD),
        ("Content-Length: \r\n".to_owned(), BAD),
        ("Content-Length: many\r\n".to_owned(), BAD),
        ("Content-Length: 99999999999999999999999999\r\n".to_owned(), BAD),
        (format!("Content-Length: {}\r\n", u64::MAX), Want::Bare(&[400, 431])),
        (
            format!("Content-Length: {}\r\n", u64::MAX / 2),
            Want::Row(Box::new(error(Code::RequestTooLarge).echo(&key))),
        ),
        (format!("Content-Length: {n}\r\nContent-Length: {n}\r\n"), Want::Served),
        // Without a length there is no body.
        (String::new(), Want::Row(Box::new(error(Code::InvalidJson).echo(&key).replayed(false)))),
    ] {
        let key = if matches!(want, Want::Served) { request_key() } else { key.clone() };
        let bytes = format!("{}{lengths}\r\n{body}", world.head(&key));
        world.check(&lengths, &key, bytes.as_bytes(), &want);
    }
    world.check_unharmed();
}

#[test]
fn codings_of_a_transfer_are_chunks_alone() {
    let mut world = World::new(|config| config);
    let key = request_key();
    let body = chunked(&acme(CANARY));
    let unread = || Want::Row(Box::new(error(Code::UnsupportedMediaType).echo(&key)));
    for (coding, want) in [
        ("identity", BAD),
        ("chunked, identity", BAD),
        ("xchunked", BAD),
        ("chunked;q=1", BAD),
        ("\"chunked\"", BAD),
        ("", BAD),
        ("gzip, chunked", unread()),
        ("identity, chunked", unread()),
        ("chunked, chunked", unread()),
        ("chunked\r\nTransfer-Encoding: chunked", unread()),
        ("gzip\r\nTransfer-Encoding: chunked", unread()),
        ("chunked\r\nTransfer-Encoding: identity", BAD),
        ("Chunked", Want::Served),
        ("\tchunked ", Want::Served),
    ] {
        let key = if matches!(want, Want::Served) { request_key() } else { key.clone() };
        let bytes = format!("{}Transfer-Encoding: {coding}\r\n\r\n{body}", world.head(&key));
        world.check(coding, &key, bytes.as_bytes(), &want);
    }
    let old = world.head(&key).replace("HTTP/1.1", "HTTP/1.0");
    let old = format!("{old}Transfer-Encoding: chunked\r\n\r\n{body}");
    world.check("chunks of the old version", &key, old.as_bytes(), &BAD);
    world.check_unharmed();
}

#[test]
fn chunks_are_whole_or_no_body() {
    let mut world = World::new(|config| config);
    let body = acme(CANARY);
    let n = body.len();
    let garbled = [
        format!("xyz\r\n{body}\r\n0\r\n\r\n"),
        format!("\r\n{body}\r\n0\r\n\r\n"),
        format!("-{n:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("0x{n:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("{n:x} {n:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("{n:x}\r{body}\r\n0\r\n\r\n"),
        format!("{n:x}\n{body}\r\n0\r\n\r\n"),
        format!("fffffffffffffffffffff\r\n{body}\r\n0\r\n\r\n"),
        format!("{n:x}\r\n{body}0\r\n\r\n"),
        format!("{:x}\r\n{body}\r\n0\r\n\r\n", n - 1),
        format!("{n:x};a\nb\r\n{body}\r\n0\r\n\r\n"),
        format!("{n:x};{}\r\n{body}\r\n0\r\n\r\n", "x".repeat(60_000)),
        format!("{n:x}\r\n{body}\r\n0\r\n{}\r\n", "X: y\r\n".repeat(20_000)),
        format!("{n:x}\r\n{body}\r\n0\r\nX: {}\r\n\r\n", "y".repeat(100_000)),
        format!("{n:x}\r\n{body}\r\n0\r\nno colon\r\n\r\n"),
        format!("{n:x}\r\n{body}\r\n0\r\nX : y\r\n\r\n"),
    ];
    for garbled in garbled {
        let key = request_key();
        let bytes = format!("{}Transfer-Encoding: chunked\r\n\r\n{garbled}", world.head(&key));
        let want = Want::Row(Box::new(error(Code::InvalidJson).echo(&key)));
        let name: String = garbled.chars().take(40).collect();
        world.check(&name, &key, bytes.as_bytes(), &want);
    }
    for good in [
        format!("{n:x};a=b;c=\"d\"\r\n{body}\r\n0;last\r\n\r\n"),
        format!("{n:X}\r\n{body}\r\n000\r\n\r\n"),
        format!("000000{n:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("{n:x}\r\n{body}\r\n0\r\nX-Trailer: y\r\nAuthorization: Bearer x\r\n\r\n"),
        body.chars().map(|it| format!("1\r\n{it}\r\n")).collect::<String>() + "0\r\n\r\n",
    ] {
        let key = request_key();
        let bytes = format!("{}Transfer-Encoding: chunked\r\n\r\n{good}", world.head(&key));
        world.check(&good, &key, bytes.as_bytes(), &Want::Served);
    }
    world.check_unharmed();
}

#[test]
fn a_body_that_ends_early_is_no_body() {
    let world = World::new(|config| config);
    for framing in ["Content-Length: 5000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n1000\r\n"] {
        for only_half in [true, false] {
            let key = request_key();
            let bytes = format!("{}{framing}{}", world.head(&key), acme(CANARY));
            let mut stream = TcpStream::connect(world.gateway.address()).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(bytes.as_bytes()).unwrap();
            stream.shutdown(if only_half { Shutdown::Write } else { Shutdown::Both }).unwrap();
            let mut told = Vec::new();
            // Who closed both halves may find the late answer's reset instead of an end.
            let end = stream.read_to_end(&mut told);
            assert!(end.is_ok() || !only_half, "{end:?}");
            let told = String::from_utf8(told).unwrap();
            assert!(told.is_empty() || told.starts_with("HTTP/1.1 408 "), "{told}");
            let look = Request::get(&format!("/v1/operations/{key}")).bearer(&world.account.key);
            error(Code::NotFound).check(&world.gateway.send(&look));
        }
    }
    world.check_unharmed();
}

#[test]
fn a_body_may_wait_to_be_asked_for() {
    let mut world = World::new(|config| config);
    let key = request_key();
    let body = acme(CANARY);
    let head = |length: usize| {
        format!("{}Expect: 100-continue\r\nContent-Length: {length}\r\n\r\n", world.head(&key))
    };
    // Refused by its head, it is not asked for.
    let late = world.answers(head(2_000_000_000));
    assert_eq!(late.len(), 1);
    error(Code::RequestTooLarge).echo(&key).check(&late[0]);
    let unknown = world.answers(head(body.len()).replace("Bearer ", "Bearer x"));
    assert_eq!(unknown.len(), 1);
    error(Code::InvalidApiKey).echo(&key).check(&unknown[0]);

    let mut stream = TcpStream::connect(world.gateway.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(head(body.len()).as_bytes()).unwrap();
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
    world.ran(1);
    world.check_unharmed();
}

#[test]
fn requests_one_after_another_are_answered_in_their_order() {
    let mut world = World::new(|config| config);
    let (one, two) = (request_key(), request_key());
    let open = |key: &str| world.good(key).replace("Connection: close", "Connection: keep-alive");
    let health = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
    let nothing = format!("GET /v1/nothing HTTP/1.1\r\nHost: a\r\nX: {CANARY}\r\n\r\n");
    let all = [&open(&one), health, &nothing, &open(&one), &world.good(&two), health].concat();
    let answers = world.answers(all);
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 200, 404, 200, 200], "the last one came after the end");
    assert_eq!(answers[0].body, answers[3].body);
    check_completion(&answers[4], &two, false);
    world.ran(2);
    let broken = world.answers(format!("{health}{}", "GET /healthz HTTP/9.9\r\n\r\n"));
    let statuses: Vec<_> = broken.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 400]);
    // Nothing that follows a refusal that ends the connection is read.
    let too_large = format!("{}Content-Length: 99999999\r\n\r\n", open_head(&world, &one));
    let answers = world.answers(format!("{too_large}{}", world.good(&request_key())));
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [413]);
    world.check_unharmed();
}

fn open_head(world: &World, request_key: &str) -> String {
    world.head(request_key).replace("Connection: close", "Connection: keep-alive")
}
