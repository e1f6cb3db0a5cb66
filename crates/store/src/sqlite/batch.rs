//! One transaction of the writer: reads what its changes touch, has them judged, writes those that
//! passed. It says what is certain about a failure; what follows from that is [`super::writer`]'s.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::TryStreamExt;
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::operation::{Change, Receipt, Version};
use holdfast_domain::price::{PriceVersion, PriceVersionId};
use holdfast_domain::{ApiKeyId, Micros, OperationId, PostingId, Timestamp, WalletId};
use holdfast_failpoint::{Step, reach};
use sea_orm::QueryResult;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Either, Executor, Row as _, Sqlite};

use super::clock::Clock;
use super::connect::{CONSTRAINT, ERROR, primary_code};
use super::pack;
use super::records::Records;
use super::script::{
    CHARGED_ROW, CLOCK_ROW, COUNTER_ROW, OPERATION_ROW, POSTING_ROW, PRICE_ROW, Scripts,
    WALLET_ROW, Wanted,
};
use crate::judge::{Balance, Book, Charged, Passed, Refused, Row, windows};
use crate::metrics;
use crate::rows::{self, Cells};

/// What the writer remembers from batch to batch.
#[derive(Debug)]
pub(crate) struct Memory {
    scripts: Scripts,
    /// Price versions never change, so those that were read once need not be read again.
    prices: HashMap<PriceVersionId, PriceVersion>,
    /// The moment of the last batch: windows of counters are read from here on.
    last: Timestamp,
    clock: Arc<Clock>,
}

/// What is certain when a batch did not go through.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing was committed; one of the changes does not fit the tables.
    Constraint(sqlx::Error),
    /// Nothing was committed; the database does not work.
    Unavailable(sqlx::Error),
    /// COMMIT was sent and its answer is missing.
    Uncertain(sqlx::Error),
}

/// What became of each change, in their order.
pub(super) type Verdicts = Vec<Result<Receipt, Refused>>;

impl Memory {
    pub(crate) fn new(clock: Arc<Clock>) -> Self {
        let last = Timestamp::from_micros(i64::MAX);
        Self { scripts: Scripts::default(), prices: HashMap::new(), last, clock }
    }
}

/// Commits these changes as one transaction. No two concern the same operation or posting. On a
/// failure other than `Uncertain` the transaction is over.
pub(super) async fn commit(
    connection: &mut SqliteConnection,
    memory: &mut Memory,
    changes: &[Arc<Change>],
) -> Result<Verdicts, Failure> {
    let result = attempt(connection, memory, changes).await;
    if let Err(Failure::Constraint(_) | Failure::Unavailable(_)) = &result {
        rollback(connection).await.map_err(Failure::Unavailable)?;
    }
    result
}

async fn attempt(
    connection: &mut SqliteConnection,
    memory: &mut Memory,
    changes: &[Arc<Change>],
) -> Result<Verdicts, Failure> {
    let (mut book, head) = read(connection, memory, changes).await?;
    reach(Step::BatchBegun);
    let now = head.now;
    let verdicts: Vec<Result<Passed, Refused>> =
        changes.iter().map(|change| book.judge(change, now)).collect();
    let passed = changes
        .iter()
        .zip(&verdicts)
        .filter_map(|(change, verdict)| verdict.as_ref().ok().map(|passed| (&**change, *passed)));
    let writes = pack::writes(passed, &book.moved, head.last_seq, now);
    let writes = Vec::from(writes.in_order());
    if writes.iter().all(Records::is_empty) {
        rollback(connection).await.map_err(Failure::Unavailable)?;
    } else {
        stop_before_commit(connection).await.map_err(Failure::Unavailable)?;
        write(connection, memory, writes, now).await?;
        reach(Step::BatchCommitted);
        memory.prices.extend(book.moved.prices);
    }
    let receipt =
        |passed: Passed| Receipt { version: passed.version, at: now, tally: passed.tally };
    Ok(verdicts.into_iter().map(|verdict| verdict.map(receipt)).collect())
}

