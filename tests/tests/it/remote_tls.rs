//! The command line over the network with TLS: a private authority that it is told of, and certificates
//! that it does not take.
//!
//! What ends TLS is between the command line and the operator's listener, as a proxy of an operator is. It
//! hands one request and its answer on, whole.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_tests::{Config, Gateway, Ran, Request, Site, request_key};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use crate::bodies::acme;
use crate::clients;
use crate::remote::Remote;

/// An authority that no platform knows.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // A name of its own: another one of that name would be taken for it, and its signature for a bad one.
        params.distinguished_name.push(DnType::CommonName, request_key());
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A server's end of TLS, with a certificate for this name.
    fn server(&self, name: &str, vary: impl FnOnce(&mut CertificateParams)) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        vary(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key);
        Arc::new(server.unwrap())
    }
}

/// What ends TLS before a gateway. Its threads end with the process.
struct Terminator {
    address: SocketAddr,
    to: Arc<Mutex<Option<SocketAddr>>>,
    /// Number of connections so far.
    connections: Arc<AtomicUsize>,
}

impl Terminator {
    /// One before nothing yet: a gateway has to know its address.
    fn ahead(server: Arc<ServerConfig>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let to: Arc<Mutex<Option<SocketAddr>>> = Arc::default();
        let target = Arc::clone(&to);
        let connections: Arc<AtomicUsize> = Arc::default();
        let count = Arc::clone(&connections);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                count.fetch_add(1, Ordering::Relaxed);
                let (server, to) = (Arc::clone(&server), *target.lock().unwrap());
                // A client that does not trust it hangs up.
                drop(hand_on(client.unwrap(), server, to));
            }
        });
        Self { address, to, connections }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    fn turn_to(&self, address: SocketAddr) {
        *self.to.lock().unwrap() = Some(address);
    }
}

/// Hands on one request and its answer, which ends with its connection.
fn hand_on(
    client: TcpStream,
    server: Arc<ServerConfig>,
    to: Option<SocketAddr>,
) -> std::io::Result<()> {
    let connection = ServerConnection::new(server).unwrap();
    let mut client = StreamOwned::new(connection, client);
    let mut request = Vec::new();
    while !is_whole(&request) {
        let mut bytes = [0; 4_096];
        match client.read(&mut bytes)? {
            0 => return Ok(()),
            read => request.extend_from_slice(&bytes[..read]),
        }
    }
    let mut gateway = TcpStream::connect(to.unwrap())?;
    gateway.write_all(&request)?;
    let mut answer = Vec::new();
    // To its length, or to the end of its connection.
    while !(length(&answer).is_some() && is_whole(&answer)) {
        let mut bytes = [0; 4_096];
        match gateway.read(&mut bytes)? {
            0 => break,
            read => answer.extend_from_slice(&bytes[..read]),
        }
    }
    client.write_all(&answer)?;
    client.conn.send_close_notify();
    client.flush()
}

fn is_whole(message: &[u8]) -> bool {
    let end = message.windows(4).position(|end| end == b"\r\n\r\n");
    end.is_some_and(|end| message.len() - end - 4 >= length(message).unwrap_or(0))
}

/// Length of a message's body, where its head says one.
fn length(message: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(message).to_ascii_lowercase();
    let (head, _) = text.split_once("\r\n\r\n")?;
    head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()
}

/// A gateway behind what ends TLS with this certificate, and whoever administers it through that.
struct World {
    site: Site,
    gateway: Gateway,
    terminator: Terminator,
}

impl World {
    fn new(server: Arc<ServerConfig>) -> Self {
        let terminator = Terminator::ahead(server);
        let config = Config::simulated().set("admin", "url", &format!("\"{}\"", terminator.url()));
        let (site, _account) = Site::funded(&config);
        let gateway = site.serve();
        terminator.turn_to(gateway.admin_address());
        Self { site, gateway, terminator }
    }

    fn remote(&self) -> Remote<'_> {
        Remote::owner(&self.site, &self.gateway).at(self.terminator.url())
    }

    /// Runs a command that trusts the authorities of this file besides the known ones.
    fn trusting(&self, file: &str, arguments: &[&str]) -> Ran {
        let mut command = self.remote().command(arguments);
        Ran::of(command.env("SSL_CERT_FILE", self.site.path(file)))
    }
}

#[test]
fn a_private_authority_is_trusted_where_its_certificate_is_named() {
    let authority = Authority::new();
    let world = World::new(authority.server("localhost", |_| {}));
    world.site.write("ca.pem", &authority.0.pem());
    let shown = world.trusting("ca.pem", &["wallet", "show", "main", "--json"]).json();
    assert_eq!(shown["available_micros"], 10_000_000);
    let paid = world.trusting("ca.pem", &["wallet", "deposit", "main", "2.50", "--json"]).json();
    assert_eq!(paid["amount_micros"], 2_500_000, "{paid}");
    assert_eq!(world.site.json(&["wallet", "show", "main"])["available_micros"], json!(12_500_000));
    world.gateway.stop();
}

#[test]
fn a_certificate_that_is_not_to_be_trusted_ends_the_command_before_the_key_is_sent() {
    let (authority, another) = (Authority::new(), Authority::new());
    let expired = |params: &mut CertificateParams| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 2, 1);
    };
    for (server, trusted, why) in [
        (authority.server("localhost", |_| {}), None, "SSL_CERT_FILE names"),
        (authority.server("localhost", |_| {}), Some(&another), "SSL_CERT_FILE names"),
        (authority.server("elsewhere.example", |_| {}), Some(&authority), "not valid for name"),
        (authority.server("localhost", expired), Some(&authority), "expired"),
    ] {
        let world = World::new(server);
        let refused = match trusted {
            Some(authority) => {
                world.site.write("ca.pem", &authority.0.pem());
                world.trusting("ca.pem", &["wallet", "deposit", "main", "1"])
            }
            None => world.remote().cli(&["wallet", "deposit", "main", "1"]),
        };
        let told = refused.failed(1);
        let url = world.terminator.url();
        assert!(
            told.contains(&format!("no TLS with {url}")) && told.contains(why),
            "{why}: {told}"
        );
        // It ends alike at every try.
        assert_eq!(world.terminator.connections.load(Ordering::Relaxed), 1, "{why}");
        let main = world.site.json(&["wallet", "show", "main"]);
        assert_eq!(main["available_micros"], 10_000_000);
        world.gateway.stop();
    }
}

#[test]
fn a_sidecar_reaches_its_gateway_over_tls_where_it_trusts_the_authority() {
    let authority = Authority::new();
    let world = clients::world();
    let terminator = Terminator::ahead(authority.server("localhost", |_| {}));
    terminator.turn_to(world.gateway.address());
    let own = world.site.path("authority.pem");
    world.site.write("authority.pem", &authority.0.pem());
    let url = format!("{}/v1", terminator.url());
    let ask = |options: &[&str]| {
        let sidecar = world.site.sidecar_to(&url, options, ("SSL_CERT_FILE", own.as_path()));
        let request = Request::completion(&world.account.key, "", acme("Say hello"));
        sidecar.send(&request.without("Idempotency-Key"))
    };
    assert_eq!(ask(&[]).status, 200);
    world.site.write("authority.pem", &Authority::new().0.pem());
    let told = ask(&["--patience", "1s", "--journal", "none"]);
    assert_eq!(told.json()["error"]["code"], "gateway_unreachable", "{told:?}");
    world.check_charges(1);
}
