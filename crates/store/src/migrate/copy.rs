//! Copy of a ledger from a SQLite file into an empty PostgreSQL database of the same schema.
//!
//! ```text
//! file (locked, read) ─▶ lines of COPY ─▶ one transaction of the server: tables, digests, sequences ─▶ mark ─▶ COMMIT
//! ```
//!
//! The copy is one transaction on the server: an interruption leaves an empty database, and the command is started
//! again. Each table is read back before COMMIT, and its rows are compared by number and digest with those of the file.
//!
//! One transaction of the file keeps all of its writers out, and ends with its mark as copied: two databases that both
//! serve would sell the same balance twice, and a deposit on the file would be in no ledger that is served. A marked file
//! is read by every command and written by none. A crash between mark and COMMIT leaves a marked file and an empty
//! server; [`remove_mark`] removes the mark. The caller holds the right to serve the file meanwhile.
//!
//! Tables and columns are read from both catalogs and must agree, so a later migration needs no line here. Triggers of
//! the tables are off in the transaction: they forbid what a copy does, such as an entry of the audit log that is not
//! the next one. Foreign keys, checks and unique indexes hold.

mod line;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use futures_util::TryStreamExt as _;
use holdfast_failpoint::{self as failpoint, Step};
use rusqlite::{Connection, OpenFlags};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};
use tokio::sync::mpsc;

use self::line::{RowSum, write_value};
use super::{BUSY, LOCK};
use crate::backend;
use crate::error::SchemaError;
use crate::schema::url::DatabaseUrl;
use crate::sqlite::connect::{self, COPIED, COPIED_MARK};

/// Begin of the transaction on the server. It may wait for the file for as long as a writer of the file does.
const BEGIN: [&str; 4] = [
    "BEGIN ISOLATION LEVEL READ COMMITTED",
    LOCK,
    "SET LOCAL bytea_output = 'hex'",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
];
/// Bytes of lines that are sent at once.
const CHUNK: usize = 1 << 20;
/// Chunks that the file's reader may be ahead of the server.
const CHUNKS_AHEAD: usize = 4;
/// Table of the applied migrations: each database has its own rows.
const MIGRATIONS: &str = "holdfast_migrations";
/// Column of the file that the server has as a sequence.
const ONLY_IN_FILES: (&str, &str) = ("wallets", "entries");
/// Table that the server derives from operations.
const ONLY_ON_SERVERS: &str = "running";
/// Sequences that belong to no identity column, with the greatest number that was drawn.
const SEQUENCES: [(&str, &str); 2] = [
    ("operations_seq", "SELECT max(seq) FROM operations"),
    (
        "entries_seq",
        "SELECT max(number) FROM (SELECT number FROM transfers UNION ALL SELECT number FROM postings) AS numbers",
    ),
];

/// A table with equal rows in both databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableCopy {
    /// Name of the table.
    pub table: String,
    /// Number of its rows.
    pub rows: u64,
    /// Sum of the digests of its rows, which does not depend on their order.
    pub digest: u128,
}

