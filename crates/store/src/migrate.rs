//! Migrations: embedded SQL files, applied one by one, each in a transaction of its own, and noted in
//! `holdfast_migrations` with a digest, so that a file that was changed afterwards is noticed.
//!
//! Opening a store never migrates. The database is recognised by its application id: tables in a
//! file that does not carry it are somebody else's and are left alone.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_domain::Timestamp;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, SqliteTransactionMode,
    TransactionOptions, TransactionTrait,
};

use crate::dialect::Dialect;
use crate::sqlite::connect::{self, CLOCK, ConnectError};
use crate::url::DatabaseUrl;

/// Marks a file as ours: `HFDB`.
const APPLICATION_ID: i64 = 0x4846_4442;
/// How long a migration waits for whoever writes.
const BUSY: Duration = Duration::from_secs(5);
const TABLE: &str = "CREATE TABLE holdfast_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    applied_at INTEGER NOT NULL
) STRICT";

/// One step of the schema.
#[derive(Debug, Clone, Copy)]
struct Migration {
    version: u32,
    name: &'static str,
    up: &'static str,
    down: &'static str,
    /// Counts what taking it back deletes, as [`Loss`] tells it.
    loss: &'static str,
}

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "ledger",
    up: include_str!("../migrations/sqlite/0001_ledger.up.sql"),
    down: include_str!("../migrations/sqlite/0001_ledger.down.sql"),
    loss: "SELECT (SELECT count(*) FROM wallets), (SELECT count(*) FROM api_keys),
        (SELECT count(*) FROM operations)",
}];

/// A migration and whether the database has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its number.
    pub version: u32,
    /// What it is called.
    pub name: String,
    /// When it was applied, if it was.
    pub applied_at: Option<Timestamp>,
}

/// What would be deleted for good, with all of the book that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Wallets, whatever is in them.
    pub wallets: i64,
    /// API keys.
    pub api_keys: i64,
    /// Operations.
    pub operations: i64,
}

impl Loss {
    const fn is_nothing(self) -> bool {
        self.wallets == 0 && self.api_keys == 0 && self.operations == 0
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |count: i64, noun| match count {
            1 => format!("1 {noun}"),
            _ => format!("{count} {noun}s"),
        };
        let Self { wallets, api_keys, operations } = *self;
        let (wallets, api_keys) = (of(wallets, "wallet"), of(api_keys, "API key"));
        write!(f, "{wallets}, {api_keys}, {} and the book of them", of(operations, "operation"))
    }
}

/// What becomes of rows that taking a migration back would delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfFilled {
    /// They stay, and so does the migration.
    Refuse,
    /// They go.
    Delete,
}

