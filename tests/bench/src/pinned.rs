//! Processes on their cores: the gateway has a core for itself, everything else shares another one.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::LISTENS;

/// Cores of this machine: apart where processes can be held on a core of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    Apart,
    /// A single core, or no `taskset`.
    Shared,
}

/// Role of a process, which decides its core.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CoreRole {
    /// Target of the measurement.
    Target,
    /// The upstream or the load.
    Around,
}

impl Cores {
    pub(crate) fn find() -> Self {
        let mut pinned = Command::new("taskset");
        pinned.args(["-c", "0,1", "true"]).stderr(Stdio::null());
        let pinned = pinned.status().is_ok_and(|status| status.success());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if pinned && cores > 1 { Self::Apart } else { Self::Shared }
    }

    /// A command of this program in its place. The process is the program's own.
    pub(crate) fn command(self, place: CoreRole, program: &OsStr) -> Command {
        match self {
            Self::Shared => Command::new(program),
            Self::Apart => {
                let mut command = Command::new("taskset");
                command.args(["-c", place.core()]).arg(program);
                command
            }
        }
    }

    /// Holds a process that runs, and whatever it starts from now on, in a place.
    pub(crate) fn hold(self, place: CoreRole, process: u32) {
        if self == Self::Apart {
            let mut taskset = Command::new("taskset");
            taskset.args(["-a", "-c", "-p", place.core(), &process.to_string()]);
            let held = taskset.stdout(Stdio::null()).status().expect("taskset");
            assert!(held.success(), "process {process} is not ours to hold");
        }
    }

    /// The same command in its place.
    pub(crate) fn place(self, place: CoreRole, given: &Command) -> Command {
        let mut command = self.command(place, given.get_program());
        wrap(&mut command, given);
        command
    }
}

/// Gives a command that already names its program the rest of another one: its arguments, its environment
/// and nothing else of it, and its folder.
pub(crate) fn wrap(command: &mut Command, given: &Command) {
    command.args(given.get_args()).env_clear();
    let variables = given.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.envs(variables);
    if let Some(folder) = given.get_current_dir() {
        command.current_dir(folder);
    }
}

impl CoreRole {
    const fn core(self) -> &'static str {
        match self {
            Self::Target => "0",
            Self::Around => "1",
        }
    }
}

/// A process of our own, ended when it is dropped.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, stdin, lines }
    }

    /// Starts a process of this program that listens, and waits until it does.
    pub(crate) fn listening(mut command: Command, arguments: &[OsString]) -> (Self, SocketAddr) {
        command.args(arguments);
        let mut peer = Self::start(command);
        let line = peer.line();
        let address = line.strip_prefix(LISTENS).and_then(|address| address.parse().ok());
        (peer, address.unwrap_or_else(|| panic!("it does not listen: {line}")))
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> String {
        self.lines.next().expect("it ended early").expect("text is printed")
    }

    /// Gives it a line.
    pub(crate) fn tell(&mut self) {
        self.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("it listens");
    }

    /// Waits until it ends by itself, once nothing more is said to it.
    pub(crate) fn finish(mut self) {
        self.stdin = None;
        self.child.wait().expect("it was started here");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The kind of file system that a folder is on, as the kernel names it.
pub(crate) fn file_system(folder: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let folder = folder.canonicalize().ok()?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let around = mounts.filter(|(point, _kind)| folder.starts_with(point));
    around.max_by_key(|(point, _kind)| point.len()).map(|(_point, kind)| kind.to_owned())
}
