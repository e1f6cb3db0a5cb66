//! Reasons why a database is not opened, served or migrated, and how a failure of either database reaches a caller.

use std::io;
use std::path::PathBuf;

use holdfast_domain::ports::{Cause, Unavailable};
use sea_orm::DbErr;

use crate::schema::loss::Loss;
use crate::schema::url::DatabaseUrl;

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
    /// None of several servers is a primary, or the only one is no usable one.
    #[error(transparent)]
    NoPrimary(Cause),
    /// A pooler between this process and the server that does not keep sessions apart.
    #[error("a pooler between shares sessions among transactions: have it keep them apart")]
    Shared,
}

/// Refusal of a schema that this program does not work with, or failure to read or write one.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The file does not exist.
    #[error("there is no database at {0}: run `holdfast migrate up`")]
    Missing(PathBuf),
    /// The server has no such database.
    #[error("there is no database {0}: create it with `createdb`, then run `holdfast migrate up`")]
    NotMade(DatabaseUrl),
    /// An empty database, or one that an older version of the program wrote.
    #[error(
        "the database is at schema {found} and this program needs {needed}: run `holdfast migrate up`"
    )]
    Older {
        /// Version of the last migration that the database has; zero for none.
        found: u32,
        /// Version of the last migration that this program has.
        needed: u32,
    },
    /// A newer version of the program wrote it.
    #[error("the database is at schema {0}, which this program does not know: use a newer one")]
    Newer(u32),
    /// A migration that was applied is not the one that this program has.
    #[error("migration {0} of the database is not this program's")]
    Changed(u32),
    /// It has tables of another program, or is not a database.
    #[error("{0} is not a Holdfast database")]
    Foreign(String),
    /// No migration is applied.
    #[error("no migration is applied")]
    NothingApplied,
    /// A gateway works with it.
    #[error("node {0} is running on it")]
    InUse(String),
    /// Rows would go with it.
    #[error("it would delete {0}")]
    Filled(Loss),
    /// A file that cannot be opened, or a server that cannot be connected to.
    #[error("the database cannot be opened")]
    Connect(#[source] ConnectError),
    /// A statement failed.
    #[error("the schema cannot be read or written")]
    Failed(#[source] DbErr),
}

/// A right to serve that was not given.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process serves this file.
    #[error("another `holdfast serve` uses {0}")]
    Taken(PathBuf),
    /// The file has several names.
    #[error(transparent)]
    Lost(FileLost),
    /// The lock file cannot be made or locked.
    #[error("{0} cannot be locked")]
    Failed(PathBuf, #[source] io::Error),
}

/// A file that is not, or is no longer, the one that was opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FileLost {
    /// The name leads to no file any more.
    #[error("the database {0} was removed while it was served: later commits are missing")]
    Removed(PathBuf),
    /// Another file has the name now.
    #[error("the database {0} is another file than the one that is served: it was replaced")]
    Replaced(PathBuf),
    /// The file has more names than this one, each with a log of its own.
    #[error("the database {0} has {1} names (hard links): delete all others but leave this one")]
    Linked(PathBuf, u64),
    /// The log, or its index, is not there any more.
    #[error("{0} was removed while its database was served: no commit is acknowledged any more")]
    LogRemoved(PathBuf),
    /// The ledger was copied to a server, which has it now.
    #[error(
        "the ledger of {0} was copied to a server: work on that database, or start `holdfast serve --again` if the copy \
         was given up"
    )]
    Copied(PathBuf),
    /// Another file has the name of the log or of its index.
    #[error("{0} is another file than the one that the served database uses: it was replaced")]
    LogReplaced(PathBuf),
}

pub(crate) fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> Unavailable {
    Unavailable(Box::new(error))
}
