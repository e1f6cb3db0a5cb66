//! What is opened and what is refused, and how a schema comes and goes.

use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::task::Poll;

use holdfast_store::{
    BadDatabaseUrl, DatabaseUrl, LockError, OpenError, SchemaError, ServeLock, migrate,
};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Executor};
use tokio::task::JoinSet;

use holdfast_store::migrate::IfFilled;

use crate::raw::Raw;
use crate::scratch::{Folder, Scratch, url};

async fn refusal(folder: &Folder) -> SchemaError {
    let refusal = match folder.open().await.unwrap_err() {
        OpenError::Schema(refusal) => Some(refusal),
        OpenError::Connect(_) | OpenError::Writer(_) | OpenError::Lock(_) => None,
    };
    refusal.unwrap()
}

#[tokio::test]
async fn a_missing_file_is_not_made_by_opening_it() {
    let folder = Folder::new();
    let refused = refusal(&folder).await;
    assert!(matches!(refused, SchemaError::Missing(_)), "{refused:?}");
    assert!(refused.to_string().contains("holdfast migrate up"), "{refused}");
    assert!(!folder.file().exists());
}

#[tokio::test]
async fn an_empty_file_needs_a_migration_and_is_left_alone() {
    let folder = Folder::new();
    std::fs::write(folder.file(), []).unwrap();
    let refused = refusal(&folder).await;
    assert!(matches!(refused, SchemaError::Older { found: 0, .. }), "{refused:?}");
    assert!(refused.to_string().contains("holdfast migrate up"), "{refused}");
    assert!(std::fs::read(folder.file()).unwrap().is_empty());
}

#[tokio::test]
async fn somebody_elses_database_is_refused_and_left_alone() {
    let folder = Folder::new();
    let options = SqliteConnectOptions::new().filename(folder.file()).create_if_missing(true);
    let mut raw = options.connect().await.unwrap();
    raw.execute("CREATE TABLE recipes (name TEXT)").await.unwrap();
    drop(raw);
    let before = std::fs::read(folder.file()).unwrap();
    let refused = refusal(&folder).await;
    assert!(matches!(refused, SchemaError::Foreign(_)), "{refused:?}");
    let refused = migrate::up(&folder.url()).await.unwrap_err();
    assert!(matches!(refused, SchemaError::Foreign(_)), "{refused:?}");
    assert_eq!(std::fs::read(folder.file()).unwrap(), before);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let folder = Folder::new();
    let text = "this is a letter to my grandmother, not a database. ".repeat(100);
    std::fs::write(folder.file(), &text).unwrap();
    let refused = refusal(&folder).await;
    assert!(matches!(refused, SchemaError::Foreign(_)), "{refused:?}");
    let refused = migrate::up(&folder.url()).await.unwrap_err();
    assert!(matches!(refused, SchemaError::Foreign(_)), "{refused:?}");
    assert_eq!(std::fs::read_to_string(folder.file()).unwrap(), text);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let scratch = Scratch::open().await;
    let sql = "INSERT INTO holdfast_migrations VALUES (999, 'later', zeroblob(32), 0)";
    Raw::open(&scratch).await.run(sql).await;
    let refused = refusal(&scratch.folder).await;
    assert!(matches!(refused, SchemaError::Newer(999)), "{refused:?}");
    let refused = migrate::up(&scratch.folder.url()).await.unwrap_err();
    assert!(matches!(refused, SchemaError::Newer(999)), "{refused:?}");
}

#[tokio::test]
async fn a_changed_migration_is_refused() {
    let scratch = Scratch::open().await;
    let sql = "UPDATE holdfast_migrations SET digest = zeroblob(32)";
    Raw::open(&scratch).await.run(sql).await;
    let refused = refusal(&scratch.folder).await;
    assert!(matches!(refused, SchemaError::Changed(1)), "{refused:?}");
}

