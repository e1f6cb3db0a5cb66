//! Opens the database file: its settings, its pools, its mode. It makes no tables.
//!
//! One connection writes, a second one checkpoints, the pool of readers only reads. `synchronous` is
//! FULL: a commit that was answered is on the disk.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbErr, RuntimeErr};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use crate::dialect::Dialect;

/// Microseconds since the epoch by SQLite's clock, which counts milliseconds.
pub(crate) const CLOCK: &str = "CAST(round(unixepoch('subsec') * 1000.0) AS INTEGER) * 1000";

/// Versions before this one may corrupt a database when its log is reset.
const VERSION_MIN: [u32; 3] = [3, 51, 3];
/// The primary result code of a statement that made no sense of its values.
pub(crate) const ERROR: u32 = 1;
/// The primary result code of a row that the tables do not allow.
pub(crate) const CONSTRAINT: u32 = 19;
/// The primary result code of a file that is something else.
pub(crate) const NOT_A_DATABASE: u32 = 26;
/// How long a caller waits for a connection of a pool.
const ACQUIRE: Duration = Duration::from_secs(5);
/// Rows that a connection's thread may run ahead of their reader.
const ROWS_AHEAD: usize = 4_096;

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
}

/// Makes the file, and its folder, for its owner's eyes only, if it is not there. What SQLite puts
/// beside it gets the same mode.
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

/// Makes a folder, and those above it, for its owner alone.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// SQLite's primary result code of a failure.
pub(crate) fn result_code(error: &DbErr) -> Option<u32> {
    let (DbErr::Conn(RuntimeErr::SqlxError(error))
    | DbErr::Exec(RuntimeErr::SqlxError(error))
    | DbErr::Query(RuntimeErr::SqlxError(error))) = error
    else {
        return None;
    };
    primary_code(error)
}

/// SQLite's result code, without what extends it.
pub(crate) fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let code: u32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

/// Whether a row was refused because another one has its name or id.
pub(crate) fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.is_unique_violation())
}

/// Connections that write: the writer's, the checkpointer's, a migration's.
pub(crate) async fn writers(
    path: &Path,
    busy_timeout: Duration,
) -> Result<DatabaseConnection, ConnectError> {
    let options = settings(path, busy_timeout)
        .journal_mode(SqliteJournalMode::Wal)
        .pragma("wal_autocheckpoint", "16000")
        .pragma("journal_size_limit", "67108864");
    let db = open(path, options, 2).await?;
    let version = version(&db).await.map_err(|error| ConnectError::Open(path.to_owned(), error))?;
    let numbers: Vec<u32> = version.split('.').filter_map(|part| part.parse().ok()).collect();
    if numbers < VERSION_MIN.to_vec() {
        return Err(ConnectError::Library(version));
    }
    Ok(db)
}

/// Connections that cannot write.
pub(crate) async fn readers(
    path: &Path,
    busy_timeout: Duration,
    connections: u32,
) -> Result<DatabaseConnection, ConnectError> {
    let options = settings(path, busy_timeout).read_only(true).pragma("query_only", "1");
    open(path, options, connections.max(1)).await
}

fn settings(path: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .foreign_keys(true)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(busy_timeout)
        .pragma("cache_size", "-8192")
        .pragma("mmap_size", "0")
        .pragma("temp_store", "MEMORY")
        .statement_cache_capacity(256)
        .row_buffer_size(ROWS_AHEAD)
        .disable_statement_logging()
}

async fn open(
    path: &Path,
    options: SqliteConnectOptions,
    connections: u32,
) -> Result<DatabaseConnection, ConnectError> {
    let mut pool = ConnectOptions::new("sqlite::memory:");
    pool.max_connections(connections)
        .min_connections(0)
        .acquire_timeout(ACQUIRE)
        .idle_timeout(None::<Duration>)
        .max_lifetime(None::<Duration>)
        .test_before_acquire(false)
        .sqlx_logging(false)
        .record_stmt_in_spans(false)
        // The path is not written into a URL, where it would be decoded.
        .map_sqlx_sqlite_opts(move |_from_url| options.clone());
    Database::connect(pool).await.map_err(|error| ConnectError::Open(path.to_owned(), error))
}

async fn version(db: &DatabaseConnection) -> Result<String, DbErr> {
    let statement = Dialect::Sqlite.statement("SELECT sqlite_version()", []);
    let row = db.query_one_raw(statement).await?;
    row.map_or_else(|| Ok(String::new()), |row| row.try_get_by_index(0))
}
