//! The database server beneath what is measured: its processes, which have to be on this machine, and what
//! it counts of itself.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_tests::postgres::Database;

use crate::pinned::{CoreRole, Cores};
use crate::usage;

/// From here on the server counts writes to its log among all others.
const COUNTS_ALL: u64 = 180_000;
/// A connection tells the server's counters what it did once a second at most, when it is used.
const TELLS: Duration = Duration::from_millis(1_100);

/// A database of its own on that server, dropped afterwards.
#[derive(Debug)]
pub(crate) struct DatabaseServer {
    pub(crate) database: Database,
    process: u32,
    version: u64,
}

/// Work of the whole server so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerWork {
    /// Bytes of its log.
    pub(crate) logged: u64,
    /// Waits until its log was on the disk.
    pub(crate) syncs: u64,
}

impl DatabaseServer {
    /// Makes a database, and holds the server's processes where what is not measured is.
    pub(crate) fn find(cores: Cores) -> Self {
        let database = Database::make();
        let number = |sql: &str| -> u64 {
            let rows = database.execute(sql);
            let value = rows.first().and_then(|row| row.trim().parse().ok());
            value.unwrap_or_else(|| panic!("{sql}: {rows:?}"))
        };
        let version = number("SHOW server_version_num");
        let of = "FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
        let checkpointer = number(&format!("SELECT pid {of}"));
        let checkpointer = u32::try_from(checkpointer).expect("a process");
        let process = usage::parent(checkpointer).expect("a server on this machine");
        for process in usage::family(process) {
            cores.hold(CoreRole::Around, process);
        }
        Self { database, process, version }
    }

    /// Name and settings, for the head of a table.
    pub(crate) fn describe(&self) -> String {
        let settings = ["server_version", "fsync", "synchronous_commit"];
        let values = settings.map(|name| self.show(name));
        let [version, fsync, commit] = &values;
        format!("PostgreSQL {version}, fsync {fsync}, synchronous_commit {commit}")
    }

    /// Folder of its files.
    pub(crate) fn folder(&self) -> PathBuf {
        self.show("data_directory").into()
    }

    /// CPU time of all its processes.
    pub(crate) fn cpu_nanos(&self) -> u64 {
        usage::cpu_nanos_of_family(self.process)
    }

    /// Work so far; `tell` makes those who work on it tell.
    pub(crate) fn done(&self, tell: impl FnOnce()) -> ServerWork {
        std::thread::sleep(TELLS);
        tell();
        let syncs = if self.version < COUNTS_ALL {
            "SELECT wal_sync FROM pg_stat_wal"
        } else {
            "SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal'"
        };
        let logged = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')";
        let number = |sql: &str| {
            let rows = self.database.execute(sql);
            rows.first().and_then(|row| row.trim().parse().ok()).unwrap_or(0)
        };
        ServerWork { logged: number(logged), syncs: number(syncs) }
    }

    fn show(&self, setting: &str) -> String {
        self.database.execute(&format!("SHOW {setting}")).concat()
    }
}
