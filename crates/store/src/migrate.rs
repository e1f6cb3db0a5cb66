//! Migrations: embedded SQL files, applied one by one, each in a transaction of its own, and noted in
//! `holdfast_migrations` with a digest, so that a file that was changed afterwards is noticed.
//!
//! ```text
//! empty --up--> 1 --up--> ... --up--> N      one transaction: lock, look, apply, note, COMMIT
//! empty <-down- 1 <-down- ... <-down- N      one transaction: lock, look, refuse or undo, COMMIT
//! ```
//!
//! The state is read again under the lock of each step (BEGIN IMMEDIATE in a file, the advisory lock `LOCK` on a
//! server), so two processes that migrate at once apply each step once. A process that dies between steps leaves a
//! whole schema, and the next `up` goes on from there.
//!
//! Opening a store never migrates: `check` refuses every schema but the one that this program was made for, because
//! a program that writes another version's tables could spoil the ledger.
//!
//! A file is recognised by its application id, the schema of a server by that table: other tables without it belong
//! to another program and stay as they are. `down` must never delete rows without the operator's consent, nor the
//! tables of a node whose lease is live. Waits for writers end after `BUSY`.
//!
//! ```
//! use holdfast_store::migrate::{self, IfFilled};
//! use holdfast_store::{DatabaseUrl, SchemaError};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let url = DatabaseUrl::parse(&format!("sqlite://{}/ledger.db", folder.path().display()))?;
//! assert!(matches!(migrate::down(&url, IfFilled::Refuse).await, Err(SchemaError::Missing(_))));
//!
//! let applied = migrate::up(&url).await?;
//! assert!(!applied.is_empty() && migrate::up(&url).await?.is_empty());
//! // The newest migration is undone, and applied again.
//! let undone = migrate::down(&url, IfFilled::Refuse).await?;
//! assert_eq!(migrate::up(&url).await?[0].version, undone.version);
//! # Ok(())
//! # }
//! ```

#[cfg(all(feature = "sqlite", feature = "postgres"))]
pub mod copy;

use std::time::Duration;

use holdfast_domain::Timestamp;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, IsolationLevel,
    SqliteTransactionMode, TransactionOptions, TransactionTrait,
};

use crate::backend;
use crate::error::ConnectError;
pub use crate::error::SchemaError;
use crate::schema::Dialect;
pub use crate::schema::loss::{IfFilled, Loss};
pub use crate::schema::steps::MigrationStatus;
use crate::schema::steps::{MIGRATIONS, Migration};
use crate::schema::url::DatabaseUrl;

/// Marks a file as ours: `HFDB`.
const APPLICATION_ID: i64 = 0x4846_4442;
/// Longest wait of a migration for another writer.
const BUSY: Duration = Duration::from_secs(5);
/// Advisory lock of a server's database, held until the end of each step's transaction; its number
/// is `HFDB`, too.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1212564546)";

/// Applies every missing migration, each in a transaction, and returns them. Creates the file if there is none. Not
/// cancel safe between migrations; one that is dropped halfway is rolled back.
///
/// # Errors
///
/// [`SchemaError::Foreign`], [`SchemaError::Newer`] and [`SchemaError::Changed`] for a database of another program or
/// release, [`SchemaError::Connect`] if it cannot be opened, and [`SchemaError::Failed`] if a migration fails.
pub async fn up(url: &DatabaseUrl) -> Result<Vec<MigrationStatus>, SchemaError> {
    backend::create(url).map_err(SchemaError::Connect)?;
    let db = open(url).await?;
    let mut applied = Vec::new();
    let outcome = loop {
        match apply_one(&db, url).await {
            Ok(Some(step)) => applied.push(step),
            Ok(None) => break Ok(applied),
            Err(error) => break Err(error),
        }
    };
    // Closed on success and on failure: a connection that is left keeps the file open.
    close(db, outcome).await
}

/// Takes the last migration back, with all that it created, and returns it. Not cancel safe: the connection is then
/// left open.
///
/// # Errors
///
/// [`SchemaError::Filled`] if rows would go that are to stay, [`SchemaError::InUse`] if a gateway runs on the server's
/// database, [`SchemaError::NothingApplied`] if there is nothing to take back, and otherwise as [`up`].
pub async fn down(url: &DatabaseUrl, if_filled: IfFilled) -> Result<MigrationStatus, SchemaError> {
    exists(url)?;
    let db = open(url).await?;
    let outcome = revert_one(&db, url, if_filled).await;
    close(db, outcome).await
}

