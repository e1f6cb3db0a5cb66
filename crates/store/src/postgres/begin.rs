//! Beginning of a batch's transaction, in one round trip: BEGIN, the locks of its wallets, the
//! clock, and the rows that its changes touch.
//!
//! ```text
//! BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
//! EXECUTE holdfast_lock(wallets);   in order of ids: two batches never deadlock
//! EXECUTE ...;                      clock and numbers, then rows that are not remembered
//! ```
//!
//! The order is what makes the verdicts true. Each statement sees what was committed before it
//! began: rows that are read after the locks cannot change until COMMIT, because whoever changes
//! them has the same lock. The clock is read after the locks as well, so the moments of a wallet's
//! changes follow their order unless the clock is set back.
//!
//! A text of several statements takes no values beside it. So the statements are prepared by name
//! when a connection is made (`prepare`), and their arguments stand in the text: ids in hex and
//! integers, never a string of a caller's.
//!
//! A silent connection is given up after `BEGINNING` (`READING` where rows are read) and the lock
//! time-out of each wallet, `ANSWER` at most. Windows of counters are read from the last batch on;
//! a clock that was set back costs one more round trip.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use holdfast_domain::ledger::PostingKind;
use holdfast_domain::operation::{Change, Version};
use holdfast_domain::{ApiKeyId, ClaimId, Micros, OperationId, PostingId, Timestamp, WalletId};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Executor, Row as _, query_with};

use super::arrays::{Rows, arguments, push_hex};
use super::error::{has_code, is_refusal};
use super::reads::{
    BatchReads, CHARGED_ROW, CLOCK_ROW, COUNTER_ROW, HELD, LOCK, OPERATION_ROW, POSTING_ROW,
    STANDS, WALLET_ROW, prepare_reads,
};
use super::session::{ANSWER, WRITE_STATEMENT, answered, rollback, within};
use crate::judge::{Book, OperationRow, RefundBase, WalletBalance, windows};
use crate::rows;

/// Begin of the transaction, with its isolation said whatever the server's default is: a statement
/// sees what was committed before it began, and what was locked before that.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
/// Time-out of a beginning that reads no rows, beside its waits for locks: a server that is silent
/// for longer is taken for dead.
const BEGINNING: Duration = Duration::from_secs(5);
/// Time-out of a beginning that reads rows: a second longer than the server lets a statement run,
/// so that the server ends it first and frees the locks.
const READING: Duration = WRITE_STATEMENT.saturating_add(Duration::from_secs(1));

/// State of a batch once its wallets are locked: all that judging reads.
#[derive(Debug)]
pub(super) struct BatchStart {
    /// Rows by which changes are judged: the wallets that exist, which are locked, and the other
    /// rows that the changes touch.
    pub(super) book: Book,
    /// Rows of the book that were remembered, not read: a verdict by one of these may be misled.
    pub(super) known: BTreeMap<OperationId, OperationRow>,
    /// Reading of the server's clock, taken after the locks.
    pub(super) now: Timestamp,
    /// Sequence numbers for new operations, one for each; those that do not pass leave a gap.
    pub(super) numbers: Vec<i64>,
}

/// Makes a new connection ready for a batch.
pub(super) async fn prepare(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let reads = prepare_reads();
    let sql = format!(
        "PREPARE holdfast_stands AS {STANDS}; PREPARE holdfast_lock (bytea[]) AS {LOCK}; {reads}"
    );
    connection.execute(AssertSqlSafe(sql)).await.map(drop)
}

/// Begins the transaction of these changes: locks their wallets, for each of which the server waits
/// this long, and reads what they touch, but for these rows, which are known. Where it fails,
/// nothing has happened.
pub(super) async fn begin(
    connection: &mut PgConnection,
    changes: &[&Change],
    known: BTreeMap<OperationId, OperationRow>,
    mut since: Timestamp,
    lock_timeout: Duration,
) -> Result<BatchStart, sqlx::Error> {
    let wallets: BTreeSet<WalletId> = changes.iter().map(|change| change.wallet()).collect();
    let book = Book { operations: known.clone(), ..Book::default() };
    let mut begun = BatchStart { book, known, now: Timestamp::from_micros(0), numbers: Vec::new() };
    let all = plan_reads(since, changes, &begun.known);
    let patience = reply_timeout(wallets.len(), lock_timeout, all.has_rows());
    begun.read(connection, lock(&wallets), &all, patience).await?;
    // Too few would leave an operation without its number.
    if i64::try_from(begun.numbers.len()) != Ok(all.numbers) {
        return Err(decode(6, BadCell));
    }
    // Windows were read from the last batch on. They are all there unless none is known, or the
    // clock was set back meanwhile: then they are read once more, from where it is now.
    while begun.now < since && !all.counters.is_empty() {
        // Each turn starts earlier than the last, so this ends unless the clock runs backwards for
        // ever.
        since = begun.now;
        let counters = plan_reads(since, changes, &begun.known).counters;
        let again = BatchReads { counters, ..BatchReads::with_room(0) };
        begun.read(connection, String::new(), &again, ANSWER).await?;
    }
    Ok(begun)
}

