//! Heads that are no HTTP, heads of strange HTTP, and paths that try to be others.

use holdfast_tests::request_key;
use holdfast_wire::error::Code;

use crate::check::{ExpectedError, error};
use crate::hostile::{CANARY, Want, World};

/// What the HTTP library says by itself of what it cannot read.
const BAD: Want = Want::Bare(&[400]);
const LARGE: Want = Want::Bare(&[414, 431]);

fn row(expected: ExpectedError) -> Want {
    Want::Row(Box::new(expected))
}

/// Each is a good request in which one text is another.
fn check_table(table: &[(&str, &str, &str, Want)]) {
    let mut world = World::new(|config| config);
    for (name, from, to, want) in table {
        let key = request_key();
        let good = world.good(&key);
        assert!(good.contains(from), "{name}");
        let bytes = good.replace(from, to);
        world.check(name, &key, bytes.as_bytes(), want);
    }
    world.check_unharmed();
}

const LINE: &str = "POST /v1/chat/completions HTTP/1.1";
const HOST: &str = "Host: gateway\r\n";

#[test]
fn what_is_no_head_is_turned_away() {
    check_table(&[
        ("no version", LINE, "POST /v1/chat/completions", BAD),
        ("no method", LINE, " /v1/chat/completions HTTP/1.1", BAD),
        ("no target", LINE, "POST HTTP/1.1", BAD),
        ("only a word", LINE, CANARY, BAD),
        ("a later version", LINE, "POST /v1/chat/completions HTTP/3.1", BAD),
        ("a version between", LINE, "POST /v1/chat/completions HTTP/1.2", BAD),
        ("the version of another wire", LINE, "POST /v1/chat/completions HTTP/2.0", BAD),
        ("a version in small letters", LINE, "POST /v1/chat/completions http/1.1", BAD),
        ("another protocol", LINE, "POST /v1/chat/completions RTSP/1.0", BAD),
        ("two spaces", LINE, "POST  /v1/chat/completions HTTP/1.1", BAD),
        ("tabs", LINE, "POST\t/v1/chat/completions\tHTTP/1.1", BAD),
        ("four words", LINE, "POST /v1/chat /completions HTTP/1.1", BAD),
        ("a NUL in the method", LINE, "PO\0ST /v1/chat/completions HTTP/1.1", BAD),
        ("a NUL in the target", LINE, "POST /v1/chat\0/completions HTTP/1.1", BAD),
        ("a control in the target", LINE, "POST /v1/chat\u{1}/completions HTTP/1.1", BAD),
        ("TLS", LINE, "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}", BAD),
        ("the other wire's preface", LINE, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", BAD),
        ("a folded line", HOST, "Host: gateway\r\n folded\r\n", BAD),
        ("a line folded by a tab", HOST, "Host: gateway\r\n\tfolded\r\n", BAD),
        ("a fold before all", HOST, " Host: gateway\r\n", BAD),
        ("a space before the colon", HOST, "Host : gateway\r\n", BAD),
        ("a tab before the colon", HOST, "Host\t: gateway\r\n", BAD),
        ("no name", HOST, "Host: gateway\r\n: nothing\r\n", BAD),
        ("no colon", HOST, "Host: gateway\r\nnothing\r\n", BAD),
        ("a NUL in a value", HOST, "Host: gateway\r\nX: a\0b\r\n", BAD),
        ("a NUL in a name", HOST, "Host: gateway\r\nX\0: a\r\n", BAD),
        ("a control in a value", HOST, "Host: gateway\r\nX: a\u{1}b\r\n", BAD),
        ("a delete in a value", HOST, "Host: gateway\r\nX: a\u{7f}b\r\n", BAD),
        ("a bare return in a value", HOST, "Host: gateway\r\nX: a\rb\r\n", BAD),
        ("a comma in a name", HOST, "Host: gateway\r\nX,Y: a\r\n", BAD),
        ("brackets in a name", HOST, "Host: gateway\r\n[X]: a\r\n", BAD),
        ("letters that are none in a name", HOST, "Host: gateway\r\nÜ: a\r\n", BAD),
    ]);
}

#[test]
fn what_is_a_strange_head_is_read_as_the_standard_has_it() {
    check_table(&[
        ("empty lines before", LINE, "\r\n\r\nPOST /v1/chat/completions HTTP/1.1", Want::Served),
        ("bare line feeds", "\r\n", "\n", Want::Served),
        (
            "a whole target",
            LINE,
            "POST http://elsewhere/v1/chat/completions HTTP/1.1",
            Want::Served,
        ),
        ("a query", LINE, "POST /v1/chat/completions?model=x&a=%00 HTTP/1.1", Want::Served),
        ("small letters", "Idempotency-Key:", "idempotency-key:", Want::Served),
        ("spaces around a value", HOST, "Host: \t gateway \t \r\n", Want::Served),
        ("bytes beyond ASCII in a value", HOST, "Host: gateway\r\nX: ü\r\n", Want::Served),
        ("an empty value", HOST, "Host: gateway\r\nX:\r\n", Want::Served),
        ("a wish to speak otherwise", HOST, "Host: a\r\nUpgrade: h2c\r\n", Want::Served),
    ]);
}

#[test]
fn heads_have_a_size() {
    let world = World::new(|config| config);
    let key = request_key();
    let filler = |n: usize, value: &str| {
        let lines: String = (0..n).map(|at| format!("X-{at}: {value}\r\n")).collect();
        world.good(&key).replace(HOST, &format!("{HOST}{lines}"))
    };
    let path = |n: usize| world.good(&key).replace("/v1/chat", &format!("/{}", "x".repeat(n)));
    let cases = [
        ("a target of 40 kB", path(40_000), row(error(Code::HeadersTooLarge).echo(&key))),
        ("a target of 70 kB", path(70_000), LARGE),
        ("a target of 1 MB", path(1_000_000), LARGE),
        (
            "a header of 40 kB",
            filler(1, &"x".repeat(40_000)),
            row(error(Code::HeadersTooLarge).echo(&key)),
        ),
        ("a header of 1 MB", filler(1, &"x".repeat(1_000_000)), LARGE),
        ("a name of 1 MB", filler(1, "").replace("X-0", &"x".repeat(1_000_000)), LARGE),
        ("101 headers", filler(101, ""), LARGE),
        ("100,000 headers", filler(100_000, ""), LARGE),
        (
            "no end of a head",
            "GET /healthz HTTP/1.1\r\n".to_owned() + &"X: y\r\n".repeat(30_000),
            LARGE,
        ),
        ("no end of empty lines", "\r\n".repeat(200_000), Want::Bare(&[400, 414, 431])),
    ];
    let mut world = world;
    for (name, bytes, want) in &cases {
        world.check(name, &key, bytes.as_bytes(), want);
    }
    world.check_unharmed();
}

#[test]
fn a_request_says_for_whom_it_is_once() {
    let mut world = World::new(|config| config);
    let key = request_key();
    for host in [
        "",
        "Host: gateway\r\nHost: gateway\r\n",
        "Host: gateway\r\nhost: other\r\n",
        "Host: gateway, other\r\n",
        "Host: a b\r\n",
        "Host: http://gateway/\r\n",
        "Host: me@gateway\r\n",
    ] {
        let bytes = world.good(&key).replace(HOST, host);
        let want = row(error(Code::InvalidValue).param("Host").echo(&key));
        world.check(host, &key, bytes.as_bytes(), &want);
    }
    for path in ["/healthz", "/readyz", "/v1/wallet"] {
        let bytes = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n");
        let want = row(error(Code::InvalidValue).param("Host"));
        world.check(path, &key, bytes.as_bytes(), &want);
        let old = format!("GET {path} HTTP/1.0\r\n\r\n");
        let status = if path == "/v1/wallet" { 401 } else { 200 };
        world.check(path, &key, old.as_bytes(), &Want::Told(status));
    }
    world.check_unharmed();
}

/// Each is a good request in which the first of one text is another.
#[track_caller]
fn check_edited<const N: usize>(
    mut world: World,
    request_key: &str,
    cases: [(&str, &str, String, Want); N],
) {
    for (name, from, to, want) in cases {
        let good = world.good(request_key);
        assert!(good.contains(from), "{name}");
        let bytes = good.replacen(from, &to, 1);
        world.check(name, request_key, bytes.as_bytes(), &want);
    }
    world.check_unharmed();
}

#[test]
fn credentials_and_keys_stand_there_once() {
    let world = World::new(|config| config);
    let key = request_key();
    let other = request_key();
    let bearer = format!("Authorization: Bearer {}\r\n", world.account.key);
    let api_key = world.account.key.clone();
    let unknown = error(Code::InvalidApiKey).echo(&key);
    let malformed = || row(error(Code::IdempotencyKeyMalformed));
    let line = format!("Idempotency-Key: {key}\r\n");
    let capitals = key.to_uppercase();
    let with = |digit: usize, by: &str| {
        let mut text = key.clone();
        text.replace_range(digit..=digit, by);
        format!("Idempotency-Key: {text}\r\n")
    };
    let cases = [
        ("two credentials", &*bearer, format!("{bearer}{bearer}"), row(unknown.clone())),
        ("a list of credentials", "Bearer ", "Bearer a, Bearer ".to_owned(), row(unknown.clone())),
        ("a credential and more", &api_key, format!("{api_key} x"), row(unknown.clone())),
        ("bytes in a credential", "Bearer ", "Bearer ü".to_owned(), row(unknown)),
        ("two keys", &line, format!("{line}{line}"), malformed()),
        ("two other keys", &line, format!("{line}Idempotency-Key: {other}\r\n"), malformed()),
        ("a list of keys", &line, format!("Idempotency-Key: {key}, {other}\r\n"), malformed()),
        ("a key in capitals", &key, capitals, malformed()),
        ("a key in braces", &line, format!("Idempotency-Key: {{{key}}}\r\n"), malformed()),
        (
            "a key with its scheme",
            &line,
            format!("Idempotency-Key: urn:uuid:{key}\r\n"),
            malformed(),
        ),
        ("a key of version 1", &line, with(14, "1"), malformed()),
        ("a key of version 7", &line, with(14, "7"), malformed()),
        ("a key of another variant", &line, with(19, "c"), malformed()),
        ("a key without a variant", &line, with(19, "7"), malformed()),
        ("a key with a letter that is none", &line, with(35, "g"), malformed()),
        ("a key with an underscore", &line, with(8, "_"), malformed()),
        ("a key beyond ASCII", &line, "Idempotency-Key: ü\r\n".to_owned(), malformed()),
        (
            "a key of 30 kB",
            &line,
            format!("Idempotency-Key: {}\r\n", "7".repeat(30_000)),
            malformed(),
        ),
    ];
    check_edited(world, &key, cases);
}

#[test]
fn types_and_bounds_stand_there_once() {
    let world = World::new(|config| config);
    let key = request_key();
    let kind = || row(error(Code::UnsupportedMediaType).echo(&key));
    let typed = "Content-Type: application/json\r\n";
    let charge = "Holdfast-Max-Charge-Micros: 9999\r\n";
    // Judged after the key, as every refusal is that follows the JSON.
    let told = error(Code::InvalidValue).param("Holdfast-Max-Charge-Micros").echo(&key);
    let bound = || row(told.clone().replayed(false));
    let cases = [
        ("two types", typed, format!("{typed}{typed}"), kind()),
        ("another type", typed, "Content-Type: text/json\r\n".to_owned(), kind()),
        ("a form", typed, "Content-Type: multipart/form-data; boundary=x\r\n".to_owned(), kind()),
        ("gzip", typed, format!("{typed}Content-Encoding: gzip\r\n"), kind()),
        ("br over gzip", typed, format!("{typed}Content-Encoding: gzip, br\r\n"), kind()),
        (
            "gzip after nothing",
            typed,
            format!("{typed}Content-Encoding: identity\r\nContent-Encoding: gzip\r\n"),
            kind(),
        ),
        ("two bounds", typed, format!("{typed}{charge}{charge}"), bound()),
        (
            "a bound beyond numbers",
            typed,
            format!("{typed}Holdfast-Max-Charge-Micros: {}\r\n", "9".repeat(30)),
            bound(),
        ),
    ];
    check_edited(world, &key, cases);
}

#[test]
fn methods_and_paths_are_what_they_are() {
    let mut world = World::new(|config| config);
    let key = request_key();
    let bearer = format!("Authorization: Bearer {}\r\n", world.account.key);
    let nothing = || row(error(Code::NotFound));
    let method = |allowed| row(error(Code::MethodNotAllowed).allow(allowed));
    let long = "X".repeat(1_000);
    for (line, want) in [
        ("GET //v1/wallet", nothing()),
        ("GET /v1//wallet", nothing()),
        ("GET /v1/wallet/", nothing()),
        ("GET /V1/wallet", nothing()),
        ("GET /v1/./wallet", nothing()),
        ("GET /v1/models/../wallet", row(error(Code::ModelNotFound))),
        ("GET /../v1/wallet", nothing()),
        ("GET /%2e%2e/v1/wallet", nothing()),
        ("GET /v1/%77allet", nothing()),
        ("GET /v1%2fwallet", nothing()),
        ("GET /v1\\wallet", nothing()),
        ("GET /v1/wallet;x=1", nothing()),
        ("GET /v1/wallet%00", nothing()),
        ("GET /v1/operations/", nothing()),
        ("GET /v1/operations/a/b", nothing()),
        ("GET /v1/operations/..%2fwallet", row(error(Code::IdempotencyKeyMalformed))),
        ("GET /v1/models/acme%2flarge-1", Want::Told(200)),
        ("GET /v1/models/acme/large-1/x", row(error(Code::ModelNotFound))),
        ("GET /metrics", nothing()),
        ("GET *", nothing()),
        ("OPTIONS *", nothing()),
        ("CONNECT gateway:80", nothing()),
        ("GET /v1/wallet?x=%zz", Want::Told(200)),
        ("GET /v1/wallet?/../healthz", Want::Told(200)),
        ("get /v1/wallet", method("GET, HEAD")),
        ("POST /v1/wallet", method("GET, HEAD")),
        ("DELETE /healthz", method("GET, HEAD")),
        ("TRACE /readyz", method("GET, HEAD")),
        ("PUT /v1/chat/completions", method("POST")),
        ("GET /v1/chat/completions", method("POST")),
        ("post /v1/chat/completions", method("POST")),
        ("BREW /v1/chat/completions", method("POST")),
        (&*format!("{long} /v1/chat/completions"), method("POST")),
        ("M-SEARCH /v1/models", method("GET, HEAD")),
    ] {
        let bytes =
            format!("{line} HTTP/1.1\r\n{HOST}{bearer}X: {CANARY}\r\nConnection: close\r\n\r\n");
        world.check(line, &key, bytes.as_bytes(), &want);
    }
    world.check_unharmed();
}
