//! The right to serve a database file: one `serve` to a file, by whatever name.
//!
//! Two exclusive locks, held while the process serves: one on `<file>.lock`, which can be taken before there is a
//! database, and one on the file itself, which holds under every name of it ([`crate::lock::identity`]). The kernel
//! drops both with the process, however that ends.
//!
//! They prove that no process owns the remains of an earlier one any more, and that the file is the one that was
//! opened. `serve` and migrations take them. Every other command may run while a process serves, if the file has
//! one name, and file, log and index are those whose device and inode `serve` wrote into `<file>.lock`.
//! `<file>.lock` is never deleted: a process that has opened it a moment before would lock a file that no other
//! process finds.

pub(crate) mod identity;

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use rusqlite::Connection;

use self::identity::{FileIds, HoldError, Identity, compare_all, one_name};
use crate::error::{FileLost, LockError};
use crate::schema::url::DatabaseUrl;

/// Attempts at the lock: a command that checks it holds it for a moment.
const ATTEMPTS: usize = 20;
/// Pause between two attempts at the lock.
const PAUSE: Duration = Duration::from_millis(10);

/// The right to serve a database file. It ends when this is dropped, or with the process.
#[derive(Debug)]
pub struct ServeLock {
    /// None if a server has the database: its processes are distinguished by their nodes' leases.
    held: Option<FileLock>,
}

/// A database file that no other process serves.
#[derive(Debug)]
struct FileLock {
    database: PathBuf,
    /// Taken when the file is there: at once, or when the store opens what was made meanwhile.
    identity: OnceLock<Identity>,
    beside: File,
}

impl ServeLock {
    /// Takes the lock of the database at this URL, or returns its owner as the error.
    ///
    /// # Errors
    ///
    /// [`LockError::Taken`] if another process has it, [`LockError::Lost`] if the file has several names, and
    /// [`LockError::Failed`] if the lock file cannot be made or locked.
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
            // Not before it is locked: another process may have written it.
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        // The lock file comes first: the database file may not exist yet.
        match lock_soon(&beside) {
            Ok(()) => beside.set_len(0).map_err(failed)?,
            Err(TryLockError::WouldBlock) => return Err(LockError::Taken(database)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let held = FileLock { database, identity: OnceLock::new(), beside };
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

    /// Refuses if the name leads to another file than the held one.
    pub(crate) fn check(&self) -> Result<(), FileLost> {
        self.held_file().map_or(Ok(()), Identity::check)
    }

    /// Completes with the loss when the file was found to be removed, replaced or linked; never if a server has the
    /// database.
    pub async fn lost(&self) -> FileLost {
        match self.held_file() {
            Some(identity) => identity.lost().await,
            None => std::future::pending().await,
        }
    }

    /// Keeps this connection open, and writes device and inode of the files into `<file>.lock`.
    pub(crate) fn keep(&self, connection: Connection) -> io::Result<()> {
        let Some((held, identity)) = self.held.as_ref().zip(self.held_file()) else {
            return Ok(());
        };
        let Some(files) = identity.keep(connection) else { return Ok(()) };
        (&held.beside).write_all(written(&files).as_bytes())
    }

    /// Folds the log into the file, if the log or its index was removed.
    pub(crate) fn rescue(&self) {
        if let Some(identity) = self.held_file().filter(|identity| identity.is_lost()) {
            identity.rescue();
        }
    }

    /// Closes the connection that was kept; log and index may go from here on.
    pub(crate) fn release(&self) -> io::Result<()> {
        let Some((held, identity)) = self.held.as_ref().zip(self.held_file()) else {
            return Ok(());
        };
        held.beside.set_len(0)?;
        (&held.beside).seek(SeekFrom::Start(0))?;
        identity.release();
        Ok(())
    }

    fn held_file(&self) -> Option<&Identity> {
        self.held.as_ref()?.identity.get()
    }
}

impl FileLock {
    /// The file that has the name, as of the first call.
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

/// Takes hold of the file if this process serves it. If not, only refuses a file with several names.
pub(crate) fn hold(named: &Path, lock: Option<&ServeLock>) -> Result<(), LockError> {
    match lock {
        Some(lock) => lock.hold(named),
        None => {
            let file = fs::metadata(named);
            let file = file.map_err(|error| LockError::Failed(named.to_owned(), error))?;
            one_name(named, &file).and_then(|()| check_served(named)).map_err(LockError::Lost)
        }
    }
}

/// Refuses if another process serves the database, unless this one has the right to.
pub(crate) fn check_unserved(url: &DatabaseUrl, lock: Option<&ServeLock>) -> Result<(), LockError> {
    match (lock, url.file()) {
        (None, Some(file)) => check_served(file).map_err(LockError::Lost),
        (Some(_), _) | (None, None) => Ok(()),
    }
}

/// Refuses if another process serves this file, and file, log or index are not those that it has open. The name is
/// resolved as it is and without its links: a link may have taken its place.
pub(crate) fn check_served(named: &Path) -> Result<(), FileLost> {
    check_beside(named)?;
    match named.canonicalize() {
        Ok(real) if real != named => check_beside(&real),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn check_beside(named: &Path) -> Result<(), FileLost> {
    let Ok(mut beside) = File::open(lock_path(named)) else { return Ok(()) };
    // No process serves it, and the text in it is outdated.
    if beside.try_lock_shared().is_ok() {
        return Ok(());
    }
    let mut text = String::new();
    if let Err(error) = beside.read_to_string(&mut text) {
        tracing::warn!(%error, "the lock file of the database cannot be read");
    }
    noted(&text).map_or(Ok(()), |files| compare_all(named, &files))
}

/// Files as they are written into `<file>.lock`: one a line, device and inode, a dash for none.
fn written(files: &FileIds) -> String {
    let line = |file: &Option<(u64, u64)>| match file {
        Some((device, inode)) => format!("{device} {inode}\n"),
        None => "-\n".to_owned(),
    };
    files.iter().map(line).collect()
}

/// Files that were written into `<file>.lock`; `None` if none were noted yet.
fn noted(text: &str) -> Option<FileIds> {
    let id = |line: &str| {
        let (device, inode) = line.split_once(' ')?;
        Some((device.parse().ok()?, inode.parse().ok()?))
    };
    // The end of the last line is there: it was written wholly.
    let lines: Vec<&str> = text.strip_suffix('\n')?.split('\n').collect();
    let files: [&str; 3] = lines.try_into().ok()?;
    Some(files.map(id))
}

/// Takes the lock; waits for a command that checks it.
fn lock_soon(file: &File) -> Result<(), TryLockError> {
    for _ in 1..ATTEMPTS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
    file.try_lock()
}

/// Creates a folder, and those above it, for its owner only.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
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
