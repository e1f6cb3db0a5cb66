//! A PostgreSQL server for the tests and the benchmark: one private cluster in a temporary folder, which ends with
//! them. Tests reach it by a socket of that folder, the benchmark as gateways do, by TCP on loopback. Its data has
//! no value.
//!
//! The two purposes differ in what they wait for. A test checks the store's decisions, so its server loses its data
//! with the machine (fsync off) and has no other clients. The benchmark measures the cost of a commit, so its
//! server waits for the disk as an operator's does. PostgreSQL refuses to run as root: if the tests are root's, the
//! cluster belongs to the user `postgres`. It must never be an existing server: all its tables are dropped.

use std::{
    env, fs,
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    scratch,
    shell::{capture, print_line},
};

/// The oldest that the gateway works with.
const VERSION_MIN: u32 = 15;
/// Folder in which Debian keeps one folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Debian's package of the newest version that it has.
const PACKAGE: &str = "postgresql";
/// User that the server runs as if the tests are root's: it refuses to run as root.
const USER: &str = "postgres";
/// In the name of the socket of a server that listens nowhere else.
const PORT: u16 = 5432;
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Data may be lost with the machine, so no commit waits for a disk.
const OF_TESTS: [&str; 5] = [
    "fsync=off",
    "full_page_writes=off",
    "max_connections=900",
    "shared_buffers=64MB",
    "max_wal_size=256MB",
];
/// Every commit waits for the disk, as an operator's does.
const OF_THE_BENCHMARK: [&str; 5] = [
    "fsync=on",
    "full_page_writes=on",
    "max_connections=400",
    "shared_buffers=256MB",
    "max_wal_size=2GB",
];

/// Over the network a client may do no more than the benchmark needs: other users of this machine reach it, too.
const AUTHENTICATION_OF_THE_BENCHMARK: &str =
    "local all all trust\nhost all holdfast_bench 127.0.0.1/32 trust\n";
const ROLE_OF_THE_BENCHMARK: &str =
    "CREATE ROLE holdfast_bench LOGIN CREATEDB; GRANT pg_monitor TO holdfast_bench";

/// Purpose of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Tests,
    Bench,
}

impl Purpose {
    fn settings(self) -> impl Iterator<Item = &'static str> {
        let (own, addresses) = match self {
            Self::Tests => (OF_TESTS, "listen_addresses="),
            Self::Bench => (OF_THE_BENCHMARK, "listen_addresses=127.0.0.1"),
        };
        [addresses, "log_min_messages=fatal"].into_iter().chain(own)
    }
}

/// A running server. It ends when this is dropped, or with this process.
#[derive(Debug)]
pub(crate) struct PostgresServer {
    child: Child,
    folder: PathBuf,
    binaries: PathBuf,
    purpose: Purpose,
    /// Port on which it listens if it does; its socket has this in its name.
    port: u16,
}

