//! The statements behind [`Statement`]. Nothing is sorted but the entries that are shown:
//! sums need no order, and the newest entries are kept while the wallet's transfers are passed by.
//! Those are found through indexes that hold nothing else, the wide rows of operations are not
//! read.
//!
//! In SQL, not with the query builder: the columns of two tables are matched by their places in a
//! UNION and told apart by constants, which reads worse the more of it is function calls.

use holdfast_domain::WalletId;
use holdfast_domain::ledger::{Account, PostingKind};
use holdfast_domain::ports::{LedgerEntry, LedgerSource};
use holdfast_domain::{Micros, OperationId, PostingId};
use sea_orm::{QueryResult, Value};

use super::{ReadError, ReadTransaction};
use crate::dialect::blob;
use crate::rows::{self, BadRow, Cells};
use holdfast_domain::listing::Period;
use holdfast_domain::report::{Statement, StatementBalance};

/// The last transfers of a wallet in a period, oldest first. Those of one moment were committed
/// together: what pays comes before what is paid from it, and refunds come last.
pub(crate) const LINES: &str = "SELECT l.at, l.place, l.leg, l.amount, coalesce(l.id, named.id),
    l.kind, l.operation_id, l.reason
FROM (
    SELECT t.created_at AS at, CAST(1 AS bigint) AS place, t.op_seq AS seq, t.leg AS leg, t.amount AS amount,
        NULL AS id, NULL AS kind, NULL AS operation_id, NULL AS reason FROM operations AS o JOIN transfers AS t ON t.op_seq = o.seq
    WHERE o.wallet_id = $1 AND t.created_at >= $2 AND t.created_at < $3
    UNION ALL
    SELECT t.created_at, CASE t.kind WHEN 'refund' THEN 2 ELSE 0 END, t.seq, 0, t.amount,
        t.id, t.kind, t.operation_id, t.reason
    FROM postings AS t WHERE t.wallet_id = $1 AND t.created_at >= $2 AND t.created_at < $3
    ORDER BY at DESC, place DESC, seq DESC, leg DESC LIMIT $4
) AS l LEFT JOIN operations AS named ON l.place = 1 AND named.seq = l.seq
ORDER BY l.at, l.place, l.seq, l.leg";

/// Sums over all transfers before the end of a period, and how many of them are in it.
pub(crate) const SUMS: &str = "SELECT CAST(coalesce(sum(available), 0) AS bigint),
    CAST(coalesce(sum(held), 0) AS bigint), count(*) FILTER (WHERE at >= $2)
FROM (
    SELECT t.created_at AS at,
        CASE t.leg & 7 WHEN 0 THEN -t.amount WHEN 1 THEN 0 ELSE t.amount END AS available,
        CASE t.leg & 7 WHEN 0 THEN t.amount ELSE -t.amount END AS held
    FROM operations AS o JOIN transfers AS t ON t.op_seq = o.seq
    WHERE o.wallet_id = $1 AND t.created_at < $3
    UNION ALL
    SELECT t.created_at, t.amount, 0 FROM postings AS t
    WHERE t.wallet_id = $1 AND t.created_at < $3
) AS l";

pub(super) async fn read(
    db: &mut ReadTransaction,
    wallet: WalletId,
    period: Period,
    limit: u32,
) -> Result<Statement, ReadError> {
    let values = values(wallet, period, limit);
    let [id, from, to, _limit] = values.clone();
    // Both reads see one moment: the entries add up to the closing balance.
    let sums = db.query(SUMS, [id, from, to]).await?;
    let lines = db.query(LINES, values).await?;
    let (closing, count) =
        sums.first().map_or(Ok((NOTHING, 0)), closing).map_err(ReadError::Row)?;
    let lines = lines.iter().map(line).collect::<Result<Vec<_>, _>>().map_err(ReadError::Row)?;
    let shown = u64::try_from(lines.len()).unwrap_or(u64::MAX);
    Statement::of(lines, count.saturating_sub(shown), closing).map_err(ReadError::Transfers)
}

const NOTHING: StatementBalance = StatementBalance { available: Micros::ZERO, held: Micros::ZERO };

/// The binds of [`LINES`].
pub(crate) fn values(wallet: WalletId, period: Period, limit: u32) -> [Value; 4] {
    let (from, to) = period.bounds();
    [blob(wallet.to_bytes()), from.into(), to.into(), i64::from(limit).into()]
}

fn closing(row: &QueryResult) -> Result<(StatementBalance, u64), BadRow> {
    let mut cells = Cells::new(row);
    let balance = StatementBalance { available: cells.micros()?, held: cells.micros()? };
    Ok((balance, cells.small()?))
}

/// Reads a row of [`LINES`].
pub(crate) fn line(row: &QueryResult) -> Result<(LedgerEntry, Option<PostingKind>), BadRow> {
    let mut cells = Cells::new(row);
    let at = cells.timestamp()?;
    let is_transfer = cells.int()? == 1;
    let leg = cells.int()?;
    let amount = cells.micros()?;
    let id = cells.bytes()?;
    if is_transfer {
        let (generation, kind) = rows::transfer(leg).ok_or(BadRow::Value(2))?;
        let (debit, credit) = kind.accounts();
        let source = LedgerSource::Operation(OperationId::from_bytes(id), generation);
        let kind = kind.label();
        return Ok((LedgerEntry { at, source, kind, debit, credit, amount }, None));
    }
    let posted = rows::posting_kind(&mut cells)?;
    let source = LedgerSource::Posting(PostingId::from_bytes(id));
    let (debit, credit, amount) = if amount < Micros::ZERO {
        (Account::Available, posted.counterpart(), amount.negated())
    } else {
        (posted.counterpart(), Account::Available, amount)
    };
    let kind = posted.label();
    Ok((LedgerEntry { at, source, kind, debit, credit, amount }, Some(posted)))
}
