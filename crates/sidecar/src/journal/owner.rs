//! Owner of a journal's file: only the user of this process. A link is not followed, and a foreign file is not
//! taken, so that no stranger chooses the file that a sidecar writes.
//!
//! ```text
//! folder without links ─ owner, mode ─▶ file: O_NOFOLLOW ─ owner, names ─▶ SQLite opens the name ─▶ same inode?
//! ```
//!
//! The folder may be root's too, as long as not everybody may write in it. Its group may: a volume of Kubernetes with
//! `fsGroup` is root's, with mode 2775. Members of that group are trusted with the journal, because they can remove it.
//! A file of theirs in its place is refused as any foreign file.

use std::fs::{Metadata, OpenOptions, metadata, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;

use super::BadJournal;

/// Write bit of everybody.
const EVERYBODY_WRITES: u32 = 0o002;

/// File of a journal, judged and closed again: a file that is closed later takes SQLite's lock with it.
#[derive(Debug)]
pub(super) struct JudgedFile {
    /// Path of the file, with a folder without links.
    pub(super) path: PathBuf,
    device: u64,
    inode: u64,
}

/// Opens or makes the file of a journal, and judges it and its folder.
pub(super) fn open(path: &Path) -> Result<JudgedFile, BadJournal> {
    let of_file = |error| BadJournal::File(path.to_owned(), error);
    let nameless = || of_file(io::Error::new(ErrorKind::InvalidInput, "not the name of a file"));
    let name = path.file_name().ok_or_else(nameless)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().map_err(of_file)?;
    let user = geteuid().as_raw();
    let about = metadata(&folder).map_err(of_file)?;
    let is_own = [0, user].contains(&about.uid());
    if !is_own || about.mode() & EVERYBODY_WRITES != 0 {
        return Err(BadJournal::OpenFolder(folder));
    }
    let judged = folder.join(name);
    let about = open_unlinked(&judged).map_err(|error| {
        let is_link = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
        if is_link { BadJournal::Link(path.to_owned()) } else { of_file(error) }
    })?;
    if !about.is_file() || about.uid() != user {
        return Err(BadJournal::ForeignOwner(path.to_owned()));
    }
    if about.nlink() > 1 {
        return Err(BadJournal::Linked(path.to_owned()));
    }
    Ok(JudgedFile { path: judged, device: about.dev(), inode: about.ino() })
}

fn open_unlinked(path: &Path) -> io::Result<Metadata> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits());
    let flags = flags.map_err(|error| io::Error::new(ErrorKind::Unsupported, error))?;
    // Before SQLite, which would make it for others to read; its log takes the file's mode.
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).read(true).write(true).mode(0o600);
    options.custom_flags(flags).open(path)?.metadata()
}

impl JudgedFile {
    /// Checks that the name is still that of the judged file.
    pub(super) fn check_name(&self) -> Result<(), BadJournal> {
        let found = symlink_metadata(&self.path);
        let found = found.map_err(|error| BadJournal::File(self.path.clone(), error))?;
        if (found.dev(), found.ino()) == (self.device, self.inode) {
            return Ok(());
        }
        Err(BadJournal::Replaced(self.path.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn a_link_is_not_followed_and_nothing_is_made_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let [path, target] = ["journal.db", "target"].map(|name| folder.path().join(name));
        symlink(&target, &path).unwrap();
        for is_there in [false, true] {
            let refused = open(&path).unwrap_err();
            assert!(matches!(refused, BadJournal::Link(_)), "{refused:?}");
            assert_eq!(target.exists(), is_there);
            write(&target, "").unwrap();
        }
    }

    #[test]
    fn a_folder_that_everybody_may_write_is_refused() {
        for (mode, is_taken) in [
            (0o700, true),
            (0o755, true),
            (0o775, true),
            (0o2775, true),
            (0o777, false),
            (0o1777, false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            assert_eq!(open(&folder.path().join("journal.db")).is_ok(), is_taken, "{mode:o}");
        }
    }

    #[test]
    fn a_file_or_folder_of_another_user_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        write(&path, "").unwrap();
        // Only root gives files away.
        if chown(&path, Some(12_345), None).is_err() {
            return;
        }
        let refused = open(&path).unwrap_err();
        assert!(matches!(refused, BadJournal::ForeignOwner(_)), "{refused:?}");
        chown(folder.path(), Some(12_345), None).unwrap();
        let refused = open(&folder.path().join("other.db")).unwrap_err();
        assert!(matches!(refused, BadJournal::OpenFolder(_)), "{refused:?}");
    }

    #[test]
    fn a_name_that_went_to_another_file_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let judged = open(&path).unwrap();
        judged.check_name().unwrap();
        // Beside the first, so that it cannot have its inode.
        let other = folder.path().join("other");
        write(&other, "").unwrap();
        std::fs::rename(&other, &path).unwrap();
        let refused = judged.check_name().unwrap_err();
        assert!(matches!(refused, BadJournal::Replaced(_)), "{refused:?}");
    }
}