impl PostgresServer {
    /// Variables by which tests find it, and the programs to start others.
    pub(crate) fn env(&self) -> [(&'static str, PathBuf); 2] {
        [
            ("HOLDFAST_TEST_POSTGRES", self.url()),
            ("HOLDFAST_TEST_POSTGRES_BINARIES", self.binaries.clone()),
        ]
    }

    /// Starts one, and installs the package first if there is none.
    pub(crate) fn start(purpose: Purpose) -> Result<Self> {
        Self::start_of(found_or_installed()?, purpose)
    }

    /// Starts the server whose programs are in this folder.
    pub(crate) fn start_of(binaries: PathBuf, purpose: Purpose) -> Result<Self> {
        // In a folder for temporary files: the path of a socket is a hundred bytes at most.
        let parent = match purpose {
            Purpose::Tests => scratch::folder()?.to_owned(),
            // Its commits wait for a disk.
            Purpose::Bench => env::temp_dir(),
        };
        let folder = parent.join(format!("holdfast-postgres-{}", std::process::id()));
        fs::create_dir(&folder).context("no folder for a database server")?;
        let started = start_in(&binaries, &folder, purpose);
        if started.is_err() {
            fs::remove_dir_all(&folder).context("the folder of a database server stays")?;
        }
        let (child, port) = started?;
        // From here on its drop ends it, also if it never answers.
        let mut server = Self { child, folder, binaries, purpose, port };
        server.wait()?;
        if purpose == Purpose::Bench {
            server.execute(ROLE_OF_THE_BENCHMARK)?;
        }
        print_line(&format!(
            "PostgreSQL: {} in {}",
            server.binaries.display(),
            server.folder.display()
        ))?;
        Ok(server)
    }

    /// The URL of the server, without a database.
    fn url(&self) -> PathBuf {
        let Self { folder, port, .. } = self;
        match self.purpose {
            Purpose::Tests => {
                format!("postgres://holdfast@localhost:{port}?host={}", folder.display()).into()
            }
            Purpose::Bench => format!("postgres://holdfast_bench@127.0.0.1:{port}").into(),
        }
    }

    /// Runs statements as the server's owner.
    pub(crate) fn execute(&self, sql: &str) -> Result<()> {
        let mut psql = self.client("psql");
        psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]);
        psql.arg("-h").arg(&self.folder).arg("-p").arg(self.port.to_string());
        let captured = capture(psql.args(["-U", "holdfast", "-d", "postgres", "-c", sql]))?;
        ensure!(captured.status.success(), "{sql}: {}", captured.last_words());
        Ok(())
    }

    /// A program of the client: the server's own, or the one on the path if it came without.
    fn client(&self, name: &str) -> Command {
        let own = self.binaries.join(name);
        if own.is_file() { Command::new(own) } else { Command::new(name) }
    }

    fn wait(&mut self) -> Result<()> {
        let until = Instant::now() + START_TIMEOUT;
        loop {
            let mut ready = self.client("pg_isready");
            ready.arg("-q").arg("-h").arg(&self.folder).arg("-p").arg(self.port.to_string());
            if capture(&mut ready)?.status.success() {
                return Ok(());
            }
            let ended = self.child.try_wait().context("the database server cannot be asked for")?;
            if ended.is_some() {
                let log = fs::read_to_string(self.folder.join("log"));
                let log = log.context("the database server has ended, and left no log")?;
                bail!("the database server on port {} has ended: {}", self.port, log.trim());
            }
            ensure!(Instant::now() < until, "the database server does not answer");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            fs::remove_dir_all(&self.folder).ok();
            return;
        }
        // At once, but with its shared memory given back. Its other remains block no later server.
        let quit = capture(Command::new("kill").arg("-QUIT").arg(self.child.id().to_string()));
        if quit.is_err() {
            self.child.kill().ok();
        }
        self.child.wait().ok();
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// The folder with the programs of a server that is new enough; installed if there is none.
pub(crate) fn found_or_installed() -> Result<PathBuf> {
    if let Some(binaries) = binaries() {
        return Ok(binaries);
    }
    install()?;
    binaries().context("there is no PostgreSQL 15 or later, nor a package of it")
}

/// The folder with the programs of a server that is new enough.
fn binaries() -> Option<PathBuf> {
    let on_path = env::var_os("PATH")?;
    let on_path = env::split_paths(&on_path).collect::<Vec<_>>();
    let of_debian = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let of_debian = of_debian.map(|version| version.path().join("bin"));
    let found = on_path.into_iter().chain(of_debian);
    // On the path first: the developer who put one there chose it.
    let found = found.filter(|folder| version(folder) >= Some(VERSION_MIN));
    // Links may lead to some of the programs only: a folder with these has all.
    found
        .filter_map(|folder| {
            fs::canonicalize(folder.join("postgres")).ok()?.parent().map(Into::into)
        })
        .next()
}

fn version(folder: &Path) -> Option<u32> {
    release(folder)?.split('.').next()?.parse().ok()
}

/// Release of the server in this folder, such as `15.18`; `None` if there is none.
pub(crate) fn release(folder: &Path) -> Option<String> {
    let server = folder.join("postgres");
    if !server.is_file() || !folder.join("initdb").is_file() {
        return None;
    }
    let captured = capture(Command::new(server).arg("--version")).ok()?;
    let is_number = |word: &&str| word.starts_with(|it: char| it.is_ascii_digit());
    captured.stdout.split_whitespace().find(is_number).map(str::to_owned)
}

fn install() -> Result<()> {
    print_line(&format!("PostgreSQL: installing Debian's package {PACKAGE}"))?;
    let mut apt = Command::new("apt-get");
    let captured = capture(
        apt.args(["install", "--yes", "--quiet", "--no-install-recommends", PACKAGE])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )?;
    ensure!(captured.status.success(), "apt-get install {PACKAGE}: {}", captured.last_words());
    Ok(())
}

/// A server cannot choose a free one itself.
fn free_port() -> Result<u16> {
    // Free now, which may change before the server binds it: then the start fails, and reports the port.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr().context("a port without a number")?.port())
}

fn start_in(binaries: &Path, folder: &Path, purpose: Purpose) -> Result<(Child, u16)> {
    let user = user()?;
    if let Some(user) = user {
        chown(folder, Some(user.id), Some(user.group))
            .context("the folder cannot be given away")?;
    }
    let data = folder.join("data");
    let mut initdb = as_user(user, binaries.join("initdb"));
    initdb.args(["--no-sync", "--auth=trust", "--username=holdfast"]);
    // Sorted by bytes, as SQLite does: the laws hold for both.
    initdb.args(["--encoding=UTF8", "--locale=C"]).arg("-D").arg(&data).current_dir(folder);
    let captured = capture(&mut initdb)?;
    ensure!(captured.status.success(), "initdb: {}", captured.last_words());
    let port = match purpose {
        Purpose::Tests => PORT,
        Purpose::Bench => {
            fs::write(data.join("pg_hba.conf"), AUTHENTICATION_OF_THE_BENCHMARK)
                .context("the authentication of a database server cannot be set")?;
            free_port()?
        }
    };
    let mut server = as_user(user, binaries.join("postgres"));
    server.arg("-D").arg(&data).arg("-k").arg(folder).current_dir(folder);
    server.arg("-p").arg(port.to_string());
    for setting in purpose.settings() {
        server.arg("-c").arg(setting);
    }
    let log = fs::File::create(folder.join("log")).context("no log for a database server")?;
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let child = server.spawn().context("the database server cannot be started")?;
    Ok((child, port))
}

#[derive(Debug, Clone, Copy)]
struct User {
    id: u32,
    group: u32,
}

/// User that the server runs as; `None` for the user of the tests.
fn user() -> Result<Option<User>> {
    let id = |option: &str, user: &[&str]| -> Result<u32> {
        // By a program: the standard library knows no users, and this crate has no unsafe code.
        let captured = capture(Command::new("id").arg(option).args(user))?;
        captured
            .stdout
            .trim()
            .parse()
            .with_context(|| format!("id {option}: {}", captured.last_words()))
    };
    if id("-u", &[])? != 0 {
        return Ok(None);
    }
    Ok(Some(User { id: id("-u", &[USER])?, group: id("-g", &[USER])? }))
}

/// A program as the user of the servers.
pub(crate) fn as_server(program: &Path) -> Result<Command> {
    Ok(as_user(user()?, program.to_owned()))
}

/// A program that ends with this process, however that ends.
fn as_user(user: Option<User>, program: PathBuf) -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=QUIT");
    if let Some(User { id, group }) = user {
        command.arg(format!("--reuid={id}")).arg(format!("--regid={group}")).arg("--clear-groups");
    }
    command.arg(program);
    command
}
