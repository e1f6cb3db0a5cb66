//! Ledgers that released versions wrote, kept as fixtures in `tests/fixtures/ledger`: every later version must read
//! them.
//!
//! ```text
//! tests/fixtures/ledger/
//!   releases               a line per release, oldest first: the folder's name and the commit
//!   <release>/sqlite/      holdfast.db (VACUUM INTO, small pages), server.secret
//!   <release>/postgres/    ledger.sql (pg_dump)
//!   both                   holdfast.toml, exchanges.json
//! ```
//!
//! A ledger has every state of an operation, postings of every kind, API keys, admin keys, people, webhooks and
//! jobs. `exchanges.json` has each request under its key, with the answer that the release itself gave to a
//! repetition. [`write()`] creates a ledger through the binary of a release; [`Ledger::restore`] puts a copy of one
//! into a folder.
//!
//! A ledger is never written again, not even by its own release: a fixture that is replaced proves nothing about
//! the rows of the day on which it was written.

mod administration;
pub mod exchange;
mod operations;
mod writer;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use self::exchange::Exchange;
pub use self::writer::write;
use crate::postgres::Database;
use crate::{Gateway, Ran, Site, Upstream};

/// Address of the provider in a kept configuration.
const UPSTREAM_URL: &str = "http://upstream.invalid/v1";
/// Database of a kept configuration on PostgreSQL.
const DATABASE_URL: &str = "postgres://database.invalid/ledger";
const CONFIG: &str = "holdfast.toml";
const EXCHANGES: &str = "exchanges.json";
const SQLITE_FILE: &str = "holdfast.db";
const SQLITE_SECRET: &str = "server.secret";
const POSTGRES_DUMP: &str = "ledger.sql";

/// Database system of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    Sqlite,
    /// A database of a PostgreSQL server.
    Postgres,
}

impl Kind {
    const fn folder(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// Folder of all ledgers.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/ledger")
}

/// Ledger of one release on one database system.
#[derive(Debug)]
pub struct Ledger {
    /// Name of the release.
    pub release: String,
    kind: Kind,
    folder: PathBuf,
}

/// Operation of a ledger, and the result of its repetition.
#[derive(Debug)]
pub struct KeptOperation {
    /// State in which the release left it.
    pub state: String,
    /// Requests for the whole answer and for a stream, with the release's own repetition if it gave one.
    pub asked: [Exchange; 2],
}

/// All that `exchanges.json` has.
#[derive(Debug)]
pub struct Exchanges {
    /// Operations with the replies of the release.
    pub operations: Vec<KeptOperation>,
    /// Administrative changes, in their order, with the answers of the release to repetitions.
    pub administration: Vec<Exchange>,
    /// Reads that always have the same answer.
    pub reads: Vec<Exchange>,
    /// E-mail addresses and passwords of people who can sign in.
    pub people: Vec<(String, String)>,
}

impl Ledger {
    /// Ledgers of all releases on this database system, oldest first.
    #[must_use]
    pub fn all(kind: Kind) -> Vec<Self> {
        let releases = fs::read_to_string(folder().join("releases")).expect("the list of releases");
        let names = releases.lines().filter_map(|line| line.split(' ').next());
        names.map(|name| Self::of(name, kind, folder().join(name).join(kind.folder()))).collect()
    }

    fn of(release: &str, kind: Kind, folder: PathBuf) -> Self {
        Self { release: release.to_owned(), kind, folder }
    }

    /// Requests of this ledger and their answers.
    #[must_use]
    pub fn exchanges(&self) -> Exchanges {
        let text = self.read(EXCHANGES);
        Exchanges::parse(&serde_json::from_str(&text).expect("JSON"))
    }

    /// Copy of the ledger in a folder of its own, with the release's configuration and another provider. A ledger of
    /// PostgreSQL is restored into this database, which is empty.
    ///
    /// # Panics
    ///
    /// If the copy fails.
    #[track_caller]
    #[must_use]
    pub fn restore(&self, upstream: &Upstream, database: Option<&Database>) -> Site {
        let mut site = Site::empty();
        let mut config = self.read(CONFIG).replace(UPSTREAM_URL, &upstream.base_url());
        match (self.kind, database) {
            (Kind::Sqlite, None) => {
                let data = site.database();
                fs::create_dir(data.parent().expect("a folder")).expect("a folder");
                fs::copy(self.folder.join(SQLITE_FILE), &data).expect("a copy");
                site.write("holdfast-data/server.secret", &self.read(SQLITE_SECRET));
            }
            (Kind::Postgres, Some(database)) => {
                database.restore(&self.folder.join(POSTGRES_DUMP));
                config = config.replace(DATABASE_URL, &database.url());
            }
            (Kind::Sqlite, Some(_)) | (Kind::Postgres, None) => {
                panic!("a database for PostgreSQL only")
            }
        }
        site.write(CONFIG, &config);
        site.set_env("HOLDFAST_CONFIG", CONFIG);
        site
    }

    fn read(&self, name: &str) -> String {
        let path = self.folder.join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

impl Exchanges {
    fn parse(value: &Value) -> Self {
        let list = |name: &str| value[name].as_array().unwrap_or_else(|| panic!("no {name}"));
        let operations = list("operations").iter().map(|it| KeptOperation {
            state: it["state"].as_str().expect("a state").to_owned(),
            asked: [Exchange::parse(&it["whole"]), Exchange::parse(&it["stream"])],
        });
        let exchanges = |name: &str| list(name).iter().map(Exchange::parse).collect();
        let people = list("people").iter().map(|it| {
            let text = |name: &str| it[name].as_str().expect("a text").to_owned();
            (text("email"), text("password"))
        });
        Self {
            operations: operations.collect(),
            administration: exchanges("administration"),
            reads: exchanges("reads"),
            people: people.collect(),
        }
    }
}

/// Status of the answer to a person who signs in at the console of operators.
#[must_use]
pub fn sign_in(gateway: &Gateway, email: &str, password: &str) -> u16 {
    let (email, password) = (email.replace('@', "%40"), password.replace(' ', "+"));
    administration::submit(gateway, "/sign-in", &format!("email={email}&password={password}"))
}

/// Runs a program that belongs to the client of the database, or Python.
#[track_caller]
fn run(command: &mut std::process::Command) -> String {
    Ran::of(command).ok()
}
