//! Output of a file that a server streams: standard output, or a file of its own.
//!
//! ```text
//! FILE.partial ─▶ rows … ─▶ closing row, whose count agrees ─▶ synced ─▶ renamed to FILE
//!                    └─ any failure ─▶ FILE.partial removed, FILE as it was
//! ```
//!
//! FILE.partial is locked while it is written: a second command is refused, and one that was killed leaves a file without
//! a lock, which the next command writes anew. Standard output cannot be taken back, so that the command fails, with a
//! message.
//!
//! Never: a FILE with some of the rows.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use holdfast_wire::file::{FileCheck, FileFormat};

use crate::failure::{CommandFailure, Result};
use crate::output::note;

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct FileOutput {
    /// `None` for standard output.
    file: Option<PartialFile>,
    format: FileFormat,
    check: FileCheck,
}

/// File that has another name until all of it is written.
#[derive(Debug)]
struct PartialFile {
    file: File,
    partial: PathBuf,
    path: PathBuf,
}

impl FileOutput {
    /// A file that will be at this path, or standard output.
    pub(crate) fn create(path: Option<&Path>, format: FileFormat) -> Result<Self> {
        let file = match path {
            None => None,
            Some(path) => Some(PartialFile::create(path)?),
        };
        Ok(Self { file, format, check: FileCheck::new(format) })
    }

    /// Format of the file.
    pub(crate) const fn format(&self) -> FileFormat {
        self.format
    }

    /// Writes the next bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.file {
            Some(PartialFile { file, .. }) => file.write_all(bytes)?,
            None => io::stdout().lock().write_all(bytes)?,
        }
        // After the write, with the same bytes: the count is of what is in the file, not of what
        // was received.
        self.check.read(bytes);
        Ok(())
    }

    /// Ends the file if all of it was written; true if a row of it is marked as incomplete.
    pub(crate) fn finish(self) -> Result<bool> {
        let has_incomplete = self.check.has_incomplete();
        // Before the file gets its name: a stream that ended early, or whose closing row counts
        // other rows, must not replace a whole FILE.
        if let Err(fault) = self.check.finish() {
            return Err(self.discard(fault.into()));
        }
        let written = match &self.file {
            Some(file) => file.keep(),
            None => io::stdout().lock().flush(),
        };
        match written {
            Ok(()) => Ok(has_incomplete),
            Err(error) => Err(self.discard(error.into())),
        }
    }

    /// Removes the partial file. The failure names why the file is incomplete.
    pub(crate) fn discard(self, error: anyhow::Error) -> CommandFailure {
        let is_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        let Some(PartialFile { file, partial, path }) = self.file else {
            if error.downcast_ref().is_some_and(is_pipe) {
                return CommandFailure::NobodyReads;
            }
            let error = error.context("the export was interrupted: the file is incomplete");
            return CommandFailure::Failed(error);
        };
        // A rename that was not made durable has freed the name, which may be another command's by now.
        if is_named(&file, &partial)
            && let Err(error) = fs::remove_file(&partial)
        {
            note(&format!("{} is incomplete and was not removed: {error}", partial.display()));
        }
        // Unlocked only now, when the name is free: another command would lose its file to the removal.
        drop(file);
        let context = format!("the export was interrupted, and {} was not written", path.display());
        CommandFailure::Failed(error.context(context))
    }
}

impl PartialFile {
    fn create(path: &Path) -> Result<Self> {
        let mut partial = OsString::from(path);
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        // A rename would put a file in place of a device or a link.
        for path in [path, &partial] {
            if fs::symlink_metadata(path).is_ok_and(|it| !it.is_file()) {
                let error = anyhow!("{} is not written: it is not a regular file", path.display());
                return Err(CommandFailure::Failed(error));
            }
        }
        remove_leftover(&partial)?;
        // Only if there is none: a file that appeared after the removal is another command's, or a
        // link that leads out of the folder.
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&partial);
        let file = file.with_context(|| format!("{} is not created", partial.display()))?;
        // Locked until it is renamed: without the lock a second command takes the file for a
        // leftover.
        lock(&file, &partial)?;
        Ok(Self { file, partial, path: path.to_owned() })
    }

    /// Gives the file its name, durably.
    fn keep(&self) -> io::Result<()> {
        // Before the rename: a crash between the two must not leave FILE with rows that never
        // reached the disk.
        self.file.sync_all()?;
        fs::rename(&self.partial, &self.path)?;
        // The folder too: until its entry is durable a crash may bring the earlier FILE back after
        // a success.
        let folder = self.path.parent().filter(|it| !it.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

/// Removes a file that a killed command has left, which is not locked any more.
fn remove_leftover(partial: &Path) -> Result<()> {
    let Ok(left) = File::open(partial) else { return Ok(()) };
    lock(&left, partial)?;
    // Never written: it may be another user's, or another name of a file.
    if is_named(&left, partial) {
        let removed = fs::remove_file(partial);
        removed.with_context(|| format!("{} is not removed", partial.display()))?;
    }
    Ok(())
}

/// Locks a file until it is closed.
fn lock(file: &File, path: &Path) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let error = anyhow!("{} is being written by another command", path.display());
            Err(CommandFailure::Failed(error))
        }
        Err(TryLockError::Error(error)) => {
            let error = anyhow!(error).context(format!("{} cannot be locked", path.display()));
            Err(CommandFailure::Failed(error))
        }
    }
}

/// True if this path is the file's.
fn is_named(file: &File, path: &Path) -> bool {
    let [file, named] = [file.metadata(), fs::symlink_metadata(path)];
    // By device and inode: a path may have got another file since this one was opened.
    let place = |it: fs::Metadata| (it.dev(), it.ino());
    matches!((file.map(place), named.map(place)), (Ok(file), Ok(named)) if file == named)
}
