//! Path of a file of a secret: the folders and links on it, none of which another user may change.
//!
//! ```text
//! /run/secrets/key ─ each folder ─ links, as Kubernetes' `..data` ─▶ the file, opened without following a link,
//!   and judged once more by its descriptor
//! ```
//!
//! | entry | owner | write bits |
//! |---|---|---|
//! | folder that has the file or a link | accepted | not everybody's, sticky or not |
//! | folder above it | accepted | not everybody's, unless it is sticky (`/tmp`): others cannot replace an entry of it |
//! | each folder of a path with links | accepted | not the group's either, unless it is sticky |
//! | link | accepted | none |
//! | file | accepted | neither the group's nor everybody's |
//!
//! - Accepted owners are root and the user of this process. If that is root, the owner of the configuration's file is
//!   accepted too: a check by `sudo` then agrees with the service.
//! - On a filesystem that is mounted read-only, folders and links have any owner and mode, and the file has any owner:
//!   a supervisor put them there. Kubernetes mounts secrets so, with mode 1777. The file's write bits are judged there
//!   too, because the same file may be written through another mount.
//! - The file that is open is the one that was judged on the path: a file that was put in its place meanwhile is
//!   refused.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions, metadata, read_link, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use holdfast_domain::debug_as;
use rustix::fs::{OFlags, StatVfsMountFlags, fstatvfs, statvfs};
use rustix::process::geteuid;

/// Links of one path, as the kernel has them.
const LINKS_MAX: usize = 40;
/// Write bit of everybody.
const EVERYBODY_WRITES: u32 = 0o002;
/// Write bits of the group and of everybody.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;
const ROOT: u32 = 0;

/// Reason for which a file is not taken.
#[derive(Debug)]
pub(crate) enum PathRefusal {
    Unreadable(io::Error),
    /// A folder, a link or the file belongs to another user.
    ForeignOwner(PathBuf),
    /// Others may write in the folder.
    WritableFolder(PathBuf),
    /// Others may write the file.
    WritableFile,
    NotFile,
    /// Another file was put in its place between the look and the opening.
    Replaced,
}

/// Facts about a folder, a link or a file that its rules judge.
#[derive(Debug, Clone, Copy)]
struct EntryFacts {
    owner: u32,
    mode: u32,
    /// True on a filesystem that is mounted read-only.
    is_read_only: bool,
}

/// Look-ups of facts, so that a table of owners, modes and mounts is judged without being root.
trait FactLookup {
    /// Facts about an entry of a path.
    fn entry(&self, path: &Path, about: &Metadata) -> EntryFacts;

    /// Facts about the file that is open.
    fn file(&self, path: &Path, file: &File, about: &Metadata) -> EntryFacts;
}

/// Facts of the system.
struct SystemFacts;

impl FactLookup for SystemFacts {
    fn entry(&self, path: &Path, about: &Metadata) -> EntryFacts {
        // A mount that cannot be looked at is not read-only. A link is on the filesystem of its folder.
        let at = if about.is_symlink() { path.parent().unwrap_or(path) } else { path };
        let mount = statvfs(at);
        let is_read_only = mount.is_ok_and(|it| it.f_flag.contains(StatVfsMountFlags::RDONLY));
        EntryFacts { owner: about.uid(), mode: about.mode(), is_read_only }
    }

    fn file(&self, _path: &Path, file: &File, about: &Metadata) -> EntryFacts {
        let mount = fstatvfs(file.as_fd());
        let is_read_only = mount.is_ok_and(|it| it.f_flag.contains(StatVfsMountFlags::RDONLY));
        EntryFacts { owner: about.uid(), mode: about.mode(), is_read_only }
    }
}

/// Owners whose folders, links and files are taken.
#[derive(Debug, Clone, Copy)]
struct AcceptedOwners {
    user: u32,
    /// Owner of the configuration's file, if the user is root.
    configurer: Option<u32>,
}

impl AcceptedOwners {
    fn of(user: u32, configuration: Option<u32>) -> Self {
        Self { user, configurer: configuration.filter(|_owner| user == ROOT) }
    }

    fn has(self, owner: u32) -> bool {
        owner == ROOT || owner == self.user || Some(owner) == self.configurer
    }
}

/// A path that is being resolved.
struct PathWalk<'a> {
    owners: AcceptedOwners,
    facts: &'a dyn FactLookup,
    /// Folder without links that was reached.
    at: PathBuf,
    /// Parts that are left, the next one last.
    left: Vec<OsString>,
    folders: Vec<(PathBuf, EntryFacts)>,
    n_links: usize,
}

/// Opens the file of an absolute path, which the file of this configuration names.
pub(crate) fn open(path: &Path, configuration: &Path) -> Result<(File, Metadata), PathRefusal> {
    // Without a file of the configuration there is no such owner.
    let configurer = metadata(configuration).ok().map(|about| about.uid());
    let owners = AcceptedOwners::of(geteuid().as_raw(), configurer);
    open_judged(path, owners, &SystemFacts)
}