/// Where tests stop processes: SQLite calls this after the last statement and before COMMIT, on a
/// thread that runs ahead of whoever sent the script.
async fn stop_before_commit(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    if holdfast_failpoint::ENABLED {
        // Once: what the connection commits after this batch may be something else.
        let mut step = Some(Step::BatchWritten);
        let proceed = move || {
            step.take().into_iter().for_each(reach);
            true
        };
        connection.lock_handle().await?.set_commit_hook(proceed);
    }
    Ok(())
}

/// Ends the transaction without a trace. SQLite has ended it already after some errors, and says so.
pub(super) async fn rollback(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    match connection.execute("ROLLBACK").await {
        Ok(_) => Ok(()),
        Err(sqlx::Error::Database(error)) if error.message().contains("no transaction") => Ok(()),
        Err(error) => Err(error),
    }
}

/// The first row of the reading script.
#[derive(Debug, Clone, Copy)]
struct Head {
    now: Timestamp,
    last_seq: i64,
}

async fn read(
    connection: &mut SqliteConnection,
    memory: &mut Memory,
    changes: &[Arc<Change>],
) -> Result<(Book, Head), Failure> {
    loop {
        let since = memory.last;
        let wanted = wanted(memory, changes);
        let counts = !wanted.counters.is_empty();
        let wanted = wanted.in_order();
        let present = wanted.each_ref().map(|records| !records.is_empty());
        let (script, statements) = memory.scripts.read(&present);
        let mut query = sqlx::query(AssertSqlSafe(script));
        for records in wanted {
            query = records.bind(query);
        }
        let rows = connection.fetch_all(query).await.map_err(Failure::of)?;
        metrics::script(statements, 0);
        let mut book = Book::default();
        let mut head = None;
        for row in rows {
            head = head_or_entry(row, &mut book).map_err(Failure::Unavailable)?.or(head);
        }
        let mut head = head.ok_or(Failure::Unavailable(sqlx::Error::RowNotFound))?;
        head.now = memory.clock.stamp(head.now);
        memory.prices.extend(book.prices.iter().map(|(id, price)| (id.clone(), price.clone())));
        for id in prices(changes).map(|price| &price.id) {
            if let Some(price) = memory.prices.get(id) {
                book.prices.insert(id.clone(), price.clone());
            }
        }
        memory.last = head.now;
        // Windows were read from the last batch on. They are all there unless the clock was set back
        // meanwhile: then once more, from where it is now.
        if head.now >= since || !counts {
            return Ok((book, head));
        }
        rollback(connection).await.map_err(Failure::Unavailable)?;
    }
}

/// What the reading script is to look for.
fn wanted(memory: &Memory, changes: &[Arc<Change>]) -> Wanted {
    let mut wanted = Wanted::default();
    let mut wallet_ids: Vec<_> = changes.iter().map(|change| change.wallet()).collect();
    wallet_ids.sort_unstable();
    wallet_ids.dedup();
    for id in wallet_ids {
        wanted.wallets.row().fixed(&id.to_bytes());
    }
    for change in changes {
        match &**change {
            Change::Operation(transition) => {
                wanted.operations.row().fixed(&transition.operation.to_bytes());
                for ((api_key, counter, window), _) in windows(transition, memory.last) {
                    let latest = match transition.admitted_at {
                        Some(_) => window.as_micros(),
                        None => i64::MAX,
                    };
                    let counters = wanted.counters.row().fixed(&api_key.to_bytes());
                    counters.int(rows::counter_code(counter)).int(window.as_micros()).int(latest);
                }
            }
            Change::Posting(posting) => {
                wanted.postings.row().fixed(&posting.id.to_bytes());
                if let PostingKind::Refund(operation) = &posting.kind {
                    wanted.charged.row().fixed(&operation.to_bytes());
                }
            }
        }
    }
    let mut names: Vec<_> = prices(changes)
        .map(|price| &price.id)
        .filter(|id| !memory.prices.contains_key(*id))
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        wanted.prices.row().text(name.as_str());
    }
    wanted
}

fn prices(changes: &[Arc<Change>]) -> impl Iterator<Item = &PriceVersion> {
    changes.iter().filter_map(|change| match &**change {
        Change::Operation(transition) => transition.start().map(|start| &start.price),
        Change::Posting(_) => None,
    })
}

