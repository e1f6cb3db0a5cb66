//! The databases: the part of each that writes, its connections that read, and those that migrate. Every choice
//! between the two is made here, so that the rest of the crate has one code for both.
//!
//! An enum and not a trait object: a claim goes through here, and each future of a trait object is an allocation.
//!
//! Connections that read are in pools by purpose ([`Pools`]): a report or an audit takes seconds, and in one pool
//! with the look-up of a credential it would lock callers out.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::Timestamp;
use holdfast_domain::operation::{Node, Receipt, Transition};
use holdfast_domain::ports::{CommitError, Durability, HeartbeatOutcome, LeaseMode, Unavailable};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, RuntimeErr,
    Statement,
};
use tokio_util::task::TaskTracker;

use crate::error::{ConnectError, OpenError, unavailable};
use crate::options::Options;
#[cfg(feature = "postgres")]
use crate::postgres::{self, ConnectionPool, PgReadTransaction, Postgres, Servers};
use crate::schema::url::{DatabaseLocation, DatabaseUrl};
use crate::schema::{Dialect, by_database};
#[cfg(feature = "sqlite")]
use crate::sqlite::{self, Sqlite, readers::FileReaders};
use crate::transaction::command::{CommandTransaction, CommandVerdict, OfferError};
use crate::transaction::exchange::{Exchange, ExchangeError};
use crate::transaction::hour::SummingStep;

/// Evaluates an expression for either database: `each!(self, it => it.seen(now))`.
macro_rules! each {
    ($of:expr, $it:ident => $do:expr) => {
        by_database!($of; Self::Sqlite($it) => $do; Self::Postgres($it) => $do)
    };
}

/// Part of a store that writes: each database's own half of the ports.
pub(crate) enum Backend {
    #[cfg(feature = "sqlite")]
    Sqlite(Sqlite),
    #[cfg(feature = "postgres")]
    Postgres(Postgres),
}

/// Connections through which a database is read.
pub(crate) enum Readers {
    #[cfg(feature = "sqlite")]
    Sqlite(FileReaders),
    #[cfg(feature = "postgres")]
    Postgres(ConnectionPool),
}

/// A transaction that reads: all of its statements see the rows as they are at one moment.
pub(crate) enum ReadTransaction {
    #[cfg(feature = "sqlite")]
    /// A deferred transaction, which sees the rows as its first read saw them.
    Sqlite(sea_orm::DatabaseTransaction),
    #[cfg(feature = "postgres")]
    Postgres(PgReadTransaction),
}

/// Connections that read, by their purpose.
pub(crate) struct Pools {
    /// For results and lists.
    pub(crate) readers: Readers,
    /// For the short reads that every caller and every probe waits for: credentials, their wallets, the clock.
    /// Results are never read through these, so that any number of such reads cannot lock a caller out.
    pub(crate) glances: Readers,
    /// For an audit, whose pages take long: no other read waits for one.
    pub(crate) audits: Readers,
    /// For sums over many rows.
    pub(crate) reports: Readers,
    /// Only for the steps of the summing: many reports do not delay it, and it delays none.
    pub(crate) summing: Readers,
    /// For the pages of exports, one after another for minutes.
    pub(crate) exports: Readers,
}

impl Backend {
    /// Starts the writer of a database, and makes the connections that read.
    pub(crate) async fn open(
        options: &Options,
        tasks: &TaskTracker,
    ) -> Result<(Self, Pools), OpenError> {
        by_database!(options.url.place();
        DatabaseLocation::File(file) => {
            let (sqlite, readers) = Sqlite::open(file, options, tasks).await?;
            Ok((Self::Sqlite(sqlite), Pools::of(readers.map(Readers::Sqlite))))
        };
        DatabaseLocation::Server(server) => {
            let (postgres, readers) = Postgres::open(&Servers::of(server), options, tasks).await?;
            Ok((Self::Postgres(postgres), Pools::of(readers.map(Readers::Postgres))))
        })
    }

    /// Queues a change for the writer and waits for its verdict.
    pub(crate) async fn offer(&self, change: Arc<Transition>) -> Result<Receipt, CommitError> {
        each!(self, it => it.offer(change).await)
    }

    pub(crate) async fn administer(
        &self,
        command_tx: CommandTransaction,
    ) -> Result<Option<CommandVerdict>, OfferError> {
        each!(self, it => it.administer(command_tx).await)
    }

    pub(crate) async fn exchange<R, T>(&self, exchange: Exchange<R, T>) -> Result<T, ExchangeError>
    where
        R: Send + 'static,
        T: Send + 'static,
    {
        each!(self, it => it.exchange(exchange).await)
    }

    pub(crate) async fn beat(
        &self,
        node: &Node,
        lease: Duration,
        entry: LeaseMode,
    ) -> Result<HeartbeatOutcome, Unavailable> {
        each!(self, it => it.beat(node, lease, entry).await)
    }

    /// Runs a statement of a node's lease, which waits for no other transaction of this process on a server.
    pub(crate) async fn touch(&self, statement: Statement) -> Result<(), Unavailable> {
        each!(self, it => it.touch(statement).await)
    }

    pub(crate) async fn purge(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        each!(self, it => it.purge(age, limit).await)
    }

    pub(crate) async fn sum_usage(&self, step: SummingStep) -> Result<(), Unavailable> {
        each!(self, it => it.sum_usage(step).await)
    }

    /// The clock as a read sees it.
    pub(crate) fn seen(&self, now: Timestamp) -> Timestamp {
        // A server reads its clock after it has seen the rows.
        by_database!(self; Self::Sqlite(sqlite) => sqlite.seen(now); Self::Postgres(_) => now)
    }

    pub(crate) fn durability(&self) -> Durability {
        by_database!(self;
            Self::Sqlite(_) => Durability::Local;
            Self::Postgres(postgres) => postgres.durability())
    }

