//! Where it is kept: operations, holds, the book, wallets, API keys, prices and node leases, on
//! SQLite. [`Store`] fulfils the storage ports of `holdfast-domain`; what only the command line
//! reads are methods of its own.
//!
//! It decides nothing about operations. It enforces three things over what a transaction has read:
//! the version is the one that was judged, balances and counters stay within bounds, permanent ids do
//! not repeat. The tables repeat that as constraints.
//!
//! What writes is a database's own, and so are its connections (`sqlite`); judging, the mapping of rows
//! and what reads them are the same for all.

mod dialect;
mod judge;
mod lock;
mod metrics;
pub mod migrate;
mod ports;
mod reading;
pub mod report;
mod rows;
mod sqlite;
pub mod statement;
mod url;
pub mod usage;
pub mod verify;

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::Timestamp;
use holdfast_domain::ports::{Cause, Unavailable};
use sea_orm::{ConnectionTrait, DatabaseConnection, QueryResult, Value};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::dialect::Dialect;
pub use crate::lock::{LockError, ServeLock};
pub use crate::migrate::SchemaError;
use crate::ports::Texts;
use crate::sqlite::Sqlite;
use crate::sqlite::connect;
pub use crate::sqlite::connect::ConnectError;
pub use crate::url::{BadDatabaseUrl, DatabaseUrl};

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which file it is.
    pub url: DatabaseUrl,
    /// Commits that may wait for the writer; the next one is `Overloaded`.
    pub commit_queue: usize,
    /// Connections that read.
    pub readers: u32,
    /// How long a write waits while another process writes, before it is `Unavailable`.
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

/// An open database. Clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    dialect: Dialect,
    readers: DatabaseConnection,
    sqlite: Sqlite,
    texts: Texts,
    tasks: TaskTracker,
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
    /// Where the file is missing, is not ours, or has another schema; where it cannot be opened.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        metrics::describe();
        let (path, busy) = (options.url.file(), options.busy_timeout);
        check(&options.url, busy).await.map_err(OpenError::Schema)?;
        let tasks = TaskTracker::new();
        let sqlite = Sqlite::open(path, &options).await?;
        let readers =
            connect::readers(path, busy, options.readers).await.map_err(OpenError::Connect)?;
        tasks.close();
        let dialect = Dialect::Sqlite;
        let texts = Texts::of(dialect);
        Ok(Self { inner: Arc::new(Inner { dialect, readers, sqlite, texts, tasks }) })
    }

    /// Takes in nothing more, commits what waits, folds the log into the database file and closes
    /// it. Not cancel safe: a dropped future leaves the rest to the end of the process.
    ///
    /// # Errors
    ///
    /// Where the log could not be folded in or a connection not be closed. Nothing is lost by that.
    pub async fn close(self) -> Result<(), Unavailable> {
        self.inner.sqlite.finish();
        self.inner.sqlite.closed().await;
        self.inner.tasks.wait().await;
        let closed = self.inner.readers.close_by_ref().await.map_err(unavailable);
        self.inner.sqlite.close().await.and(closed)
    }

    /// Completes when nothing is written any more: the store was closed, or its writer ended by
    /// itself and every later write fails.
    pub async fn closed(&self) {
        self.inner.sqlite.closed().await;
    }

    async fn query<const N: usize>(
        &self,
        sql: &str,
        values: [Value; N],
    ) -> Result<Vec<QueryResult>, Unavailable> {
        let statement = self.dialect().statement(sql, values);
        self.inner.readers.query_all_raw(statement).await.map_err(unavailable)
    }

    /// The clock as a read sees it.
    fn seen(&self, now: Timestamp) -> Timestamp {
        self.inner.sqlite.seen(now)
    }

    /// Runs to its end whether or not the caller waits for it.
    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.inner.tasks.spawn(work)
    }

    fn readers(&self) -> &DatabaseConnection {
        &self.inner.readers
    }

    fn dialect(&self) -> Dialect {
        self.inner.dialect
    }

    fn texts(&self) -> &Texts {
        &self.inner.texts
    }

    fn sqlite(&self) -> &Sqlite {
        &self.inner.sqlite
    }
}

/// Looks at the schema through a connection that cannot write: a file that is refused stays as it is.
async fn check(url: &DatabaseUrl, busy_timeout: Duration) -> Result<(), SchemaError> {
    migrate::exists(url)?;
    let path = url.file();
    let reader = connect::readers(path, busy_timeout, 1).await.map_err(migrate::foreign(path))?;
    let checked = migrate::check(&reader, path).await;
    reader.close().await.map_err(SchemaError::Failed)?;
    checked
}

pub(crate) fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> Unavailable {
    Unavailable(Box::new(error))
}
