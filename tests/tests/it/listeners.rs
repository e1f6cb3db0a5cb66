//! Floods of each listener: connections that send nothing, or one probe, and stay. Probes are answered all the
//! same, and on the operators' listener what the token and an admin key open.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Instant;

use holdfast_domain::secret::SessionToken;
use holdfast_tests::config::ADMIN_TOKEN;
use holdfast_tests::{Answer, Config, PATIENCE, Reply, Request, Site, Upstream, Waiting};
use holdfast_wire::error::Code;
use socket2::{Domain, Socket, Type};

use crate::check::{error, until};
use crate::sidecar::SAID;

/// Connections of one address, and addresses.
const FLOODS: [(u8, usize); 3] = [(1, 64), (1, 1_100), (12, 120)];
/// Address of neither flood.
const ELSEWHERE: u8 = 99;

/// A connection from an address of loopback.
fn connect(to: SocketAddr, last: u8) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let from = SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0));
    socket.bind(&from.into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Connections that stay: every second one has sent a probe first, which makes it idle instead of new.
fn flood(to: SocketAddr, addresses: u8, each: usize, probe: &str) -> Vec<TcpStream> {
    let mut idle = Vec::new();
    let head = format!("GET {probe} HTTP/1.1\r\nHost: {to}\r\n\r\n");
    for number in 0..each {
        for last in 1..=addresses {
            let mut stream = connect(to, last);
            if number % 2 == 0 {
                // A connection beyond the limits may be closed already.
                drop(stream.write_all(head.as_bytes()));
            }
            idle.push(stream);
        }
    }
    idle
}

/// The answer to a request from an address; `None` if its connection was closed without one.
fn send(to: SocketAddr, last: u8, request: &Request) -> Option<Answer> {
    let mut stream = connect(to, last);
    let host = to.to_string();
    let request = request.clone().host(&host);
    drop(stream.write_all(&request.bytes()));
    Waiting::of(stream).try_answer()
}

/// Checks that probes are answered from an address of each flood, and from another one.
fn check_probes(to: SocketAddr, probes: &[&str], then: impl Fn()) {
    for (addresses, each) in FLOODS {
        let idle = flood(to, addresses, each, probes[0]);
        for path in probes {
            for last in [1, ELSEWHERE] {
                let answer = send(to, last, &Request::get(path));
                let status = answer.as_ref().map(|answer| answer.status);
                assert_eq!(
                    status,
                    Some(200),
                    "{path} from {last}, {addresses} × {each}: {answer:?}"
                );
            }
        }
        then();
        drop(idle);
    }
}

const PROBES: [&str; 2] = ["/healthz", "/readyz"];

#[test]
fn a_flooded_public_listener_answers_probes() {
    let config = Config::simulated().set("limits", "connections", "64").set(
        "limits",
        "connections_per_address",
        "16",
    );
    let (site, _account) = Site::funded(&config);
    let gateway = site.serve();
    let to = gateway.address();
    check_probes(to, &PROBES, || {
        let refused = send(to, 1, &Request::get("/docs")).unwrap();
        error(Code::Overloaded).check(&refused);
    });
}

#[test]
fn a_flooded_admin_listener_answers_probes_the_token_and_admin_keys() {
    let (site, _account) = Site::funded(&Config::simulated());
    let made = site.json(&["admin-key", "issue", "--name", "ops", "--role", "owner"]);
    let key = made["key"].as_str().unwrap();
    let gateway = site.serve();
    let to = gateway.admin_address();
    check_probes(to, &PROBES, || {
        for (path, bearer) in [("/metrics", ADMIN_TOKEN), ("/admin/v1/wallets", key)] {
            for last in [1, ELSEWHERE] {
                let answer = send(to, last, &Request::get(path).bearer(bearer)).unwrap();
                assert_eq!(answer.status, 200, "{path} from {last}: {answer:?}");
            }
        }
    });
    let refused = Request::get("/metrics").bearer("guess").send(to);
    assert_eq!(refused.status, 401, "{refused:?}");
}

#[test]
fn a_flooded_holders_listener_answers_probes() {
    let config = Config::simulated().set("console", "listen", "\"127.0.0.1:0\"");
    let (site, _account) = Site::funded(&config);
    let gateway = site.serve();
    check_probes(gateway.console_address(), &PROBES, || {});
}

#[test]
fn a_flooded_sidecar_answers_probes() {
    let (site, upstream) = (Site::empty(), Upstream::start(Reply::saying(SAID)));
    let sidecar = site.sidecar_to(&upstream.base_url(), &[], ("LANG", "C".as_ref()));
    let to = sidecar.address();
    let own = ["/sidecar/healthz"];
    check_probes(to, &own, || {});
    let idle = flood(to, 12, 180, own[0]);
    for last in [1, ELSEWHERE] {
        let answer = send(to, last, &Request::get(own[0]));
        assert_eq!(answer.map(|answer| answer.status), Some(200), "{last}");
    }
    let refused = send(to, 1, &Request::get("/v1/models")).unwrap();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    drop(idle);
}

#[test]
fn a_share_of_one_address_leaves_the_others_their_places() {
    let (site, _account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let to = gateway.admin_address();
    let idle = flood(to, 1, 256, PROBES[0]);
    let page = Request::get("/sign-in");
    let here = send(to, 1, &page).unwrap();
    error(Code::Overloaded).check(&here);
    assert_eq!(send(to, ELSEWHERE, &page).unwrap().status, 200);
    drop(idle);
}

#[test]
fn forged_admin_keys_and_sessions_leave_few_lines_with_their_address() {
    let (site, _account) = Site::funded(&Config::simulated().set("log", "level", "\"info\""));
    let issued = site.json(&["admin-key", "issue", "--name", "ops", "--role", "owner"]);
    let key = issued["key"].as_str().unwrap().to_owned();
    let gateway = site.serve();
    let to = gateway.admin_address();
    let wallets = Request::get("/admin/v1/wallets");
    assert_eq!(wallets.clone().bearer(&key).send(to).status, 200);
    let forged_key = |number: usize| {
        let mut forged = key.clone().into_bytes();
        for (place, digit) in (8..).zip(format!("{number:06x}").bytes()) {
            forged[place] = digit;
        }
        wallets.clone().bearer(&String::from_utf8(forged).unwrap())
    };
    let forged_session = |number: usize| {
        let mut bits = [7; 32];
        bits[..8].copy_from_slice(&number.to_be_bytes());
        let cookie = format!("holdfast={}", SessionToken::new(bits).expose());
        Request::get("/").header("Cookie", &cookie)
    };
    check_forged(&site, (to, "administration"), &[401, 429], &forged_key);
    check_forged(&site, (to, "console"), &[303, 429], &forged_session);
    assert_eq!(wallets.bearer(&key).send(to).status, 200, "it was let in before");
    for warning in ["their admin keys refused", "had no session"] {
        until(warning, || site.logs().contains(warning).then_some(()));
    }
}

/// Sends 2,000 forged requests, and checks their answers and their lines.
fn check_forged(
    site: &Site,
    (to, message): (SocketAddr, &str),
    expected: &[u16],
    forged: &dyn Fn(usize) -> Request,
) {
    let began = Instant::now();
    let statuses: BTreeSet<u16> = (0..2_000).map(|number| forged(number).send(to).status).collect();
    // The last of them were not looked up.
    assert_eq!(statuses.iter().copied().collect::<Vec<_>>(), expected);
    let logs = site.logs();
    let refused = "actor=\"-\"";
    let is_line = |line: &&str| line.contains(message) && line.contains(refused);
    let lines: Vec<_> = logs.lines().filter(is_line).collect();
    // Of 20 lines in ten seconds: the first window's and the last one's may be parts.
    let lines_max = 20 * (usize::try_from(began.elapsed().as_secs()).unwrap() / 10 + 2);
    assert!((1..=lines_max).contains(&lines.len()), "{} lines: {logs}", lines.len());
    assert!(lines.iter().all(|line| line.contains("client.address=127.0.0.1")), "{lines:?}");
}

#[test]
fn the_authority_of_a_target_is_judged_as_host_is() {
    let config = Config::simulated().set("console", "listen", "\"127.0.0.1:0\"");
    let (site, _account) = Site::funded(&config);
    let gateway = site.serve();
    let status = |to: SocketAddr, target: &str| {
        let answer = Request::get(target).send(to);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{answer:?}");
        answer.status
    };
    for (to, path) in [
        (gateway.admin_address(), "/sign-in"),
        (gateway.console_address(), "/sign-in"),
        (gateway.admin_address(), "/admin/openapi.json"),
    ] {
        assert_eq!(status(to, &format!("http://evil.example{path}")), 421, "{path}");
        assert_eq!(status(to, &format!("ftp://{to}{path}")), 421, "{path}");
        assert_eq!(status(to, &format!("http://{to}{path}")), 200, "{path}");
    }
    let public = gateway.address();
    assert_eq!(status(public, "http://any.example/docs"), 200, "it has no rule for names");
    for target in ["ftp://any.example/docs", "http://me@any.example/docs"] {
        let refused = Request::get(target).send(public);
        error(Code::InvalidValue).param("Host").check(&refused);
    }
}
