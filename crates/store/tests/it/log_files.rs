//! A database is its file, its log and the log's index: where one of them goes, nothing that was
//! acknowledged is lost, and nothing more is.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use futures_util::FutureExt;
use holdfast_domain::ports::{CommitError, LeaseMode};
use holdfast_domain::{Journal, Nodes, OperationId};
use holdfast_store::{FileLost, LockError, OpenError, Options, ServeLock, Store, migrate};
use holdfast_testkit::laws::tenant::{Tenant, finish, judged};
use holdfast_testkit::sample;
use rusqlite::Connection;

use crate::scratch::{Folder, Scratch, served, url};

fn beside(scratch: &Scratch, suffix: &str) -> PathBuf {
    scratch.file().with_file_name(format!("holdfast.db{suffix}"))
}

/// True if the file alone, as a later process finds it, has the operation.
async fn is_in_the_file(file: &std::path::Path, id: OperationId) -> bool {
    // By another process: a file that this one closes would take the locks of SQLite with it.
    let copy = file.with_file_name("later.db");
    assert!(Command::new("cp").arg(file).arg(&copy).status().unwrap().success());
    let store = Store::open(Options::new(url(&copy))).await.unwrap();
    let found = store.load(id).await.unwrap().operation.is_some();
    store.close().await.unwrap();
    found
}

#[tokio::test]
async fn a_log_or_index_that_was_removed_ends_commits_and_loses_none_that_was_acknowledged() {
    for removed in [&["-wal"][..], &["-shm"], &["-wal", "-shm"]] {
        let (scratch, lock) = served().await;
        let tenant = Tenant::new(&scratch, 1_000).await;
        let operation = tenant.admit(&tenant.claim().build()).await;
        let end = judged(&tenant.load(operation.id).await, finish(&operation, 10, 10));
        for suffix in removed {
            std::fs::remove_file(beside(&scratch, suffix)).unwrap();
        }
        let refused = scratch.store.commit(end).await;
        assert!(matches!(refused, Err(CommitError::Uncertain(_))), "{removed:?}: {refused:?}");
        let lost = lock.lost().await;
        assert!(matches!(lost, FileLost::LogRemoved(_)), "{removed:?}: {lost:?}");
        let beat = scratch.store.heartbeat(&tenant.lease.node, sample::LEASE, LeaseMode::Renew);
        assert!(beat.await.is_err());
        assert!(scratch.store.clone().close().await.is_err());
        assert!(is_in_the_file(&scratch.file(), operation.id).await, "{removed:?}");
        for suffix in removed {
            assert!(!beside(&scratch, suffix).exists(), "{removed:?}: nothing made it anew");
        }
    }
}

#[tokio::test]
async fn a_link_in_the_place_of_the_file_is_a_replacement() {
    let (scratch, lock) = served().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    let end = judged(&tenant.load(operation.id).await, finish(&operation, 10, 10));
    let moved = scratch.file().with_file_name("moved.db");
    std::fs::rename(scratch.file(), &moved).unwrap();
    std::os::unix::fs::symlink(&moved, scratch.file()).unwrap();
    let opened = scratch.folder.open().await;
    let is_refused = matches!(&opened, Err(OpenError::Lock(LockError::Lost(_))));
    assert!(is_refused, "a command beside it: {opened:?}");
    let refused = scratch.store.commit(end).await;
    assert!(matches!(refused, Err(CommitError::Uncertain(_))), "{refused:?}");
    assert!(matches!(lock.lost().await, FileLost::Replaced(_)));
}

#[tokio::test]
async fn a_link_from_the_start_is_fine_while_it_leads_to_the_file() {
    let folder = Folder::new();
    migrate::up(&folder.url()).await.unwrap();
    let named = folder.file().with_file_name("named.db");
    std::os::unix::fs::symlink(folder.file(), &named).unwrap();
    let lock = Arc::new(ServeLock::take(&url(&named)).unwrap());
    let options = Options { lock: Some(Arc::clone(&lock)), ..Options::new(url(&named)) };
    let scratch = Scratch { store: Store::open(options).await.unwrap(), folder };
    let tenant = Tenant::new(&scratch, 1_000).await;
    tenant.admit(&tenant.claim().build()).await;
    assert!(lock.lost().now_or_never().is_none());
    std::fs::remove_file(&named).unwrap();
    let beat = scratch.store.heartbeat(&tenant.lease.node, sample::LEASE, LeaseMode::Renew);
    assert!(beat.await.is_err());
    assert!(matches!(lock.lost().await, FileLost::Removed(_)));
}

