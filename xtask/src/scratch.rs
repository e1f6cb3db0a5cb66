//! Folder of the tests' temporary files: in memory if the machine has room there.
//!
//! Most of a test's time on a disk is a wait for `fsync`. Tests kill processes and servers, never the machine, so
//! no assertion of theirs rests on a disk. `TMPDIR`, if it is set, has precedence.
//!
//! ```text
//! /dev/shm/holdfast-run-4711-…/lock   locked as long as its process lives
//!                             /…      files of that run
//! ```
//!
//! Each run has a folder of its own and removes it at its end. A run that was killed cannot: the next start removes
//! every such folder whose lock is free.

use std::{
    env, fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};

use crate::shell::capture;

/// Linux's file system in memory.
const MEMORY: &str = "/dev/shm";
/// The tests that run at one time and their database server use less than a tenth of it.
const ROOM_MIN: u64 = 8 << 30;

/// Begin of the names of folders.
const PREFIX: &str = "holdfast-run-";
/// File in a folder that its process has locked.
const LOCK: &str = "lock";

/// Folder of this process, made when it is first needed.
static OWN: OnceLock<RunFolder> = OnceLock::new();

#[derive(Debug)]
struct RunFolder {
    path: PathBuf,
    /// Held until the process ends, however it ends.
    _lock: fs::File,
}

/// The folder for a database server of the tests and for the files of the tests themselves.
pub(crate) fn folder() -> Result<&'static Path> {
    if let Some(own) = OWN.get() {
        return Ok(&own.path);
    }
    let parent = parent();
    remove_left(&parent).context("folders of earlier runs cannot be listed")?;
    // The moment too: a process id comes again, and in another container with a shared folder.
    let begun = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let path = parent.join(format!("{PREFIX}{}-{begun}", std::process::id()));
    let made = make(path).context("no folder for files of tests")?;
    Ok(&OWN.get_or_init(|| made).path)
}

/// Removes the folder of this process, if it has one.
pub(crate) fn clear() {
    if let Some(own) = OWN.get() {
        fs::remove_dir_all(&own.path).ok();
    }
}

fn make(path: PathBuf) -> io::Result<RunFolder> {
    fs::create_dir(&path)?;
    // Locked before it has its name: another start removes a folder whose lock is free.
    let making = path.join("lock.new");
    let lock = fs::File::create(&making)?;
    lock.lock()?;
    fs::rename(making, path.join(LOCK))?;
    // As the folder above it: a database server runs as another user.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o1777))?;
    Ok(RunFolder { path, _lock: lock })
}

/// Removes the folders of runs that have ended without doing so.
fn remove_left(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // A folder without a lock is being made.
        let is_left =
            fs::File::open(entry.path().join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
        if is_left {
            // Another run may remove it too.
            fs::remove_dir_all(entry.path()).ok();
        }
    }
    Ok(())
}

/// The folder for temporary files, in memory if that has room.
fn parent() -> PathBuf {
    match env::var_os("TMPDIR") {
        None if has_room(Path::new(MEMORY)) && has_memory() && runs_programs(&mounts()) => {
            MEMORY.into()
        }
        None | Some(_) => env::temp_dir(),
    }
}

fn has_room(folder: &Path) -> bool {
    // A folder without `df`'s answer has no room.
    let captured =
        capture(Command::new("df").args(["--block-size=1", "--output=avail"]).arg(folder));
    captured.is_ok_and(|captured| room(&captured.stdout).is_some_and(|room| room >= ROOM_MIN))
}

/// The file system's room is a quota: its files need memory that is free.
fn has_memory() -> bool {
    // Without a figure there is none.
    fs::read_to_string("/proc/meminfo").is_ok_and(|text| memory(&text) >= Some(ROOM_MIN))
}

/// Bytes that programs can have, from the line `MemAvailable:   19852340 kB`.
fn memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1_024)
}

/// Bytes that are free, from the last line of `df`.
fn room(printed: &str) -> Option<u64> {
    printed.lines().last()?.trim().parse().ok()
}

fn mounts() -> String {
    // Without a list of mounts, no program is known to run there.
    fs::read_to_string("/proc/mounts").unwrap_or_default()
}

/// True if the programs that some tests write into their folders can be started there.
fn runs_programs(mounts: &str) -> bool {
    let mut fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    fields.any(|mount| match mount.as_slice() {
        [_, folder, _, options, ..] => {
            *folder == MEMORY && !options.split(',').any(|option| option == "noexec")
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_runs_that_have_ended_are_removed_and_others_stay() {
        let parent = env::temp_dir().join(format!("scratch-test-{}", std::process::id()));
        fs::create_dir(&parent).unwrap();
        let named = |name: &str| parent.join(format!("{PREFIX}{name}"));
        let live = make(named("live")).unwrap();
        drop(make(named("ended")).unwrap());
        fs::write(named("ended").join("file"), "left").unwrap();
        fs::create_dir(named("unmade")).unwrap();
        drop(make(parent.join("other")).unwrap());
        remove_left(&parent).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(&parent).unwrap().map(|entry| entry.unwrap().path()).collect();
        left.sort();
        assert_eq!(left, [named("live"), named("unmade"), parent.join("other")]);
        drop(live);
        fs::remove_dir_all(&parent).unwrap();
    }

    #[test]
    fn room_is_the_number_below_the_heading() {
        assert_eq!(room("     Avail\n25111109632\n"), Some(25_111_109_632));
        assert_eq!(room("     Avail\n"), None);
    }

    #[test]
    fn memory_is_what_is_available() {
        let text = "MemTotal:       24683656 kB\nMemAvailable:   19852340 kB\n";
        assert_eq!(memory(text), Some(19_852_340 << 10));
        assert_eq!(memory("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn a_mount_that_starts_no_program_is_not_taken() {
        assert!(runs_programs("tmpfs /dev/shm tmpfs rw,relatime 0 0\n"));
        assert!(!runs_programs("tmpfs /dev/shm tmpfs rw,nosuid,noexec 0 0\n"));
        assert!(!runs_programs("tmpfs /run tmpfs rw 0 0\n"));
    }
}
