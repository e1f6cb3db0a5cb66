//! Pages in browsers: refused unless their origin is listed, and then told all that other clients are.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use holdfast_tests::{Answer, Config, Ran, Reply, Request, Site, Upstream, Waiting, request_key};
use holdfast_wire::error::Code;
use holdfast_wire::openapi;

use crate::bodies::sim;
use crate::check::{error, until};

const PAGE: &str = "https://app.example.com";
const ASKED: &str = "authorization,content-type,idempotency-key,x-stainless-lang";

fn allowing(origins: &str) -> Config {
    Config::simulated().set("server", "cors_origins", origins)
}

fn listed() -> Config {
    allowing(&format!("[\"{PAGE}\"]"))
}

fn preflight(path: &str, origin: &str) -> Request {
    let request = Request::get(path).method("OPTIONS").header("Origin", origin);
    request
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", ASKED)
}

/// The one answer, whether it has a length or not.
fn ask(to: SocketAddr, request: &Request) -> Answer {
    let mut answers = request.begin(to).answers();
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers.remove(0)
}

/// What a browser looks for before it shows an answer to a page.
#[track_caller]
fn check_shown(answer: &Answer) {
    assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE), "{answer:?}");
    assert_eq!(answer.header("vary"), Some("Origin"));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    let described = &openapi::document()["components"]["headers"];
    let is_of_cors = |name: &&str| name.starts_with("access-control") || *name == "vary";
    for name in answer.header_names().into_iter().filter(is_of_cors) {
        assert!(described.get(name).is_some(), "{name} is not described");
    }
    let exposed = answer.header("access-control-expose-headers").unwrap();
    for name in ["x-should-retry", "retry-after-ms", "idempotent-replayed", "x-request-id"] {
        assert!(exposed.split(", ").any(|it| it == name), "{exposed}");
    }
}

#[test]
fn nothing_is_said_of_origins_unless_some_are_listed() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let asked = gateway.send(&preflight("/v1/chat/completions", PAGE));
    error(Code::MethodNotAllowed).allow("POST").check(&asked);
    let answer =
        gateway.send(&Request::get("/v1/models").bearer(&account.key).header("Origin", PAGE));
    assert!(answer.header_names().iter().all(|name| !name.starts_with("access-control")));
    assert_eq!(answer.header("vary"), None);
}

#[test]
fn a_preflight_before_the_end_of_the_process_ends_its_connection() {
    let (site, _account) = Site::funded(&listed().set("server", "drain_delay", "\"30s\""));
    let gateway = site.serve();
    gateway.terminate();
    let ends = || (gateway.send(&Request::get("/readyz")).status == 503).then_some(());
    until("it says that it ends", ends);
    let kept = format!(
        "OPTIONS /v1/models HTTP/1.1\r\nHost: gateway\r\nOrigin: {PAGE}\r\n\
         Access-Control-Request-Method: GET\r\n\r\n"
    );
    let told = Waiting::write(gateway.address(), kept.as_bytes()).answers();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].status, told[0].header("connection")), (204, Some("close")));
    // Asked twice, it ends at once.
    gateway.terminate();
    assert_eq!(gateway.wait().code(), Some(1));
}

#[test]
fn a_preflight_is_answered_before_anything_else_and_counts_for_nothing() {
    let (site, _account) = Site::funded(&listed());
    let gateway = site.serve();
    for path in ["/v1/chat/completions", "/v1/operations/x/cancel", "/nothing"] {
        let answer = ask(gateway.address(), &preflight(path, PAGE));
        assert_eq!((answer.status, answer.body.len()), (204, 0));
        check_shown(&answer);
        assert_eq!(answer.header("access-control-allow-headers"), Some(ASKED));
        assert_eq!(answer.header("access-control-allow-methods"), Some("GET, HEAD, POST"));
        assert_eq!(answer.header("access-control-max-age"), Some("600"));
    }
    for stranger in ["https://app.example.com.evil.test", "https://APP.example.com", "null"] {
        let answer = ask(gateway.address(), &preflight("/v1/models", stranger));
        let names = answer.header_names();
        assert!(names.iter().all(|name| !name.starts_with("access-control")), "{answer:?}");
        assert_eq!(answer.header("vary"), Some("Origin"));
    }
    let metrics = Request::get("/metrics").bearer(holdfast_tests::config::ADMIN_TOKEN);
    let told = metrics.send(gateway.admin_address());
    let lines = told.text().lines().filter(|line| line.starts_with("holdfast_requests_total"));
    assert_eq!(lines.count(), 0, "{}", told.text());
    let logged = site.logs().lines().filter(|line| line.contains("request.id")).count();
    assert_eq!(logged, 0, "no line in the log");
    // Without what makes it a preflight it is a method like any other.
    let plain = Request::get("/v1/wallet").method("OPTIONS").header("Origin", PAGE);
    assert_eq!(gateway.send(&plain).status, 405);
}

