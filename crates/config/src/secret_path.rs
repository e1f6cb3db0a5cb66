//! The way to a file of a secret: its folders and links, none of which another user may change.
//!
//! ```text
//! /run/secrets/key ─ each folder ─ links, as Kubernetes' `..data` ─▶ the file, opened without following a link
//! ```
//!
//! Each folder, link and the file belong to root or to the user of this process. A folder that holds the file or a
//! link is closed to others, sticky or not; above it a sticky one (`/tmp`) is good enough, because nobody else can
//! replace what is in it. With a link on the way no folder may be written by its group either. What is on a
//! filesystem that is mounted read-only was put there by a supervisor, and has any owner and mode: Kubernetes mounts
//! secrets so, with mode 1777.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions, read_link, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{OFlags, StatVfsMountFlags, statvfs};
use rustix::process::geteuid;

/// Links of one way, as the kernel has them.
const LINKS_MAX: usize = 40;
/// Write bit of everybody.
const EVERYBODY_WRITES: u32 = 0o002;
/// Write bits of the group and of everybody.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Reason for which a file is not taken.
#[derive(Debug)]
pub(crate) enum BadWay {
    Unreadable(io::Error),
    /// A folder, a link or the file belongs to another user.
    Foreign(PathBuf),
    /// Others may write in the folder.
    Open(PathBuf),
}

/// A way that is being followed.
struct Way {
    user: u32,
    /// Where it is: a folder without links.
    at: PathBuf,
    /// Parts that are left, the next one last.
    left: Vec<OsString>,
    folders: Vec<(PathBuf, Metadata)>,
    n_links: usize,
}

/// Opens the file of an absolute path.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata), BadWay> {
    let mut way = Way::new(path);
    let found = way.follow()?;
    let (file, about) = open_unlinked(&found).map_err(BadWay::Unreadable)?;
    if about.uid() != 0 && about.uid() != way.user && !is_read_only(&found) {
        return Err(BadWay::Foreign(found));
    }
    Ok((file, about))
}

fn open_unlinked(path: &Path) -> io::Result<(File, Metadata)> {
    // A pipe without a writer would hold the start up.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits());
    let flags = flags.map_err(|error| io::Error::new(ErrorKind::Unsupported, error))?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    Ok((file, about))
}

/// True on a filesystem that is mounted read-only; one that cannot be looked at is not.
fn is_read_only(path: &Path) -> bool {
    statvfs(path).is_ok_and(|about| about.f_flag.contains(StatVfsMountFlags::RDONLY))
}

fn parts(path: &Path) -> Vec<OsString> {
    let is_part =
        |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    let parts = path.components().filter(is_part);
    parts.rev().map(|part| part.as_os_str().to_owned()).collect()
}

impl Way {
    fn new(path: &Path) -> Self {
        let user = geteuid().as_raw();
        Self { user, at: PathBuf::from("/"), left: parts(path), folders: Vec::new(), n_links: 0 }
    }

    /// Follows the way, and judges all that it leads through.
    fn follow(&mut self) -> Result<PathBuf, BadWay> {
        let mut found = self.at.clone();
        while let Some(part) = self.left.pop() {
            if part == OsStr::new("..") {
                self.at.pop();
                continue;
            }
            self.note_folder()?;
            let named = self.at.join(&part);
            let about = symlink_metadata(&named).map_err(BadWay::Unreadable)?;
            if about.is_symlink() {
                self.check_holder()?;
                self.check_owner(&named, &about)?;
                self.turn(&named)?;
            } else {
                self.at = named.clone();
                found = named;
            }
        }
        if !symlink_metadata(&found).map_err(BadWay::Unreadable)?.is_file() {
            // Refused by what it is.
            return Ok(found);
        }
        self.at.pop();
        self.check_holder()?;
        self.check_folders()?;
        Ok(found)
    }

    /// Goes on with the target of a link.
    fn turn(&mut self, link: &Path) -> Result<(), BadWay> {
        self.n_links = self.n_links.saturating_add(1);
        if self.n_links > LINKS_MAX {
            let many = io::Error::new(ErrorKind::InvalidInput, "too many links");
            return Err(BadWay::Unreadable(many));
        }
        let target = read_link(link).map_err(BadWay::Unreadable)?;
        if target.is_absolute() {
            self.at = PathBuf::from("/");
        }
        self.left.extend(parts(&target));
        Ok(())
    }

