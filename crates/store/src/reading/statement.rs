//! The statements behind [`Statement`]. Only the shown entries are sorted: sums need no order, and the newest
//! entries are kept while the wallet's transfers are read past. Those are found through indexes with no other
//! columns, so the wide rows of operations are not read.
//!
//! ```text
//! entry without a number      by moment; all of them come before
//! entry with a number         by number, whatever its moment is
//! bounds of a period       -> last number with an earlier moment -> (above, up to]
//! ```
//!
//! A bound that has a numbered entry before it has all entries without a number before it.
//!
//! In SQL, not with the query builder: the columns of two tables are matched by their places in a UNION and
//! distinguished by constants, which is harder to read as function calls.

use holdfast_domain::WalletId;
use holdfast_domain::ledger::Account;
use holdfast_domain::ports::{LedgerEntry, LedgerSource};
use holdfast_domain::{Micros, OperationId, PostingId};
use sea_orm::{QueryResult, Value};

use super::{ReadError, ReadTransaction};
use crate::rows::{self, BadRow, Cells};
use crate::schema::blob;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{EntryPlace, Statement, StatementBalance, StatementLine};

/// The last transfers of a wallet in a span, in their order. Those without a number that have one moment were committed
/// together: what pays comes before what is paid from it, and refunds come last.
pub(crate) const LINES: &str = "SELECT l.at, l.number, l.place, l.leg, l.amount, coalesce(l.id, named.id),
    l.kind, l.operation_id, l.reason
FROM (
    SELECT coalesce(t.number, 0) AS number, t.created_at AS at, CAST(1 AS bigint) AS place, t.op_seq AS seq,
        t.leg AS leg, t.amount AS amount,
        NULL AS id, NULL AS kind, NULL AS operation_id, NULL AS reason FROM operations AS o JOIN transfers AS t ON t.op_seq = o.seq
    WHERE o.wallet_id = $1 AND CASE WHEN t.number IS NULL THEN t.created_at >= $2 AND t.created_at < $3
        ELSE t.number > $4 AND t.number <= $5 END
    UNION ALL
    SELECT coalesce(t.number, 0), t.created_at, CASE t.kind WHEN 'refund' THEN 2 ELSE 0 END, t.seq, 0, t.amount,
        t.id, t.kind, t.operation_id, t.reason
    FROM postings AS t
    WHERE t.wallet_id = $1 AND CASE WHEN t.number IS NULL THEN t.created_at >= $2 AND t.created_at < $3
        ELSE t.number > $4 AND t.number <= $5 END
    ORDER BY number DESC, at DESC, place DESC, seq DESC, leg DESC LIMIT $6
) AS l LEFT JOIN operations AS named ON l.place = 1 AND named.seq = l.seq
ORDER BY l.number, l.at, l.place, l.seq, l.leg";

/// Sums over all transfers before the end of a span, and how many of them are in it.
pub(crate) const SUMS: &str = "SELECT CAST(coalesce(sum(available), 0) AS bigint),
    CAST(coalesce(sum(held), 0) AS bigint),
    count(*) FILTER (WHERE CASE WHEN number IS NULL THEN at >= $2 ELSE number > $4 END)
FROM (
    SELECT t.number AS number, t.created_at AS at,
        CASE t.leg & 7 WHEN 0 THEN -t.amount WHEN 1 THEN 0 ELSE t.amount END AS available,
        CASE t.leg & 7 WHEN 0 THEN t.amount ELSE -t.amount END AS held
    FROM operations AS o JOIN transfers AS t ON t.op_seq = o.seq
    WHERE o.wallet_id = $1 AND CASE WHEN t.number IS NULL THEN t.created_at < $3 ELSE t.number <= $5 END
    UNION ALL
    SELECT t.number, t.created_at, t.amount, 0 FROM postings AS t
    WHERE t.wallet_id = $1 AND CASE WHEN t.number IS NULL THEN t.created_at < $3 ELSE t.number <= $5 END
) AS l";

/// The last numbers with a moment before each end of a period.
pub(crate) const BOUNDS: &str = "SELECT max(number) FILTER (WHERE at < $2), max(number) FILTER (WHERE at < $3)
FROM (
    SELECT t.number AS number, t.created_at AS at FROM operations AS o JOIN transfers AS t ON t.op_seq = o.seq
    WHERE o.wallet_id = $1
    UNION ALL
    SELECT t.number, t.created_at FROM postings AS t WHERE t.wallet_id = $1
) AS l";

/// Entries of a period that come before a place, or all of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StatementSpan {
    pub(crate) period: Period,
    pub(crate) before: Option<EntryPlace>,
}

/// Bounds of a span, for entries with and without a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryBounds {
    /// First moment, and the moment after the last one.
    moments: (i64, i64),
    /// The number before the first one, and the last one.
    numbers: (i64, i64),
}

impl EntryBounds {
    /// Bounds that include every entry.
    pub(crate) const NONE: Self = Self { moments: (i64::MIN, i64::MAX), numbers: (0, i64::MAX) };

