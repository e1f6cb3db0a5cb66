//! PostgreSQL servers of a test's own, to be killed, started again and replaced by their standby. They listen on
//! sockets in their folders and on no network. No write waits for a disk: the writes of a process stay when the
//! process dies, and only that is tried here.

use std::fs::File;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{PATIENCE, Ran, watchdog};

/// Folder of the programs of a server.
const BINARIES: &str = "HOLDFAST_TEST_POSTGRES_BINARIES";
/// User of a server if the tests are root's: it refuses to run as root.
const USER: &str = "postgres";
const SETTINGS: [&str; 5] = [
    "listen_addresses=",
    "fsync=off",
    "full_page_writes=off",
    "max_connections=100",
    "shared_buffers=32MB",
];
const LOOK: Duration = Duration::from_millis(50);

/// A server that can be killed, with or without another one that has all it has.
#[derive(Debug)]
pub struct Cluster {
    primary: Server,
    standby: Option<Server>,
    folder: TempDir,
    /// Servers that were ever made.
    made: u32,
}

/// One server and its data.
#[derive(Debug)]
struct Server {
    folder: PathBuf,
    env: Vec<(&'static str, PathBuf)>,
    process: Option<Child>,
}

impl Cluster {
    /// A server that is empty, with these variables in its environment.
    #[must_use]
    pub fn start_with(env: Vec<(&'static str, PathBuf)>) -> Self {
        let folder = TempDir::with_prefix("holdfast-cluster-").expect("a folder");
        give(folder.path());
        let data = folder.path().join("server-1");
        std::fs::create_dir(&data).expect("a folder");
        give(&data);
        let mut initdb = program("initdb");
        initdb.args(["--no-sync", "--auth=trust", "--username=holdfast"]);
        initdb.args(["--encoding=UTF8", "--locale=C"]).arg("-D").arg(data.join("data"));
        drop(Ran::of(initdb.current_dir(&data)).ok());
        Self { primary: Server::start(data, env), standby: None, folder, made: 1 }
    }

    /// The socket of the server that takes what is written.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.primary.folder.join(".s.PGSQL.5432")
    }

    /// Folder of that socket.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.primary.folder
    }

    /// Folder of the socket of the standby.
    #[must_use]
    pub fn standby_folder(&self) -> &Path {
        &self.standby.as_ref().expect("it has a standby").folder
    }

    /// Ends every process of the server at once, as a crash of it does.
    pub fn kill(&mut self) {
        self.primary.kill();
    }

    /// The same of the standby.
    pub fn kill_standby(&mut self) {
        self.standby.as_mut().expect("it has a standby").kill();
    }

    /// Starts the standby again with what it has.
    pub fn start_standby_again(&mut self) {
        self.standby.as_mut().expect("it has a standby").restart();
    }

    /// Starts it again with what it has.
    pub fn start_again(&mut self) {
        self.primary.restart();
    }

    /// Runs a statement on the server that takes what is written.
    #[track_caller]
    pub fn execute(&self, sql: &str) {
        drop(self.primary.execute(sql).ok());
    }

