//! The right to serve a database file: one `serve` to a file, by whatever name.
//!
//! Two exclusive locks, held while the process serves: one on `<file>.lock`, which can be taken
//! before there is a database, and one on the file itself, which holds whatever it is called
//! ([`crate::sqlite::identity`]). The kernel drops both with the process, however that ends.
//!
//! They prove that whatever an earlier process left behind is nobody's any more, and that the file
//! is the one that was opened. `serve` and migrations take them; every other command works beside a
//! process that serves, and asks no more than that the file has one name. `<file>.lock` is never
//! deleted: a process that has opened it a moment before would lock a file that nobody else finds.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::identity::{FileLost, HoldError, Identity, one_name};
use crate::url::DatabaseUrl;

/// The right to serve a database file. It ends when this is dropped, or with the process.
#[derive(Debug)]
pub struct ServeLock {
    /// None where a server has the database: its processes are told apart by their nodes' leases.
    held: Option<FileLock>,
}

/// A database file that nobody else serves.
#[derive(Debug)]
struct FileLock {
    database: PathBuf,
    /// Taken when the file is there: at once, or when the store opens what was made meanwhile.
    identity: OnceLock<Identity>,
    _beside: File,
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

impl ServeLock {
    /// Takes the lock of the database at this URL, or says who stands in the way.
    ///
    /// # Errors
    ///
    /// Where another process has it, or it cannot be taken.
    pub fn take(url: &DatabaseUrl) -> Result<Self, LockError> {
        let (Some(named), Some(folder)) = (url.file(), url.folder()) else {
            return Ok(Self { held: None });
        };
        let unnamed = |error| LockError::Failed(named.to_owned(), error);
        create_folder(folder).map_err(unnamed)?;
        let database = real(named, folder).map_err(unnamed)?;
        let path = lock_path(&database);
        let failed = |error| LockError::Failed(path.clone(), error);
        let beside = OpenOptions::new()
            .write(true)
            .create(true)
            // Never written: only the lock on it counts.
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        // The lock beside comes first: the file itself may not be there yet.
        match beside.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Taken(database)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let held = FileLock { database, identity: OnceLock::new(), _beside: beside };
        if named.exists() {
            held.identity(named)?;
        }
        Ok(Self { held: Some(held) })
    }

    /// Takes hold of the file, which is there by now.
    pub(crate) fn hold(&self, named: &Path) -> Result<(), LockError> {
        match &self.held {
            Some(held) => held.identity(named).map(drop),
            None => Ok(()),
        }
    }

    /// Refuses where the name leads to another file than the one in hold.
    pub(crate) fn check(&self) -> Result<(), FileLost> {
        self.held_file().map_or(Ok(()), Identity::check)
    }

    /// Completes when the file was found to be removed, replaced or linked, and says which; never
    /// where a server has the database.
    pub async fn lost(&self) -> FileLost {
        match self.held_file() {
            Some(identity) => identity.lost().await,
            None => std::future::pending().await,
        }
    }

    fn held_file(&self) -> Option<&Identity> {
        self.held.as_ref()?.identity.get()
    }
}

impl FileLock {
    /// The file that has the name; the one that had it when this was asked first.
    fn identity(&self, named: &Path) -> Result<&Identity, LockError> {
        if let Some(identity) = self.identity.get() {
            return Ok(identity);
        }
        let identity = Identity::hold(named).map_err(|refusal| match refusal {
            HoldError::Taken => LockError::Taken(self.database.clone()),
            HoldError::Lost(lost) => LockError::Lost(lost),
            HoldError::Failed(error) => LockError::Failed(named.to_owned(), error),
        })?;
        Ok(self.identity.get_or_init(|| identity))
    }
}

/// Takes hold of the file where this process serves it. Where it does not, only refuses a file with
/// several names.
pub(crate) fn hold(named: &Path, lock: Option<&ServeLock>) -> Result<(), LockError> {
    match lock {
        Some(lock) => lock.hold(named),
        None => match fs::metadata(named) {
            Ok(file) => one_name(named, &file).map_err(LockError::Lost),
            Err(error) => Err(LockError::Failed(named.to_owned(), error)),
        },
    }
}

/// Makes a folder, and those above it, for its owner alone.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
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