    /// The longest result that the database can hold.
    pub(crate) const fn result_bytes_max(&self) -> usize {
        by_database!(self;
            Self::Sqlite(_) => sqlite::RESULT_BYTES_MAX;
            Self::Postgres(_) => postgres::RESULT_BYTES_MAX)
    }

    /// Accepts no more changes; the writer ends after the queued ones.
    pub(crate) fn finish(&self) {
        each!(self, it => it.finish());
    }

    /// Completes after the last write: the writer has drained, or it is gone.
    pub(crate) async fn closed(&self) {
        each!(self, it => it.closed().await);
    }

    /// Closes what writes, after the writer has ended.
    pub(crate) async fn close(&self) -> Result<(), Unavailable> {
        by_database!(self;
        Self::Sqlite(sqlite) => sqlite.close().await;
        Self::Postgres(postgres) => {
            postgres.close().await;
            Ok(())
        })
    }
}

impl Pools {
    fn of([readers, glances, audits, reports, summing, exports]: [Readers; 6]) -> Self {
        Self { readers, glances, audits, reports, summing, exports }
    }

    /// Every pool with its name.
    pub(crate) const fn named(&self) -> [(&'static str, &Readers); 6] {
        let Self { readers, glances, audits, reports, summing, exports } = self;
        [
            ("readers", readers),
            ("glances", glances),
            ("audits", audits),
            ("reports", reports),
            ("summing", summing),
            ("exports", exports),
        ]
    }
}

impl Readers {
    pub(crate) async fn query(
        &self,
        statement: Statement,
    ) -> Result<Vec<QueryResult>, Unavailable> {
        by_database!(self;
            Self::Sqlite(readers) => readers.query(statement).await;
            Self::Postgres(pool) => pool.query(statement).await.map_err(unavailable))
    }

    /// Begins a read of several statements, of which a server lets each run for so long.
    pub(crate) async fn moment(&self, limit: Duration) -> Result<ReadTransaction, Unavailable> {
        by_database!(self;
        Self::Sqlite(readers) => readers.begin(limit).await.map(ReadTransaction::Sqlite);
        Self::Postgres(pool) => {
            pool.moment(limit).await.map(ReadTransaction::Postgres).map_err(unavailable)
        })
    }

    /// Connections that are open and not in use, and those in use.
    pub(crate) fn counts(&self) -> (usize, usize) {
        by_database!(self;
            Self::Sqlite(readers) => readers.counts();
            Self::Postgres(pool) => pool.counts())
    }

    pub(crate) async fn close(&self) -> Result<(), Unavailable> {
        by_database!(self;
        Self::Sqlite(readers) => readers.close().await;
        Self::Postgres(pool) => {
            pool.close().await;
            Ok(())
        })
    }
}

impl ReadTransaction {
    pub(crate) const fn dialect(&self) -> Dialect {
        by_database!(self;
            Self::Sqlite(_) => Dialect::Sqlite;
            Self::Postgres(_) => Dialect::Postgres)
    }

    pub(crate) async fn end(self) -> Result<(), Unavailable> {
        by_database!(self;
        Self::Sqlite(transaction) => transaction.rollback().await.map_err(unavailable);
        Self::Postgres(moment) => {
            moment.end().await;
            Ok(())
        })
    }
}

#[async_trait]
impl ConnectionTrait for ReadTransaction {
    fn get_database_backend(&self) -> DbBackend {
        self.dialect().backend()
    }

    async fn execute_raw(&self, _statement: Statement) -> Result<ExecResult, DbErr> {
        Err(writes_nothing())
    }

    async fn execute_unprepared(&self, _sql: &str) -> Result<ExecResult, DbErr> {
        Err(writes_nothing())
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        Ok(self.query_all_raw(statement).await?.into_iter().next())
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        by_database!(self;
            Self::Sqlite(transaction) => transaction.query_all_raw(statement).await;
            Self::Postgres(moment) => moment.query(statement).await)
    }
}

fn writes_nothing() -> DbErr {
    DbErr::Exec(RuntimeErr::Internal("a read transaction writes nothing".to_owned()))
}

/// Makes the file of a database if there is none. A server makes its own.
pub(crate) fn create(url: &DatabaseUrl) -> Result<(), ConnectError> {
    by_database!(url.place();
        DatabaseLocation::File(file) => sqlite::connect::create(file);
        DatabaseLocation::Server(_) => Ok(()))
}

/// A read-only connection to a database. It cannot write a file, and one that is refused stays as it is.
pub(crate) async fn look(
    url: &DatabaseUrl,
    busy_timeout: Duration,
) -> Result<DatabaseConnection, ConnectError> {
    by_database!(url.place();
        DatabaseLocation::File(file) => sqlite::connect::readers(file, busy_timeout, (1, 1)).await;
        DatabaseLocation::Server(_) => migrate(url, busy_timeout).await)
}

/// A connection that migrates a database.
pub(crate) async fn migrate(
    url: &DatabaseUrl,
    busy_timeout: Duration,
) -> Result<DatabaseConnection, ConnectError> {
    by_database!(url.place();
    DatabaseLocation::File(file) => sqlite::connect::writers(file, busy_timeout).await;
    DatabaseLocation::Server(server) => {
        postgres::connect::connect_single(&Servers::of(server), busy_timeout).await
    })
}

/// True if there is no database at this URL: the file has another format, or the server has none of that name.
pub(crate) fn is_no_database(url: &DatabaseUrl, error: &DbErr) -> bool {
    by_database!(url.place();
        DatabaseLocation::File(_) => sqlite::connect::is_no_database(error);
        DatabaseLocation::Server(_) => postgres::error::is_no_database(error))
}
