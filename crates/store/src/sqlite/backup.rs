//! Copies of a database file, made while it is served: SQLite's online backup.
//!
//! ```text
//! FILE, empty (0600): the name is taken ─▶ FILE.partial: the pages of one snapshot ─▶ renamed to FILE
//! ```
//!
//! One transaction reads all pages, so a commit made meanwhile neither changes the copy nor has it begin anew; the
//! writer does not wait. Until the copy is whole, the log cannot begin anew either: it grows by the commits of that
//! time.
//!
//! Only SQLite opens the source. Closing any other descriptor of the file would drop the locks that SQLite holds on
//! it in this process. A copy is never written over an existing file, nor next to the log of an earlier one, whose
//! commits SQLite would replay into it. No half of a copy keeps the name: a failure removes both files, and a
//! killed process leaves FILE empty.
//!
//! A copy that is to be served is marked as a restore before it gets its name: no process ever serves one without the
//! mark.
//!
//! ```
//! use holdfast_store::{DatabaseUrl, backup, migrate};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let [ledger, copy] = ["ledger.db", "copy.db"].map(|name| folder.path().join(name));
//! migrate::up(&DatabaseUrl::parse(&format!("sqlite://{}", ledger.display()))?).await?;
//!
//! let report = backup::copy(&ledger, &copy, |_done, _of| {}).await?;
//! assert_eq!(report.bytes, std::fs::metadata(&copy)?.len());
//! // A copy is never written over a file.
//! let again = backup::copy(&ledger, &copy, |_done, _of| {}).await;
//! assert!(matches!(again, Err(backup::CopyError::Exists(_))));
//! # Ok(())
//! # }
//! ```

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_domain::ports::Cause;
use holdfast_domain::restore::{Restore, UnknownKeys};
use holdfast_domain::{OperationId, Timestamp};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row};

use crate::error::ConnectError;
use crate::error::LockError;
use crate::lock;
use crate::rows::{Cells, restore};
use crate::schema::Dialect;
use crate::sqlite::write_task::WriteError;
use crate::sqlite::{administration, connect};

/// Pages that are copied between two words of progress: 8 MiB at 4 KiB a page.
const STEP: i32 = 2_048;
/// Ends of the names of the files that SQLite keeps next to a database, and a killed process leaves there.
const LOGS: [&str; 3] = ["-wal", "-shm", "-journal"];
/// Time that the first read waits for a process that makes the file ready.
const BUSY: Duration = Duration::from_secs(5);

/// A copy that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyReport {
    /// Length of the copy.
    pub bytes: u64,
    /// Credentials of the copy: none of them is accepted without the server secret that it was made with.
    pub credentials: u64,
    /// The newest operation of the copy; none in a ledger without any.
    pub last: Option<LastOperation>,
    /// Restore that the copy was marked with; none in a copy that is not to be served.
    pub restore: Option<Restore>,
}

/// The newest operation of a copy: later operations are not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastOperation {
    /// Id of the operation.
    pub id: OperationId,
    /// The moment of its claim.
    pub created_at: Timestamp,
}

