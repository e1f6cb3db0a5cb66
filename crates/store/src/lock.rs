//! One `serve` to a database file: an exclusive lock on `<file>.lock`, held as long as the process
//! serves. It proves that whatever an earlier process left behind is nobody's any more. The command
//! line does not take it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::sqlite::connect;

/// The right to serve a database file. It ends when this is dropped, or with the process.
#[derive(Debug)]
pub struct ServeLock {
    _file: File,
}

/// Why the right to serve was not given.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process serves this file.
    #[error("another `holdfast serve` uses {0}")]
    Taken(PathBuf),
    /// The URL is not one of a file.
    #[error("the database URL names no file")]
    Url(#[source] connect::ConnectError),
    /// The lock file cannot be made or locked.
    #[error("{0} cannot be locked")]
    Failed(PathBuf, #[source] io::Error),
}

impl ServeLock {
    /// Takes the lock of the database at this URL, or says who stands in the way.
    ///
    /// # Errors
    ///
    /// Where another process has it, or it cannot be taken.
    pub fn take(url: &str) -> Result<Self, LockError> {
        let database = connect::path(url).map_err(LockError::Url)?;
        let path = lock_path(&database);
        let failed = |error| LockError::Failed(path.clone(), error);
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            connect::create_folder(folder).map_err(failed)?;
        }
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LockError::Taken(database)),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

fn lock_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