/// True where the statements of a beginning failed by what they met: another connection meets the
/// same. False where the connection is at fault: it has ended (08, 57P), leads to a standby (25),
/// has lost what was prepared (26) or has plans that are out of date (0A).
pub(super) fn is_statement_error(error: &sqlx::Error) -> bool {
    let was_told = error.as_database_error().is_some();
    is_refusal(error) || was_told && !has_code(error, &["08", "57P", "25", "26", "0A"])
}

/// The wallets among these that somebody else has locked.
pub(super) async fn held(
    connection: &mut PgConnection,
    wallets: &BTreeSet<WalletId>,
) -> Result<BTreeSet<WalletId>, sqlx::Error> {
    within(BEGINNING, connection.execute(BEGIN)).await?;
    let mut ids = Rows::default();
    for id in wallets {
        ids.row().blob(&id.to_bytes());
    }
    let query = query_with(HELD, arguments(None, [ids])?);
    let rows = answered(connection.fetch_all(query)).await?;
    // The probe has taken the free locks with it: they go at once.
    rollback(connection).await?;
    rows.iter().map(|row| row.try_get(0).map(WalletId::from_bytes)).collect()
}

/// Wait for the answer to a beginning: the lock time-out of each wallet, one after the other, and
/// the time of the reads; `ANSWER` at most. The server ends a statement that takes longer.
fn reply_timeout(wallets: usize, lock_timeout: Duration, reads: bool) -> Duration {
    // Locks are taken one after the other, and the server times each wait by itself.
    let locks = lock_timeout.saturating_mul(u32::try_from(wallets).unwrap_or(u32::MAX));
    let rest = if reads { READING } else { BEGINNING };
    locks.saturating_add(rest).min(ANSWER)
}

/// Text that begins a transaction and locks these wallets. Quoted by dollars a backslash is one,
/// whatever the server's settings are; the array takes one of two.
fn lock(wallets: &BTreeSet<WalletId>) -> String {
    let mut text = format!("{BEGIN}; EXECUTE holdfast_lock($${{");
    for (at, id) in wallets.iter().enumerate() {
        text.push_str(if at == 0 { r"\\x" } else { r",\\x" });
        push_hex(&mut text, &id.to_bytes());
    }
    text.push_str("}$$); ");
    text
}

