//! A running gateway: started, listened to, ended by signals, and ended for sure when it is dropped.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{Account, Answer, PATIENCE, Request, watchdog};

const LISTENS: &str = "holdfast listens on http://";
/// Line of a sidecar in its place.
pub(crate) const SIDECAR_LISTENS: &str = "holdfast sidecar listens on http://";
const ADMIN_LISTENS: &str = "holdfast admin listens on http://";
const CONSOLE_LISTENS: &str = "holdfast console listens on http://";
const NODE_LISTENS: &str = "holdfast node listens on http://";

/// A process that serves. Dropping it kills it.
#[derive(Debug)]
pub struct Gateway {
    child: Child,
    printed: Arc<Output>,
    reader: Option<JoinHandle<()>>,
    stderr: PathBuf,
    address: SocketAddr,
    has_ended: bool,
    _folder: Arc<TempDir>,
}

/// The lines that a process has printed, and whether there will be more.
#[derive(Debug, Default)]
struct Output {
    lines: Mutex<(Vec<String>, bool)>,
    changed: Condvar,
}

impl Output {
    fn push(&self, line: String) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).0.push(line);
        self.changed.notify_all();
    }

    fn end(&self) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.changed.notify_all();
    }

    /// Waits until `found` returns a value or the output has ended.
    fn wait<T>(&self, found: impl Fn(&[String], bool) -> Option<T>) -> Option<T> {
        let until = Instant::now() + PATIENCE;
        let mut guard = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let (lines, ended) = &*guard;
            if let Some(found) = found(lines, *ended) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if *ended || left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(guard, left);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Gateway {
    pub(crate) fn start(command: Command, folder: Arc<TempDir>) -> Self {
        Self::start_as(command, folder, LISTENS)
    }

    /// The same for a command with another line about its address.
    pub(crate) fn start_as(mut command: Command, folder: Arc<TempDir>, listens: &str) -> Self {
        let name = format!("serve-{}", crate::request_key());
        let stderr = folder.path().join(format!("{name}.stderr.log"));
        let log = File::create(&stderr).expect("a log");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        watchdog::started(child.id());
        let printed = Arc::new(Output::default());
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut copy = {
            let copy = folder.path().join(format!("{name}.stdout.log"));
            File::create(copy).expect("a log")
        };
        let sink = Arc::clone(&printed);
        let reader = std::thread::spawn(move || {
            for line in out.lines() {
                let line = line.expect("text is printed");
                writeln!(copy, "{line}").expect("room for a log");
                sink.push(line);
            }
            sink.end();
        });
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let reader = Some(reader);
        let mut gateway = Self {
            child,
            printed,
            reader,
            stderr,
            address: nowhere,
            has_ended: false,
            _folder: folder,
        };
        gateway.address = gateway.address_after(listens);
        gateway
    }

    /// Address of the public API.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address of the operator's listener.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        self.address_after(ADMIN_LISTENS)
    }

    /// Address of the holders' pages.
    #[must_use]
    pub fn console_address(&self) -> SocketAddr {
        self.address_after(CONSOLE_LISTENS)
    }

    /// Address for other nodes.
    #[must_use]
    pub fn node_address(&self) -> SocketAddr {
        self.address_after(NODE_LISTENS)
    }

    /// The base URL for SDKs.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Waits for a printed line that begins so, and gives the rest of it.
    #[must_use]
    pub fn printed_after(&self, beginning: &str) -> String {
        let found = self.printed.wait(|lines, _ended| {
            lines
                .iter()
                .find_map(|line| line.trim_start().strip_prefix(beginning).map(str::to_owned))
        });
        found.unwrap_or_else(|| panic!("never printed: {beginning}\n{}", self.said()))
    }

    /// Everything that has been printed so far.
    #[must_use]
    pub fn printed(&self) -> String {
        let lines = self.printed.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.0.join("\n")
    }

    /// Log of the process so far.
    #[must_use]
    pub fn said(&self) -> String {
        let log = std::fs::read(&self.stderr).expect("a log");
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The process's number.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// True if an armed step has stopped a thread of the process.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.said().lines().any(|line| line.starts_with("failpoint ") && line.ends_with(" reached"))
    }

    fn address_after(&self, beginning: &str) -> SocketAddr {
        self.printed_after(beginning).trim().parse().expect("an address")
    }

    /// Sends a request to the public API.
    #[must_use]
    pub fn send(&self, request: &Request) -> Answer {
        request.send(self.address)
    }

    /// Requests a path as this account.
    #[must_use]
    pub fn get(&self, account: &Account, path: &str) -> Answer {
        self.send(&Request::get(path).bearer(&account.key))
    }

    /// Posts a chat completion as this account.
    #[must_use]
    pub fn complete(&self, account: &Account, request_key: &str, body: &str) -> Answer {
        self.send(&Request::completion(&account.key, request_key, body))
    }

    /// Signals the process to end (SIGTERM) and goes on at once.
    pub fn terminate(&self) {
        watchdog::signal(self.child.id(), "TERM");
    }

    /// Signals the process to read its configuration again (SIGHUP) and goes on at once.
    pub fn hang_up(&self) {
        watchdog::signal(self.child.id(), "HUP");
    }

    /// Stops the whole process (SIGSTOP), and waits until it stands: to others it looks dead.
    pub fn freeze(&self) {
        let process = self.child.id();
        watchdog::signal(process, "STOP");
        let until = Instant::now() + PATIENCE;
        while !watchdog::stands(process) {
            assert!(Instant::now() < until, "it does not stop\n{}", self.said());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets a stopped process go on (SIGCONT), as if no time had passed for it.
    pub fn thaw(&self) {
        watchdog::signal(self.child.id(), "CONT");
    }

    /// Waits until the process has ended by itself.
    #[must_use]
    pub fn wait(mut self) -> ExitStatus {
        let ended = self.printed.wait(|_lines, ended| ended.then_some(()));
        assert!(ended.is_some(), "it does not end\n{}", self.said());
        self.reap()
    }

    /// Signals the process to end and waits until it has, in order.
    pub fn stop(self) {
        self.terminate();
        let said = self.stderr.clone();
        let status = self.wait();
        let log = std::fs::read_to_string(said).unwrap_or_default();
        assert_eq!(status.code(), Some(0), "{log}");
    }

    /// Ends the process as a power cut does (SIGKILL).
    pub fn kill(mut self) {
        self.end();
    }

    /// The same, and its log stays readable.
    pub fn kill_in_place(&mut self) {
        self.end();
    }

    fn end(&mut self) {
        if !self.has_ended {
            self.child.kill().expect("it was started here");
            self.reap();
        }
    }

    fn reap(&mut self) -> ExitStatus {
        let status = self.child.wait().expect("it was started here");
        watchdog::ended(self.child.id());
        self.has_ended = true;
        if let Some(reader) = self.reader.take() {
            drop(reader.join());
        }
        status
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.end();
        if std::thread::panicking() {
            show(&self.said());
        }
    }
}

/// Shows the log of a gateway whose test has failed.
#[expect(clippy::print_stderr, reason = "what the test runner shows of a failed test")]
fn show(log: &str) {
    eprintln!("the gateway's log:\n{log}");
}