#[tokio::test]
async fn migrations_go_up_and_down_one_by_one() {
    let folder = Folder::new();
    let applied = |steps: &[migrate::MigrationStatus]| -> Vec<bool> {
        steps.iter().map(|step| step.applied_at.is_some()).collect()
    };
    let url = folder.url();
    let steps = migrate::status(&url).await.unwrap().len();
    assert_eq!(applied(&migrate::status(&url).await.unwrap()), vec![false; steps]);
    assert!(!folder.file().exists(), "a look makes no file");
    assert!(matches!(migrate::down(&url, IfFilled::Refuse).await, Err(SchemaError::Missing(_))));

    let up = migrate::up(&url).await.unwrap();
    assert_eq!(
        up.iter().map(|step| &*step.name).collect::<Vec<_>>(),
        [
            "ledger",
            "administration",
            "jobs",
            "usage_hours",
            "events",
            "webhooks",
            "refusals",
            "people",
            "usage_reasons",
            "deliveries_due_of_webhook",
            "sums",
            "late_costs",
            "later_limits",
            "open_cancels",
            "limits_revision",
            "requests",
            "entry_numbers",
            "browser_marks",
            "person_wallets",
            "model_aliases",
            "in_force",
            "limits_of_every_edit",
            "refusals_of_requests",
            "routes",
            "restores",
            "ledger_roots"
        ]
    );
    assert_eq!(migrate::up(&url).await.unwrap(), [], "a second time changes nothing");
    assert_eq!(migrate::status(&url).await.unwrap(), up);
    folder.open().await.unwrap().close().await.unwrap();

    for step in up.iter().rev() {
        let down = migrate::down(&url, IfFilled::Refuse).await.unwrap();
        assert_eq!((down.version, down.name), (step.version, step.name.clone()));
    }
    assert_eq!(applied(&migrate::status(&url).await.unwrap()), vec![false; steps]);
    assert!(matches!(
        migrate::down(&url, IfFilled::Refuse).await,
        Err(SchemaError::NothingApplied)
    ));
    let refused = refusal(&folder).await;
    let last = up.last().unwrap().version;
    let is_older = matches!(refused, SchemaError::Older { found: 0, needed } if needed == last);
    assert!(is_older, "{refused:?}");

    migrate::up(&url).await.unwrap();
    folder.open().await.unwrap().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_migrations_apply_each_step_once() {
    // Fresh files each: it is their making that several may be at.
    for _file in 0..16 {
        let folder = Folder::new();
        let mut migrating = JoinSet::new();
        for _process in 0..4 {
            let url = folder.url();
            migrating.spawn(async move { migrate::up(&url).await.unwrap().len() });
        }
        let applied: usize = migrating.join_all().await.into_iter().sum();
        assert_eq!(applied, migrate::status(&folder.url()).await.unwrap().len());
    }
}

#[tokio::test]
async fn the_files_are_for_their_owner_alone() {
    let folder = Folder::new();
    let inner = folder.file().parent().unwrap().join("a").join("b");
    let url = url(&inner.join("c.db"));
    migrate::up(&url).await.unwrap();
    let store =
        holdfast_store::Store::open(holdfast_store::Options::new(url.clone())).await.unwrap();
    let _lock = ServeLock::take(&url).unwrap();
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&inner), 0o700);
    for name in ["c.db", "c.db-wal", "c.db-shm", "c.db.lock"] {
        assert_eq!(mode(&inner.join(name)), 0o600, "{name}");
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn settings_are_those_that_commits_rely_on() {
    let scratch = Scratch::open().await;
    let mut raw = Raw::open(&scratch).await;
    assert_eq!(raw.text("PRAGMA journal_mode").await, "wal");
    assert_eq!(raw.number("PRAGMA application_id").await, i64::from(u32::from_be_bytes(*b"HFDB")));
}

#[test]
fn a_database_is_served_once() {
    let folder = Folder::new();
    let first = ServeLock::take(&folder.url()).unwrap();
    let second = ServeLock::take(&folder.url()).unwrap_err();
    assert!(matches!(second, LockError::Taken(_)), "{second:?}");
    assert!(second.to_string().contains("another `holdfast serve`"), "{second}");
    drop(first);
    ServeLock::take(&folder.url()).unwrap();
}

#[test]
fn a_database_is_served_once_by_whatever_name() {
    let folder = Folder::new();
    let beside = folder.file().with_file_name("beside");
    std::os::unix::fs::symlink(folder.file().parent().unwrap(), &beside).unwrap();
    let new = ServeLock::take(&folder.url()).unwrap();
    let taken = ServeLock::take(&url(&beside.join("holdfast.db")));
    assert!(matches!(taken, Err(LockError::Taken(_))), "before there is a file: {taken:?}");
    drop(new);

    std::fs::write(folder.file(), "").unwrap();
    let link = folder.file().with_file_name("link.db");
    std::os::unix::fs::symlink(folder.file(), &link).unwrap();
    let first = ServeLock::take(&url(&link)).unwrap();
    for other in [folder.file(), beside.join("holdfast.db"), beside.join("link.db")] {
        let taken = ServeLock::take(&url(&other));
        assert!(matches!(taken, Err(LockError::Taken(_))), "{other:?}: {taken:?}");
    }
    drop(first);

    let nowhere = folder.file().with_file_name("nowhere.db");
    std::os::unix::fs::symlink(folder.file().with_file_name("none.db"), &nowhere).unwrap();
    let failed = ServeLock::take(&url(&nowhere));
    assert!(matches!(failed, Err(LockError::Failed(..))), "{failed:?}");
}

#[test]
fn other_urls_are_refused() {
    for (url, why) in [
        ("", BadDatabaseUrl::Scheme),
        ("holdfast.db", BadDatabaseUrl::Scheme),
        ("sqlite::memory:", BadDatabaseUrl::Scheme),
        ("mysql://db/holdfast", BadDatabaseUrl::Scheme),
        ("postgres://db", BadDatabaseUrl::Server),
        ("postgres://me@db", BadDatabaseUrl::Server),
        ("postgres://me@db/", BadDatabaseUrl::Server),
        ("postgres://me@/holdfast", BadDatabaseUrl::Server),
        ("postgres:///holdfast", BadDatabaseUrl::Server),
        ("postgres://db/holdfast", BadDatabaseUrl::Server),
        ("postgres://me@db:port/holdfast", BadDatabaseUrl::Server),
        ("postgres://me:se#cret@db/holdfast", BadDatabaseUrl::Server),
        ("postgres://me@db/holdfast?sslmode=perhaps", BadDatabaseUrl::Server),
        ("postgres://me@db/holdfast", BadDatabaseUrl::Encryption),
        ("postgres://me@10.0.0.1/holdfast", BadDatabaseUrl::Encryption),
        ("postgres://me@localhost/holdfast?host=db", BadDatabaseUrl::Encryption),
        ("postgres://me@db/holdfast?sslmode=prefer", BadDatabaseUrl::Encryption),
        ("postgres://me@db/holdfast?sslmode=allow", BadDatabaseUrl::Encryption),
        ("postgres://db/holdfast?passfile=x", BadDatabaseUrl::Parameter),
        ("postgres://db/holdfast?options=-csynchronous_commit%3Doff", BadDatabaseUrl::Parameter),
        ("postgres://me@h1:5432,h2/holdfast?sslmode=disable", BadDatabaseUrl::Ports),
        // For libpq the port is the second host's alone.
        ("postgres://me@h1,h2:5433/holdfast?sslmode=disable", BadDatabaseUrl::Ports),
        ("postgres://me@h1,h2,h3/holdfast?sslmode=disable&port=1,2", BadDatabaseUrl::Ports),
        ("postgres://me@h1:1,h2:2/holdfast?sslmode=disable&port=3", BadDatabaseUrl::Ports),
        ("postgres://me@h1,h2/holdfast?sslmode=disable&port=1,", BadDatabaseUrl::Ports),
        ("postgres://me@h1,,h3/holdfast?sslmode=disable", BadDatabaseUrl::Hosts),
        ("postgres://me@h1,/holdfast?sslmode=disable", BadDatabaseUrl::Hosts),
        ("postgres://me@a,b,c,d,e,f,g,h,i/holdfast?sslmode=disable", BadDatabaseUrl::Hosts),
        ("postgres://me@any/holdfast?host=/run/a,", BadDatabaseUrl::Hosts),
        ("postgres://me@h1,h2:port/holdfast?sslmode=disable", BadDatabaseUrl::Ports),
        ("postgres://me@h1:1,h2:port/holdfast?sslmode=disable", BadDatabaseUrl::Server),
        // One host that is reached over a network is enough.
        ("postgres://me@localhost,h2/holdfast", BadDatabaseUrl::Encryption),
        (
            "postgres://me@db/holdfast?sslmode=disable&target_session_attrs=any",
            BadDatabaseUrl::Parameter,
        ),
        ("sqlite://", BadDatabaseUrl::File),
        ("sqlite://:memory:", BadDatabaseUrl::File),
        ("sqlite://folder/", BadDatabaseUrl::File),
        ("sqlite://a?mode=ro", BadDatabaseUrl::File),
        ("sqlite://a%20b", BadDatabaseUrl::File),
    ] {
        assert_eq!(DatabaseUrl::parse(url), Err(why), "{url}");
    }
}

#[test]
fn a_url_is_shown_without_its_password() {
    for (url, shown) in [
        ("sqlite://a/b.db", "sqlite://a/b.db"),
        ("postgres://me:hunter2@db:5433/book?sslmode=disable", "postgres://db:5433/book"),
        ("postgres://me:hunter2@[::1]:5433/book", "postgres://[::1]:5433/book"),
        ("postgresql://me:hunter2@db/book?sslmode=require", "postgres://db:5432/book"),
        ("postgres://me:hunter2@any/book?host=/run/pg", "postgres:///book at /run/pg"),
        (
            "postgres://me:hunter2@any:5433/book?host=/run/a,/run/b",
            "postgres:///book at /run/a, /run/b",
        ),
        (
            "postgres://me:hunter2@h1:5433,h2:5434/book?sslmode=require&target_session_attrs=read-write",
            "postgres://h1:5433,h2:5434/book",
        ),
        (
            "postgres://me:hun,ter2@h1,h2/book?sslmode=disable&port=5433",
            "postgres://h1:5433,h2:5433/book",
        ),
        ("postgres://me@h1,[::1]/book?sslmode=disable&port=1,2", "postgres://h1:1,[::1]:2/book"),
        ("postgres://me@h1,h2/book?sslmode=disable", "postgres://h1:5432,h2:5432/book"),
    ] {
        let url = DatabaseUrl::parse(url).unwrap();
        assert_eq!((url.to_string(), format!("{url:?}")), (shown.to_owned(), shown.to_owned()));
    }
}

#[tokio::test]
async fn a_store_is_closed_when_nothing_is_written_any_more() {
    let scratch = Scratch::open().await;
    let watcher = scratch.store.clone();
    let mut closed = std::pin::pin!(watcher.closed());
    let at_once = std::future::poll_fn(|cx| Poll::Ready(closed.as_mut().poll(cx))).await;
    assert!(at_once.is_pending(), "it is open");
    scratch.store.close().await.unwrap();
    closed.await;
}