    /// Creates a standby; from then on no transaction is committed without it.
    pub fn follow(&mut self) {
        self.made += 1;
        let folder = self.folder.path().join(format!("server-{}", self.made));
        std::fs::create_dir(&folder).expect("a folder");
        give(&folder);
        let mut copy = program("pg_basebackup");
        copy.arg("-h").arg(&self.primary.folder).args(["-U", "holdfast", "-D"]);
        copy.arg(folder.join("data")).args(["-R", "-X", "stream", "-c", "fast", "--no-sync"]);
        drop(Ran::of(copy.current_dir(&folder)).ok());
        self.standby = Some(Server::start(folder, self.primary.env.clone()));
        drop(self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'"));
        drop(self.primary.execute("SELECT pg_reload_conf()"));
        let sync = "SELECT count(*) FROM pg_stat_replication
            WHERE state = 'streaming' AND sync_state = 'sync'";
        until("the standby follows", || self.primary.execute(sync).ok().trim() == "1");
    }

    /// Has the standby take the place of its primary, killed or not, which is returned as it is: a live one waits
    /// for a standby with each commit.
    pub fn switch_over(&mut self) -> Old {
        let standby = self.standby.take().expect("it has a standby");
        drop(standby.execute("SELECT pg_promote(true, 30)"));
        let is_primary = "SELECT NOT pg_is_in_recovery()";
        until("it is promoted", || standby.execute(is_primary).ok().trim() == "t");
        Old(std::mem::replace(&mut self.primary, standby))
    }
}

/// A server that was replaced. When this is dropped, it is killed and its files are removed.
#[derive(Debug)]
pub struct Old(Server);

impl Old {
    /// Starts it again as the primary that it was; from then on it commits without a standby.
    pub fn start_again_alone(&mut self) {
        self.0.restart();
        drop(self.0.execute("ALTER SYSTEM SET synchronous_standby_names = ''").ok());
        drop(self.0.execute("SELECT pg_reload_conf()").ok());
    }
}

impl Drop for Old {
    fn drop(&mut self) {
        self.0.kill();
        let gone = std::fs::remove_dir_all(&self.0.folder);
        assert!(gone.is_ok() || std::thread::panicking(), "nobody writes there any more: {gone:?}");
    }
}

impl Server {
    fn start(folder: PathBuf, env: Vec<(&'static str, PathBuf)>) -> Self {
        let mut server = Self { folder, env, process: None };
        server.restart();
        server
    }

    fn restart(&mut self) {
        let mut command = program("postgres");
        command.arg("-D").arg(self.folder.join("data")).arg("-k").arg(&self.folder);
        for setting in SETTINGS {
            command.arg("-c").arg(setting);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let log = File::options().create(true).append(true).open(self.folder.join("log"));
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.stderr(log.expect("a log")).spawn().expect("a server");
        watchdog::started(process.id());
        self.process = Some(process);
        until("the server answers", || {
            let mut ready = program("pg_isready");
            Ran::of(ready.arg("-q").arg("-h").arg(&self.folder)).code == Some(0)
        });
    }

    fn kill(&mut self) {
        let Some(mut first) = self.process.take() else { return };
        kill_server(first.id());
        first.wait().expect("it was started here");
        watchdog::ended(first.id());
    }

    fn execute(&self, sql: &str) -> Ran {
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--host"]);
        psql.arg(&self.folder).args(["--username=holdfast", "--dbname=postgres", "--command", sql]);
        Ran::of(&mut psql)
    }
}

/// Ends every process of a server, of which this is the first one. That is stopped before the others: it starts no
/// more of them, and does not see them die.
pub(crate) fn kill_server(first: u32) {
    watchdog::signal(first, "STOP");
    let mut processes = children(first);
    processes.push(first);
    for process in &processes {
        watchdog::signal(*process, "KILL");
    }
    // Their shared memory is free once none of them is left.
    until("the server's processes have ended", || processes.iter().all(|it| has_ended(*it)));
}

/// Children of a process.
pub(crate) fn children(process: u32) -> Vec<u32> {
    let children = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(children).expect("a running process");
    children.split_whitespace().map(|it| it.parse().expect("a process")).collect()
}

/// True if only the entry for its parent is left of a process.
fn has_ended(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.map_or(true, |stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(LOOK);
    }
}

/// A folder is the server's own.
pub(crate) fn give(folder: &Path) {
    if let Some((user, group)) = user() {
        chown(folder, Some(user), Some(group)).expect("root may give it away");
    }
}

/// User that a server runs as; `None` for the user of the tests.
fn user() -> Option<(u32, u32)> {
    let id = |arguments: &[&str]| -> u32 {
        Ran::of(Command::new("id").args(arguments)).ok().trim().parse().expect("a number")
    };
    (id(&["-u"]) == 0).then(|| (id(&["-u", USER]), id(&["-g", USER])))
}

/// A server's program, which ends with this process.
fn program(name: &str) -> Command {
    as_user(&binaries().join(name))
}

/// Folder of the programs of a server.
#[expect(clippy::disallowed_methods, reason = "tests have no configuration to read it from")]
pub(crate) fn binaries() -> PathBuf {
    let binaries = std::env::var(BINARIES);
    binaries.expect("HOLDFAST_TEST_POSTGRES_BINARIES: `cargo xtask test tests` sets it").into()
}

/// A program as the user of a server, which ends with this process.
pub(crate) fn as_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=KILL");
    if let Some((user, group)) = user() {
        command.arg(format!("--reuid={user}")).arg(format!("--regid={group}"));
        command.arg("--clear-groups");
    }
    command.arg(program);
    command
}
