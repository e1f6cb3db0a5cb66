//! The file of a database is the one that was opened, whatever comes to have its name; and a number
//! that was remembered leads to no other operation.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use holdfast_domain::Journal;
use holdfast_domain::ports::{CommitError, HeartbeatOutcome, LeaseMode, Nodes, Unavailable};
use holdfast_store::{FileLost, LockError, OpenError, Options, ServeLock, Store, migrate};
use holdfast_testkit::laws::tenant::{Tenant, finish, judged};
use holdfast_testkit::sample;

use crate::raw::Raw;
use crate::scratch::{Folder, Scratch, served};

async fn beat(tenant: &Tenant<'_>, store: &Store) -> Result<HeartbeatOutcome, Unavailable> {
    store.heartbeat(&tenant.lease.node, sample::LEASE, LeaseMode::Renew).await
}

/// A copy of a database under another name, as a backup makes it.
async fn copy(scratch: &Scratch) -> PathBuf {
    let copy = scratch.file().with_file_name("copy.db");
    Raw::open(scratch).await.run(&format!("VACUUM INTO '{}'", copy.display())).await;
    copy
}

#[tokio::test]
async fn a_file_with_a_second_name_is_refused() {
    let folder = Folder::new();
    migrate::up(&folder.url()).await.unwrap();
    let second = folder.file().with_file_name("second.db");
    std::fs::hard_link(folder.file(), &second).unwrap();
    let taken = ServeLock::take(&folder.url());
    assert!(matches!(taken, Err(LockError::Lost(FileLost::Linked(_, 2)))), "{taken:?}");
    let opened = folder.open().await;
    assert!(matches!(opened, Err(OpenError::Lock(LockError::Lost(_)))), "{opened:?}");
    std::fs::remove_file(second).unwrap();
    ServeLock::take(&folder.url()).unwrap();
    folder.open().await.unwrap().close().await.unwrap();
}

#[tokio::test]
async fn a_file_is_served_once_whatever_way_leads_to_it() {
    let folder = Folder::new();
    migrate::up(&folder.url()).await.unwrap();
    // As through a mount of the file alone, beside which there is another lock file.
    let elsewhere = std::fs::File::open(folder.file()).unwrap();
    elsewhere.lock().unwrap();
    let taken = ServeLock::take(&folder.url());
    assert!(matches!(taken, Err(LockError::Taken(_))), "{taken:?}");
    elsewhere.unlock().unwrap();
    drop(ServeLock::take(&folder.url()).unwrap());
    // Held again, and given back with the lock, though its descriptor stays open.
    let lock = ServeLock::take(&folder.url()).unwrap();
    assert!(elsewhere.try_lock().is_err());
    drop(lock);
    elsewhere.try_lock().unwrap();
}

#[tokio::test]
async fn a_file_that_is_made_after_the_lock_is_held_too() {
    let folder = Folder::new();
    let lock = Arc::new(ServeLock::take(&folder.url()).unwrap());
    migrate::up(&folder.url()).await.unwrap();
    let options = Options { lock: Some(Arc::clone(&lock)), ..Options::new(folder.url()) };
    let store = Store::open(options).await.unwrap();
    assert!(std::fs::File::open(folder.file()).unwrap().try_lock().is_err());
    store.close().await.unwrap();
}

/// The locks of SQLite that this process has on a file, as Linux lists them.
fn locks_of_sqlite(scratch: &Scratch) -> usize {
    let inode = std::fs::metadata(scratch.file()).unwrap().ino();
    let ours = format!(" {} ", std::process::id());
    let file = format!(":{inode} ");
    let all = std::fs::read_to_string("/proc/locks").unwrap();
    let is_ours = |line: &&str| line.contains(&ours) && line.contains(&file);
    all.lines().filter(is_ours).filter(|line| line.contains("POSIX")).count()
}

