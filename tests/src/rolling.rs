//! Rolling updates under load: two gateways on one database behind the balancer that `deploy/` ships, each
//! replaced in turn while callers ask and streams run. Nobody is told 503, no stream is cut, and the books
//! are in order.
//!
//! The balancer is HAProxy with `deploy/haproxy.cfg`. What differs is where it listens (a socket that it is
//! given) and how it learns the address of a new gateway: by its own command, where containers have names.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use socket2::Socket;

use crate::config::ACME;
use crate::events::End;
use crate::postgres::Database;
use crate::{
    Account, Config, Gateway, PATIENCE, Reply, Request, Site, Streaming, Upstream, request_key,
    watchdog,
};

const HAPROXY_CFG: &str = include_str!("../../deploy/haproxy.cfg");
const COMPOSE_TOML: &str = include_str!("../../deploy/compose.toml");
/// The program; its libraries are beside it where it was unpacked and not installed.
const HAPROXY: &str = "HOLDFAST_TEST_HAPROXY";
const CALLERS: usize = 6;
const CHARGE: i64 = 367;
const FUNDS: i64 = 100_000_000;
const PIECES: [&str; 4] = ["Good ", "day", " to", " you"];

/// What callers met.
#[derive(Debug, Default)]
pub struct RollReport {
    /// Whole answers.
    pub answers: AtomicUsize,
    /// Whole streams.
    pub streams: AtomicUsize,
}

/// Replaces both gateways so many times under load, and checks everything; tells of each round.
///
/// # Panics
///
/// Where anything is not in order.
#[track_caller]
pub fn roll(rounds: u32, tell: impl Fn(u32, &RollReport)) -> RollReport {
    let streamed = PIECES.iter().fold(Streaming::new().opening(), |stream, piece| {
        stream.text(piece).pause(Duration::from_millis(150))
    });
    let streamed = streamed.finish("stop").usage().done().reply();
    let upstream = Upstream::start(Reply::as_wanted(streamed, Reply::saying("Good day")));
    let database = Database::make();
    let shipped = |name: &str| {
        let line = COMPOSE_TOML.lines().find_map(|line| line.strip_prefix(name));
        line.expect("an option of compose.toml").trim_start_matches([' ', '=']).to_owned()
    };
    let config = Config::upstream(&upstream).set("server", "drain", &shipped("drain =")).set(
        "server",
        "drain_delay",
        &shipped("drain_delay ="),
    );
    let site = Site::configured(&database.configure(config));
    drop(site.cli(&["migrate", "up"]).ok());
    let account = site.account("main", "USD", "100.00");
    let mut gateways = [site.serve(), site.serve()];
    let balancer = HaProxy::before([gateways[0].address(), gateways[1].address()]);
    let (met, is_over) = (RollReport::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (met, is_over, account, to) = (&met, &is_over, &account, balancer.address);
            scope.spawn(move || {
                let end = EndGuard(is_over);
                for turn in caller.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    ask(to, account, turn % 2 == 0, met);
                }
                std::mem::forget(end);
            });
        }
        let end = EndGuard(&is_over);
        for round in 1..=rounds {
            for (place, gateway) in gateways.iter_mut().enumerate() {
                let new = site.serve();
                let old = std::mem::replace(gateway, new);
                old.stop();
                balancer.turn(place, gateway.address());
            }
            tell(round, &met);
            assert!(!is_over.load(Ordering::Relaxed), "a caller met something else");
        }
        drop(end);
    });
    let ran = met.answers.load(Ordering::Relaxed) + met.streams.load(Ordering::Relaxed);
    assert_eq!(upstream.runs(), ran, "each ran once");
    let charged = i64::try_from(ran).expect("few") * CHARGE;
    assert_eq!(site.balance(&account), (FUNDS - charged, 0), "each was charged once");
    drop(site.verify());
    gateways.into_iter().for_each(Gateway::stop);
    met
}

/// Ends the load with its scope, however that is left.
struct EndGuard<'a>(&'a AtomicBool);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One request, which is answered whole.
fn ask(to: SocketAddr, account: &Account, is_streamed: bool, met: &RollReport) {
    let body = json!({
        "model": ACME, "stream": is_streamed, "messages": [{"role": "user", "content": "Say hello"}],
    });
    let request = Request::completion(&account.key, &request_key(), body.to_string());
    if is_streamed {
        let told = request.begin(to).events().rest();
        assert_eq!(told.head.status, 200, "{told:?}");
        assert_eq!(told.end, End::Whole, "{told:?}");
        assert_eq!(told.events.last().map(String::as_str), Some("data: [DONE]\n\n"), "{told:?}");
        met.streams.fetch_add(1, Ordering::Relaxed);
    } else {
        let answer = request.send(to);
        assert_eq!(answer.status, 200, "{answer:?}");
        met.answers.fetch_add(1, Ordering::Relaxed);
    }
}