/// Rows that a batch reads: those that its changes touch and that are not known already.
fn plan_reads(
    since: Timestamp,
    changes: &[&Change],
    known: &BTreeMap<OperationId, OperationRow>,
) -> BatchReads {
    let mut wanted = BatchReads::with_room(changes.len());
    // Changes of one API key look for the same.
    let mut counters = BTreeSet::new();
    for change in changes {
        match change {
            Change::Operation(transition) => {
                // As many as there may be new operations: sequences are not undone, so a gap costs
                // nothing.
                wanted.numbers += i64::from(transition.expected.is_none());
                if !known.contains_key(&transition.operation) {
                    wanted.operations.row().fixed(&transition.operation.to_bytes());
                }
                for ((api_key, counter, window), _) in windows(transition, since) {
                    // An admission counts in the window of the clock, which is not known yet: all
                    // from there on are read. A later change counts in the window of its admission,
                    // which is one row.
                    let latest = match transition.admitted_at {
                        Some(_) => window.as_micros(),
                        None => i64::MAX,
                    };
                    let code = rows::counter_code(counter);
                    counters.insert((api_key, code, window.as_micros(), latest));
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
    for (api_key, counter, earliest, latest) in counters {
        wanted.counters.row().fixed(&api_key.to_bytes()).int(counter).int(earliest).int(latest);
    }
    wanted
}

impl BatchStart {
    /// Reads what is wanted, after what this text says.
    async fn read(
        &mut self,
        connection: &mut PgConnection,
        mut text: String,
        wanted: &BatchReads,
        patience: Duration,
    ) -> Result<(), sqlx::Error> {
        wanted.ask(&mut text);
        let rows = within(patience, connection.fetch_all(AssertSqlSafe(text))).await?;
        rows.iter().try_for_each(|row| self.take(row))
    }

    /// Takes in one row of what was read.
    fn take(&mut self, row: &PgRow) -> Result<(), sqlx::Error> {
        let Self { book, now, numbers, .. } = self;
        let int = |at: usize| row.try_get::<i64, _>(at);
        match int(0)? {
            CLOCK_ROW => {
                *now = Timestamp::from_micros(int(3)?);
                numbers.extend(row.try_get::<Option<Vec<i64>>, _>(6)?.into_iter().flatten());
            }
            OPERATION_ROW => {
                let id = OperationId::from_bytes(row.try_get(1)?);
                let number = u32::try_from(int(4)?).map_err(|error| decode(4, error))?;
                let (seq, version) = (int(3)?, Version::new(number));
                let claim = ClaimId::from_bytes(row.try_get(2)?);
                book.operations.insert(id, OperationRow { seq, version, claim });
            }
            COUNTER_ROW => {
                let api_key = ApiKeyId::from_bytes(row.try_get(1)?);
                let counter = rows::counter(int(3)?).ok_or_else(|| decode(3, BadCell))?;
                let window = Timestamp::from_micros(int(4)?);
                book.counters.insert((api_key, counter, window), int(5)?);
            }
            POSTING_ROW => {
                book.postings.insert(PostingId::from_bytes(row.try_get(1)?));
            }
            CHARGED_ROW => {
                let id = OperationId::from_bytes(row.try_get(1)?);
                let wallet = WalletId::from_bytes(row.try_get(2)?);
                let (charge, refunded) = (Micros::new(int(3)?), Micros::new(int(4)?));
                book.charged.insert(id, RefundBase { wallet, charge, refunded });
            }
            WALLET_ROW => {
                let id = WalletId::from_bytes(row.try_get(1)?);
                let (available, held) = (Micros::new(int(2)?), Micros::new(int(3)?));
                book.wallets.insert(id, WalletBalance { available, held });
            }
            _ => return Err(decode(0, BadCell)),
        }
        Ok(())
    }
}

/// A value that somebody else must have written.
#[derive(Debug, thiserror::Error)]
#[error("a cell holds something else than it should")]
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
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; EXECUTE holdfast_lock($${\
             \\\\x00000000000000000000000000000007,\\\\x8000000000000000000000000000000a}$$); "
        );
    }

    #[test]
    fn a_wait_for_locks_or_rows_is_not_taken_for_a_dead_connection() {
        let lock_timeout = Duration::from_millis(250);
        assert_eq!(reply_timeout(1, lock_timeout, false), Duration::from_millis(5_250));
        assert_eq!(reply_timeout(20, lock_timeout, false), Duration::from_secs(10));
        assert_eq!(reply_timeout(4, lock_timeout, true), Duration::from_secs(12));
        assert_eq!(reply_timeout(512, lock_timeout, false), ANSWER);
        assert_eq!(reply_timeout(1, Duration::MAX, true), ANSWER);
    }

    #[test]
    fn changes_of_one_api_key_look_for_their_counters_once() {
        let limits = Limits { requests_per_minute: Some(9), ..Limits::default() };
        let claim = |n| sample::claim().request_key(sample::request_key(n)).limits(limits);
        let changes = [1, 2, 3].map(|n| sample::admission(&claim(n).build()));
        let changes: Vec<&Change> = changes.iter().map(AsRef::as_ref).collect();
        let found = plan_reads(sample::NOW, &changes, &BTreeMap::new());
        assert_eq!((found.operations.count(), found.counters.count()), (3, 1));
        let known = changes.iter().take(2).map(|change| operation_change(change));
        let row = |of| OperationRow::after(of, 1, Version::FIRST).unwrap();
        let known = known.map(|of| (of.operation, row(of))).collect();
        let found = plan_reads(sample::NOW, &changes, &known);
        assert_eq!((found.operations.count(), found.counters.count()), (1, 1), "two are known");
    }
}
