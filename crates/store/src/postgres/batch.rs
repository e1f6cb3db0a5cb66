//! The writer's transaction: judges its changes by the rows that it read when it began, and writes those that
//! passed. Four round trips, for any number of changes (at most `BATCH_MAX` of them), and three if there is nothing
//! to read:
//!
//! ```text
//! writer                                        server
//!   1  BEGIN; lock wallets by id; clock        ->   (one text, `begin`)
//!                                              <-   wallets, the moment after they were locked
//!   2  operations, counters, new numbers       ->   (one statement, `reads`; left out for endings
//!                                              <-    that hit the row cache and move no counter)
//!      judge, give numbers
//!   3  the writing statement, `changed` rows   ->   (all parts in one, `statements`)
//!                                              <-   how many rows were hit
//!   4  SELECT WHERE false; COMMIT              ->
//!                                              <-   durable
//! ```
//!
//! Between 2 and 3 a price version that no batch has met before costs one more, once in a connection.
//!
//! Locks are held from 1 to 4, so each step between may wait only for this connection. A failure reports exactly
//! what is certain: before 4 the transaction was not committed, and after it only an answer of the server proves
//! its outcome. The writer acts on that. A change is never refused by a remembered row: such a batch is `Misled`,
//! and read again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use holdfast_domain::operation::{Receipt, Transition};
use holdfast_domain::price::{PriceVersion, PriceVersionId};
use holdfast_domain::{Micros, Timestamp, WalletId};
use holdfast_failpoint::{Step, reach};
use sea_orm::QueryResult;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Executor, Row as _, query};

use super::arrays::Rows;
use super::begin::{self, BatchStart};
use super::error::{BatchError, RowCountMismatch};
use super::pack;
use super::reads::{PRICES, RECORDED_HOLDS};
use super::row_cache::RowCache;
use super::session::{answered, rollback};
use super::statements::{ExpectedCounts, PARTS, StatementTexts, expected_counts};
use crate::batch::judge::{Acceptance, Rejection, resolve_holds, uncovered_wallets};
use crate::metrics;
use crate::rows::{self, Cells};
use crate::transaction::event::SharedInterest;

/// Statements of one batch, for the metrics: BEGIN, the lock of the wallets, the clock, the writing
/// statement, COMMIT. Reads do not count: a batch may have none, and all count as one or two.
const STATEMENTS: u64 = 5;
/// COMMIT of a transaction that failed is answered like any other, and undoes it. The statement before it fails
/// there, so that COMMIT is not reached.
const COMMIT: &str = "SELECT WHERE false; COMMIT";

/// The writer's memory from batch to batch: texts of statements, price versions, and rows of
/// operations that run.
#[derive(Debug)]
pub(super) struct BatchCache {
    texts: StatementTexts,
    /// Price versions by their ids. A version never changes, so one that was read once is not read
    /// again.
    prices: HashMap<PriceVersionId, PriceVersion>,
    /// Rows of operations that run, as they were committed on this connection.
    runs: RowCache,
    interest: SharedInterest,
}

/// Verdicts of a batch: one for each change, in the order of the changes.
pub(super) type Verdicts = Vec<Result<Receipt, Rejection>>;

/// A change does not pass by what is remembered of its row.
#[derive(Debug, thiserror::Error)]
#[error("a change was refused by what is remembered of its operation")]
struct StaleRow;

impl BatchCache {
    pub(super) fn new(interest: SharedInterest) -> Self {
        let (texts, prices) = (StatementTexts::default(), HashMap::new());
        Self { texts, prices, runs: RowCache::default(), interest }
    }

    /// Forgets what holds on one connection only: the next one may lead to a server that has lost
    /// what was committed last, price versions too, and has given its numbers to others.
    pub(super) fn change_connection(&mut self) {
        self.runs = RowCache::default();
        self.prices.clear();
    }
}

/// Begins a transaction for these changes, and reads the rows that they touch. If it fails, no change has happened,
/// and the remembered rows are forgotten.
pub(super) async fn begin(
    connection: &mut PgConnection,
    memory: &mut BatchCache,
    changes: &[&Transition],
    lock_timeout: Duration,
) -> Result<BatchStart, sqlx::Error> {
    // Taken before the round trip, and gone even if it fails: the next try reads the table.
    let known = memory.runs.take(changes);
    begin::begin(connection, changes, known, lock_timeout).await
}

