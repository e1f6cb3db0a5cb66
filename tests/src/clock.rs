//! Clocks that are wrong, and may change at any moment: a library of a few lines, built with `cc`, that a process
//! loads before its own. Tests that need it are named `postgres_clock_*`: without a compiler they are skipped, and
//! the reason is printed.

use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::Ran;

/// The library's text.
const SOURCE: &str = include_str!("clock.c");

/// Clocks, by name.
#[derive(Debug)]
pub struct Clocks {
    folder: TempDir,
}

impl Clocks {
    /// Builds the library.
    #[must_use]
    pub fn build() -> Self {
        let folder = TempDir::with_prefix("holdfast-clock-").expect("a folder");
        // A server that is another user's reads them too.
        let all = Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), all).expect("a folder of our own");
        std::fs::write(folder.path().join("clock.c"), SOURCE).expect("a file");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o", "clock.so", "clock.c"]);
        drop(Ran::of(cc.current_dir(folder.path())).ok());
        Self { folder }
    }

    /// Makes a clock so many seconds wrong, for good or for those that run with it.
    pub fn set(&self, name: &str, seconds: i64) {
        let file = File::options().create(true).truncate(false).write(true).open(self.file(name));
        // In place and at once: it is mapped elsewhere.
        file.expect("a file").write_all_at(&seconds.to_ne_bytes(), 0).expect("a clock");
    }

    /// Environment of a process with this clock.
    #[must_use]
    pub fn env(&self, name: &str) -> [(&'static str, PathBuf); 2] {
        let library = self.folder.path().join("clock.so");
        [("LD_PRELOAD", library), ("HOLDFAST_TEST_CLOCK", self.file(name))]
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
