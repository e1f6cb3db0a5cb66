//! Connections to the database file: settings, pools, file mode. Migrations create the tables.
//!
//! The writer, the checkpointer and a migration have a connection each; the pools of readers only read.
//! `synchronous` is FULL: a commit that was answered is on the disk. Automatic checkpoints are off, because they
//! would run inside of a caller's commit.
//!
//! A process that serves checks the file by device and inode before and after it opens a connection that writes: a
//! name that was given to another file in between would be written to otherwise. A connection that reads creates a
//! missing log anew: its pool is opened after a comparison with the files that are served, and the process that serves
//! opens all connections at its start.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::ports::Cause;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use sea_orm::{ConnectOptions, Database, DatabaseConnection, DbErr, RuntimeErr};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use tokio::time::Instant;

use crate::error::{ConnectError, FileLost};
use crate::lock::{self, ServeLock, create_folder};
use crate::schema::Dialect;

/// SQLite's clock, in microseconds since the epoch.
pub(super) const CLOCK: &str = Dialect::Sqlite.clock();

/// Setting of a file that says whether its ledger was copied to a server, and its value then: `HFMV`. The schema uses
/// that number for nothing else.
pub(crate) const COPIED: &str = "user_version";
pub(crate) const COPIED_MARK: i64 = 0x4846_4D56;
/// Settings of a connection that writes. Checkpoints are made by the checkpointer and, when little
/// is left to do, by the writer: never by whichever commit comes next.
const LOG: [(&str, &str); 2] = [("wal_autocheckpoint", "0"), ("journal_size_limit", "67108864")];
/// Settings of every connection: 8 MiB of cache, since larger ones and mmap brought no gain.
const SMALL: [(&str, &str); 3] =
    [("cache_size", "-8192"), ("mmap_size", "0"), ("temp_store", "MEMORY")];
/// Versions before this one may corrupt a database when its log is reset.
const VERSION_MIN: i32 = 3_051_003;
/// The primary result code of a row, or a value of it, that is longer than SQLite can hold.
pub(crate) const TOO_BIG: i32 = rusqlite::ffi::SQLITE_TOOBIG;
/// The primary result code of a statement that made no sense of its values.
pub(crate) const ERROR: i32 = rusqlite::ffi::SQLITE_ERROR;
/// The primary result code of a row that the tables do not allow.
pub(crate) const CONSTRAINT: i32 = rusqlite::ffi::SQLITE_CONSTRAINT;
/// The primary result code of a file with another format.
const NOT_A_DATABASE: u32 = 26;
/// The primary result code of a file that another process has locked.
const LOCKED: u32 = 5;
/// Pause before a locked file is opened again.
const AGAIN: Duration = Duration::from_millis(10);
/// Time that a caller waits for a connection of a pool.
const ACQUIRE: Duration = Duration::from_secs(5);
/// Rows that a connection's thread may run ahead of their reader.
const ROWS_AHEAD: usize = 4_096;

/// Creates the file, and its folder, readable only by its owner, if it does not exist. Files that SQLite puts next
/// to it get the same mode.
pub(crate) fn create(path: &Path) -> Result<(), ConnectError> {
    let error = |error| ConnectError::Create(path.to_owned(), error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_folder(folder).map_err(error)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_empty) => Ok(()),
        Err(exists) if exists.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(other) => Err(error(other)),
    }
}

/// SQLite's primary result code of a failure.
fn result_code(error: &DbErr) -> Option<u32> {
    let (DbErr::Conn(RuntimeErr::SqlxError(error))
    | DbErr::Exec(RuntimeErr::SqlxError(error))
    | DbErr::Query(RuntimeErr::SqlxError(error))) = error
    else {
        return None;
    };
    let code: u32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

/// True if the file is not a SQLite database.
pub(crate) fn is_no_database(error: &DbErr) -> bool {
    result_code(error) == Some(NOT_A_DATABASE)
}

/// True if the ledger of this file was copied to a server, which has it now.
pub(crate) fn is_copied(connection: &Connection) -> rusqlite::Result<bool> {
    let mark: i64 = connection.pragma_query_value(None, COPIED, |row| row.get(0))?;
    Ok(mark == COPIED_MARK)
}

/// A database file that is written, by threads that wait for each statement.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseFile {
    pub(crate) path: PathBuf,
    /// Time that a transaction waits for another process that writes.
    pub(crate) busy_timeout: Duration,
    /// Lock of the process that serves the file; `None` in other processes.
    pub(crate) lock: Option<Arc<ServeLock>>,
}

impl DatabaseFile {
    /// Another connection, to the file that is in hold and no other.
    pub(crate) fn open(&self) -> rusqlite::Result<Connection> {
        self.connect(self.busy_timeout)
    }

