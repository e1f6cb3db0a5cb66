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
use holdfast_domain::{ApiKeyId, Micros, OperationId, PostingId, Timestamp};
use sea_orm::{QueryResult, Value};

use super::{ReadError, ReadTransaction};
use crate::rows::{self, BadRow, Cells};
use crate::schema::blob;
use holdfast_domain::admin::DepositReference;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{
    AmountOverflow, DailyStatement, DayMovement, EntryPlace, LedgerOperation, MovementKind,
    Statement, StatementBalance, StatementLine,
};

const DAY_MICROS: i64 = 86_400_000_000;

/// The last transfers of a wallet in a span, in their order. Those without a number that have one moment were committed
/// together: what pays comes before what is paid from it, and refunds come last.
pub(crate) const LINES: &str = "SELECT l.at, l.number, l.place, l.leg, l.amount, coalesce(l.id, named.id),
    l.kind, l.operation_id, l.reason, named.model, named.api_key_id, k.name
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
    LEFT JOIN api_keys AS k ON k.id = named.api_key_id
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

/// Condition: an entry is not before the period.
macro_rules! in_period {
    () => {
        "CASE WHEN t.number IS NULL THEN t.created_at >= $2 ELSE t.number > $4 END"
    };
}

/// Sums of all that moved a wallet before the end of a span: of what was before it, of holds, and of each day and kind.
/// A charge that a clock placed after the end is of the last day.
pub(crate) const DAYS: &str = concat!(
    "SELECT CAST(CASE WHEN l.kind IN ('before', 'hold') THEN 0 WHEN l.at > $7 THEN $7 / 86400000000
        ELSE l.at / 86400000000 END AS bigint) AS day,
    l.kind AS kind, l.source AS source, l.reference AS reference, count(*),
    CAST(sum(l.available) AS bigint), CAST(sum(l.held) AS bigint)
FROM (
    SELECT CASE WHEN NOT ", in_period!(), " THEN 'before' WHEN t.leg & 7 = 1 THEN 'charge' ELSE 'hold' END AS kind,
        t.created_at AS at, NULL AS source, NULL AS reference,
        CASE t.leg & 7 WHEN 0 THEN -t.amount WHEN 1 THEN 0 ELSE t.amount END AS available,
        CASE t.leg & 7 WHEN 0 THEN t.amount ELSE -t.amount END AS held
    FROM operations AS o JOIN transfers AS t ON t.op_seq = o.seq
    WHERE o.wallet_id = $1 AND CASE WHEN t.number IS NULL THEN t.created_at < $3 ELSE t.number <= $5 END
    UNION ALL
    SELECT CASE WHEN ", in_period!(), " THEN t.kind ELSE 'before' END, t.created_at,
        CASE WHEN $6 = 1 AND ", in_period!(), " THEN d.source END,
        CASE WHEN $6 = 1 AND ", in_period!(), " THEN d.external_reference END, t.amount, 0
    FROM postings AS t LEFT JOIN posting_details AS d ON d.posting_id = t.id
    WHERE t.wallet_id = $1 AND CASE WHEN t.number IS NULL THEN t.created_at < $3 ELSE t.number <= $5 END
) AS l GROUP BY 1, 2, 3, 4 ORDER BY 1 LIMIT $8"
);

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

/// Reads a statement by day, of the references of payments if it has at most so many movements then.
pub(super) async fn days(
    db: &mut ReadTransaction,
    wallet: WalletId,
    period: Period,
    movements_max: u32,
) -> Result<DailyStatement, ReadError> {
    let bounds = bounds(db, wallet, StatementSpan { period, before: None }).await?;
    let [id, from, to, above, up_to, _limit] = values(wallet, bounds, 0);
    let last = period.bounds().1.saturating_sub(1);
    // Beside the movements there are sums of what was before, and of holds.
    let rows_max = i64::from(movements_max).saturating_add(2);
    let binds = |by_reference: i64, limit: i64| {
        let span = [id.clone(), from.clone(), to.clone(), above.clone(), up_to.clone()];
        let [id, from, to, above, up_to] = span;
        [id, from, to, above, up_to, by_reference.into(), last.into(), limit.into()]
    };
    let rows = db.query(DAYS, binds(1, rows_max.saturating_add(1))).await?;
    let statement = daily(&rows)?;
    if u32::try_from(statement.movements.len()).is_ok_and(|count| count <= movements_max) {
        return Ok(statement);
    }
    daily(&db.query(DAYS, binds(0, i64::MAX)).await?)
}

/// Adds up rows of [`DAYS`].
fn daily(rows: &[QueryResult]) -> Result<DailyStatement, ReadError> {
    let mut statement =
        DailyStatement { opening: NOTHING, movements: Vec::new(), closing: NOTHING };
    for row in rows {
        let (change, movement) = day_movement(row).map_err(ReadError::Row)?;
        let overflow = || ReadError::Transfers(AmountOverflow);
        statement.closing = statement.closing.plus(change).ok_or_else(overflow)?;
        match movement {
            DayRow::Before => statement.opening = change,
            DayRow::Hold => {}
            DayRow::Movement(movement) => statement.movements.push(movement),
        }
    }
    statement.movements.sort_by_key(|it| (it.day, it.kind));
    Ok(statement)
}

/// Row of [`DAYS`].
enum DayRow {
    Before,
    Hold,
    Movement(DayMovement),
}

fn day_movement(row: &QueryResult) -> Result<(StatementBalance, DayRow), BadRow> {
    let mut cells = Cells::new(row);
    let day = Timestamp::from_micros(cells.int()?.saturating_mul(DAY_MICROS));
    let kind = cells.text()?;
    let reference = cells.opt_text()?.zip(cells.opt_text()?);
    let reference = reference.map(|(source, it)| DepositReference::booked(source, it));
    let count = cells.small()?;
    let change = StatementBalance { available: cells.micros()?, held: cells.micros()? };
    let row = match kind.as_str() {
        "before" => DayRow::Before,
        "hold" => DayRow::Hold,
        label => {
            let known = MovementKind::ALL.into_iter().find(|kind| kind.label() == label);
            let kind = known.ok_or(BadRow::Value(1))?;
            let amount = change.funds().ok_or(BadRow::Value(5))?;
            DayRow::Movement(DayMovement { day, kind, reference, count, amount })
        }
    };
    Ok((change, row))
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
        cells.skip(3);
        let operation = LedgerOperation {
            id: OperationId::from_bytes(id),
            model: cells.text()?,
            api_key: ApiKeyId::from_bytes(cells.bytes()?),
            api_key_name: cells.opt_text()?,
        };
        return Ok(StatementLine { place, transfer, posted: None, operation: Some(operation) });
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
    Ok(StatementLine { place, transfer, posted: Some(posted), operation: None })
}