/// Every migration, and when each was applied.
///
/// # Errors
///
/// As [`up`], but for a database that does not exist: then no migration is applied.
pub async fn status(url: &DatabaseUrl) -> Result<Vec<MigrationStatus>, SchemaError> {
    if exists(url).is_err() {
        return Ok(MIGRATIONS.iter().map(|migration| migration.step(None)).collect());
    }
    let db = open(url).await?;
    let outcome = applied(&db, url).await.map(|applied| {
        let at = |version| applied.iter().find_map(|(v, at)| (*v == version).then_some(*at));
        MIGRATIONS.iter().map(|migration| migration.step(at(migration.version))).collect()
    });
    close(db, outcome).await
}

/// Refuses every schema but the one that this program was made for. It reads through a connection that cannot
/// write, if the database has such: a file that is refused stays as it is.
pub(crate) async fn check(url: &DatabaseUrl, busy_timeout: Duration) -> Result<(), SchemaError> {
    exists(url)?;
    let waited = if url.file().is_some() { busy_timeout } else { BUSY };
    let db = backend::look(url, waited).await.map_err(|error| refused(error, url))?;
    let found = applied(&db, url).await.map(|applied| applied.last().map_or(0, |(last, _)| *last));
    let found = close(db, found).await?;
    let needed = MIGRATIONS.last().map_or(0, |migration| migration.version);
    if found < needed { Err(SchemaError::Older { found, needed }) } else { Ok(()) }
}

/// Checks that the file of a SQLite database exists. A database of a server is taken to exist: only the server
/// knows.
///
/// # Errors
///
/// [`SchemaError::Missing`] for a file that does not exist.
pub fn exists(url: &DatabaseUrl) -> Result<(), SchemaError> {
    match url.file() {
        Some(file) if !file.is_file() => Err(SchemaError::Missing(file.to_owned())),
        Some(_) | None => Ok(()),
    }
}

/// Name of the database for people: the path of its file, or its URL.
fn name(url: &DatabaseUrl) -> String {
    url.file().map_or_else(|| url.to_string(), |file| file.display().to_string())
}

async fn open(url: &DatabaseUrl) -> Result<DatabaseConnection, SchemaError> {
    if url.file().is_some() {
        // Read before the settings are written: a foreign file stays as it is.
        let reader = backend::look(url, BUSY).await.map_err(|error| refused(error, url))?;
        let ours = inspect(&reader, url).await;
        close(reader, ours).await?;
    }
    backend::migrate(url, BUSY).await.map_err(|error| refused(error, url))
}

/// Separates a file or name that is not a database from one that cannot be reached.
fn refused(error: ConnectError, url: &DatabaseUrl) -> SchemaError {
    match error {
        ConnectError::Open(_, cause) if backend::is_no_database(url, &cause) => {
            SchemaError::Foreign(name(url))
        }
        ConnectError::Server(cause) if backend::is_no_database(url, &cause) => {
            SchemaError::NotMade(url.clone())
        }
        other @ (ConnectError::Create(..)
        | ConnectError::Open(..)
        | ConnectError::Library(_)
        | ConnectError::Server(_)
        | ConnectError::Version(_)
        | ConnectError::Standby
        | ConnectError::Lost(_)
        | ConnectError::NoPrimary(_)
        | ConnectError::Shared) => SchemaError::Connect(other),
    }
}

/// Maps the error of a failed statement: a file that is not a database is foreign.
fn failed(url: &DatabaseUrl) -> impl Fn(DbErr) -> SchemaError {
    move |error| {
        if url.file().is_some() && backend::is_no_database(url, &error) {
            SchemaError::Foreign(name(url))
        } else {
            SchemaError::Failed(error)
        }
    }
}

async fn close<T>(
    db: DatabaseConnection,
    outcome: Result<T, SchemaError>,
) -> Result<T, SchemaError> {
    let closed = db.close().await.map_err(SchemaError::Failed);
    let value = outcome?;
    closed.map(|()| value)
}

/// Contents of a file, or of the schema of a server, that is not foreign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contents {
    Nothing,
    Ours,
}