/// A copy that failed. The server's database is as empty as before, unless its COMMIT is unconfirmed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The source is not a file.
    #[error("the configured database is not a SQLite file")]
    NotAFile,
    /// The target is not a server.
    #[error(
        "the target is not a PostgreSQL server: write postgres://OWNER@HOST/DATABASE?sslmode=verify-full"
    )]
    NotAServer,
    /// One of the databases does not have the schema of this program.
    #[error("{0} does not have this program's schema")]
    Schema(&'static str, #[source] SchemaError),
    /// The file was copied before.
    #[error(
        "the ledger of {0} was copied before: if that copy was given up, `holdfast serve --again` removes the mark"
    )]
    Copied(PathBuf),
    /// The target has rows.
    #[error("table {0} of the target has rows: a ledger is copied into an empty database")]
    Filled(String),
    /// A table or column exists in one database only.
    #[error("table {0} is not the same in both databases")]
    Shape(String),
    /// Rows were read back that are not those of the file.
    #[error("table {0} differs after the copy")]
    Differs(String),
    /// The task that reads the file ended without the rows of this table: a bug.
    #[error("the rows of table {0} were not read")]
    Reader(String, #[source] tokio::task::JoinError),
    /// The file cannot be read or marked.
    #[error("{0} cannot be read or marked")]
    File(PathBuf, #[source] rusqlite::Error),
    /// The connection was lost at COMMIT: either all rows are there, or none.
    #[error(
        "the answer to COMMIT was lost: run `holdfast ledger verify` on the target before a gateway serves either \
         database"
    )]
    Unconfirmed(#[source] sqlx::Error),
    /// The server cannot be read or written.
    #[error("the server cannot be read or written")]
    Server(#[source] sqlx::Error),
}

/// Table of the file with the columns that are copied, in one order for both databases.
#[derive(Debug, Clone)]
struct CopiedTable {
    name: String,
    columns: Vec<String>,
    /// Columns that the server has as booleans.
    booleans: BTreeSet<usize>,
    /// Tables that its foreign keys refer to.
    refers: Vec<String>,
}

/// Copies the ledger, marks the file, and returns the tables; `progress` gets each table when its rows are equal. The
/// caller holds the right to serve the file. Not cancel safe: a dropped copy may leave the mark, never rows.
///
/// # Errors
///
/// [`CopyError::NotAFile`], [`CopyError::NotAServer`] and [`CopyError::Schema`] for other databases,
/// [`CopyError::Copied`] for a file that was copied before, [`CopyError::Filled`] for a target with rows,
/// [`CopyError::Differs`] for a table that was read back otherwise, [`CopyError::Reader`] for a bug, and
/// [`CopyError::Unconfirmed`] if the connection is lost at COMMIT.
pub async fn copy(
    from: &DatabaseUrl,
    to: &DatabaseUrl,
    progress: impl Fn(&TableCopy),
) -> Result<Vec<TableCopy>, CopyError> {
    let file = from.file().ok_or(CopyError::NotAFile)?;
    if to.file().is_some() {
        return Err(CopyError::NotAServer);
    }
    super::check(from, BUSY).await.map_err(|error| CopyError::Schema("the file", error))?;
    super::check(to, BUSY).await.map_err(|error| CopyError::Schema("the target", error))?;
    let db = backend::migrate(to, BUSY).await;
    let db = db.map_err(|error| CopyError::Schema("the target", SchemaError::Connect(error)))?;
    let copied = async {
        let mut server =
            db.get_postgres_connection_pool().acquire().await.map_err(CopyError::Server)?;
        let copied = within_transaction(file, &mut server, progress).await;
        if copied.is_err() {
            // An open COPY or a lost connection refuses it: the server rolls back by itself when the connection ends.
            drop(server.execute("ROLLBACK").await);
        }
        copied
    }
    .await;
    let closed = db.close().await;
    let tables = copied?;
    closed.map_err(|error| CopyError::Schema("the target", SchemaError::Failed(error)))?;
    Ok(tables)
}

/// True if the ledger of this file was copied to a server, which has it now. A server is never marked.
///
/// # Errors
///
/// [`CopyError::File`] if the file cannot be read.
pub fn is_copied(url: &DatabaseUrl) -> Result<bool, CopyError> {
    let Some(file) = url.file() else { return Ok(false) };
    let read = || connect::is_copied(&opened(file)?);
    read().map_err(|error| CopyError::File(file.to_owned(), error))
}

/// Removes the mark of a copied file, so that it is served again.
///
/// # Errors
///
/// [`CopyError::File`] if the file cannot be written.
pub fn remove_mark(url: &DatabaseUrl) -> Result<(), CopyError> {
    let Some(file) = url.file() else { return Ok(()) };
    unmark(file)
}

fn unmark(file: &Path) -> Result<(), CopyError> {
    let write = || opened(file)?.pragma_update(None, COPIED, 0);
    write().map_err(|error| CopyError::File(file.to_owned(), error))
}

/// A connection that makes no file: its caller has found one.
fn opened(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// The file in one transaction that keeps every other writer out: commands work without the right to serve, and what
/// they wrote after their table was read would be lost.
struct SourceFile {
    path: PathBuf,
    connection: Connection,
}

impl SourceFile {
    fn begin(path: &Path) -> Result<Self, CopyError> {
        let begin = || {
            let connection = opened(path)?;
            connection.execute_batch("BEGIN IMMEDIATE")?;
            let is_copied = connect::is_copied(&connection)?;
            Ok((connection, is_copied))
        };
        let (connection, is_copied) =
            begin().map_err(|error| CopyError::File(path.to_owned(), error))?;
        if is_copied {
            return Err(CopyError::Copied(path.to_owned()));
        }
        Ok(Self { path: path.to_owned(), connection })
    }

    fn failed(&self, error: rusqlite::Error) -> CopyError {
        CopyError::File(self.path.clone(), error)
    }

    /// Marks the file and lets others write, who find the mark.
    fn end(self) -> Result<(), CopyError> {
        let end = || {
            self.connection.pragma_update(None, COPIED, COPIED_MARK)?;
            self.connection.execute_batch("COMMIT")
        };
        end().map_err(|error| self.failed(error))
    }
}

async fn within_transaction(
    file: &Path,
    server: &mut PgConnection,
    progress: impl Fn(&TableCopy),
) -> Result<Vec<TableCopy>, CopyError> {
    for sql in BEGIN {
        server.execute(sql).await.map_err(CopyError::Server)?;
    }
    let mut source = SourceFile::begin(file)?;
    let tables = tables(&source, server).await?;
    prepare(server, &tables).await?;
    let mut copied = Vec::new();
    for table in &tables {
        let (returned, sent) = send(source, server, table).await?;
        source = returned;
        if read_back(server, table).await? != sent {
            return Err(CopyError::Differs(table.name.clone()));
        }
        let RowSum { rows, digest } = sent;
        let table = TableCopy { table: table.name.clone(), rows, digest };
        progress(&table);
        copied.push(table);
    }
    finish(server, &tables).await?;
    failpoint::reach(Step::CommandWritten);
    // First: a copied file that is not marked could be served at the same time as the server.
    source.end()?;
    failpoint::reach(Step::CommandCommitted);
    match server.execute("COMMIT").await {
        Ok(_) => Ok(copied),
        // The server refused the COMMIT: it wrote nothing, so the mark goes.
        Err(error @ sqlx::Error::Database(_)) => {
            unmark(file)?;
            Err(CopyError::Server(error))
        }
        // The rows may be there or not: the mark stays, and whether the file is served again is the operator's decision.
        Err(error) => Err(CopyError::Unconfirmed(error)),
    }
}

/// The file's tables, a table after those that it refers to.
async fn tables(
    source: &SourceFile,
    server: &mut PgConnection,
) -> Result<Vec<CopiedTable>, CopyError> {
    let columns = "SELECT table_name::text, column_name::text, data_type = 'boolean' FROM information_schema.columns
        WHERE table_schema = current_schema()";
    let rows = server.fetch_all(columns).await.map_err(CopyError::Server)?;
    let mut of_server = BTreeSet::new();
    let mut booleans = BTreeSet::new();
    for row in &rows {
        let column: (String, String) = (text(row, 0)?, text(row, 1)?);
        if row.try_get(2).map_err(CopyError::Server)? {
            booleans.insert(column.clone());
        }
        of_server.insert(column);
    }
    of_server.retain(|(table, _)| table != MIGRATIONS && table != ONLY_ON_SERVERS);
    let mut left = catalog(&source.connection).map_err(|error| source.failed(error))?;
    let of_file: BTreeSet<(String, String)> = left
        .iter()
        .flat_map(|table| table.columns.iter().map(|it| (table.name.clone(), it.clone())))
        .collect();
    if let Some((table, _)) = of_file.symmetric_difference(&of_server).next() {
        return Err(CopyError::Shape(table.clone()));
    }
    let mut ordered: Vec<CopiedTable> = Vec::new();
    while !left.is_empty() {
        let is_ready = |table: &CopiedTable| {
            let mut others = table.refers.iter().filter(|it| **it != table.name);
            others.all(|name| ordered.iter().any(|it| it.name == *name))
        };
        // Tables that refer to each other: no order would do.
        let Some(ready) = left.iter().position(is_ready) else {
            return Err(CopyError::Shape(left.remove(0).name));
        };
        let mut table = left.remove(ready);
        let is_boolean = |name: &String| booleans.contains(&(table.name.clone(), name.clone()));
        let places = table.columns.iter().enumerate().filter(|(_, name)| is_boolean(name));
        table.booleans = places.map(|(place, _)| place).collect();
        ordered.push(table);
    }
    Ok(ordered)
}

/// Tables of the file by their names. Which of their columns are booleans, SQLite does not know.
fn catalog(connection: &Connection) -> rusqlite::Result<Vec<CopiedTable>> {
    let strings = |sql: &str, of: &[&str]| -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map(rusqlite::params_from_iter(of), |row| row.get(0))?;
        rows.collect()
    };
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
        AND name <> ?1 ORDER BY name";
    let mut tables = Vec::new();
    for name in strings(names, &[MIGRATIONS])? {
        let mut columns = strings("SELECT name FROM pragma_table_info(?1) ORDER BY cid", &[&name])?;
        columns.retain(|column| (name.as_str(), column.as_str()) != ONLY_IN_FILES);
        let refers = "SELECT DISTINCT \"table\" FROM pragma_foreign_key_list(?1)";
        let refers = strings(refers, &[&name])?;
        tables.push(CopiedTable { name, columns, booleans: BTreeSet::new(), refers });
    }
    Ok(tables)
}

/// Locks the tables, makes sure that they have no rows but those of the schema, and puts their triggers off.
async fn prepare(server: &mut PgConnection, tables: &[CopiedTable]) -> Result<(), CopyError> {
    for CopiedTable { name, .. } in tables {
        let sql = format!("ALTER TABLE {name} DISABLE TRIGGER USER");
        server.execute(AssertSqlSafe(sql)).await.map_err(CopyError::Server)?;
        // The only rows that migrations insert: the state before the first entry and the first sum.
        let sql = match name.as_str() {
            "audit_head" => "DELETE FROM audit_head WHERE seq = 0",
            "usage_summed" => {
                "DELETE FROM usage_summed WHERE (steps, operations_to, postings_to) = (0, 0, 0)"
            }
            _other => "",
        };
        if !sql.is_empty() {
            server.execute(sql).await.map_err(CopyError::Server)?;
        }
        let sql = format!("SELECT EXISTS (SELECT FROM {name})");
        let row = server.fetch_one(AssertSqlSafe(sql)).await.map_err(CopyError::Server)?;
        if row.try_get(0).map_err(CopyError::Server)? {
            return Err(CopyError::Filled(name.clone()));
        }
    }
    Ok(())
}

/// Sends the rows of a table, and returns the file with their sum.
async fn send(
    source: SourceFile,
    server: &mut PgConnection,
    table: &CopiedTable,
) -> Result<(SourceFile, RowSum), CopyError> {
    let (sender, mut receiver) = mpsc::channel::<Vec<u8>>(CHUNKS_AHEAD);
    let sql = format!("COPY {} ({}) FROM STDIN", table.name, table.columns.join(", "));
    let mut copy = server.copy_in_raw(&sql).await.map_err(CopyError::Server)?;
    // Off the runtime: SQLite blocks. If `send` fails, the dropped receiver ends the reader.
    let reader = tokio::task::spawn_blocking({
        let table = table.clone();
        move || {
            let sum = read(&source.connection, &table, &sender);
            (source, sum)
        }
    });
    while let Some(chunk) = receiver.recv().await {
        copy.send(chunk).await.map_err(CopyError::Server)?;
    }
    let (source, sum) =
        reader.await.map_err(|error| CopyError::Reader(table.name.clone(), error))?;
    match sum {
        Ok(sum) => {
            copy.finish().await.map_err(CopyError::Server)?;
            Ok((source, sum))
        }
        Err(error) => {
            copy.abort("the file cannot be read").await.map_err(CopyError::Server)?;
            Err(source.failed(error))
        }
    }
}

/// Reads the rows of a table as lines of COPY. Ends early if the other side has gone.
fn read(
    connection: &Connection,
    table: &CopiedTable,
    chunks: &mpsc::Sender<Vec<u8>>,
) -> rusqlite::Result<RowSum> {
    let sql = format!("SELECT {} FROM {}", table.columns.join(", "), table.name);
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let (mut sum, mut chunk, mut line) = (RowSum::default(), Vec::new(), String::new());
    while let Some(row) = rows.next()? {
        line.clear();
        for place in 0..table.columns.len() {
            if place > 0 {
                line.push('\t');
            }
            write_value(&mut line, row.get_ref(place)?, table.booleans.contains(&place))?;
        }
        line.push('\n');
        sum.add(line.as_bytes());
        chunk.extend_from_slice(line.as_bytes());
        if chunk.len() >= CHUNK && chunks.blocking_send(std::mem::take(&mut chunk)).is_err() {
            return Ok(sum);
        }
    }
    // A receiver that has gone has its own error.
    drop(chunks.blocking_send(chunk));
    Ok(sum)
}

/// Rows of a table as the server has them.
async fn read_back(server: &mut PgConnection, table: &CopiedTable) -> Result<RowSum, CopyError> {
    let sql = format!("COPY {} ({}) TO STDOUT", table.name, table.columns.join(", "));
    let mut stream = server.copy_out_raw(&sql).await.map_err(CopyError::Server)?;
    let mut sum = RowSum::default();
    // By PostgreSQL's protocol each message has one row.
    while let Some(line) = stream.try_next().await.map_err(CopyError::Server)? {
        sum.add(&line);
    }
    Ok(sum)
}

/// Lists what runs, sets the sequences behind the greatest numbers, and puts the triggers on again.
async fn finish(server: &mut PgConnection, tables: &[CopiedTable]) -> Result<(), CopyError> {
    let mut statements = vec![format!(
        "INSERT INTO {ONLY_ON_SERVERS} (op_seq) SELECT seq FROM operations WHERE phase IN ('leased', 'recorded')"
    )];
    let set = |sequence: &str, greatest: &str| {
        format!(
            "SELECT setval('{sequence}', greatest) FROM ({greatest}) AS numbers (greatest) WHERE greatest > 0"
        )
    };
    statements.extend(SEQUENCES.map(|(sequence, greatest)| set(sequence, greatest)));
    let owned = "SELECT table_name::text, column_name::text,
        pg_get_serial_sequence(quote_ident(table_name), column_name) FROM information_schema.columns
        WHERE table_schema = current_schema() AND is_identity = 'YES'";
    for row in server.fetch_all(owned).await.map_err(CopyError::Server)? {
        let (table, column, sequence) = (text(&row, 0)?, text(&row, 1)?, text(&row, 2)?);
        statements.push(set(&sequence, &format!("SELECT max({column}) FROM {table}")));
    }
    statements
        .extend(tables.iter().map(|it| format!("ALTER TABLE {} ENABLE TRIGGER USER", it.name)));
    for sql in statements {
        server.execute(AssertSqlSafe(sql)).await.map_err(CopyError::Server)?;
    }
    Ok(())
}

fn text(row: &sqlx::postgres::PgRow, place: usize) -> Result<String, CopyError> {
    row.try_get(place).map_err(CopyError::Server)
}
