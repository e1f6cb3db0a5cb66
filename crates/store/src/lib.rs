//! Storage of operations, holds, the book, wallets, API keys, prices and node leases, on SQLite or
//! PostgreSQL. [`Store`] fulfils the storage ports of `holdfast-domain`; what only the command line
//! reads are methods of its own.
//!
//! It decides nothing about operations. It enforces three things over what a transaction has read:
//! the version is the one that was judged, balances and counters stay within bounds, permanent ids
//! do not repeat. The tables repeat that as constraints.
//!
//! | an embedder needs | from |
//! |---|---|
//! | tables, and the right to serve a file | [`migrate::up`], [`ServeLock::take`] |
//! | the store, and its end | [`Store::open`] with [`Options`], [`Store::close`] |
//! | wallets, API keys, deposits | commands of `Administration`, as `holdfast-embed` sends them |
//! | the audit | [`Store::verify`] |
//!
//! What writes is a database's own, and so are its connections (`sqlite`, `postgres`); judging, the
//! mapping of rows and what reads them are the same for all.
//!
//! Reads go through three pools: `readers` (`Options::readers`) for results and lists, `glances`
//! (`GLANCES`) for short reads that everybody waits for, so that large results never lock callers
//! out, `audits`, the one connection of an audit, and `reports` (`REPORTS_AT_ONCE`) for sums over many
//! rows, which lock nobody out either, nor the summing, which has a connection of its own. Changes go
//! through one queue of `Options::commit_queue` to one writer.

mod admin;
mod audit;
mod batch;
mod lock;
mod metrics;
pub mod migrate;
mod postgres;
mod reading;
mod rows;
mod sale;
mod schema;
mod sqlite;
mod transaction;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::Timestamp;
use holdfast_domain::ports::{Cause, Unavailable};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, QueryResult, Statement, Value};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

pub use crate::audit::verify;
#[doc(hidden)]
pub use crate::batch::judge;
pub use crate::lock::identity::FileLost;
pub use crate::lock::{LockError, ServeLock};
pub use crate::migrate::SchemaError;
use crate::postgres::{ConnectionPool, Postgres};
pub use crate::reading::{report, usage};
use crate::sale::journal::JournalStatements;
use crate::schema::Dialect;
use crate::schema::url::DatabaseLocation;
pub use crate::schema::url::{BadDatabaseUrl, DatabaseUrl};
use crate::sqlite::Sqlite;
pub use crate::sqlite::backup;
pub use crate::transaction::event::SharedInterest;

/// The longest time by which an operation may have been created before one with a lower number. A
/// batch on a server reads the clock, then takes its numbers in another statement, while other batches
/// do the same: the time-outs between the two bound it (`postgres::session` asserts that).
pub(crate) const CREATION_DISORDER: Duration = Duration::from_secs(30);

/// Connections for the short reads that every caller and every probe waits for.
const GLANCES: u32 = 2;
/// Connections for audits, made when the first one begins.
const AUDITS: u32 = 1;
/// The connection of the summing, which goes on whatever is reported.
const SUMMING: u32 = 1;

/// Settings with which a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address of the database: a file of SQLite, or a server of PostgreSQL.
    pub url: DatabaseUrl,
    /// Commits that may wait for the writer; a claim beyond that is `Overloaded`.
    pub commit_queue: usize,
    /// Connections that read.
    pub readers: u32,
    /// The largest sealed result that a load brings along, in bytes; of a larger one it says the
    /// length. Unless somebody bounds how many of them are read at once, that is no matter.
    pub result_bytes_max: usize,
    /// Longest wait of a write while another process has what it needs, before it is `Unavailable`.
    pub busy_timeout: Duration,
    /// The right to serve the file, for the one process that has it: it alone folds the log into
    /// the file at its end, and it holds the file to be the one that was opened.
    pub lock: Option<Arc<ServeLock>>,
    /// Interest in events; all of them, until [`Store::list_events`] and [`Store::send_events`] say
    /// otherwise.
    pub interest: SharedInterest,
}

