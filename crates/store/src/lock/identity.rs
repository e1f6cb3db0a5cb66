//! The database file that was opened, distinguished from every other one that may come to have its name.
//!
//! A name is not a file: it can be removed, given to another file (a backup moved over it), or be one of several (a
//! hard link, a bind mount). SQLite checks none of that as it commits, and writes on into the file that it has
//! open, whose log it finds by the name. So a serving process holds the file itself, by its device and inode:
//!
//! - an exclusive `flock` on the inode, for as long as the process serves, under every name of the file;
//! - one name: a second hard link has a second log, and the two ruin the file;
//! - device and inode of the name, of the log and of its index are compared with those of the held file at each
//!   heartbeat, after each COMMIT, and whenever a connection that writes is opened. One connection stays open all
//!   the while: SQLite deletes neither log nor index under it. If they are removed, it still has them open, and
//!   folds the log into the file.
//!
//! `flock` and the `fcntl` locks of SQLite do not see each other. But closing *any* descriptor of a file drops all
//! `fcntl` locks that the process has on it, SQLite's as well: the descriptor here is unlocked at its end and never
//! closed.

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rusqlite::Connection;
use tokio_util::sync::CancellationToken;

use crate::error::FileLost;

/// A file that was not taken hold of.
#[derive(Debug)]
pub(crate) enum HoldError {
    /// Another process holds it, by whatever name.
    Taken,
    /// The file has several names, or lost its only one.
    Lost(FileLost),
    /// The file cannot be opened or locked.
    Failed(io::Error),
}

/// Device and inode of a file.
pub(super) type FileId = (u64, u64);

/// Device and inode of the file itself, of its log and of its index.
pub(super) type FileIds = [Option<FileId>; 3];

/// Suffixes that SQLite gives the name of a database: of the file, of its log, of the log's index.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// A database file in hold.
#[derive(Debug)]
pub(crate) struct Identity {
    named: PathBuf,
    /// The name without links; SQLite keeps log and index in its folder.
    real: PathBuf,
    held: FileId,
    open: Mutex<Option<OpenFiles>>,
    /// Unlocked when it is dropped, and left open.
    file: ManuallyDrop<File>,
    lost: OnceLock<FileLost>,
    loss_found: CancellationToken,
}

/// The connection that stays open, and the files of the database as it found them.
#[derive(Debug)]
struct OpenFiles {
    connection: Connection,
    files: FileIds,
}

