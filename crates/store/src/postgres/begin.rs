//! Beginning of a batch's transaction: BEGIN, the locks of its wallets and the clock in one round trip, and the
//! rows that its changes touch in another if there are any to read.
//!
//! ```text
//! BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
//! SELECT ... FOR NO KEY UPDATE;     wallets in order of ids: two batches never deadlock
//! SELECT clock                      -> wallets, now
//! OPERATIONS, new numbers, COUNTERS  -> rows that are not remembered, windows at now
//! ```
//!
//! The order is what makes the verdicts true. Each statement sees rows that were committed before it began: rows
//! that are read after the locks cannot change until COMMIT, because every writer of them takes the same lock. So
//! the locks and the reads must never become one statement, which would see rows as they were before it waited. The
//! clock is read after the locks as well, so the moments of a wallet's changes follow their order unless the clock
//! is set back.
//!
//! The driver sends one statement at a time if it has values, and waits for its answer. A batch of endings whose
//! rows are remembered reads no row and saves that round trip. Reading with BEGIN as well, by statements prepared
//! by name and values in hex, took 1.02 to 1.04 of the gateway's CPU at 32 connections and 0.94 to 0.96 at 256,
//! smaller rows included: not worth 16 texts and an encoding of our own (`tests/bench/notes/2026-postgresql.md`).
//! The lock as a text is parsed and planned each time: 91,000 instructions of the server a batch, clock included.
//!
//! A silent connection is given up after `BEGINNING` and the lock timeout of each wallet, `ANSWER` at most, and
//! after `ANSWER` if rows are read.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use holdfast_domain::operation::{Transition, Version};
use holdfast_domain::{ApiKeyId, ClaimId, Micros, OperationId, Timestamp, WalletId};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Executor, Row as _, query};

use super::error::{has_code, is_refusal};
use super::reads::{COUNTER_ROW, COUNTERS, HELD, NUMBERS_ROW, OPERATION_ROW, OPERATIONS, lock};
use super::session::{ANSWER, CLOCK, answered, rollback, within};
use crate::batch::judge::{BatchState, OperationRow, WalletBalance, windows};
use crate::rows;

/// Begin of the transaction, with an explicit isolation level whatever the server's default is: a statement sees
/// rows that were committed before it began, and before the locks that it waited for.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
/// Timeout of a beginning, besides its waits for locks: a server that is silent for longer is taken for dead.
const BEGINNING: Duration = Duration::from_secs(5);

/// State of a batch once its wallets are locked: all that judging reads.
#[derive(Debug)]
pub(super) struct BatchStart {
    /// Rows by which changes are judged: the wallets that exist, which are locked, and the other
    /// rows that the changes touch.
    pub(super) state: BatchState,
    /// Rows of the batch that were remembered, not read: a verdict by one of these may be misled.
    pub(super) known: BTreeMap<OperationId, OperationRow>,
    /// Reading of the server's clock, taken after the locks.
    pub(super) now: Timestamp,
    /// Sequence numbers for new operations, one for each; those that do not pass leave a gap.
    pub(super) numbers: Vec<i64>,
}

/// Begins the transaction of these changes: locks their wallets, for each of which the server waits this long, and
/// reads the rows that they touch, except for these, which are known. If it fails, no change has happened.
pub(super) async fn begin(
    connection: &mut PgConnection,
    changes: &[&Transition],
    known: BTreeMap<OperationId, OperationRow>,
    lock_timeout: Duration,
) -> Result<BatchStart, sqlx::Error> {
    let wallets: BTreeSet<WalletId> = changes.iter().map(|change| change.wallet).collect();
    let text = format!("{BEGIN}; {}; SELECT {CLOCK}", lock(&wallets));
    let wait_max = reply_timeout(wallets.len(), lock_timeout);
    let rows = within(wait_max, connection.fetch_all(AssertSqlSafe(text))).await?;
    // Answers come in the order of the statements, and the clock is always one row.
    let Some((clock, wallets)) = rows.split_last() else { return Err(decode(0, BadCell)) };
    let now = Timestamp::from_micros(clock.try_get(0)?);
    let mut state = BatchState { operations: known.clone(), ..BatchState::default() };
    for row in wallets {
        let id = WalletId::from_bytes(row.try_get(0)?);
        let (available, held) = (micros(row, 1)?, micros(row, 2)?);
        let low_balance = row.try_get::<Option<i64>, _>(3)?.map(Micros::new);
        let limits_revision = u64::try_from(row.try_get::<i64, _>(4)?);
        let limits_revision = limits_revision.map_err(|error| decode(4, error))?;
        state.wallets.insert(id, WalletBalance { available, held, low_balance, limits_revision });
    }
    let wanted = BatchReads::plan(now, changes, &known);
    let mut begun = BatchStart { state, known, now, numbers: Vec::new() };
    begun.read(connection, wanted).await?;
    Ok(begun)
}