/// Reads the contents in one statement: between two of them another process may migrate.
async fn inspect(db: &impl ConnectionTrait, url: &DatabaseUrl) -> Result<Contents, SchemaError> {
    let (sql, ours) = match url.dialect() {
        Dialect::Sqlite => (
            "SELECT (SELECT application_id FROM pragma_application_id),
             (SELECT count(*) FROM sqlite_schema)",
            APPLICATION_ID,
        ),
        Dialect::Postgres => (
            "SELECT count(*) FILTER (WHERE relname = 'holdfast_migrations' AND relkind = 'r'),
             count(*) FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
             AND relnamespace = to_regnamespace(current_schema())",
            1,
        ),
    };
    let read = async {
        let row = db.query_one_raw(url.dialect().statement(sql, [])).await?;
        let row = row.ok_or_else(|| DbErr::RecordNotFound("what is in the database".to_owned()))?;
        Ok((row.try_get_by_index::<i64>(0)?, row.try_get_by_index::<i64>(1)?))
    };
    let (mark, tables) = read.await.map_err(failed(url))?;
    match (mark, tables) {
        (mark, _) if mark == ours => Ok(Contents::Ours),
        // No mark and no table: the tables belong to another program and stay as they are.
        (0, 0) => Ok(Contents::Nothing),
        _ => Err(SchemaError::Foreign(name(url))),
    }
}

/// The migrations that the database has, oldest first, each one of ours.
async fn applied(
    db: &impl ConnectionTrait,
    url: &DatabaseUrl,
) -> Result<Vec<(u32, Timestamp)>, SchemaError> {
    if inspect(db, url).await? == Contents::Nothing {
        return Ok(Vec::new());
    }
    let dialect = url.dialect();
    let sql = "SELECT version, digest, applied_at FROM holdfast_migrations ORDER BY version";
    let rows = db.query_all_raw(dialect.statement(sql, [])).await.map_err(failed(url))?;
    let mut applied = Vec::new();
    for row in &rows {
        let read = || -> Result<(i64, Vec<u8>, i64), DbErr> {
            Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?, row.try_get_by_index(2)?))
        };
        let (version, digest, at) = read().map_err(SchemaError::Failed)?;
        // A number that cannot be one of ours is a newer one: the database stays as it is.
        let version = u32::try_from(version).unwrap_or(u32::MAX);
        match MIGRATIONS.iter().find(|migration| migration.version == version) {
            None => return Err(SchemaError::Newer(version)),
            // The text was edited after it was applied: the tables are unknown.
            Some(ours) if ours.digest(dialect) != digest => {
                return Err(SchemaError::Changed(version));
            }
            Some(_) => applied.push((version, Timestamp::from_micros(at))),
        }
    }
    Ok(applied)
}

async fn begin(
    db: &DatabaseConnection,
    dialect: Dialect,
) -> Result<DatabaseTransaction, SchemaError> {
    let options = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        isolation_level: match dialect {
            Dialect::Sqlite => None,
            Dialect::Postgres => Some(IsolationLevel::ReadCommitted),
        },
        ..TransactionOptions::default()
    };
    let transaction = db.begin_with_options(options).await.map_err(SchemaError::Failed)?;
    if dialect == Dialect::Postgres {
        // A file needs none: IMMEDIATE makes this its only writer.
        transaction.execute_unprepared(LOCK).await.map_err(SchemaError::Failed)?;
    }
    Ok(transaction)
}

/// Statement that makes the table of applied migrations and, in a file, sets its mark.
fn own_table(dialect: Dialect) -> String {
    match dialect {
        Dialect::Sqlite => format!(
            "CREATE TABLE holdfast_migrations (
                version INTEGER PRIMARY KEY,
                name TEXT NOT NULL UNIQUE,
                digest BLOB NOT NULL CHECK (length(digest) = 32),
                applied_at INTEGER NOT NULL
             ) STRICT;
             PRAGMA application_id = {APPLICATION_ID}"
        ),
        Dialect::Postgres => "CREATE TABLE holdfast_migrations (
                version BIGINT PRIMARY KEY,
                name TEXT NOT NULL UNIQUE,
                digest BYTEA NOT NULL CHECK (length(digest) = 32),
                applied_at BIGINT NOT NULL
             )"
        .to_owned(),
    }
}

const fn drop_own_table(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "DROP TABLE holdfast_migrations; PRAGMA application_id = 0",
        Dialect::Postgres => "DROP TABLE holdfast_migrations",
    }
}

