//! `holdfast sidecar` as a process of its own: whom it answers, what it keeps from the gateway, and what it is to a
//! supervisor.

use std::process::Command;
use std::time::Duration;

use holdfast_tests::{Gateway, Ran, Reply, Request, Site, Upstream};
use serde_json::{Value, json};

use crate::bodies::acme;
use crate::check::until;
use crate::sidecar::SAID;

const ORIGIN: &str = "http://localhost:3000";
const UNIT: &str = include_str!("../../../deploy/systemd/holdfast-sidecar.service");
const AGENT: &str = include_str!("../../../deploy/launchd/dev.holdfast.sidecar.plist");

/// A sidecar before an upstream that takes every call.
fn bench(options: &[&str]) -> (Site, Upstream, Gateway) {
    let (site, upstream) = (Site::empty(), Upstream::start(Reply::saying(SAID)));
    let sidecar = site.sidecar_to(&upstream.base_url(), options, ("LANG", "C".as_ref()));
    (site, upstream, sidecar)
}

fn call() -> Request {
    Request::completion("key", "", acme("Say hello")).without("Idempotency-Key")
}

#[track_caller]
fn check_refused(sidecar: &Gateway, request: &Request, param: Value) {
    let refused = sidecar.send(request);
    let error = &refused.json()["error"];
    assert_eq!((refused.status, &error["code"]), (400, &json!("invalid_value")), "{refused:?}");
    assert_eq!((&error["param"], &error["charged_micros"]), (&param, &json!(0)));
    assert_eq!(refused.header("x-should-retry"), Some("false"));
}

#[test]
fn only_loopback_names_with_the_own_port_are_answered() {
    let (site, upstream, sidecar) = bench(&["--allow-host", "front:1"]);
    let port = sidecar.address().port();
    for host in ["evil.example", "localhost", "localhost:1", "front:2", &format!("evil:{port}")] {
        check_refused(&sidecar, &call().host(host), json!("Host"));
    }
    let absolute = Request::post("http://evil.example/v1/chat/completions", acme("Say hello"));
    check_refused(&sidecar, &absolute, json!("Host"));
    check_refused(&sidecar, &Request::get("/sidecar/healthz").host("evil.example"), json!("Host"));
    assert_eq!(upstream.runs(), 0, "nothing of it was sent");
    for name in ["127.0.0.1", "localhost", "[::1]"] {
        assert_eq!(sidecar.send(&call().host(&format!("{name}:{port}"))).status, 200, "{name}");
    }
    assert_eq!(sidecar.send(&call().host("front:1")).status, 200);
    drop(site);
}

#[test]
fn a_page_of_another_origin_is_refused_unless_it_is_allowed() {
    let (_site, upstream, sidecar) = bench(&["--allow-origin", ORIGIN]);
    for site in ["cross-site", "same-site"] {
        let page = call().header("Sec-Fetch-Site", site);
        check_refused(&sidecar, &page, json!("Sec-Fetch-Site"));
        let evil = page.header("Origin", "http://evil.example");
        check_refused(&sidecar, &evil, json!("Sec-Fetch-Site"));
    }
    assert_eq!(upstream.runs(), 0, "nothing of it was sent");
    let page = |request: Request| {
        let request = request.header("Sec-Fetch-Site", "cross-site").header("Origin", ORIGIN);
        request.begin(sidecar.address()).rest().to_ascii_lowercase()
    };
    let preflight = Request::get("/v1/chat/completions").method("OPTIONS");
    let preflight = page(preflight.header("Access-Control-Request-Method", "POST"));
    assert!(preflight.starts_with("http/1.1 204"), "{preflight}");
    for answer in [preflight, page(call())] {
        let allowed = format!("\naccess-control-allow-origin: {ORIGIN}\r\n");
        assert!(answer.contains(&allowed), "{answer}");
    }
    for site in ["none", "same-origin"] {
        assert_eq!(sidecar.send(&call().header("Sec-Fetch-Site", site)).status, 200);
    }
    assert_eq!(upstream.runs(), 3);
}

#[test]
fn a_path_that_leads_up_is_refused() {
    let (_site, upstream, sidecar) = bench(&[]);
    for path in ["/v1/../admin/v1/wallets", "/v1/%2e%2e/admin", "/v1/..%2Fadmin", "/.."] {
        check_refused(&sidecar, &Request::get(path), Value::Null);
        check_refused(&sidecar, &Request::post(path, "{}"), Value::Null);
    }
    assert_eq!(upstream.runs(), 0);
}