#[tokio::test]
async fn a_command_beside_other_files_than_those_served_opens_nothing() {
    for suffix in ["-wal", "-shm"] {
        let (scratch, _lock) = served().await;
        let node = Tenant::new(&scratch, 1_000).await.lease.node;
        scratch.folder.open().await.unwrap().close().await.unwrap();
        let opened = scratch.folder.open().await.unwrap();
        std::fs::remove_file(beside(&scratch, suffix)).unwrap();
        let beat = opened.heartbeat(&node, sample::LEASE, LeaseMode::Renew).await;
        assert!(beat.is_err(), "opened before, {suffix}");
        let clock = opened.clock().await;
        assert!(clock.is_err(), "the first read of a pool, {suffix}: {clock:?}");
        let refused = scratch.folder.open().await;
        assert!(matches!(&refused, Err(OpenError::Lock(LockError::Lost(_)))), "{refused:?}");
        assert!(!beside(&scratch, suffix).exists(), "{suffix}: nothing made it anew");
    }
}

/// What a replicator beside the file does: a long read that keeps the log, the log read as a file, and checkpoints of
/// its own.
const REPLICATION: &str = "import sqlite3, sys
name = sys.argv[1]
held = sqlite3.connect(name, isolation_level=None)
held.execute('PRAGMA wal_autocheckpoint = 0')
held.execute('BEGIN')
held.execute('SELECT count(*) FROM wallets').fetchall()
own = sqlite3.connect(name, isolation_level=None)
own.execute('PRAGMA wal_checkpoint(PASSIVE)').fetchall()
assert open(name + '-wal', 'rb').read()
held.execute('COMMIT')
own.execute('PRAGMA wal_checkpoint(RESTART)').fetchall()
own.close()
held.close()";

#[tokio::test]
async fn a_replicator_beside_the_file_is_no_loss() {
    let (scratch, lock) = served().await;
    let tenant = Tenant::new(&scratch, 1_000_000).await;
    for _round in 0..3 {
        tenant.admit(&tenant.claim().build()).await;
        let mut python = Command::new("python3");
        let ended = python.args(["-c", REPLICATION]).arg(scratch.file()).status();
        assert!(ended.unwrap().success());
        let beat = scratch.store.heartbeat(&tenant.lease.node, sample::LEASE, LeaseMode::Renew);
        beat.await.unwrap();
        assert!(lock.lost().now_or_never().is_none());
    }
    scratch.store.close().await.unwrap();
}

#[tokio::test]
async fn checkpoints_vacuum_and_other_processes_are_no_loss() {
    let (scratch, lock) = served().await;
    let tenant = Tenant::new(&scratch, 1_000_000).await;
    let into = format!("VACUUM INTO '{}'", scratch.file().with_file_name("into.db").display());
    let foreign = [
        "PRAGMA wal_checkpoint(PASSIVE)",
        "PRAGMA wal_checkpoint(FULL)",
        "PRAGMA wal_checkpoint(RESTART)",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "VACUUM",
        &into,
        "PRAGMA journal_size_limit = 0; PRAGMA wal_checkpoint(RESTART); BEGIN IMMEDIATE; ROLLBACK",
        "PRAGMA wal_autocheckpoint = 0; BEGIN; SELECT count(*) FROM wallets; COMMIT",
    ];
    for sql in foreign {
        tenant.admit(&tenant.claim().build()).await;
        let ours = Connection::open(scratch.file()).unwrap();
        ours.execute_batch(sql).unwrap();
        drop(ours);
        // Another process, whose last connection would delete the log where nobody else had it.
        let script = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                      c.executescript(sys.argv[2].replace('into.db', 'into2.db'))\nc.close()";
        let mut python = Command::new("python3");
        let ended = python.args(["-c", script]).arg(scratch.file()).arg(sql).status();
        assert!(ended.unwrap().success(), "{sql}");
        tenant.admit(&tenant.claim().build()).await;
        let beat = scratch.store.heartbeat(&tenant.lease.node, sample::LEASE, LeaseMode::Renew);
        beat.await.unwrap();
        assert!(lock.lost().now_or_never().is_none(), "{sql}");
        scratch.folder.open().await.unwrap().close().await.unwrap();
    }
    scratch.store.close().await.unwrap();
    assert!(lock.lost().now_or_never().is_none());
}
