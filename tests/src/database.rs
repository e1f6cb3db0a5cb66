//! The database file as another program holds or changes it: through Python's own SQLite, a process and a library
//! that the gateway does not know of. Tests that lock it are named `lock_*` and tests that read or change it
//! `sqlite_*`: without a Python they are skipped, and the reason is printed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::{PATIENCE, Ran, watchdog};

/// Options of Python without its packages: they take more time than a statement does.
pub(crate) const PLAIN: [&str; 2] = ["-I", "-S"];

const EXECUTE: &str = "
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=10) as db:
    for row in db.execute(sys.argv[2]):
        print('|'.join(str(value) for value in row))
";

const LOCK: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=10, isolation_level=None)
db.execute('BEGIN IMMEDIATE')
print('locked', flush=True)
sys.stdin.readline()
db.execute('ROLLBACK')
";

const READ: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=10, isolation_level=None)
db.execute('BEGIN')
db.execute('SELECT count(*) FROM wallets').fetchall()
print('reads', flush=True)
sys.stdin.readline()
db.execute('ROLLBACK')
";

/// Runs one statement: its rows, a line each, columns between `|`.
#[track_caller]
#[must_use]
pub fn execute(file: &Path, statement: &str) -> Vec<String> {
    execute_within(file, statement, PATIENCE)
}

/// The same for a statement that may take longer than others.
#[track_caller]
#[must_use]
pub fn execute_within(file: &Path, statement: &str, patience: Duration) -> Vec<String> {
    let mut python = Command::new("python3");
    let ran =
        Ran::within(python.args(PLAIN).args(["-c", EXECUTE]).arg(file).arg(statement), patience);
    ran.ok().lines().map(str::to_owned).collect()
}

/// Another program's open write transaction, until it is dropped.
#[derive(Debug)]
pub struct WriteLock(#[expect(dead_code, reason = "it lasts as long as this")] Holder);

impl WriteLock {
    /// Takes the lock and waits until it is held.
    #[must_use]
    pub fn take(file: &Path) -> Self {
        Self(Holder::start(LOCK, file, "locked\n"))
    }
}

/// Another program's open read transaction, until it is dropped.
#[derive(Debug)]
pub struct Reader(#[expect(dead_code, reason = "it lasts as long as this")] Holder);

impl Reader {
    /// Begins to read and waits until it sees one moment of the file.
    #[must_use]
    pub fn begin(file: &Path) -> Self {
        Self(Holder::start(READ, file, "reads\n"))
    }
}

/// A process that has a transaction open.
#[derive(Debug)]
struct Holder(Child);

impl Holder {
    fn start(script: &str, file: &Path, says: &str) -> Self {
        let mut python = Command::new("python3");
        python
            .args(PLAIN)
            .args(["-c", script])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = python.spawn().expect("python3 is a command");
        watchdog::started(child.id());
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, says);
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if let Some(mut stdin) = self.0.stdin.take() {
            // It may have ended by itself; the wait finds out.
            drop(stdin.write_all(b"\n"));
        }
        drop(self.0.wait());
        watchdog::ended(self.0.id());
    }
}