/// Commits these changes as the transaction that was begun for them. No two concern the same operation. On a
/// failure other than `Uncertain` the transaction was not committed; the state of the connection is unknown then.
pub(super) async fn commit(
    connection: &mut PgConnection,
    memory: &mut BatchCache,
    begun: BatchStart,
    changes: &[&Transition],
) -> Result<Verdicts, BatchError> {
    let is_misled = !begun.known.is_empty();
    match commit_with_cache(connection, memory, begun, changes).await {
        Err(BatchError::Changed(error) | BatchError::Refused(error)) if is_misled => {
            Err(BatchError::Misled(error))
        }
        committed => committed,
    }
}

/// Commits these changes. A row that was known and is another one by now is not written, which is
/// counted.
async fn commit_with_cache(
    connection: &mut PgConnection,
    memory: &mut BatchCache,
    begun: BatchStart,
    changes: &[&Transition],
) -> Result<Verdicts, BatchError> {
    let BatchStart { mut state, known, now, numbers } = begun;
    let read = read_prices(connection, memory, changes).await;
    read.map_err(BatchError::before_commit)?;
    for price in prices(changes) {
        if let Some(price) = memory.prices.get(&price.id) {
            state.prices.insert(price.id.clone(), price.clone());
        }
    }
    reach(Step::BatchBegun);
    let mut verdicts: Vec<Result<Acceptance, Rejection>> =
        changes.iter().map(|change| state.judge(change, now)).collect();
    let is_misled = |(change, verdict): (&&Transition, &Result<Acceptance, Rejection>)| {
        verdict.is_err() && known.contains_key(&change.operation)
    };
    if changes.iter().zip(&verdicts).any(is_misled) {
        // A caller must not be turned away by a row that another process may have changed since: the batch is
        // undone, and the table is read.
        return Err(BatchError::Misled(sqlx::Error::Decode(Box::new(StaleRow))));
    }
    let recorded = recorded_holds(connection, &uncovered_wallets(changes, &verdicts)).await;
    resolve_holds(changes, &mut verdicts, &recorded.map_err(BatchError::before_commit)?);
    number(&mut verdicts, numbers);
    let passed = || {
        let verdicts = changes.iter().zip(&verdicts);
        verdicts.filter_map(|(change, verdict)| Some((*change, *verdict.as_ref().ok()?)))
    };
    state.moved.events.retain(|event| memory.interest.get().wants(event.kind));
    let writes = pack::writes(changes.len(), passed(), &state.moved, now).in_order();
    if writes.iter().all(Rows::is_empty) {
        // No change passed: the locks are released at once, without the flush of a commit.
        rollback(connection).await.map_err(BatchError::Unavailable)?;
    } else {
        let written = write(connection, memory, writes, now).await?;
        reach(Step::BatchWritten);
        answered(connection.execute(COMMIT)).await.map_err(BatchError::of_commit)?;
        reach(Step::BatchCommitted);
        if !state.moved.events.is_empty() {
            memory.interest.on_written();
        }
        metrics::transaction(STATEMENTS, u64::try_from(written).unwrap_or(0));
        memory.prices.extend(state.moved.prices);
        // Only after COMMIT: a row that was undone would mislead every batch that ends its
        // operation.
        passed().for_each(|(change, passed)| memory.runs.remember(change, passed));
    }
    let receipt =
        |passed: Acceptance| Receipt { version: passed.version, at: now, counters: passed.tally };
    Ok(verdicts.into_iter().map(|verdict| verdict.map(receipt)).collect())
}

/// Gives new operations that passed these numbers, of which there are enough.
fn number(verdicts: &mut [Result<Acceptance, Rejection>], numbers: Vec<i64>) {
    let mut numbers = numbers.into_iter();
    for passed in verdicts.iter_mut().flatten() {
        passed.seq = passed.seq.or_else(|| numbers.next());
    }
}