    fn connect(&self, busy_timeout: Duration) -> rusqlite::Result<Connection> {
        // Without CREATE: a file that was removed must be an error, not an empty database. Without
        // a mutex: one thread owns the connection.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // Before, so that no foreign file is opened; after, since the name may have moved; and once more when
        // SQLite has opened the log, with the first setting that reads the file.
        self.check()?;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        self.check()?;
        // Before the settings: the one of the journal needs a lock that another process may hold just now.
        connection.busy_timeout(busy_timeout)?;
        let fixed = [("journal_mode", "WAL"), ("synchronous", "FULL"), ("foreign_keys", "ON")];
        for (name, value) in fixed.into_iter().chain(SMALL).chain(LOG) {
            connection.pragma_update(None, name, value)?;
        }
        self.check()?;
        Ok(connection)
    }

    /// Refuses if the names lead to other files than those in hold, or than those that the serving process has
    /// open.
    pub(super) fn check(&self) -> rusqlite::Result<()> {
        let checked = match &self.lock {
            Some(lock) => lock.check(),
            None => lock::check_served(&self.path),
        };
        checked.map_err(|lost| {
            let moved = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY_DBMOVED);
            rusqlite::Error::SqliteFailure(moved, Some(lost.to_string()))
        })
    }

    /// Keeps a connection open for as long as the file is served.
    pub(super) fn keep(&self) -> Result<(), Cause> {
        let Some(lock) = &self.lock else { return Ok(()) };
        let connection = self.open()?;
        if is_copied(&connection)? {
            return Err(FileLost::Copied(self.path.clone()).into());
        }
        Ok(lock.keep(connection)?)
    }

    /// Folds a log that was removed into the file.
    pub(super) fn rescue(&self) {
        if let Some(lock) = &self.lock {
            lock.rescue();
        }
    }

    /// Folds the log into the file, as far as that delays no other process. TRUNCATE takes the right to write and
    /// keeps it while it waits for those who read: only the process that serves may, and no process writes to it by
    /// then. All others would stop its commits. They leave the log to it, or to the last connection of all, with
    /// whose end SQLite folds the log by itself.
    pub(crate) fn leave(&self) -> rusqlite::Result<()> {
        let Some(lock) = &self.lock else {
            return match self.connect(Duration::ZERO) {
                // Another process uses the file, and folds the log at its own end.
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(()),
                opened => opened.map(drop),
            };
        };
        lock.rescue();
        let connection = self.open()?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_progress| Ok(()))?;
        if let Err(error) = lock.release() {
            tracing::warn!(%error, "the lock file of the database was not emptied");
        }
        Ok(())
    }
}

/// Refuses a library that is too old to be trusted.
pub(crate) fn check_library() -> Result<(), ConnectError> {
    if rusqlite::version_number() < VERSION_MIN {
        return Err(ConnectError::Library(rusqlite::version().to_owned()));
    }
    Ok(())
}

/// A connection that writes, for a migration.
pub(crate) async fn writers(
    path: &Path,
    busy_timeout: Duration,
) -> Result<DatabaseConnection, ConnectError> {
    check_library()?;
    let options = settings(path, busy_timeout).journal_mode(SqliteJournalMode::Wal);
    let set = |options: SqliteConnectOptions, (name, value)| options.pragma(name, value);
    open(path, LOG.into_iter().fold(options, set), busy_timeout, (1, 1)).await
}

/// Connections that cannot write: so many are opened at once, and so many at most as they are needed.
pub(crate) async fn readers(
    path: &Path,
    busy_timeout: Duration,
    connections: (u32, u32),
) -> Result<DatabaseConnection, ConnectError> {
    let options = settings(path, busy_timeout).read_only(true).pragma("query_only", "1");
    open(path, options, busy_timeout, connections).await
}

fn settings(path: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .foreign_keys(true)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(busy_timeout)
        .statement_cache_capacity(256)
        .row_buffer_size(ROWS_AHEAD)
        .disable_statement_logging();
    SMALL.into_iter().fold(options, |options, (name, value)| options.pragma(name, value))
}

/// Opens a file after a comparison with the one that is served, and tries again if it is locked, the last time when
/// this time is over: SQLite does not always wait by itself for a file that another process makes ready at the same
/// moment. At least one connection is opened here: the pool itself does neither for those that it opens later.
async fn open(
    path: &Path,
    options: SqliteConnectOptions,
    busy_timeout: Duration,
    (connections_min, connections_max): (u32, u32),
) -> Result<DatabaseConnection, ConnectError> {
    let mut pool = ConnectOptions::new("sqlite::memory:");
    pool.max_connections(connections_max)
        .min_connections(connections_min)
        .acquire_timeout(ACQUIRE)
        .idle_timeout(None::<Duration>)
        .max_lifetime(None::<Duration>)
        // A file has no other end that may be gone: connections are neither tested nor replaced by age.
        .test_before_acquire(false)
        .sqlx_logging(false)
        .record_stmt_in_spans(false)
        // The path is not written into a URL, which would be decoded.
        .map_sqlx_sqlite_opts(move |_from_url| options.clone());
    let give_up = Instant::now() + busy_timeout;
    loop {
        lock::check_served(path).map_err(ConnectError::Lost)?;
        match Database::connect(pool.clone()).await {
            Err(locked) if result_code(&locked) == Some(LOCKED) && Instant::now() < give_up => {
                tokio::time::sleep(AGAIN).await;
            }
            other => return other.map_err(|error| ConnectError::Open(path.to_owned(), error)),
        }
    }
}
