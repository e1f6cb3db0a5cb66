//! A database of its own on the PostgreSQL server of the tests, dropped afterwards. Tests that need one are named
//! `postgres_*`: without a server they are skipped, and the reason is printed.

use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use crate::site::binary;
use crate::{Config, PATIENCE, Ran, Site};

/// The URL of a server whose role may make databases, without one.
const SERVER: &str = "HOLDFAST_TEST_POSTGRES";
/// Folder of the programs of the server.
const BINARIES: &str = "HOLDFAST_TEST_POSTGRES_BINARIES";
/// Server secret of every node of a test.
const SECRET: &str = "a-server-secret-of-the-tests-of-nodes";

/// Wallets whose rows are not what the book makes of them, added up here from the single rows: what was
/// paid in and moved, what running operations hold, what completed ones cost, one settlement each. The
/// low three bits of a leg: 0 hold, 1 settle, 2 rest, 3 release, 4 lapse.
const MISMATCHES: &str = "
WITH moved AS (
    SELECT o.wallet_id AS id,
        sum(CASE t.leg & 7 WHEN 0 THEN -t.amount WHEN 1 THEN 0 ELSE t.amount END) AS available,
        sum(CASE t.leg & 7 WHEN 0 THEN t.amount ELSE -t.amount END) AS held,
        coalesce(sum(t.amount) FILTER (WHERE t.leg & 7 = 1), 0) AS revenue,
        count(DISTINCT t.op_seq) FILTER (WHERE t.leg & 7 = 1) AS charged,
        count(*) FILTER (WHERE t.leg & 7 = 1) AS charges
    FROM transfers AS t JOIN operations AS o ON o.seq = t.op_seq GROUP BY o.wallet_id),
posted AS (
    SELECT wallet_id AS id, sum(amount) AS paid_in FROM postings GROUP BY wallet_id),
ran AS (
    SELECT wallet_id AS id,
        coalesce(sum(hold) FILTER (WHERE phase IN ('leased', 'recorded')), 0) AS held,
        coalesce(sum(charge) FILTER (WHERE phase = 'completed'), 0) AS charged
    FROM operations GROUP BY wallet_id)
SELECT w.name, w.available, w.held, posted.*, moved.*, ran.*
FROM wallets AS w LEFT JOIN moved ON moved.id = w.id LEFT JOIN posted ON posted.id = w.id
    LEFT JOIN ran ON ran.id = w.id
WHERE w.available <> coalesce(posted.paid_in, 0) + coalesce(moved.available, 0)
    OR w.available + w.held <> coalesce(posted.paid_in, 0) - coalesce(ran.charged, 0)
    OR w.held <> coalesce(moved.held, 0) OR w.held <> coalesce(ran.held, 0)
    OR coalesce(moved.revenue, 0) <> coalesce(ran.charged, 0) OR moved.charges <> moved.charged";

/// Transfers of no known operation.
const STRAYS: &str = "SELECT count(*) FROM transfers
    WHERE NOT EXISTS (SELECT FROM operations WHERE operations.seq = transfers.op_seq)";

/// A database that is empty at first.
#[derive(Debug)]
pub struct Database {
    /// The URL of its server.
    server: String,
    name: String,
}

impl Database {
    /// Makes one on the server of the tests.
    #[must_use]
    pub fn make() -> Self {
        Self::make_on(server())
    }

    /// Makes one on the server of the tests that is migrated: a copy of the one that the first test has migrated.
    #[must_use]
    pub fn migrated() -> Self {
        let server = server();
        let template = template(&server);
        Self::like(&template, server, format!("e2e_{}", name()))
    }

    /// Makes one on the server at this URL.
    #[must_use]
    pub fn make_on(server: String) -> Self {
        Self::like("template1", server, format!("e2e_{}", name()))
    }

    fn like(template: &str, server: String, name: String) -> Self {
        let database = Self { server, name };
        let make =
            format!("CREATE DATABASE {} TEMPLATE {template} STRATEGY FILE_COPY", database.name);
        drop(database.run("postgres", &make).ok());
        database
    }

    /// The configuration of a node that keeps everything in here.
    #[must_use]
    pub fn configure(&self, config: Config) -> Config {
        config.set("database", "url", &format!("\"{}\"", self.url())).set(
            "server",
            "secrets",
            &format!("[\"{SECRET}\"]"),
        )
    }

    /// The same, as this role and not as the one that made the database.
    #[must_use]
    pub fn configure_as(&self, role: &Role<'_>, config: Config) -> Config {
        let url = self.url();
        let (scheme, rest) = url.split_once("://").expect("a URL");
        let (_user, place) = rest.split_once('@').expect("a role in the URL of the server");
        let url = format!("\"{scheme}://{}@{place}\"", role.name);
        self.configure(config).set("database", "url", &url)
    }