/// Why a schema is not what this program works with.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// There is no such file.
    #[error("there is no database at {0}: run `holdfast migrate up`")]
    Missing(PathBuf),
    /// It is empty, or an older version wrote it.
    #[error(
        "the database is at schema {found} and this program needs {needed}: run `holdfast migrate up`"
    )]
    Older {
        /// What is there.
        found: u32,
        /// What is needed.
        needed: u32,
    },
    /// A newer version of the program wrote it.
    #[error("the database is at schema {0}, which this program does not know: use a newer one")]
    Newer(u32),
    /// A migration that was applied is not the one that this program has.
    #[error("migration {0} of the database is not this program's")]
    Changed(u32),
    /// Somebody else's tables are in it, or it is no database.
    #[error("{0} is not a Holdfast database")]
    Foreign(PathBuf),
    /// There is nothing to take back.
    #[error("no migration is applied")]
    NothingApplied,
    /// Rows would go with it.
    #[error("it would delete {0}")]
    Filled(Loss),
    /// It cannot be connected to.
    #[error("the database cannot be opened")]
    Connect(#[source] ConnectError),
    /// A statement failed.
    #[error("the schema cannot be read or written")]
    Failed(#[source] DbErr),
}

/// Applies every migration that is missing, each in a transaction, and says which. Makes the file if
/// there is none. Not cancel safe between migrations; what is dropped halfway is rolled back.
///
/// # Errors
///
/// Where the database is not ours or is newer, or a migration fails.
pub async fn up(url: &DatabaseUrl) -> Result<Vec<Step>, SchemaError> {
    let path = url.file();
    connect::create(path).map_err(SchemaError::Connect)?;
    let db = open(path).await?;
    let mut applied = Vec::new();
    let outcome = loop {
        match up_one(&db, path).await {
            Ok(Some(step)) => applied.push(step),
            Ok(None) => break Ok(applied),
            Err(error) => break Err(error),
        }
    };
    close(db, outcome).await
}

/// Takes the last migration back, with everything that it made, and says which.
///
/// # Errors
///
/// Where rows would go that are to stay, none is applied, the database is not ours or is newer, or it fails.
pub async fn down(url: &DatabaseUrl, if_filled: IfFilled) -> Result<Step, SchemaError> {
    exists(url)?;
    let path = url.file();
    let db = open(path).await?;
    let outcome = down_one(&db, path, if_filled).await;
    close(db, outcome).await
}

/// Every migration, and when each was applied.
///
/// # Errors
///
/// Where the database is not ours or is newer, or cannot be read.
pub async fn status(url: &DatabaseUrl) -> Result<Vec<Step>, SchemaError> {
    let path = url.file();
    if exists(url).is_err() {
        return Ok(MIGRATIONS.iter().map(|migration| migration.step(None)).collect());
    }
    let db = open(path).await?;
    let outcome = applied(&db, path).await.map(|applied| {
        let at = |version| applied.iter().find_map(|(v, at)| (*v == version).then_some(*at));
        MIGRATIONS.iter().map(|migration| migration.step(at(migration.version))).collect()
    });
    close(db, outcome).await
}

/// Refuses every schema but the one that this program was made for.
pub(crate) async fn check(db: &DatabaseConnection, path: &Path) -> Result<(), SchemaError> {
    let found = applied(db, path).await?.last().map_or(0, |(version, _)| *version);
    let needed = MIGRATIONS.last().map_or(0, |migration| migration.version);
    if found < needed { Err(SchemaError::Older { found, needed }) } else { Ok(()) }
}

/// Whether there is a file at all.
///
/// # Errors
///
/// Where there is none.
pub fn exists(url: &DatabaseUrl) -> Result<(), SchemaError> {
    let path = url.file();
    if path.is_file() { Ok(()) } else { Err(SchemaError::Missing(path.to_owned())) }
}

/// A statement fails on a file that is no database; everything else that fails is a failure.
pub(crate) fn failed(path: &Path) -> impl Fn(DbErr) -> SchemaError {
    move |error| {
        let code = connect::result_code(&error);
        if code == Some(connect::NOT_A_DATABASE) {
            SchemaError::Foreign(path.to_owned())
        } else {
            SchemaError::Failed(error)
        }
    }
}

impl Migration {
    fn digest(&self) -> Vec<u8> {
        blake3::hash(self.up.as_bytes()).as_bytes().to_vec()
    }

    fn step(&self, applied_at: Option<Timestamp>) -> Step {
        Step { version: self.version, name: self.name.to_owned(), applied_at }
    }
}

async fn open(path: &Path) -> Result<DatabaseConnection, SchemaError> {
    // Asked before the settings are written: a foreign file stays as it is.
    let reader = connect::readers(path, BUSY, 1).await.map_err(foreign(path))?;
    let ours = recognise(&reader, path).await;
    close(reader, ours).await?;
    connect::writers(path, BUSY).await.map_err(SchemaError::Connect)
}

pub(crate) fn foreign(path: &Path) -> impl Fn(ConnectError) -> SchemaError {
    move |error| match error {
        ConnectError::Open(_, cause)
            if connect::result_code(&cause) == Some(connect::NOT_A_DATABASE) =>
        {
            SchemaError::Foreign(path.to_owned())
        }
        other @ (ConnectError::Create(..) | ConnectError::Open(..) | ConnectError::Library(_)) => {
            SchemaError::Connect(other)
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

/// What is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contents {
    Nothing,
    Ours,
}

async fn recognise(db: &impl ConnectionTrait, path: &Path) -> Result<Contents, SchemaError> {
    let id = number(db, "PRAGMA application_id").await.map_err(failed(path))?;
    let tables = number(db, "SELECT count(*) FROM sqlite_schema").await.map_err(failed(path))?;
    match (id, tables) {
        (APPLICATION_ID, _) => Ok(Contents::Ours),
        (0, 0) => Ok(Contents::Nothing),
        _ => Err(SchemaError::Foreign(path.to_owned())),
    }
}

async fn number(db: &impl ConnectionTrait, sql: &str) -> Result<i64, DbErr> {
    let row = db.query_one_raw(Dialect::Sqlite.statement(sql, [])).await?;
    row.map_or(Ok(0), |row| row.try_get_by_index(0))
}

/// The migrations that the database has, oldest first, each one of ours.
async fn applied(
    db: &impl ConnectionTrait,
    path: &Path,
) -> Result<Vec<(u32, Timestamp)>, SchemaError> {
    if recognise(db, path).await? == Contents::Nothing {
        return Ok(Vec::new());
    }
    let sql = "SELECT version, digest, applied_at FROM holdfast_migrations ORDER BY version";
    let rows = db.query_all_raw(Dialect::Sqlite.statement(sql, [])).await.map_err(failed(path))?;
    let mut applied = Vec::new();
    for row in &rows {
        let read = || -> Result<(i64, Vec<u8>, i64), DbErr> {
            Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?, row.try_get_by_index(2)?))
        };
        let (version, digest, at) = read().map_err(SchemaError::Failed)?;
        let version = u32::try_from(version).unwrap_or(u32::MAX);
        match MIGRATIONS.iter().find(|migration| migration.version == version) {
            None => return Err(SchemaError::Newer(version)),
            Some(ours) if ours.digest() != digest => return Err(SchemaError::Changed(version)),
            Some(_) => applied.push((version, Timestamp::from_micros(at))),
        }
    }
    Ok(applied)
}

async fn begin(db: &DatabaseConnection) -> Result<DatabaseTransaction, SchemaError> {
    let options = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    db.begin_with_options(options).await.map_err(SchemaError::Failed)
}

async fn up_one(db: &DatabaseConnection, path: &Path) -> Result<Option<Step>, SchemaError> {
    let transaction = begin(db).await?;
    let known = applied(&transaction, path).await?;
    let last = known.last().map_or(0, |(version, _)| *version);
    let Some(next) = MIGRATIONS.iter().find(|migration| migration.version > last) else {
        return Ok(None);
    };
    let run = async {
        if known.is_empty() {
            transaction.execute_unprepared(TABLE).await?;
            let mark = format!("PRAGMA application_id = {APPLICATION_ID}");
            transaction.execute_unprepared(&mark).await?;
        }
        transaction.execute_unprepared(next.up).await?;
        let sql = format!(
            "INSERT INTO holdfast_migrations (version, name, digest, applied_at)
             VALUES ($1, $2, $3, {CLOCK}) RETURNING applied_at"
        );
        let values = [i64::from(next.version).into(), next.name.into(), next.digest().into()];
        let row = transaction.query_one_raw(Dialect::Sqlite.statement(&sql, values)).await?;
        let at: i64 = row.map_or(Ok(0), |row| row.try_get_by_index(0))?;
        transaction.commit().await?;
        Ok(at)
    };
    let at = run.await.map_err(SchemaError::Failed)?;
    Ok(Some(next.step(Some(Timestamp::from_micros(at)))))
}

async fn down_one(
    db: &DatabaseConnection,
    path: &Path,
    if_filled: IfFilled,
) -> Result<Step, SchemaError> {
    let transaction = begin(db).await?;
    let known = applied(&transaction, path).await?;
    let last = known.last().map(|(version, _)| *version);
    let last = MIGRATIONS.iter().find(|migration| Some(migration.version) == last);
    let Some(last) = last else {
        return Err(SchemaError::NothingApplied);
    };
    // In the transaction that deletes it: nothing is added after it was counted.
    let loss = loss(&transaction, last).await.map_err(SchemaError::Failed)?;
    if if_filled == IfFilled::Refuse && !loss.is_nothing() {
        return Err(SchemaError::Filled(loss));
    }
    let run = async {
        transaction.execute_unprepared(last.down).await?;
        let sql = "DELETE FROM holdfast_migrations WHERE version = $1";
        transaction
            .execute_raw(Dialect::Sqlite.statement(sql, [i64::from(last.version).into()]))
            .await?;
        if known.len() == 1 {
            transaction.execute_unprepared("DROP TABLE holdfast_migrations").await?;
            transaction.execute_unprepared("PRAGMA application_id = 0").await?;
        }
        transaction.commit().await
    };
    run.await.map_err(SchemaError::Failed)?;
    Ok(last.step(None))
}

async fn loss(db: &impl ConnectionTrait, migration: &Migration) -> Result<Loss, DbErr> {
    let row = db.query_one_raw(Dialect::Sqlite.statement(migration.loss, [])).await?;
    let count = |at| row.as_ref().map_or(Ok(0), |row| row.try_get_by_index(at));
    Ok(Loss { wallets: count(0)?, api_keys: count(1)?, operations: count(2)? })
}