/// A copy that was not made. No file of it is left.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The name of the copy is taken.
    #[error("{0} exists already: a copy never overwrites a file")]
    Exists(PathBuf),
    /// A killed process has left the log of a database of this name.
    #[error(
        "{0} is there still, of the database that had this name: move it away with the file that it \
         belongs to, or SQLite would replay it into the copy"
    )]
    Log(PathBuf),
    /// The copy cannot be made or named.
    #[error("{0} cannot be written")]
    File(PathBuf, #[source] io::Error),
    /// The bundled library is not to be trusted, or another one was linked.
    #[error(transparent)]
    Library(ConnectError),
    /// The source has several names.
    #[error(transparent)]
    Names(LockError),
    /// The source was not read, or the copy has no room.
    #[error("{0} was not copied to {1}")]
    Pages(PathBuf, PathBuf, #[source] Cause),
    /// The copy was not marked as a restore.
    #[error("{0} was not marked as a restore")]
    Mark(PathBuf, #[source] Cause),
}

/// Copies a database file as it is at one moment, during writes of other processes, and reports the progress after
/// each part as the number of copied pages and of all pages. Not cancel safe: a copy whose caller is gone goes on.
///
/// # Errors
///
/// [`CopyError::Exists`] and [`CopyError::Log`] if the copy's name is taken, [`CopyError::Names`] if the source has
/// several names, [`CopyError::Pages`] if it cannot be read or there is no room, and [`CopyError::File`] if the copy
/// cannot be written.
pub async fn copy(
    from: &Path,
    to: &Path,
    tell: impl FnMut(u64, u64) + Send + 'static,
) -> Result<CopyReport, CopyError> {
    copy_as(from, to, None, tell).await
}

/// Copies a database file, and marks the copy as a restore with this rule for unknown request keys. Else as [`copy`].
///
/// # Errors
///
/// As [`copy`], and [`CopyError::Mark`] if the copy cannot be marked.
pub async fn restore(
    from: &Path,
    to: &Path,
    unknown: UnknownKeys,
    tell: impl FnMut(u64, u64) + Send + 'static,
) -> Result<CopyReport, CopyError> {
    copy_as(from, to, Some(unknown), tell).await
}

async fn copy_as(
    from: &Path,
    to: &Path,
    unknown: Option<UnknownKeys>,
    tell: impl FnMut(u64, u64) + Send + 'static,
) -> Result<CopyReport, CopyError> {
    connect::check_library().map_err(CopyError::Library)?;
    lock::hold(from, None).map_err(CopyError::Names)?;
    let (from, to) = (from.to_owned(), to.to_owned());
    let failed = (from.clone(), to.clone());
    let copied = tokio::task::spawn_blocking(move || copy_named(&from, &to, unknown, tell)).await;
    copied.map_err(|error| CopyError::Pages(failed.0, failed.1, Box::new(error)))?
}

fn copy_named(
    from: &Path,
    to: &Path,
    unknown: Option<UnknownKeys>,
    tell: impl FnMut(u64, u64),
) -> Result<CopyReport, CopyError> {
    let logs = LOGS.map(|suffix| beside(to, suffix));
    // Looked at by name: a link that leads nowhere is in the way as well.
    if let Some(log) = logs.into_iter().find(|log| log.symlink_metadata().is_ok()) {
        return Err(CopyError::Log(log));
    }
    // Empty: taken before any page is copied, so that of two copies one is refused at once.
    create(to, OpenOptions::new().create_new(true))?;
    let partial = beside(to, ".partial");
    let copied = copy_claimed(from, to, &partial, unknown, tell);
    if copied.is_err() {
        // As far as they exist: the failure is reported, and its remains are named there.
        fs::remove_file(&partial).ok();
        fs::remove_file(to).ok();
    }
    copied
}

fn copy_claimed(
    from: &Path,
    to: &Path,
    partial: &Path,
    unknown: Option<UnknownKeys>,
    tell: impl FnMut(u64, u64),
) -> Result<CopyReport, CopyError> {
    // A file of a killed process with the same name has no owner. Created anew rather than written over: a file
    // that another user put there would keep its owner and mode, or lead to another path.
    fs::remove_file(partial).ok();
    create(partial, OpenOptions::new().create_new(true))?;
    let pages =
        |error: rusqlite::Error| CopyError::Pages(from.to_owned(), to.to_owned(), Box::new(error));
    let mut report = copy_pages(from, partial, tell).map_err(pages)?;
    if let Some(unknown) = unknown {
        let marked = mark(partial, unknown);
        let marked = marked.map_err(|error| CopyError::Mark(to.to_owned(), Box::new(error)))?;
        report.restore = Some(marked);
    }
    let bytes = keep(partial, to).map_err(|error| CopyError::File(to.to_owned(), error))?;
    Ok(CopyReport { bytes, ..report })
}

fn create(file: &Path, options: &mut OpenOptions) -> Result<(), CopyError> {
    match options.write(true).mode(0o600).open(file) {
        Ok(_closed) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(CopyError::Exists(file.to_owned()))
        }
        Err(error) => Err(CopyError::File(file.to_owned(), error)),
    }
}

fn copy_pages(
    from: &Path,
    to: &Path,
    mut tell: impl FnMut(u64, u64),
) -> rusqlite::Result<CopyReport> {
    // Without CREATE: a missing file must be an error. To write: a reader leaves the log's files behind if it is
    // the last one to use them.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut source = Connection::open_with_flags(from, flags)?;
    source.busy_timeout(BUSY)?;
    let mut target = Connection::open_with_flags(to, flags)?;
    // Deferred: its first read takes the snapshot, in which the backup then reads every page.
    let snapshot = source.transaction()?;
    let count = |row: &Row<'_>| row.get::<_, i64>(0);
    let credentials = snapshot.query_row("SELECT count(*) FROM credentials", [], count)?;
    let credentials = u64::try_from(credentials).unwrap_or_default();
    let report =
        CopyReport { bytes: 0, credentials, last: last_operation(&snapshot)?, restore: None };
    let backup = Backup::new(&snapshot, &mut target)?;
    loop {
        let step = backup.step(STEP)?;
        let progress = backup.progress();
        let [of, left] = [progress.pagecount, progress.remaining]
            .map(|pages| u64::try_from(pages).unwrap_or_default());
        tell(of.saturating_sub(left), of);
        match step {
            StepResult::Done => return Ok(report),
            StepResult::More => {}
            // No other process knows of the copy, and the snapshot is taken: another one holds a lock of ours.
            StepResult::Busy | StepResult::Locked | _ => {
                return Err(rusqlite::Error::SqliteFailure(busy(), None));
            }
        }
    }
}

/// Marks a copy that has no name yet.
fn mark(partial: &Path, unknown: UnknownKeys) -> Result<Restore, WriteError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(partial, flags)?;
    // The file is renamed: no commit may stay in a log of its earlier name.
    connection.pragma_update(None, "journal_mode", "DELETE")?;
    let transaction = connection.transaction()?;
    let clock = format!("SELECT {}", Dialect::Sqlite.clock());
    let now = transaction.query_row(&clock, [], |row| row.get(0)).map(Timestamp::from_micros)?;
    for statement in restore::declaration(Dialect::Sqlite, unknown, now) {
        administration::execute(&transaction, &statement)?;
    }
    let restore = transaction
        .query_row(restore::NEWEST, [], |row| Ok(restore::restore(&mut Cells::written(row))))??;
    transaction.commit()?;
    Ok(restore)
}

fn busy() -> rusqlite::ffi::Error {
    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY)
}

fn last_operation(source: &Connection) -> rusqlite::Result<Option<LastOperation>> {
    const NEWEST: &str = "SELECT id, created_at FROM operations ORDER BY seq DESC LIMIT 1";
    let last = source.query_row(NEWEST, [], |row| {
        Ok(LastOperation {
            id: OperationId::from_bytes(row.get(0)?),
            created_at: Timestamp::from_micros(row.get(1)?),
        })
    });
    last.optional()
}

/// Gives the copy its name, for good: its length.
fn keep(partial: &Path, to: &Path) -> io::Result<u64> {
    let file = File::open(partial)?;
    file.sync_all()?;
    fs::rename(partial, to)?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(file.metadata()?.len())
}

/// The name with a suffix, in the same folder.
fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
