//! The balancer that the project ships files for: HAProxy as a process of a test, on a socket that it inherits. A test
//! gives it a shipped file with the addresses of its own gateways or database servers, and speaks with it over its
//! socket of statistics.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use socket2::Socket;

use crate::deployment::RESOLVED;
use crate::{PATIENCE, watchdog};

/// The program; its libraries are in the same folder if it was unpacked and not installed.
const HAPROXY: &str = "HOLDFAST_TEST_HAPROXY";

/// A running balancer. Dropping it ends it.
#[derive(Debug)]
pub struct HaProxy {
    process: Child,
    address: SocketAddr,
    folder: tempfile::TempDir,
}

/// A shipped file of the balancer on its way to the addresses of a test.
#[derive(Debug)]
pub struct BalancerFile(String);

impl BalancerFile {
    /// Replaces a text that the file has once, and panics if it has not.
    #[must_use]
    pub fn replace(self, shipped: &str, here: &str) -> Self {
        let Self(text) = self;
        assert_eq!(text.matches(shipped).count(), 1, "{shipped} is not in haproxy.cfg once");
        Self(text.replace(shipped, here))
    }
}

impl HaProxy {
    /// Starts it with the shipped file of gateways, in which `edit` names those of a test. Sockets and resolvers are
    /// replaced here.
    #[must_use]
    pub fn start(shipped: &str, edit: impl FnOnce(BalancerFile) -> BalancerFile) -> Self {
        let resolvers = "resolvers names\n    nameserver docker 127.0.0.11:53\n    hold valid 1s\n";
        let file = BalancerFile(shipped.replace(&format!(" {RESOLVED}"), ""));
        Self::run(edit(file.replace(resolvers, "")), "bind :8080\n")
    }

    /// Starts it with the shipped file of database servers, which has the addresses of a test already.
    #[must_use]
    pub fn before_servers(file: String) -> Self {
        Self::run(BalancerFile(file), "bind :5000\n")
    }

    /// Starts it with a file, whose only frontend binds so.
    fn run(file: BalancerFile, bind: &str) -> Self {
        let program = std::env::var_os(HAPROXY).map(PathBuf::from);
        let program = program.expect("HOLDFAST_TEST_HAPROXY: `cargo xtask test tests` sets it");
        let folder = tempfile::tempdir().expect("a folder");
        let listener =
            TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("an address");
        let address = listener.local_addr().expect("an address");
        // Inherited by the child that is started now.
        let socket = Socket::from(listener);
        socket.set_cloexec(false).expect("a socket that is inherited");
        let stats = folder.path().join("stats");
        let stats = format!("\nglobal\n    stats socket {} level admin\n", stats.display());
        let file = file
            .replace("\nglobal\n", &stats)
            .replace(bind, &format!("bind fd@{}\n", socket.as_raw_fd()));
        let config = folder.path().join("haproxy.cfg");
        std::fs::write(&config, file.0).expect("a file");
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let mut command = Command::new(&program);
        command.arg("-db").arg("-f").arg(&config).stdin(Stdio::null()).stderr(Stdio::null());
        command.stdout(log).env("LD_LIBRARY_PATH", libraries(&program));
        let process = command.spawn().expect("the balancer");
        watchdog::started(process.id());
        Self { process, address, folder }
    }

    /// Address of its frontend.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until so many servers of a backend get requests.
    pub fn wait_for(&self, backend: &str, servers: usize) {
        let until = Instant::now() + PATIENCE;
        let is_up = |line: &&str| line.starts_with(backend) && line.contains(",UP,");
        // Servers only.
        let command = format!("show stat {backend} 4 -1");
        while self.say(&command).lines().filter(is_up).count() != servers {
            assert!(Instant::now() < until, "the balancer does not see {servers} servers");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sends it a command, and returns the answer.
    #[must_use]
    pub fn say(&self, command: &str) -> String {
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

/// Folder of the libraries of a program that was unpacked; no new one for one that is installed.
#[must_use]
pub fn libraries(program: &Path) -> PathBuf {
    let root = program.ancestors().nth(2).expect("a folder").join("lib");
    let folders = std::fs::read_dir(&root).into_iter().flatten().flatten();
    let found = folders.map(|it| it.path()).find(|it| it.join("liblua5.3.so.0").exists());
    found.unwrap_or(root)
}