impl Identity {
    /// Takes hold of the file that has this name now.
    pub(crate) fn hold(named: &Path) -> Result<Self, HoldError> {
        let file = ManuallyDrop::new(File::open(named).map_err(HoldError::Failed)?);
        // Of what was opened, not of the name, which may lead elsewhere by now.
        let held = file.metadata().map_err(HoldError::Failed)?;
        one_name(named, &held).map_err(HoldError::Lost)?;
        // No waiting: who holds the lock serves the file, and does so for as long as it runs.
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(HoldError::Taken),
            Err(TryLockError::Error(error)) => return Err(HoldError::Failed(error)),
        }
        let real = named.canonicalize().map_err(HoldError::Failed)?;
        let (lost, loss_found) = (OnceLock::new(), CancellationToken::new());
        let (named, held) = (named.to_owned(), id(&held));
        Ok(Self { named, real, held, open: Mutex::new(None), file, lost, loss_found })
    }

    /// Refuses if the name leads to another file than the held one, and notes it. A second name is noted only:
    /// running operations may still end in this file. A name that cannot be resolved proves nothing.
    pub(crate) fn check(&self) -> Result<(), FileLost> {
        let files = self.open_files().as_ref().map(|open| open.files);
        let Err(lost) = self.compare(files.as_ref()) else { return Ok(()) };
        // Noted before the token is cancelled: who is woken by it finds the reason.
        self.lost.get_or_init(|| lost.clone());
        self.loss_found.cancel();
        if matches!(lost, FileLost::Linked(..)) { Ok(()) } else { Err(lost) }
    }

    /// Compares the names with what is in hold. The file without links is looked at as it is: a
    /// link that took its place leads other processes to another log.
    fn compare(&self, files: Option<&FileIds>) -> Result<(), FileLost> {
        // As they are spelled, which is quickly compared: one name in two spellings is looked at twice.
        if self.named.as_os_str() != self.real.as_os_str() {
            self.compare_file(fs::metadata(&self.named), &self.named)?;
        }
        let file = self.compare_file(fs::symlink_metadata(&self.real), &self.real);
        if !matches!(file, Ok(()) | Err(FileLost::Linked(..))) {
            return file;
        }
        files.map_or(Ok(()), |files| compare_log(&self.real, files))?;
        file
    }

    fn compare_file(&self, found: io::Result<Metadata>, named: &Path) -> Result<(), FileLost> {
        match found {
            Ok(found) if id(&found) == self.held => one_name(named, &found),
            Ok(_other) => Err(FileLost::Replaced(named.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(FileLost::Removed(named.to_owned()))
            }
            Err(error) => {
                tracing::warn!(%error, "the database file cannot be read by its name");
                Ok(())
            }
        }
    }

    /// Keeps this connection open until [`Self::release`], and notes log and index. Returns the note, if no
    /// connection was kept before.
    pub(super) fn keep(&self, connection: Connection) -> Option<FileIds> {
        let mut open = self.open_files();
        if open.is_some() {
            return None;
        }
        let files = file_ids(&self.real);
        *open = Some(OpenFiles { connection, files });
        Some(files)
    }

    /// Folds the log that the kept connection has open into the file, if the file has its name and the only fault
    /// of log and index is that they were removed. A log that a process created anew as it opened the file is
    /// empty, and no process writes to it under the locks of an index that still exists. The caller must have no
    /// open transaction on this thread.
    pub(super) fn rescue(&self) {
        let open = self.open_files();
        let Some(OpenFiles { connection, files }) = &*open else { return };
        let [file, log, index] = file_ids(&self.real);
        let is_ours = file == Some(self.held)
            && (log.is_none() || log == files[1] || (index == files[2] && self.is_log_empty()))
            && (index.is_none() || index == files[2]);
        if !is_ours {
            tracing::error!("the log is not folded into the file: another file has a name of it");
            return;
        }
        let folded = connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |row| row.get(0));
        match folded {
            Ok(0) => tracing::warn!("the log was folded into the file: no commit is lost"),
            Ok(busy) => tracing::error!(busy, "not all of the log was folded into the file"),
            Err(error) => tracing::error!(%error, "the log was not folded into the file"),
        }
    }

    fn is_log_empty(&self) -> bool {
        let log = fs::symlink_metadata(beside(&self.real, "-wal"));
        log.is_ok_and(|log| log.is_file() && log.len() == 0)
    }

    /// True if a check has found the file, its log or its index to be gone.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.get().is_some_and(|lost| !matches!(lost, FileLost::Linked(..)))
    }

    /// Closes the kept connection, if all files are those that it opened. Of lost files it stays open until the
    /// process ends: the last one to close would delete the file that has the log's name.
    pub(super) fn release(&self) {
        let Some(open) = self.open_files().take() else { return };
        if self.compare(Some(&open.files)).is_err() || self.is_lost() {
            std::mem::forget(open);
        }
    }

    fn open_files(&self) -> MutexGuard<'_, Option<OpenFiles>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes with the loss when a check has found the file to be lost.
    pub(crate) async fn lost(&self) -> FileLost {
        self.loss_found.cancelled().await;
        match self.lost.get() {
            Some(lost) => lost.clone(),
            None => std::future::pending().await,
        }
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        self.release();
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "the database file was not unlocked");
        }
    }
}

/// Refuses a file with several names.
pub(super) fn one_name(named: &Path, file: &Metadata) -> Result<(), FileLost> {
    match file.nlink() {
        0 => Err(FileLost::Removed(named.to_owned())),
        1 => Ok(()),
        links => Err(FileLost::Linked(named.to_owned(), links)),
    }
}

fn id(file: &Metadata) -> FileId {
    (file.dev(), file.ino())
}

fn beside(real: &Path, suffix: &str) -> PathBuf {
    let mut name = real.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Device and inode of a database, its log and its index; `None` for what is not there. Never by
/// opening them: closing one drops the locks of SQLite.
pub(super) fn file_ids(real: &Path) -> FileIds {
    SUFFIXES.map(|suffix| fs::symlink_metadata(beside(real, suffix)).ok().map(|it| id(&it)))
}

/// Refuses a database whose own file is another one than noted.
pub(super) fn compare_all(real: &Path, noted: &FileIds) -> Result<(), FileLost> {
    match fs::symlink_metadata(real) {
        Ok(found) if Some(id(&found)) == noted[0] => compare_log(real, noted),
        Ok(_other) => Err(FileLost::Replaced(real.to_owned())),
        Err(_gone) => Err(FileLost::Removed(real.to_owned())),
    }
}

/// Refuses a log or an index that is another one than noted, or gone.
fn compare_log(real: &Path, noted: &FileIds) -> Result<(), FileLost> {
    for (suffix, noted) in SUFFIXES.into_iter().zip(noted).skip(1) {
        let Some(noted) = noted else { continue };
        let named = beside(real, suffix);
        match fs::symlink_metadata(&named) {
            Ok(found) if id(&found) == *noted => {}
            Ok(_other) => return Err(FileLost::LogReplaced(named)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(FileLost::LogRemoved(named));
            }
            Err(error) => tracing::warn!(%error, "the log cannot be read by its name"),
        }
    }
    Ok(())
}