/// Sums of the holds of recorded operations by wallet. A round trip of its own, while the wallets are locked, which only
/// a refused claim costs.
async fn recorded_holds(
    connection: &mut PgConnection,
    wallets: &BTreeSet<WalletId>,
) -> Result<BTreeMap<WalletId, Micros>, sqlx::Error> {
    if wallets.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids: Vec<[u8; 16]> = wallets.iter().map(|id| id.to_bytes()).collect();
    let rows = answered(connection.fetch_all(query(RECORDED_HOLDS).bind(ids))).await?;
    let sum =
        |row: &PgRow| Ok((WalletId::from_bytes(row.try_get(0)?), row.try_get(1).map(Micros::new)?));
    rows.iter().map(sum).collect()
}

/// Reads the price versions that were never read before.
async fn read_prices(
    connection: &mut PgConnection,
    memory: &mut BatchCache,
    changes: &[&Transition],
) -> Result<(), sqlx::Error> {
    let named = prices(changes).map(|price| &price.id);
    let unknown = named.filter(|id| !memory.prices.contains_key(id));
    let mut named: Vec<&str> = unknown.map(PriceVersionId::as_str).collect();
    named.sort_unstable();
    named.dedup();
    if named.is_empty() {
        return Ok(());
    }
    let query = query(PRICES).bind(named);
    // A round trip of its own, while the wallets are locked: it happens once for each version.
    for row in answered(connection.fetch_all(query)).await? {
        let price = price_version(row)?;
        memory.prices.insert(price.id.clone(), price);
    }
    Ok(())
}

fn prices<'c>(changes: &[&'c Transition]) -> impl Iterator<Item = &'c PriceVersion> {
    changes.iter().filter_map(|change| change.start().map(|start| &start.price))
}

/// Reads a price version.
fn price_version(row: PgRow) -> Result<PriceVersion, sqlx::Error> {
    let row = QueryResult::from(row);
    let price = rows::price(&mut Cells::new(&row));
    price.map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// Writes all rows, and checks that the rows that have to exist did: the number of written rows.
async fn write(
    connection: &mut PgConnection,
    memory: &mut BatchCache,
    writes: [Rows; PARTS],
    now: Timestamp,
) -> Result<i64, BatchError> {
    let ExpectedCounts { counted, added } = expected_counts(&writes);
    let text = memory.texts.write(&writes);
    let query = query(AssertSqlSafe(text)).bind(now.as_micros());
    let query = writes.into_iter().fold(query, |query, rows| rows.bind(query));
    let row = answered(connection.fetch_one(query)).await.map_err(BatchError::before_commit)?;
    let changed: i64 = row.try_get(0).map_err(BatchError::Unavailable)?;
    // Rows that are only counted may be gone or changed; the parts that add rows fail by
    // themselves.
    if changed == counted {
        Ok(changed.saturating_add(added))
    } else {
        let other = RowCountMismatch { changed, judged: counted };
        Err(BatchError::Changed(sqlx::Error::Decode(Box::new(other))))
    }
}

#[cfg(test)]
mod tests {
    use sqlx::ConnectOptions as _;

    use super::*;
    use crate::postgres::connect::tests::server;
    use crate::postgres::error::has_code;

    #[tokio::test]
    async fn postgres_a_transaction_that_has_failed_is_not_told_to_be_committed() {
        let mut connection = server().connect().await.unwrap();
        connection.execute("BEGIN").await.unwrap();
        connection.execute(COMMIT).await.unwrap();
        connection.execute("BEGIN").await.unwrap();
        connection.execute("SELECT 1 / 0").await.unwrap_err();
        let refused = connection.execute(COMMIT).await.unwrap_err();
        assert!(has_code(&refused, &["25P02"]), "{refused}");
        assert!(matches!(BatchError::of_commit(refused), BatchError::Unavailable(_)));
        connection.execute("ROLLBACK").await.unwrap();
        // Its session ends: that is FATAL, and may have come after COMMIT.
        let ended = connection.execute("SELECT pg_terminate_backend(pg_backend_pid())").await;
        let ended = ended.unwrap_err();
        assert!(has_code(&ended, &["57P01"]), "{ended}");
        assert!(matches!(BatchError::of_commit(ended), BatchError::Uncertain(_)));
    }
}