    /// Bounds of a period whose ends come after these numbers.
    pub(super) fn of(period: Period, (above, up_to): (i64, i64)) -> Self {
        let (from, to) = period.bounds();
        // Entries without a number were written before all others.
        let moment = |at: i64, number: i64| if number > 0 { i64::MAX } else { at };
        Self { moments: (moment(from, above), moment(to, up_to)), numbers: (above, up_to) }
    }

    fn before(self, place: EntryPlace) -> Self {
        let Self { moments: (from, to), numbers: (above, up_to) } = self;
        match place {
            EntryPlace::Number(number) => {
                Self { numbers: (above, up_to.min(number.saturating_sub(1))), ..self }
            }
            EntryPlace::Moment(at) => {
                Self { moments: (from, to.min(at.as_micros())), numbers: (above, 0) }
            }
        }
    }
}

pub(super) async fn read(
    db: &mut ReadTransaction,
    wallet: WalletId,
    span: StatementSpan,
    limit: u32,
) -> Result<Statement, ReadError> {
    // All reads see one moment: the entries add up to the closing balance.
    let bounds = bounds(db, wallet, span).await?;
    let values = values(wallet, bounds, limit);
    let [id, from, to, above, up_to, _limit] = values.clone();
    let sums = db.query(SUMS, [id, from, to, above, up_to]).await?;
    let lines = db.query(LINES, values).await?;
    let (closing, count) =
        sums.first().map_or(Ok((NOTHING, 0)), closing).map_err(ReadError::Row)?;
    let lines = lines.iter().map(line).collect::<Result<Vec<_>, _>>().map_err(ReadError::Row)?;
    let shown = u64::try_from(lines.len()).unwrap_or(u64::MAX);
    Statement::of(lines, count.saturating_sub(shown), closing).map_err(ReadError::Transfers)
}

/// Finds the numbers at the ends of a span.
async fn bounds(
    db: &mut ReadTransaction,
    wallet: WalletId,
    StatementSpan { period, before }: StatementSpan,
) -> Result<EntryBounds, ReadError> {
    let mut bounds = EntryBounds::NONE;
    if period != Period::default() {
        let (from, to) = period.bounds();
        let rows = db.query(BOUNDS, [blob(wallet.to_bytes()), from.into(), to.into()]).await?;
        let numbers = rows.first().map_or(Ok((0, 0)), |row| {
            let mut cells = Cells::new(row);
            Ok((cells.opt_int()?.unwrap_or(0), cells.opt_int()?.unwrap_or(0)))
        });
        bounds = EntryBounds::of(period, numbers.map_err(ReadError::Row)?);
    }
    Ok(before.map_or(bounds, |place| bounds.before(place)))
}

const NOTHING: StatementBalance = StatementBalance { available: Micros::ZERO, held: Micros::ZERO };

/// The binds of [`LINES`].
pub(crate) fn values(wallet: WalletId, bounds: EntryBounds, limit: u32) -> [Value; 6] {
    let EntryBounds { moments: (from, to), numbers: (above, up_to) } = bounds;
    let id = blob(wallet.to_bytes());
    [id, from.into(), to.into(), above.into(), up_to.into(), i64::from(limit).into()]
}

fn closing(row: &QueryResult) -> Result<(StatementBalance, u64), BadRow> {
    let mut cells = Cells::new(row);
    let balance = StatementBalance { available: cells.micros()?, held: cells.micros()? };
    Ok((balance, cells.small()?))
}

/// Reads a row of [`LINES`].
pub(crate) fn line(row: &QueryResult) -> Result<StatementLine, BadRow> {
    let mut cells = Cells::new(row);
    let at = cells.timestamp()?;
    let number = cells.int()?;
    let place = if number > 0 { EntryPlace::Number(number) } else { EntryPlace::Moment(at) };
    let is_transfer = cells.int()? == 1;
    let leg = cells.int()?;
    let amount = cells.micros()?;
    let id = cells.bytes()?;
    if is_transfer {
        let (generation, kind) = rows::transfer(leg).ok_or(BadRow::Value(3))?;
        let (debit, credit) = kind.accounts();
        let source = LedgerSource::Operation(OperationId::from_bytes(id), generation);
        let kind = kind.label();
        let transfer = LedgerEntry { at, source, kind, debit, credit, amount };
        return Ok(StatementLine { place, transfer, posted: None });
    }
    let posted = rows::posting_kind(&mut cells)?;
    let source = LedgerSource::Posting(PostingId::from_bytes(id));
    let (debit, credit, amount) = if amount < Micros::ZERO {
        (Account::Available, posted.counterpart(), amount.negated())
    } else {
        (posted.counterpart(), Account::Available, amount)
    };
    let kind = posted.label();
    let transfer = LedgerEntry { at, source, kind, debit, credit, amount };
    Ok(StatementLine { place, transfer, posted: Some(posted) })
}
