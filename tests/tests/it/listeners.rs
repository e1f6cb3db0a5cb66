//! Floods of each listener: connections that send nothing, or one probe, and stay. Probes are answered all the
//! same, and on the operators' listener what the token and an admin key open.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use holdfast_tests::config::ADMIN_TOKEN;
use holdfast_tests::{Answer, Config, PATIENCE, Reply, Request, Site, Upstream, Waiting};
use holdfast_wire::error::Code;
use socket2::{Domain, Socket, Type};

use crate::check::error;
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
    let site = Site::configured(&config);
    let gateway = site.serve();
    let to = gateway.address();
    check_probes(to, &PROBES, || {
        let refused = send(to, 1, &Request::get("/docs")).unwrap();
        error(Code::Overloaded).check(&refused);
    });
}

#[test]
fn a_flooded_admin_listener_answers_probes_the_token_and_admin_keys() {
    let site = Site::configured(&Config::simulated());
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
    error(Code::InvalidApiKey).check(&refused);
}

#[test]
fn a_flooded_holders_listener_answers_probes() {
    let config = Config::simulated().set("console", "listen", "\"127.0.0.1:0\"");
    let site = Site::configured(&config);
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
    let site = Site::configured(&Config::simulated());
    let gateway = site.serve();
    let to = gateway.admin_address();
    let idle = flood(to, 1, 256, PROBES[0]);
    let page = Request::get("/sign-in");
    let here = send(to, 1, &page).unwrap();
    error(Code::Overloaded).check(&here);
    assert_eq!(send(to, ELSEWHERE, &page).unwrap().status, 200);
    drop(idle);
}
