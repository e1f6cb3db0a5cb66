//! Three nodes of `deploy/patroni`, each with etcd, Patroni and a PostgreSQL server, as processes of a test. They run
//! by the shipped files, in which only addresses, ports, folders and passwords are replaced.
//!
//! ```text
//! 127.x.y.11   etcd  Patroni ── PostgreSQL ─┐
//! 127.x.y.12   etcd  Patroni ── PostgreSQL ─┼── HAProxy (haproxy.rs), or a URL that names all three
//! 127.x.y.13   etcd  Patroni ── PostgreSQL ─┘
//! ```
//!
//! Patroni detaches the servers that it starts, so they do not end with it. A shell that waits for the end of this
//! process ends them, and removes the folder. A process is only ended if its command line names that folder.

use std::fs::{File, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::{as_user, binaries, children, give, kill_server};
use crate::{Answer, Ran, Request, request_key, watchdog};

/// The shipped files.
const PATRONI: &str = include_str!("../../deploy/patroni/patroni.yml");
const ETCD: &str = include_str!("../../deploy/patroni/etcd");
const BALANCER: &str = include_str!("../../deploy/patroni/haproxy.cfg");
/// Programs of the nodes, which `cargo xtask` installs.
const PATRONI_PROGRAM: &str = "HOLDFAST_TEST_PATRONI";
const ETCD_PROGRAM: &str = "HOLDFAST_TEST_ETCD";
/// Ports in the shipped files: of etcd for clients and for peers, of Patroni, of PostgreSQL.
const PORTS: [u16; 4] = [2379, 2380, 8008, 5432];
/// Nodes in the shipped files, and the last byte of the first one's address.
const NODES: usize = 3;
const FIRST: u8 = 11;
/// Longest time in which nodes bootstrap, elect a primary or join again.
const CHANGE_MAX: Duration = Duration::from_secs(180);
/// Lines of a log that are shown after a failure.
const LAST_LINES: usize = 25;
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Ends the servers in a folder once standard input has ended, and removes the folder.
const LAST_WILL: &str = r#"
trap '' HUP INT TERM
cat
for file in "$0"/*/data/postmaster.pid; do
    read -r server < "$file" && grep -qaF "$0/" "/proc/$server/cmdline" || continue
    kill -s STOP "$server"
    kill -s KILL $(cat "/proc/$server/task/$server/children") "$server"
done
exec rm -rf "$0"
"#;

/// Number of clusters that this process has started.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// The nodes. Dropping this ends them.
#[derive(Debug)]
pub struct Patroni {
    addresses: Addresses,
    nodes: Vec<Node>,
    superuser: String,
    password: String,
    last_will: Child,
    folder: PathBuf,
}

/// Network of a cluster's own on loopback, and its ports.
#[derive(Debug)]
struct Addresses {
    /// The first three bytes, with a point after each.
    network: String,
    ports: [u16; PORTS.len()],
}

/// Processes of one machine.
#[derive(Debug)]
struct Node {
    name: String,
    folder: PathBuf,
    /// Address of Patroni's API.
    api: SocketAddr,
    etcd: Option<Child>,
    patroni: Option<Child>,
    is_frozen: bool,
}

impl Addresses {
    /// A network that no other test has, with ports that are free on its first address.
    fn of_a_new_network() -> Self {
        let process = std::process::id() + STARTED.fetch_add(1, Ordering::Relaxed);
        let network = format!("127.{}.{}.", 2 + process % 250, 1 + process / 250 % 250);
        let address: Ipv4Addr = format!("{network}{FIRST}").parse().expect("an address");
        // All at once, so that they differ. Free from here on, which only a listener of all addresses can change.
        let listeners = PORTS.map(|_port| TcpListener::bind((address, 0)).expect("a free port"));
        let ports = listeners.map(|it| it.local_addr().expect("an address").port());
        Self { network, ports }
    }

    /// A shipped file with these addresses and ports.
    fn replace_in(&self, shipped: &str) -> String {
        // A connection to any loopback address comes from the first one.
        let text = shipped.replace("10.0.0.0/24", "127.0.0.0/8").replace("10.0.0.", &self.network);
        // PostgreSQL's first: a new port of another one may begin with its number.
        PORTS.iter().zip(self.ports).rev().fold(text, |text, (shipped, here)| {
            text.replace(&format!(":{shipped}"), &format!(":{here}"))
                .replace(&format!("port {shipped}"), &format!("port {here}"))
        })
    }

    /// Configuration of Patroni for a node in this folder.
    fn configure(&self, node: usize, folder: &Path) -> String {
        let own = format!("10.0.0.{}:", usize::from(FIRST) + node);
        let folder = folder.display();
        // The other two differ in name and in their own address, which is all that begins a line.
        let text = PATRONI.replace("name: pg-1\n", &format!("name: {}\n", name(node)));
        let text = text.replace("listen: 10.0.0.11:", &format!("listen: {own}"));
        let text = text.replace("connect_address: 10.0.0.11:", &format!("connect_address: {own}"));
        let data = "/var/lib/postgresql/holdfast\n";
        let bin = "bin_dir: /usr/lib/postgresql/15/bin\n";
        assert!(text.contains(data) && text.contains(bin), "the shipped file has other folders");
        let bin_here = format!(
            "bin_dir: {}\n  parameters:\n    unix_socket_directories: {folder}\n    \
             dynamic_shared_memory_type: mmap\n",
            binaries().display()
        );
        let text = text.replace(data, &format!("{folder}/data\n")).replace(bin, &bin_here);
        self.replace_in(&text.replace("/var/lib/postgresql/", &format!("{folder}/")))
    }

    /// Environment of a node's etcd, by its shipped file.
    fn etcd_of(&self, node: usize) -> Vec<(String, String)> {
        let own = format!("{}{}:", self.network, usize::from(FIRST) + node);
        // Three of them on one machine cannot share that address.
        let shared = format!(",http://127.0.0.1:{}", PORTS[0]);
        let text = self.replace_in(&ETCD.replace(&shared, ""));
        let settings = text.lines().filter_map(|line| line.split_once('='));
        settings
            .map(|(key, value)| {
                let value = value.trim_matches('"');
                let value = match key {
                    "ETCD_NAME" => name(node),
                    "ETCD_INITIAL_CLUSTER" => value.to_owned(),
                    _ => value.replace(&format!("{}{FIRST}:", self.network), &own),
                };
                (key.to_owned(), value)
            })
            .collect()
    }

    fn at(&self, node: usize, port: usize) -> SocketAddr {
        let address = format!("{}{}:{}", self.network, usize::from(FIRST) + node, self.ports[port]);
        address.parse().expect("an address")
    }
}

/// Has Patroni read the shipped file of the first node, with the addresses of a test and a change: nothing runs.
#[must_use]
pub fn validate(change: impl FnOnce(String) -> String) -> Ran {
    let addresses = Addresses::of_a_new_network();
    // It connects to each etcd that the file names, and to nothing else.
    let _etcd: [TcpListener; NODES] =
        std::array::from_fn(|node| TcpListener::bind(addresses.at(node, 0)).expect("an address"));
    let folder = TempDir::with_prefix("holdfast-patroni-").expect("a folder");
    give(folder.path());
    let file = folder.path().join("patroni.yml");
    write_secret(&file, &change(addresses.configure(0, folder.path())));
    Ran::of(program(PATRONI_PROGRAM).arg("--validate-config").arg(file))
}

/// Standbys that commits wait for, in the answer of a primary.
fn synchronous(primary: &Value) -> Vec<&str> {
    let standbys = primary["replication"].as_array().into_iter().flatten();
    let is_synchronous = |standby: &&Value| {
        let is_awaited =
            standby["sync_state"].as_str().is_some_and(|it| ["quorum", "sync"].contains(&it));
        is_awaited && standby["state"] == "streaming"
    };
    standbys.filter(is_synchronous).filter_map(|it| it["application_name"].as_str()).collect()
}

fn name(node: usize) -> String {
    format!("pg-{}", node + 1)
}

/// Program that `cargo xtask` has installed and named in this variable.
fn program(variable: &str) -> Command {
    let program = std::env::var_os(variable).map(PathBuf::from);
    as_user(&program.unwrap_or_else(|| panic!("{variable}: `cargo xtask` sets it")))
}

impl Patroni {
    /// Starts three nodes, and waits until two standbys follow the primary.
    #[must_use]
    pub fn start() -> Self {
        let folder = TempDir::with_prefix("holdfast-patroni-").expect("a folder").keep();
        give(&folder);
        let mut shell = Command::new("sh");
        shell.args(["-c", LAST_WILL]).arg(&folder).stdin(Stdio::piped());
        let last_will = shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a shell");
        let addresses = Addresses::of_a_new_network();
        let passwords: [String; 3] = std::array::from_fn(|_| request_key());
        let secrets = ["REPLACE_SUPERUSER", "REPLACE_REPLICATION", "REPLACE_REWIND"];
        let nodes = (0..NODES).map(|node| {
            let own = folder.join(name(node));
            std::fs::create_dir(&own).expect("a folder");
            give(&own);
            let text = addresses.configure(node, &own);
            let text = secrets.iter().zip(&passwords).fold(text, |text, (shipped, here)| {
                assert!(text.contains(shipped), "the shipped file has another {shipped}");
                text.replace(shipped, here)
            });
            write_secret(&own.join("patroni.yml"), &text);
            Node {
                name: name(node),
                folder: own,
                api: addresses.at(node, 2),
                etcd: None,
                patroni: None,
                is_frozen: false,
            }
        });
        let mut cluster = Self {
            nodes: nodes.collect(),
            superuser: passwords[0].clone(),
            password: request_key(),
            last_will,
            folder: folder.clone(),
            addresses,
        };
        for node in 0..NODES {
            cluster.start_node(node);
        }
        cluster.wait_until_whole(0);
        cluster.execute(&format!(
            "CREATE ROLE holdfast LOGIN CREATEDB PASSWORD '{}'",
            cluster.password
        ));
        cluster
    }

    /// The file of the shipped balancer in front of these nodes.
    #[must_use]
    pub fn balancer(&self) -> String {
        self.addresses.replace_in(BALANCER)
    }

    /// URL without a database that names all servers.
    #[must_use]
    pub fn url(&self) -> String {
        let servers: Vec<_> =
            (0..NODES).map(|node| self.addresses.at(node, 3).to_string()).collect();
        self.url_by(&servers.join(","))
    }

    /// URL without a database that leads through this address.
    #[must_use]
    pub fn url_by(&self, address: &str) -> String {
        let password = &self.password;
        format!(
            "postgres://holdfast:{password}@{address}?sslmode=disable&target_session_attrs=read-write"
        )
    }

    /// Starts the processes of a node that has none.
    pub fn start_node(&mut self, node: usize) {
        let etcd = self.addresses.etcd_of(node);
        self.nodes[node].start(etcd);
    }

    /// Ends all processes of a node at once, as the loss of its machine does.
    pub fn kill_node(&mut self, node: usize) {
        self.nodes[node].kill();
    }

    /// Stops all processes of a node: to others it looks dead.
    pub fn freeze_node(&mut self, node: usize) {
        self.nodes[node].signal_all("STOP");
        self.nodes[node].is_frozen = true;
    }

    /// Lets a stopped node go on.
    pub fn thaw_node(&mut self, node: usize) {
        self.nodes[node].signal_all("CONT");
        self.nodes[node].is_frozen = false;
    }

    /// Ends all processes of a server at once, which Patroni finds out by itself.
    pub fn kill_server(&self, node: usize) {
        kill_server(self.nodes[node].server().expect("a running server"));
    }

    /// Stops the server of a node, and nothing else there.
    pub fn freeze_server(&self, node: usize) {
        self.nodes[node].signal_server("STOP");
    }

    /// Lets a stopped server go on.
    pub fn thaw_server(&self, node: usize) {
        self.nodes[node].signal_server("CONT");
    }

    /// Hands the part of the primary over to a standby, as `patronictl switchover` does.
    pub fn switch_over(&self) {
        let leader = &self.nodes[self.primary()];
        let order = json!({"leader": leader.name}).to_string();
        let done = leader.send(&Request::post("/switchover", order)).expect("an answer");
        assert_eq!(done.status, 200, "{}", done.text());
    }

    /// The primary of a cluster that is whole.
    #[must_use]
    pub fn primary(&self) -> usize {
        self.find_primary().expect("a primary").0
    }

    /// A standby that commits wait for.
    #[must_use]
    pub fn synchronous_standby(&self) -> usize {
        let (_node, status) = self.find_primary().expect("a primary");
        let standbys = synchronous(&status);
        let is_one = |node: &Node| standbys.contains(&node.name.as_str());
        self.nodes.iter().position(is_one).unwrap_or_else(|| panic!("{status}"))
    }

    /// Number of the timeline of the primary.
    #[must_use]
    pub fn timeline(&self) -> i64 {
        let (_node, status) = self.find_primary().expect("a primary");
        status["timeline"].as_i64().expect("a number")
    }

    /// Waits until a node is the primary on this timeline or a later one.
    pub fn wait_for_primary(&self, timeline_min: i64) {
        self.until("a node is promoted", || {
            self.find_primary().is_some_and(|(_node, status)| {
                status["timeline"].as_i64().is_some_and(|timeline| timeline >= timeline_min)
            })
        });
    }

    /// Waits until two standbys follow a primary on this timeline or a later one. The primary's own list counts: in
    /// that of the members the state of a node that has died stays for long.
    pub fn wait_until_whole(&self, timeline_min: i64) {
        self.until("two standbys follow the primary", || {
            let is_healthy =
                |node: &Node| node.query("/health").is_some_and(|answer| answer.status == 200);
            self.find_primary().is_some_and(|(_node, status)| {
                status["timeline"].as_i64().is_some_and(|timeline| timeline >= timeline_min)
                    && synchronous(&status).len() == NODES - 1
            }) && self.nodes.iter().all(is_healthy)
        });
    }

    /// Runs a statement on the primary, as the superuser.
    fn execute(&self, sql: &str) {
        let url = self.url().replacen("holdfast:", "postgres:", 1);
        let url = url.replacen(&self.password, &self.superuser, 1).replace('?', "/postgres?");
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "--quiet", "--dbname", &url, "--command", sql]);
        drop(Ran::of(&mut psql).ok());
    }

    /// The node whose Patroni answers that it is the primary, and its answer.
    fn find_primary(&self) -> Option<(usize, Value)> {
        self.nodes.iter().enumerate().find_map(|(node, it)| {
            let answer = it.query("/primary").filter(|answer| answer.status == 200)?;
            Some((node, answer.json()))
        })
    }

    /// Shows the last lines of each log.
    #[expect(clippy::print_stderr, reason = "a report for the reader of a failed run")]
    fn show_logs(&self) {
        for file in self
            .nodes
            .iter()
            .flat_map(|node| ["patroni.log", "etcd.log"].map(|it| node.folder.join(it)))
        {
            let log = std::fs::read_to_string(&file).unwrap_or_else(|error| error.to_string());
            let lines: Vec<_> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
            eprintln!("{}:\n{}", file.display(), last.join("\n"));
        }
    }

    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + CHANGE_MAX;
        while !is_so() {
            assert!(Instant::now() < until, "never: {what}: {:?}", self.find_primary());
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Node {
    fn start(&mut self, etcd: Vec<(String, String)>) {
        let mut command = program(ETCD_PROGRAM);
        command.envs(etcd).env("ETCD_DATA_DIR", self.folder.join("etcd"));
        self.etcd = Some(self.spawn(command, "etcd.log"));
        let mut command = program(PATRONI_PROGRAM);
        command.arg(self.folder.join("patroni.yml"));
        self.patroni = Some(self.spawn(command, "patroni.log"));
    }

    fn spawn(&self, mut command: Command, log: &str) -> Child {
        let log = File::options().create(true).append(true).open(self.folder.join(log));
        let log = log.expect("a log");
        command.current_dir(&self.folder).env("HOME", &self.folder).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a log")).stderr(log);
        let process = command.spawn().expect("a program");
        watchdog::started(process.id());
        process
    }

    fn kill(&mut self) {
        // Patroni first: it would start its server again.
        for mut process in [self.patroni.take(), self.etcd.take()].into_iter().flatten() {
            process.kill().expect("it was started here");
            process.wait().expect("it was started here");
            watchdog::ended(process.id());
        }
        if let Some(server) = self.server() {
            kill_server(server);
        }
        self.is_frozen = false;
    }

    /// The first process of the server; `None` if it does not run. The number in the file of a server that has ended
    /// may be another program's by now.
    fn server(&self) -> Option<u32> {
        let data = self.folder.join("data");
        let file = std::fs::read_to_string(data.join("postmaster.pid")).ok()?;
        let process: u32 = file.lines().next()?.parse().ok()?;
        let command = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
        let data = data.to_str().expect("a path of text");
        String::from_utf8_lossy(&command).split('\0').any(|it| it == data).then_some(process)
    }

    fn signal_all(&self, name: &str) {
        for process in [&self.patroni, &self.etcd].into_iter().flatten() {
            watchdog::signal(process.id(), name);
        }
        self.signal_server(name);
    }

    fn signal_server(&self, name: &str) {
        let first = self.server().expect("a running server");
        // Stopped before the others, so that there are no more of them.
        watchdog::signal(first, name);
        children(first).into_iter().for_each(|it| watchdog::signal(it, name));
    }

    /// Answer of its Patroni, if that runs.
    fn query(&self, path: &str) -> Option<Answer> {
        let runs = self.patroni.is_some() && !self.is_frozen;
        runs.then(|| self.send(&Request::get(path)))?
    }

    fn send(&self, request: &Request) -> Option<Answer> {
        request.try_begin(self.api)?.try_answer_until_closed()
    }
}

/// Writes a file that only the user of the servers can read, as Patroni requires.
fn write_secret(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file");
    give(path);
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).expect("a file");
}

impl Drop for Patroni {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.show_logs();
        }
        self.nodes.iter_mut().for_each(Node::kill);
        // The end of its input; it removes the folder.
        drop(self.last_will.stdin.take());
        let removed = self.last_will.wait();
        let is_removed = removed.is_ok_and(|status| status.success()) && !self.folder.exists();
        assert!(is_removed || std::thread::panicking(), "{} is left", self.folder.display());
    }
}