#[test]
fn a_gateway_that_is_lost_and_back_is_one_line_each() {
    let (site, sidecar, address) = {
        let site = Site::empty();
        let address = Upstream::absent();
        let upstream = format!("http://{address}/v1");
        let options = ["--patience", "1s"];
        let sidecar = site.sidecar_to(&upstream, &options, ("LANG", "C".as_ref()));
        (site, sidecar, address)
    };
    let gateway = || sidecar.send(&Request::get("/sidecar/healthz")).json()["gateway"].clone();
    assert_eq!(gateway(), "unknown");
    for _ in 0..2 {
        assert_eq!(sidecar.send(&call()).status, 503);
    }
    assert_eq!(gateway(), "unreachable");
    // Whatever answers there is the gateway, for this.
    let listener = std::net::TcpListener::bind(address).unwrap();
    let answering = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        // A socket that is closed with bytes unread resets its connection, and the answer with it.
        let head = std::io::BufReader::new(socket.try_clone().unwrap());
        let _blank = std::io::BufRead::lines(head).find(|line| line.as_ref().unwrap().is_empty());
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
        std::io::Write::write_all(&mut socket, answer).unwrap();
    });
    assert_eq!(sidecar.send(&Request::get("/v1/models")).status, 200);
    answering.join().unwrap();
    assert_eq!(gateway(), "reachable");
    let log = sidecar.said();
    assert_eq!(log.matches("the gateway is unreachable").count(), 1, "{log}");
    assert_eq!(log.matches("the gateway is back").count(), 1, "{log}");
    let metrics = sidecar.send(&Request::get("/sidecar/metrics"));
    let metrics = metrics.text();
    assert!(metrics.contains("\nholdfast_sidecar_gateway_losses_total 1\n"), "{metrics}");
    assert_eq!(sidecar.send(&Request::get("/sidecar/nothing")).status, 404);
    assert_eq!(sidecar.send(&Request::post("/sidecar/healthz", "")).status, 405);
    drop(site);
}

#[test]
fn a_hangup_that_its_parent_ignored_ends_nothing() {
    for is_ignored in [true, false] {
        let (site, upstream) = (Site::empty(), Upstream::start(Reply::saying(SAID)));
        let sidecar = site.sidecar_command(&upstream.base_url());
        let trap = if is_ignored { "trap '' HUP; " } else { "" };
        let mut command = site.command();
        let program = command.get_program().to_owned();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("{trap}exec \"$0\" \"$@\"")]).arg(&program);
        shell.args(sidecar.get_args()).current_dir(site.folder()).env_clear();
        command = shell;
        let sidecar = site.start_sidecar(command);
        let hangup = Ran::of(Command::new("kill").args(["-HUP", &sidecar.process().to_string()]));
        assert_eq!(hangup.code, Some(0));
        if is_ignored {
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(sidecar.send(&call()).status, 200);
            assert!(!sidecar.said().contains("draining"));
            sidecar.stop();
        } else {
            until("it drains", || sidecar.said().contains("draining").then_some(()));
            assert_eq!(sidecar.wait().code(), Some(0));
        }
    }
}

#[test]
fn a_url_without_the_path_of_the_api_is_a_warning() {
    for (path, is_warned) in [("", true), ("/v1", false), ("/v1/", false)] {
        let site = Site::empty();
        let upstream = format!("http://{}{path}", Upstream::absent());
        let sidecar = site.sidecar_to(&upstream, &[], ("LANG", "C".as_ref()));
        assert_eq!(sidecar.said().contains("does not end with /v1"), is_warned, "{path}");
    }
}

#[test]
fn its_help_shows_what_applies() {
    let help = Site::empty().cli(&["sidecar", "--help"]).ok();
    for option in ["--upstream", "--allow-host", "--allow-origin"] {
        assert!(help.contains(option), "{option}");
    }
    for option in ["--config", "--server ", "--json"] {
        assert!(!help.contains(option), "{option}: {help}");
    }
}

#[test]
fn the_shipped_files_start_it_with_options_that_it_has() {
    let help = Site::empty().cli(&["sidecar", "--help"]).ok();
    let compose = include_str!("../../../deploy/compose.yaml");
    let service = compose.split_once("\n  sidecar:\n").unwrap().1;
    let service = service.split_once("    volumes:").unwrap().0;
    let start = UNIT.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    for text in [start, AGENT, service] {
        let options = text.split(|end: char| " =<>\n".contains(end));
        let options: Vec<_> = options.filter(|it| it.starts_with("--")).collect();
        assert!(options.contains(&"--upstream") && options.contains(&"--journal"), "{options:?}");
        for option in options.into_iter().filter(|it| it.len() > 3) {
            assert!(help.contains(option), "{option}");
        }
    }
    assert!(service.contains("--listen-anyway") && compose.contains("/sidecar/healthz"));
}
