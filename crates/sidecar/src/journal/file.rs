//! Files of a journal that is open: the database itself and its log, by device and inode.
//!
//! SQLite writes on into the files that it has open, even if their names lead to other files by now. A later
//! process finds the files by name, so a row in a file that lost its name is lost as well. The writer compares
//! the names after each COMMIT, before a call is answered, and [`JournalFile::lost`] compares them every two
//! seconds. In exclusive mode a log has no index.

use std::fs::{Metadata, symlink_metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between two comparisons.
const LOOK: Duration = Duration::from_secs(2);

/// Files of an open journal as they were when it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// Device and inode of the log.
    log: Option<(u64, u64)>,
}

/// The file of the journal was removed, replaced or given a second name: the next process would find another one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} is no longer the journal that was opened: it was removed, replaced, or has a second name"
)]
pub struct LostJournal(PathBuf);

impl JournalFile {
    /// Files of the journal that is open at a path. The path is kept without links: SQLite keeps the log beside the
    /// file itself, and a link that takes the file's place is another file.
    pub(super) fn open_at(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let found = symlink_metadata(&path)?;
        Ok(Self::of(path, &found))
    }

    fn of(path: PathBuf, metadata: &Metadata) -> Self {
        let log = symlink_metadata(log_of(&path)).ok().map(|log| (log.dev(), log.ino()));
        Self { path, device: metadata.dev(), inode: metadata.ino(), log }
    }

    /// True if the file or its log is another one by now, or gone. A name that cannot be looked up is no loss.
    pub(super) fn is_lost(&self) -> bool {
        let is_other = |name: &Path, held: (u64, u64)| match symlink_metadata(name) {
            Ok(found) => (found.dev(), found.ino()) != held,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        is_other(&self.path, (self.device, self.inode))
            || self.log.is_some_and(|log| is_other(&log_of(&self.path), log))
    }

    fn has_one_name(&self) -> bool {
        symlink_metadata(&self.path).map_or(true, |found| found.nlink() == 1)
    }

    /// Completes once the names stand for other files, for none, or for a file with several names.
    pub(crate) async fn lost(self) -> LostJournal {
        loop {
            tokio::time::sleep(LOOK).await;
            if self.is_lost() || !self.has_one_name() {
                return LostJournal(self.path);
            }
        }
    }

    /// Files of no journal.
    #[cfg(test)]
    pub(super) const fn none() -> Self {
        Self { path: PathBuf::new(), device: 0, inode: 0, log: None }
    }
}

/// Name of the log of a journal.
fn log_of(journal: &Path) -> PathBuf {
    let mut log = journal.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}