    /// Creates a role that may only log in.
    #[track_caller]
    #[must_use]
    pub fn make_role(&self) -> Role<'_> {
        let role = Role { database: self, name: format!("role_{}", name()) };
        drop(self.execute(&format!("CREATE ROLE {} LOGIN", role.name)));
        role
    }

    /// Address of the database, as a configuration names it.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(&self.name)
    }

    /// Runs statements as another program would: the rows, columns between `|`.
    #[track_caller]
    #[must_use]
    pub fn execute(&self, sql: &str) -> Vec<String> {
        self.execute_within(sql, PATIENCE)
    }

    /// The same for statements that may take longer than others.
    #[track_caller]
    #[must_use]
    pub fn execute_within(&self, sql: &str, patience: Duration) -> Vec<String> {
        let ran = Ran::within(&mut self.psql(&self.name, sql), patience);
        ran.ok().lines().map(str::to_owned).collect()
    }

    /// All of it as SQL that `psql` reads: tables, rows, constraints and the state of sequences.
    #[track_caller]
    #[must_use]
    pub fn dump(&self) -> String {
        // A dump is refused by a program that is older than the server, so it is the server's own if there is one.
        let own = std::env::var_os(BINARIES).map(|it| Path::new(&it).join("pg_dump"));
        let program = own.filter(|it| it.is_file()).unwrap_or_else(|| "pg_dump".into());
        let mut dump = Command::new(program);
        dump.args(["--no-owner", "--no-privileges", "--dbname", &self.url()]);
        let text = Ran::of(&mut dump).ok();
        // Only the newest releases of `psql` have these commands; comments repeat the statement below them.
        let is_kept = |line: &&str| {
            !["\\restrict ", "\\unrestrict ", "--"].iter().any(|it| line.starts_with(it))
                && !line.is_empty()
        };
        text.lines().filter(is_kept).fold(String::new(), |text, line| text + line + "\n")
    }

    /// Fills it, as long as it is empty, from a file of [`Self::dump`].
    #[track_caller]
    pub fn restore(&self, dump: &Path) {
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--single-transaction"]);
        psql.arg("--file").arg(dump).args(["--dbname", &self.url()]);
        drop(Ran::of(&mut psql).ok());
    }

    /// Adds the book up by itself and compares, at any moment: it must always be right.
    #[track_caller]
    pub fn check_book(&self) {
        assert_eq!(self.execute(MISMATCHES), Vec::<String>::new(), "the book does not add up");
        assert_eq!(self.execute(STRAYS), ["0"], "transfers of no operation");
    }

    /// A session that has begun with these statements and keeps what they lock, until it is dropped.
    #[must_use]
    pub fn session(&self, sql: &str) -> Session {
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", &self.url()]);
        let started = psql.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let psql = started.expect("psql starts");
        let mut input = psql.stdin.as_ref().expect("it was asked for");
        input.write_all(sql.as_bytes()).expect("psql reads");
        Session { psql }
    }

    /// Ends every connection to it, as a server does that is started again.
    pub fn disconnect_all(&self) {
        drop(self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        ));
    }

    /// The same database by another URL of its server.
    pub(crate) fn url_on(&self, server: &str) -> String {
        url_of(server, &self.name)
    }

    fn url_of(&self, database: &str) -> String {
        url_of(&self.server, database)
    }

    fn run(&self, database: &str, sql: &str) -> Ran {
        Ran::of(&mut self.psql(database, sql))
    }

    fn psql(&self, database: &str, sql: &str) -> Command {
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
        psql.args(["--set", "ON_ERROR_STOP=1", "--command", sql]);
        psql.args(["--dbname", &self.url_of(database)]);
        psql
    }
}

fn url_of(server: &str, database: &str) -> String {
    match server.split_once('?') {
        Some((address, parameters)) => format!("{address}/{database}?{parameters}"),
        None => format!("{server}/{database}"),
    }
}

#[expect(clippy::disallowed_methods, reason = "tests have no configuration to read it from")]
fn server() -> String {
    std::env::var(SERVER)
        .expect("HOLDFAST_TEST_POSTGRES is not set: run `cargo xtask test tests`, which does")
}

/// Name of the database that the gateway of the tests has migrated, whichever test was first. It stays on the server:
/// a gateway that is built anew has another, because its migrations may be others.
fn template(server: &str) -> String {
    let program = std::fs::metadata(binary()).expect("the gateway is built");
    let built = program.modified().expect("a time").duration_since(UNIX_EPOCH).expect("a time");
    let name = format!("e2e_template_{}_{}", program.len(), built.as_nanos());
    // Until this function ends, or this process.
    let lock = std::env::temp_dir().join(format!("{name}.lock"));
    let lock = std::fs::File::create(lock).expect("a file");
    lock.lock().expect("a lock");
    // Not dropped: it stays.
    let whole = ManuallyDrop::new(Database { server: server.to_owned(), name: name.clone() });
    let found = format!("SELECT 1 FROM pg_database WHERE datname = '{name}'");
    if whole.run("postgres", &found).ok().is_empty() {
        // Under another name until it is whole, in case this process is ended.
        let half = Database::make_on(server.to_owned());
        let site = Site::configured(&half.configure(Config::simulated()));
        drop(site.cli(&["migrate", "up"]).ok());
        let copy = format!("CREATE DATABASE {name} TEMPLATE {} STRATEGY FILE_COPY", half.name);
        drop(half.run("postgres", &copy).ok());
    }
    name
}

/// A session of `psql` that waits for more statements. The server ends its transaction with it.
#[derive(Debug)]
pub struct Session {
    psql: Child,
}

impl Drop for Session {
    fn drop(&mut self) {
        // It ends at the end of its input, which is closed here.
        drop(self.psql.stdin.take());
        let ended = self.psql.wait();
        assert!(ended.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

/// A name that no other database or role has.
fn name() -> String {
    crate::request_key().replace('-', "")
}

/// A role of the server, dropped with all that it owns before its database is.
#[derive(Debug)]
pub struct Role<'d> {
    database: &'d Database,
    /// Name of the role, as SQL takes it without quotes.
    pub name: String,
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        // Roles are the server's, not the database's, and one that owns a table cannot be dropped.
        let drop = format!("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", self.name);
        let ran = self.database.run(&self.database.name, &drop);
        assert!(ran.code == Some(0) || std::thread::panicking(), "{ran:?}");
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let ran = self.run("postgres", &format!("DROP DATABASE {} WITH (FORCE)", self.name));
        assert!(ran.code == Some(0) || std::thread::panicking(), "{ran:?}");
    }
}