/// True if the statements of a beginning failed by what they met: another connection meets the
/// same. False if the connection is at fault: it has ended (08, 57P), leads to a standby (25),
/// has lost what was prepared (26) or has plans that are out of date (0A).
pub(super) fn is_statement_error(error: &sqlx::Error) -> bool {
    let is_from_server = error.as_database_error().is_some();
    is_refusal(error) || is_from_server && !has_code(error, &["08", "57P", "25", "26", "0A"])
}

/// The wallets among these that another process has locked.
pub(super) async fn held(
    connection: &mut PgConnection,
    wallets: &BTreeSet<WalletId>,
) -> Result<BTreeSet<WalletId>, sqlx::Error> {
    within(BEGINNING, connection.execute(BEGIN)).await?;
    let ids: Vec<[u8; 16]> = wallets.iter().map(|id| id.to_bytes()).collect();
    let query = query(HELD).bind(ids);
    let rows = answered(connection.fetch_all(query)).await?;
    // The probe has taken the free locks with it: they go at once.
    rollback(connection).await?;
    rows.iter().map(|row| row.try_get(0).map(WalletId::from_bytes)).collect()
}

/// Wait for the answer to a beginning: the lock timeout of each wallet, one after the other;
/// `ANSWER` at most. The server ends a statement that takes longer.
fn reply_timeout(wallets: usize, lock_timeout: Duration) -> Duration {
    // Locks are taken one after the other, and the server times each wait by itself.
    let locks = lock_timeout.saturating_mul(u32::try_from(wallets).unwrap_or(u32::MAX));
    locks.saturating_add(BEGINNING).min(ANSWER)
}

/// Rows that a batch reads: those that its changes touch and that are not known already.
#[derive(Debug, Default)]
struct BatchReads {
    /// Operations that are new, if they pass: the count of numbers to draw.
    numbers: i64,
    operations: Vec<[u8; 16]>,
    /// API key, code and window of each counter. Changes of one API key share theirs.
    counters: BTreeSet<([u8; 16], i64, i64)>,
}

impl BatchReads {
    fn plan(
        now: Timestamp,
        changes: &[&Transition],
        known: &BTreeMap<OperationId, OperationRow>,
    ) -> Self {
        let mut wanted = Self::default();
        for change in changes {
            // As many as there may be new operations: sequences are not undone, so a gap costs nothing.
            wanted.numbers += i64::from(change.expected.is_none());
            if !known.contains_key(&change.operation) {
                wanted.operations.push(change.operation.to_bytes());
            }
            for ((api_key, counter, window), _) in windows(change, now) {
                let code = rows::counter_code(counter);
                wanted.counters.insert((api_key.to_bytes(), code, window.as_micros()));
            }
        }
        wanted
    }
}

impl BatchStart {
    /// Reads the wanted rows, in a round trip for each statement that has any to find.
    async fn read(
        &mut self,
        connection: &mut PgConnection,
        wanted: BatchReads,
    ) -> Result<(), sqlx::Error> {
        let BatchReads { numbers, operations, counters } = wanted;
        if numbers > 0 || !operations.is_empty() || !counters.is_empty() {
            let (mut api_keys, mut codes, mut starts) = (Vec::new(), Vec::new(), Vec::new());
            for (api_key, code, start) in counters {
                api_keys.push(api_key);
                codes.push(code);
                starts.push(start);
            }
            let query = if api_keys.is_empty() {
                query(OPERATIONS).bind(numbers).bind(operations)
            } else {
                let query = query(AssertSqlSafe(format!("{OPERATIONS} {COUNTERS}")));
                query.bind(numbers).bind(operations).bind(api_keys).bind(codes).bind(starts)
            };
            let rows = answered(connection.fetch_all(query)).await?;
            rows.iter().try_for_each(|row| self.take(row))?;
        }
        // Too few would leave an operation without its number.
        if i64::try_from(self.numbers.len()) != Ok(numbers) {
            return Err(decode(6, BadCell));
        }
        Ok(())
    }

