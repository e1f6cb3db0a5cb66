//! Where it is kept: operations, holds, the book, wallets, API keys, prices and node leases, on
//! SQLite or PostgreSQL. [`Store`] fulfils the storage ports of `holdfast-domain`; what only the command line
//! reads are methods of its own.
//!
//! It decides nothing about operations. It enforces three things over what a transaction has read:
//! the version is the one that was judged, balances and counters stay within bounds, permanent ids do
//! not repeat. The tables repeat that as constraints.
//!
//! What writes is a database's own, and so are its connections (`sqlite`,
//! `postgres`); judging, the mapping of rows
//! and what reads them are the same for all.

mod dialect;
mod job;
#[doc(hidden)]
pub mod judge;
mod lock;
mod metrics;
pub mod migrate;
mod ports;
mod postgres;
mod reading;
pub mod report;
mod rows;
mod sqlite;
pub mod statement;
mod url;
pub mod usage;
pub mod verify;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::Timestamp;
use holdfast_domain::ports::{Cause, Unavailable};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, QueryResult};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::dialect::{Bind, Dialect};
pub use crate::lock::{LockError, ServeLock};
pub use crate::migrate::SchemaError;
use crate::ports::Texts;
use crate::postgres::{Line, Postgres};
use crate::sqlite::Sqlite;
use crate::url::Place;
pub use crate::url::{BadDatabaseUrl, DatabaseUrl};

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which one it is.
    pub url: DatabaseUrl,
    /// Commits that may wait for the writer; a claim beyond that is `Overloaded`.
    pub commit_queue: usize,
    /// Connections that read.
    pub readers: u32,
    /// How long a write waits while another process has what it needs, before it is `Unavailable`.
    pub busy_timeout: Duration,
}

impl Options {
    /// The usual settings, for a database at this URL.
    #[must_use]
    pub const fn new(url: DatabaseUrl) -> Self {
        Self { url, commit_queue: 4_096, readers: 4, busy_timeout: Duration::from_secs(5) }
    }
}

/// Why a store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// What is there is not what this program works with.
    #[error(transparent)]
    Schema(SchemaError),
    /// It cannot be connected to.
    #[error("the database cannot be opened")]
    Connect(#[source] ConnectError),
    /// The writer cannot be set up.
    #[error("the database cannot be written")]
    Writer(#[source] Cause),
}

/// Why a database was not opened, below what is in it.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The file cannot be made.
    #[error("{0} cannot be created")]
    Create(PathBuf, #[source] io::Error),
    /// The file cannot be opened.
    #[error("{0} cannot be opened")]
    Open(PathBuf, #[source] DbErr),
    /// The SQLite library is too old to be trusted with this.
    #[error("SQLite {0} has a bug that corrupts databases: at least 3.51.3 is needed")]
    Library(String),
    /// The server cannot be connected to.
    #[error("the PostgreSQL server cannot be connected to")]
    Server(#[source] DbErr),
    /// The server is too old.
    #[error("the server is PostgreSQL {0}: at least 15 is needed")]
    Version(u32),
    /// The server follows another one.
    #[error("the PostgreSQL server is a standby: name its primary")]
    Standby,
    /// What is between does not keep sessions apart.
    #[error("a pooler between shares sessions among transactions: have it keep them apart")]
    Shared,
}

/// An open database. Clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    dialect: Dialect,
    readers: Readers,
    writing: Writing,
    texts: Texts,
    tasks: TaskTracker,
}

/// What a database is read through.
enum Readers {
    Sqlite(DatabaseConnection),
    Postgres(Line),
}

/// How a database is written: what is a database's own of each port.
enum Writing {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    /// Opens a database that `holdfast migrate up` has made ready, and starts its writer.
    ///
    /// # Errors
    ///
    /// Where the database is missing, is not ours, or has another schema; where it cannot be opened.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        metrics::describe();
        migrate::check(&options.url, options.busy_timeout).await.map_err(OpenError::Schema)?;
        let tasks = TaskTracker::new();
        let (writing, readers) = match options.url.place() {
            Place::File(file) => {
                let (sqlite, readers) = Sqlite::open(file, &options, &tasks).await?;
                (Writing::Sqlite(sqlite), Readers::Sqlite(readers))
            }
            Place::Server(server) => {
                let opened = Postgres::open(server.options(), &options, &tasks).await;
                let (postgres, readers) = opened?;
                (Writing::Postgres(postgres), Readers::Postgres(readers))
            }
        };
        tasks.close();
        let dialect = options.url.dialect();
        let texts = Texts::of(dialect);
        Ok(Self { inner: Arc::new(Inner { dialect, readers, writing, texts, tasks }) })
    }

    /// Takes in nothing more, commits what waits, folds the log of SQLite into the database file and
    /// closes it. Not cancel safe: a dropped future leaves the rest to the end of the process.
    ///
    /// # Errors
    ///
    /// Where the log could not be folded in or a connection not be closed. Nothing is lost by that.
    pub async fn close(self) -> Result<(), Unavailable> {
        match self.writing() {
            Writing::Sqlite(sqlite) => sqlite.finish(),
            Writing::Postgres(postgres) => postgres.finish(),
        }
        self.closed().await;
        self.inner.tasks.wait().await;
        let closed = match self.readers() {
            Readers::Sqlite(readers) => readers.close_by_ref().await.map_err(unavailable),
            Readers::Postgres(readers) => {
                readers.close().await;
                Ok(())
            }
        };
        match self.writing() {
            Writing::Sqlite(sqlite) => sqlite.close().await.and(closed),
            Writing::Postgres(postgres) => {
                postgres.close().await;
                closed
            }
        }
    }

    /// Completes when nothing is written any more: the store was closed, or its writer ended by
    /// itself and every later write fails.
    pub async fn closed(&self) {
        match self.writing() {
            Writing::Sqlite(sqlite) => sqlite.closed().await,
            Writing::Postgres(postgres) => postgres.closed().await,
        }
    }

    async fn query<const N: usize>(
        &self,
        sql: &str,
        binds: [Bind; N],
    ) -> Result<Vec<QueryResult>, Unavailable> {
        match self.readers() {
            Readers::Sqlite(readers) => {
                let statement = self.dialect().statement(sql, binds);
                readers.query_all_raw(statement).await.map_err(unavailable)
            }
            Readers::Postgres(line) => line.query(sql, binds.into()).await.map_err(unavailable),
        }
    }

    /// The clock as a read sees it.
    fn seen(&self, now: Timestamp) -> Timestamp {
        match self.writing() {
            Writing::Sqlite(sqlite) => sqlite.seen(now),
            // The server reads its clock after it has seen the rows.
            Writing::Postgres(_) => now,
        }
    }

    /// Runs to its end whether or not the caller waits for it.
    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.inner.tasks.spawn(work)
    }

    fn readers(&self) -> &Readers {
        &self.inner.readers
    }

    fn dialect(&self) -> Dialect {
        self.inner.dialect
    }

    fn texts(&self) -> &Texts {
        &self.inner.texts
    }

    fn writing(&self) -> &Writing {
        &self.inner.writing
    }
}

pub(crate) fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> Unavailable {
    Unavailable(Box::new(error))
}