#[test]
fn every_answer_has_the_origin_refusals_too() {
    let config = listed().set("limits", "connections", "1");
    let config = config.set("limits", "body_bytes", "2_048");
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let key = request_key();
    let good = Request::completion(&account.key, &key, sim("Hello there")).header("Origin", PAGE);
    let large = Request::completion(&account.key, &request_key(), "x".repeat(4_096));
    for (status, request) in [
        (200, good.clone()),
        (200, good.clone()),
        (401, good.clone().without("Authorization")),
        (400, good.clone().without("Idempotency-Key")),
        (404, Request::get("/nothing").header("Origin", PAGE)),
        (413, large.header("Origin", PAGE)),
        (200, Request::get("/healthz").header("Origin", PAGE)),
    ] {
        // One place for connections: it is free again a moment after the answer before.
        let answer = until("there is room", || {
            let answer = request.send(gateway.address());
            (answer.status != 503).then_some(answer)
        });
        assert_eq!(answer.status, status, "{answer:?}");
        check_shown(&answer);
    }
    let other = good.clone().without("Origin").header("Origin", "https://other.example.com");
    let answer = until("there is room", || {
        let answer = other.send(gateway.address());
        (answer.status != 503).then_some(answer)
    });
    assert_eq!(answer.status, 200, "whoever is no browser does not care");
    assert_eq!(answer.header("access-control-allow-origin"), None);
    assert_eq!(answer.header("vary"), Some("Origin"));
    // Dialled anew each time: what came before may still hold the place, and this one be turned away.
    let (idle, full) = until("the place is taken", || {
        let idle = std::net::TcpStream::connect(gateway.address()).unwrap();
        let answer = good.send(gateway.address());
        (answer.status == 503).then_some((idle, answer))
    });
    check_shown(&full);
    assert_eq!(ask(gateway.address(), &preflight("/v1/models", PAGE)).status, 204);
    drop(idle);
}

#[test]
fn a_reload_takes_other_origins() {
    let (site, _account) = Site::funded(&listed());
    let gateway = site.serve();
    let asked = |origin| {
        let answer = ask(gateway.address(), &preflight("/v1/models", origin));
        answer.header("access-control-allow-origin") == Some(origin)
    };
    assert!(asked(PAGE));
    let other = "http://localhost:3000";
    site.configure(&allowing(&format!("[\"{other}\"]")));
    gateway.hang_up();
    until("the new origin is taken", || asked(other).then_some(()));
    assert!(!asked(PAGE), "and the old one is not");
}

/// What a browser shows of a page that asks the gateway, from an origin of its own.
fn browse(page: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Command::new("chromium");
    browser
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .args(["--disable-features=LocalNetworkAccessChecks", "--virtual-time-budget=20000"])
        .arg(format!("--user-data-dir={}", folder.path().display()))
        .args(["--dump-dom", page]);
    Ran::of(&mut browser).ok()
}

#[test]
fn chromium_pages_call_the_gateway_where_their_origin_is_listed() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/browser/page.html");
    let text = std::fs::read_to_string(script).unwrap();
    for is_listed in [true, false] {
        let server = Upstream::start(Reply::Silence);
        let origin = server.base_url().trim_end_matches("/v1").to_owned();
        let config =
            if is_listed { allowing(&format!("[\"{origin}\"]")) } else { Config::simulated() };
        let (site, account) = Site::funded(&config);
        let gateway = site.serve();
        let page = text.replace("URL", &gateway.base_url()).replace("KEY", &account.key);
        let page = page.replace("OPERATION", &request_key());
        server.otherwise(Reply::Raw(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
            page.len()
        )));
        let shown = browse(&format!("{origin}/page"));
        if is_listed {
            assert!(
                shown.contains(
                    "first: 200 false; again: 200 true; refused: 401 invalid_api_key false"
                ),
                "{shown}"
            );
        } else {
            assert!(shown.contains("failed: TypeError"), "{shown}");
        }
        assert_eq!(site.verify()["operations"], u64::from(is_listed));
    }
}