#[tokio::test]
async fn the_locks_of_sqlite_outlive_the_lock_of_a_process_that_served() {
    let scratch = Scratch::open().await;
    let before = locks_of_sqlite(&scratch);
    assert!(before > 0);
    drop(ServeLock::take(&scratch.folder.url()).unwrap());
    assert_eq!(locks_of_sqlite(&scratch), before);
    std::fs::hard_link(scratch.file(), scratch.file().with_file_name("second.db")).unwrap();
    assert!(ServeLock::take(&scratch.folder.url()).is_err());
    assert_eq!(locks_of_sqlite(&scratch), before);
}

#[tokio::test]
async fn a_file_that_was_removed_is_written_no_more() {
    let (scratch, lock) = served().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    let end = judged(&tenant.load(operation.id).await, finish(&operation, 10, 10));
    beat(&tenant, &scratch.store).await.unwrap();
    assert!(lock.lost().now_or_never().is_none());
    std::fs::remove_file(scratch.file()).unwrap();
    assert!(beat(&tenant, &scratch.store).await.is_err());
    let lost = lock.lost().await;
    assert!(matches!(lost, FileLost::Removed(_)), "{lost:?}");
    let refused = scratch.store.commit(end).await;
    assert!(matches!(refused, Err(CommitError::Unavailable(_))), "{refused:?}");
    assert!(!scratch.file().exists());
}

#[tokio::test]
async fn another_file_under_its_name_is_never_written() {
    let (scratch, lock) = served().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    let end = judged(&tenant.load(operation.id).await, finish(&operation, 10, 10));
    std::fs::rename(copy(&scratch).await, scratch.file()).unwrap();
    assert!(beat(&tenant, &scratch.store).await.is_err());
    let lost = lock.lost().await;
    assert!(matches!(lost, FileLost::Replaced(_)), "{lost:?}");
    let refused = scratch.store.commit(end).await;
    assert!(matches!(refused, Err(CommitError::Unavailable(_))), "{refused:?}");
    assert!(scratch.store.clone().close().await.is_err(), "its log is folded into no other file");
    // What its predecessor's log would make of it is not what is asked here.
    // Without its lock file no command knows of the process that served.
    for beside in ["holdfast.db-wal", "holdfast.db-shm", "holdfast.db.lock"] {
        std::fs::remove_file(scratch.file().with_file_name(beside)).unwrap();
    }
    let other = scratch.folder.open().await.unwrap();
    let found = other.load(operation.id).await.unwrap();
    assert_eq!(found.operation, Some(operation));
    other.close().await.unwrap();
}

#[tokio::test]
async fn a_second_name_is_told_and_what_runs_still_ends() {
    let (scratch, lock) = served().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    std::fs::hard_link(scratch.file(), scratch.file().with_file_name("second.db")).unwrap();
    beat(&tenant, &scratch.store).await.unwrap();
    let lost = lock.lost().await;
    assert!(matches!(lost, FileLost::Linked(_, 2)), "{lost:?}");
    tenant.step(operation.id, finish(&operation, 10, 10)).await;
    scratch.store.close().await.unwrap();
}

#[tokio::test]
async fn a_number_that_leads_to_another_operation_writes_nothing_there() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    let end = judged(&tenant.load(operation.id).await, finish(&operation, 10, 10));
    let before = tenant.balances().await;
    // As where a backup was put back that does not have the operation, and its number went to another one.
    let other = "UPDATE operations SET id = randomblob(16), claim = randomblob(16)";
    Raw::reckless(&scratch).await.run(other).await;
    let refused = scratch.store.commit(end).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    assert_eq!(tenant.balances().await, before);
}

#[tokio::test]
async fn a_writer_that_connects_anew_has_forgotten_what_it_knew() {
    let scratch = Scratch::with(|options| options.busy_timeout = Duration::from_millis(20)).await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    tenant.admit(&tenant.claim().build()).await;
    let mut raw = Raw::reckless(&scratch).await;
    // A command fails, and with it the connection.
    raw.run("BEGIN IMMEDIATE; DELETE FROM prices").await;
    assert!(beat(&tenant, &scratch.store).await.is_err());
    raw.run("COMMIT").await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    let snapshot = tenant.load(operation.id).await;
    assert_eq!(snapshot.operation.map(|it| it.price), Some(operation.price));
}
