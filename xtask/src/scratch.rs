//! Folder of the tests' temporary files: in memory if the machine has room there.
//!
//! Most of a test's time on a disk is a wait for `fsync`. What the tests kill are processes and servers, never
//! the machine, so nothing that they assert rests on a disk. `TMPDIR`, if it is set, decides alone.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::shell::hear;

/// Linux's file system in memory.
const MEMORY: &str = "/dev/shm";
/// The tests that run at one time and their database server use less than a tenth of it.
const ROOM_MIN: u64 = 8 << 30;

/// The folder for a database server of the tests and for the files of the tests themselves.
pub(crate) fn folder() -> PathBuf {
    match env::var_os("TMPDIR") {
        None if has_room(Path::new(MEMORY)) && has_memory() && runs_programs(&mounts()) => {
            MEMORY.into()
        }
        None | Some(_) => env::temp_dir(),
    }
}

fn has_room(folder: &Path) -> bool {
    // A folder without `df`'s answer has no room.
    let heard = hear(Command::new("df").args(["--block-size=1", "--output=avail"]).arg(folder));
    heard.is_ok_and(|heard| room(&heard.stdout).is_some_and(|room| room >= ROOM_MIN))
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
    // Without a list of mounts, nothing is known to run there.
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
