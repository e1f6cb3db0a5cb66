//! One `serve` to a database file, by whatever name: an exclusive lock on `<file>.lock`, held as long as the process
//! serves. It proves that whatever an earlier process left behind is nobody's any more. The command
//! line does not take it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::sqlite::connect;
use crate::url::DatabaseUrl;

/// The right to serve a database file. It ends when this is dropped, or with the process.
#[derive(Debug)]
pub struct ServeLock {
    /// None where a server has the database: its processes are told apart by their nodes' leases.
    _file: Option<File>,
}

/// Why the right to serve was not given.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process serves this file.
    #[error("another `holdfast serve` uses {0}")]
    Taken(PathBuf),
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
    pub fn take(url: &DatabaseUrl) -> Result<Self, LockError> {
        let (Some(named), Some(folder)) = (url.file(), url.folder()) else {
            return Ok(Self { _file: None });
        };
        let unnamed = |error| LockError::Failed(named.to_owned(), error);
        connect::create_folder(folder).map_err(unnamed)?;
        let database = real(named, folder).map_err(unnamed)?;
        let path = lock_path(&database);
        let failed = |error| LockError::Failed(path.clone(), error);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(LockError::Taken(database)),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// The one name of a file that may have several. Of one that is not there yet, its folder's counts;
/// a link to nowhere is not there and has no folder that would do.
fn real(named: &Path, folder: &Path) -> io::Result<PathBuf> {
    match named.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !named.is_symlink() => {
            let folder = folder.canonicalize()?;
            named.file_name().map(|name| folder.join(name)).ok_or(error)
        }
        named => named,
    }
}

fn lock_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
