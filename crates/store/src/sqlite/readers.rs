//! Connections through which a file is read.

use std::time::Duration;

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, QueryResult, Statement,
    TransactionTrait,
};

/// Connections for one purpose.
pub(crate) struct FileReaders(DatabaseConnection);

impl FileReaders {
    pub(crate) const fn new(connections: DatabaseConnection) -> Self {
        Self(connections)
    }

    pub(crate) async fn query(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.0.query_all_raw(statement).await
    }

    /// Begins a read of several statements. A file has no limit of a statement.
    pub(crate) async fn moment(&self, _statement: Duration) -> Result<FileReadTransaction, DbErr> {
        self.0.begin().await.map(FileReadTransaction)
    }

    /// Connections that are open and not in use, and those in use.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let pool = self.0.get_sqlite_connection_pool();
        let idle = pool.num_idle();
        (idle, usize::try_from(pool.size()).unwrap_or(0).saturating_sub(idle))
    }

    pub(crate) async fn close(&self) -> Result<(), DbErr> {
        self.0.close_by_ref().await
    }
}

/// A deferred transaction, which sees the rows as its first read saw them.
pub(crate) struct FileReadTransaction(DatabaseTransaction);

impl FileReadTransaction {
    pub(crate) async fn query(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.0.query_all_raw(statement).await
    }

    pub(crate) async fn end(self) -> Result<(), DbErr> {
        self.0.rollback().await
    }
}