    /// Takes in one row of [`OPERATIONS`] or [`COUNTERS`].
    fn take(&mut self, row: &PgRow) -> Result<(), sqlx::Error> {
        let int = |at: usize| row.try_get::<i64, _>(at);
        match int(0)? {
            NUMBERS_ROW => self.numbers = row.try_get(6)?,
            OPERATION_ROW => {
                let id = OperationId::from_bytes(row.try_get(1)?);
                let number = u32::try_from(int(4)?).map_err(|error| decode(4, error))?;
                let (seq, version) = (int(3)?, Version::new(number));
                let claim = ClaimId::from_bytes(row.try_get(2)?);
                self.state.operations.insert(id, OperationRow { seq, version, claim });
            }
            COUNTER_ROW => {
                let api_key = ApiKeyId::from_bytes(row.try_get(1)?);
                let counter = rows::counter(int(3)?).ok_or_else(|| decode(3, BadCell))?;
                let window = Timestamp::from_micros(int(4)?);
                self.state.counters.insert((api_key, counter, window), int(5)?);
            }
            _ => return Err(decode(0, BadCell)),
        }
        Ok(())
    }
}

fn micros(row: &PgRow, at: usize) -> Result<Micros, sqlx::Error> {
    row.try_get(at).map(Micros::new)
}

/// A value that another program must have written.
#[derive(Debug, thiserror::Error)]
#[error("a cell has an invalid value")]
struct BadCell;

fn decode(at: usize, error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: at.to_string(), source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use holdfast_domain::limits::Limits;
    use holdfast_testkit::laws::tenant::operation_change;
    use holdfast_testkit::sample;

    use super::*;

    #[test]
    fn ids_are_written_as_hex_in_their_order() {
        let wallets = [WalletId::from_u128(1 << 127 | 0xa), WalletId::from_u128(7)].into();
        assert_eq!(
            lock(&wallets),
            "SELECT id, available, held, low_balance, limits_revision FROM wallets WHERE id = ANY($${\
             \\\\x00000000000000000000000000000007,\\\\x8000000000000000000000000000000a}$$::bytea[]) \
             ORDER BY id FOR NO KEY UPDATE"
        );
    }

    #[test]
    fn a_wait_for_locks_is_not_taken_for_a_dead_connection() {
        let lock_timeout = Duration::from_millis(250);
        assert_eq!(reply_timeout(1, lock_timeout), Duration::from_millis(5_250));
        assert_eq!(reply_timeout(20, lock_timeout), Duration::from_secs(10));
        assert_eq!(reply_timeout(512, lock_timeout), ANSWER);
        assert_eq!(reply_timeout(1, Duration::MAX), ANSWER);
    }

    #[test]
    fn changes_of_one_api_key_look_for_their_counters_once() {
        let limits = Limits { requests_per_minute: Some(9), ..Limits::default() };
        let claim = |n| sample::claim().request_key(sample::request_key(n)).limits(limits);
        let changes = [1, 2, 3].map(|n| sample::admission(&claim(n).build()));
        let changes: Vec<&Transition> = changes.iter().map(AsRef::as_ref).collect();
        let found = BatchReads::plan(sample::NOW, &changes, &BTreeMap::new());
        assert_eq!((found.operations.len(), found.counters.len()), (3, 1));
        let known = changes.iter().take(2).map(|change| operation_change(change));
        let row = |of| OperationRow::after(of, 1, Version::FIRST).unwrap();
        let known = known.map(|of| (of.operation, row(of))).collect();
        let found = BatchReads::plan(sample::NOW, &changes, &known);
        assert_eq!((found.operations.len(), found.counters.len()), (1, 1), "two are known");
    }
}
