//! The database file that was opened, told from every other one that may come to have its name.
//!
//! A name is no file: it can be removed, given to another file (a backup moved over it), or be one
//! of several (a hard link, a bind mount). SQLite asks for none of that as it commits, and writes on
//! into what it has open, whose log it finds by the name. So whoever serves holds the file itself, by
//! its device and inode:
//!
//! - an exclusive `flock` on the inode, for as long as the process serves, whatever the file is
//!   called elsewhere;
//! - one name: a second hard link has a second log, and the two ruin the file;
//! - device and inode of the name are compared with what is held at each heartbeat, and whenever a
//!   connection that writes is opened.
//!
//! `flock` and the `fcntl` locks of SQLite do not see each other. But closing *any* descriptor of a
//! file drops all `fcntl` locks that the process has on it, SQLite's as well: the descriptor here
//! is unlocked at its end and never closed.

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

/// A file that is not, or is no longer, the one that was opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FileLost {
    /// The name leads to no file any more.
    #[error(
        "the database {0} was removed while it was served: what was committed since is not there"
    )]
    Removed(PathBuf),
    /// Another file has the name now.
    #[error("the database {0} is another file than the one that is served: it was replaced")]
    Replaced(PathBuf),
    /// The file has more names than this one, each with a log of its own.
    #[error("the database {0} has {1} names (hard links): delete all others but leave this one")]
    Linked(PathBuf, u64),
}

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

/// A database file in hold.
#[derive(Debug)]
pub(crate) struct Identity {
    named: PathBuf,
    device: u64,
    inode: u64,
    /// Unlocked when it is dropped, and left open.
    file: ManuallyDrop<File>,
    lost: OnceLock<FileLost>,
    told: CancellationToken,
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
        let (device, inode) = (held.dev(), held.ino());
        let (lost, told) = (OnceLock::new(), CancellationToken::new());
        Ok(Self { named: named.to_owned(), device, inode, file, lost, told })
    }

    /// Refuses where the name leads to another file than the one in hold, and notes it. A second
    /// name is noted only: what runs may still end in this file. A name that cannot be looked at
    /// says nothing.
    pub(crate) fn check(&self) -> Result<(), FileLost> {
        let (found, is_ours) = match fs::metadata(&self.named) {
            Ok(found) if (found.dev(), found.ino()) == (self.device, self.inode) => {
                (one_name(&self.named, &found), true)
            }
            Ok(_other) => (Err(FileLost::Replaced(self.named.clone())), false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (Err(FileLost::Removed(self.named.clone())), false)
            }
            Err(error) => {
                tracing::warn!(%error, "the database file cannot be looked at by its name");
                (Ok(()), true)
            }
        };
        let Err(lost) = found else { return Ok(()) };
        // Noted before the token is cancelled: who is woken by it finds the reason.
        self.lost.get_or_init(|| lost.clone());
        self.told.cancel();
        if is_ours { Ok(()) } else { Err(lost) }
    }

    /// Completes when a check has found the file to be lost, and says how.
    pub(crate) async fn lost(&self) -> FileLost {
        self.told.cancelled().await;
        match self.lost.get() {
            Some(lost) => lost.clone(),
            None => std::future::pending().await,
        }
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
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
