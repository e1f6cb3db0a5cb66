//! An open database: what writes it, what reads it, and the work that runs on it.
//!
//! Reads go through pools ([`Pools`]), each for a purpose, so that large results lock no short read out. Changes go
//! through one queue of `Options::commit_queue` to one writer.

mod statements;

use std::sync::Arc;

use holdfast_domain::Timestamp;
use holdfast_domain::admin::report::EXPORTS_AT_ONCE;
use holdfast_domain::debug_as;
use holdfast_domain::ports::Unavailable;
use sea_orm::{QueryResult, Statement, Value};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

pub(crate) use self::statements::JournalStatements;
use crate::backend::{Backend, Pools};
use crate::error::OpenError;
use crate::options::Options;
use crate::schema::Dialect;
use crate::transaction::command::WAITING_MAX;
use crate::transaction::event::SharedInterest;
use crate::transaction::exchange::{Exchange, ExchangeError};
use crate::{lock, metrics, migrate};

/// An open database. Clones share it.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    dialect: Dialect,
    pub(crate) pools: Pools,
    pub(crate) backend: Backend,
    /// Places of commands of administration, as many as may wait at once.
    pub(crate) commands: Arc<Semaphore>,
    /// Places of exports, as many as are read at once.
    pub(crate) exports: Arc<Semaphore>,
    pub(crate) texts: JournalStatements,
    pub(crate) result_bytes_max: usize,
    pub(crate) interest: SharedInterest,
    tasks: TaskTracker,
}

debug_as!(Store: "Store");

impl Store {
    /// Opens a database that `holdfast migrate up` has prepared, and starts its writer.
    ///
    /// # Errors
    ///
    /// [`OpenError::Schema`] if the database is missing, is another program's, or has another schema;
    /// [`OpenError::Lock`] if another process serves the file; [`OpenError::Connect`] and [`OpenError::Writer`] if it
    /// cannot be opened or written.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        metrics::begin();
        // Before any connection: SQLite makes a log that is not there anew, for a read as well.
        lock::check_unserved(&options.url, options.lock.as_deref()).map_err(OpenError::Lock)?;
        // First: no table of a database with another schema is read or written.
        migrate::check(&options.url, options.busy_timeout).await.map_err(OpenError::Schema)?;
        let tasks = TaskTracker::new();
        let (backend, pools) = Backend::open(&options, &tasks).await?;
        // Closed, but work can still be spawned: `wait` only needs it to end.
        tasks.close();
        let dialect = options.url.dialect();
        let inner = Inner {
            dialect,
            pools,
            backend,
            commands: Arc::new(Semaphore::new(WAITING_MAX)),
            exports: Arc::new(Semaphore::new(usize::from(EXPORTS_AT_ONCE))),
            texts: JournalStatements::of(dialect),
            result_bytes_max: options.result_bytes_max,
            interest: options.interest,
            tasks,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Accepts no more changes, commits the queued ones, and closes the database. The log of SQLite is folded into
    /// the file by the process that serves it, and by the last one that closes it. Not cancel safe: a dropped
    /// future leaves the rest to the end of the process.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the log could not be folded in or a connection could not be closed. No commit is lost by that.
    pub async fn close(self) -> Result<(), Unavailable> {
        let Inner { backend, pools, tasks, .. } = &*self.inner;
        backend.finish();
        // Changes that were queued are committed before a connection is closed.
        backend.closed().await;
        // The writer has ended by now; work without a waiting caller may still use the connections.
        tasks.wait().await;
        let mut closed = Ok(());
        for (_name, pool) in pools.named() {
            // All are closed, even if the first fails.
            closed = pool.close().await.and(closed);
        }
        backend.close().await.and(closed)
    }

    /// Completes after the last write: the store was closed, or its writer ended by itself and every later write
    /// fails.
    pub async fn closed(&self) {
        self.inner.backend.closed().await;
    }

    pub(crate) async fn query<const N: usize>(
        &self,
        sql: &str,
        binds: [Value; N],
    ) -> Result<Vec<QueryResult>, Unavailable> {
        self.inner.pools.readers.query(self.dialect().statement(sql, binds)).await
    }

    /// Reads what is short and waited for by everybody.
    pub(crate) async fn quick_query<const N: usize>(
        &self,
        sql: &str,
        binds: [Value; N],
    ) -> Result<Vec<QueryResult>, Unavailable> {
        self.inner.pools.glances.query(self.dialect().statement(sql, binds)).await
    }

    /// The clock as a read sees it.
    pub(crate) fn seen(&self, now: Timestamp) -> Timestamp {
        self.inner.backend.seen(now)
    }

    /// Runs to its end whether or not the caller waits for it.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.inner.tasks.spawn(work)
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.inner.dialect
    }

    pub(crate) async fn try_exchange<R, T>(
        &self,
        exchange: Exchange<R, T>,
    ) -> Result<T, ExchangeError>
    where
        R: Send + 'static,
        T: Send + 'static,
    {
        self.inner.backend.exchange(exchange).await
    }

    pub(crate) async fn exchange<R, T>(&self, exchange: Exchange<R, T>) -> Result<T, Unavailable>
    where
        R: Send + 'static,
        T: Send + 'static,
    {
        Ok(self.try_exchange(exchange).await?)
    }

    /// Runs the statements of a moment, in one transaction.
    pub(crate) async fn run(
        &self,
        statements: impl FnOnce(Timestamp) -> Vec<Statement> + Send + 'static,
    ) -> Result<(), Unavailable> {
        self.exchange(Exchange::of(statements)).await
    }
}