fn open_judged(
    path: &Path,
    owners: AcceptedOwners,
    facts: &dyn FactLookup,
) -> Result<(File, Metadata), PathRefusal> {
    let (found, judged) = PathWalk::new(path, owners, facts).resolve()?;
    open_resolved(&found, &judged, (owners, facts))
}

/// Opens the file that was judged, and judges the file that is open.
fn open_resolved(
    path: &Path,
    judged: &Metadata,
    (owners, facts): (AcceptedOwners, &dyn FactLookup),
) -> Result<(File, Metadata), PathRefusal> {
    if !judged.is_file() {
        return Err(PathRefusal::NotFile);
    }
    let (file, about) = open_unlinked(path).map_err(PathRefusal::Unreadable)?;
    if !about.is_file() || (about.dev(), about.ino()) != (judged.dev(), judged.ino()) {
        return Err(PathRefusal::Replaced);
    }
    let facts = facts.file(path, &file, &about);
    if !owners.has(facts.owner) && !facts.is_read_only {
        return Err(PathRefusal::ForeignOwner(path.to_owned()));
    }
    if facts.mode & OTHERS_WRITE != 0 {
        return Err(PathRefusal::WritableFile);
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

fn parts(path: &Path) -> Vec<OsString> {
    let is_part =
        |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    let parts = path.components().filter(is_part);
    parts.rev().map(|part| part.as_os_str().to_owned()).collect()
}

fn look(path: &Path) -> Result<Metadata, PathRefusal> {
    symlink_metadata(path).map_err(PathRefusal::Unreadable)
}

debug_as!(PathWalk<'_> as it: "PathWalk({:?})", it.at);

impl<'a> PathWalk<'a> {
    fn new(path: &Path, owners: AcceptedOwners, facts: &'a dyn FactLookup) -> Self {
        let (at, left) = (PathBuf::from("/"), parts(path));
        Self { owners, facts, at, left, folders: Vec::new(), n_links: 0 }
    }

    /// Resolves the path, and judges all that it leads through.
    fn resolve(&mut self) -> Result<(PathBuf, Metadata), PathRefusal> {
        let mut found = self.at.clone();
        while let Some(part) = self.left.pop() {
            if part == OsStr::new("..") {
                self.at.pop();
                continue;
            }
            self.note_folder()?;
            let named = self.at.join(&part);
            let about = look(&named)?;
            if about.is_symlink() {
                self.check_holder()?;
                self.check_owner(&named, &about)?;
                self.take_target(&named)?;
            } else {
                self.at = named.clone();
                found = named;
            }
        }
        let about = look(&found)?;
        if about.is_file() {
            self.at.pop();
            self.check_holder()?;
            self.check_folders()?;
        }
        Ok((found, about))
    }

    /// Goes on with the target of a link.
    fn take_target(&mut self, link: &Path) -> Result<(), PathRefusal> {
        self.n_links = self.n_links.saturating_add(1);
        if self.n_links > LINKS_MAX {
            let many = io::Error::new(ErrorKind::InvalidInput, "too many links");
            return Err(PathRefusal::Unreadable(many));
        }
        let target = read_link(link).map_err(PathRefusal::Unreadable)?;
        if target.is_absolute() {
            self.at = PathBuf::from("/");
        }
        self.left.extend(parts(&target));
        Ok(())
    }

    fn note_folder(&mut self) -> Result<(), PathRefusal> {
        let facts = self.facts.entry(&self.at, &look(&self.at)?);
        self.folders.push((self.at.clone(), facts));
        Ok(())
    }

    fn check_owner(&self, link: &Path, about: &Metadata) -> Result<(), PathRefusal> {
        let facts = self.facts.entry(link, about);
        if self.owners.has(facts.owner) || facts.is_read_only {
            return Ok(());
        }
        Err(PathRefusal::ForeignOwner(link.to_owned()))
    }

    /// Checks the folder that has the file or a link: others may not put their own in its place.
    fn check_holder(&self) -> Result<(), PathRefusal> {
        let facts = self.facts.entry(&self.at, &look(&self.at)?);
        if facts.mode & EVERYBODY_WRITES == 0 || facts.is_read_only {
            return Ok(());
        }
        Err(PathRefusal::WritableFolder(self.at.clone()))
    }

    fn check_folders(&self) -> Result<(), PathRefusal> {
        let others = if self.n_links > 0 { OTHERS_WRITE } else { EVERYBODY_WRITES };
        for (folder, facts) in &self.folders {
            if facts.is_read_only {
                continue;
            }
            if !self.owners.has(facts.owner) {
                return Err(PathRefusal::ForeignOwner(folder.clone()));
            }
            if facts.mode & others != 0 && facts.mode & STICKY == 0 {
                return Err(PathRefusal::WritableFolder(folder.clone()));
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

    /// Opens a file by the facts of the system, for a configuration without a file.
    fn open(path: &Path) -> Result<(File, Metadata), PathRefusal> {
        super::open(path, Path::new("/nothing"))
    }

    const SERVICE: u32 = 1_000;
    const STRANGER: u32 = 12_345;

    /// Facts of a table: the folder of the secret, the file in it, and root's folders above.
    struct FactTable {
        folder: PathBuf,
        of_folder: EntryFacts,
        of_file: EntryFacts,
    }

    impl FactLookup for FactTable {
        fn entry(&self, path: &Path, about: &Metadata) -> EntryFacts {
            let root = EntryFacts { owner: ROOT, mode: 0o755, is_read_only: false };
            let inside = path.starts_with(&self.folder);
            // Links within have the owner of their folder.
            let is_file = inside && about.is_file();
            if is_file {
                self.of_file
            } else if inside {
                self.of_folder
            } else {
                root
            }
        }

        fn file(&self, path: &Path, _file: &File, about: &Metadata) -> EntryFacts {
            self.entry(path, about)
        }
    }

    /// Judges a secret as Kubernetes lays it out, and one without links, by owners and modes of a table.
    fn judge(
        owners: AcceptedOwners,
        (owner, mode): (u32, u32),
        (file_owner, file_mode): (u32, u32),
        is_read_only: bool,
    ) -> [bool; 2] {
        let (folder, key) = mounted();
        let folder = folder.path().canonicalize().map(|path| (path, folder)).unwrap();
        let facts = FactTable {
            folder: folder.0.clone(),
            of_folder: EntryFacts { owner, mode, is_read_only },
            of_file: EntryFacts { owner: file_owner, mode: file_mode, is_read_only },
        };
        let key = folder.0.join(key.file_name().unwrap());
        let plain = folder.0.join("..2026/key");
        [key, plain].map(|path| open_judged(&path, owners, &facts).is_ok())
    }

    #[test]
    fn owners_modes_and_mounts_are_judged_by_the_table() {
        let service = AcceptedOwners::of(SERVICE, Some(STRANGER));
        let file = (ROOT, 0o644);
        for (folder, file, is_read_only, is_taken) in [
            // Kubernetes' secret: mode 1777, read-only, whatever its owner is.
            ((STRANGER, 0o1777), (STRANGER, 0o644), true, true),
            ((ROOT, 0o1777), file, true, true),
            ((ROOT, 0o777), file, true, true),
            ((ROOT, 0o1777), file, false, false),
            ((ROOT, 0o777), file, false, false),
            ((ROOT, 0o755), file, false, true),
            ((SERVICE, 0o700), (SERVICE, 0o600), false, true),
            ((STRANGER, 0o755), file, false, false),
            ((ROOT, 0o755), (STRANGER, 0o644), false, false),
            ((ROOT, 0o755), (ROOT, 0o664), false, false),
            ((ROOT, 0o755), (ROOT, 0o646), true, false),
        ] {
            let taken = judge(service, folder, file, is_read_only);
            assert_eq!(taken, [is_taken; 2], "{folder:?} {file:?} {is_read_only}");
        }
        // The group's folder is taken without links alone.
        assert_eq!(judge(service, (ROOT, 0o775), file, false), [false, true]);
    }

    #[test]
    fn root_takes_files_of_the_configurations_owner() {
        let (folder, file) = ((SERVICE, 0o750), (SERVICE, 0o600));
        for (user, configurer, is_taken) in [
            (ROOT, Some(SERVICE), true),
            (ROOT, Some(STRANGER), false),
            (ROOT, None, false),
            (STRANGER, Some(SERVICE), false),
        ] {
            let owners = AcceptedOwners::of(user, configurer);
            let taken = judge(owners, folder, file, false);
            assert_eq!(taken, [is_taken; 2], "{user} {configurer:?}");
        }
    }

    #[test]
    fn a_file_that_was_put_in_the_judged_ones_place_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [key, other] = ["key", "other"].map(|name| folder.path().join(name));
        write(&key, "hunter2").unwrap();
        write(&other, "chosen").unwrap();
        let owners = AcceptedOwners::of(geteuid().as_raw(), None);
        let walked = PathWalk::new(&key, owners, &SystemFacts).resolve();
        let (found, judged) = walked.unwrap();
        std::fs::rename(&other, &key).unwrap();
        let refused = open_resolved(&found, &judged, (owners, &SystemFacts)).unwrap_err();
        assert!(matches!(refused, PathRefusal::Replaced), "{refused:?}");
    }

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
                matches!(&refused, PathRefusal::WritableFolder(path) if *path == other),
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
        assert!(
            matches!(&refused, PathRefusal::ForeignOwner(path) if path.ends_with("key")),
            "{refused:?}"
        );
        let (folder, key) = mounted();
        chown(folder.path().join("..2026"), Some(12_345), None).unwrap();
        let refused = open(&key).unwrap_err();
        assert!(
            matches!(&refused, PathRefusal::ForeignOwner(path) if path.ends_with("..2026")),
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
        assert!(matches!(refused, PathRefusal::Unreadable(_)), "{refused:?}");
    }
}