    fn note_folder(&mut self) -> Result<(), BadWay> {
        let about = symlink_metadata(&self.at).map_err(BadWay::Unreadable)?;
        self.folders.push((self.at.clone(), about));
        Ok(())
    }

    fn check_owner(&self, named: &Path, about: &Metadata) -> Result<(), BadWay> {
        if about.uid() == 0 || about.uid() == self.user || is_read_only(&self.at) {
            return Ok(());
        }
        Err(BadWay::Foreign(named.to_owned()))
    }

    /// Checks the folder that holds the file or a link: others may not put their own in its place.
    fn check_holder(&self) -> Result<(), BadWay> {
        let about = symlink_metadata(&self.at).map_err(BadWay::Unreadable)?;
        if about.mode() & EVERYBODY_WRITES == 0 || is_read_only(&self.at) {
            return Ok(());
        }
        Err(BadWay::Open(self.at.clone()))
    }

    fn check_folders(&self) -> Result<(), BadWay> {
        let open = if self.n_links > 0 { OTHERS_WRITE } else { EVERYBODY_WRITES };
        for (folder, about) in &self.folders {
            let is_foreign = about.uid() != 0 && about.uid() != self.user;
            let is_open = about.mode() & open != 0 && about.mode() & STICKY == 0;
            if (is_foreign || is_open) && !is_read_only(folder) {
                let folder = folder.clone();
                return Err(if is_foreign {
                    BadWay::Foreign(folder)
                } else {
                    BadWay::Open(folder)
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// Folder with a secret as Kubernetes lays it out: `key` ─▶ `..data/key`, `..data` ─▶ `..2026`.
    fn mounted() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let version = folder.path().join("..2026");
        create_dir(&version).unwrap();
        set_mode(&version, 0o755);
        write(version.join("key"), "hunter2").unwrap();
        symlink("..2026", folder.path().join("..data")).unwrap();
        symlink("..data/key", folder.path().join("key")).unwrap();
        let key = folder.path().join("key");
        (folder, key)
    }

    #[test]
    fn links_of_a_mounted_secret_lead_to_it() {
        let (_folder, key) = mounted();
        let (_file, about) = open(&key).unwrap();
        assert_eq!(about.len(), 7);
    }

    #[test]
    fn a_link_through_a_folder_that_others_may_write_is_refused() {
        for mode in [0o775, 0o777, 0o1777] {
            let (folder, key) = mounted();
            let other = folder.path().join("other");
            create_dir(&other).unwrap();
            symlink("../..2026/key", other.join("link")).unwrap();
            set_mode(&other, mode);
            let refused = open(&other.join("link")).unwrap_err();
            assert!(
                matches!(&refused, BadWay::Open(path) if *path == other),
                "{mode:o} {refused:?}"
            );
            assert!(open(&key).is_ok());
        }
    }

    #[test]
    fn a_file_in_a_folder_that_everybody_may_write_is_refused() {
        for (mode, is_taken) in [(0o755, true), (0o700, true), (0o777, false), (0o1777, false)] {
            let folder = tempfile::tempdir().unwrap();
            let key = folder.path().join("key");
            write(&key, "hunter2").unwrap();
            set_mode(folder.path(), mode);
            assert_eq!(open(&key).is_ok(), is_taken, "{mode:o}");
        }
    }

    #[test]
    fn another_owner_is_refused() {
        let (folder, key) = mounted();
        // Only root gives files away.
        if chown(folder.path().join("..2026/key"), Some(12_345), None).is_err() {
            return;
        }
        let refused = open(&key).unwrap_err();
        assert!(matches!(&refused, BadWay::Foreign(path) if path.ends_with("key")), "{refused:?}");
        let (folder, key) = mounted();
        chown(folder.path().join("..2026"), Some(12_345), None).unwrap();
        let refused = open(&key).unwrap_err();
        assert!(
            matches!(&refused, BadWay::Foreign(path) if path.ends_with("..2026")),
            "{refused:?}"
        );
    }

    #[test]
    fn links_in_a_ring_end() {
        let folder = tempfile::tempdir().unwrap();
        for (link, target) in [("a", "b"), ("b", "a")] {
            symlink(target, folder.path().join(link)).unwrap();
        }
        let refused = open(&folder.path().join("a")).unwrap_err();
        assert!(matches!(refused, BadWay::Unreadable(_)), "{refused:?}");
    }
}