async fn apply_one(
    db: &DatabaseConnection,
    url: &DatabaseUrl,
) -> Result<Option<MigrationStatus>, SchemaError> {
    let dialect = url.dialect();
    let transaction = begin(db, dialect).await?;
    // Under the lock: another process may have applied this step since the last read.
    let known = applied(&transaction, url).await?;
    let last = known.last().map_or(0, |(version, _)| *version);
    let Some(next) = MIGRATIONS.iter().find(|migration| migration.version > last) else {
        return Ok(None);
    };
    let run = async {
        if known.is_empty() {
            transaction.execute_unprepared(&own_table(dialect)).await?;
        }
        let [up, _down] = next.texts(dialect);
        transaction.execute_unprepared(up).await?;
        let sql = format!(
            "INSERT INTO holdfast_migrations (version, name, digest, applied_at)
             VALUES ($1, $2, $3, {}) RETURNING applied_at",
            dialect.clock()
        );
        let values =
            [i64::from(next.version).into(), next.name.into(), next.digest(dialect).into()];
        let row = transaction.query_one_raw(dialect.statement(&sql, values)).await?;
        let at: i64 = row.map_or(Ok(0), |row| row.try_get_by_index(0))?;
        transaction.commit().await?;
        Ok(at)
    };
    let at = run.await.map_err(SchemaError::Failed)?;
    Ok(Some(next.step(Some(Timestamp::from_micros(at)))))
}

async fn revert_one(
    db: &DatabaseConnection,
    url: &DatabaseUrl,
    if_filled: IfFilled,
) -> Result<MigrationStatus, SchemaError> {
    let dialect = url.dialect();
    let transaction = begin(db, dialect).await?;
    // Under the lock: what is taken back is the last one that is there now.
    let known = applied(&transaction, url).await?;
    let last = known.last().map(|(version, _)| *version);
    let last = MIGRATIONS.iter().find(|migration| Some(migration.version) == last);
    let Some(last) = last else {
        return Err(SchemaError::NothingApplied);
    };
    // Before the counts: a node that runs would add to them.
    if let Some(node) = live_node(&transaction, dialect).await.map_err(SchemaError::Failed)? {
        return Err(SchemaError::InUse(node));
    }
    // In the transaction that deletes it: no row is added after the count.
    let loss = loss(&transaction, dialect, last).await.map_err(SchemaError::Failed)?;
    if if_filled == IfFilled::Refuse && !loss.is_nothing() {
        return Err(SchemaError::Filled(loss));
    }
    let run = async {
        let [_up, down] = last.texts(dialect);
        transaction.execute_unprepared(down).await?;
        let sql = "DELETE FROM holdfast_migrations WHERE version = $1";
        let version = [i64::from(last.version).into()];
        transaction.execute_raw(dialect.statement(sql, version)).await?;
        // The first step brought the table: without it the database is empty again.
        if known.len() == 1 {
            transaction.execute_unprepared(drop_own_table(dialect)).await?;
        }
        transaction.commit().await
    };
    run.await.map_err(SchemaError::Failed)?;
    Ok(last.step(None))
}

/// A process whose lease of a server's database is live. Who serves a file has its lock instead.
async fn live_node(db: &impl ConnectionTrait, dialect: Dialect) -> Result<Option<String>, DbErr> {
    if dialect == Dialect::Sqlite {
        return Ok(None);
    }
    // No node can begin after this read, and before the tables are gone.
    db.execute_unprepared("LOCK TABLE nodes IN ACCESS EXCLUSIVE MODE").await?;
    let sql = format!("SELECT name FROM nodes WHERE ends_at > {} LIMIT 1", dialect.clock());
    let row = db.query_one_raw(dialect.statement(&sql, [])).await?;
    row.map(|row| row.try_get_by_index(0)).transpose()
}

async fn loss(
    db: &impl ConnectionTrait,
    dialect: Dialect,
    migration: &Migration,
) -> Result<Loss, DbErr> {
    // All tables at once: a writer that waits here finds its table gone.
    if dialect == Dialect::Postgres && !migration.loss.is_empty() {
        let tables: Vec<_> = migration.loss.iter().map(|lost| lost.table).collect();
        let sql = format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", tables.join(", "));
        db.execute_unprepared(&sql).await?;
    }
    let mut counts = Vec::new();
    for lost in migration.loss {
        let sql = format!("SELECT count(*) FROM {}", lost.table);
        let row = db.query_one_raw(dialect.statement(&sql, [])).await?;
        counts.push((row.map_or(Ok(0), |row| row.try_get_by_index(0))?, *lost));
    }
    Ok(Loss(counts))
}