/// The balancer as it is shipped. Dropping it ends it.
struct HaProxy {
    process: Child,
    address: SocketAddr,
    folder: tempfile::TempDir,
}

impl HaProxy {
    fn before(gateways: [SocketAddr; 2]) -> Self {
        let program = std::env::var_os(HAPROXY).map(PathBuf::from);
        let program = program.expect("HOLDFAST_TEST_HAPROXY: `cargo xtask test tests` sets it");
        let folder = tempfile::tempdir().expect("a folder");
        let listener =
            TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("an address");
        let address = listener.local_addr().expect("an address");
        // Inherited by the child that is started now.
        let socket = Socket::from(listener);
        socket.set_cloexec(false).expect("a socket that is inherited");
        let config = folder.path().join("haproxy.cfg");
        let text = configured(&folder, &format!("fd@{}", socket.as_raw_fd()), gateways);
        std::fs::write(&config, text).expect("a file");
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let mut command = Command::new(&program);
        command.arg("-db").arg("-f").arg(&config).stdin(Stdio::null()).stderr(Stdio::null());
        command.stdout(log).env("LD_LIBRARY_PATH", libraries(&program));
        let process = command.spawn().expect("the balancer");
        watchdog::started(process.id());
        let balancer = Self { process, address, folder };
        balancer.wait_for_both();
        balancer
    }

    /// Sends what goes to this place to another address from now on.
    fn turn(&self, place: usize, gateway: SocketAddr) {
        let server = format!("gateways/gateway-{}", place + 1);
        let (ip, port) = (gateway.ip(), gateway.port());
        drop(self.say(&format!("set server {server} addr {ip} port {port}")));
        self.wait_for_both();
    }

    /// Waits until both gateways get requests.
    fn wait_for_both(&self) {
        let until = Instant::now() + PATIENCE;
        let is_up = |told: &str| told.lines().filter(|line| line.contains(",UP,")).count() >= 3;
        while !is_up(&self.say("show stat gateways 7 -1")) {
            assert!(Instant::now() < until, "the balancer sees no gateway");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn say(&self, command: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let told =
                UnixStream::connect(self.folder.path().join("stats")).and_then(|mut stats| {
                    writeln!(stats, "{command}")?;
                    let mut told = String::new();
                    stats.read_to_string(&mut told)?;
                    Ok(told)
                });
            match told {
                Ok(told) => return told,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        self.process.kill().expect("it was started here");
        self.process.wait().expect("it was started here");
        watchdog::ended(self.process.id());
    }
}

/// The shipped file with the addresses of a test. Everything else is as it is.
fn configured(folder: &tempfile::TempDir, listens: &str, gateways: [SocketAddr; 2]) -> String {
    let stats = folder.path().join("stats");
    let mut text = HAPROXY_CFG.to_owned();
    let mut replace = |shipped: &str, here: &str| {
        assert_eq!(text.matches(shipped).count(), 1, "{shipped} is not in haproxy.cfg once");
        text = text.replace(shipped, here);
    };
    let stats = format!("\nglobal\n    stats socket {} level admin\n", stats.display());
    replace("\nglobal\n", &stats);
    replace("bind :8080\n", &format!("bind {listens}\n"));
    replace(" resolvers names init-addr last,libc,none", "");
    let resolvers = "resolvers names\n    nameserver docker 127.0.0.11:53\n    hold valid 1s\n";
    replace(resolvers, "");
    for (place, gateway) in gateways.iter().enumerate() {
        let server = format!("server gateway-{}", place + 1);
        let shipped = format!("{server} gateway-{}:8080\n", place + 1);
        replace(&shipped, &format!("{server} {gateway}\n"));
    }
    text
}

/// Folder of the libraries of a program that was unpacked; nothing new for one that is installed.
fn libraries(program: &Path) -> PathBuf {
    let root = program.ancestors().nth(2).expect("a folder").join("lib");
    let folders = std::fs::read_dir(&root).into_iter().flatten().flatten();
    let found = folders.map(|it| it.path()).find(|it| it.join("liblua5.3.so.0").exists());
    found.unwrap_or(root)
}