impl Options {
    /// The usual settings, for a database at this URL.
    #[must_use]
    pub fn new(url: DatabaseUrl) -> Self {
        Self {
            url,
            commit_queue: 4_096,
            readers: 4,
            result_bytes_max: usize::MAX,
            busy_timeout: Duration::from_secs(5),
            lock: None,
            interest: SharedInterest::default(),
        }
    }
}

/// Failure to open a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A schema that this program does not work with.
    #[error(transparent)]
    Schema(SchemaError),
    /// A file that cannot be opened, or a server that cannot be connected to.
    #[error("the database cannot be opened")]
    Connect(#[source] ConnectError),
    /// The writer cannot be set up.
    #[error("the database cannot be written")]
    Writer(#[source] Cause),
    /// The file is not this process's to serve.
    #[error(transparent)]
    Lock(LockError),
}

/// Failure to reach a database, whatever its schema.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The file cannot be made.
    #[error("{0} cannot be created")]
    Create(PathBuf, #[source] io::Error),
    /// The file cannot be opened.
    #[error("{0} cannot be opened")]
    Open(PathBuf, #[source] DbErr),
    /// The file, its log or its index is not the one that another process serves.
    #[error(transparent)]
    Lost(FileLost),
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
    /// A pooler between this process and the server that does not keep sessions apart.
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
    /// For the short reads that every caller and every probe waits for: credentials, their wallets,
    /// the clock. Results never go through these, so that however many of them are read, nobody is
    /// locked out.
    glances: Readers,
    /// For an audit, whose pages take long: nobody else waits for one.
    audits: Readers,
    /// For sums over many rows.
    reports: Readers,
    /// For the steps of the summing alone: many reports do not hold it up, and it holds up none.
    summing: Readers,
    writing: WriteBackend,
    /// Places of commands of administration, as many as may wait at once.
    errands: Arc<Semaphore>,
    texts: JournalStatements,
    result_bytes_max: usize,
    interest: SharedInterest,
    tasks: TaskTracker,
}

/// Connections through which a database is read.
enum Readers {
    Sqlite(DatabaseConnection),
    Postgres(ConnectionPool),
}

/// Part of a store that writes: each database's own half of the ports.
enum WriteBackend {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Readers {
    async fn query(&self, statement: Statement) -> Result<Vec<QueryResult>, Unavailable> {
        match self {
            Self::Sqlite(readers) => readers.query_all_raw(statement).await.map_err(unavailable),
            Self::Postgres(line) => line.query(statement).await.map_err(unavailable),
        }
    }

    async fn close(&self) -> Result<(), Unavailable> {
        match self {
            Self::Sqlite(readers) => readers.close_by_ref().await.map_err(unavailable),
            Self::Postgres(line) => {
                line.close().await;
                Ok(())
            }
        }
    }
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
    /// Where the database is missing, is not ours, or has another schema; where it cannot be
    /// opened.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        metrics::begin();
        // Before any connection: SQLite makes a log that is not there anew, for a read as well.
        if let (None, DatabaseLocation::File(file)) = (&options.lock, options.url.place()) {
            lock::check_served(file).map_err(|lost| OpenError::Lock(LockError::Lost(lost)))?;
        }
        // First: nothing of a database with another schema is read or written.
        migrate::check(&options.url, options.busy_timeout).await.map_err(OpenError::Schema)?;
        let tasks = TaskTracker::new();
        let (writing, [readers, glances, audits, reports, summing]) = match options.url.place() {
            DatabaseLocation::File(file) => {
                let (sqlite, readers) = Sqlite::open(file, &options, &tasks).await?;
                (WriteBackend::Sqlite(sqlite), readers.map(Readers::Sqlite))
            }
            DatabaseLocation::Server(server) => {
                let opened = Postgres::open(server.options(), &options, &tasks).await;
                let (postgres, readers) = opened?;
                (WriteBackend::Postgres(postgres), readers.map(Readers::Postgres))
            }
        };
        // Closed, but work can still be spawned: `wait` only needs it to end.
        tasks.close();
        let dialect = options.url.dialect();
        let texts = JournalStatements::of(dialect);
        let result_bytes_max = options.result_bytes_max;
        let inner = Inner {
            dialect,
            errands: Arc::new(Semaphore::new(transaction::errand::WAITING_MAX)),
            readers,
            glances,
            audits,
            reports,
            summing,
            writing,
            texts,
            result_bytes_max,
            interest: options.interest,
            tasks,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Takes in nothing more, commits what waits, and closes the database. The log of SQLite is
    /// folded into the file by the process that serves it, and by the last one that closes it. Not
    /// cancel safe: a dropped future leaves the rest to the end of the process.
    ///
    /// # Errors
    ///
    /// Where the log could not be folded in or a connection not be closed. Nothing is lost by that.
    pub async fn close(self) -> Result<(), Unavailable> {
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.finish(),
            WriteBackend::Postgres(postgres) => postgres.finish(),
        }
        // Changes that were queued are committed before a connection is closed.
        self.closed().await;
        // The writer has ended by now; work that nobody waits for may still use the connections.
        self.inner.tasks.wait().await;
        let closed = self.readers().close().await;
        // All are closed, whatever came of the first.
        let closed = self.inner.glances.close().await.and(closed);
        let closed = self.inner.audits.close().await.and(closed);
        let closed = self.inner.reports.close().await.and(closed);
        let closed = self.inner.summing.close().await.and(closed);
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.close().await.and(closed),
            WriteBackend::Postgres(postgres) => {
                postgres.close().await;
                closed
            }
        }
    }

    /// Completes when nothing is written any more: the store was closed, or its writer ended by
    /// itself and every later write fails.
    pub async fn closed(&self) {
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.closed().await,
            WriteBackend::Postgres(postgres) => postgres.closed().await,
        }
    }

    async fn query<const N: usize>(
        &self,
        sql: &str,
        binds: [Value; N],
    ) -> Result<Vec<QueryResult>, Unavailable> {
        self.readers().query(self.dialect().statement(sql, binds)).await
    }

    /// Reads what is short and waited for by everybody.
    async fn quick_query<const N: usize>(
        &self,
        sql: &str,
        binds: [Value; N],
    ) -> Result<Vec<QueryResult>, Unavailable> {
        self.inner.glances.query(self.dialect().statement(sql, binds)).await
    }

    /// The clock as a read sees it.
    fn seen(&self, now: Timestamp) -> Timestamp {
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.seen(now),
            // The server reads its clock after it has seen the rows.
            WriteBackend::Postgres(_) => now,
        }
    }

    /// Runs to its end whether or not the caller waits for it.
    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.inner.tasks.spawn(work)
    }

    /// The longest result that the database can hold.
    fn result_bytes_max(&self) -> usize {
        match self.writing() {
            WriteBackend::Sqlite(_) => sqlite::RESULT_BYTES_MAX,
            WriteBackend::Postgres(_) => postgres::RESULT_BYTES_MAX,
        }
    }

    fn readers(&self) -> &Readers {
        &self.inner.readers
    }

    fn audits(&self) -> &Readers {
        &self.inner.audits
    }

    fn errands(&self) -> &Arc<Semaphore> {
        &self.inner.errands
    }

    fn reports(&self) -> &Readers {
        &self.inner.reports
    }

    fn summing(&self) -> &Readers {
        &self.inner.summing
    }

    fn dialect(&self) -> Dialect {
        self.inner.dialect
    }

    fn texts(&self) -> &JournalStatements {
        &self.inner.texts
    }

    fn writing(&self) -> &WriteBackend {
        &self.inner.writing
    }
}

pub(crate) fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> Unavailable {
    Unavailable(Box::new(error))
}