/// Reads one row of the reading script into the book; the clock's row is returned.
fn head_or_entry(row: SqliteRow, book: &mut Book) -> Result<Option<Head>, sqlx::Error> {
    let int = |at: usize| row.try_get::<i64, _>(at);
    let micros = |at: usize| int(at).map(Micros::new);
    match int(0)? {
        CLOCK_ROW => {
            let now = Timestamp::from_micros(int(1)?);
            return Ok(Some(Head { now, last_seq: int(2)? }));
        }
        WALLET_ROW => {
            let id = WalletId::from_bytes(array(&row, 1)?);
            book.wallets.insert(id, Balance { available: micros(2)?, held: micros(3)? });
        }
        OPERATION_ROW => {
            let id = OperationId::from_bytes(array(&row, 1)?);
            let number = u32::try_from(int(3)?).map_err(|error| decode(3, error))?;
            book.operations.insert(id, Row { seq: int(2)?, version: Version::new(number) });
        }
        COUNTER_ROW => {
            let api_key = ApiKeyId::from_bytes(array(&row, 1)?);
            let counter = rows::counter(int(2)?).ok_or_else(|| decode(2, BadCell))?;
            let window = Timestamp::from_micros(int(3)?);
            book.counters.insert((api_key, counter, window), int(4)?);
        }
        POSTING_ROW => {
            book.postings.insert(PostingId::from_bytes(array(&row, 1)?));
        }
        CHARGED_ROW => {
            let id = OperationId::from_bytes(array(&row, 1)?);
            let wallet = WalletId::from_bytes(array(&row, 2)?);
            book.charged.insert(id, Charged { wallet, charge: micros(3)?, refunded: micros(4)? });
        }
        PRICE_ROW => {
            let price = price_version(row)?;
            book.prices.insert(price.id.clone(), price);
        }
        _ => return Err(decode(0, BadCell)),
    }
    Ok(None)
}

/// Reads a price version that begins at the second column.
pub(super) fn price_version(row: SqliteRow) -> Result<PriceVersion, sqlx::Error> {
    let row = QueryResult::from(row);
    let price = rows::price(&mut Cells::from(&row, 1));
    price.map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

fn array<const N: usize>(row: &SqliteRow, at: usize) -> Result<[u8; N], sqlx::Error> {
    row.try_get::<&[u8], _>(at)?.try_into().map_err(|error| decode(at, error))
}

/// A value that somebody else must have written.
#[derive(Debug, thiserror::Error)]
#[error("a cell holds something else than it should")]
struct BadCell;

fn decode(at: usize, error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: at.to_string(), source: Box::new(error) }
}

/// Runs the writing script. Nothing but its last statement commits, so an error before that is proof.
async fn write(
    connection: &mut SqliteConnection,
    memory: &mut Memory,
    writes: Vec<Records>,
    now: Timestamp,
) -> Result<(), Failure> {
    let present: Vec<bool> = writes.iter().map(|records| !records.is_empty()).collect();
    let (script, statements) = memory.scripts.write(&present);
    let rows = writes.iter().map(Records::len).sum();
    let mut query = sqlx::query::<Sqlite>(AssertSqlSafe(script)).bind(now.as_micros());
    for records in writes {
        query = records.bind(query);
    }
    let before_commit = statements.saturating_sub(1);
    let mut done = 0;
    let mut results = connection.fetch_many(query);
    loop {
        match results.try_next().await {
            Ok(Some(Either::Left(_))) => done += 1,
            Ok(Some(Either::Right(_))) => {}
            Ok(None) if done > before_commit => {
                metrics::script(statements, rows);
                return Ok(());
            }
            Ok(None) => return Err(Failure::Uncertain(sqlx::Error::WorkerCrashed)),
            Err(error @ sqlx::Error::Database(_)) if done < before_commit => {
                return Err(Failure::of(error));
            }
            Err(error) => return Err(Failure::Uncertain(error)),
        }
    }
}

impl Failure {
    /// An error before COMMIT. Constraints and failed checks are about a change, the rest about the
    /// database.
    fn of(error: sqlx::Error) -> Self {
        match primary_code(&error) {
            Some(ERROR | CONSTRAINT) => Self::Constraint(error),
            Some(_) | None => Self::Unavailable(error),
        }
    }
}
